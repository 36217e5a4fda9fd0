//! Calls by which a client listens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::json;

use super::inbox::Inbox;
use super::turns::Turn;
use super::{Change, SUBSCRIBE, UNSUBSCRIBE, own, stream, uri_of};
use crate::call::{Answer, CallOptions, Done, Guard};
use crate::client::Client;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{SubscriptionFilter, TASKS_EXTENSION, TraceContext};
use crate::protocol::revision::Era;
use crate::signal::Signal;

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
    pub(in crate::client) async fn settled(&self) -> Result<()> {
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

/// Sets it when it is dropped.
struct Ends(Arc<Signal>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set();
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
    pub(in crate::client) fn listen_to_task(&self, id: &str, trace: Option<TraceContext>) -> Listening {
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
    pub(in crate::client) fn subscription(
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

    /// Sends the request when it is its turn.
    fn in_turn(
        &self,
        uri: &str,
        method: &'static str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Guard {
        let turn = Turn::of(&self.connected.hub, uri);
        if turn.here.is_set() {
            let done = Box::new(move |outcome| {
                done(outcome);
                drop(turn);
            });
            return self.send(method, params, options, done);
        }
        let over = Arc::<Signal>::default();
        let (guard, options, connected) = (Ends(over.clone()), options.clone(), Arc::downgrade(&self.connected));
        self.connected.link.spawn(Box::pin(async move {
            let answer = async {
                turn.comes().await;
                if method == UNSUBSCRIBE && turn.hub.wants(&turn.uri) {
                    return Ok(RawJson::empty_object());
                }
                let Some(connected) = connected.upgrade() else { return Err(Error::closed("the client is closed")) };
                let answer = Answer::of(|done| Self { connected }.send(method, params, &options, done));
                answer.await
            };
            let outcome: Option<Result<RawJson>> = over.unless(answer).await;
            if let Some(outcome) = outcome {
                done(outcome);
            }
            drop(turn);
        }));
        Box::new(guard)
    }

    /// Unsubscribes when it is the turn of that, unless somebody listens again by then.
    fn leave(&self, uri: &str) {
        let turn = Turn::of(&self.connected.hub, uri);
        let connected = Arc::downgrade(&self.connected);
        self.connected.link.spawn(Box::pin(async move {
            turn.comes().await;
            let Some(connected) = connected.upgrade().filter(|_| !turn.hub.wants(&turn.uri)) else { return };
            let answer = Self { connected }.ask_for(UNSUBSCRIBE, &turn.uri);
            // Nobody is left to hear that it failed.
            drop(answer.await);
        }));
    }
}
