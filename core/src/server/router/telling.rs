//! Subscriptions and changed roots that a client tells its server of, and the handlers that hear of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use serde_json::json;

use super::session::Overlay;
use crate::call::{Context, Handler, Link, Reply, Shaper};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::{Call, CallId, Payload, RequestContext};
use crate::report;
use crate::server::Router;
use crate::server::dispatch::{fail, run_with};
use crate::server::listed::{Common, Kind};
use crate::server::permits::may_use;
use crate::server::registry::{Changes, Registry};
use crate::server::resources::not_found;
use crate::server::router::{covers, named};

impl Router {
    pub(super) fn subscribe(&self, link: &Arc<dyn Link>, call: Call, begins: bool) {
        let uri = match named(&call, "uri", "the URI of a resource") {
            Ok(uri) => uri.into_owned(),
            Err(error) => return fail(link, &call, error),
        };
        let (known, hook) = self.look(link, &call, |registry, changes| {
            let known = knows(registry, &uri, changes)
                && may_use(registry, changes, Kind::Resource, &uri, &call.context.transport);
            (known, registry.subscription.clone())
        });
        // A resource that was there once may be unsubscribed from.
        if begins && !known {
            return fail(link, &call, not_found(&uri));
        }
        // Only what changes something is asked about.
        let hook = match link.subscription(&uri, begins) {
            Ok(changes) => hook.filter(|_| changes),
            Err(error) => return fail(link, &call, error),
        };
        match hook {
            None => {
                let outcome = link.subscribe(&uri, begins).map(|()| Payload::Object(RawJson::empty_object()));
                link.clone().complete(call.id, outcome);
            }
            Some(hook) => {
                let params = RawJson::from_value(&json!({"uri": uri, "subscribed": begins}));
                let context = Context::new(call.id, call.context, link.clone(), hook.clone());
                let begun = begins.then(|| Begun {
                    context: context.clone(),
                    hook: hook.clone(),
                    missed: AtomicBool::new(false),
                });
                let (settled, common) = (AtomicBool::new(false), self.common.clone());
                let shaper = Subscribed { link: link.clone(), uri, begins, begun, settled, common };
                run_with(context, &hook, Some(Arc::new(shaper)), params);
            }
        }
    }

    /// Tells the hook of the subscriptions that ended with their client's session or listen stream.
    pub(crate) fn unsubscribed(&self, link: &Arc<dyn Link>, context: &RequestContext, uris: &[Box<str>]) {
        let hook = self.registry.read().unwrap_or_else(PoisonError::into_inner).subscription.clone();
        let Some(hook) = hook else { return };
        for uri in uris {
            let mut request = context.clone();
            request.states = self.all_states();
            tell_ended(link, request, &hook, uri, &self.common);
        }
    }

    /// Returns true if methods are heard of outside the protocol.
    pub(crate) fn has_fallback(&self) -> bool {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).fallback.is_some()
    }

    /// Answers a request outside the protocol.
    pub(super) fn pass_on(&self, link: &Arc<dyn Link>, call: Call) {
        let fallback = self.registry.read().unwrap_or_else(PoisonError::into_inner).fallback.clone();
        let Some((requests, _)) = fallback else {
            let error = Error::rpc(code::METHOD_NOT_FOUND, format!("method {:?} is not served", call.method.name));
            return link.clone().complete(call.id, Err(error));
        };
        let params = call.params.clone().unwrap_or_else(RawJson::empty_object);
        let shaper = PassedOn(call.method.name, self.common.clone());
        crate::server::dispatch::start(link, call, requests, Some(Arc::new(shaper)), params);
    }

    /// Hears of a notification outside the protocol. Nobody waits for an answer.
    pub(crate) fn passed_on(&self, link: &Arc<dyn Link>, mut context: RequestContext, params: Option<RawJson>) {
        let fallback = self.registry.read().unwrap_or_else(PoisonError::into_inner).fallback.clone();
        let Some((_, hook)) = fallback else { return };
        context.states = self.all_states();
        let shaper = PassedOn(context.method, self.common.clone());
        let cx = Context::new(CallId(0), context, link.clone(), hook.clone());
        let reply = Reply::new(cx.clone(), Some(Arc::new(shaper)));
        let params = params.unwrap_or_else(RawJson::empty_object);
        report::guarded("a notification", || hook.call(cx, params, reply));
    }

    /// The client's roots are others now.
    pub(crate) fn roots_changed(&self, link: &Arc<dyn Link>, mut context: RequestContext) {
        let hook = self.registry.read().unwrap_or_else(PoisonError::into_inner).roots_changed.clone();
        let (Some(hook), Some(router)) = (hook, self.this.upgrade()) else { return };
        let slot = link.session().get_or_init(|| Arc::new(Overlay::new(router)));
        let Ok(overlay) = slot.clone().downcast::<Overlay>() else { return };
        if !overlay.roots.begin() {
            return;
        }
        context.states = self.all_states();
        Told { overlay, link: link.clone(), context, hook }.tell();
    }
}

