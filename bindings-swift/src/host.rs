//! The bridge itself: one wake-up per batch to Swift, plain calls from Swift.

use std::sync::Arc;

use tricorn::bridge::{Answer, Bridge, Delivery, Host};
use tricorn::jsonrpc::RawJson;
use tricorn::{Error, ErrorKind};

use crate::client::params;
use crate::error::CoreError;

/// Implemented once in Swift. Called from any thread; fetches what is queued with [`CoreBridge::take`].
#[uniffi::export(foreign)]
pub trait CoreHost: Send + Sync {
    fn wake(&self);
}

struct Waker(Arc<dyn CoreHost>);

impl Host for Waker {
    fn wake(&self) {
        self.0.wake();
    }
}

/// JSON text owned by Rust. Swift reads it in place while it holds the object.
#[derive(uniffi::Object)]
pub struct CorePayload(RawJson);

impl CorePayload {
    pub(crate) fn new(json: RawJson) -> Arc<Self> {
        Arc::new(Self(json))
    }
}

#[uniffi::export]
impl CorePayload {
    /// Where the UTF-8 text begins; holds as long as this object lives.
    pub fn address(&self) -> Result<u64, CoreError> {
        Ok(self.0.bytes().as_ptr() as u64)
    }

    /// The text's length in bytes.
    pub fn length(&self) -> Result<u64, CoreError> {
        Ok(self.0.bytes().len() as u64)
    }
}

/// [`Delivery`] with payloads as objects.
#[derive(uniffi::Enum)]
pub enum CoreDelivery {
    Call { key: u64, handler: u32, params: Arc<CorePayload>, origin: u64 },
    Cancel { key: u64, reason: Option<String> },
    Settle { op: u64, result: Option<Arc<CorePayload>>, error: Option<CoreError> },
    Progress { op: u64, params: Arc<CorePayload> },
    Event { source: u32, name: String, params: Arc<CorePayload>, origin: u64 },
}

impl CoreDelivery {
    /// `None` for what a later core may have to tell and this binding does not know.
    fn new(delivery: Delivery) -> Option<Self> {
        Some(match delivery {
            Delivery::Call { key, handler, params, origin } => {
                Self::Call { key, handler, params: CorePayload::new(params), origin }
            }
            Delivery::Cancel { key, reason } => Self::Cancel { key, reason },
            Delivery::Settle { op, outcome: Ok(result) } => {
                Self::Settle { op, result: Some(CorePayload::new(result)), error: None }
            }
            Delivery::Settle { op, outcome: Err(error) } => {
                Self::Settle { op, result: None, error: Some(error.into()) }
            }
            Delivery::Progress { op, params } => Self::Progress { op, params: CorePayload::new(params) },
            Delivery::Event { source, name, params, origin } => {
                Self::Event { source, name: name.to_owned(), params: CorePayload::new(params), origin }
            }
            _ => return None,
        })
    }
}

/// JSON that Swift's own writer made: known to be valid, only the bytes are taken over.
pub(crate) fn written(json: &[u8]) -> RawJson {
    RawJson::trusted(json.to_vec())
}

/// UTF-8 that came out of a Swift string.
pub(crate) fn text(utf8: &[u8]) -> Result<String, CoreError> {
    String::from_utf8(utf8.to_vec()).map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()).into())
}

/// The process's bridge.
#[derive(uniffi::Object)]
pub struct CoreBridge(pub(crate) Bridge);

#[uniffi::export]
impl CoreBridge {
    #[uniffi::constructor]
    pub fn new(host: Arc<dyn CoreHost>) -> Result<Arc<Self>, CoreError> {
        tricorn::bridge::set_idiom(tricorn::bridge::Casing::CamelWithAcronyms, false);
        Ok(Arc::new(Self(Bridge::new(Waker(host)))))
    }

    /// Everything in the queue; nothing means that the next delivery wakes the host again.
    pub fn take(&self) -> Result<Vec<CoreDelivery>, CoreError> {
        loop {
            let deliveries = self.0.take();
            let nothing = deliveries.is_empty();
            let known: Vec<_> = deliveries.into_iter().filter_map(CoreDelivery::new).collect();
            if nothing || !known.is_empty() {
                return Ok(known);
            }
        }
    }

