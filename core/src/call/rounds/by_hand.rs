//! Handlers that keep their rounds themselves, and what they ask in revisions whose servers send requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::back_off;
use crate::call::{CallOptions, Context, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};

/// Questions that a handler asks instead of answering, by their keys, each with its method and parameters, and a state
/// for itself.
pub(crate) struct Input {
    pub(crate) questions: Vec<(String, &'static str, RawJson)>,
    pub(crate) state: Option<RawJson>,
    /// Nothing new is asked: the handler runs again after some time, with the answers that it has.
    pub(crate) waits: bool,
}

/// The most answers that are kept in case the handler runs again.
const MAX_ANSWERS: usize = 256;
/// And of their bytes.
const MAX_ANSWERED: usize = 16 * 1024 * 1024;
/// The most runs of a handler for one request.
const MAX_RUNS: u32 = 32;

/// Outcome of the last round of one request.
#[derive(Default)]
pub(crate) struct ByHand(Mutex<Given>);

#[derive(Default)]
struct Given {
    responses: Map<String, Value>,
    state: Option<RawJson>,
    /// Steps that were done, and those that this run has come to.
    steps: Vec<(String, RawJson)>,
    stepped: Vec<String>,
    /// Questions that the context has asked by requests, with the answers; true if this run has come to it.
    answered: Vec<([u8; 32], RawJson, bool)>,
    runs: u32,
}

impl ByHand {
    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answers, by the handler's keys.
    pub(crate) fn responses(&self) -> Map<String, Value> {
        self.lock().responses.clone()
    }

    /// As [`Rounds::step`](super::Rounds::step).
    ///
    /// # Errors
    /// The same.
    pub(crate) fn step(&self, name: &str) -> Result<Option<RawJson>> {
        let mut given = self.lock();
        super::stepped_once(&mut given.stepped, name)?;
        Ok(given.steps.iter().find(|(other, _)| other == name).map(|(_, result)| result.clone()))
    }

    /// A step is done.
    pub(crate) fn stepped(&self, name: &str, result: RawJson) {
        self.lock().steps.push((name.to_owned(), result));
    }

    /// Returns true if the handler has asked by hand.
    pub(crate) fn has_asked(&self) -> bool {
        self.lock().runs > 0
    }

    /// The answer to a question of an earlier run; of several equal ones, to the next.
    pub(crate) fn answer(&self, question: &[u8; 32]) -> Option<RawJson> {
        let mut given = self.lock();
        let (_, result, used) = given.answered.iter_mut().find(|(known, _, used)| !*used && known == question)?;
        *used = true;
        Some(result.clone())
    }

    /// A question of the context was answered. A handler that asks by hand later runs again from its beginning, and the
    /// user is not asked twice.
    pub(crate) fn answered(&self, question: [u8; 32], result: &RawJson) {
        let mut given = self.lock();
        let bytes: usize = given.answered.iter().map(|(_, result, _)| result.get().len()).sum();
        if given.answered.len() < MAX_ANSWERS && bytes + result.get().len() <= MAX_ANSWERED {
            given.answered.push((question, result.clone(), true));
        }
    }

    /// The handler's state.
    pub(crate) fn state(&self) -> Option<RawJson> {
        self.lock().state.clone()
    }
}

/// Asks the client by requests, and runs the handler again with the answers.
pub(crate) fn ask_by_requests(context: Context, input: Input, params: RawJson, reply: Reply) {
    let link = context.link().clone();
    link.spawn(Box::pin(async move {
        let asked = async {
            let runs = {
                let mut given = context.by_hand().lock();
                given.runs += 1;
                given.runs
            };
            if runs >= MAX_RUNS {
                let message = format!("the handler asks for more after {MAX_RUNS} rounds");
                return Err(Error::rpc(code::INTERNAL_ERROR, message));
            }
            let responses = responses(&context, &input, runs).await?;
            let mut given = context.by_hand().lock();
            if !input.waits {
                (given.responses, given.state) = (responses, input.state);
            }
            given.stepped.clear();
            given.answered.iter_mut().for_each(|(_, _, used)| *used = false);
            drop(given);
            context.begin_again();
            Ok(())
        };
        match context.unless_cancelled(asked).await {
            // Its questions are taken back; dropping the reply sends nothing.
            None => drop(reply),
            Some(Ok(())) => context.run_again(params.clone(), reply.for_again(&context, &params)),
            // The fate of a question to the client is no secret.
            Some(Err(error)) => match error.kind() {
                ErrorKind::Rpc => match error.as_answer() {
                    Some(text) => reply.failed(text),
                    None => reply.error(error),
                },
                ErrorKind::Unsupported => reply.unsupported(&error),
                _ => reply.failed(error.message()),
            },
        }
    }));
}

async fn responses(context: &Context, input: &Input, runs: u32) -> Result<Map<String, Value>> {
    if input.questions.is_empty() && input.state.is_none() && !input.waits {
        return Err(no_question());
    }
    // A client that cannot be asked everything is asked nothing.
    for (_, method, params) in &input.questions {
        context.can_ask(method, Some(params))?;
    }
    let options = CallOptions { is_by_hand: true, ..CallOptions::default() };
    let mut asked = Vec::with_capacity(input.questions.len());
    for (key, method, params) in &input.questions {
        asked.push((key, context.ask(method, Some(params.clone()), &options)));
    }
    if asked.is_empty() {
        back_off(context.link(), runs).await;
    }
    let mut responses = Map::new();
    for (key, answer) in asked {
        let read = answer.await?.to::<Value>();
        let value = read.map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("answer to {key:?}: {e}")))?;
        if responses.insert(key.clone(), value).is_some() {
            return Err(two_of(key));
        }
    }
    Ok(responses)
}

/// Returns the digest that a question is known by.
pub(crate) fn known_by(method: &str, params: Option<&RawJson>) -> [u8; 32] {
    let params: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
    super::seal::digest(&json!([method, params]))
}

/// Two questions have one key.
pub(super) fn two_of(key: &str) -> Error {
    Error::rpc(code::INTERNAL_ERROR, format!("InputRequired: two questions are called {key:?}"))
}

/// The client would have nothing to come back with.
pub(super) fn no_question() -> Error {
    Error::rpc(code::INTERNAL_ERROR, "InputRequired: expected a question or a state")
}
