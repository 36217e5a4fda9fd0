//! Changes that a client hears of: by listen streams (specification 2026-07-28, "Subscriptions"), in older revisions by
//! subscriptions and unasked notifications of the server.

mod change;
mod inbox;
mod own;
mod stream;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_core::Stream;
use serde::Deserialize;
use serde_json::json;

use crate::protocol::revision::object;

pub use self::change::Change;
#[cfg(feature = "runtime")]
use self::change::{LISTS_CHANGED, UPDATED};
use self::inbox::Inbox;
use self::own::Own;
use self::turns::{Turn, Turns};
use super::Client;
use super::cache::Cache;
use super::events::Events;
use super::known::Known;
use crate::call::{Answer, CallOptions, Done, Guard};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::meta::SUBSCRIPTION_ID;
use crate::model::{SubscriptionFilter, TASKS_EXTENSION, TraceContext};
use crate::protocol::revision::Era;
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

/// The changes that a client listens to, in the order in which they came: a stream, or [`next`](Self::next). Each
/// change that is not taken is there once. Dropped, it ends at the server, too.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::client::Change;
/// use tricorn::model::SubscriptionFilter;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("news").resource(Resource::new("news://sport", "sport"), async || Ok("1:0"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let mut changes = client.listen(SubscriptionFilter::new().resource("news://sport")).await?;
/// # server.resource_updated("news://sport");
/// while let Some(change) = changes.next().await {
///     if let Change::ResourceUpdated(uri) = change? {
///         println!("{uri}: {}", client.read_resource(&uri).await?.text());
/// #       break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Listening {
    inbox: Arc<Inbox>,
    client: Client,
    /// Set when nobody listens any more.
    over: Arc<Signal>,
}

impl Listening {
    /// Returns the changes that the server tells of, which may be fewer than were asked for: it leaves out resources
    /// that it does not know. Empty where it has not said so yet.
    #[must_use]
    pub fn honoured(&self) -> SubscriptionFilter {
        self.inbox.honoured()
    }

    /// The next change; none after the server has ended the stream in order. When it broke off, the client listens again,
    /// and since something may have been missed, everything that is listened to is said to have changed, once.
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed) when the connection ends, and why it could not be listened again; after that, none
    /// come.
    pub async fn next(&mut self) -> Option<Result<Change>> {
        std::future::poll_fn(|cx| self.inbox.poll(cx)).await
    }

    /// Waits until the server has acknowledged it.
    ///
    /// # Errors
    /// The reason why it has not.
    #[cfg(feature = "runtime")]
    pub(super) async fn settled(&self) -> Result<()> {
        self.inbox.settled().await
    }

    /// Ends it, also for those who wait for a change.
    pub(crate) fn end(&self) {
        self.over.set();
        self.inbox.end(Ok(()));
    }

    /// As [`next`](Self::next), for several who wait in turns.
    pub(crate) async fn shared_next(&self) -> Option<Result<Change>> {
        std::future::poll_fn(|cx| self.inbox.poll(cx)).await
    }
}

impl Stream for Listening {
    type Item = Result<Change>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inbox.poll(cx)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.over.set();
        if self.client.revision().era() == Era::Legacy {
            self.client.no_longer_wanted(&self.inbox.honoured().resource_subscriptions);
        }
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("honoured", &self.honoured()).finish_non_exhaustive()
    }
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

