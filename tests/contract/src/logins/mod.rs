//! A language's client and its protected server, with a real authorization server between them (`tests/auth/provider`):
//! registration, the code flow with PKCE, refresh with rotation, keys that change, grants that are taken back, a token
//! that ends during a stream, a restart, more scopes on the way, and a user who says no.

pub(crate) mod provider;

use crate::cases::runner::Runner;
use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::{Captures, Strictness, brief, check};
use crate::report::Report;
use crate::{Failure, Outcome};
use provider::{Provider, User};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// What is played: a name, and how.
const SCENES: [(&str, Scene); 9] = [
    ("registers, and logs in", |stage| stage.log_in(None)),
    ("logs in, 2025-11-25", |stage| stage.log_in(Some("2025-11-25"))),
    ("logs in, 2025-06-18", |stage| stage.log_in(Some("2025-06-18"))),
    ("a stream outlives its token, and twenty calls make one refresh", Stage::outlive),
    ("a restart needs no login", Stage::restart),
    ("keys change", Stage::keys_change),
    ("what is taken back needs a login", Stage::taken_back),
    ("the user says no", Stage::says_no),
    ("more is granted on the way", Stage::step_up),
];

type Scene = fn(&mut Stage) -> Outcome;

/// Play all scenes.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    let command = launch::fixture(language)?;
    for (scene, play) in SCENES {
        let name = format!("{language} {scene}");
        if !options.wants(&name) {
            continue;
        }
        let outcome = Stage::set(options, &command).and_then(|mut stage| {
            let outcome = play(&mut stage).map_err(|reason| stage.explained(&reason));
            let ended = stage.runner.take().map_or(Ok(()), Runner::finish);
            outcome.and(ended)
        });
        report.record(&name, outcome);
    }
    Ok(())
}

/// All that takes part in a scene.
struct Stage {
    language: String,
    limit: Duration,
    provider: Provider,
    server: Listening,
    runner: Option<Runner>,
    user: User,
    scratch: PathBuf,
}

impl Stage {
    fn set(options: &Options, command: &[String]) -> Outcome<Self> {
        let provider = Provider::start()?;
        let auth = json!({"issuer": provider.issuer(), "required_scopes": ["mcp"], "clock_skew": 0});
        let server = Listening::start(command, &[("EVERYTHING_AUTH".to_owned(), auth.to_string())])?;
        let runner = Runner::start(&options.language, options.timeout)?;
        let user = User::before(runner.tail(), &provider);
        let scratch = std::env::temp_dir().join(format!("contract-logins-{}", std::process::id()));
        let language = options.language.clone();
        Ok(Self { language, limit: options.timeout, provider, server, runner: Some(runner), user, scratch })
    }

    fn explained(&self, reason: &str) -> Failure {
        let log = self.runner.as_ref().map(Runner::log).unwrap_or_default().join("\n");
        format!("{reason}\n{}\n{log}", self.user.trouble())
    }

    fn runner(&mut self) -> Outcome<&mut Runner> {
        self.runner.as_mut().ok_or_else(|| "the runner has ended".into())
    }

    fn outcome(&mut self, command: Value) -> Outcome<Value> {
        let runner = self.runner()?;
        let id = runner.send(command)?;
        runner.answer(id)
    }

    /// The result of a command.
    fn done(&mut self, command: Value) -> Outcome<Value> {
        let answer = self.outcome(command)?;
        answer.get("result").cloned().ok_or_else(|| brief(&answer))
    }

    fn connecting(&self, client: u64, store: &Value, revision: Option<&str>) -> Value {
        let mut options = json!({"auth": {"no_browser": true, "store": store}});
        if let Some(revision) = revision {
            options["revision"] = revision.into();
        }
        json!({"do": "connect", "client": client, "target": {"url": self.server.url}, "options": options})
    }

    fn connect(&mut self, client: u64) -> Outcome {
        let command = self.connecting(client, &"memory".into(), None);
        self.done(command).map(drop)
    }

    fn call(&mut self, client: u64, name: &str, arguments: &Value) -> Outcome<Value> {
        self.done(json!({"do": "call_tool", "client": client, "name": name, "arguments": arguments}))
    }

    /// Who the server takes the client for.
    fn is_ada(&mut self, client: u64) -> Outcome {
        let issuer = self.provider.issuer().to_owned();
        let said = self.call(client, "whoami", &json!({}))?;
        fits(&json!({"structured": {"subject": "ada", "issuer": issuer, "client_id": "$string"}}), &said)
    }

    /// What the authorization server was asked since this was asked last.
    fn seen(&self, pattern: &Value) -> Outcome {
        fits(pattern, &self.provider.seen()?).map_err(|reason| format!("the authorization server: {reason}"))
    }

