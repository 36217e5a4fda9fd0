//! A script over the standard streams of a fresh server process.

use super::outgoing::compose;
use super::{at_line, initial_captures, initialize, initialized, match_group, sign_of_life};
use crate::Outcome;
use crate::launch;
use crate::options::Options;
use crate::pattern::{self, Captures, MODERN, Strictness, brief};
use crate::script::{Action, Script, Transport};
use crate::wire::stdio::{Ended, Pipe};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Start a server, play, end it.
pub(super) fn play(script: &Script, command: &[String], options: &Options) -> Outcome {
    let pipe = Pipe::open(&launch::stdio(command, &script.environment))?;
    let log = pipe.log.clone();
    let mut player = Player { pipe: Some(pipe), captures: initial_captures(script), limit: options.timeout };
    player.play(script).map_err(
        |reason| {
            if options.verbose { format!("{reason}\n{}", log.lines().join("\n")) } else { reason }
        },
    )
}

struct Player {
    pipe: Option<Pipe>,
    captures: Captures,
    limit: Duration,
}

impl Player {
    fn play(&mut self, script: &Script) -> Outcome {
        if script.open && script.revision != MODERN {
            self.open(&script.revision).map_err(|reason| format!("handshake: {reason}"))?;
        }
        let mut sent = false;
        for step in &script.steps {
            if step.on.is_none_or(|on| on == Transport::Stdio) {
                let sends =
                    matches!(step.action, Action::Send { label: None, .. } | Action::Request { label: None, .. });
                if script.alive && sends && std::mem::replace(&mut sent, true) {
                    self.live(&script.revision).map_err(|reason| at_line(step.line, reason))?;
                }
                self.step(&step.action).map_err(|reason| at_line(step.line, reason))?;
            }
        }
        if script.alive {
            self.live(&script.revision)?;
        }
        if script.ends { self.end() } else { Ok(()) }
    }

    fn pipe(&mut self) -> Outcome<&mut Pipe> {
        self.pipe.as_mut().ok_or_else(|| "the conversation has ended".into())
    }

    fn open(&mut self, revision: &str) -> Outcome {
        let limit = self.limit;
        self.pipe()?.send(initialize(revision).to_string().as_bytes())?;
        let answer = self.pipe()?.next(limit)?.ok_or("the server closed its output")?;
        pattern::check(&initialized(revision), &answer, Strictness::Subset, &mut Captures::new())?;
        self.pipe()?.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    fn next(&mut self) -> Outcome<Value> {
        let limit = self.limit;
        self.pipe()?.next(limit)?.ok_or_else(|| "the server closed its output".into())
    }

    fn live(&mut self, revision: &str) -> Outcome {
        for action in sign_of_life(revision) {
            self.step(&action).map_err(|reason| format!("the valid call before this line: {reason}"))?;
        }
        Ok(())
    }

    fn step(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Send { payload, .. } => {
                let outgoing = compose(payload, &self.captures)?;
                self.pipe()?.send(&outgoing.bytes)
            }
            Action::Expect { pattern, how, label: None } => {
                let got = self.next()?;
                pattern::check(pattern, &got, *how, &mut self.captures)
            }
            Action::Expect { pattern, how, label: Some(_) } => {
                let (limit, captures) = (self.limit, self.captures.clone());
                let fits = |message: &Value| pattern::check(pattern, message, *how, &mut captures.clone()).is_ok();
                let got = self.pipe()?.pick(limit, fits).map_err(|reason| format!("{}: {reason}", brief(pattern)))?;
                pattern::check(pattern, &got, *how, &mut self.captures)
            }
            Action::Group { patterns, .. } => {
                let received = patterns.iter().map(|_| self.next()).collect::<Outcome<Vec<_>>>()?;
                match_group(patterns, received, &mut self.captures)
            }
            Action::Until { message, pattern, how } => self.until(message, pattern, *how),
            Action::Eof => self.end(),
            Action::Header { .. }
            | Action::Status { .. }
            | Action::ResponseHeader { .. }
            | Action::Nothing { .. }
            | Action::End { .. } => Ok(()),
            Action::Request { method, .. } => Err(format!("{method} needs @http")),
            Action::Await { .. } | Action::Stream(_) | Action::NextProcess | Action::Exit => {
                Err("this line is for peers".into())
            }
            Action::Close { .. } => Err("! close needs @http".into()),
        }
    }

    fn until(&mut self, message: &Value, pattern: &Value, how: Strictness) -> Outcome {
        let deadline = Instant::now() + self.limit;
        for round in 0.. {
            let (message, pattern) = renumbered(message, pattern, round);
            let payload =
                crate::script::Payload::Message { value: message, envelope: self.captures["revision"] == MODERN };
            let outgoing = compose(&payload, &self.captures)?;
            self.pipe()?.send(&outgoing.bytes)?;
            let got = self.next()?;
            match pattern::check(&pattern, &got, how, &mut self.captures) {
                Ok(()) => return Ok(()),
                Err(reason) if Instant::now() > deadline => return Err(reason),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Outcome {
        let Some(pipe) = self.pipe.take() else {
            return Ok(());
        };
        let Ended { unread, status } = pipe.finish(self.limit)?;
        if let Some(message) = unread.first() {
            return Err(format!("{} messages nobody expected, first {}", unread.len(), brief(message)));
        }
        if status.success() { Ok(()) } else { Err(format!("after EOF the server ended with {status}")) }
    }
}

/// The same question and answer under a fresh id.
pub(super) fn renumbered(message: &Value, pattern: &Value, round: usize) -> (Value, Value) {
    let (mut message, mut pattern) = (message.clone(), pattern.clone());
    for value in [&mut message, &mut pattern] {
        if let Some(members) = value.as_object_mut() {
            members.insert("id".into(), format!("until-{round}").into());
        }
    }
    (message, pattern)
}
