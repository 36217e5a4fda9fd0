//! All that takes part in a scene, and what can be asked of it.

use super::provider::{Provider, User};
use crate::cases::runner::Runner;
use crate::launch::Listening;
use crate::pattern::{Captures, Strictness, brief, check};
use crate::{Failure, Outcome};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Seconds for which tokens live after [`Stage::live_shortly`]: on any machine, and on one that was too slow for that.
pub(super) const LIVES: [u64; 2] = [2, 8];
/// Longest command, besides what it waits for, of a machine that is fast enough: the end of a token is a whole second.
const SLOW: Duration = Duration::from_millis(500);

/// Parties of a scene.
pub(super) struct Cast {
    /// The client's program.
    pub(super) client: Vec<String>,
    /// The protected server's.
    pub(super) server: Vec<String>,
    /// Variable that tells the server its protection, given the provider.
    pub(super) protection: fn(&Provider) -> (String, String),
}

/// A running client, and the user who sits before it.
struct Player {
    runner: Runner,
    user: User,
}

pub(super) struct Stage {
    client: Vec<String>,
    limit: Duration,
    /// Seconds for which tokens live after [`Stage::live_shortly`].
    life: u64,
    /// Longest command besides what it waits for.
    longest: Duration,
    pub(super) provider: Provider,
    pub(super) server: Listening,
    players: Vec<Player>,
    /// Number of the player that acts next.
    at: usize,
    scratch: PathBuf,
}

impl Stage {
    pub(super) fn set(cast: &Cast, limit: Duration, life: u64) -> Outcome<Self> {
        static SET: AtomicUsize = AtomicUsize::new(0);
        let provider = Provider::start()?;
        let server = Listening::start(&cast.server, &[(cast.protection)(&provider)])?;
        let number = SET.fetch_add(1, Ordering::Relaxed);
        let scratch = std::env::temp_dir().join(format!("contract-logins-{}-{number}", std::process::id()));
        let client = cast.client.clone();
        let longest = Duration::ZERO;
        let mut stage = Self { client, limit, life, longest, provider, server, players: Vec::new(), at: 0, scratch };
        stage.enter()?;
        Ok(stage)
    }

    /// Explains a fault with everything that the players said.
    pub(super) fn explained(&self, reason: &str) -> Failure {
        let mut lines = vec![reason.to_owned()];
        for player in &self.players {
            lines.push(player.user.trouble());
            lines.extend(player.runner.log());
        }
        lines.extend(self.server.log.lines());
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }

    // ---- clients -------------------------------------------------------------------------------------------------

    /// Another process of the client, whose turn it is then.
    pub(super) fn enter(&mut self) -> Outcome {
        let runner = Runner::of(self.client.clone(), self.limit)?;
        let user = User::before(runner.tail(), &self.provider);
        self.players.push(Player { runner, user });
        self.at = self.players.len() - 1;
        Ok(())
    }

    /// Chooses the player that acts next: processes are counted from 0 in the order in which they came.
    pub(super) fn turn(&mut self, player: usize) {
        self.at = player;
    }

    fn player(&mut self) -> Outcome<&mut Player> {
        self.players.get_mut(self.at).ok_or_else(|| "the client has left".into())
    }

    pub(super) fn runner(&mut self) -> Outcome<&mut Runner> {
        self.player().map(|player| &mut player.runner)
    }

    /// The only process dies, and another comes.
    pub(super) fn kill(&mut self) -> Outcome {
        self.players.drain(..).for_each(|player| player.runner.kill());
        self.enter()
    }

    /// Everybody leaves in order.
    pub(super) fn leave(&mut self) -> Outcome {
        self.players.drain(..).try_for_each(|player| player.runner.finish())
    }

    pub(super) fn denies(&mut self, denies: bool) -> Outcome {
        self.player().map(|player| player.user.denies(denies))
    }

    // ---- commands ------------------------------------------------------------------------------------------------

    pub(super) fn send(&mut self, command: Value) -> Outcome<u64> {
        self.runner()?.send(command)
    }

