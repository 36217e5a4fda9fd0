use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

#[cfg(feature = "redis")]
use super::feeds::Reading;
use super::outlet::Outlet;
use super::pair;
use super::sessions::Session;
use super::tickets::Ticket;
use crate::driver::{Peer, now};
use crate::protocol::Route;
use crate::store::Stream;

/// One response that is on its way, from the side of its reader. Dropped unfinished, the client has gone away.
pub(super) struct Exchange {
    outlet: Arc<Outlet>,
    owner: Owner,
    resumed: bool,
    finished: bool,
    /// Longest time of its stream.
    pub(super) until: Option<Duration>,
}

/// Owner of its messages.
pub(super) enum Owner {
    /// A stateless request's.
    Stateless { peer: Arc<Peer>, ticket: Ticket },
    /// A request's, within a session.
    Request { session: Arc<Session>, route: Route },
    /// The standalone stream's of a session.
    Stream { session: Arc<Session>, key: u64, _ticket: Ticket },
    /// A client's of the oldest transport.
    Pair { reading: pair::Reading, _ticket: Ticket },
    /// A request's that another process works on.
    #[cfg(feature = "redis")]
    Feed { session: Arc<Session>, reading: Arc<Reading>, _ticket: Ticket },
}

impl Exchange {
    pub(super) fn new(outlet: Arc<Outlet>, owner: Owner) -> Self {
        Self { outlet, owner, resumed: false, finished: false, until: None }
    }

    /// The rest of a stream: it does not begin anew.
    pub(super) fn resumed(outlet: Arc<Outlet>, owner: Owner) -> Self {
        Self { outlet, owner, resumed: true, finished: false, until: None }
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Returns true if it answers nobody, but tells what there is to tell.
    pub(super) fn waits(&self) -> bool {
        match &self.owner {
            Owner::Stateless { ticket, .. } => ticket.is_of_listener(),
            Owner::Request { .. } => false,
            Owner::Stream { .. } | Owner::Pair { .. } => true,
            // Its client can come back for the rest, to any process.
            #[cfg(feature = "redis")]
            Owner::Feed { .. } => true,
        }
    }

    /// The reader has taken a message of so many bytes.
    #[cfg(feature = "redis")]
    pub(super) fn took(&self, bytes: usize) {
        if let Owner::Feed { reading, .. } = &self.owner {
            reading.took(bytes);
        }
    }

    /// The response will be a stream.
    pub(super) fn begin_stream(&self) {
        if let Owner::Request { session, route } = &self.owner {
            session.lanes().begin_stream(*route);
        }
    }

    /// Returns the beginning of its stream.
    pub(super) fn first(&self) -> Option<Bytes> {
        match &self.owner {
            Owner::Request { session, route } if !self.resumed => session.lanes().priming(Stream::Request(route.0)),
            Owner::Stream { session, key, .. } if !self.resumed => session.lanes().priming(Stream::Standalone(*key)),
            Owner::Pair { reading, .. } => Some(reading.first()),
            _ => None,
        }
    }

    /// The time is over for which its stream could last. A newer token may have come meanwhile, with a message.
    pub(super) fn still_lasts(&self) -> Option<Duration> {
        match &self.owner {
            Owner::Pair { reading, .. } => Some(reading.left()).filter(|left| !left.is_zero()),
            _ => None,
        }
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
                session.lanes().leave(*route, &self.outlet);
                #[cfg(feature = "redis")]
                super::shared::is_over(session);
            }
            Owner::Stream { session, key, .. } => {
                session.left(now());
                session.lanes().close_stream(*key, &self.outlet);
            }
            Owner::Pair { reading, .. } => reading.end(),
            #[cfg(feature = "redis")]
            Owner::Feed { session, reading, .. } => {
                session.left(now());
                session.feeds.leave(reading);
            }
        }
    }
}
