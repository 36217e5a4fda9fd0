use std::sync::Arc;

use super::Peer;
use crate::call::Link;
use crate::error::Error;
use crate::jsonrpc::RawJson;
use crate::protocol::{Call, NotificationCause, Opening, RequestContext};
use crate::server::Router;

/// Service that runs the peer's requests: a server's router, or a client's answers.
pub(crate) trait Service: Send + Sync {
    /// Runs a request; its answer comes through [`Peer::complete`].
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>);
    /// A notification for the user.
    fn notified(&self, _method: &str, _params: Option<RawJson>, _cause: &NotificationCause) {}
    /// A client is gone that was subscribed to these; the context is that of its session.
    fn unsubscribed(&self, _peer: &Arc<Peer>, _context: RequestContext, _uris: Vec<Box<str>>) {}
    /// Something is wrong that is no reason to fail.
    fn warning(&self, _message: &str) {}
    /// The cached answers to this method are out of date.
    fn outdated(&self, _method: &str) {}
    /// Somebody else is logged in at the server, or may do more there.
    fn logged_in(&self) {}
    /// The client's roots are others now.
    fn roots_changed(&self, _peer: &Arc<Peer>, _context: RequestContext) {}
    /// The negotiation of a client succeeded.
    fn opened(&self, _peer: &Arc<Peer>, _opening: Opening) {}
    /// The connection ended.
    fn closed(&self, _peer: &Arc<Peer>, _reason: &Error, _relaunch: bool) {}
    /// The connection goes on with a new session.
    fn session_lost(&self, _peer: &Arc<Peer>) {}
    /// Returns true if the peer has something here that it can come back for although no connection is open.
    fn keeps(&self, _peer: &Peer) -> bool {
        false
    }
}

impl Service for Router {
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>) {
        let link: Arc<dyn Link> = peer.clone();
        Self::dispatch(self, &link, *call);
    }

    fn closed(&self, peer: &Arc<Peer>, _reason: &Error, _relaunch: bool) {
        if let Some(tasks) = self.tasks() {
            tasks.ended(&**peer);
        }
        Self::ended(&**peer);
    }

    fn keeps(&self, peer: &Peer) -> bool {
        self.tasks().is_some_and(|tasks| tasks.has_of(peer))
    }

    fn roots_changed(&self, peer: &Arc<Peer>, context: RequestContext) {
        let link: Arc<dyn Link> = peer.clone();
        Self::roots_changed(self, &link, context);
    }

    fn unsubscribed(&self, peer: &Arc<Peer>, context: RequestContext, uris: Vec<Box<str>>) {
        let link: Arc<dyn Link> = peer.clone();
        Self::unsubscribed(self, &link, &context, &uris);
    }
}