impl Client {
    /// Listens to changes at the server, in every revision: by a stream of its own, or by subscriptions to resources and
    /// what the server tells unasked.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) naming what the server does not declare to tell of, and nothing was sent; as
    /// [`request`](Self::request); [`Misuse`](ErrorKind::Misuse) when nothing is asked for, or what no extension has.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listening> {
        if filter.is_empty() {
            return Err(Error::misuse(
                "listen: nothing is asked for: say tools, prompts, resources, uris, tasks or extensions",
            ));
        }
        filter.check_others()?;
        if !filter.task_ids.is_empty() && !self.hears_of_tasks() {
            let message = format!("\"taskIds\": client and server do not both declare {TASKS_EXTENSION:?}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        for (member, capability) in filter.needs() {
            if !self.capabilities().has(capability) {
                let message = format!("{member:?}: the server does not declare the capability {capability:?}");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        let inbox = Arc::new(Inbox::new(filter, self.revision().era() == Era::Modern));
        let hub = &self.connected.hub;
        let listening = Listening { inbox: inbox.clone(), client: self.clone(), over: Arc::default() };
        match self.revision().era() {
            Era::Modern => {
                self.open(&listening, None);
                inbox.settled().await?;
                hub.add(&inbox)?;
            }
            Era::Legacy => {
                let uris = inbox.take_uris();
                hub.add(&inbox)?;
                for uri in uris {
                    // From now on it is given back when this ends, once.
                    if !inbox.add_uri(&uri) {
                        continue;
                    }
                    *hub.lock().wanted.entry(uri.clone()).or_default() += 1;
                    let turn = Turn::of(hub, &uri);
                    turn.comes().await;
                    self.ask_for(SUBSCRIBE, &uri).await?;
                }
            }
        }
        Ok(listening)
    }

    fn open(&self, listening: &Listening, trace: Option<TraceContext>) {
        let connected = &self.connected;
        let way = stream::Way { link: connected.link.clone(), timeout: connected.timeout, trace };
        stream::listen(&connected.hub, way, &listening.inbox, &listening.over);
    }

    /// Listens to one task, from when the server acknowledges it ([`Listening::settled`]).
    #[cfg(feature = "runtime")]
    pub(super) fn listen_to_task(&self, id: &str, trace: Option<TraceContext>) -> Listening {
        let inbox = Arc::new(Inbox::new(SubscriptionFilter::new().task(id), true));
        let listening = Listening { inbox, client: self.clone(), over: Arc::default() };
        self.open(&listening, trace);
        listening
    }

    /// Returns true if changes of tasks may be told.
    fn hears_of_tasks(&self) -> bool {
        let rules = self.revision().rules();
        #[cfg(feature = "runtime")]
        if rules.tasks_extension {
            return self.has_extended_tasks();
        }
        rules.tasks && self.capabilities().has("tasks")
    }

    fn ask_for(&self, method: &str, uri: &str) -> Answer {
        let params = RawJson::from_value(&json!({"uri": uri}));
        Answer::of(|done| {
            let done = Box::new(move |outcome: Result<RawJson>| done(outcome.map_err(Error::received)));
            self.send(method, Some(params), &CallOptions::default(), done)
        })
    }

    /// Ends listening to resources in a legacy session. Those that nobody else wants are unsubscribed from.
    fn no_longer_wanted(&self, uris: &[String]) {
        let mut state = self.connected.hub.lock();
        let mut ended = Vec::new();
        for uri in uris {
            let Some(count) = state.wanted.get_mut(uri) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            state.wanted.remove(uri);
            if !state.subscribed.contains(uri) {
                ended.push(uri);
            }
        }
        drop(state);
        ended.into_iter().for_each(|uri| self.leave(uri));
    }

    /// A request to subscribe or unsubscribe, if that is what it is, goes its own way: modern revisions have none, and
    /// where somebody listens that has to go on.
    pub(super) fn subscription(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Result<Guard, Done> {
        if !matches!(method, SUBSCRIBE | UNSUBSCRIBE) {
            return Err(done);
        }
        let Some(uri) = uri_of(params) else { return Err(done) };
        let begins = method == SUBSCRIBE;
        let hub = &self.connected.hub;
        if self.revision().era() == Era::Modern {
            if !self.capabilities().has("resources.subscribe") {
                let message = format!(
                    "{method:?} was not sent: the server does not declare the capability \"resources.subscribe\""
                );
                done(Err(Error::new(ErrorKind::Unsupported, message)));
                return Ok(Box::new(()));
            }
            let (link, wish) = (&self.connected.link, own::Wish::of(uri, begins));
            return Ok(own::ask(hub, link, self.connected.timeout, options, wish, done));
        }
        if !begins {
            let mut state = hub.lock();
            state.subscribed.remove(&uri);
            if state.wanted.contains_key(&uri) {
                drop(state);
                done(Ok(RawJson::empty_object()));
                return Ok(Box::new(()));
            }
            drop(state);
            return Ok(self.in_turn(&uri, UNSUBSCRIBE, params.cloned(), options, done));
        }
        let (hub, named) = (hub.clone(), uri.clone());
        let done = Box::new(move |outcome: Result<RawJson>| {
            if outcome.is_ok() {
                let mut state = hub.lock();
                if state.subscribed.len() < crate::model::subscription::MAX_SUBSCRIPTIONS {
                    state.subscribed.insert(uri);
                }
            }
            done(outcome);
        });
        Ok(self.in_turn(&named, SUBSCRIBE, params.cloned(), options, done))
    }

    /// Has the client's handlers hear of the changes of all lists that the server tells of. In legacy sessions they do
    /// anyway. `done` hears when they do, or why not.
    pub(crate) fn hear_lists(&self, done: Done) {
        let lists = SubscriptionFilter::lists_of(&self.capabilities());
        if self.revision().era() == Era::Legacy || lists.is_empty() {
            return done(Ok(RawJson::empty_object()));
        }
        let connected = &self.connected;
        own::change(&connected.hub, &connected.link, connected.timeout, own::Wish::Lists(lists), done);
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
