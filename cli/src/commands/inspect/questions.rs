//! Questions of the server, which wait until somebody answers them in a page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tricorn::client::{Handlers, Roots};
use tricorn::jsonrpc::RawJson;
use tricorn::{Context, Error, Handler, Reply};

use super::hub::Hub;

/// Questions that wait at once; further ones are refused.
const MOST: usize = 64;
/// The code for what the user does not want, as the specification has it for sampling.
const REJECTED: i64 = -1;

/// Answer that the user has typed.
#[derive(Deserialize)]
pub(super) struct Answer {
    question: u64,
    /// The result; without one the question is refused.
    result: Option<Box<serde_json::value::RawValue>>,
}

#[derive(Serialize)]
struct Question {
    question: u64,
    method: &'static str,
    params: RawJson,
}

struct Pending {
    question: Question,
    answers: oneshot::Sender<Option<RawJson>>,
}

#[derive(Default)]
struct State {
    next: u64,
    pending: BTreeMap<u64, Pending>,
}

/// The questions that wait.
pub(super) struct Questions {
    state: Mutex<State>,
    hub: Arc<Hub>,
}

impl Questions {
    pub(super) fn new(hub: &Arc<Hub>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), hub: hub.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handlers of a client that ask here.
    pub(super) fn handlers(self: &Arc<Self>, roots: &Roots, runtime: &Handle) -> Handlers {
        let asks = |method| Arc::new(Asks { method, questions: self.clone(), runtime: runtime.clone() });
        let handlers = Handlers::new().elicitation_with_url(asks("elicitation/create"));
        #[expect(deprecated, reason = "servers that ask in these ways are there")]
        let handlers = handlers.sampling_with_tools(asks("sampling/createMessage")).roots(roots);
        handlers
    }

    fn ask(&self, method: &'static str, params: RawJson) -> Option<(u64, oneshot::Receiver<Option<RawJson>>)> {
        let (answers, answered) = oneshot::channel();
        let mut state = self.lock();
        if state.pending.len() >= MOST {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.pending.insert(number, Pending { question: Question { question: number, method, params }, answers });
        drop(state);
        self.tell();
        Some((number, answered))
    }

    /// The questions that wait, as a page is told of them.
    pub(super) fn shown(&self) -> serde_json::Value {
        let state = self.lock();
        json!(state.pending.values().map(|pending| &pending.question).collect::<Vec<_>>())
    }

    fn tell(&self) {
        self.hub.tell("questions", &self.shown());
    }

    /// Answers a question. False if it is not waiting any more.
    pub(super) fn answer(&self, answer: Answer) -> bool {
        let Some(pending) = self.lock().pending.remove(&answer.question) else { return false };
        let result = answer.result.map(|result| RawJson::trusted(result.get().to_owned()));
        let is_wanted = pending.answers.send(result).is_ok();
        self.tell();
        is_wanted
    }
}

/// Puts the questions of one kind before the user.
struct Asks {
    method: &'static str,
    questions: Arc<Questions>,
    runtime: Handle,
}

impl Handler for Asks {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let Some((number, answered)) = self.questions.ask(self.method, params) else {
            return reply.error(Error::rpc(REJECTED, format!("{MOST} questions wait for the user already")));
        };
        let (questions, method) = (self.questions.clone(), self.method);
        self.runtime.spawn(async move {
            let answer = tokio::select! {
                answer = answered => answer.ok().flatten(),
                () = context.cancelled() => None,
            };
            if questions.lock().pending.remove(&number).is_some() {
                questions.tell();
            }
            match answer {
                Some(result) => reply.value(result),
                None if method == "elicitation/create" => {
                    reply.value(RawJson::from_value(&json!({"action": "cancel"})))
                }
                None => reply.error(Error::rpc(REJECTED, "the user refused the request")),
            }
        });
    }
}
