//! Sender of a request, past all checks before its body.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

use super::headers::Kept;
use super::holder::Holder;
use crate::model::Principal;
use crate::protocol::{Origin, Transport};

/// A request's headers, and its principal where access tokens are checked: then without the token.
pub(super) struct Sender {
    pub(super) headers: HeaderMap,
    pub(super) principal: Option<Arc<Principal>>,
    /// The other end of its connection, where this crate listens.
    pub(super) from: Option<IpAddr>,
    /// It speaks the oldest transport.
    #[cfg_attr(not(feature = "auth"), expect(dead_code, reason = "of access tokens"))]
    pub(super) at_pair: bool,
    /// Data about it from the layers before a mounted endpoint.
    pub(super) extensions: Option<Arc<http::Extensions>>,
    /// Its cause, where this process knows it.
    pub(super) origin: Option<Origin>,
}

impl Sender {
    /// Returns the holder that its sessions count for.
    pub(super) fn holder(&self) -> Holder {
        Holder::of(self.principal.as_deref(), self.from)
    }

    /// Returns the facts of its arrival, for its handler.
    pub(super) fn into_transport(self, session: Option<&Arc<str>>) -> Arc<Transport> {
        self.into_transport_of(session, None)
    }

    /// As [`into_transport`](Self::into_transport). `shared`: the session, by the name that all processes know.
    #[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "of sessions that several processes serve"))]
    pub(super) fn into_transport_of(self, session: Option<&Arc<str>>, shared: Option<&Arc<str>>) -> Arc<Transport> {
        let mut transport = Transport::new("http");
        #[cfg(feature = "redis")]
        {
            transport.shared_session = shared.cloned();
        }
        transport.share = self.holder().share();
        transport.session_id = session.cloned();
        transport.principal = self.principal;
        transport.beside = self.extensions.map(|extensions| extensions as Arc<dyn std::any::Any + Send + Sync>);
        transport.origin = self.origin;
        transport.header_list = Some(Arc::new(Kept(self.headers)));
        Arc::new(transport)
    }
}

/// Returns true if what belongs to one is another's, too.
pub(super) fn is_same(one: Option<&Arc<Principal>>, other: Option<&Arc<Principal>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is(other),
        _ => false,
    }
}
