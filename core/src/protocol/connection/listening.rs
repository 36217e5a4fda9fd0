//! Listen streams (specification 2026-07-28, "Subscriptions"), from the side of the server and from that of the client.

use std::collections::{BTreeMap, BTreeSet};

use super::news::GATHER;
use super::*;
use crate::model::SubscriptionFilter;
use crate::model::meta::SUBSCRIPTION_ID;

/// The request that opens one.
pub(super) const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TASK: &str = "notifications/tasks";
const UPDATED: &str = "notifications/resources/updated";
/// Between two looks whether a slow client reads again.
const CONGESTED: Duration = Duration::from_millis(50);

/// The listen streams of one connection.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// A server's.
    clients: Vec<Listener>,
    /// The client is slow to read.
    congested: bool,
    /// Those that a client has open, by the ids of their requests.
    open: LazyMap<i64, CallId>,
}

/// A client that listens.
#[derive(Debug)]
struct Listener {
    id: Id,
    call: CallId,
    route: Option<Route>,
    revision: Revision,
    filter: SubscriptionFilter,
    /// The lists that have changed since it was told.
    changed: Vec<&'static str>,
    /// The resources of which it could not be told yet.
    updated: Vec<Box<str>>,
    /// Versions of the tasks that it heard of, and the changes that it could not be told yet.
    tasks: BTreeMap<Arc<str>, (u64, Option<RawJson>)>,
    /// The notifications of extensions that it could not be told yet.
    others: VecDeque<(Arc<str>, RawJson)>,
    /// Time at which it is to be told.
    due: Option<Duration>,
    context: RequestContext,
    _counted: Counted,
}

impl Listener {
    fn way(&self) -> Way {
        Way { related: Some(self.call), batch: None, route: self.route }
    }

    fn meta(&self) -> String {
        format!("{{\"{SUBSCRIPTION_ID}\":{}}}", serde_json::to_string(&self.id).unwrap_or_default())
    }

    /// A notification of this stream. It belongs to no request that is still to be answered, and must not be lost.
    fn notification<'a>(&self, method: &str, members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Action {
        let mut params = String::from("{");
        object::push_member(&mut params, "_meta", &self.meta());
        for (name, value) in members {
            object::push_member(&mut params, name, value);
        }
        params.push('}');
        let frame = jsonrpc::encode_notification(method, Some(&RawJson::written(params)));
        Action::Send(Outbound { frame, related: None, route: self.route, sent: Sent::Notification, origin: None })
    }

    fn updated(&self, uri: &str) -> Action {
        let uri = serde_json::to_string(uri).unwrap_or_default();
        self.notification(UPDATED, [("uri", uri.as_str())])
    }

    fn task(&self, params: &RawJson) -> Action {
        self.told(TASK, params)
    }

    /// A notification with these parameters; what they have of `_meta` is kept.
    fn told(&self, method: &str, params: &RawJson) -> Action {
        if !object::has(params.get(), "\"_meta\"") {
            let members = object::members(params.get());
            return self.notification(method, members.iter().map(|(name, value)| (name.as_ref(), value.get())));
        }
        let params = shape::with_meta(Some(params), &RawJson::written(self.meta()));
        let frame = jsonrpc::encode_notification(method, Some(&params));
        Action::Send(Outbound { frame, related: None, route: self.route, sent: Sent::Notification, origin: None })
    }

    fn later(&mut self, due: Duration) {
        self.due = Some(self.due.map_or(due, |other| other.min(due)));
    }

    /// Nobody listens any more: whoever works on the request, and whoever watches its resources, is told.
    fn gone(self, reason: Option<String>, out: &mut Vec<Action>) {
        out.push(Action::Abort(self.call, reason));
        unsubscribed(self.context, self.filter, out);
    }
}

fn unsubscribed(context: RequestContext, filter: SubscriptionFilter, out: &mut Vec<Action>) {
    let uris: Vec<Box<str>> = filter.resource_subscriptions.into_iter().map(Into::into).collect();
    if !uris.is_empty() {
        out.push(Action::Unsubscribed(Box::new(context), uris));
    }
}

