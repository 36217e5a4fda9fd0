//! Changes that a client hears of: by listen streams (specification 2026-07-28, "Subscriptions"), in older revisions by
//! subscriptions and unasked notifications of the server.

mod calls;
mod change;
mod inbox;
mod own;
mod stream;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Deserialize;

use crate::protocol::revision::object;

pub use self::calls::Listening;
pub use self::change::Change;
#[cfg(feature = "runtime")]
use self::change::{LISTS_CHANGED, UPDATED};
use self::inbox::Inbox;
use self::own::Own;
use self::turns::Turns;
use super::cache::Cache;
use super::events::Events;
use super::known::Known;
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::meta::SUBSCRIPTION_ID;
use crate::protocol::{NotificationCause, Opening};
use crate::report;
use crate::signal::Signal;

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// The most streams that one client listens on.
const MAX_LISTENING: usize = 1000;

fn uri_of(params: Option<&RawJson>) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    Some(params?.to::<Params>().ok()?.uri)
}

/// Receivers of a connection's changes.
pub(crate) struct Hub {
    events: Arc<dyn Events>,
    pub(crate) known: Arc<Known>,
    pub(crate) cache: Arc<Cache>,
    state: Mutex<State>,
    own: Own,
    turns: Turns,
    /// The server's account of itself when the client met it anew.
    reopened: Mutex<Option<Arc<Opening>>>,
    /// Set when the connection has ended.
    pub(crate) over: Signal,
}

#[derive(Default)]
struct State {
    inboxes: Vec<Weak<Inbox>>,
    /// Resources that a legacy session listens to, with the number of listeners.
    wanted: BTreeMap<String, usize>,
    /// Resources that were subscribed to besides.
    subscribed: BTreeSet<String>,
}

impl Hub {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(events: &Arc<dyn Events>, cache: &Arc<Cache>) -> Arc<Self> {
        let (events, cache, known) = (events.clone(), cache.clone(), Arc::default());
        let (state, own, turns, reopened) = Default::default();
        Arc::new(Self { events, known, cache, state, own, turns, reopened, over: Signal::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if somebody in a legacy session listens to this resource.
    fn wants(&self, uri: &str) -> bool {
        let state = self.lock();
        state.wanted.contains_key(uri) || state.subscribed.contains(uri)
    }

    /// Returns true if this client has asked to be told of it.
    fn is_asked_for(&self, change: &Change) -> bool {
        let inboxes = self.inboxes();
        self.own.wants(change) || inboxes.iter().any(|inbox| change.is_in(&inbox.wanted()))
    }

    fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.lock().inboxes.iter().filter_map(Weak::upgrade).collect()
    }

    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) when there are too many.
    fn add(&self, inbox: &Arc<Inbox>) -> Result<()> {
        let mut state = self.lock();
        state.inboxes.retain(|inbox| inbox.strong_count() > 0);
        if state.inboxes.len() >= MAX_LISTENING {
            return Err(Error::misuse(format!("the client listens {MAX_LISTENING} times already: end some")));
        }
        state.inboxes.push(Arc::downgrade(inbox));
        Ok(())
    }

    /// The server tells something that belongs to no stream of its own.
    pub(crate) fn notified(&self, method: &str, params: Option<&RawJson>, cause: &NotificationCause) {
        let change = Change::of(method, params);
        self.known.heard(method, params);
        // Whatever a server says of resources that nobody here listens to costs others nothing who share the cache.
        let concerns = |change: &Change| !matches!(change, Change::ResourceUpdated(_)) || self.is_asked_for(change);
        if change.as_ref().is_none_or(concerns) {
            self.cache.heard(method, params);
        }
        if let Some(change) = change {
            self.inboxes().iter().for_each(|inbox| inbox.push(&change));
        }
        match cause.0.as_ref() {
            Some(origin) => self.events.notification_within(origin.number(), method, params),
            None => self.events.notification(method, params),
        }
    }

    /// Drops knowledge of the server that a notification may have made false.
    fn learn(&self, method: &str, params: Option<&RawJson>) {
        self.known.heard(method, params);
        self.cache.heard(method, params);
    }

    /// Takes a notification of a stream that this client keeps for its handlers.
    fn told(&self, method: &str, params: Option<&RawJson>) {
        self.learn(method, params);
        let params = params.map(without_subscription);
        report::guarded("what hears of notifications", || self.events.notification(method, params.as_ref()));
    }

    /// The server was met anew, and may say something else of itself than before.
    #[cfg(feature = "runtime")]
    pub(crate) fn reopened(&self, opening: Opening) {
        // Nothing that was kept of the one before need hold.
        for method in LISTS_CHANGED.into_iter().chain([UPDATED]) {
            self.learn(method, None);
        }
        self.cache.forget("server/discover");
        let opening = Arc::new(opening);
        *self.reopened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opening.clone());
        self.events.reopened(&opening);
    }

    /// Returns the server's account of itself then.
    pub(crate) fn opening(&self) -> Option<Arc<Opening>> {
        self.reopened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something may have been missed, because the session was lost.
    pub(crate) fn missed(&self) {
        self.inboxes().iter().for_each(|inbox| inbox.missed());
    }

    /// Its user goes on although nobody listens yet: what changes until somebody does is not heard of.
    #[cfg(feature = "runtime")]
    pub(crate) fn listens_late(&self) {
        self.own.missed();
    }

    /// The connection has ended.
    pub(crate) fn closed(&self, reason: &Error) {
        self.over.set();
        let inboxes = self.inboxes();
        inboxes.iter().filter(|inbox| !inbox.streams).for_each(|inbox| inbox.end(Err(reason.clone())));
    }
}

/// The parameters of a notification as older revisions have them.
fn without_subscription(params: &RawJson) -> RawJson {
    let mut text = String::from("{");
    for (key, value) in object::members(params.get()) {
        if key != "_meta" {
            object::push_member(&mut text, &key, value.get());
            continue;
        }
        let mut meta = String::from("{");
        for (key, value) in object::members(value.get()).iter().filter(|(key, _)| key != SUBSCRIPTION_ID) {
            object::push_member(&mut meta, key, value.get());
        }
        meta.push('}');
        if meta != "{}" {
            object::push_member(&mut text, &key, &meta);
        }
    }
    text.push('}');
    RawJson::written(text)
}

/// A URI, for a message.
fn shown(uri: &str) -> String {
    format!("{:?}", shortened(uri, 200))
}
