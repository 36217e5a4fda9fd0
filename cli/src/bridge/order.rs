//! The order of a session's messages: each goes on after those that came before it, also while the server behind is still
//! being connected.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Notifications of one session that may wait for their turns. Requests are bounded by the server of the bridge.
const WAITING: usize = 256;

/// Places of the messages of one session.
#[derive(Clone)]
pub(super) struct Order {
    turns: Arc<Semaphore>,
    notifications: Arc<AtomicUsize>,
}

impl Default for Order {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(1)), notifications: Arc::default() }
    }
}

/// The right to go on. The next message has it once this is dropped.
pub(super) type Turn = Option<OwnedSemaphorePermit>;

/// A message that stands in line.
pub(super) struct Standing {
    turn: Pin<Box<dyn Future<Output = Turn> + Send>>,
    come: Option<Turn>,
    _counted: Option<Counted>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Order {
    /// Stands in line behind all that came before.
    pub(super) fn request(&self) -> Standing {
        self.stand(None)
    }

    /// The same for a notification. `None`: too many wait.
    pub(super) fn notification(&self) -> Option<Standing> {
        let counted = Counted(self.notifications.clone());
        (self.notifications.fetch_add(1, Ordering::AcqRel) < WAITING).then(|| self.stand(Some(counted)))
    }

    /// Returns true if a message has its turn.
    pub(super) fn is_taken(&self) -> bool {
        self.turns.available_permits() == 0
    }

    fn stand(&self, counted: Option<Counted>) -> Standing {
        let turns = self.turns.clone();
        // It is never closed.
        let mut turn: Pin<Box<dyn Future<Output = Turn> + Send>> =
            Box::pin(async move { turns.acquire_owned().await.ok() });
        // The first look takes the place in line.
        let come = match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(come) => Some(come),
            Poll::Pending => None,
        };
        Standing { turn, come, _counted: counted }
    }
}

impl Standing {
    /// Waits for the turn.
    pub(super) async fn turn(mut self) -> Turn {
        match self.come.take() {
            Some(come) => come,
            None => self.turn.as_mut().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_go_on_in_the_order_in_which_they_came() {
        let order = Order::default();
        let (first, second, third) = (order.request(), order.notification().expect("room"), order.request());
        let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
        for (number, standing) in [(3, third), (2, second), (1, first)] {
            let sender = sender.clone();
            tokio::spawn(async move {
                let turn = standing.turn().await;
                tokio::task::yield_now().await;
                sender.send(number).expect("a reader");
                drop(turn);
            });
            tokio::task::yield_now().await;
        }
        assert_eq!([heard.recv().await, heard.recv().await, heard.recv().await], [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn notifications_that_wait_are_bounded() {
        let order = Order::default();
        let mut all: Vec<_> = (0..WAITING).map(|_| order.notification().expect("room")).collect();
        assert!(order.notification().is_none());
        all.pop();
        assert!(order.notification().is_some());
    }
}
