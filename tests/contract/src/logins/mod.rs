//! A language's client and its protected server, with a real authorization server between them (`tests/auth/provider`):
//! registration, the code flow with PKCE, refresh with rotation, keys that change, grants that are taken back, streams
//! that end with their token and come again, a restart, more scopes on the way, and a user who says no. Processes that
//! die in the act, or share what they keep. And in the place of the client or the server those of the official SDKs.

mod crashes;
mod others;
pub(crate) mod provider;
mod revoked;
mod scenes;
mod stage;
mod streams;

use crate::launch;
use crate::options::Options;
use crate::report::Report;
use crate::{Failure, Outcome};
use provider::Provider;
use serde_json::json;
use stage::{Cast, Stage};
use std::time::Duration;

type Scene = fn(&mut Stage) -> Outcome;
/// Protection of the fixture server: its environment.
type Protection = fn(&Provider) -> (String, String);

/// Scenes: the name, the protection of the server, and the play.
const SCENES: [(&str, Protection, Scene); 18] = [
    ("registers, and logs in", issuer, |stage| scenes::log_in(stage, None)),
    ("logs in, 2025-11-25", issuer, |stage| scenes::log_in(stage, Some("2025-11-25"))),
    ("logs in, 2025-06-18", issuer, |stage| scenes::log_in(stage, Some("2025-06-18"))),
    ("a token ends during a call, and the next call has another", issuer, scenes::refresh),
    ("what is listened to ends with its token, and goes on with another", issuer, streams::listen),
    ("a session's stream ends with its token, and goes on with another", issuer, streams::session),
    ("two hundred calls make one refresh", issuer, scenes::one_refresh),
    ("a restart needs no login", issuer, scenes::restart),
    ("keys change", issuer, scenes::keys_change),
    ("the user says no", issuer, scenes::says_no),
    ("more is granted on the way", issuer, scenes::step_up),
    ("what is taken back needs a login", issuer, revoked::grant),
    ("a revoked refresh token needs a login", issuer, revoked::refresh_token),
    ("introspection tells of a revoked token", introspection, revoked::introspected),
    ("an answer that is lost with its process is asked for again", issuer, crashes::forgiven),
    ("a spent refresh token of a dead process needs a login", issuer, crashes::unforgiven),
    ("processes die in the act, and the login goes on", issuer, crashes::in_the_act),
    ("processes share a login", issuer, crashes::shared),
];

fn issuer(provider: &Provider) -> (String, String) {
    let auth = json!({"issuer": provider.issuer(), "required_scopes": ["mcp"], "clock_skew": 0});
    ("EVERYTHING_AUTH".to_owned(), auth.to_string())
}

fn introspection(provider: &Provider) -> (String, String) {
    let asks = json!({
        "url": format!("{}/token/introspection", provider.issuer()),
        "client_id": "resource-server",
        "client_secret": "secret-of-the-resource-server",
    });
    let servers = [provider.issuer()];
    let auth = json!({"introspection": asks, "authorization_servers": servers, "required_scopes": ["mcp"]});
    ("EVERYTHING_AUTH".to_owned(), auth.to_string())
}

/// The names of what is played in every language.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENES.iter().map(|(name, ..)| *name)
}

/// Play all scenes.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    let (client, server) = (vec![launch::runner(language)?], launch::fixture(language)?);
    for (scene, protection, play) in SCENES {
        let name = format!("{language} {scene}");
        if options.wants(&name) {
            let cast = Cast { client: client.clone(), server: server.clone(), protection };
            report.record(&name, played(&cast, play, options));
        }
    }
    others::run(options, report, &client, &server)
}

fn played(cast: &Cast, play: Scene, options: &Options) -> Outcome {
    let [life, longer] = stage::LIVES;
    let (outcome, is_slow) = act(cast, play, options.timeout, life)?;
    match outcome {
        // A token that ends before the scene has come to it makes another scene of it.
        Err(reason) if is_slow => {
            eprintln!("once more with tokens of {longer} s, this machine was too slow for {life} s: {reason}");
            act(cast, play, options.timeout * 2, longer)?.0
        }
        outcome => outcome,
    }
}

/// Plays a scene, with tokens of so many seconds; true with the outcome when the machine may have been too slow for it.
fn act(cast: &Cast, play: Scene, limit: Duration, life: u64) -> Outcome<(Outcome, bool)> {
    let mut stage = Stage::set(cast, limit, life)?;
    let outcome = play(&mut stage).map_err(|reason| -> Failure { stage.explained(&reason) });
    Ok((outcome.and_then(|()| stage.leave()), stage.is_slow()))
}
