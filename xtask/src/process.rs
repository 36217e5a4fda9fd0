//! Child processes: each in a process group of its own, with a deadline, and gone when the task is gone.
//!
//! Invariant: no process started here outlives this program, however it ends. A guard process (this program
//! again) holds the list of groups and kills what is left when its pipe closes.

use crate::report;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between asking a group to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// More output than this is written to the log only.
const KEEP_BYTES: usize = 32 << 20;

/// Exit status and output of a process.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The exit status; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Done {
    pub(crate) fn ok(&self) -> bool {
        self.code == Some(0) && !self.timed_out
    }

    /// Everything it printed, standard output first.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// One line that says why it failed: its own last words, if it had any.
    pub(crate) fn why(&self) -> String {
        let last = |s: &str| s.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned);
        let said = self.stderr.lines().map(str::trim).rfind(|l| l.starts_with("error")).map(str::to_owned);
        let said = said.or_else(|| last(&self.stderr)).or_else(|| last(&self.stdout)).unwrap_or_default();
        let said: String = said.chars().take(300).collect();
        let how = match (self.timed_out, self.code) {
            (true, _) => format!("no end after {} s", self.took.as_secs()),
            (_, Some(code)) => format!("exit status {code}"),
            (_, None) => "ended by a signal".to_owned(),
        };
        if said.is_empty() { how } else { format!("{how}: {said}") }
    }
}

enum Event {
    Line { stderr: bool, text: String },
    Exited(Option<ExitStatus>),
}

/// Runs to the end or to the deadline, then ends whatever is left of its group.
///
/// `log` receives all output. `seen` is called with each line as it arrives.
pub(crate) fn run_with(
    mut command: Command,
    limit: Duration,
    log: Option<&Path>,
    mut seen: impl FnMut(&str),
) -> Result<Done> {
    let started = Instant::now();
    let mut log = log.map(open_log).transpose()?;
    if let Some(file) = &mut log {
        let _ = writeln!(file, "$ {}", show(&command));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (sender, events) = channel();
    let group = spawn(command, &sender)?;
    drop(sender);
    let mut done = Done::default();
    let mut status = None;
    let mut end = started + limit;
    let mut killed = false;
    loop {
        match events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Event::Line { stderr, text }) => {
                if let Some(file) = &mut log {
                    let _ = file.write_all(text.as_bytes());
                }
                seen(text.trim_end());
                let into = if stderr { &mut done.stderr } else { &mut done.stdout };
                if into.len() < KEEP_BYTES {
                    into.push_str(&text);
                }
            }
            Ok(Event::Exited(s)) => {
                status = Some(s);
                // A grandchild may still hold the pipes: it has this long to finish.
                end = end.min(Instant::now() + GRACE);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                done.timed_out |= status.is_none() && !killed;
                if killed {
                    group.signal(Signal::KILL);
                    end = Instant::now() + GRACE * 5;
                    if status.is_some() {
                        break;
                    }
                } else {
                    group.signal(if status.is_some() { Signal::KILL } else { Signal::TERM });
                    end = Instant::now() + GRACE;
                }
                killed = true;
            }
        }
    }
    drop(group);
    done.code = status.flatten().and_then(|s| s.code());
    done.took = started.elapsed();
    Ok(done)
}

/// [`run_with`] whose lines feed the progress line.
pub(crate) fn run(command: Command, limit: Duration, log: Option<&Path>) -> Result<Done> {
    run_with(command, limit, log, report::detail)
}

/// Runs a step that has to succeed.
pub(crate) fn must(what: &str, command: Command, limit: Duration, log: &Path) -> Result<Done> {
    let done = run(command, limit, Some(log))?;
    if !done.ok() {
        bail!("{what}: {} (all of it: {})", done.why(), crate::place::short(log));
    }
    Ok(done)
}

/// The command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    parts.map(|p| quote(&p.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// POSIX quoting of one word.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn open_log(path: &Path) -> Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Starts the command in a new group; its lines and its end arrive as events.
fn spawn(mut command: Command, events: &Sender<Event>) -> Result<Group> {
    command.process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let group = Group::new(&child)?;
    if let Some(out) = child.stdout.take() {
        lines(out, false, events.clone());
    }
    if let Some(err) = child.stderr.take() {
        lines(err, true, events.clone());
    }
    let events = events.clone();
    thread::spawn(move || {
        let _ = events.send(Event::Exited(child.wait().ok()));
    });
    Ok(group)
}

fn lines(from: impl Read + Send + 'static, stderr: bool, events: Sender<Event>) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut raw = Vec::new();
        while matches!(from.read_until(b'\n', &mut raw), Ok(n) if n > 0) {
            let text = String::from_utf8_lossy(&raw).into_owned();
            if events.send(Event::Line { stderr, text }).is_err() {
                break;
            }
            raw.clear();
        }
    });
}

/// A process group that is killed when this is dropped.
struct Group(Pid);

