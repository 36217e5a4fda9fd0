//! Answers that are held back, so that a host which runs a batch of handlers one after the other answers them with one
//! write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Bridge, lock};
use crate::call::{Context, Link};

/// A batch of calls that takes longer than this is no longer answered all at once.
const MAX_CORKED: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Cork {
    held: Option<Held>,
    /// A task looks whether it is time.
    #[cfg(feature = "runtime")]
    watched: bool,
}

/// The links whose answers the host holds back, and until when at most.
struct Held {
    until: Instant,
    links: Vec<Arc<dyn Link>>,
}

impl Bridge {
    /// Holds answers back until [`uncork`](Self::uncork), for a millisecond or two at most.
    pub fn cork(&self) {
        let until = Instant::now() + MAX_CORKED;
        lock(&self.0.cork).held.get_or_insert(Held { until, links: Vec::new() });
    }

    /// Sends the answers that were held back.
    pub fn uncork(&self) {
        let held = lock(&self.0.cork).held.take();
        release(held);
    }

    /// Corks the link of an answer, if answers are held back at present.
    pub(super) fn hold(&self, context: &Context) {
        let mut cork = lock(&self.0.cork);
        let Some(Held { until, links }) = cork.held.as_mut() else {
            return;
        };
        if Instant::now() > *until {
            drop(cork);
            return self.uncork();
        }
        let link = context.link();
        if !links.iter().any(|known| Arc::ptr_eq(known, link)) {
            links.push(link.clone());
            // Under the lock, or an `uncork` on another thread could come before it.
            link.cork();
            #[cfg(feature = "runtime")]
            if !std::mem::replace(&mut cork.watched, true) {
                self.watch();
            }
        }
    }

    /// Sends what is held back when its time is over, whatever the host is busy with. One task for as long as it finds
    /// something: a timer for each batch would cost as much as the batch saves.
    #[cfg(feature = "runtime")]
    fn watch(&self) {
        let shared = Arc::downgrade(&self.0);
        crate::driver::runtime::spawn(async move {
            loop {
                tokio::time::sleep(MAX_CORKED).await;
                let Some(shared) = shared.upgrade() else { return };
                let mut cork = lock(&shared.cork);
                match &cork.held {
                    None => {
                        cork.watched = false;
                        return;
                    }
                    Some(held) if held.until <= Instant::now() => {
                        let held = cork.held.take();
                        drop(cork);
                        release(held);
                    }
                    Some(_) => {}
                }
            }
        });
    }
}

fn release(held: Option<Held>) {
    held.into_iter().flat_map(|held| held.links).for_each(|link| link.uncork());
}
