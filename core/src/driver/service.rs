use std::sync::Arc;

use super::{Peer, Service};
use crate::call::Link;
use crate::error::Error;
use crate::jsonrpc::RawJson;
use crate::protocol::{Call, RequestContext};
use crate::server::Router;

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

    fn passed_on(&self, peer: &Arc<Peer>, context: RequestContext, params: Option<RawJson>) {
        let link: Arc<dyn Link> = peer.clone();
        Self::passed_on(self, &link, context, params);
    }

    fn unsubscribed(&self, peer: &Arc<Peer>, context: RequestContext, uris: Vec<Box<str>>) {
        let link: Arc<dyn Link> = peer.clone();
        Self::unsubscribed(self, &link, &context, &uris);
    }
}
