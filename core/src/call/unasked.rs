//! Notifications that clients of 2026-07-28 get only where they have asked for them.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::{Input, Kind, LogLevel, RequestContext};

/// What happens in place of this notification of a handler, if it does not simply go out on the request's stream;
/// `Some(vec![])` is nothing.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for what only the engine can know.
pub(super) fn unasked(request: &RequestContext, method: &str, params: Option<&RawJson>) -> Result<Option<Vec<Input>>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        level: String,
        uri: Option<String>,
    }
    let params = || params.and_then(|params| params.to::<Params>().ok()).unwrap_or_default();
    let changed = |kinds: &[Kind]| Ok(Some(kinds.iter().copied().map(Input::Changed).collect()));
    match method {
        "notifications/message" => {
            let level = params().level.parse::<LogLevel>().ok();
            let wanted = request.log_level.zip(level).is_some_and(|(least, level)| level >= least);
            Ok((!wanted).then(Vec::new))
        }
        "notifications/progress" => Ok(request.progress_token.is_none().then(Vec::new)),
        // The client hears of it by its answer to the question.
        "notifications/elicitation/complete" => Ok(Some(Vec::new())),
        "notifications/tools/list_changed" => changed(&[Kind::Tool]),
        "notifications/prompts/list_changed" => changed(&[Kind::Prompt]),
        "notifications/resources/list_changed" => changed(&[Kind::Resource]),
        "notifications/resources/updated" => Ok(Some(params().uri.into_iter().map(Input::Updated).collect())),
        "notifications/cancelled" | "notifications/tasks" | "notifications/subscriptions/acknowledged" => {
            Err(Error::misuse(format!("{method:?} is not a handler's to send in revision {}", request.revision)))
        }
        _ => Ok(None),
    }
}
