//! A process among others that are one server: what it does in the background with the store that they share.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::runtime;
use crate::call::rounds::Sealer;
use crate::call::{Commons, Tasks};
use crate::error::Result;
use crate::protocol::{Input, Kind};
use crate::random;
use crate::server::{Server, ServerShared};
use crate::signal::Signal;
use crate::store::redis::nodes::{BEAT, Number};
use crate::store::redis::{AT_ONCE, Follower, Heard, Redis};
use crate::store::ring::{REFRESH, Ring};
use crate::store::{Change, Outbox, StoreOptions, VARIABLE};

/// Time between two attempts to reach a store, at least.
const RETRY: Duration = Duration::from_millis(100);
/// The longest time between two attempts to write what it does not take.
const LONGEST: Duration = Duration::from_secs(3);
/// Time between two looks at tasks of other processes that somebody waits for.
const LOOK: Duration = Duration::from_secs(2);

/// Sessions of this process, for what other processes say of them.
pub(crate) trait Mailbox: Send + Sync {
    /// The client of this session told another process something, or ended it there.
    fn changed<'a>(&'a self, session: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
    /// A message of the session's client came in at another process.
    fn heard_from_client(&self, session: &str, text: &Bytes);
    /// News of sessions were missed.
    fn missed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Clients here were told of a change under this number before it was in the log: this is for those who were not there
    /// then.
    fn tell_late(&self, change: &Change, number: u64);
    /// Another process has a message for the session's client.
    fn pass_to_client(&self, session: &str, text: &Bytes);
    /// Another process has a note about the stream of an answer. `false`: it is about nothing here. Where nobody else could
    /// know of it, with `is_last`, its sender is told so.
    fn noted(&self, session: &str, text: &Bytes, is_last: bool) -> bool;
}

type Mailboxes = Arc<Mutex<Vec<Weak<dyn Mailbox>>>>;

