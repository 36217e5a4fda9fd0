//! Processes that die while a refresh token is used up, and processes that share one.

use super::stage::{Stage, calling, fits};
use crate::Outcome;
use serde_json::json;

/// Two processes find that the token has ended.
const ROUNDS: usize = 2;
/// Number of processes that die in the act of keeping an answer.
const DEATHS: usize = 3;

/// Logged in, with a store that survives; the token has ended, and its successor is on the way when the process dies.
fn dies_before_it_keeps(stage: &mut Stage) -> Outcome {
    stage.live_shortly()?;
    stage.connect_kept(1)?;
    stage.live_long()?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))?;
    stage.tell(&json!({"hold": {}}))?;
    stage.pass(1)?;
    stage.send(calling(1, "whoami", &json!({})))?;
    // The refresh token is used up, and nobody has what came of it.
    stage.tell(&json!({"held": {"count": 1}}))?;
    stage.kill()?;
    stage.tell(&json!({"release": {}}))?;
    stage.seen(&json!({"grants": ["refresh_token"], "refused": []}))?;
    stage.connect_kept(1)?;
    stage.is_ada(1)
}

/// Scene with an authorization server that knows that answers get lost: nobody logs in again.
pub(super) fn forgiven(stage: &mut Stage) -> Outcome {
    stage.tell(&json!({"forgives": true}))?;
    dies_before_it_keeps(stage)?;
    stage.seen(&json!({"registered": 0, "grants": ["refresh_token"], "refused": []}))
}

/// Scene with one that takes that for theft: the login is over; the program says so once and goes on with another.
pub(super) fn unforgiven(stage: &mut Stage) -> Outcome {
    dies_before_it_keeps(stage)?;
    let refused = ["refresh_token: invalid_grant"];
    stage.seen(&json!({"grants": ["authorization_code"], "refused": refused}))?;
    stage.kill()?;
    stage.connect_kept(1)?;
    stage.is_ada(1)?;
    stage.seen(&json!({"registered": 0, "grants": [], "refused": []}))
}

/// Killed in the moment in which the answer comes: before it is kept, meanwhile, or after.
pub(super) fn in_the_act(stage: &mut Stage) -> Outcome {
    stage.tell(&json!({"forgives": true}))?;
    stage.live_shortly()?;
    stage.connect_kept(1)?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))?;
    for death in 0..DEATHS {
        stage.tell(&json!({"hold": {}}))?;
        stage.pass(1)?;
        stage.send(calling(1, "whoami", &json!({})))?;
        stage.tell(&json!({"held": {"count": 1}}))?;
        stage.tell(&json!({"release": {}}))?;
        stage.kill()?;
        stage.connect_kept(1).and_then(|()| stage.is_ada(1)).map_err(|reason| format!("death {death}: {reason}"))?;
        let seen = json!({"registered": 0, "grants": {"$each": "refresh_token"}, "refused": []});
        stage.seen(&seen).map_err(|reason| format!("death {death}: {reason}"))?;
    }
    Ok(())
}

/// Two processes with one store: what one has got is the other's, too.
pub(super) fn shared(stage: &mut Stage) -> Outcome {
    stage.live_shortly()?;
    stage.connect_kept(1)?;
    stage.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))?;
    stage.enter()?;
    stage.connect_kept(1)?;
    stage.is_ada(1)?;
    for _ in 0..ROUNDS {
        stage.forget()?;
        stage.tell(&json!({"hold": {}}))?;
        stage.pass(1)?;
        let mut asked = Vec::new();
        for process in 0..2 {
            stage.turn(process);
            asked.push(stage.send(calling(1, "add", &json!({"a": process, "b": 1})))?);
        }
        stage.tell(&json!({"held": {"count": 1}}))?;
        stage.tell(&json!({"release": {}}))?;
        for (process, id) in asked.into_iter().enumerate() {
            stage.turn(process);
            fits(&json!({"result": {"text": (process + 1).to_string()}}), &stage.answer(id)?)?;
            stage.is_ada(1)?;
        }
        // A refresh token that is used twice would be refused.
        stage.seen(&json!({"registered": 0, "grants": {"$each": "refresh_token"}, "refused": []}))?;
    }
    Ok(())
}
