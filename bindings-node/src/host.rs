//! The bridge as JavaScript sees it: one wake-up, one text per batch, plain calls back.

use std::fmt::Write;

use bytes::Bytes;
use napi::bindgen_prelude::{External, Function, Status};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use tricorn::ErrorKind;
use tricorn::bridge::{Answer, Delivery, Host};
use tricorn::jsonrpc::RawJson;

use crate::error::{Result, raise};

/// Not callee-handled (there is no error to pass) and weak (it must not keep the process alive).
type WakeFunction = ThreadsafeFunction<(), (), (), Status, false, true>;

struct Wake(WakeFunction);

impl Host for Wake {
    fn wake(&self) {
        // The status only says that the environment is going away: nobody is left to wake.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// One per JavaScript environment (the main thread, each worker).
#[napi]
pub struct Bridge {
    pub(crate) inner: tricorn::bridge::Bridge,
}

impl Drop for Bridge {
    // Runs when the environment is torn down: `process.exit`, `worker.terminate`.
    fn drop(&mut self) {
        self.inner.close();
    }
}

#[napi]
impl Bridge {
    #[napi(constructor, catch_unwind)]
    pub fn new(wake: Function<'_, (), ()>) -> napi::Result<Self> {
        let wake = wake.build_threadsafe_function::<()>().weak::<true>().build()?;
        tricorn::bridge::set_idiom(tricorn::bridge::Casing::Camel, true);
        Ok(Self { inner: tricorn::bridge::Bridge::new(Wake(wake)) })
    }

    /// Makes the handle that the functions of this module want, which run for every call: reaching behind an instance
    /// of a class costs Node-API several times as much as all they do.
    #[napi(catch_unwind)]
    pub fn handle(&self) -> BridgeHandle {
        External::new(self.inner.clone())
    }

    /// Facts about the request behind call `key`, as JSON; null when it has finished.
    #[napi(catch_unwind)]
    pub fn context(&self, key: i64) -> Option<String> {
        self.inner.context(key as u64).map(|context| context.get().to_owned())
    }

    #[napi(catch_unwind)]
    pub fn progress(&self, key: i64, progress: f64, total: Option<f64>, message: Option<String>) -> bool {
        self.inner.progress(key as u64, progress, total, message.as_deref())
    }

    /// Says what call `key` is doing, for who looks at its task.
    #[napi(catch_unwind)]
    pub fn set_status(&self, key: i64, message: String) -> bool {
        self.inner.set_status(key as u64, &message)
    }

    /// Lets call `key` go on as a task. False: its client or its server has none, and nothing has changed.
    #[napi(catch_unwind)]
    pub fn run_as_task(&self, key: i64) -> Result<bool> {
        self.inner.run_as_task(key as u64).map_err(raise)
    }

    /// Answers call `key` with what its client has to answer first: `{"inputRequests"?, "state"?}`.
    #[napi(catch_unwind)]
    pub fn input_required(&self, key: i64, json: String) -> bool {
        self.inner.complete(key as u64, Answer::InputRequired(raw(json)))
    }

    /// Answers to the last round of call `key` that its handler asked by hand: `{"inputResponses", "state"?}`.
    #[napi(catch_unwind)]
    pub fn input(&self, key: i64) -> Result<Option<String>> {
        Ok(self.inner.input(key as u64).map_err(raise)?.map(|input| input.get().to_owned()))
    }

    /// The result of a step that was done in an earlier round of call `key`.
    #[napi(catch_unwind)]
    pub fn step(&self, key: i64, name: String) -> Result<Option<String>> {
        Ok(self.inner.step(key as u64, &name).map_err(raise)?.map(|done| done.get().to_owned()))
    }

    /// A step of call `key` is done.
    #[napi(catch_unwind)]
    pub fn stepped(&self, key: i64, name: String, json: String) -> Result<()> {
        self.inner.stepped(key as u64, &name, raw(json)).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn log(&self, key: i64, level: String, logger: Option<String>, json: String) -> Result<bool> {
        self.inner.log(key as u64, &level, logger.as_deref(), &raw(json)).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn require(&self, key: i64, capability: String) -> Result<()> {
        self.inner.require(key as u64, &capability).map_err(raise)
    }

    /// Sends a request to the client of call `key`. `params` and `options` are JSON; empty options are the defaults.
    #[napi(catch_unwind)]
    pub fn ask(&self, key: i64, op: i64, method: String, params: Option<String>, options: String) {
        self.inner.ask(key as u64, op as u64, &method, params.map(raw), &options);
    }

    /// Goes on with the request that middleware's call `key` is about, with other parameters where some are given, as part
    /// of another trace where one is given, as JSON.
    #[napi(catch_unwind)]
    pub fn next(&self, key: i64, op: i64, params: Option<String>, trace: Option<String>) {
        self.inner.next(key as u64, op as u64, params.map(raw), &trace.unwrap_or_default());
    }

    /// Sends a notification to the client of call `key`.
    #[napi(catch_unwind)]
    pub fn notify(&self, key: i64, method: String, params: Option<String>) -> Result<bool> {
        self.inner.notify(key as u64, &method, params.map(raw)).map_err(raise)
    }

    /// Ends the stream that the answer of call `key` goes on; its client comes back for the rest.
    #[napi(catch_unwind)]
    pub fn close_stream(&self, key: i64) -> bool {
        self.inner.close_stream(key as u64)
    }

    /// Shows or hides something from the client of call `key` alone.
    #[napi(catch_unwind)]
    pub fn set_enabled(&self, key: i64, kind: String, name: String, enabled: bool) -> Result<bool> {
        self.inner.set_enabled(key as u64, &kind, &name, enabled).map_err(raise)
    }

    /// Adds something for the client of call `key` alone; as `Server.add`.
    #[napi(catch_unwind)]
    pub fn session_add(&self, key: i64, kind: String, definition: String, options: String, handler: u32) -> Result<()> {
        self.inner.session_add(key as u64, &kind, &definition, &options, handler).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn session_remove(&self, key: i64, kind: String, name: String) -> Result<bool> {
        self.inner.session_remove(key as u64, &kind, &name).map_err(raise)
    }

    /// Gives up operation `op`: an unanswered request is cancelled at the peer. True: something still runs for it.
    #[napi(catch_unwind)]
    pub fn settle(&self, op: i64) -> bool {
        self.inner.settle(op as u64)
    }

    /// Ends the bridge: calls are answered with an error, operations dropped, no more wake-ups.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.inner.close();
    }

    /// Gauges, as JSON.
    #[napi(catch_unwind)]
    pub fn metrics(&self) -> String {
        let metrics = self.inner.metrics();
        format!(
            r#"{{"queued":{},"calls":{},"ops":{},"dropped":{}}}"#,
            metrics.queued, metrics.calls, metrics.ops, metrics.dropped
        )
    }

    /// Panics. For the test that a panic is an ordinary error on the other side.
    #[napi(catch_unwind)]
    pub fn panic(&self, message: String) {
        panic!("{message}");
    }
}

/// See [`Bridge::handle`].
type BridgeHandle = External<tricorn::bridge::Bridge>;

/// Everything queued as one JSON text, or null when nothing is, which re-arms the wake-up.
///
/// Also sends what was answered since the last time. The answers to several calls of one batch
/// are held back until then, or for a moment, whichever ends first.
#[napi(catch_unwind)]
pub(crate) fn take(bridge: &BridgeHandle) -> Option<String> {
    bridge.uncork();
    let batch = bridge.take();
    if batch.len() > 1 {
        bridge.cork();
    }
    (!batch.is_empty()).then(|| encode(&batch))
}

/// Sends the answers that are held back.
#[napi(catch_unwind)]
pub(crate) fn flush(bridge: &BridgeHandle) {
    bridge.uncork();
}

/// Answers call `key` with text. Like all answers: false when nobody waits for it any more.
#[napi(catch_unwind)]
pub(crate) fn answer_text(bridge: &BridgeHandle, key: i64, text: String) -> bool {
    bridge.complete(key as u64, Answer::Text(text))
}

/// Answers with a plain value, given as JSON; the engine makes the content of it.
#[napi(catch_unwind)]
pub(crate) fn answer_value(bridge: &BridgeHandle, key: i64, json: String) -> bool {
    bridge.complete(key as u64, Answer::Value(raw(json)))
}

/// Answers with a complete `CallToolResult`, given as JSON.
#[napi(catch_unwind)]
pub(crate) fn answer_result(bridge: &BridgeHandle, key: i64, json: String) -> bool {
    bridge.complete(key as u64, Answer::Result(raw(json)))
}

/// Answers with a failed result (`isError`) whose text the model reads.
#[napi(catch_unwind)]
pub(crate) fn answer_failed(bridge: &BridgeHandle, key: i64, text: String) -> bool {
    bridge.complete(key as u64, Answer::Failed(text))
}

/// Answers with a JSON-RPC error; `data` is JSON.
#[napi(catch_unwind)]
pub(crate) fn answer_error(bridge: &BridgeHandle, key: i64, code: i64, message: String, data: Option<String>) -> bool {
    let mut error = tricorn::Error::rpc(code, message);
    if let Some(data) = data {
        error = error.with_data(raw(data));
    }
    bridge.complete(key as u64, Answer::Error(error))
}

/// Answers for a function that failed because the client does not offer what it asked for; `refusal` is that of the error,
/// where it has one.
#[napi(catch_unwind)]
pub(crate) fn answer_unsupported(bridge: &BridgeHandle, key: i64, message: String, refusal: Option<i64>) -> bool {
    let error = tricorn::Error::new(ErrorKind::Unsupported, message);
    bridge.complete(key as u64, Answer::Error(error.with_refusal(refusal.map(|number| number as u64))))
}

/// Answers a call whose handler was removed while it was on its way.
#[napi(catch_unwind)]
pub(crate) fn answer_gone(bridge: &BridgeHandle, key: i64) -> bool {
    bridge.complete(key as u64, Answer::Gone)
}

/// Answers with an error that has a kind and no code; of what a function for authorization throws the kind means something.
#[napi(catch_unwind)]
pub(crate) fn answer_kind(bridge: &BridgeHandle, key: i64, kind: String, message: String) -> bool {
    let kinds = [ErrorKind::Timeout, ErrorKind::Transport, ErrorKind::Cancelled, ErrorKind::Misuse];
    let kind = kinds.into_iter().find(|known| known.as_str() == kind).unwrap_or(ErrorKind::Auth);
    bridge.complete(key as u64, Answer::Error(tricorn::Error::new(kind, message)))
}

/// Text that `JSON.stringify` made: valid and on one line, so checking it again would be waste.
pub(crate) fn raw(json: String) -> RawJson {
    RawJson::trusted(Bytes::from(json))
}

/// `[[0,handler,key,params,origin?],[1,key,reason],[2,op,result],[3,op,error],[4,source,name,params,origin?],
/// [5,op,progress]]`, `origin` the operation that caused it. Payloads are spliced in as they are: parsing them is `JSON.parse`'s job.
fn encode(batch: &[Delivery]) -> String {
    let mut text = String::with_capacity(batch.iter().map(size).sum::<usize>() + 2);
    for delivery in batch {
        text.push(if text.is_empty() { '[' } else { ',' });
        // Writing to a String cannot fail.
        let _ = match delivery {
            Delivery::Call { key, handler, params, origin: 0 } => write!(text, "[0,{handler},{key},{}]", params.get()),
            Delivery::Call { key, handler, params, origin } => {
                write!(text, "[0,{handler},{key},{},{origin}]", params.get())
            }
            Delivery::Cancel { key, reason } => write!(text, "[1,{key},{}]", RawJson::from_value(reason).get()),
            Delivery::Settle { op, outcome: Ok(result) } => write!(text, "[2,{op},{}]", result.get()),
            Delivery::Settle { op, outcome: Err(error) } => write!(text, "[3,{op},{}]", error.to_json().get()),
            Delivery::Event { source, name, params, origin: 0 } => {
                write!(text, "[4,{source},\"{name}\",{}]", params.get())
            }
            Delivery::Event { source, name, params, origin } => {
                write!(text, "[4,{source},\"{name}\",{},{origin}]", params.get())
            }
            Delivery::Progress { op, params } => write!(text, "[5,{op},{}]", params.get()),
            // A kind this binding does not know yet is one its host could do nothing with.
            _ => write!(text, "[-1]"),
        };
    }
    text.push(']');
    text
}

/// Room for one delivery: its payload and the brackets, numbers and names around it.
fn size(delivery: &Delivery) -> usize {
    let payload = match delivery {
        Delivery::Call { params, .. } | Delivery::Event { params, .. } | Delivery::Progress { params, .. } => {
            params.get().len()
        }
        Delivery::Settle { outcome: Ok(result), .. } => result.get().len(),
        _ => 128,
    };
    payload + 64
}
