//! A server's process: started in a group of its own, ended step by step, no grandchild left.

#[cfg(unix)]
mod orphans;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::watch;

#[cfg(unix)]
use self::orphans::Guard;
use self::os::{Group, Receiver};
#[cfg(unix)]
use self::unix as os;
#[cfg(windows)]
use self::windows as os;
#[cfg(windows)]
use self::windows::Guard;
use super::hearing::Hearing;
use crate::client::{Events, InheritEnv, Stderr, Target};
use crate::driver::{Peer, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::Limits;
use crate::protocol::Input;
use crate::report;
use crate::signal::Signal as Once;
use crate::streams::Out;
use crate::transport::lines::{Line, Lines};
use crate::transport::sink::{Backlog, LineSink};

/// The longest line of standard error that is passed on in one piece.
const MAX_STDERR_LINE: usize = 64 << 10;

/// After the last step of closing, standard error is read for so long: last words, but no more from processes that
/// have left the group.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// One process of a server, with all that it has started.
pub(super) struct Process {
    group: Option<Group>,
    exit: watch::Receiver<Option<Exit>>,
    /// Set when its number may belong to somebody else.
    gone: Arc<Once>,
    /// Set when the last step of ending it is done.
    pub(super) ended: Once,
}

/// End of a process.
struct Exit {
    /// In the system's words.
    text: String,
    /// The number that it has ended with, if it has ended by itself.
    code: Option<i32>,
}

/// Process that was just started.
pub(super) struct Started {
    pub(super) process: Arc<Process>,
    /// Its standard input. Closed by dropping it, which is the first step of ending it.
    pub(super) stdin: Arc<LineSink>,
    pub(super) output: Output,
    pub(super) stderr: Option<Receiver>,
}

/// Starts the target, a command.
pub(super) fn start(target: &Target, inherit: &InheritEnv) -> Result<Started> {
    let Target::Command { command, args, env, cwd, stderr } = target else {
        return Err(Error::misuse("target: expected a command"));
    };
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::new(ErrorKind::Transport, format!("{what}: {e}"));
    let handle = runtime::handle();
    let _guard = handle.enter();
    let (child_in, our_in) = os::input().map_err(|e| failed("pipe", &e).caused_by(e))?;
    let reader = || os::output().map_err(|e| failed("pipe", &e).caused_by(e));
    let (output, child_out) = reader()?;
    let mut program = os::command(command, env, cwd.as_deref());
    program.args(args).stdin(child_in).stdout(child_out);
    if let Some(kept) = inherit.kept() {
        program.env_clear().envs(kept);
    }
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
        Stderr::Inherit => {
            program.stderr(os::standard_error().map_or_else(Stdio::null, Stdio::from));
        }
        Stderr::Discard => {
            program.stderr(Stdio::null());
        }
        Stderr::Event => {
            let (near, far) = reader()?;
            program.stderr(far);
            our_err = Some(near);
        }
    }
    let (child, group) = os::spawn(&mut program).map_err(|e| {
        let directory = cwd.as_deref().and_then(wrong_directory);
        let why = directory.unwrap_or_else(|| in_words(&e, command, env, cwd.as_deref()));
        failed(&format!("cannot start {command:?}"), &why).caused_by(e)
    })?;
    // The command keeps the child's ends of the pipes; without them gone there is no end of file.
    drop(program);
    let stdin = Arc::new(LineSink::new(Out::own(our_in), usize::MAX));
    let (exited, exit) = watch::channel(None);
    let gone = Arc::new(Once::default());
    runtime::spawn(reap(child, Watch::new(group.clone(), &gone), exited));
    let process = Arc::new(Process { group, exit, gone, ended: Once::default() });
    let output = Output { output, backlog: stdin.backlog(), process: process.clone() };
    Ok(Started { process, stdin, output, stderr: our_err })
}

/// Describes the fault of a working directory, which the system's own words do not name.
fn wrong_directory(cwd: &str) -> Option<String> {
    let said = |why: &dyn std::fmt::Display| Some(format!("the working directory {cwd:?}: {why}"));
    match std::fs::metadata(cwd) {
        Err(error) => said(&error),
        Ok(found) if !found.is_dir() => said(&"not a directory"),
        Ok(_) => os::not_enterable(cwd).and_then(|error| said(&error)),
    }
}

/// Words the system's error, with the parts that it leaves out.
fn in_words(
    error: &std::io::Error,
    command: &str,
    env: &BTreeMap<String, Option<String>>,
    cwd: Option<&str>,
) -> String {
    match command.split_once(char::is_whitespace) {
        Some((program, rest))
            if error.kind() == std::io::ErrorKind::NotFound
                && !os::is_there(command, env, cwd)
                && os::is_there(program, env, cwd) =>
        {
            format!("{error}: the command is the program alone, {program:?}; {rest:?} belongs in \"args\"")
        }
        _ => match os::reason(error, command, env, cwd) {
            Some(why) => format!("{error}: {why}"),
            None => error.to_string(),
        },
    }
}

/// Waits for the child, so that no zombie stays, and until its group is empty: then others may get its number.
async fn reap(mut child: Child, mut watch: Watch, exited: watch::Sender<Option<Exit>>) {
    let exit = match child.wait().await {
        Ok(status) => Exit { text: status.to_string(), code: status.code() },
        Err(error) => Exit { text: error.to_string(), code: None },
    };
    watch.look();
    exited.send_replace(Some(exit));
    watch.until_gone().await;
}

/// Sees when the group of a child is empty. One whose runtime has ended before goes on in the engine's own.
struct Watch {
    group: Option<Group>,
    guard: Option<Guard>,
    /// Set when its number may belong to somebody else.
    gone: Arc<Once>,
}

