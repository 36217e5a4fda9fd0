//! Questions that a server asks inside of a result, and the request sent again with the answers (specification
//! 2026-07-28, "Multi Round-Trip Requests").

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Client;
use crate::call::rounds::back_off;
use crate::call::{Answer, CallOptions, Done, Guard, Link, inside, trace_of};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::TraceContext;
use crate::protocol::revision::{Method, object, shape};
use crate::protocol::{Call, CallId, Origin, RequestContext};
use crate::signal::Signal;

/// The most times that one request is sent.
const MAX_ROUNDS: u32 = 32;
/// The most questions of one round.
const MAX_QUESTIONS: usize = 64;
/// Questions of one round: the schema's `InputRequiredResult`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired {
    #[serde(default)]
    input_requests: Map<String, Value>,
    /// Goes back as it came.
    #[serde(default)]
    request_state: Option<RawJson>,
}

/// A request that is sent as often as its server asks. Dropped, it is cancelled.
#[derive(Default)]
struct Driven {
    over: Signal,
    /// The first time it is sent.
    first: Mutex<Option<Guard>>,
    /// Timer of the longest time that all of it may take.
    timer: Mutex<Option<Guard>>,
}

struct Abandons(Arc<Driven>);

impl Drop for Abandons {
    fn drop(&mut self) {
        self.0.over.set();
        let first = self.0.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(first);
    }
}

/// Returns true if this result asks for something.
fn asks(result: &RawJson) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<std::borrow::Cow<'a, str>>,
    }
    shape::INPUT_REQUIRED.is_in(result.get())
        && result.borrow::<Head<'_>>().is_ok_and(|head| head.result_type.as_deref() == Some("input_required"))
}