impl Group {
    fn new(leader: &Child) -> Result<Self> {
        let pid = i32::try_from(leader.id()).ok().and_then(Pid::from_raw).context("no process id")?;
        tell_guard('+', pid);
        Ok(Self(pid))
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        tell_guard('-', self.0);
    }
}

/// A server that runs while it is needed.
pub(crate) struct Background {
    group: Group,
    events: Receiver<Event>,
    said: String,
    exited: bool,
}

impl Background {
    /// Starts a server and waits until a line of its stderr or stdout gives an answer through `ready`.
    pub(crate) fn start<T>(
        mut command: Command,
        limit: Duration,
        ready: impl Fn(&str) -> Option<T>,
    ) -> Result<(Self, T)> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = show(&command);
        let (sender, events) = channel();
        let group = spawn(command, &sender)?;
        let mut server = Self { group, events, said: String::new(), exited: false };
        let mut end = Instant::now() + limit;
        while let Ok(event) = server.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let Event::Line { text, .. } = event else {
                server.exited = true;
                // Its last words may still be on their way.
                end = end.min(Instant::now() + GRACE);
                continue;
            };
            server.said.push_str(&text);
            if let Some(found) = ready(text.trim()) {
                return Ok((server, found));
            }
        }
        let how = if server.exited { "ended before it was ready" } else { "was not ready in time" };
        let said: Vec<&str> = server.said.lines().rev().take(3).collect();
        bail!("{shown} {how}: {}", said.into_iter().rev().collect::<Vec<_>>().join(" / "))
    }
}

impl Drop for Background {
    /// Asks it to end; its group is killed when it does not.
    fn drop(&mut self) {
        self.group.signal(Signal::TERM);
        let end = Instant::now() + GRACE;
        while !self.exited {
            match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Event::Exited(_)) => self.exited = true,
                Ok(Event::Line { .. }) => {}
                Err(_) => break,
            }
        }
    }
}

fn tell_guard(sign: char, group: Pid) {
    if cfg!(test) {
        return; // the test program is no guard
    }
    static GUARD: OnceLock<Option<Arc<Mutex<ChildStdin>>>> = OnceLock::new();
    let guard = GUARD.get_or_init(|| {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.arg("guard").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Some(Arc::new(Mutex::new(command.spawn().ok()?.stdin?)))
    });
    if let Some(pipe) = guard {
        let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(pipe, "{sign}{}", group.as_raw_nonzero());
    }
}

/// The guard's life: remember the groups until the pipe closes, then end those that are left.
pub(crate) fn guard() {
    let mut groups = BTreeSet::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match (line.get(..1), line.get(1..).and_then(|n| n.parse::<i32>().ok())) {
            (Some("+"), Some(group)) => groups.insert(group),
            (Some("-"), Some(group)) => groups.remove(&group),
            _ => false,
        };
    }
    let left: Vec<Pid> = groups.into_iter().filter_map(Pid::from_raw).collect();
    if left.is_empty() {
        return;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        for group in &left {
            let _ = kill_process_group(*group, signal);
        }
        thread::sleep(GRACE);
    }
}

/// The program on `PATH`, if there is one.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_arrive() {
        let done = run_with(shell("echo one; echo two >&2; exit 3"), Duration::from_secs(20), None, |_| {})
            .expect("the shell starts");
        assert_eq!((done.code, done.timed_out), (Some(3), false));
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("one\n", "two\n"));
        assert_eq!(done.why(), "exit status 3: two");
    }

    #[test]
    fn a_deadline_ends_the_whole_group() {
        // The grandchild ignores TERM and holds the pipe: without the group kill this would last a minute.
        let script = "(trap '' TERM; sleep 60) & echo $!; wait";
        let done = run_with(shell(script), Duration::from_millis(300), None, |_| {}).expect("the shell starts");
        assert!(done.timed_out);
        let pid = done.stdout.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
        let gone = || rustix::process::test_kill_process(pid).is_err();
        let zombie =
            || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).is_ok_and(|s| s.contains(" Z "));
        let end = Instant::now() + Duration::from_secs(10);
        while !gone() && !zombie() {
            assert!(Instant::now() < end, "the grandchild lives on");
            thread::yield_now();
        }
    }

    #[test]
    fn a_server_is_ready_or_says_why_not() {
        let find = |l: &str| l.strip_prefix("ready ").map(str::to_owned);
        let script = "echo 'ready http://127.0.0.1:1/mcp' >&2; exec sleep 60";
        let (server, url) = Background::start(shell(script), Duration::from_secs(20), find).expect("it gets ready");
        assert_eq!(url, "http://127.0.0.1:1/mcp");
        drop(server);
        let error = Background::start(shell("echo no port; exit 1"), Duration::from_secs(20), find).err();
        assert!(error.is_some_and(|e| e.to_string().contains("ended before it was ready: no port")));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("a/b-c"), "a/b-c");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