    /// Answers with a complete `CallToolResult`. Like its siblings: `false` when nobody waits any more.
    pub fn complete_result(&self, key: u64, json: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.complete(key, Answer::Result(written(json))))
    }

    pub fn complete_value(&self, key: u64, json: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.complete(key, Answer::Value(written(json))))
    }

    pub fn complete_text(&self, key: u64, utf8: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.complete(key, Answer::Text(text(utf8)?)))
    }

    pub fn complete_failed(&self, key: u64, text: String) -> Result<bool, CoreError> {
        Ok(self.0.complete(key, Answer::Failed(text)))
    }

    /// Of the kind `gone`: the handler was removed while the call was on its way.
    pub fn complete_error(&self, key: u64, error: CoreError) -> Result<bool, CoreError> {
        if matches!(&error, CoreError::Failed { kind, .. } if kind == "gone") {
            return Ok(self.0.complete(key, Answer::Gone));
        }
        Ok(self.0.complete(key, Answer::Error(error.try_into()?)))
    }

    /// Answers with what the client has to answer first: `{"inputRequests"?, "state"?}`.
    pub fn complete_input_required(&self, key: u64, json: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.complete(key, Answer::InputRequired(written(json))))
    }

    /// What came of the last round that the handler asked by hand: `{"inputResponses", "state"?}`.
    pub fn input(&self, key: u64) -> Result<Option<Arc<CorePayload>>, CoreError> {
        Ok(self.0.input(key)?.map(CorePayload::new))
    }

    /// The result of a step that was done in an earlier round.
    pub fn step(&self, key: u64, name: String) -> Result<Option<Arc<CorePayload>>, CoreError> {
        Ok(self.0.step(key, &name)?.map(CorePayload::new))
    }

    /// A step is done.
    pub fn stepped(&self, key: u64, name: String, json: &[u8]) -> Result<(), CoreError> {
        Ok(self.0.stepped(key, &name, written(json))?)
    }

    pub fn context(&self, key: u64) -> Result<Option<Arc<CorePayload>>, CoreError> {
        Ok(self.0.context(key).map(CorePayload::new))
    }

    pub fn progress(
        &self,
        key: u64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<bool, CoreError> {
        Ok(self.0.progress(key, progress, total, message.as_deref()))
    }

    pub fn log(&self, key: u64, level: String, logger: Option<String>, data: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.log(key, &level, logger.as_deref(), &written(data))?)
    }

    pub fn require(&self, key: u64, capability: String) -> Result<(), CoreError> {
        Ok(self.0.require(key, &capability)?)
    }

    pub fn ask(&self, key: u64, op: u64, method: String, json: &[u8], options: String) -> Result<(), CoreError> {
        self.0.ask(key, op, &method, params(json), &options);
        Ok(())
    }

    pub fn notify(&self, key: u64, method: String, json: &[u8]) -> Result<bool, CoreError> {
        Ok(self.0.notify(key, &method, params(json))?)
    }

    pub fn set_status(&self, key: u64, message: String) -> Result<bool, CoreError> {
        Ok(self.0.set_status(key, &message))
    }

    pub fn run_as_task(&self, key: u64) -> Result<bool, CoreError> {
        Ok(self.0.run_as_task(key)?)
    }

    pub fn next(&self, key: u64, op: u64, json: &[u8]) -> Result<(), CoreError> {
        self.0.next(key, op, params(json), "");
        Ok(())
    }

    pub fn close_stream(&self, key: u64) -> Result<bool, CoreError> {
        Ok(self.0.close_stream(key))
    }

    pub fn session_add(
        &self,
        key: u64,
        kind: String,
        definition: String,
        options: String,
        handler: u32,
    ) -> Result<(), CoreError> {
        Ok(self.0.session_add(key, &kind, &definition, &options, handler)?)
    }

    pub fn session_remove(&self, key: u64, kind: String, name: String) -> Result<bool, CoreError> {
        Ok(self.0.session_remove(key, &kind, &name)?)
    }

    pub fn set_enabled(&self, key: u64, kind: String, name: String, yes: bool) -> Result<bool, CoreError> {
        Ok(self.0.set_enabled(key, &kind, &name, yes)?)
    }

    /// `true`: something still runs for the operation; the event `freed` says when that is over.
    pub fn settle(&self, op: u64) -> Result<bool, CoreError> {
        Ok(self.0.settle(op))
    }

    pub fn close(&self) -> Result<(), CoreError> {
        self.0.close();
        Ok(())
    }
}
