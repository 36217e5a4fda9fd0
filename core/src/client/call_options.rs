use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;

/// How one request is to be made.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time without an answer or progress after which the request is given up; `None` is the client's default, zero
    /// is no limit.
    pub timeout: Option<Duration>,
    /// Time after which the request is given up, progress or not; `None` and zero are no limit.
    pub max_timeout: Option<Duration>,
    /// Asks for progress: called with `{progress, total?, message?}`, from any thread.
    pub progress: Option<Arc<dyn Fn(RawJson) + Send + Sync>>,
    /// The request's `_meta`, an object; of members that the parameters' own `_meta` has too, these count.
    pub meta: Option<RawJson>,
    /// The request may be sent again although nobody knows whether it was carried out. Listing, reading and the like
    /// always may; a tool's call only when this says so.
    pub idempotent: bool,
}

impl CallOptions {
    /// The client's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up after this time without an answer or progress; never, when it is zero.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives up after this time, progress or not.
    #[must_use]
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.max_timeout = Some(timeout);
        self
    }

    /// Asks for progress: called with `{progress, total?, message?}`.
    #[must_use]
    pub fn on_progress(mut self, f: impl Fn(RawJson) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(f));
        self
    }

    /// Sends this object as the request's `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.meta = Some(RawJson::from_value(&meta));
        self
    }

    /// Says that the request may be sent again although nobody knows whether it was carried out.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Reads `{"timeout": seconds|null, "max_timeout": seconds, "progress": bool, "idempotent": bool}`. The `bool` says whether progress
    /// is wanted; whoever reads this has the function to call.
    pub(crate) fn parse(text: &str) -> Result<(Self, bool)> {
        let mut options = Self::default();
        if text.is_empty() {
            return Ok((options, false));
        }
        let value: Value = serde_json::from_str(text).map_err(|e| Error::misuse(format!("request options: {e}")))?;
        let Value::Object(members) = value else {
            return Err(Error::misuse(format!("request options: expected an object, got {value}")));
        };
        let mut wants_progress = false;
        for (name, value) in members {
            let time = || {
                let Some(number) = value.as_f64() else {
                    return Err(Error::misuse(format!("request option {name:?}: expected seconds, got {value}")));
                };
                super::options::seconds(&name, number)
            };
            match name.as_str() {
                "timeout" if value.is_null() => options.timeout = Some(Duration::ZERO),
                "timeout" => options.timeout = Some(time()?),
                "max_timeout" if value.is_null() => {}
                "max_timeout" => options.max_timeout = Some(time()?),
                "progress" => wants_progress = value.as_bool().unwrap_or(false),
                "idempotent" => options.idempotent = value.as_bool().unwrap_or(false),
                _ => {
                    return Err(Error::misuse(format!(
                        "request option {name:?}: unknown, expected \"timeout\", \"max_timeout\", \"progress\" or \"idempotent\""
                    )));
                }
            }
        }
        Ok((options, wants_progress))
    }
}

impl std::fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("progress", &self.progress.is_some())
            .field("meta", &self.meta)
            .field("idempotent", &self.idempotent)
            .finish()
    }
}
