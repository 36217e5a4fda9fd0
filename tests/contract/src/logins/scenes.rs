//! Logins as they go, and tokens as they come and go.

use super::stage::{Stage, calling, fits, forgotten};
use crate::Outcome;
use serde_json::{Value, json};

/// The names that a client may have for the same login in several revisions.
pub(super) fn log_in(stage: &mut Stage, revision: Option<&str>) -> Outcome {
    let command = stage.connecting(1, &forgotten(), revision);
    let said = stage.done(command)?;
    let expected = revision.map_or("2026-07-28", |revision| revision);
    fits(&json!({"protocolVersion": expected}), &said)?;
    stage.is_ada(1)?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))
}

/// At an authorization server that is not ours to ask: nobody is logged in at ours.
pub(super) fn log_in_elsewhere(stage: &mut Stage) -> Outcome {
    stage.connect(1)?;
    let said = stage.call(1, "greet", &json!({"name": "Ada"}))?;
    fits(&json!({"text": "Hello, Ada!", "is_error": false}), &said)?;
    stage.seen(&json!({"registered": 0, "grants": [], "refused": []}))
}

/// A token ends during a call, and the next call has another: once, and then once more by the refresh token that came with it.
pub(super) fn refresh(stage: &mut Stage) -> Outcome {
    stage.live_shortly()?;
    stage.connect(1)?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))?;
    for _ in 0..2 {
        stage.pass(1)?;
        stage.is_ada(1)?;
    }
    stage.seen(&json!({"registered": 0, "grants": ["refresh_token", "refresh_token"], "refused": []}))
}

/// However many calls find that the token has ended.
pub(super) fn one_refresh(stage: &mut Stage) -> Outcome {
    const CALLS: usize = 200;
    stage.live_shortly()?;
    stage.connect(1)?;
    stage.live_long()?;
    stage.forget()?;
    // Nobody has another token before all have asked.
    stage.tell(&json!({"hold": {}}))?;
    stage.pass(1)?;
    let calls =
        (0..CALLS).map(|n| stage.send(calling(1, "add", &json!({"a": n, "b": 1})))).collect::<Outcome<Vec<_>>>()?;
    stage.tell(&json!({"held": {"count": 1}}))?;
    all_wait(stage, CALLS)?;
    stage.tell(&json!({"release": {}}))?;
    for (n, id) in calls.into_iter().enumerate() {
        fits(&json!({"result": {"text": (n + 1).to_string()}}), &stage.answer(id)?)?;
    }
    stage.seen(&json!({"registered": 0, "grants": ["refresh_token"], "refused": []}))
}

/// Waits until the client awaits so many answers.
fn all_wait(stage: &mut Stage, count: usize) -> Outcome {
    let mut said = Value::Null;
    for _ in 0..1000 {
        said = stage.done(json!({"do": "metrics", "client": 1}))?;
        if said["awaited"].as_u64().is_some_and(|awaited| awaited >= count as u64) {
            return Ok(());
        }
    }
    Err(format!("{count} calls do not wait: {said}"))
}

pub(super) fn restart(stage: &mut Stage) -> Outcome {
    stage.connect_kept(1)?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))?;
    stage.leave()?;
    stage.enter()?;
    stage.connect_kept(1)?;
    stage.is_ada(1)?;
    stage.seen(&json!({"registered": 0, "grants": [], "refused": []}))
}

pub(super) fn keys_change(stage: &mut Stage) -> Outcome {
    stage.connect(1)?;
    stage.is_ada(1)?;
    stage.tell(&json!({"rotate": {"keep": false}}))?;
    stage.is_ada(1).map_err(|reason| format!("the server knows the former key still: {reason}"))?;
    stage.connect(2)?;
    stage.is_ada(2).map_err(|reason| format!("the new key: {reason}"))?;
    stage.forget()?;
    stage.is_ada(1).map_err(|reason| format!("a token of the former key: {reason}"))?;
    stage.seen(&json!({"registered": 0, "grants": ["refresh_token"], "refused": []}))
}

pub(super) fn says_no(stage: &mut Stage) -> Outcome {
    stage.denies(true)?;
    let command = stage.connecting(1, &forgotten(), None);
    let answer = stage.outcome(command.clone())?;
    fits(&json!({"error": {"kind": "auth", "message": "$like:*access_denied*"}}), &answer)?;
    stage.seen(&json!({"grants": []}))?;
    stage.denies(false)?;
    stage.done(command)?;
    stage.is_ada(1)
}

pub(super) fn step_up(stage: &mut Stage) -> Outcome {
    stage.connect(1)?;
    let said = stage.call(1, "delete_file", &json!({"name": "x"}))?;
    fits(&json!({"text": "deleted x"}), &said)?;
    // The browser comes back to another port, for which the client may register anew.
    stage.seen(&json!({"grants": ["authorization_code", "authorization_code"], "refused": []}))?;
    let said = stage.call(1, "whoami", &json!({}))?;
    fits(&json!({"structured": {"scopes": {"$contains": ["mcp", "files:read", "files:write"]}}}), &said)
}

/// Scene in which a server takes only tokens that are meant for it.
pub(super) fn audience(stage: &mut Stage) -> Outcome {
    let elsewhere = stage.server.url.replace("/mcp", "/other");
    let own = stage.server.url.clone();
    for (resource, wanted) in [(elsewhere, json!({"error": {"kind": "auth"}})), (own, json!({"result": "$object"}))] {
        let minted = stage.tell(&json!({"mint": {"resource": resource, "scope": "mcp"}}))?;
        let command = stage.connecting(1, &json!({"token": minted["token"]}), None);
        let answer = stage.outcome(command)?;
        fits(&wanted, &answer).map_err(|reason| format!("a token for {resource}: {reason}"))?;
    }
    stage.is_ada(1)
}
