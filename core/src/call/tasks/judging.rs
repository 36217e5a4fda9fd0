//! End of a task whose handler has answered.

use serde::Deserialize;

use super::{MAX_MESSAGE, Tasks};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::TaskStatus;
use crate::protocol::Payload;
use crate::protocol::revision::{Method, Revision, shape};
use crate::store::Outcome;

impl Tasks {
    /// Returns the end of a task whose handler has answered.
    pub(super) fn judged(
        &self,
        method: &Method,
        revision: Revision,
        answer: Result<Payload>,
    ) -> (TaskStatus, Option<String>, Outcome) {
        let failed = |error: Error| {
            let error = self.fits(Outcome::Error(error.clone()).len()).err().unwrap_or(error);
            let message = shortened(error.message(), MAX_MESSAGE).into_owned();
            (TaskStatus::Failed, Some(message), Outcome::Error(error))
        };
        let payload = match answer {
            Ok(payload) => payload,
            Err(error) => return failed(error),
        };
        let mut text = String::with_capacity(shape::size_hint(&payload));
        shape::write_result(&mut text, revision.rules(), "{}", method, payload);
        let outcome = Outcome::Result(RawJson::written(text));
        if let Err(error) = self.fits(outcome.len()) {
            return failed(error);
        }
        match &outcome {
            Outcome::Result(result) if method.name == "tools/call" => match failure(result) {
                Some(message) => (TaskStatus::Failed, Some(message), outcome),
                None => (TaskStatus::Completed, None, outcome),
            },
            _ => (TaskStatus::Completed, None, outcome),
        }
    }

    /// # Errors
    /// The end of a task whose result is longer than what is kept.
    pub(super) fn fits(&self, size: usize) -> Result<()> {
        let most = self.options.max_task_bytes;
        let (most, why) = match Self::SHARED_BYTES {
            Some(shared) if self.is_shared() && shared < most => (shared, "for all processes"),
            _ => (most, "(max_task_bytes)"),
        };
        if size <= most {
            return Ok(());
        }
        let message = format!("the result has {size} bytes, and no more than {most} are kept {why}");
        Err(Error::rpc(code::INTERNAL_ERROR, message))
    }
}

/// Returns the failure that a tool's result describes, if it is one.
fn failure(result: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        #[serde(default)]
        is_error: bool,
        #[serde(default)]
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        #[serde(default)]
        text: String,
    }
    let head: Head = result.to().ok().filter(|head: &Head| head.is_error)?;
    let text = head.content.into_iter().map(|block| block.text).find(|text| !text.is_empty());
    Some(shortened(text.as_deref().unwrap_or("the tool failed"), MAX_MESSAGE).into_owned())
}
