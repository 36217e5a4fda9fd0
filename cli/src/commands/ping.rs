use std::time::Instant;

use serde_json::json;

use crate::arguments::Ping;
use crate::connection::Session;
use crate::failure::{Failure, Outcome};

/// Asks for a sign of life.
pub(super) async fn ping(session: &Session, ping: &Ping) -> Outcome<u8> {
    let begin = Instant::now();
    session.client.ping().await.map_err(|error| Failure::requesting("ping", &error))?;
    let millis = begin.elapsed().as_secs_f64() * 1000.0;
    if ping.json {
        session.screen.json(&json!({"milliseconds": (millis * 1000.0).round() / 1000.0}));
    } else {
        session.screen.print(&format!("{} answered in {millis:.1} ms", session.name));
    }
    Ok(0)
}
