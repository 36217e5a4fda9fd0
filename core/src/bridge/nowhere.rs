//! Contexts of functions that belong to no request.

use std::sync::Arc;

use crate::call::{BoxFuture, CallOptions, Clock, Context, Done, Guard, Handler, Link, SessionSlot};
use crate::driver::{Time, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::Revision;
use crate::protocol::{CallId, Input, LogLevel, Payload, PeerFacts, RequestContext, Role};

/// A context without a request.
pub(super) fn alone(handler: &Arc<dyn Handler>) -> Context {
    let nobody = Arc::new(PeerFacts::default());
    let mut facts = RequestContext::of_own(Revision::NEWEST, "", nobody, "none");
    facts.origin = super::origin::current();
    Context::new(CallId::new(0), facts, Arc::new(Nowhere::default()), handler.clone())
}

/// The way to nobody.
#[derive(Default)]
pub(super) struct Nowhere(SessionSlot);

impl Link for Nowhere {
    fn started(&self, _: &Context) -> bool {
        true
    }

    fn complete(self: Arc<Self>, _: CallId, _: Result<Payload>) {}

    fn input(self: Arc<Self>, _: Input) {}

    fn spawn(&self, future: BoxFuture<()>) {
        runtime::spawn(future);
    }

    fn block(&self, work: Box<dyn FnOnce() + Send>) {
        runtime::handle().spawn_blocking(work);
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        _: Option<RawJson>,
        _: &CallOptions,
        _: Option<CallId>,
        done: Done,
    ) -> Guard {
        done(Err(Error::new(
            ErrorKind::Unsupported,
            format!("{method:?} was not sent: this is no request of a client"),
        )));
        Box::new(())
    }

    fn awaited(&self) -> usize {
        0
    }

    fn role(&self) -> Role {
        Role::Server
    }

    fn subscription(&self, _: &str, _: bool) -> Result<bool> {
        Ok(false)
    }

    fn subscribe(&self, _: &str, _: bool) -> Result<()> {
        Ok(())
    }

    fn declares(&self, _: &str) -> bool {
        false
    }

    fn session(&self) -> &SessionSlot {
        &self.0
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(Time)
    }

    fn number(&self) -> u64 {
        0
    }

    fn is_heard(&self) -> bool {
        false
    }

    fn is_read(&self, _: CallId) -> bool {
        false
    }

    fn take_up(&self, _: CallId) {}
}
