//! A server's process: lines both ways, how it ends, what it leaves behind.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin};
use tokio::sync::{Notify, mpsc, watch};
use tricorn::client::Target;

use super::system;
use crate::targets::{self, Elsewhere};

/// The longest line that is read of a server, in bytes.
const LONGEST: usize = 8 << 20;
/// Lines of standard error that are kept.
const KEPT: usize = 50;
const LONGEST_KEPT: usize = 2000;
/// Lines of standard output that wait to be looked at.
const WAITING: usize = 4;
/// Time for a server to read what is written to it.
const READS: Duration = Duration::from_secs(5);
/// Time from a request to end to the end; clients kill after two seconds, and a machine may be busy.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A line of standard output.
pub(super) enum Line {
    Whole(Vec<u8>),
    /// The beginning of one that is longer than lines may be.
    Cut(Vec<u8>),
}

/// Use of standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    All,
    /// Nothing, until [`Program::drain`].
    Nothing,
}

/// A running server.
pub(super) struct Program {
    pub(super) pid: u32,
    began: Instant,
    stdin: Option<ChildStdin>,
    stderr: Option<ChildStderr>,
    said: Arc<Said>,
    status: watch::Receiver<Option<ExitStatus>>,
    killed: Arc<Notify>,
}

/// The last lines of standard error.
#[derive(Default)]
pub(super) struct Said {
    /// URLs that any line names.
    pub(super) elsewhere: Elsewhere,
    lines: Mutex<VecDeque<String>>,
    /// The first URL of this machine in any of them.
    url: Mutex<Option<String>>,
    /// Bytes of standard error.
    bytes: AtomicUsize,
    told: Notify,
}

impl Program {
    /// Starts a server, in a process group of its own.
    pub(super) fn start(target: &Target, reads: Reads) -> std::io::Result<(Self, mpsc::Receiver<Line>)> {
        let mut program = targets::command_of(target).ok_or_else(|| std::io::Error::other("no command"))?;
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        program.process_group(0);
        let began = Instant::now();
        let mut child = program.kill_on_drop(true).spawn()?;
        let pid = child.id().unwrap_or_default();
        system::STARTED.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, lines) = mpsc::channel(WAITING);
        let said = Arc::<Said>::default();
        if let Some(stdout) = stdout {
            tokio::spawn(read(stdout, sender, said.clone()));
        }
        let (ended, status) = watch::channel(None);
        let killed = Arc::<Notify>::default();
        tokio::spawn(wait(child, ended, killed.clone()));
        let mut program = Self { pid, began, stdin, stderr, said, status, killed };
        if reads == Reads::All {
            program.drain();
        }
        Ok((program, lines))
    }

    /// Reads standard error from now on.
    pub(super) fn drain(&mut self) {
        if let Some(stderr) = self.stderr.take() {
            tokio::spawn(keep(stderr, self.said.clone()));
        }
    }

    /// Bytes of its standard error that were read.
    pub(super) fn logged(&self) -> usize {
        self.said.bytes.load(Ordering::Relaxed)
    }

    /// Time since its start, without that in which it waited for a core: that is the machine's affair.
    pub(super) fn took(&self) -> Duration {
        self.began.elapsed().saturating_sub(system::waited(self.pid, false))
    }

    /// Writes a line. False: nobody reads it.
    pub(super) async fn write(&mut self, line: &[u8]) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let writing = async {
            stdin.write_all(line).await?;
            stdin.write_all(b"\n").await?;
            stdin.flush().await
        };
        matches!(tokio::time::timeout(READS, writing).await, Ok(Ok(())))
    }

    /// Ends its standard input.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end.
    pub(super) async fn ended(&self, limit: Duration) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        let ended = tokio::time::timeout(limit, status.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|status| *status)
    }

    pub(super) fn is_running(&self) -> bool {
        self.status.borrow().is_none()
    }

    pub(super) fn said(&self) -> Arc<Said> {
        self.said.clone()
    }

    /// The last line of its standard error that says something, after a moment for what is under way.
    pub(super) async fn last_words(&self) -> Option<String> {
        let _ = tokio::time::timeout(Duration::from_millis(100), self.said.told.notified()).await;
        let lines = self.said.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }

    /// The first URL of this machine that it names in its output.
    pub(super) async fn url(&self, limit: Duration) -> Option<String> {
        let found = || self.said.url.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let waiting = async {
            let mut status = self.status.clone();
            loop {
                if let Some(url) = found() {
                    return Some(url);
                }
                tokio::select! {
                    () = self.said.told.notified() => {}
                    _ = status.wait_for(Option::is_some) => {
                        let _ = tokio::time::timeout(Duration::from_millis(100), self.said.told.notified()).await;
                        return found();
                    }
                }
            }
        };
        tokio::time::timeout(limit, waiting).await.ok().flatten()
    }

    /// Tells it to end. True if it did so in time.
    pub(super) async fn terminate(&self, limit: Duration) -> bool {
        system::terminate(self.pid);
        self.ended(limit).await.is_some()
    }

    /// Ends it and what it has started, unless that has left its group.
    pub(super) async fn kill(&mut self) {
        self.close();
        if self.is_running() {
            system::kill_group(self.pid);
            self.killed.notify_one();
            self.ended(GRACE).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.is_running() {
            system::kill_group(self.pid);
            self.killed.notify_one();
        }
    }
}

