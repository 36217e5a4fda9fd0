//! A server as a child process: launched in a process group of its own, ended step by step, no grandchild left.

use std::future::Future;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::lines::{Line, Lines, answered};
use super::sink::{Backlog, LineSink};
use crate::client::{ClientOptions, Closer, Events, Stderr, Target};
use crate::driver::{Peer, Service, Sink, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Connection, Input, Outbound, Transport};
use crate::report;
use crate::signal::Signal as Once;

/// The longest line of standard error that is passed on in one piece.
const MAX_STDERR_LINE: usize = 64 << 10;

/// After the last step of closing, standard error is read for so long: last words, but no more from processes that
/// have left the group.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// As good as for ever.
const MAX_GRACE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The child's standard input. Closed by dropping it, which is the first step of shutting down.
struct Stdin(Mutex<Option<Arc<LineSink>>>);

impl Stdin {
    fn sink(&self) -> Option<Arc<LineSink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&self) {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(sink);
    }
}

impl Sink for Stdin {
    fn send(&self, batch: Vec<Outbound>) {
        if let Some(sink) = self.sink() {
            sink.send(batch);
        }
    }

    fn close(&self) {
        Self::close(self);
    }
}

/// Launches the target and joins it to a peer.
pub(super) fn launch(
    target: &Target,
    options: &ClientOptions,
    service: Arc<dyn Service>,
    events: &Arc<dyn Events>,
) -> Result<(Arc<Peer>, Arc<dyn Closer>)> {
    let Target::Command { command, args, env, cwd, stderr } = target else {
        return Err(Error::misuse("target: expected a command"));
    };
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::new(ErrorKind::Transport, format!("{what}: {e}"));
    let handle = runtime::handle();
    let _guard = handle.enter();
    let open = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| failed("pipe", &e));
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
    let mut our_err: Option<OwnedFd> = None;
    match stderr {
        Stderr::Inherit => {}
        Stderr::Discard => {
            program.stderr(Stdio::null());
        }
        Stderr::Event => {
            let (reader, writer) = open()?;
            program.stderr(writer);
            our_err = Some(reader);
        }
    }
    let child = program.spawn().map_err(|e| failed(&format!("cannot start {command:?}"), &e))?;
    // The command keeps the child's ends of the pipes; without them gone there is no end of file.
    drop(program);
    let sink = Arc::new(LineSink::new(our_in.into(), usize::MAX));
    let backlog = sink.backlog();
    let stdin = Arc::new(Stdin(Mutex::new(Some(sink))));
    let connection = Connection::new(Arc::new(options.facts()), Arc::new(Transport::new("stdio")));
    let limits = options.limits();
    let peer = Peer::new(connection, limits, service, |_| stdin.clone());
    let output = pipe::Receiver::from_owned_fd(our_out).map_err(|e| failed("pipe", &e))?;
    // A clock that is asked for more than it holds panics.
    let grace = crate::options::seconds("shutdown_grace", options.shutdown_grace)?.min(MAX_GRACE);
    let (exited, exit) = watch::channel(None);
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let ended = Arc::new(Once::default());
    runtime::spawn(reap(child, exited));
    let reader = Output { output, backlog, exit: exit.clone(), ended: ended.clone() };
    runtime::spawn(reader.read(peer.clone(), limits.max_message_bytes));
    if let Some(reader) = our_err {
        let reader = pipe::Receiver::from_owned_fd(reader).map_err(|e| failed("pipe", &e))?;
        runtime::spawn(read_stderr(reader, events.clone(), ended.clone()));
    }
    let closer = ChildCloser { stdin, group, exit, grace, ended, peer: Arc::downgrade(&peer) };
    Ok((peer, Arc::new(closer)))
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
struct Output {
    output: pipe::Receiver,
    backlog: Arc<Backlog>,
    exit: watch::Receiver<Option<String>>,
    ended: Arc<Once>,
}

impl Output {
    /// Reads to the end, at most until the child has been closed: a process that left the group may hold the pipe.
    async fn read(mut self, peer: Arc<Peer>, limit: usize) {
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
                () = self.ended.wait() => return,
                () = self.backlog.stalled() => return peer.close("the server does not read its input"),
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
                    Line::TooLong(beginning) => too_long(&peer, &beginning, limit),
                }
            }
            peer.uncork();
        }
        if let Some(frame) = lines.rest() {
            peer.receive(&frame);
        }
        // The exit status usually follows at once and says more than the end of output.
        let status = tokio::time::timeout(Duration::from_millis(200), self.exit.wait_for(Option::is_some)).await;
        let reason = match status {
            Ok(Ok(status)) => format!("the server ended ({})", status.as_deref().unwrap_or("unknown status")),
            _ => "the server closed its output".to_owned(),
        };
        peer.close(&reason);
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

async fn read_stderr(reader: pipe::Receiver, events: Arc<dyn Events>, ended: Arc<Once>) {
    let mut lines = Lines::new(MAX_STDERR_LINE);
    let mut over = std::pin::pin!(async {
        ended.wait().await;
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

struct ChildCloser {
    stdin: Arc<Stdin>,
    group: Option<Pid>,
    exit: watch::Receiver<Option<String>>,
    grace: Duration,
    /// Set when the last step of closing is done.
    ended: Arc<Once>,
    peer: Weak<Peer>,
}

impl Closer for ChildCloser {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(peer) = self.peer.upgrade() {
            peer.close("the client was closed");
        }
        self.stdin.close();
        let (group, exit, grace, ended) = (self.group, self.exit.clone(), self.grace, self.ended.clone());
        Box::pin(async move {
            if let Some(group) = group {
                end(group, exit, grace).await;
            }
            ended.set();
        })
    }
}

/// Ends the child, whose input is closed, with all of its group.
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
