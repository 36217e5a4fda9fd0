//! Signals that end a server, passed on to the program that it is.

/// Signals that end a program.
#[cfg(unix)]
pub(super) struct Signals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(|kind| signal(kind).ok()))
    }

    /// The next one that the child has not got by itself.
    pub(super) async fn next(&mut self) -> rustix::process::Signal {
        let [interrupt, terminate, hangup] = &mut self.0;
        loop {
            tokio::select! {
                // A terminal tells the child, too.
                _ = told(interrupt) => if !has_terminal() { return rustix::process::Signal::INT },
                _ = told(terminate) => return rustix::process::Signal::TERM,
                _ = told(hangup) => return rustix::process::Signal::HUP,
            }
        }
    }
}

#[cfg(unix)]
fn has_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stdin().is_terminal() || std::io::stderr().is_terminal()
}

#[cfg(unix)]
pub(super) async fn told(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
pub(super) fn pass(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ = rustix::process::kill_process(id, signal);
    }
}

/// Stand-in for signals: consoles tell all programs that belong to them.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(not(unix))]
pub(super) fn pass(_child: &tokio::process::Child, _signal: ()) {}