    /// From here on a token lives so long.
    fn live(&self, seconds: u64) -> Outcome {
        self.provider.control(&json!({"seconds": seconds})).map(drop)
    }

    // ---- scenes --------------------------------------------------------------------------------------------------

    fn log_in(&mut self, revision: Option<&str>) -> Outcome {
        let command = self.connecting(1, &"memory".into(), revision);
        self.done(command)?;
        self.is_ada(1)?;
        self.seen(&json!({"registered": 1, "grants": ["authorization_code"], "refused": []}))
    }

    fn outlive(&mut self) -> Outcome {
        self.live(2)?;
        self.connect(1)?;
        self.seen(&json!({"refused": []}))?;
        for _ in 0..2 {
            // The token ends on the way; and the second time it is one that a rotated refresh token brought.
            let said = self.call(1, "slow", &json!({"ms": 2500}))?;
            fits(&json!({"text": "slept 2500 ms"}), &said)?;
        }
        self.seen(&json!({"registered": 0, "grants": {"$each": "refresh_token"}, "refused": []}))?;
        self.live(600)?;
        let runner = self.runner()?;
        let calls = (0..20)
            .map(|n| {
                let arguments = json!({"a": n, "b": 1});
                runner.send(json!({"do": "call_tool", "client": 1, "name": "add", "arguments": arguments}))
            })
            .collect::<Outcome<Vec<_>>>()?;
        for (n, id) in calls.into_iter().enumerate() {
            fits(&json!({"result": {"text": (n + 1).to_string()}}), &runner.answer(id)?)?;
        }
        // Whoever listens has another token by then: the stream ended with the former one.
        let renewed = json!({"$oneOf": [["refresh_token"], []]});
        self.seen(&json!({"registered": 0, "grants": renewed, "refused": []}))
    }

    fn restart(&mut self) -> Outcome {
        let store = json!({"directory": self.scratch.to_string_lossy()});
        let command = self.connecting(1, &store, None);
        self.done(command.clone())?;
        self.seen(&json!({"registered": 1, "grants": ["authorization_code"]}))?;
        self.runner.take().map_or(Ok(()), Runner::finish)?;
        let runner = Runner::start(&self.language, self.limit)?;
        self.user = User::before(runner.tail(), &self.provider);
        self.runner = Some(runner);
        self.done(command)?;
        self.is_ada(1)?;
        self.seen(&json!({"registered": 0, "grants": {"$not": {"$contains": ["authorization_code"]}}, "refused": []}))
    }

    fn keys_change(&mut self) -> Outcome {
        self.connect(1)?;
        self.is_ada(1)?;
        self.provider.control(&json!({"rotate": {"keep": false}}))?;
        self.is_ada(1).map_err(|reason| format!("the server knows the former key still: {reason}"))?;
        self.connect(2)?;
        self.is_ada(2).map_err(|reason| format!("the new key: {reason}"))?;
        self.provider.seen()?;
        self.is_ada(1).map_err(|reason| format!("a token of the former key: {reason}"))?;
        self.seen(&json!({"registered": 0, "grants": ["refresh_token"], "refused": []}))
    }

    fn taken_back(&mut self) -> Outcome {
        self.live(2)?;
        self.connect(1)?;
        self.live(600)?;
        self.provider.control(&json!({"revoke": {}}))?;
        self.provider.seen()?;
        self.call(1, "slow", &json!({"ms": 2500}))?;
        self.is_ada(1)?;
        self.seen(&json!({"grants": ["authorization_code"], "refused": {"$each": "refresh_token: invalid_grant"}}))
    }

    fn says_no(&mut self) -> Outcome {
        self.user.denies(true);
        let command = self.connecting(1, &"memory".into(), None);
        let answer = self.outcome(command.clone())?;
        let refused = json!({"error": {"kind": "auth", "message": "$like:*access_denied*"}});
        fits(&refused, &answer)?;
        self.seen(&json!({"grants": []}))?;
        self.user.denies(false);
        self.done(command)?;
        self.is_ada(1)
    }

    fn step_up(&mut self) -> Outcome {
        self.connect(1)?;
        let said = self.call(1, "delete_file", &json!({"name": "x"}))?;
        fits(&json!({"text": "deleted x"}), &said)?;
        // The browser comes back to another port, for which the client may register anew.
        self.seen(&json!({"grants": ["authorization_code", "authorization_code"], "refused": []}))?;
        let said = self.call(1, "whoami", &json!({}))?;
        fits(&json!({"structured": {"scopes": {"$contains": ["mcp", "files:read", "files:write"]}}}), &said)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn fits(pattern: &Value, got: &Value) -> Outcome {
    check(pattern, got, Strictness::Subset, &mut Captures::new())
}
