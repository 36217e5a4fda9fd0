//! What a server tells a legacy client unasked.

use super::*;

/// So long changes of a list are gathered before they are told.
const GATHER: Duration = Duration::from_millis(10);
/// The most URIs that one client may be subscribed to.
const MAX_SUBSCRIPTIONS: usize = 1000;

impl Connection {
    fn news(&mut self) -> Option<&mut News> {
        match (&mut self.phase, self.facts.role) {
            (Phase::Legacy(session), Role::Server) => Some(&mut session.news),
            _ => None,
        }
    }

    /// The client has heard what it needs to know.
    pub(super) fn ready(&mut self, now: Duration) {
        if let Some(news) = self.news() {
            news.ready = true;
            if !news.changed.is_empty() {
                news.due = Some(now);
                self.sooner = true;
            }
        }
    }

    pub(super) fn list_changed(&mut self, now: Duration, kind: Kind) {
        if !self.facts.capabilities.declares(kind.capability()) {
            return;
        }
        let Some(news) = self.news() else { return };
        let method = kind.list_changed();
        if !news.changed.contains(&method) {
            news.changed.push(method);
        }
        if news.due.is_none() {
            news.due = Some(now + GATHER);
            self.sooner = true;
        }
    }

    pub(super) fn updated(&mut self, uri: &str, out: &mut Vec<Action>) {
        if self.news().is_some_and(|news| news.wants(uri)) {
            let params = RawJson::from_value(&serde_json::json!({"uri": uri}));
            self.notify("notifications/resources/updated", &params, None, out);
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

    /// A client's subscription to a resource begins or ends.
    ///
    /// # Errors
    /// −32600 when it has too many.
    pub(crate) fn subscribe(&mut self, uri: &str, begins: bool) -> Result<()> {
        let Some(news) = self.news() else { return Ok(()) };
        if !begins {
            news.subscriptions.remove(uri);
        } else if news.subscriptions.len() >= MAX_SUBSCRIPTIONS && !news.subscriptions.contains(uri) {
            let message = format!("{MAX_SUBSCRIPTIONS} resources are subscribed to already: unsubscribe from some");
            return Err(Error::rpc(code::INVALID_REQUEST, message));
        } else {
            news.subscriptions.insert(uri.into());
        }
        Ok(())
    }

    /// Whether this is a client that works on a request of its server.
    pub(super) fn is_asked(&self) -> bool {
        self.facts.role == Role::Client && self.incoming.len() > 0
    }
}
