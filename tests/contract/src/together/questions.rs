//! Questions of each revision, and the marks that tell its answers from those of the others.

use crate::Outcome;
use crate::pattern::{self, Captures, MODERN, Strictness};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Time of the call that is under way while everything else is asked, in milliseconds.
const SLOW: u64 = 100;

/// A request, and what its answer has to be like.
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) answer: Value,
}

fn when(there: bool, what: Value) -> Value {
    if there { what } else { "$absent".into() }
}

/// A result, with what this revision has of every result.
fn result(revision: &str, mut members: Value) -> Value {
    let modern = revision == MODERN;
    members["resultType"] = when(modern, "complete".into());
    members["_meta"] = when(modern, json!({"io.modelcontextprotocol/serverInfo": {"name": "everything"}}));
    json!({"result": members})
}

/// Returns the request that opens a session, or, where there is none, the one that is sent instead.
pub(super) fn opening(revision: &str) -> Question {
    let since = |first: &str| revision >= first;
    if revision == MODERN {
        let members = json!({"supportedVersions": [MODERN], "capabilities": {"tools": "$object"}});
        return Question { method: "server/discover", params: json!({}), answer: result(revision, members) };
    }
    let members = json!({
        "protocolVersion": revision,
        "capabilities": {"tools": "$object", "completions": when(since("2025-03-26"), "$object".into())},
        "serverInfo": {
            "name": "everything",
            "title": when(since("2025-06-18"), "Everything".into()),
            "description": when(since("2025-11-25"), "$string".into()),
        },
    });
    let client = json!({"name": "contract", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    Question { method: "initialize", params, answer: result(revision, members) }
}

/// Returns the questions that tell revisions from each other.
pub(super) fn questions(revision: &str, number: usize) -> Vec<Question> {
    let since = |first: &str| revision >= first;
    let (modern, wrapped) = (revision == MODERN, since("2025-06-18") && revision != MODERN);
    let sum = number + 1;
    let add = json!({
        "content": [{"type": "text", "text": sum.to_string()}],
        "structuredContent": when(since("2025-06-18"), if wrapped { json!({"result": sum}) } else { json!(sum) }),
        "isError": "$unset",
    });
    let own = [("protocolVersion", revision), ("era", if modern { "modern" } else { "legacy" })];
    let context = match since("2025-06-18") {
        true => json!({"structuredContent": own.into_iter().collect::<BTreeMap<_, _>>()}),
        false => {
            let words = own.map(|(name, value)| format!("$like:*\"{name}\":\"{value}\"*"));
            json!({"structuredContent": "$absent", "content": [{"text": {"$all": words}}]})
        }
    };
    let schema = if wrapped { json!({"type": "object", "required": ["result"]}) } else { json!({"type": "integer"}) };
    let tools = json!({
        "tools": {"$contains": [
            {"name": "add", "outputSchema": when(since("2025-06-18"), schema)},
            {
                "name": "echo",
                "annotations": when(since("2025-03-26"), "$object".into()),
                "title": when(since("2025-06-18"), "Echo".into()),
                "_meta": when(since("2025-06-18"), "$object".into()),
                "icons": when(since("2025-11-25"), "$array".into()),
            },
        ]},
        "ttlMs": when(modern, "$int".into()),
    });
    let refused = |code: i64| json!({"result": "$absent", "error": {"code": code}});
    let ping = if modern { refused(-32601) } else { result(revision, json!({})) };
    let discover = if modern { opening(revision).answer } else { refused(-32601) };
    let nothing = refused(if modern { -32602 } else { -32002 });
    let question = |method, params, answer| Question { method, params, answer };
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    vec![
        question("tools/call", call("add", json!({"a": number, "b": 1})), result(revision, add)),
        question("tools/call", call("context", json!({})), result(revision, context)),
        question("tools/list", json!({}), result(revision, tools)),
        question("resources/read", json!({"uri": "test://nothing"}), nothing),
        question("ping", json!({}), ping),
        question("server/discover", json!({}), discover),
    ]
}

/// The call that is under way meanwhile, and what comes of it: its progress under `token`, and the answer.
pub(super) fn slow(revision: &str, token: &Value) -> (Value, [Value; 3]) {
    let progress = |progress: u64, said: &str| {
        let message = when(revision >= "2025-03-26", said.into());
        json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": progress, "message": message}})
    };
    let params = json!({"name": "slow", "arguments": {"ms": SLOW}, "_meta": {"progressToken": token}});
    let answer = result(revision, json!({"content": [{"text": format!("slept {SLOW} ms")}]}));
    (params, [progress(0, "started"), progress(SLOW, "done"), answer])
}

/// Other members are allowed everywhere.
pub(super) fn fits(what: &str, pattern: &Value, got: &Value) -> Outcome {
    pattern::check(pattern, got, Strictness::Subset, &mut Captures::new()).map_err(|reason| format!("{what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::REVISIONS;

    #[test]
    fn each_revision_is_told_from_the_others() {
        let sum = |structured: Value| json!({"result": {"content": [{"type": "text", "text": "8"}], "structuredContent": structured}});
        let bare = json!({"result": {"content": [{"type": "text", "text": "8"}]}});
        let mut newest = sum(json!(8));
        newest["result"]["resultType"] = "complete".into();
        newest["result"]["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "everything"}});
        let answers = [&bare, &bare, &sum(json!({"result": 8})), &sum(json!({"result": 8})), &newest];
        for (revision, own) in REVISIONS.into_iter().zip(answers) {
            let pattern = &questions(revision, 7)[0].answer;
            for answer in answers {
                assert_eq!(fits("add", pattern, answer).is_ok(), answer == own, "{revision}: {answer}");
            }
        }
    }
}
