//! The runner of a language: a process that does what each line says and reports what came.

use crate::Outcome;
use crate::launch;
use crate::pattern::brief;
use crate::wire::stdio::{Launch, Pipe, Tail};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A running runner.
pub(crate) struct Runner {
    pipe: Option<Pipe>,
    limit: Duration,
    last: u64,
    answers: BTreeMap<u64, Value>,
    progress: BTreeMap<u64, VecDeque<Value>>,
}

impl Runner {
    pub(crate) fn start(language: &str, limit: Duration) -> Outcome<Self> {
        Self::of(vec![launch::runner(language)?], limit)
    }

    /// Any other program that takes such commands.
    pub(crate) fn of(words: Vec<String>, limit: Duration) -> Outcome<Self> {
        let launch = Launch { words, environment: Vec::new() };
        Ok(Self {
            pipe: Some(Pipe::open(&launch)?),
            limit,
            last: 0,
            answers: BTreeMap::new(),
            progress: BTreeMap::new(),
        })
    }

    fn pipe(&mut self) -> Outcome<&mut Pipe> {
        self.pipe.as_mut().ok_or_else(|| "the runner has ended".into())
    }

    pub(crate) fn alive(&mut self) -> bool {
        self.pipe.is_some()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.pipe.as_ref().map(|pipe| pipe.log.lines()).unwrap_or_default()
    }

    /// Its standard error.
    pub(crate) fn tail(&self) -> Tail {
        self.pipe.as_ref().map(|pipe| pipe.log.clone()).unwrap_or_default()
    }

    /// Send a command; its number.
    pub(crate) fn send(&mut self, mut command: Value) -> Outcome<u64> {
        self.last += 1;
        command["id"] = self.last.into();
        let line = command.to_string();
        self.pipe()?.send(line.as_bytes())?;
        Ok(self.last)
    }

    fn read(&mut self) -> Outcome {
        let limit = self.limit;
        let Some(line) = self.pipe()?.next(limit).map_err(|reason| format!("the runner: {reason}"))? else {
            let log = self.log().join("\n");
            self.pipe = None;
            return Err(format!("the runner died\n{log}"));
        };
        let Some(id) = line.get("id").and_then(Value::as_u64) else {
            return Err(format!("the runner says {}", brief(&line)));
        };
        match line.get("progress") {
            Some(progress) => self.progress.entry(id).or_default().push_back(progress.clone()),
            None => {
                self.answers.insert(id, line);
            }
        }
        Ok(())
    }

    /// The answer to a command.
    pub(crate) fn answer(&mut self, id: u64) -> Outcome<Value> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            self.read()?;
        }
    }

    /// The next progress of a command that runs.
    pub(crate) fn progress(&mut self, id: u64) -> Outcome<Value> {
        loop {
            if let Some(progress) = self.progress.get_mut(&id).and_then(VecDeque::pop_front) {
                return Ok(progress);
            }
            if let Some(answer) = self.answers.get(&id) {
                return Err(format!("no progress, but an answer: {}", brief(answer)));
            }
            self.read()?;
        }
    }

    /// All progress of a command that is answered.
    pub(crate) fn take_progress(&mut self, id: u64) -> Vec<Value> {
        self.progress.remove(&id).map(Vec::from).unwrap_or_default()
    }

    /// Kill it, without a word before.
    pub(crate) fn kill(self) {
        if let Some(pipe) = self.pipe {
            pipe.kill();
        }
    }

    /// End of input: the runner ends with exit code 0, its clients and their servers with it.
    pub(crate) fn finish(self) -> Outcome {
        let Some(pipe) = self.pipe else {
            return Err("the runner died".into());
        };
        let status = pipe.finish(self.limit)?.status;
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
    }
}
