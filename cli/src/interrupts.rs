//! Ctrl-C: the first one cancels what is going on, the second one quits.

use std::future::Future;

use tokio::sync::watch;

/// SIGTERM does what Ctrl-C does, so that a program that was started ends as well.
#[cfg(unix)]
async fn terminated(sender: watch::Sender<u32>) {
    let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else { return };
    while signal.recv().await.is_some() && !sender.is_closed() {
        sender.send_modify(|count| *count += 1);
    }
}

/// Counts Ctrl-C from when it is made.
#[derive(Clone)]
pub(crate) struct Interrupts(watch::Receiver<u32>);

impl Interrupts {
    /// Takes Ctrl-C over from the system. Needs a runtime.
    pub(crate) fn new() -> Self {
        let (sender, receiver) = watch::channel(0);
        #[cfg(unix)]
        let ended = sender.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && !sender.is_closed() {
                sender.send_modify(|count| *count += 1);
            }
        });
        #[cfg(unix)]
        tokio::spawn(terminated(ended));
        Self(receiver)
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
