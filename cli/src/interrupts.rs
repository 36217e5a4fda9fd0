//! Ctrl-C: the first one cancels what is going on, the second one quits.

use std::future::Future;

use tokio::sync::watch;

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
