//! Tokens that are revoked before their time.

use super::stage::{Stage, calling, fits};
use crate::Outcome;
use serde_json::json;

/// Everything that the user granted is gone.
pub(super) fn grant(stage: &mut Stage) -> Outcome {
    stage.live_shortly()?;
    stage.connect(1)?;
    stage.live_long()?;
    stage.tell(&json!({"revoke": {}}))?;
    needs_a_login(stage)
}

/// The refresh token was revoked where RFC 7009 says so.
pub(super) fn refresh_token(stage: &mut Stage) -> Outcome {
    stage.live_shortly()?;
    stage.connect(1)?;
    stage.live_long()?;
    revoke(stage, "RefreshToken")?;
    needs_a_login(stage)
}

fn revoke(stage: &Stage, kind: &str) -> Outcome {
    let revoked = stage.tell(&json!({"revoke_tokens": {"kind": kind}}))?;
    if revoked["count"].as_u64().is_some_and(|count| count > 0) { Ok(()) } else { Err(format!("there was no {kind}")) }
}

fn needs_a_login(stage: &mut Stage) -> Outcome {
    stage.forget()?;
    stage.pass(1)?;
    stage.is_ada(1)?;
    stage.seen(&json!({"grants": ["authorization_code"], "refused": ["refresh_token: invalid_grant"]}))
}

/// Tokens that nobody can read: the server asks about them, and finds out that one is revoked already.
pub(super) fn introspected(stage: &mut Stage) -> Outcome {
    stage.tell(&json!({"opaque": true}))?;
    stage.live_shortly()?;
    stage.connect(1)?;
    stage.is_ada(1)?;
    stage.seen(&json!({"grants": ["authorization_code"], "refused": [], "introspected": 1}))?;
    stage.live_long()?;
    // The next token is revoked before the server has seen it: what it was told of one is believed for a while.
    stage.tell(&json!({"hold": {}}))?;
    stage.pass(1)?;
    let call = stage.send(calling(1, "whoami", &json!({})))?;
    stage.tell(&json!({"held": {"count": 1}}))?;
    revoke(stage, "AccessToken")?;
    stage.tell(&json!({"release": {}}))?;
    let said = stage.answer(call)?;
    fits(&json!({"result": {"structured": {"subject": "ada"}}}), &said)?;
    let grants = ["refresh_token", "authorization_code"];
    stage.seen(&json!({"grants": grants, "refused": ["refresh_token: invalid_grant"], "introspected": 2}))
}
