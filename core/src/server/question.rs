//! Several questions at once, and the protocol's rounds by hand.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::ask::CreateMessageRequestParams;
#[cfg(feature = "runtime")]
use crate::call::rounds;
use crate::call::{CallOptions, Context, Reply};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;

/// A question to the client, for [`Context::ask_all`] and [`InputRequired`].
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
/// use tricorn::server::Question;
///
/// let move_house = async |cx: Context| {
///     let form = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}});
///     let questions = [Question::elicit("From?", &form("from")), Question::elicit("To?", &form("to"))];
///     let answers = cx.ask_all(questions).await?;
///     let [from, to] = [answers[0].to::<ElicitResult>()?, answers[1].to::<ElicitResult>()?];
///     Ok(format!("from {} to {}", from.content["from"], to.content["to"]))
/// };
/// let server = Server::new("movers").tool("move", "Move house", move_house);
/// # let handlers = Handlers::new().elicitation(async || Ok(json!({"from": "Rome", "to": "Oslo"})));
/// # let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("move", json!({})).await?.text(), "from \"Rome\" to \"Oslo\"");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Question {
    pub(crate) method: &'static str,
    pub(crate) params: RawJson,
}

impl Question {
    /// As [`Context::elicit`]; its answer is an [`ElicitResult`](super::ElicitResult).
    #[must_use]
    pub fn elicit(message: &str, form: &Value) -> Self {
        let params = json!({"mode": "form", "message": message, "requestedSchema": form});
        Self { method: "elicitation/create", params: RawJson::from_value(&params) }
    }

    /// As [`Context::elicit_url`]; its answer is an [`ElicitResult`](super::ElicitResult).
    #[must_use]
    pub fn elicit_url(message: &str, url: &str, elicitation_id: &str) -> Self {
        let params = json!({"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id});
        Self { method: "elicitation/create", params: RawJson::from_value(&params) }
    }

    /// As [`Context::sample`]; its answer is a [`CreateMessageResult`](super::CreateMessageResult).
    #[must_use]
    #[deprecated(note = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")]
    pub fn sample(params: &CreateMessageRequestParams) -> Self {
        Self { method: "sampling/createMessage", params: RawJson::from_value(params) }
    }

    /// As [`Context::list_roots`]; its answer is a [`ListRootsResult`](super::ListRootsResult).
    #[must_use]
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn list_roots() -> Self {
        Self { method: "roots/list", params: RawJson::empty_object() }
    }
}

impl Context {
    /// Asks several questions at the same time: in revision 2026-07-28 in one round. The answers come in the order of the
    /// questions, each a result of the schema, to be read with [`RawJson::to`]. When one of them cannot be asked, none is.
    ///
    /// # Errors
    /// The first question's that has one: as [`elicit`](Self::elicit), [`sample`](Self::sample).
    pub async fn ask_all(&self, questions: impl IntoIterator<Item = Question>) -> Result<Vec<RawJson>> {
        let questions: Vec<_> = questions.into_iter().collect();
        let together = questions.iter().map(|q| (q.method.to_owned(), q.params.clone())).collect();
        let options = CallOptions { together, ..CallOptions::default() };
        let asked: Vec<_> = questions.into_iter().map(|q| self.ask(q.method, Some(q.params), &options)).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answer.await?);
        }
        Ok(answers)
    }

    /// The answers to what the handler asked with [`InputRequired`] in the last round, by its keys: results as the client
    /// sent them, unchecked. Empty in the first round.
    ///
    /// # Errors
    /// −32602 for a request whose state is not this server's.
    #[cfg(feature = "runtime")]
    pub fn input_responses(&self) -> Result<Map<String, Value>> {
        self.responses()
    }

    /// Returns the state that the handler kept with [`InputRequired::state`] in the last round.
    ///
    /// # Errors
    /// −32602 for a request whose state is not this server's; [`Misuse`](crate::ErrorKind::Misuse) when it is no `T`.
    #[cfg(feature = "runtime")]
    pub fn request_state<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let Some(state) = self.own_state()? else { return Ok(None) };
        state.to().map(Some).map_err(|e| Error::misuse(format!("request_state: {e}")))
    }
}

/// Instead of a result: what the client has to answer before the request is sent again (specification 2026-07-28,
/// "Multi Round-Trip Requests"). For handlers that keep their rounds themselves; [`Context::elicit`] and its like do so by
/// themselves, and in every revision. Returned as an error: `Err(InputRequired::new().ask(…).into())`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
/// use tricorn::server::{InputRequired, Question};
///
/// let delete = async |cx: Context| {
///     // Runs again with the answer, perhaps in another process.
///     match cx.input_responses()?.get("sure") {
///         None => {
///             let sure = Question::elicit("Delete all?", &json!({"type": "object", "properties": {}}));
///             Err(InputRequired::new().ask("sure", sure).into())
///         }
///         Some(answer) if answer["action"] == "accept" => Ok("deleted"),
///         Some(_) => Ok("kept"),
///     }
/// };
/// let server = Server::new("notes").tool("delete", "Delete all notes", delete);
/// # let handlers = Handlers::new().elicitation(async || Ok(json!({})));
/// # let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("delete", json!({})).await?.text(), "deleted");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct InputRequired {
    pub(crate) questions: Vec<(String, Question)>,
    pub(crate) state: Option<RawJson>,
}

impl InputRequired {
    /// Nothing yet: the client is to send the request again, some time later.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks this; its answer is found under `key` in [`Context::input_responses`].
    pub fn ask(mut self, key: impl Into<String>, question: Question) -> Self {
        self.questions.push((key.into(), question));
        self
    }

    /// Keeps this for the next round, sealed: [`Context::request_state`].
    pub fn state(mut self, value: &impl Serialize) -> Self {
        self.state = Some(RawJson::from_value(value));
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn send(self, reply: Reply) {
        let questions = self.questions.into_iter().map(|(key, q)| (key, q.method, q.params)).collect();
        reply.input_required(rounds::Input { questions, state: self.state, waits: false });
    }

    #[cfg(not(feature = "runtime"))]
    pub(crate) fn send(self, reply: Reply) {
        reply.error(Error::misuse("InputRequired needs a runtime: switch a transport on"));
    }
}
