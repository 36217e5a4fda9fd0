//! A process among others that are one server: what it does in the background with the store that they share.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::runtime;
use crate::call::rounds::Sealer;
use crate::error::Result;
use crate::protocol::{Input, Kind};
use crate::random;
use crate::server::{Server, ServerShared};
use crate::signal::Signal;
use crate::store::redis::{AT_ONCE, DEADLINE, Follower, Redis};
use crate::store::ring::{REFRESH, Ring};
use crate::store::{Change, Outbox, StoreOptions, VARIABLE};

/// Time between two attempts to reach a store, at least.
const RETRY: Duration = Duration::from_millis(100);

/// The tasks of this process. They end when the last use of the server does.
pub(crate) struct Node {
    tasks: [JoinHandle<()>; 2],
    publishes: Mutex<Option<JoinHandle<()>>>,
    over: Arc<Signal>,
    outbox: Arc<Outbox>,
    ready: Arc<[Signal; 2]>,
}

impl Node {
    /// Joins the other processes, if the server has a store, and waits for that as long as for any answer of a store: one
    /// that does not answer is tried again in the background.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for an address in the environment that is none; no randomness.
    pub(super) async fn join(server: &Server) -> Result<Option<Arc<Self>>> {
        let options = server.options();
        let store = match options.store {
            Some(store) => Some(store),
            None => StoreOptions::from_environment()?
                .map(|store| store.check(&format!("environment variable {VARIABLE}")).map(|()| store))
                .transpose()?,
        };
        let Some(store) = store else { return Ok(None) };
        let node = {
            let mut slot = server.shared.node.lock().unwrap_or_else(PoisonError::into_inner);
            match slot.upgrade().and_then(|node| node.downcast::<Self>().ok()) {
                Some(node) => node,
                None => {
                    let redis = Arc::new(Redis::new(&store, &options.name)?);
                    let node = Arc::new(Self::begin(server, &redis)?);
                    *slot = Arc::downgrade(&node) as Weak<dyn Any + Send + Sync>;
                    node
                }
            }
        };
        let ready = async {
            for signal in &*node.ready {
                signal.wait().await;
            }
        };
        // Too late: it comes later.
        let _ = tokio::time::timeout(DEADLINE, ready).await;
        Ok(Some(node))
    }

    fn begin(server: &Server, store: &Arc<Redis>) -> Result<Self> {
        let id = random::new_id()?;
        let (outbox, over, ready) = (server.shared.outbox.clone(), Arc::new(Signal::default()), Arc::default());
        outbox.open(true);
        // Not on a runtime of the program, which may stand still, or end.
        let runtime = runtime::own();
        let shared = Arc::downgrade(&server.shared);
        let keys = runtime.spawn(keep_keys(store.clone(), shared.clone(), Arc::clone(&ready)));
        let hears = runtime.spawn(hear(store.follow(id.clone()), shared, Arc::clone(&ready)));
        let publishes = runtime.spawn(publish(store.clone(), id, outbox.clone(), over.clone()));
        let publishes = Mutex::new(Some(publishes));
        Ok(Self { tasks: [keys, hears], publishes, over, outbox, ready })
    }

    /// One use of the server ends. With the last one the changes that wait are told, if the store takes them now.
    pub(super) async fn leave(self: Arc<Self>) {
        let Some(node) = Arc::into_inner(self) else { return };
        node.over.set();
        let publishes = node.publishes.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(publishes) = publishes {
            let _ = tokio::time::timeout(DEADLINE * 2, publishes).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.over.set();
        self.tasks.iter().for_each(JoinHandle::abort);
        self.outbox.open(false);
    }
}

fn sealer(shared: &Weak<ServerShared>) -> Option<Arc<Sealer>> {
    let shared = shared.upgrade()?;
    let states = shared.router.states.read().unwrap_or_else(PoisonError::into_inner);
    states.find()
}

/// Has the keys of request states from the store, for as long as the server is there.
async fn keep_keys(store: Arc<Redis>, shared: Weak<ServerShared>, ready: Arc<[Signal; 2]>) {
    let mut ring = Ring::default();
    while let Some(sealer) = sealer(&shared) {
        let Some(ttl) = sealer.shares() else {
            ready[0].set();
            return;
        };
        let asked = store.ring(&ring, ttl.saturating_mul(1000)).await;
        let pause = match asked {
            Ok((all, now)) => {
                ring = all;
                sealer.share(ring.secrets(now), Some(now / 1000));
                ready[0].set();
                Duration::from_millis(REFRESH)
            }
            Err(_) => {
                if ring.secrets(0).next().is_none() {
                    sealer.share(std::iter::empty(), None);
                }
                store.pause().unwrap_or_default().max(RETRY)
            }
        };
        drop(sealer);
        tokio::time::sleep(pause).await;
    }
}

/// Tells the clients of this process what has changed in others.
async fn hear(mut follower: Follower, shared: Weak<ServerShared>, ready: Arc<[Signal; 2]>) {
    let mut missed = false;
    loop {
        let heard = match follower.begin().await {
            Ok(()) => {
                ready[1].set();
                follower.next().await
            }
            Err(trouble) => Err(trouble),
        };
        let Some(shared) = shared.upgrade() else { return };
        match heard {
            Ok(changes) => {
                // Until there was a place in the log, anything may have happened.
                if std::mem::take(&mut missed) {
                    tell(&shared, &Change::All);
                }
                changes.iter().for_each(|change| tell(&shared, change));
            }
            Err(_) => {
                missed |= !ready[1].is_set();
                drop(shared);
                tokio::time::sleep(follower.pause().max(RETRY)).await;
            }
        }
    }
}

fn tell(shared: &ServerShared, change: &Change) {
    let changed = |kind: Kind| shared.links.tell(|| Input::Changed(kind));
    match change {
        Change::List(kind) => drop(Kind::parse(kind).map(changed)),
        Change::Resource(uri) => shared.links.tell(|| Input::Updated(uri.clone())),
        Change::All => {
            Kind::ALL.into_iter().for_each(changed);
            shared.links.tell(|| Input::Missed);
        }
    }
}

/// Tells other processes what has changed in this one.
async fn publish(store: Arc<Redis>, id: Arc<str>, outbox: Arc<Outbox>, over: Arc<Signal>) {
    loop {
        let is_over = over.unless(outbox.wait()).await.is_none();
        let changes = outbox.take(AT_ONCE);
        if changes.is_empty() && is_over {
            return;
        }
        if store.publish(&id, &changes).await.is_err() {
            if is_over {
                return;
            }
            outbox.give_back(changes);
            over.unless(tokio::time::sleep(store.pause().unwrap_or_default().max(RETRY))).await;
        }
    }
}