async fn wait(mut child: Child, ended: watch::Sender<Option<ExitStatus>>, killed: Arc<Notify>) {
    let pid = child.id();
    let outcome = tokio::select! {
        outcome = child.wait() => outcome,
        () = killed.notified() => child.kill().await.and_then(|()| child.try_wait().map(Option::unwrap_or_default)),
    };
    if let Ok(status) = outcome {
        ended.send_replace(Some(status));
        if let Some(pid) = pid {
            system::STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        }
    }
}

async fn read(stdout: impl AsyncRead + Unpin, sender: mpsc::Sender<Line>, said: Arc<Said>) {
    let mut reader = BufReader::new(stdout);
    while let Some(line) = next(&mut reader, LONGEST, |_| ()).await {
        if let Line::Whole(bytes) = &line {
            said.look(&String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_KEPT)]));
        }
        if sender.send(line).await.is_err() {
            // Nobody looks any more, and the server must not wait for that.
            let mut rest = tokio::io::sink();
            let _ = tokio::io::copy_buf(&mut reader, &mut rest).await;
            return;
        }
    }
}

async fn keep(stderr: ChildStderr, said: Arc<Said>) {
    let mut reader = BufReader::new(stderr);
    let count = |bytes| {
        said.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    while let Some(Line::Whole(line) | Line::Cut(line)) = next(&mut reader, LONGEST_KEPT, count).await {
        let line = String::from_utf8_lossy(&line).into_owned();
        said.look(&line);
        let mut lines = said.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
        drop(lines);
        said.told.notify_one();
    }
}

impl Said {
    /// Remembers the first URL.
    fn look(&self, line: &str) {
        self.elsewhere.look(line);
        let mut known = self.url.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = crate::targets::own_url(line);
        }
        drop(known);
        self.told.notify_one();
    }
}

/// The next line without its end; of one that is too long the beginning. `count` is told of all bytes that are read.
async fn next(reader: &mut (impl AsyncBufReadExt + Unpin), longest: usize, count: impl Fn(usize)) -> Option<Line> {
    let (mut line, mut is_cut) = (Vec::new(), false);
    loop {
        let piece = reader.fill_buf().await.ok()?;
        if piece.is_empty() {
            return (!line.is_empty()).then_some(if is_cut { Line::Cut(line) } else { Line::Whole(line) });
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let part = &piece[..end.unwrap_or(piece.len())];
        let room = longest - line.len();
        line.extend_from_slice(&part[..part.len().min(room)]);
        is_cut |= part.len() > room;
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        count(used);
        if end.is_some() {
            return Some(if is_cut { Line::Cut(line) } else { Line::Whole(line) });
        }
    }
}
