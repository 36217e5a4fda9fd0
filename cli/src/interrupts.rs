//! Ctrl-C: the first one cancels what is going on, the second one quits.

use std::future::Future;

use tokio::sync::watch;

/// Counts SIGTERM as well.
#[cfg(unix)]
fn terminated(mut interrupted: watch::Receiver<u32>) -> watch::Receiver<u32> {
    let (sender, receiver) = watch::channel(0);
    tokio::spawn(async move {
        let kind = tokio::signal::unix::SignalKind::terminate();
        let Ok(mut signal) = tokio::signal::unix::signal(kind) else { return };
        loop {
            tokio::select! {
                seen = interrupted.changed() => if seen.is_err() { return },
                seen = signal.recv() => if seen.is_none() { return },
                () = sender.closed() => return,
            }
            sender.send_modify(|count| *count += 1);
        }
    });
    receiver
}

/// Counts Ctrl-C from when it is made.
#[derive(Clone)]
pub(crate) struct Interrupts(watch::Receiver<u32>);

impl Interrupts {
    /// Takes Ctrl-C over from the system. Needs a runtime.
    pub(crate) fn new() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && !sender.is_closed() {
                sender.send_modify(|count| *count += 1);
            }
        });
        Self(receiver)
    }

    /// The same, and SIGTERM does what Ctrl-C does, so that a program that was started ends as well.
    pub(crate) fn with_termination() -> Self {
        let own = Self::new();
        #[cfg(unix)]
        return Self(terminated(own.0));
        #[cfg(not(unix))]
        own
    }

    /// Waits until there were so many.
    async fn reached(&self, count: u32) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|seen| *seen >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Gives the outcome, or `None` after the first Ctrl-C: then the future was dropped.
    pub(crate) async fn first<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reached(1) => None,
            outcome = work => Some(outcome),
        }
    }

    /// Gives the outcome, or `None` after the second Ctrl-C.
    pub(crate) async fn second<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reached(2) => None,
            outcome = work => Some(outcome),
        }
    }
}
