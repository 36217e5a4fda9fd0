//! A session that the server has lost: begun anew once, with what the old one was told.

use super::*;

/// Our own calls for telling a new session what the old one knew.
const RESTORING: CallId = CallId(u64::MAX - 1);

/// Time for requests of a lost session to find out by themselves, or to be answered all the same.
const ORPHANED: Duration = Duration::from_secs(1);

/// The most subscriptions that are remembered.
const MAX_SUBSCRIPTIONS: usize = 4096;

/// State that a session has because it was told, and the number of the session.
#[derive(Debug, Default)]
pub(super) struct Restorable {
    /// Counts the sessions of this connection.
    pub(super) session: u64,
    /// Parameters of the last `logging/setLevel`.
    level: Option<RawJson>,
    /// The URIs that are subscribed to.
    subscriptions: Vec<String>,
}

impl Restorable {
    /// A request has succeeded.
    fn learn(&mut self, method: &str, params: &RawJson) {
        #[derive(serde::Deserialize)]
        struct Params {
            uri: String,
        }
        match method {
            "logging/setLevel" => self.level = Some(params.clone()),
            "resources/subscribe" | "resources/unsubscribe" => {
                let Ok(Params { uri }) = params.to() else { return };
                self.subscriptions.retain(|other| *other != uri);
                if method == "resources/subscribe" && self.subscriptions.len() < MAX_SUBSCRIPTIONS {
                    self.subscriptions.push(uri);
                }
            }
            _ => {}
        }
    }
}

fn not_repeated(method: &str) -> Error {
    let message = format!(
        "the server lost the session; {method:?} was not repeated, because it may have been carried out (idempotent)"
    );
    Error::new(ErrorKind::Transport, message)
}

impl Connection {
    /// A request of ours is finished.
    pub(super) fn settle(&mut self, outgoing: &Outgoing, outcome: Result<RawJson>, out: &mut Vec<Action>) {
        if self.pinged(outgoing, &outcome, out) {
            return;
        }
        if outgoing.call == RESTORING {
            if let Err(error) = outcome {
                let message = format!("{:?} failed in the new session: {}", outgoing.method, error.message());
                out.push(Action::Warn(message));
            }
            return;
        }
        if let (Phase::Legacy(_), Ok(_), Some(params)) = (&self.phase, &outcome, &outgoing.params) {
            self.restorable.learn(&outgoing.method, params);
        }
        out.push(Action::Resolve(outgoing.call, outcome));
    }

    /// `taken`: the server had taken the request before. Else it was refused for its session before anything ran, and may be
    /// sent again whatever it asks for.
    pub(super) fn session_lost(&mut self, now: Duration, id: &Id, taken: bool, out: &mut Vec<Action>) {
        let Some(mut outgoing) = self.outgoing.remove(id) else {
            return;
        };
        let failed = |message: String| Err(Error::new(ErrorKind::Transport, message));
        if outgoing.resent {
            let outcome = failed("the server lost the session twice in a row".into());
            return self.settle(&outgoing, outcome, out);
        }
        // Losing it again over what it was told would never end; the next request of the user finds out.
        if outgoing.call == RESTORING {
            return self.settle(&outgoing, failed("the server lost the session again".into()), out);
        }
        // Others may have found it lost before, and there is a new one already.
        let lost = outgoing.session == self.restorable.session;
        if lost && let Phase::Legacy(session) = &self.phase {
            let revision = session.revision;
            self.begin_anew(now, revision, outgoing.timeout, out);
        }
        if taken && !outgoing.idempotent {
            return self.settle(&outgoing, Err(not_repeated(&outgoing.method)), out);
        }
        outgoing.orphaned = None;
        outgoing.restart(now);
        (outgoing.resent, outgoing.progress) = (true, Heard::default());
        outgoing.related = None;
        self.waiting.push_back(outgoing);
    }

    /// Nothing was heard of a request since its session was found to be lost: it is not waited for any longer.
    pub(super) fn orphaned(&mut self, now: Duration, id: i64, out: &mut Vec<Action>) {
        let id = Id::Number(id);
        let can_repeat = self.outgoing.get_mut(&id).is_some_and(|outgoing| outgoing.idempotent && !outgoing.resent);
        out.push(Action::Abandon(id.clone()));
        if can_repeat {
            return self.session_lost(now, &id, true, out);
        }
        if let Some(outgoing) = self.outgoing.remove(&id) {
            self.settle(&outgoing, Err(not_repeated(&outgoing.method)), out);
        }
    }

    pub(super) fn session_expired(&mut self, now: Duration, out: &mut Vec<Action>) {
        if let Phase::Legacy(session) = &self.phase {
            let revision = session.revision;
            self.begin_anew(now, revision, self.opening_timeout, out);
        }
    }

    fn begin_anew(&mut self, now: Duration, revision: Revision, timeout: Option<Duration>, out: &mut Vec<Action>) {
        self.restorable.session += 1;
        // Nobody waits any more for the server's questions in the old session.
        for call in self.incoming.drain() {
            out.push(Action::Abort(call, Some("the server lost the session".into())));
        }
        out.push(Action::SessionLost);
        self.lasting.clear();
        self.batches.clear();
        self.waiting.retain(|waiting| waiting.call != RESTORING);
        // Requests that stood still for the server's questions go on.
        self.outgoing.restart_all(now);
        self.outgoing.orphan_all(now + ORPHANED);
        self.sooner = true;
        self.opening_timeout = timeout;
        let mut negotiation = Negotiation::new(Some(revision), Duration::ZERO);
        let step = negotiation.start(&self.facts, Some(Era::Legacy));
        self.phase = Phase::Opening(Box::new(negotiation));
        self.step(now, step, out);
    }

    /// Tells a new session what the old one knew, before anything else.
    pub(super) fn restore(&mut self, now: Duration) {
        if self.restorable.session == 0 {
            return;
        }
        let uri = |uri: &String| RawJson::from_value(&serde_json::json!({"uri": uri}));
        let subscriptions = self.restorable.subscriptions.iter().map(|own| ("resources/subscribe", uri(own)));
        let level = self.restorable.level.iter().map(|params| ("logging/setLevel", params.clone()));
        let calls: Vec<_> = level.chain(subscriptions).collect();
        for (method, params) in calls.into_iter().rev() {
            let mut invocation = Invocation::new(RESTORING, method, Some(params));
            invocation.timeout = self.opening_timeout;
            self.waiting.push_front(Outgoing::new(invocation, now));
        }
    }
}
