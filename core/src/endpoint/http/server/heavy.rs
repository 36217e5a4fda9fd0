//! Long messages are decoded and checked one after the other, beside the requests of others.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::holder::Holder;
use crate::driver::runtime;

/// A message that is longer takes a while to be decoded and checked, in bytes.
const HEAVY: usize = 128 << 10;

/// Number of long messages at once: one core is left to short ones.
static AT_ONCE: LazyLock<usize> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.saturating_sub(1).max(1)
});
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(*AT_ONCE));
/// No holder has more messages waiting for a turn than there are turns: the others come after those, and not after all
/// that it has sent. Holders stand here while they have any.
static OF_HOLDERS: LazyLock<Mutex<HashMap<Holder, Arc<Semaphore>>>> = LazyLock::new(Mutex::default);

/// The turn of a message.
pub(super) struct Turn {
    _turn: SemaphorePermit<'static>,
    _own: Option<Place>,
}

/// The place of one of a holder's messages among those that wait.
struct Place {
    holder: Holder,
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    async fn of(holder: Holder) -> Option<Self> {
        if holder == Holder::Unknown {
            return None;
        }
        let places = holders().entry(holder.clone()).or_insert_with(|| Arc::new(Semaphore::new(*AT_ONCE))).clone();
        // It is never closed.
        let mut place = Self { holder, permit: None };
        place.permit = places.acquire_owned().await.ok();
        Some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut all = holders();
        // Nobody else waits or works.
        if all.get(&self.holder).is_some_and(|places| Arc::strong_count(places) == 1) {
            all.remove(&self.holder);
            let room = all.len() * 2;
            if room * 4 < all.capacity() {
                all.shrink_to(room);
            }
        }
    }
}

fn holders() -> MutexGuard<'static, HashMap<Holder, Arc<Semaphore>>> {
    OF_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of a message with so many bytes to be worked on. A short one needs none.
pub(super) async fn turn(bytes: usize, holder: impl FnOnce() -> Holder) -> Option<Turn> {
    if bytes <= HEAVY {
        return None;
    }
    let own = Place::of(holder()).await;
    // It is never closed.
    Some(Turn { _turn: TURNS.acquire().await.ok()?, _own: own })
}

/// Works on a message with so many bytes. Where the engine's one thread would do it, others go on meanwhile.
pub(super) fn at_length<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= HEAVY { work() } else { runtime::beside_others(work) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[tokio::test]
    async fn many_messages_of_one_hold_up_another_only_for_a_turn() {
        let holder = |last: u8| Holder::Address(Ipv4Addr::new(192, 0, 2, last).into());
        let (many, one) = (*AT_ONCE * 20, HEAVY + 1);
        let mut held = Vec::new();
        for _ in 0..*AT_ONCE {
            held.push(turn(one, || holder(1)).await);
        }
        let order = Arc::new(Mutex::new(Vec::new()));
        let waits = |last: u8| {
            let order = order.clone();
            tokio::spawn(async move {
                let turn = turn(one, || holder(last)).await;
                order.lock().expect("a list").push(last);
                tokio::time::sleep(Duration::from_millis(1)).await;
                drop(turn);
            })
        };
        let mut all: Vec<_> = (0..many).map(|_| waits(1)).collect();
        tokio::task::yield_now().await;
        all.push(waits(2));
        tokio::task::yield_now().await;
        held.clear();
        for task in all {
            task.await.expect("done");
        }
        let at = order.lock().expect("a list").iter().position(|last| *last == 2).expect("served");
        assert!(at <= 2 * *AT_ONCE, "{at} of {many} came before");
        assert!(holders().keys().all(|known| *known != holder(1) && *known != holder(2)), "nothing is kept");
    }
}
