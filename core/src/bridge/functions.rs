//! Functions of a host that the engine asks apart from any request. Each gets an object and answers with one.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::nowhere::alone;
use super::{Bridge, HostHandler};
use crate::call::{Handler, handled};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;

/// One of them.
#[derive(Clone)]
pub(super) struct Function {
    handler: Arc<dyn Handler>,
    /// Text before the messages of its errors.
    place: &'static str,
}

impl Function {
    /// The function of this number; `place` comes before what is said of its errors.
    pub(super) fn new(bridge: &Bridge, handler: u32, place: &'static str) -> Self {
        Self { handler: Arc::new(HostHandler { bridge: bridge.clone(), handler }), place }
    }

    /// Calls the function and waits for its answer; dropped, the call is cancelled.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        params: &Value,
        wait: Duration,
    ) -> impl Future<Output = Result<T>> + Send + use<T> {
        let asked = handled(&alone(&self.handler), &self.handler, RawJson::from_value(params));
        let place = self.place;
        async move {
            let answer = tokio::time::timeout(wait, asked).await.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Timeout, format!("it has not answered within {} s", wait.as_secs())))
            });
            // The kind of the error may mean something; its text is the host's own.
            let answer = answer.map_err(|e| Error::new(kind_of(&e), format!("{place}{}", e.message())))?;
            // Serde's message would quote the answer, which may be a token.
            answer.to().map_err(|_| Error::misuse(format!("{place}its answer is not of the shape that it should have")))
        }
    }
}

fn kind_of(error: &Error) -> ErrorKind {
    match error.kind() {
        kind @ (ErrorKind::Timeout | ErrorKind::Transport | ErrorKind::Cancelled | ErrorKind::Misuse) => kind,
        // An error of the host's own connections: the peer that it asks is away.
        ErrorKind::Closed => ErrorKind::Transport,
        _ => ErrorKind::Auth,
    }
}

/// Answers nothing.
#[derive(Deserialize)]
pub(super) struct Nothing {}
