//! Questions in a revision whose servers send no requests (specification 2026-07-28, "Multi Round-Trip Requests").
//!
//! A handler that asks is run several times. A run that comes to a question without an answer ends there: the request is
//! answered with the question and a sealed state. The client sends the request again with the answer, and the handler
//! runs again from its beginning; what was answered before is answered at once, with the same words.
//!
//! Questions are known by what they ask, and the n-th of several equal ones by its place among them. Questions that are
//! asked at the same time go out together: a run ends when its handler does.

mod by_hand;
mod context;
mod pages;
mod principal;
mod seal;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::protocol::revision::object;

pub(crate) use by_hand::{ByHand, Input, ask_by_requests, known_by};
pub(crate) use pages::pages;
pub(crate) use principal::{MUST_NOT_ASK, Principal};
#[cfg(fuzzing)]
pub use seal::fuzz::request_state;
pub(crate) use seal::{SealOptions, Sealer};

use super::{Context, Link, traced};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::{Capabilities, TraceContext};
use crate::protocol::revision::{Method, Rules, ask, modern};
use crate::protocol::{Payload, RequestContext};
use crate::signal::Signal;

/// Numbers of refused questions.
static REFUSALS: AtomicU64 = AtomicU64::new(0);

/// The most questions of one request that wait at the same time.
const MAX_PENDING: usize = 64;

