//! News that a server tells a legacy client unasked.

use std::collections::BTreeSet;

use super::*;
use crate::model::subscription::{MAX_SUBSCRIBED, MAX_SUBSCRIPTIONS, check_uri};

/// Time for which changes of a list are gathered before they are told.
pub(super) const GATHER: Duration = Duration::from_millis(10);
/// Longest time that questions wait for a client that has not said that it is initialized.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most visits of pages that one client may be told the end of.
const MAX_VISITS: usize = 256;

impl Connection {
    fn news(&mut self) -> Option<&mut News> {
        match (&mut self.phase, self.facts.role) {
            (Phase::Legacy(session), Role::Server) => Some(&mut session.news),
            _ => None,
        }
    }

    /// The client has heard what it needs to know.
    pub(super) fn ready(&mut self, now: Duration) {
        self.told += 1;
        if let Some(news) = self.news() {
            news.ready = true;
            news.initialized = true;
            if !news.changed.is_empty() {
                news.due = Some(now);
                self.sooner = true;
            }
        }
    }

    /// A server is about to ask something. Before `initialized` it should not (specification, lifecycle): that may be just
    /// behind, on another connection.
    pub(super) fn about_to_ask(&mut self, now: Duration) {
        let Some(news) = self.news() else { return };
        if !news.initialized && news.patience.is_none() {
            news.patience = Some(now + PATIENCE);
            self.sooner = true;
        }
    }

    /// Returns true if a server has to wait before it asks.
    pub(super) fn is_early(&self) -> bool {
        let is_server = self.facts.role == Role::Server;
        is_server && matches!(&self.phase, Phase::Legacy(session) if !session.news.initialized)
    }

