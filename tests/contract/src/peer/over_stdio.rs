//! A scripted server on our own standard input and output.

use super::{LIMIT, at, bytes};
use crate::Outcome;
use crate::pattern::{self, Captures, brief};
use crate::replay::match_group;
use crate::script::{Action, Step};
use crate::wire;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

struct Client {
    lines: Receiver<Vec<u8>>,
    waiting: VecDeque<Value>,
}

impl Client {
    fn next(&mut self) -> Outcome<Option<Value>> {
        while self.waiting.is_empty() {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => self.waiting.extend(wire::messages(&line)?),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => return Err(format!("the client said nothing for {LIMIT:?}")),
            }
        }
        Ok(self.waiting.pop_front())
    }

    fn message(&mut self) -> Outcome<Value> {
        self.next()?.ok_or_else(|| "the client closed the pipe".into())
    }
}

/// Play the steps, then wait for the end of input. Anything else the client says is an error.
pub(super) fn play(steps: &[Step]) -> Outcome {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut client = Client { lines, waiting: VecDeque::new() };
    let mut captures = Captures::new();
    for step in steps {
        if matches!(step.action, Action::Exit) {
            return Ok(());
        }
        perform(&step.action, &mut client, &mut captures).map_err(|reason| at(step, reason))?;
    }
    match client.next()? {
        None => Ok(()),
        Some(message) => Err(format!("after the script: {}", brief(&message))),
    }
}

fn perform(action: &Action, client: &mut Client, captures: &mut Captures) -> Outcome {
    match action {
        Action::Expect { pattern, how, .. } => pattern::check(pattern, &client.message()?, *how, captures),
        Action::Group { patterns, .. } => {
            let received = patterns.iter().map(|_| client.message()).collect::<Outcome<Vec<_>>>()?;
            match_group(patterns, received, captures)
        }
        Action::Send { payload, .. } => {
            let (mut line, _) = bytes(payload, captures)?;
            line.push(b'\n');
            let mut output = std::io::stdout().lock();
            output.write_all(&line).and_then(|()| output.flush()).map_err(|error| error.to_string())
        }
        Action::Eof => match client.next()? {
            None => Ok(()),
            Some(message) => Err(format!("expected the end of input, got {}", brief(&message))),
        },
        // What concerns HTTP alone.
        _ => Ok(()),
    }
}