    pub(super) fn answer(&mut self, id: u64) -> Outcome<Value> {
        self.runner()?.answer(id)
    }

    pub(super) fn outcome(&mut self, command: Value) -> Outcome<Value> {
        let id = self.send(command)?;
        self.answer(id)
    }

    /// The result of a command.
    pub(super) fn done(&mut self, command: Value) -> Outcome<Value> {
        let begin = Instant::now();
        let wait = command["arguments"]["ms"].as_u64().unwrap_or_default();
        let answer = self.outcome(command);
        self.longest = self.longest.max(begin.elapsed().saturating_sub(Duration::from_millis(wait)));
        let answer = answer?;
        answer.get("result").cloned().ok_or_else(|| brief(&answer))
    }

    /// True when a command took so long that a token may have ended before its time in the scene.
    pub(super) fn is_slow(&self) -> bool {
        self.longest > SLOW
    }

    pub(super) fn connecting(&self, client: u64, auth: &Value, revision: Option<&str>) -> Value {
        let mut options = json!({"auth": auth});
        if let Some(revision) = revision {
            options["revision"] = revision.into();
        }
        json!({"do": "connect", "client": client, "target": {"url": self.server.url}, "options": options})
    }

    /// A user logs in, of whom nothing is kept.
    pub(super) fn connect(&mut self, client: u64) -> Outcome {
        let command = self.connecting(client, &forgotten(), None);
        self.done(command).map(drop)
    }

    /// With a store that others share, and that survives.
    pub(super) fn connect_kept(&mut self, client: u64) -> Outcome {
        let store = json!({"directory": self.scratch.to_string_lossy()});
        let command = self.connecting(client, &json!({"no_browser": true, "store": store}), None);
        self.done(command).map(drop)
    }

    pub(super) fn call(&mut self, client: u64, name: &str, arguments: &Value) -> Outcome<Value> {
        self.done(calling(client, name, arguments))
    }

    /// Checks that the server takes the client for ada.
    pub(super) fn is_ada(&mut self, client: u64) -> Outcome {
        let issuer = self.provider.issuer().to_owned();
        let said = self.call(client, "whoami", &json!({}))?;
        fits(&json!({"structured": {"subject": "ada", "issuer": issuer, "client_id": "$string"}}), &said)
    }

    /// Waits until the client's token has ended. That happens during a call.
    pub(super) fn pass(&mut self, client: u64) -> Outcome {
        let past = self.life * 1000 + 100;
        let said = self.call(client, "slow", &json!({"ms": past}))?;
        fits(&json!({"text": format!("slept {past} ms")}), &said)
    }

    // ---- the authorization server ----------------------------------------------------------------------------------

    /// Checks the requests that it got since the last call of this.
    pub(super) fn seen(&self, pattern: &Value) -> Outcome {
        fits(pattern, &self.provider.seen()?).map_err(|reason| format!("the authorization server: {reason}"))
    }

    /// Drops the requests that it got until here.
    pub(super) fn forget(&self) -> Outcome {
        self.provider.seen().map(drop)
    }

    pub(super) fn tell(&self, command: &Value) -> Outcome<Value> {
        self.provider.control(command)
    }

    /// From here on a token lives for seconds.
    pub(super) fn live_shortly(&self) -> Outcome {
        self.tell(&json!({"seconds": self.life})).map(drop)
    }

    /// From here on a token outlives the scene.
    pub(super) fn live_long(&self) -> Outcome {
        self.tell(&json!({"seconds": 600})).map(drop)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// The client's option `auth`: nothing is kept.
pub(super) fn forgotten() -> Value {
    json!({"no_browser": true, "store": "memory"})
}

pub(super) fn calling(client: u64, name: &str, arguments: &Value) -> Value {
    json!({"do": "call_tool", "client": client, "name": name, "arguments": arguments})
}

pub(super) fn fits(pattern: &Value, got: &Value) -> Outcome {
    check(pattern, got, Strictness::Subset, &mut Captures::new())
}