/// A server's side.
impl Connection {
    /// The listen streams that are open.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.listening.clients.len()
    }

    pub(super) fn is_listener(&self, id: &Id) -> bool {
        self.listening.clients.iter().any(|listener| listener.id == *id)
    }

    pub(super) fn has_all_listeners(&self) -> bool {
        self.listening.clients.len() >= self.facts.max_listeners
    }

    pub(super) fn too_many_listeners(&self) -> Error {
        let max = self.facts.max_listeners;
        Error::rpc(code::INVALID_REQUEST, format!("{max} listen streams are open already (max_listeners): end some"))
    }

    /// The transport says whether the peer reads what it is sent.
    pub(crate) fn set_congested(&mut self, congested: bool) {
        self.listening.congested = congested;
    }

    /// A request becomes a stream: it is acknowledged, and no longer in flight.
    pub(super) fn listen(&mut self, now: Duration, listen: Listen, out: &mut Vec<Action>) {
        let Listen { call, filter, context, counted } = listen;
        if self.has_all_listeners() {
            let error = self.too_many_listeners();
            unsubscribed(context, filter, out);
            self.completed(now, call, Err(error), out);
            return out.push(Action::Abort(call, None));
        }
        // Cancelled meanwhile.
        let Some(incoming) = self.incoming.remove(call) else { return unsubscribed(context, filter, out) };
        let Incoming { id, route, revision, .. } = incoming;
        let listener = Listener {
            id,
            call,
            route,
            revision,
            filter,
            changed: Vec::new(),
            updated: Vec::new(),
            tasks: BTreeMap::new(),
            others: VecDeque::new(),
            due: None,
            context,
            _counted: counted,
        };
        let honoured = RawJson::from_value(&listener.filter);
        out.push(listener.notification(ACKNOWLEDGED, [("notifications", honoured.get())]));
        self.listening.clients.push(listener);
    }

    pub(super) fn list_changed_for_listeners(&mut self, now: Duration, method: &'static str) {
        for listener in self.listening.clients.iter_mut().filter(|listener| listener.filter.wants_list(method)) {
            if !listener.changed.contains(&method) {
                listener.changed.push(method);
            }
            listener.later(now + GATHER);
            self.sooner = true;
        }
    }

    /// The resources that listeners watch.
    pub(super) fn listened_to(&self) -> BTreeSet<Box<str>> {
        let filters = self.listening.clients.iter().map(|listener| &listener.filter);
        filters.flat_map(|filter| &filter.resource_subscriptions).map(|uri| uri.as_str().into()).collect()
    }

    pub(super) fn updated_for_listeners(&mut self, now: Duration, uri: &str, out: &mut Vec<Action>) {
        let (congested, max) = (self.listening.congested, self.facts.max_queued_notifications.max(1));
        let mut slow = Vec::new();
        for listener in self.listening.clients.iter_mut().filter(|listener| listener.filter.wants(uri)) {
            if !congested && listener.updated.is_empty() {
                out.push(listener.updated(uri));
                continue;
            }
            if listener.updated.iter().any(|other| **other == *uri) {
                continue;
            }
            if listener.updated.len() >= max {
                slow.push(listener.call);
                continue;
            }
            listener.updated.push(uri.into());
            listener.later(now + CONGESTED);
            self.sooner = true;
        }
        self.end_slow(slow, out);
    }

    /// A slow reader is told of each task as it is when he reads again. A change that was told before is not told
    /// after.
    pub(super) fn task_changed_for_listeners(
        &mut self,
        now: Duration,
        id: &Arc<str>,
        version: u64,
        params: RawJson,
        out: &mut Vec<Action>,
    ) {
        let congested = self.listening.congested;
        let concerned = |listener: &&mut Listener| listener.filter.task_ids.iter().any(|own| **own == **id);
        for listener in self.listening.clients.iter_mut().filter(concerned) {
            let before = listener.tasks.get(id);
            if before.is_some_and(|(known, _)| *known >= version) {
                continue;
            }
            let waits = congested || before.is_some_and(|(_, waits)| waits.is_some());
            if !waits {
                out.push(listener.task(&params));
            }
            listener.tasks.insert(id.clone(), (version, waits.then(|| params.clone())));
            if waits {
                listener.later(now + CONGESTED);
                self.sooner = true;
            }
        }
    }

    /// A notification of an extension goes to those who asked for it.
    pub(super) fn announce(&mut self, now: Duration, announcement: &Announcement, out: &mut Vec<Action>) {
        let Announcement { extension, member, method, key, params } = announcement;
        if let (Phase::Legacy(session), Role::Server) = (&self.phase, self.facts.role)
            && session.peer.capabilities.has_extension(extension)
            && self.facts.capabilities.has_extension(extension)
        {
            let frame = jsonrpc::encode_notification(method, Some(params));
            return out.push(Action::Send(Outbound {
                frame,
                related: None,
                route: None,
                sent: Sent::Announcement,
                origin: None,
            }));
        }
        let (congested, max) = (self.listening.congested, self.facts.max_queued_notifications.max(1));
        let mut slow = Vec::new();
        let concerned = |listener: &&mut Listener| listener.filter.wants_other(member, key.as_deref());
        for listener in self.listening.clients.iter_mut().filter(concerned) {
            if !congested && listener.others.is_empty() {
                out.push(listener.told(method, params));
            } else if listener.others.len() >= max {
                slow.push(listener.call);
            } else {
                listener.others.push_back((method.clone(), params.clone()));
                listener.later(now + CONGESTED);
                self.sooner = true;
            }
        }
        self.end_slow(slow, out);
    }

    fn end_slow(&mut self, slow: Vec<CallId>, out: &mut Vec<Action>) {
        let max = self.facts.max_queued_notifications.max(1);
        for call in slow {
            let message = format!("the stream ends: {max} changes wait for its slow reader (max_queued_notifications)");
            self.listener_completed(call, Err(Error::rpc(code::INTERNAL_ERROR, message)), out);
        }
    }

    pub(super) fn listeners_due(&self) -> Option<Duration> {
        self.listening.clients.iter().filter_map(|listener| listener.due).min()
    }

    /// Tells what has waited long enough, unless nobody reads it.
    pub(super) fn tell_listeners(&mut self, now: Duration, out: &mut Vec<Action>) {
        let congested = self.listening.congested;
        for listener in &mut self.listening.clients {
            if listener.due.is_none_or(|due| due > now) {
                continue;
            }
            if congested {
                listener.due = Some(now + CONGESTED);
                continue;
            }
            listener.due = None;
            for method in std::mem::take(&mut listener.changed) {
                out.push(listener.notification(method, []));
            }
            for uri in std::mem::take(&mut listener.updated) {
                out.push(listener.updated(&uri));
            }
            let waiting: Vec<_> = listener.tasks.values_mut().filter_map(|(_, waits)| waits.take()).collect();
            out.extend(waiting.iter().map(|params| listener.task(params)));
            let others = std::mem::take(&mut listener.others);
            out.extend(others.iter().map(|(method, params)| listener.told(method, params)));
        }
    }

    fn take_listener(&mut self, is_it: impl Fn(&Listener) -> bool) -> Option<Listener> {
        let place = self.listening.clients.iter().position(is_it)?;
        let listener = self.listening.clients.swap_remove(place);
        if self.listening.clients.is_empty() {
            self.listening.clients = Vec::new();
        }
        Some(listener)
    }

    /// The request of a stream is answered after all: by what stands around it, or because its client is too slow.
    pub(super) fn listener_completed(&mut self, call: CallId, outcome: Result<Payload>, out: &mut Vec<Action>) {
        let Some(listener) = self.take_listener(|listener| listener.call == call) else { return };
        match outcome {
            Ok(_) => self.close_stream(&listener, out),
            Err(error) => self.respond_error(Some(&listener.id), &error.to_object(), listener.way(), out),
        }
        listener.gone(None, out);
    }

    /// The stream ends in order: it is answered, and where there is no stream that ends with it the client is told that,
    /// too (specification, "Cancellation").
    fn close_stream(&self, listener: &Listener, out: &mut Vec<Action>) {
        let Some(row) = Method::find(LISTEN) else { return };
        let payload = Payload::Object(RawJson::written(format!("{{\"_meta\":{}}}", listener.meta())));
        let mut frame = jsonrpc::start_result(&listener.id, shape::size_hint(&payload));
        shape::write_result(&mut frame, listener.revision.rules(), self.facts.info.get(), row, payload);
        frame.push('}');
        self.answer_alone(frame.into(), listener.way(), out);
        if listener.route.is_none() {
            let id = serde_json::to_string(&listener.id).unwrap_or_default();
            let params = RawJson::written(format!("{{\"requestId\":{id}}}"));
            let frame = jsonrpc::encode_notification("notifications/cancelled", Some(&params));
            out.push(Action::Send(Outbound {
                frame,
                related: None,
                route: None,
                sent: Sent::Notification,
                origin: None,
            }));
        }
    }

    fn answer_alone(&self, frame: Bytes, way: Way, out: &mut Vec<Action>) {
        let Way { related, route, .. } = way;
        out.push(Action::Send(Outbound { frame, related, route, sent: Sent::Response(None), origin: None }));
    }

    /// The server is about to close.
    pub(super) fn end_listeners(&mut self, out: &mut Vec<Action>) {
        for listener in std::mem::take(&mut self.listening.clients) {
            self.close_stream(&listener, out);
            listener.gone(Some("the server was closed".into()), out);
        }
    }

    /// The connection is gone.
    pub(super) fn forget_listeners(&mut self, reason: &Error, out: &mut Vec<Action>) {
        for listener in std::mem::take(&mut self.listening.clients) {
            listener.gone(Some(reason.message().to_owned()), out);
        }
    }
}

