//! Notifications that clients of 2026-07-28 get only where they have asked for them.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::{Input, Kind, LogLevel, RequestContext};

/// Returns the inputs in place of this notification of a handler, if it does not simply go out on the request's stream;
/// `Some(vec![])` is nothing.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for a notification that only the engine can send.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::jsonrpc::Id;
    use crate::protocol::PeerFacts;
    use crate::protocol::revision::Revision;

    fn request(level: Option<LogLevel>, token: Option<Id>) -> RequestContext {
        let mut request =
            RequestContext::of_own(Revision::NEWEST, "tools/call", Arc::new(PeerFacts::default()), "memory");
        (request.log_level, request.progress_token) = (level, token);
        request
    }

    /// Returns the inputs that go instead; `None`: the notification itself.
    fn instead(request: &RequestContext, method: &str, params: &Value) -> Option<Vec<String>> {
        let inputs = unasked(request, method, Some(&RawJson::from_value(params))).expect(method);
        inputs.map(|inputs| inputs.iter().map(|input| format!("{input:?}")).collect())
    }

    #[test]
    fn what_nobody_asked_for_is_withheld() {
        let (nothing, all) = (request(None, None), request(Some(LogLevel::Warning), Some(Id::Number(1))));
        let withheld = || Some(Vec::new());
        let log = |level: &str| json!({"level": level, "data": "x"});
        for (level, goes) in
            [("debug", false), ("notice", false), ("warning", true), ("emergency", true), ("loud", false)]
        {
            let message = instead(&all, "notifications/message", &log(level));
            assert_eq!(message.is_none(), goes, "{level}: {message:?}");
            assert_eq!(instead(&nothing, "notifications/message", &log(level)), withheld(), "{level}");
        }
        let progress = json!({"progressToken": 1, "progress": 1});
        assert_eq!(instead(&nothing, "notifications/progress", &progress), withheld());
        assert_eq!(instead(&all, "notifications/progress", &progress), None);
        let visited = json!({"elicitationId": "1"});
        assert_eq!(instead(&all, "notifications/elicitation/complete", &visited), withheld());
        // A notification that is not the protocol's is nothing to it.
        assert_eq!(instead(&nothing, "notifications/com.example/own", &json!({})), None);
    }

    #[test]
    fn changes_go_to_those_who_listen() {
        let nothing = request(None, None);
        for (method, kind) in [
            ("notifications/tools/list_changed", "Changed(Tool)"),
            ("notifications/prompts/list_changed", "Changed(Prompt)"),
            ("notifications/resources/list_changed", "Changed(Resource)"),
        ] {
            assert_eq!(instead(&nothing, method, &json!({})), Some(vec![kind.to_owned()]), "{method}");
        }
        let updated = |params: Value| instead(&nothing, "notifications/resources/updated", &params);
        assert_eq!(updated(json!({"uri": "a://1"})), Some(vec!["Updated(\"a://1\")".to_owned()]));
        assert_eq!(updated(json!({})), Some(Vec::new()), "of nothing");
    }

    #[test]
    fn what_only_the_engine_knows_is_a_mistake() {
        let request = request(Some(LogLevel::Debug), Some(Id::Number(1)));
        for method in ["notifications/cancelled", "notifications/tasks", "notifications/subscriptions/acknowledged"] {
            let error = unasked(&request, method, None).expect_err(method);
            assert_eq!(error.kind(), crate::error::ErrorKind::Misuse, "{error}");
            assert!(error.message().contains(method), "{error}");
        }
    }
}
