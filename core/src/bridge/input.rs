//! Rounds of a running call, as a host sees them: questions by hand, steps.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Bridge;
use crate::call::rounds::Input;
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::{Method, object};

/// Reads what a handler asks instead of answering.
///
/// # Errors
/// −32603 that names what is wrong: a mistake of the handler.
pub(super) fn read(text: &RawJson) -> Result<Input> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        #[serde(rename = "inputRequests", default)]
        requests: Map<String, Value>,
        #[serde(default)]
        state: Option<RawJson>,
    }
    let wrong = |why: String| Error::rpc(code::INTERNAL_ERROR, format!("InputRequired: {why}"));
    let given: Given = text.to().map_err(|e| wrong(e.to_string()))?;
    let mut questions = Vec::with_capacity(given.requests.len());
    for (key, request) in given.requests {
        let asked = request["method"].as_str().unwrap_or_default();
        let Some(row) = Method::find(asked).filter(|row| row.is_question()) else {
            return Err(wrong(format!("{key:?}: {:?} is no question", shortened(asked, 60))));
        };
        let params = request.get("params").map_or_else(RawJson::empty_object, RawJson::from_value);
        questions.push((key, row.name, params));
    }
    Ok(Input { questions, state: given.state.filter(|state| state.get() != "null"), waits: false })
}

impl Bridge {
    /// Returns the outcome of a running call's last round that its handler asked by hand: `{"inputResponses": {key:
    /// result}, "state"?: any}`. `None`: the call is not running any more.
    ///
    /// # Errors
    /// −32602 when the request's state is not this server's.
    pub fn input(&self, key: u64) -> Result<Option<RawJson>> {
        let Some(context) = self.running(key) else { return Ok(None) };
        let mut text = String::from("{");
        object::push_member(&mut text, "inputResponses", &Value::Object(context.responses()?).to_string());
        if let Some(state) = context.own_state()? {
            object::push_member(&mut text, "state", state.get());
        }
        text.push('}');
        Ok(Some(RawJson::written(text)))
    }

    /// A running call comes to a step: its result, where it was done in an earlier round.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a second step of this name; [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn step(&self, key: u64, name: &str) -> Result<Option<RawJson>> {
        let context = self.running(key).ok_or_else(|| Error::cancelled("the call is not running any more"))?;
        context.step_result(name)
    }

    /// A step of a running call is done.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub fn stepped(&self, key: u64, name: &str, result: RawJson) -> Result<()> {
        self.running(key).map_or(Ok(()), |context| context.step_done(name, result))
    }
}