/// A client's side.
impl Connection {
    /// The peer says that it is over with a stream: a client with one that it listens on, or a server with one of its own.
    pub(super) fn stream_cancelled(&mut self, id: &Id, reason: Option<&str>, out: &mut Vec<Action>) {
        if let Some(listener) = self.take_listener(|listener| listener.id == *id) {
            return listener.gone(reason.map(str::to_owned), out);
        }
        let waits = self.outgoing.get_mut(id).is_some_and(|outgoing| outgoing.listens);
        match if waits { self.outgoing.remove(id) } else { None } {
            Some(outgoing) => {
                let why = "the server ended the stream before it acknowledged it";
                self.settle(&outgoing, Err(Error::new(ErrorKind::PeerMisbehaved, why)), out);
            }
            None => self.stream_ended(id, Ok(RawJson::empty_object()), out),
        }
    }

    /// Takes a notification of the server: on a stream, or to all.
    pub(super) fn notified(&mut self, method: String, params: Option<RawJson>, out: &mut Vec<Action>) {
        #[derive(serde::Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Meta,
        }
        #[derive(serde::Deserialize)]
        struct Meta {
            #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
            subscription: Id,
        }
        let id = match (&self.phase, &params) {
            (Phase::Modern(_), Some(params)) if object::has(params.get(), SUBSCRIPTION_ID) => {
                params.to::<Params>().ok().map(|params| params.meta.subscription)
            }
            _ => None,
        };
        let Some(Id::Number(number)) = id else {
            return out.push(Action::Notified(method, params, NotificationCause(self.origin())));
        };
        if let Some(call) = self.listening.open.get(&number) {
            return out.push(Action::Told(*call, method, params));
        }
        match self.outgoing.get_mut(&Id::Number(number)).map(|outgoing| (outgoing.listens, outgoing.call)) {
            // It waits for nothing more: there is room for another request, and no timeout.
            Some((true, call)) => {
                if method == ACKNOWLEDGED && self.outgoing.remove(&Id::Number(number)).is_some() {
                    self.listening.open.insert(number, call);
                }
                out.push(Action::Told(call, method, params));
            }
            // Somebody listens who has written the request himself.
            Some((false, _)) => out.push(Action::Notified(method, params, NotificationCause::default())),
            // A stream that nobody listens on any more.
            None => {}
        }
    }

    /// A stream has ended, in order or not.
    pub(super) fn stream_ended(&mut self, id: &Id, outcome: Result<RawJson>, out: &mut Vec<Action>) {
        let Id::Number(number) = id else { return };
        if let Some(call) = self.listening.open.remove(number) {
            out.push(Action::Resolve(call, outcome));
        }
    }

    /// Its caller no longer listens on a stream: gives the id of its request.
    pub(super) fn no_longer_listens(&mut self, call: CallId) -> Option<i64> {
        let id = self.listening.open.iter().find(|(_, open)| **open == call).map(|(id, _)| *id)?;
        self.listening.open.remove(&id);
        Some(id)
    }

    /// Takes out all listeners, when the connection has ended.
    pub(super) fn forget_streams(&mut self) -> impl Iterator<Item = CallId> + use<> {
        std::mem::take(&mut self.listening.open).into_iter().map(|(_, call)| call)
    }
}