/// The tasks of this process. They end when the last use of the server does.
pub(crate) struct Node {
    pub(crate) store: Arc<Redis>,
    /// Name of this process, unlike any other's.
    pub(crate) id: Arc<str>,
    pub(crate) number: Arc<Number>,
    /// Place in the log of changes up to which its clients have been told.
    pub(crate) place: Arc<AtomicU64>,
    /// Place of the change that its clients are being told of from the log. 0: none.
    pub(crate) hearing: Arc<AtomicU64>,
    /// Count of the times that clients here were told of a change at once.
    pub(crate) told: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
    /// Access of the server's tasks to those of other processes, for as long as this is one of them.
    _commons: Arc<Commons>,
    /// Tells them of those.
    shared: Weak<ServerShared>,
    publishes: Mutex<Option<JoinHandle<()>>>,
    over: Arc<Signal>,
    outbox: Arc<Outbox>,
    ready: Arc<[Signal; 3]>,
    mailboxes: Mailboxes,
    /// Held while clients here are told of a change, and its place is noted.
    telling: Arc<Mutex<()>>,
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
        let _ = tokio::time::timeout(node.store.deadline(), ready).await;
        Ok(Some(node))
    }

    /// The process that uses this server, if it is one among several.
    #[cfg(feature = "http")]
    pub(crate) fn of(server: &Server) -> Option<Arc<Self>> {
        let node = server.shared.node.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        node.and_then(|node| node.downcast::<Self>().ok())
    }

    /// Adds sessions that hear of other processes for as long as they are there.
    #[cfg(feature = "http")]
    pub(crate) fn attach(&self, mailbox: &Arc<dyn Mailbox>) {
        let mut all = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        let mailbox = Arc::downgrade(mailbox);
        if !all.iter().any(|other| other.ptr_eq(&mailbox)) {
            all.push(mailbox);
        }
    }

    /// Clients here are told of no change for as long as this is held.
    #[cfg(feature = "http")]
    pub(crate) fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A resource may have changed before another process knew who is to hear of it.
    #[cfg(feature = "http")]
    pub(crate) fn may_have_changed(&self, uri: Box<str>) {
        self.outbox.add(|| Change::Resource(uri.into()));
    }

    /// Returns the place in the log of changes up to which clients here have been told.
    #[cfg(feature = "http")]
    pub(crate) fn place(&self) -> u64 {
        self.place.load(Ordering::Acquire)
    }

    fn begin(server: &Server, store: &Arc<Redis>) -> Result<Self> {
        let id = random::new_id()?;
        let (number, place, mailboxes) = (Arc::new(Number::default()), Arc::default(), Mailboxes::default());
        let (telling, hearing) = (Arc::default(), Arc::<AtomicU64>::default());
        let (outbox, over, ready) = (server.shared.outbox.clone(), Arc::new(Signal::default()), Arc::default());
        outbox.open(true);
        // Not on a runtime of the program, which may stand still, or end.
        let shared = Arc::downgrade(&server.shared);
        let keys = runtime::spawn_own(keep_keys(store.clone(), shared.clone(), Arc::clone(&ready)));
        let follower = store.follow(id.clone(), number.clone(), Arc::clone(&place));
        let hears = runtime::spawn_own(hear(
            follower,
            shared.clone(),
            Arc::clone(&ready),
            mailboxes.clone(),
            (Arc::clone(&place), Arc::clone(&hearing), Arc::clone(&telling)),
            outbox.clone(),
        ));
        let beats = runtime::spawn_own(keep_number(
            store.clone(),
            id.clone(),
            number.clone(),
            Arc::clone(&ready),
            shared.clone(),
        ));
        let commons = Arc::new(Commons {
            store: store.clone(),
            node: id.clone(),
            number: number.clone(),
            runtime: runtime::own_or_simulated(),
        });
        server.shared.router.middleware.join(&commons);
        let mut tasks = vec![keys, hears, beats];
        if let Some(all) = server.shared.router.tasks() {
            all.join(&commons);
            tasks.push(runtime::spawn_own(write_tasks(store.clone(), Arc::downgrade(&all))));
            tasks.push(runtime::spawn_own(look_at_tasks(Arc::downgrade(&all))));
            tasks.push(runtime::spawn_own(look_at_news(Arc::downgrade(&all))));
        }
        let own = shared.clone();
        let publishes = runtime::spawn_own(publish(
            store.clone(),
            id.clone(),
            outbox.clone(),
            over.clone(),
            own,
            Arc::clone(&ready),
        ));
        let (publishes, store) = (Mutex::new(Some(publishes)), store.clone());
        let _commons = commons;
        Ok(Self {
            store,
            id,
            number,
            place,
            hearing,
            told: outbox.told(),
            tasks,
            _commons,
            shared,
            publishes,
            over,
            outbox,
            ready,
            mailboxes,
            telling,
        })
    }

    /// One use of the server ends. With the last one the changes that wait are told, if the store takes them now.
    pub(super) async fn leave(self: Arc<Self>) {
        let Some(node) = Arc::into_inner(self) else { return };
        node.over.set();
        let publishes = node.publishes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let deadline = node.store.deadline() * 2;
        if let Some(publishes) = publishes {
            let _ = tokio::time::timeout(deadline, publishes).await;
        }
        if let Some(tasks) = node.shared.upgrade().and_then(|shared| shared.router.tasks()) {
            let _ = tokio::time::timeout(deadline, tasks.write_last()).await;
        }
        node.store.leave_number(&node.id, &node.number).await;
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
async fn keep_keys(store: Arc<Redis>, shared: Weak<ServerShared>, ready: Arc<[Signal; 3]>) {
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

/// Has a number for this process, by which others reach it.
async fn keep_number(
    store: Arc<Redis>,
    id: Arc<str>,
    number: Arc<Number>,
    ready: Arc<[Signal; 3]>,
    shared: Weak<ServerShared>,
) {
    loop {
        let pause = match store.keep_number(&id, &number).await {
            Ok(is_new) => {
                ready[2].set();
                // The store may have lost all, or this process stood still for long.
                if is_new && let Some(tasks) = shared.upgrade().and_then(|shared| shared.router.tasks()) {
                    tasks.tell_again();
                }
                Duration::from_millis(BEAT)
            }
            Err(_) => store.pause().unwrap_or_default().max(RETRY),
        };
        tokio::time::sleep(pause).await;
    }
}

/// Tells the clients of this process what has changed in others.
async fn hear(
    mut follower: Follower,
    shared: Weak<ServerShared>,
    ready: Arc<[Signal; 3]>,
    mailboxes: Mailboxes,
    (place, hearing, telling): (Arc<AtomicU64>, Arc<AtomicU64>, Arc<Mutex<()>>),
    outbox: Arc<Outbox>,
) {
    // Its inbox is one of what it reads, from the first question on.
    ready[2].wait().await;
    let mut is_lost = false;
    let attached = || -> Vec<_> {
        let all = mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    };
    loop {
        let heard = match follower.begin().await {
            Ok(()) => {
                if !ready[1].is_set() {
                    // Until there was a place in the log, anything may have happened. Those who want to hear of it are
                    // known first.
                    for mailbox in attached() {
                        mailbox.missed().await;
                    }
                    let Some(shared) = shared.upgrade() else { return };
                    tell(&shared, &Change::All);
                    outbox.begin_loop();
                    ready[1].set();
                }
                follower.next().await
            }
            Err(trouble) => Err(trouble),
        };
        let Some(shared) = shared.upgrade() else { return };
        match heard {
            Ok(news) => {
                // Own changes come from there, from now on.
                outbox.begin_loop();
                // A store that was away may have lost the last that it was told.
                is_lost |= news.iter().any(|(_, news)| matches!(news, Heard::Missed));
                if std::mem::take(&mut is_lost)
                    && let Some(tasks) = shared.router.tasks()
                {
                    tasks.tell_again();
                }
                let all = attached();
                for (at, news) in news {
                    if news == Heard::Missed {
                        for mailbox in &all {
                            mailbox.missed().await;
                        }
                    }
                    let turn = telling.lock().unwrap_or_else(PoisonError::into_inner);
                    if at > 0 {
                        place.store(at, Ordering::Release);
                    }
                    hearing.store(at, Ordering::Release);
                    match &news {
                        Heard::Change(change) => tell(&shared, change),
                        Heard::Again(change, number) => {
                            all.iter().for_each(|mailbox| mailbox.tell_late(change, *number));
                        }
                        Heard::Missed => tell(&shared, &Change::All),
                        _ => {}
                    }
                    hearing.store(0, Ordering::Release);
                    drop(turn);
                    match news {
                        Heard::Nothing | Heard::Change(_) | Heard::Again(..) | Heard::Missed => {}
                        Heard::Task { name, answers } => {
                            if let Some(tasks) = shared.router.tasks() {
                                tasks.heard_of(&name, answers.as_ref());
                            }
                        }
                        // Later news may depend on it.
                        Heard::Session(session) => {
                            for mailbox in &all {
                                mailbox.changed(&session).await;
                            }
                        }
                        Heard::FromClient { session, text } => {
                            all.iter().for_each(|mailbox| mailbox.heard_from_client(&session, &text));
                        }
                        Heard::ToClient { session, text } => {
                            all.iter().for_each(|mailbox| mailbox.pass_to_client(&session, &text));
                        }
                        Heard::Note { session, text } => {
                            let last = all.len().saturating_sub(1);
                            all.iter().enumerate().any(|(at, mailbox)| mailbox.noted(&session, &text, at == last));
                        }
                    }
                }
            }
            Err(_) => {
                is_lost = true;
                // Nor do changes of this process: its clients hear of them at once.
                outbox.end_loop().iter().for_each(|change| tell(&shared, change));
                drop(shared);
                tokio::time::sleep(follower.pause().max(RETRY)).await;
            }
        }
    }
}

/// Writes the tasks of this process for others, as they change.
async fn write_tasks(store: Arc<Redis>, tasks: Weak<Tasks>) {
    let mut failures = 0;
    while let Some(all) = tasks.upgrade() {
        let changes = all.changes();
        let written = all.write_changed().await;
        drop(all);
        match written {
            Ok(None) => changes.notified().await,
            Ok(Some(left)) => drop(tokio::time::timeout(left, changes.notified()).await),
            Err(_) => {
                let pause = RETRY.saturating_mul(1 << failures).min(LONGEST);
                tokio::time::sleep(store.pause().unwrap_or_default().max(pause)).await;
                failures = (failures + 1).min(5);
                continue;
            }
        }
        failures = 0;
    }
}

/// Looks at tasks of other processes that somebody waits for, as they change.
async fn look_at_news(tasks: Weak<Tasks>) {
    while let Some(all) = tasks.upgrade() {
        let news = all.news();
        all.look_at_news().await;
        drop(all);
        news.notified().await;
    }
}

/// Looks at tasks of other processes that somebody waits for, in case that one has ended without a word.
async fn look_at_tasks(tasks: Weak<Tasks>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(all) = tasks.upgrade() else { return };
        all.look_again().await;
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
async fn publish(
    store: Arc<Redis>,
    id: Arc<str>,
    outbox: Arc<Outbox>,
    over: Arc<Signal>,
    shared: Weak<ServerShared>,
    ready: Arc<[Signal; 3]>,
) {
    over.unless(ready[1].wait()).await;
    // Changes that were sent and not answered are sent again as they were: the store may have them, and knows that.
    let mut sent: Option<(u64, Vec<(Change, u64)>)> = None;
    loop {
        let is_over = if sent.is_some() { over.is_set() } else { over.unless(outbox.wait()).await.is_none() };
        let (batch, changes) = sent.take().unwrap_or_else(|| (store.next_batch(), outbox.take(AT_ONCE)));
        if changes.is_empty() && is_over {
            return;
        }
        // All are heard here, too: those that clients were told of before, because the store did not answer, may be for some
        // of whom this process hears late.
        let heard: Vec<_> = changes.iter().map(|(change, _)| (change.clone(), true)).collect();
        for (at, (_, told)) in changes.iter().enumerate().filter(|(_, (_, told))| *told > 0) {
            store.tells(batch, at, *told);
        }
        if store.publish(&id, batch, &heard).await.is_err() {
            // Clients here do not wait for the store.
            let (waiting, number) = (outbox.end_loop(), outbox.next_told());
            let looped = changes.iter().enumerate().filter(|(_, (_, told))| *told == 0);
            let untold =
                looped.filter(|(at, _)| store.tells(batch, *at, number).is_none()).map(|(_, (change, _))| change);
            if let Some(shared) = shared.upgrade() {
                untold.chain(&waiting).for_each(|change| tell(&shared, change));
            }
            if is_over {
                return;
            }
            sent = Some((batch, changes));
            over.unless(tokio::time::sleep(store.pause().unwrap_or_default().max(RETRY))).await;
        }
    }
}