    /// Returns the time at which it does not wait any longer.
    pub(super) fn patience(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Legacy(session) if !session.news.initialized => session.news.patience,
            _ => None,
        }
    }

    pub(super) fn lose_patience(&mut self, now: Duration) {
        if self.patience().is_some_and(|end| end <= now)
            && let Some(news) = self.news()
        {
            news.initialized = true;
        }
    }

    pub(super) fn list_changed(&mut self, now: Duration, kind: Kind) {
        if !self.facts.capabilities.declares(kind.capability()) {
            return;
        }
        let method = kind.list_changed();
        self.list_changed_for_listeners(now, method);
        let Some(news) = self.news() else { return };
        if !news.changed.contains(&method) {
            news.changed.push(method);
        }
        if news.due.is_none() {
            news.due = Some(now + GATHER);
            self.sooner = true;
        }
    }

    pub(super) fn updated(&mut self, now: Duration, uri: &str, out: &mut Vec<Action>) {
        self.updated_for_listeners(now, uri, out);
        if self.news().is_some_and(|news| news.wants(uri)) {
            let params = RawJson::from_value(&serde_json::json!({"uri": uri}));
            self.notify("notifications/resources/updated", &params, None, out);
        }
    }

    /// Any resource may have changed: whoever watches one is told of that.
    pub(super) fn missed(&mut self, now: Duration, out: &mut Vec<Action>) {
        let mut uris = self.listened_to();
        if let Some(news) = self.news() {
            uris.extend(news.subscriptions.iter().cloned());
        }
        for uri in uris {
            self.updated(now, &uri, out);
        }
    }

    /// The client was asked to let its user visit a page, under this name.
    pub(super) fn asked_to_visit(&mut self, id: &str) {
        let Some(news) = self.news() else { return };
        news.visits.retain(|other| **other != *id);
        while news.visits.len() >= MAX_VISITS {
            news.visits.pop_front();
        }
        news.visits.push_back(id.into());
    }

    /// Records that the visit of a page has served its purpose: tells the client, if it is the one that was asked.
    pub(super) fn visited(&mut self, id: &str, out: &mut Vec<Action>) {
        let Some(news) = self.news() else { return };
        let before = news.visits.len();
        news.visits.retain(|other| **other != *id);
        if news.visits.len() < before {
            let params = RawJson::from_value(&serde_json::json!({"elicitationId": id}));
            self.notify("notifications/elicitation/complete", &params, None, out);
        }
    }

    pub(super) fn news_due(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Legacy(session) if session.news.ready => session.news.due,
            _ => None,
        }
    }

    pub(super) fn tell_news(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.news_due().is_none_or(|due| due > now) {
            return;
        }
        let Some(news) = self.news() else { return };
        news.due = None;
        for method in std::mem::take(&mut news.changed) {
            self.notify(method, &RawJson::empty_object(), None, out);
        }
    }

    /// True if it would change anything, should a client's subscription to a resource begin or end.
    ///
    /// # Errors
    /// −32602 for a URI that is too long, −32600 when the client has too many subscriptions.
    pub(crate) fn subscription(&mut self, uri: &str, begins: bool) -> Result<bool> {
        if begins {
            check_uri("uri", uri)?;
        }
        let Some(news) = self.news() else { return Ok(true) };
        let all = &news.subscriptions;
        if all.contains(uri) == begins {
            return Ok(false);
        }
        let taken = |all: &BTreeSet<Box<str>>| all.iter().map(|uri| uri.len()).sum::<usize>();
        if begins && (all.len() >= MAX_SUBSCRIPTIONS || taken(all) + uri.len() > MAX_SUBSCRIBED) {
            let message = format!(
                "{} resources are subscribed to already, of at most {MAX_SUBSCRIPTIONS} and {MAX_SUBSCRIBED} bytes of \
                 URIs: unsubscribe from some",
                all.len()
            );
            return Err(Error::rpc(code::INVALID_REQUEST, message));
        }
        Ok(true)
    }

    /// A client's subscription to a resource begins or ends.
    ///
    /// # Errors
    /// As [`subscription`](Self::subscription); [`Closed`](ErrorKind::Closed) when the client is gone.
    pub(crate) fn subscribe(&mut self, uri: &str, begins: bool) -> Result<()> {
        if begins && matches!(self.phase, Phase::Closed) {
            return Err(Error::closed("the client is gone"));
        }
        if self.subscription(uri, begins)?
            && let Some(news) = self.news()
        {
            if begins {
                news.subscriptions.insert(uri.into());
            } else {
                news.subscriptions.remove(uri);
                news.theirs.remove(uri);
            }
            self.told += 1;
        }
        Ok(())
    }

    /// The client is gone: nothing is subscribed to any more.
    pub(super) fn unsubscribe_all(&mut self, out: &mut Vec<Action>) {
        let transport = self.transport.clone();
        let Phase::Legacy(session) = &mut self.phase else { return };
        let mut uris = std::mem::take(&mut session.news.subscriptions);
        for uri in std::mem::take(&mut session.news.theirs) {
            uris.remove(&uri);
        }
        if uris.is_empty() {
            return;
        }
        let origin = self.cause.clone().or_else(|| transport.origin.clone());
        let mut context = without_request(session, transport, "resources/unsubscribe");
        context.origin = origin;
        out.push(Action::Unsubscribed(Box::new(context), uris.into_iter().collect()));
    }

    /// The client's roots are others now.
    pub(super) fn roots_changed(&self, out: &mut Vec<Action>) {
        if let (Role::Server, Phase::Legacy(session)) = (self.facts.role, &self.phase) {
            let mut context = without_request(session, self.transport.clone(), "notifications/roots/list_changed");
            context.origin = self.origin();
            out.push(Action::RootsChanged(Box::new(context)));
        }
    }

    /// A notification outside the protocol, of a client in a session. Any other is nothing to a server.
    pub(super) fn pass_on(&self, method: &str, params: Option<RawJson>, out: &mut Vec<Action>) {
        if let (Phase::Legacy(session), true) = (&self.phase, self.facts.passes_on)
            && let Some(row) = Method::foreign(method)
        {
            let transport = self.arrival.as_ref().map_or(&self.transport, |arrival| &arrival.transport).clone();
            let mut context = without_request(session, transport, row.name);
            context.origin = self.origin();
            out.push(Action::PassedOn(Box::new(context), params));
        }
    }

    /// Returns true if this is a client that works on a request of its server.
    pub(super) fn is_asked(&self) -> bool {
        self.facts.role == Role::Client && self.incoming.len() > 0
    }

    /// Returns true if the time of our requests does not run.
    pub(super) fn is_patient(&self) -> bool {
        self.logins > 0 || self.is_asked()
    }

    pub(super) fn authorizing(&mut self, now: Duration, begins: bool) {
        self.logins = if begins { self.logins + 1 } else { self.logins.saturating_sub(1) };
        if self.logins == 0 {
            self.outgoing.restart_all(now);
            self.waiting.iter_mut().for_each(|waiting| waiting.restart(now));
            self.sooner = true;
        }
    }
}

/// The facts of what a handler is told without a request.
pub(super) fn without_request(session: &Session, transport: Arc<Transport>, method: &'static str) -> RequestContext {
    let mut context = RequestContext::of_own(session.revision, method, session.peer.clone(), transport.kind);
    context.transport = transport;
    context
}