/// The rounds of one request.
pub(crate) struct Rounds {
    sealer: Arc<Sealer>,
    rules: &'static Rules,
    /// Request that the state belongs to: method, parameters, principal.
    bound: [u8; 32],
    /// Answers that the client sent back.
    responses: Map<String, Value>,
    /// Those of them, or of a round before, to the questions that the handler asked by hand last.
    by_hand: Map<String, Value>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Kept,
    /// For each answered question, true if the handler has asked for it in this run.
    used: Vec<bool>,
    /// Steps that this run has come to.
    stepped: Vec<String>,
    pending: Vec<Pending>,
    /// Missing capabilities for which questions of this run were refused, in that order, with the number of each
    /// question.
    missing: Vec<(u64, Vec<&'static str>)>,
    /// Questions that the handler asks by itself.
    own: Option<Own>,
    /// State of the middleware around the handler before that ran: used, stepped, pending.
    outside: Option<(Vec<bool>, Vec<String>, usize)>,
    /// Number of questions that the handler's own answer has told.
    told: Option<usize>,
}

/// Questions that a handler asks by itself.
struct Own {
    questions: Map<String, Value>,
    state: Option<RawJson>,
    /// The answers that it has to have again.
    by_hand: Map<String, Value>,
}

/// The sealed state.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Kept {
    /// Counts the questions, for their keys.
    #[serde(rename = "n", default)]
    number: u32,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    answered: Vec<Answered>,
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<Asked>,
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<(String, RawJson)>,
    /// The handler's own.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    own: Option<RawJson>,
    /// The answers to what the handler asked by hand last, while the engine asks.
    #[serde(rename = "h", default, skip_serializing_if = "Map::is_empty")]
    by_hand: Map<String, Value>,
    /// Number of answers from before that: the handler goes on from there and need not ask for them again.
    #[serde(rename = "b", default, skip_serializing_if = "is_zero")]
    before: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A question with its answer.
#[derive(Clone, Serialize, Deserialize)]
struct Answered {
    #[serde(rename = "d")]
    digest: String,
    /// Its method, for people.
    #[serde(rename = "w")]
    what: String,
    #[serde(rename = "r")]
    result: RawJson,
}

/// A question that the client was asked last.
#[derive(Clone, Serialize, Deserialize)]
struct Asked {
    #[serde(rename = "k")]
    key: String,
    #[serde(rename = "d")]
    digest: String,
    #[serde(rename = "w")]
    what: String,
}

/// A question that this run has come to.
struct Pending {
    asked: Asked,
    method: &'static str,
    params: RawJson,
    /// No part of what it is known by: it is another one in each round.
    trace: Option<TraceContext>,
}

/// Fate of a question.
pub(crate) enum Answer {
    /// It was answered.
    Now(RawJson),
    /// The client is asked when the handler has ended.
    Later,
}

impl Rounds {
    /// The rounds that the request belongs to.
    ///
    /// # Errors
    /// −32602 for a state that is not this server's, or answers that are none; as [`principal::principal`].
    fn of(sealer: Arc<Sealer>, context: &Context, params: &RawJson) -> Result<Self> {
        let request = context.request();
        let members = object::members(params.get());
        let asked =
            members.iter().filter(|(key, _)| !matches!(key.as_ref(), "_meta" | "inputResponses" | "requestState"));
        let long: Vec<_> = asked.flat_map(|(_, value)| seal::long_integers(value.get())).collect();
        let params = params.to();
        let mut params: Map<String, Value> = params.map_err(|e| Error::invalid_params(format!("\"params\": {e}")))?;
        params.remove("_meta");
        let responses = match params.remove("inputResponses") {
            None => Map::new(),
            Some(Value::Object(responses)) => responses,
            Some(_) => return Err(Error::invalid_params("\"inputResponses\": expected an object")),
        };
        let state = params.remove("requestState");
        let bound = seal::digest(&json!([request.method, params, long, principal::principal(context)?]));
        let kept: Kept = match state {
            None => Kept::default(),
            Some(Value::String(text)) => {
                let body = sealer.open(&bound, &text)?;
                serde_json::from_slice(&body)
                    .map_err(|_| Error::invalid_params("\"requestState\": of another version"))?
            }
            Some(_) => return Err(Error::invalid_params("\"requestState\": expected a string")),
        };
        let by_hand = if kept.by_hand.is_empty() {
            let own = responses.iter().filter(|(key, _)| kept.asked.iter().all(|asked| asked.key != **key));
            own.map(|(key, value)| (key.clone(), value.clone())).collect()
        } else {
            kept.by_hand.clone()
        };
        let used = vec![false; kept.answered.len()];
        let state = Mutex::new(State { kept, used, ..State::default() });
        Ok(Self { sealer, rules: request.revision.rules(), bound, responses, by_hand, state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handler begins to run: once, or again for middleware that tries once more.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        let State { kept, used, stepped, pending, missing, own, outside, told } = &mut *state;
        match outside {
            None => *outside = Some((used.clone(), stepped.clone(), pending.len())),
            Some((used_before, stepped_before, asked)) => {
                used.clone_from(used_before);
                used.resize(kept.answered.len(), false);
                stepped.clone_from(stepped_before);
                // They keep their keys.
                kept.asked.extend(pending.drain(*asked..).map(|pending| pending.asked));
                missing.clear();
                (*own, *told) = (None, None);
            }
        }
    }

    /// The answers to what the handler asked by hand last, by its keys.
    pub(crate) fn by_hand(&self) -> &Map<String, Value> {
        &self.by_hand
    }

    /// The state that the handler gave itself in the last round.
    pub(crate) fn own_state(&self) -> Option<RawJson> {
        self.lock().kept.own.clone()
    }

    /// Asks the client, in this round or in one before. `declared` is what the client declares.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for what is no question; [`Unsupported`](ErrorKind::Unsupported) when the client does
    /// not declare what it needs.
    pub(crate) fn ask(
        &self,
        method: &str,
        params: Option<&RawJson>,
        trace: Option<TraceContext>,
        declared: &Capabilities,
        judged: bool,
    ) -> Result<Answer> {
        let (method, params) = self.check(method, params, declared)?;
        let read: Value = params.to().map_err(|e| Error::misuse(format!("{method}: {e}")))?;
        let digest = STANDARD_NO_PAD.encode(&seal::digest(&json!([method, read]))[..18]);
        let mut state = self.lock();
        let State { kept, used, pending, .. } = &mut *state;
        let known = (0..kept.answered.len()).find(|n| !used[*n] && kept.answered[*n].digest == digest);
        if let Some(n) = known {
            used[n] = true;
            return Ok(Answer::Now(kept.answered[n].result.clone()));
        }
        let before = kept.asked.iter().position(|asked| asked.digest == digest).map(|n| kept.asked.remove(n));
        let response = before.as_ref().and_then(|asked| self.responses.get(&asked.key)).map(RawJson::from_value);
        // A question whose answer is none is asked again.
        if let (Some(asked), Some(response)) = (&before, response)
            && let Ok(result) = ask::received(self.rules, method, Some(&params), response, judged)
        {
            let (digest, what) = (digest, asked.what.clone());
            kept.answered.push(Answered { digest, what, result: result.clone() });
            used.push(true);
            return Ok(Answer::Now(result));
        }
        if pending.len() >= MAX_PENDING {
            return Err(Error::misuse(format!("{MAX_PENDING} questions wait for the client already")));
        }
        let asked = before.unwrap_or_else(|| {
            kept.number += 1;
            Asked { key: format!("{}-{}", short(method), kept.number), digest, what: what(method, &read) }
        });
        pending.push(Pending { asked, method, params, trace });
        Ok(Answer::Later)
    }

    /// Checks that this can be asked, and returns its method and its parameters as they go out. Capabilities that the
    /// client lacks for it are remembered.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn check(
        &self,
        method: &str,
        params: Option<&RawJson>,
        declared: &Capabilities,
    ) -> Result<(&'static str, RawJson)> {
        let Some(row) = Method::find(method).filter(|row| row.is_question()) else {
            return Err(Error::misuse(format!("{method:?} is no question")));
        };
        let method = row.name;
        let empty = RawJson::empty_object();
        let (params, needed) = ask::prepared(self.rules, method, params.unwrap_or(&empty))?;
        let missing: Vec<_> = lacking(row.capability.into_iter().chain(needed), declared).collect();
        let Some(first) = missing.first() else { return Ok((method, params)) };
        let number = REFUSALS.fetch_add(1, Ordering::Relaxed) + 1;
        let error = undeclared(method, first).with_refusal(Some(number));
        let mut state = self.lock();
        if state.missing.len() < MAX_PENDING {
            state.missing.push((number, missing));
        }
        Err(error)
    }

    /// The result of a step that was done in a round before.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for a second step of this name.
    pub(crate) fn step(&self, name: &str) -> Result<Option<RawJson>> {
        let mut state = self.lock();
        stepped_once(&mut state.stepped, name)?;
        Ok(state.kept.steps.iter().find(|(other, _)| other == name).map(|(_, result)| result.clone()))
    }

    /// A step is done.
    pub(crate) fn stepped(&self, name: &str, result: RawJson) {
        self.lock().kept.steps.push((name.to_owned(), result));
    }

    /// Returns true if this run has asked something that has no answer yet.
    pub(crate) fn has_asked(&self) -> bool {
        let state = self.lock();
        state.own.is_some() || !state.pending.is_empty()
    }

    /// Returns the answer to a request whose handler ended with the error of a refused question, in whatever words: of
    /// the one with this number, or of any where that got lost on the way.
    pub(crate) fn refusal(&self, number: Option<u64>) -> Option<Error> {
        let state = self.lock();
        let first = state.missing.iter().position(|(known, _)| number.is_none_or(|number| number == *known))?;
        // Questions at the same time were refused, too, before the first one ended the handler.
        let missing: Vec<&str> = state.missing[first..].iter().flat_map(|(_, missing)| missing).copied().collect();
        Some(modern::missing_capabilities(&missing))
    }

    /// Ends the handler: returns the answer to the request if the handler has asked. Middleware around it may change
    /// the handler's answer: `meant` says that this is such an answer.
    pub(crate) fn outcome(&self, meant: bool) -> Option<Result<Payload>> {
        let mut state = self.lock();
        let asked = state.pending.len();
        if state.told.replace(asked) == Some(asked) && meant {
            return None;
        }
        if let Some(Own { questions, state: own, by_hand }) = &state.own {
            let (asked, by_hand, before) = (Vec::new(), by_hand.clone(), state.kept.answered.len());
            let kept = Kept { own: own.clone(), asked, by_hand, before, ..state.kept.clone() };
            return Some(self.required(questions.clone(), &kept));
        }
        let first = state.pending.first()?;
        // An answered question has not been asked again, and another one was: the handler is not the same every time.
        let mut demanded = state.kept.answered.iter().zip(&state.used).skip(state.kept.before);
        let unasked = demanded.find(|(_, used)| !**used).map(|(a, _)| &a.what);
        let given = state.kept.asked.iter().find(|asked| self.responses.contains_key(&asked.key)).map(|a| &a.what);
        if let Some(before) = unasked.or(given) {
            let message = format!(
                "the handler asked {before} in an earlier round, and now {} instead: code before a question runs again, \
                 and has to come to the same questions",
                first.asked.what
            );
            return Some(Err(Error::rpc(code::INTERNAL_ERROR, message)));
        }
        let mut kept = state.kept.clone();
        kept.asked = state.pending.iter().map(|pending| pending.asked.clone()).collect();
        kept.by_hand.clone_from(&self.by_hand);
        let asked = |pending: &Pending| question(pending.method, &pending.params, pending.trace.as_ref());
        let questions = state.pending.iter().map(|pending| (pending.asked.key.clone(), asked(pending))).collect();
        drop(state);
        Some(self.required(questions, &kept))
    }

    /// The handler asks these by itself, by their keys, and keeps a state.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); −32603 for two questions of one key.
    pub(crate) fn own(&self, input: Input, trace: Option<&TraceContext>, declared: &Capabilities) -> Result<()> {
        let (mut asked, mut missing) = (Map::new(), Vec::new());
        for (key, method, params) in input.questions {
            let (params, needed) = ask::prepared(self.rules, method, &params)?;
            let needed = Method::find(method).and_then(|row| row.capability).into_iter().chain(needed);
            missing.extend(lacking(needed, declared));
            if asked.contains_key(&key) {
                return Err(by_hand::two_of(&key));
            }
            asked.insert(key, question(method, &params, trace));
        }
        if !missing.is_empty() {
            return Err(modern::missing_capabilities(&missing));
        }
        if asked.is_empty() && input.state.is_none() && !input.waits {
            return Err(by_hand::no_question());
        }
        let by_hand = if input.waits { self.by_hand.clone() } else { Map::new() };
        self.lock().own = Some(Own { questions: asked, state: input.state, by_hand });
        Ok(())
    }

    fn required(&self, questions: Map<String, Value>, kept: &Kept) -> Result<Payload> {
        let body =
            serde_json::to_vec(kept).map_err(|e| Error::rpc(code::INTERNAL_ERROR, format!("requestState: {e}")))?;
        let sealed = self.sealer.seal(&self.bound, &body);
        let sealed = sealed.map_err(|e| match e.code() {
            Some(code::UNAVAILABLE) => e,
            _ => Error::rpc(code::INTERNAL_ERROR, e.message()),
        })?;
        let mut result = json!({"resultType": "input_required", "requestState": sealed});
        if !questions.is_empty() {
            result["inputRequests"] = questions.into();
        }
        Ok(Payload::Object(RawJson::from_value(&result)))
    }
}

/// Returns the capabilities that are needed and not declared.
fn lacking<'a>(
    needed: impl Iterator<Item = &'static str> + 'a,
    declared: &'a Capabilities,
) -> impl Iterator<Item = &'static str> + 'a {
    // Forms are what `elicitation` without more stands for.
    let is_told = |name: &str| name == "elicitation.form" && !declared.has("elicitation");
    needed.filter(move |name| !declared.has(name) && !is_told(name))
}

fn undeclared(method: &str, capability: &str) -> Error {
    let message = format!("{method:?} was not sent: the client does not declare the capability {capability:?}");
    Error::new(ErrorKind::Unsupported, message)
}

/// # Errors
/// [`Misuse`](ErrorKind::Misuse) for a step that was come to before in the same run.
fn stepped_once(stepped: &mut Vec<String>, name: &str) -> Result<()> {
    if stepped.iter().any(|other| other == name) {
        return Err(Error::misuse(format!("step {name:?}: there are two of this name in one request")));
    }
    stepped.push(name.to_owned());
    Ok(())
}

/// The time until a request is made again of which only the state came back; twice as long each time.
const BACK_OFF: Duration = Duration::from_millis(50);
const MAX_BACK_OFF: Duration = Duration::from_secs(5);

/// Waits before something is tried once more, which was tried `times` times.
pub(crate) async fn back_off(link: &Arc<dyn Link>, times: u32) {
    let time = BACK_OFF.saturating_mul(1 << times.saturating_sub(1).min(16)).min(MAX_BACK_OFF);
    let over = Arc::<Signal>::default();
    let set = over.clone();
    let _timer = link.clock().later(
        time,
        Box::new(move || {
            set.set();
        }),
    );
    over.wait().await;
}

/// Returns a digest that tells one principal from others, and not its name; none when nobody names the sender of the
/// request.
///
/// # Errors
/// As [`principal::principal`].
pub(crate) fn principal_digest(context: &Context) -> Result<Option<String>> {
    let principal = principal::principal(context)?;
    Ok((!principal.is_null()).then(|| STANDARD_NO_PAD.encode(seal::digest(&json!(principal)))))
}

fn short(method: &str) -> &str {
    method.split('/').next().unwrap_or(method)
}

fn what(method: &str, params: &Value) -> String {
    let said = params["message"].as_str().or_else(|| params["messages"][0]["content"]["text"].as_str());
    match said {
        Some(said) => format!("{method} {:?}", shortened(said, 60)),
        None => method.to_owned(),
    }
}

/// A question as it goes into `inputRequests`.
fn question(method: &str, params: &RawJson, trace: Option<&TraceContext>) -> Value {
    let mut question = json!({"method": method});
    if let Some(trace) = trace {
        question["params"] = traced(Some(params), trace).to().unwrap_or_default();
    } else if method != "roots/list" || params.get() != "{}" {
        question["params"] = params.to().unwrap_or_default();
    }
    question
}

/// Returns the error for a handler that keeps rounds where there are none.
pub(crate) fn no_rounds(request: &RequestContext) -> Error {
    let (method, revision) = (request.method, request.revision);
    let message = format!(
        "{method:?} in revision {revision} knows no InputRequired: ask with elicit, sample or list_roots of the context, \
         which work in every revision"
    );
    Error::rpc(code::INTERNAL_ERROR, message)
}

/// Returns true if a handler of this request may ask by hand.
pub(crate) fn may_ask(request: &RequestContext) -> bool {
    Method::find(request.method).is_some_and(|row| row.input_required)
}

/// Returns the reason why this request cannot ask.
pub(crate) fn refused(method: &str, request: &RequestContext) -> Error {
    let why = match Method::find(request.method) {
        Some(row) if row.input_required => "the client declares no capability that it needs".to_owned(),
        _ => format!("{:?} cannot ask in revision {}", request.method, request.revision),
    };
    Error::new(ErrorKind::Unsupported, format!("{method:?} was not sent: {why}"))
}
