use std::sync::Arc;

use super::endpoint::Ticket;
use super::outlet::Outlet;
use super::sessions::Session;
use crate::driver::{Peer, now};
use crate::protocol::Route;

/// One response that is on its way, from the side of its reader. Dropped unfinished, the client has gone away.
pub(super) struct Exchange {
    outlet: Arc<Outlet>,
    owner: Owner,
    finished: bool,
}

/// Whose messages they are.
pub(super) enum Owner {
    /// A stateless request's.
    Stateless { peer: Arc<Peer>, _ticket: Ticket },
    /// A request's, within a session.
    Request { session: Arc<Session>, route: Route },
    /// The standalone stream's of a session.
    Stream { session: Arc<Session>, key: u64, _ticket: Ticket },
}

impl Exchange {
    pub(super) fn new(outlet: Arc<Outlet>, owner: Owner) -> Self {
        Self { outlet, owner, finished: false }
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// The last message was taken, or there will be none.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match &self.owner {
            // Closing the stream is how a stateless request is cancelled.
            Owner::Stateless { peer, .. } if !self.finished => peer.close("the client closed the response stream"),
            Owner::Stateless { .. } => {}
            // A session's request runs on: a lost connection is no cancellation.
            Owner::Request { session, route } => {
                session.left(now());
                session.lanes().forget(*route);
            }
            Owner::Stream { session, key, .. } => {
                session.left(now());
                session.lanes().close_stream(*key);
            }
        }
    }
}