impl Watch {
    fn new(group: Option<Group>, gone: &Arc<Once>) -> Self {
        let guard = group.as_ref().and_then(Guard::new);
        Self { group, guard, gone: gone.clone() }
    }

    /// Returns true if the group is empty.
    fn look(&mut self) -> bool {
        if !self.gone.is_set() && self.group.as_ref().is_none_or(|group| !group.exists()) {
            self.gone.set();
            self.guard.take().into_iter().for_each(Guard::stand_down);
        }
        self.gone.is_set()
    }

    async fn until_gone(&mut self) {
        let mut pause = Duration::from_millis(10);
        while !self.look() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.look() {
            let mut rest = Self { group: self.group.clone(), guard: self.guard.take(), gone: self.gone.clone() };
            runtime::own().spawn(async move { rest.until_gone().await });
        }
    }
}

/// The child's output, and what says that reading it is over.
pub(super) struct Output {
    output: Receiver,
    backlog: Arc<Backlog>,
    process: Arc<Process>,
}

impl Output {
    /// Reads to the end, at most until the child has been ended: a process that left the group may hold the pipe. Says how
    /// the child ended, if it did so unasked, and tells the peer its exit code.
    pub(super) async fn read(self, peer: &Arc<Peer>, limits: Limits) -> Option<String> {
        let (mut lines, mut hearing) = (Lines::new(limits.max_message_bytes), Hearing::new(limits));
        loop {
            let readable = async {
                // Answers that it asks for and does not read must not pile up.
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
            let read = match lines.fill(Nonblocking(&self.output)) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            };
            peer.cork();
            hearing.hear(&mut lines, peer);
            peer.uncork();
            give_way(read).await;
        }
        hearing.hear_rest(&mut lines, peer);
        // The exit status usually follows at once and says more than the end of output.
        let mut exit = self.process.exit.clone();
        let status = tokio::time::timeout(Duration::from_millis(200), exit.wait_for(Option::is_some)).await;
        Some(match status {
            Ok(Ok(exit)) => {
                peer.handle(Input::Exited(exit.as_ref().and_then(|exit| exit.code)));
                let status = exit.as_ref().map_or("unknown status", |exit| &exit.text);
                format!("the server ended ({status})")
            }
            _ => "the server closed its output".to_owned(),
        })
    }
}

struct Nonblocking<'a>(&'a Receiver);

impl Read for Nonblocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.try_read(buffer)
    }
}

pub(super) async fn read_stderr(reader: Receiver, events: Arc<dyn Events>, process: Arc<Process>) {
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
        let read = match lines.fill(Nonblocking(&reader)) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        while let Some(line) = lines.next() {
            match line {
                Line::Frame(text) => heard(&*events, &String::from_utf8_lossy(&text)),
                Line::TooLong(_) => heard(&*events, "(a line longer than 64 KiB was left out)"),
            }
        }
        give_way(read).await;
    }
    if let Some(Line::Frame(text)) = lines.rest() {
        heard(&*events, &String::from_utf8_lossy(&text));
    }
}

/// Lets others go on after so many bytes: a pipe that is always full is always readable, and timers and signals would wait
/// for as long as it is.
async fn give_way(read: usize) {
    const MUCH: usize = 4 << 10;
    if read < MUCH { tokio::task::consume_budget().await } else { tokio::task::yield_now().await }
}

/// Reading goes on even when the user's function panics, or the child would wait for ever.
fn heard(events: &dyn Events, line: &str) {
    report::guarded("what hears of standard error", || events.stderr(line));
}

impl Process {
    /// Ends it, after its input was closed, with all of its group. Each step may take `grace`.
    pub(super) async fn end(&self, grace: Duration) {
        if let Some(group) = self.group.as_ref().filter(|_| !self.ended.is_set()) {
            self.end_group(group, grace).await;
        }
        self.ended.set();
    }

    async fn end_group(&self, group: &Group, grace: Duration) {
        // A good server leaves by itself.
        let mut exit = self.exit.clone();
        let left = tokio::time::timeout(grace, exit.wait_for(Option::is_some)).await.is_ok();
        if left && !self.is_there(group) {
            return;
        }
        if group.ask_to_end() && self.is_gone(group, grace).await {
            return;
        }
        group.kill();
        let _ = tokio::time::timeout(grace, exit.wait_for(Option::is_some)).await;
    }

    /// Returns true if somebody of the group is left. Nobody else is asked: the number may be another's after that.
    fn is_there(&self, group: &Group) -> bool {
        !self.gone.is_set() && group.exists()
    }

    /// Grandchildren are not ours to wait for, so the group is looked at until it is empty.
    async fn is_gone(&self, group: &Group, patience: Duration) -> bool {
        let end = tokio::time::Instant::now() + patience;
        while self.is_there(group) {
            if tokio::time::Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_number_that_another_has_now_is_not_signalled() {
        let mut stranger = os::command("sleep", &BTreeMap::new(), None);
        let (mut stranger, group) = os::spawn(stranger.arg("600").kill_on_drop(true)).expect("sleep");
        let (_exited, exit) = watch::channel(Some(Exit { text: "exit status: 0".to_owned(), code: Some(0) }));
        let gone = Arc::new(Once::default());
        gone.set();
        let process = Process { group, exit, gone, ended: Once::default() };
        process.end(Duration::from_millis(50)).await;
        assert!(process.ended.is_set());
        assert!(stranger.try_wait().expect("a child").is_none(), "it goes on");
    }
}
