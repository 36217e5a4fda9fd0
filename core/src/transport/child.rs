//! A server's process: started in a process group of its own, ended step by step, no grandchild left.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::lines::{Line, Lines, answered};
use super::sink::{Backlog, LineSink};
use crate::client::{Events, Stderr, Target};
use crate::driver::{Peer, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::Input;
use crate::report;
use crate::signal::Signal as Once;

/// The longest line of standard error that is passed on in one piece.
const MAX_STDERR_LINE: usize = 64 << 10;

/// After the last step of closing, standard error is read for so long: last words, but no more from processes that
/// have left the group.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// One process of a server, with all that it has started.
pub(super) struct Process {
    group: Option<Pid>,
    exit: watch::Receiver<Option<String>>,
    /// Set when the last step of ending it is done.
    pub(super) ended: Once,
}

/// What was just started.
pub(super) struct Started {
    pub(super) process: Arc<Process>,
    /// Its standard input. Closed by dropping it, which is the first step of ending it.
    pub(super) stdin: Arc<LineSink>,
    pub(super) output: Output,
    pub(super) stderr: Option<pipe::Receiver>,
}

/// Starts the target, a command.
pub(super) fn start(target: &Target) -> Result<Started> {
    let Target::Command { command, args, env, cwd, stderr } = target else {
        return Err(Error::misuse("target: expected a command"));
    };
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::new(ErrorKind::Transport, format!("{what}: {e}"));
    let handle = runtime::handle();
    let _guard = handle.enter();
    let open = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| failed("pipe", &e));
    let reader = |end: OwnedFd| pipe::Receiver::from_owned_fd(end).map_err(|e| failed("pipe", &e));
    let (child_in, our_in) = open()?;
    let (our_out, child_out) = open()?;
    let mut program = Command::new(command);
    program.args(args).stdin(child_in).stdout(child_out).process_group(0);
    for (name, value) in env {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    if let Some(cwd) = cwd {
        program.current_dir(cwd);
    }
    let mut our_err = None;
    match stderr {
        Stderr::Inherit => {}
        Stderr::Discard => {
            program.stderr(Stdio::null());
        }
        Stderr::Event => {
            let (near, far) = open()?;
            program.stderr(far);
            our_err = Some(reader(near)?);
        }
    }
    let output = reader(our_out)?;
    let child = program.spawn().map_err(|e| failed(&format!("cannot start {command:?}"), &e))?;
    // The command keeps the child's ends of the pipes; without them gone there is no end of file.
    drop(program);
    let stdin = Arc::new(LineSink::new(our_in.into(), usize::MAX));
    let (exited, exit) = watch::channel(None);
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    runtime::spawn(reap(child, exited));
    let process = Arc::new(Process { group, exit, ended: Once::default() });
    let output = Output { output, backlog: stdin.backlog(), process: process.clone() };
    Ok(Started { process, stdin, output, stderr: our_err })
}

/// Waits for the child, so that no zombie stays.
async fn reap(mut child: Child, exited: watch::Sender<Option<String>>) {
    let status = match child.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    exited.send_replace(Some(status));
}

/// The child's output, and what says that reading it is over.
pub(super) struct Output {
    output: pipe::Receiver,
    backlog: Arc<Backlog>,
    process: Arc<Process>,
}

impl Output {
    /// Reads to the end, at most until the child has been ended: a process that left the group may hold the pipe. Says how
    /// the child ended, if it did so unasked.
    pub(super) async fn read(self, peer: &Arc<Peer>, limit: usize) -> Option<String> {
        let mut lines = Lines::new(limit);
        loop {
            let readable = async {
                // What it asks for and does not read must not pile up.
                if self.backlog.is_full() {
                    self.backlog.room().await;
                }
                self.output.readable().await
            };
            let readable = tokio::select! {
                readable = readable => readable,
                () = self.process.ended.wait() => return None,
                () = self.backlog.stalled() => {
                    peer.close("the server does not read its input");
                    return None;
                }
            };
            if readable.is_err() {
                break;
            }
            match lines.fill(Nonblocking(&self.output)) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
            peer.cork();
            while let Some(line) = lines.next() {
                match line {
                    Line::Frame(frame) => peer.receive(&frame),
                    Line::TooLong(beginning) => too_long(peer, &beginning, limit),
                }
            }
            peer.uncork();
        }
        if let Some(frame) = lines.rest() {
            peer.receive(&frame);
        }
        // The exit status usually follows at once and says more than the end of output.
        let mut exit = self.process.exit.clone();
        let status = tokio::time::timeout(Duration::from_millis(200), exit.wait_for(Option::is_some)).await;
        Some(match status {
            Ok(Ok(status)) => format!("the server ended ({})", status.as_deref().unwrap_or("unknown status")),
            _ => "the server closed its output".to_owned(),
        })
    }
}

/// The server's message is left out; whoever waits for it is told.
fn too_long(peer: &Arc<Peer>, beginning: &[u8], limit: usize) {
    let message = format!("the server sent a message longer than the limit of {limit} bytes (max_message_bytes)");
    match answered(beginning) {
        Some(id) => peer.handle(Input::Undelivered(id, Error::new(ErrorKind::PeerMisbehaved, message))),
        None => peer.warn(&message),
    }
}

struct Nonblocking<'a>(&'a pipe::Receiver);

impl Read for Nonblocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.try_read(buffer)
    }
}

pub(super) async fn read_stderr(reader: pipe::Receiver, events: Arc<dyn Events>, process: Arc<Process>) {
    let mut lines = Lines::new(MAX_STDERR_LINE);
    let mut over = std::pin::pin!(async {
        process.ended.wait().await;
        tokio::time::sleep(LAST_WORDS).await;
    });
    loop {
        let readable = tokio::select! {
            readable = reader.readable() => readable,
            () = over.as_mut() => return,
        };
        if readable.is_err() {
            return;
        }
        match lines.fill(Nonblocking(&reader)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        }
        while let Some(line) = lines.next() {
            match line {
                Line::Frame(text) => heard(&*events, &String::from_utf8_lossy(&text)),
                Line::TooLong(_) => heard(&*events, "(a line longer than 64 KiB was left out)"),
            }
        }
    }
    if let Some(text) = lines.rest() {
        heard(&*events, &String::from_utf8_lossy(&text));
    }
}

/// Reading goes on even when the user's function panics, or the child would wait for ever.
fn heard(events: &dyn Events, line: &str) {
    report::guarded("what hears of standard error", || events.stderr(line));
}

impl Process {
    /// Ends it, whose input is closed, with all of its group. Each step may take `grace`.
    pub(super) async fn end(&self, grace: Duration) {
        if let Some(group) = self.group.filter(|_| !self.ended.is_set()) {
            end(group, self.exit.clone(), grace).await;
        }
        self.ended.set();
    }
}

async fn end(group: Pid, mut exit: watch::Receiver<Option<String>>, grace: Duration) {
    // A good server leaves by itself.
    let left = tokio::time::timeout(grace, exit.wait_for(Option::is_some)).await.is_ok();
    if left && !group_exists(group) {
        return;
    }
    let _ = kill_process_group(group, Signal::TERM);
    if group_is_gone(group, grace).await {
        return;
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = tokio::time::timeout(grace, exit.wait_for(Option::is_some)).await;
}

fn group_exists(group: Pid) -> bool {
    test_kill_process_group(group).is_ok()
}

/// Grandchildren are not ours to wait for, so the group is looked at until it is empty.
async fn group_is_gone(group: Pid, patience: Duration) -> bool {
    let end = tokio::time::Instant::now() + patience;
    while group_exists(group) {
        if tokio::time::Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}