/// Returns true if there may be a resource with this URI.
pub(super) fn knows(registry: &Registry, uri: &str, changes: Option<&Changes>) -> bool {
    registry.find(|r| &r.resources, uri, changes).is_some()
        || registry.visible(|r| &r.templates, changes).any(|entry| entry.template.matches(uri).is_some())
        || covers(registry, uri, changes)
        || registry.source(Kind::Resource).list.is_some()
        || registry.source(Kind::Resource).get.is_some()
}

/// A method outside the protocol.
struct PassedOn(&'static str, Arc<Common>);

impl Shaper for PassedOn {
    fn shape(&self, payload: Payload, _: crate::protocol::revision::Revision) -> Result<Payload> {
        match payload {
            Payload::Failed(text) => Err(Error::rpc(code::INTERNAL_ERROR, text)),
            other => Ok(other),
        }
    }

    fn subject(&self) -> String {
        format!("{:?}", self.0)
    }

    fn name(&self) -> &str {
        self.0
    }

    fn failures(&self) -> &crate::call::Failures {
        &self.1.failures
    }
}

/// A hook that is told of changed roots. Nobody hears what it answers; dropped, its run has ended.
#[derive(Clone)]
struct Told {
    overlay: Arc<Overlay>,
    link: Arc<dyn Link>,
    context: RequestContext,
    hook: Arc<dyn Handler>,
}

impl Told {
    fn tell(self) {
        let (hook, link) = (self.hook.clone(), self.link.clone());
        let cx = Context::new(CallId(0), self.context.clone(), link, hook.clone());
        let reply = Reply::new(cx.clone(), Some(Arc::new(Run(self))));
        report::guarded("what hears of roots", || hook.call(cx, RawJson::empty_object(), reply));
    }
}

/// One run of it.
struct Run(Told);

impl Drop for Run {
    fn drop(&mut self) {
        if self.0.overlay.roots.end() {
            self.0.clone().tell();
        }
    }
}

impl Shaper for Run {
    fn shape(&self, payload: Payload, _: crate::protocol::revision::Revision) -> Result<Payload> {
        Ok(payload)
    }

    fn subject(&self) -> String {
        "what hears of roots".into()
    }

    fn name(&self) -> &str {
        "roots_changed"
    }

    fn failures(&self) -> &crate::call::Failures {
        &self.0.overlay.router.common.failures
    }
}

/// Tells the hook of a subscription that has ended. Nobody waits for the answer.
pub(super) fn tell_ended(
    link: &Arc<dyn Link>,
    request: RequestContext,
    hook: &Arc<dyn Handler>,
    uri: &str,
    common: &Arc<Common>,
) {
    let params = RawJson::from_value(&json!({"uri": uri, "subscribed": false}));
    let cx = Context::new(CallId(0), request, link.clone(), hook.clone());
    let (link, uri, settled, common) = (link.clone(), uri.to_owned(), AtomicBool::new(true), common.clone());
    let shaper = Subscribed { link, uri, begins: false, begun: None, settled, common };
    let reply = Reply::new(cx.clone(), Some(Arc::new(shaper)));
    report::guarded("the subscription", || hook.call(cx, params, reply));
}

/// A subscription that its hook was asked about: it holds when the hook does not refuse. When it does not hold although
/// the hook did not, because its client left meanwhile, the hook is told of the end.
struct Subscribed {
    link: Arc<dyn Link>,
    uri: String,
    begins: bool,
    begun: Option<Begun>,
    /// It holds, has ended, or was refused.
    settled: AtomicBool,
    common: Arc<Common>,
}

/// The request to begin.
struct Begun {
    context: Context,
    hook: Arc<dyn Handler>,
    /// The hook had nothing against it, and yet it does not hold.
    missed: AtomicBool,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Some(Begun { context, hook, missed }) = self.begun.take() else { return };
        // Another request may have begun it meanwhile.
        let is_other = || self.link.subscription(&self.uri, true).is_ok_and(|changes| !changes);
        if (missed.into_inner() || context.is_cancelled()) && !self.settled.load(Ordering::Acquire) && !is_other() {
            tell_ended(&self.link, context.request().clone(), &hook, &self.uri, &self.common);
        }
    }
}

impl Shaper for Subscribed {
    fn shape(&self, payload: Payload, _: crate::protocol::revision::Revision) -> Result<Payload> {
        match payload {
            Payload::Failed(text) => {
                self.settled.store(true, Ordering::Release);
                Err(Error::rpc(code::INTERNAL_ERROR, text))
            }
            _ => {
                let outcome = self.link.subscribe(&self.uri, self.begins);
                if let (Err(_), Some(begun)) = (&outcome, &self.begun) {
                    begun.missed.store(true, Ordering::Release);
                }
                outcome?;
                self.settled.store(true, Ordering::Release);
                Ok(Payload::Object(RawJson::empty_object()))
            }
        }
    }

    fn subject(&self) -> String {
        "the subscription".into()
    }

    fn name(&self) -> &str {
        "subscription"
    }

    fn failures(&self) -> &crate::call::Failures {
        &self.common.failures
    }
}