impl Client {
    /// Sends a request and answers what its server asks inside of results.
    pub(super) fn send_rounds(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Guard {
        let driven = Arc::<Driven>::default();
        let late = Arc::<Signal>::default();
        // All rounds have to fit into it, and what the handlers take.
        *driven.timer.lock().unwrap_or_else(PoisonError::into_inner) =
            options.max_timeout.filter(|time| !time.is_zero()).map(|time| {
                let late = late.clone();
                let ring = move || {
                    late.set();
                };
                self.connected.link.clock().later(time, Box::new(ring))
            });
        // Those of another request's rounds, if any: this server knows nothing of them.
        let params = params.as_ref().map(shape::without_rounds);
        let (client, of, again, running) = (self.clone(), method.to_owned(), params.clone(), driven.clone());
        let resent = options.clone();
        let first = self.send(
            method,
            params,
            options,
            Box::new(move |outcome| match outcome {
                Ok(result) if asks(&result) => {
                    let link = client.connected.link.clone();
                    link.spawn(Box::pin(async move {
                        let rest = client.rounds(&of, again, &resent, result);
                        // Nobody waits for it any more, or there is nobody to send it to: who answers is told.
                        match running.over.unless(late.unless(client.connected.hub.over.unless(rest))).await {
                            Some(Some(Some(outcome))) => done(outcome),
                            Some(None) => {
                                let time = resent.max_timeout.unwrap_or_default();
                                done(Err(Error::late(&of, time, "max_timeout")));
                            }
                            Some(Some(None)) => {
                                done(Err(Error::closed("the connection ended between two rounds of questions")))
                            }
                            None => {}
                        }
                    }));
                }
                outcome => done(outcome),
            }),
        );
        *driven.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
        Box::new(Abandons(driven))
    }

    async fn rounds(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        mut result: RawJson,
    ) -> Result<RawJson> {
        let wrong = |why: &str| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {why}"));
        let link: Arc<dyn Link> = self.connected.link.clone();
        let mut shed = 0;
        for _ in 1..MAX_ROUNDS {
            let asked: InputRequired = result.to().map_err(|e| wrong(&e.to_string()))?;
            if asked.request_state.as_ref().is_some_and(|state| !state.get().starts_with('"')) {
                return Err(wrong("\"requestState\": expected a string"));
            }
            let responses = match (asked.input_requests.is_empty(), &asked.request_state) {
                (true, None) => return Err(wrong("expected \"inputRequests\" or \"requestState\"")),
                (true, Some(_)) => {
                    shed += 1;
                    back_off(&link, shed).await;
                    None
                }
                (false, _) if asked.input_requests.len() > MAX_QUESTIONS => {
                    return Err(wrong(&format!("more than {MAX_QUESTIONS} questions at once")));
                }
                (false, _) => {
                    let trace = trace_of(params.as_ref(), options.trace_context.as_ref());
                    Some(self.responses(method, &asked.input_requests, trace.as_ref(), options.origin.as_ref()).await?)
                }
            };
            let params = retried(params.as_ref(), responses.as_deref(), asked.request_state.as_ref());
            result = Answer::of(|done| self.send(method, Some(params), options, done)).await?;
            if !asks(&result) {
                return Ok(result);
            }
        }
        Err(wrong(&format!("the server asks for more after {MAX_ROUNDS} rounds")))
    }

    /// The answers to all questions, which are asked at once: the text of `inputResponses`. Questions that name no
    /// trace belong to this one.
    pub(super) async fn responses(
        &self,
        method: &str,
        questions: &Map<String, Value>,
        trace: Option<&TraceContext>,
        origin: Option<&Origin>,
    ) -> Result<String> {
        let mut answers = Vec::with_capacity(questions.len());
        for (key, question) in questions {
            let wrong = |why: &str| {
                let message = format!("result of {method}: \"inputRequests\": {:?}: {why}", shortened(key, 60));
                Error::new(ErrorKind::PeerMisbehaved, message)
            };
            let asked = question["method"].as_str().ok_or_else(|| wrong("expected a request with its method"))?;
            let row = Method::find(asked).filter(|row| row.is_question());
            let row = row.ok_or_else(|| wrong(&format!("{:?} is no question", shortened(asked, 60))))?;
            let params = question.get("params");
            if params.is_some_and(|params| !params.is_object()) {
                return Err(wrong("\"params\": expected an object"));
            }
            let params = params.map(RawJson::from_value);
            if !self.connected.handlers.are_asked(self.revision().rules(), row.name, params.as_ref()) {
                return Err(wrong(&format!("the client does not declare what {:?} needs", row.name)));
            }
            answers.push((key, row, self.answered(row, params, trace, origin)));
        }
        let keys: Vec<_> = answers.iter().map(|(key, ..)| *key).collect();
        let given = all(answers.into_iter().map(|(_, row, answer)| (row, answer)).collect()).await?;
        let mut text = String::from("{");
        for (key, answer) in keys.into_iter().zip(given) {
            object::push_member(&mut text, key, answer.get());
        }
        text.push('}');
        Ok(text)
    }

    /// The answer of this client's own handler.
    fn answered(
        &self,
        row: &'static Method,
        params: Option<RawJson>,
        trace: Option<&TraceContext>,
        origin: Option<&Origin>,
    ) -> Answer {
        let connected = &self.connected;
        let mut facts =
            RequestContext::of_own(self.revision(), row.name, connected.opening().peer.clone(), self.transport());
        facts.origin = origin.cloned();
        facts.meta = params.as_ref().and_then(|params| {
            let meta = object::members(params.get()).into_iter().find(|(key, _)| key == "_meta");
            meta.map(|(_, value)| params.slice(value))
        });
        if let Some(trace) = trace.filter(|_| facts.meta.as_ref().and_then(TraceContext::of_meta).is_none()) {
            facts.states = facts.states.and(Arc::new(trace.clone()));
        }
        Answer::of(|done| {
            inside(&connected.link, facts.clone(), done, |link| {
                let call = Call {
                    id: CallId::new(0),
                    method: row,
                    params,
                    name: None,
                    arguments: None,
                    task: None,
                    context: facts,
                };
                connected.handlers.dispatch(link, call);
            })
        })
    }
}

/// All answers in their order, or the first error that comes; the rest is cancelled then.
async fn all(asked: Vec<(&'static Method, Answer)>) -> Result<Vec<RawJson>> {
    let mut asked: Vec<_> = asked.into_iter().map(|(row, answer)| (row, Some(answer), None)).collect();
    std::future::poll_fn(|cx| {
        for (row, answer, given) in &mut asked {
            let Some(waiting) = answer else { continue };
            let Poll::Ready(outcome) = Pin::new(waiting).poll(cx) else { continue };
            *answer = None;
            match outcome {
                Ok(result) => *given = Some(result),
                Err(error) => {
                    let message = format!("{:?} was not answered: {}", row.name, error.message());
                    return Poll::Ready(Err(match error.code() {
                        Some(code) => Error::rpc(code, message),
                        None => Error::new(error.kind(), message),
                    }));
                }
            }
        }
        if asked.iter().any(|(_, answer, _)| answer.is_some()) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(asked.iter_mut().filter_map(|(.., given)| given.take()).collect()))
    })
    .await
}

/// The request's parameters with what goes back to the server.
fn retried(params: Option<&RawJson>, responses: Option<&str>, state: Option<&RawJson>) -> RawJson {
    let mut text = String::from("{");
    for (key, value) in object::members(params.map_or("{}", RawJson::get)) {
        object::push_member(&mut text, &key, value.get());
    }
    if let Some(responses) = responses {
        object::push_member(&mut text, "inputResponses", responses);
    }
    if let Some(state) = state {
        object::push_member(&mut text, "requestState", state.get());
    }
    text.push('}');
    RawJson::written(text)
}
