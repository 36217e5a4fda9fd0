//! Streams that end with the access token that opened them, and come again with the next one.

use super::stage::{Stage, calling, fits, forgotten};
use crate::Outcome;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A resource of the fixture server.
const WATCHED: &str = "test://watched-resource";
/// Number of times that the stream ends with its token.
const ENDS: usize = 2;
/// Limit for a message that is heard a moment later.
const LIMIT: Duration = Duration::from_secs(20);

/// Scene of a client of 2026-07-28 that listens: each time it comes again, it is told that it may have missed
/// something.
pub(super) fn listen(stage: &mut Stage) -> Outcome {
    comes_again(stage, None, ENDS)
}

/// The standalone stream of a session, to which the subscription belongs: nothing is missed.
pub(super) fn session(stage: &mut Stage) -> Outcome {
    comes_again(stage, Some("2025-11-25"), 0)
}

/// `told`: how often the resource is said to have changed before it has.
fn comes_again(stage: &mut Stage, revision: Option<&str>, told: usize) -> Outcome {
    stage.live_shortly()?;
    let connecting = stage.connecting(1, &forgotten(), revision);
    stage.done(connecting)?;
    stage.done(json!({"do": "subscribe", "client": 1, "uri": WATCHED}))?;
    stage.forget()?;
    for end in 1..=ENDS {
        if end == ENDS {
            stage.live_long()?;
        }
        // Nobody calls anything: it is the stream that wants another token.
        stage.tell(&json!({"hold": {}}))?;
        stage.tell(&json!({"held": {"count": 1}})).map_err(|reason| format!("end {end} of the stream: {reason}"))?;
        stage.tell(&json!({"release": {}}))?;
    }
    let before = hears(stage, told)?;
    let touched = stage.outcome(calling(1, "touch", &json!({"uri": WATCHED})))?;
    fits(&json!({"result": {"text": format!("touched {WATCHED}")}}), &touched)?;
    hears(stage, before + 1)?;
    stage.seen(&json!({"registered": 0, "grants": {"$each": "refresh_token"}, "refused": []}))
}

/// Waits until the client has heard so many changes of the resource; how many those are.
fn hears(stage: &mut Stage, count: usize) -> Outcome<usize> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let info = stage.done(json!({"do": "info", "client": 1}))?;
        let heard = info["notifications"].as_array().map_or(0, |all| all.iter().filter(|one| is_change(one)).count());
        if heard >= count {
            return Ok(heard);
        }
        if Instant::now() > deadline {
            return Err(format!("{count} changes of {WATCHED} are not heard: {}", info["notifications"]));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_change(notification: &Value) -> bool {
    notification["method"] == "notifications/resources/updated" && notification["params"]["uri"] == WATCHED
}
