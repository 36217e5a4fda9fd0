//! The members of a request's parameters that decide its way.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::envelope::{self, Envelope};
use super::revision::Method;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::meta::ParamsHead;

/// The members of a request's parameters that steer the engine, read in one pass.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) name: Option<RawJson>,
    pub(crate) uri: Option<RawJson>,
    pub(crate) arguments: Option<RawJson>,
    pub(crate) task: Option<RawJson>,
    /// There are answers to what the request was answered with before, or its state.
    pub(crate) goes_on: bool,
    pub(crate) meta: Option<RawJson>,
    /// A member of `_meta`, as the next one.
    pub(crate) progress_token: Option<RawJson>,
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// The row of the request's method, if it was looked for already.
    pub(crate) method: Option<&'static Method>,
}

impl Head {
    /// Reads what is there; whether it may stand there is decided later.
    ///
    /// # Errors
    /// −32602 when a member is twice there or `_meta` is no object.
    pub(crate) fn read(params: Option<&RawJson>) -> Result<Box<Self>> {
        let Some(params) = params else {
            return Ok(Box::default());
        };
        let read: ParamsHead<'_> = params.borrow().map_err(|e| Error::invalid_params(format!("\"params\": {e}")))?;
        let slice = |raw: Option<&RawValue>| raw.map(|raw| params.slice(raw));
        let meta = slice(read.meta);
        let (envelope, progress_token) = meta.as_ref().map(envelope::read).transpose()?.unwrap_or_default();
        Ok(Box::new(Self {
            name: slice(read.name),
            uri: slice(read.uri),
            arguments: slice(read.arguments),
            task: slice(read.task),
            goes_on: read.goes_on(),
            meta,
            progress_token,
            envelope,
            method: None,
        }))
    }

    /// Returns true if the request carries the envelope of modern ones.
    pub(crate) fn is_modern(&self) -> bool {
        self.envelope.is_some()
    }
}
