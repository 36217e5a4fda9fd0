//! A server as a child process: lines in, lines out, standard error kept for the report.

use crate::Outcome;
use crate::pattern::shorten;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A command line: program, arguments, added environment.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Environment added to our own.
    pub environment: Vec<(String, String)>,
}

impl Launch {
    /// The process, in a group of its own, with the given standard input and output.
    pub fn spawn(&self, input: Stdio, output: Stdio) -> Outcome<Child> {
        Command::new(&self.words[0])
            .args(&self.words[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.words.join(" ")))
    }
}

/// Kill a process and everything it started. Safe on one that is gone.
pub fn kill_group(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// Ask a process to end.
pub fn terminate(child: &Child) -> Outcome {
    rustix::process::Pid::from_raw(child.id().cast_signed()).map_or(Ok(()), |pid| {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|error| error.to_string())
    })
}

/// Wait for a process, at most so long.
pub fn wait_bounded(child: &mut Child, limit: Duration) -> Outcome<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            return Err(format!("the process did not end within {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The last lines of a stream that nobody waits for.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Keep the last lines of `stream`, from a thread of its own.
    pub fn follow(stream: impl Read + Send + 'static) -> Self {
        let tail = Self::default();
        let kept = tail.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n') {
                let Ok(line) = line else { return };
                kept.push(&String::from_utf8_lossy(&line));
            }
        });
        tail
    }

    /// Keep one more line.
    pub fn push(&self, line: &str) {
        if let Ok(mut lines) = self.0.lock() {
            lines.push_back(line.to_owned());
            if lines.len() > 60 {
                lines.pop_front();
            }
        }
    }

    /// Returns the lines that are kept.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().map(|lines| lines.iter().cloned().collect()).unwrap_or_default()
    }
}

/// End of a stdio server.
#[derive(Debug)]
pub struct Ended {
    /// Messages of the server that nobody took.
    pub unread: Vec<Value>,
    /// Its exit status.
    pub status: ExitStatus,
}

/// A running stdio server and the messages it sent that nobody took yet.
#[derive(Debug)]
pub struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    waiting: VecDeque<Value>,
    /// Standard error of the server.
    pub log: Tail,
}

impl Pipe {
    /// Start the server.
    pub fn open(launch: &Launch) -> Outcome<Self> {
        let mut child = launch.spawn(Stdio::piped(), Stdio::piped())?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no standard output")?;
        let log = Tail::follow(child.stderr.take().ok_or("no standard error")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if sender.send(line).is_err() => return,
                    Ok(_) => {}
                }
            }
        });
        Ok(Self { child, input, lines, waiting: VecDeque::new(), log })
    }

    /// The server's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Write bytes and a newline.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome {
        let input = self.input.as_mut().ok_or("standard input is closed")?;
        let mut line = bytes.to_vec();
        line.push(b'\n');
        input
            .write_all(&line)
            .and_then(|()| input.flush())
            .map_err(|error| format!("cannot write to the server: {error}"))
    }

    /// The next message, or `None` when the server closed its output.
    pub fn next(&mut self, limit: Duration) -> Outcome<Option<Value>> {
        if self.waiting.is_empty() && !self.read(limit)? {
            return Ok(None);
        }
        Ok(self.waiting.pop_front())
    }

    /// The next message that `wanted` says yes to; earlier ones stay for later.
    pub fn pick(&mut self, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Outcome<Value> {
        let deadline = Instant::now() + limit;
        let mut seen = 0;
        loop {
            while seen < self.waiting.len() {
                if wanted(&self.waiting[seen]) {
                    return self.waiting.remove(seen).ok_or_else(String::new);
                }
                seen += 1;
            }
            if !self.read(deadline.saturating_duration_since(Instant::now()))? {
                return Err("the server closed its output".into());
            }
        }
    }

    fn read(&mut self, limit: Duration) -> Outcome<bool> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => {
                let text = line.strip_suffix(b"\n").ok_or_else(|| {
                    format!("output ended inside a line: {}", shorten(&String::from_utf8_lossy(&line)))
                })?;
                let messages = super::messages(text).map_err(|reason| format!("standard output: {reason}"))?;
                self.waiting.extend(messages);
                Ok(true)
            }
            Err(RecvTimeoutError::Disconnected) => Ok(false),
            Err(RecvTimeoutError::Timeout) => Err(format!("no message within {limit:?}")),
        }
    }

    /// Close standard input and wait for the end.
    pub fn finish(mut self, limit: Duration) -> Outcome<Ended> {
        self.input = None;
        self.end(limit).map_err(|reason| format!("after EOF: {reason}"))
    }

    /// Send SIGTERM, standard input left open, and wait for the end.
    pub fn terminate(mut self, limit: Duration) -> Outcome<Ended> {
        terminate(&self.child).and_then(|()| self.end(limit)).map_err(|reason| format!("after SIGTERM: {reason}"))
    }

    /// SIGKILL, standard input left open until then.
    pub fn kill(mut self) {
        kill_group(&mut self.child);
    }

    fn end(&mut self, limit: Duration) -> Outcome<Ended> {
        while self.read(limit)? {}
        let status = wait_bounded(&mut self.child, limit)?;
        Ok(Ended { unread: std::mem::take(&mut self.waiting).into(), status })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.input = None;
        kill_group(&mut self.child);
    }
}
