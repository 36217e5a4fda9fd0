//! A legacy session that several processes serve: one of them opens it, and all know what its client has told.

use std::collections::BTreeSet;

use super::*;

/// State that a client has given its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) level: Option<LogLevel>,
    /// The client has said that it is initialized.
    pub(crate) initialized: bool,
    pub(crate) subscriptions: BTreeSet<Box<str>>,
}

impl Connection {
    /// A server's connection of a client that another process has initialized, with these parameters.
    ///
    /// # Errors
    /// As for `initialize`.
    pub(crate) fn adopted(
        facts: Arc<Facts>,
        transport: Arc<Transport>,
        revision: Revision,
        params: &RawJson,
    ) -> Result<Self> {
        let (_, peer, _) = legacy::answer(&facts, Some(params))?;
        let phase = Phase::Legacy(Box::new(Session::new(revision, Arc::new(peer))));
        Ok(Self { phase, ..Self::new(facts, transport) })
    }

    /// Returns the parameters of `initialize` that a session keeps, as far as other processes need them.
    pub(crate) fn kept(params: &RawJson) -> String {
        #[derive(Default, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Kept {
            // The revision was negotiated from it, and is kept apart.
            #[serde(skip_deserializing)]
            protocol_version: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            capabilities: Option<RawJson>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            client_info: Option<RawJson>,
        }
        RawJson::from_value(&params.to::<Kept>().unwrap_or_default()).get().to_owned()
    }

    /// The client has begun anew in another process, with these parameters.
    ///
    /// # Errors
    /// As for `initialize`.
    pub(crate) fn begun_elsewhere(&mut self, revision: Revision, params: &RawJson) -> Result<()> {
        let (_, peer, _) = legacy::answer(&self.facts, Some(params))?;
        if let Phase::Legacy(session) = &mut self.phase {
            (session.revision, session.peer) = (revision, Arc::new(peer));
        }
        Ok(())
    }

    /// The ids of requests to the peer follow this number, so that those of no other process are the same.
    pub(crate) fn number_from(&mut self, last: i64) {
        self.outgoing.number_from(last);
    }

    /// Returns the number of changes of what the client has told.
    pub(crate) fn told_count(&self) -> u64 {
        self.told
    }

    /// Returns what the client has told, in a session.
    pub(crate) fn told(&self) -> Option<Told> {
        let Phase::Legacy(session) = &self.phase else { return None };
        let News { initialized, subscriptions, .. } = &session.news;
        Some(Told { level: session.log_level, initialized: *initialized, subscriptions: subscriptions.clone() })
    }

    /// All processes knew `known`, and know `told` now. The client has told this process something else meanwhile: that
    /// stays. Ends what it has ended elsewhere.
    pub(crate) fn retell(&mut self, now: Duration, known: &Told, mut told: Told) -> Vec<Action> {
        let mut out = Vec::new();
        let transport = self.transport.clone();
        let Phase::Legacy(session) = &mut self.phase else { return out };
        if session.log_level == known.level {
            session.log_level = told.level;
        }
        let mut ended = Vec::new();
        let news = &mut session.news;
        told.subscriptions.extend(news.subscriptions.difference(&known.subscriptions).cloned());
        told.subscriptions.retain(|uri| news.subscriptions.contains(uri) || !known.subscriptions.contains(uri));
        for uri in news.subscriptions.difference(&told.subscriptions) {
            if !news.theirs.remove(uri) {
                ended.push(uri.clone());
            }
        }
        for uri in told.subscriptions.difference(&news.subscriptions) {
            news.theirs.insert(uri.clone());
        }
        news.subscriptions = told.subscriptions;
        if !ended.is_empty() {
            let context = news::without_request(session, transport, "resources/unsubscribe");
            out.push(Action::Unsubscribed(Box::new(context), ended));
        }
        if told.initialized && !session.news.initialized {
            self.ready(now);
            self.send_waiting(&mut out);
        }
        out
    }

    /// Returns true if a request of the peer with this id is being worked on.
    pub(crate) fn works_on(&self, id: &Id) -> bool {
        self.incoming.has(id) || self.is_listener(id)
    }
}
