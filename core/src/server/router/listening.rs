//! Clients that listen: the changes that they can be told of, and the hook that is asked about them (specification
//! 2026-07-28, "Subscriptions").

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::telling::{knows, tell_ended};
use crate::call::{Context, Handler, Link, Listened, Reply, Shaper, Tasks, may_be_task};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::{SubscriptionFilter, TASKS_EXTENSION};
use crate::protocol::revision::modern::missing_extension;
use crate::protocol::{Call, CallId, Counted, Input, Listen, Payload, RequestContext};
use crate::report;
use crate::server::Router;
use crate::server::dispatch::fail;
use crate::server::listed::{Common, Kind};
use crate::server::permits::may_use;

impl Router {
    /// Lets a client listen to what it asks for, as far as this server tells of that.
    pub(super) fn listen(&self, link: &Arc<dyn Link>, call: Call) {
        let changes = SubscriptionFilter::capabilities().any(|capability| link.declares(capability));
        if !changes && self.tasks().is_none() {
            let message = format!("method {:?} is not served: nothing here changes", call.method.name);
            return fail(link, &call, Error::rpc(code::METHOD_NOT_FOUND, message));
        }
        let tasks = self.tasks();
        let declares = |id: &str| call.context.peer.capabilities.has_extension(id);
        let read = asked(call.params.as_ref(), tasks.is_some(), |members, filter| {
            self.extensions.asked(members, declares, filter)
        });
        let mut filter = match read {
            Ok(filter) => filter,
            Err(error) => return fail(link, &call, error),
        };
        let mut listened = Listened::new();
        if let Some(tasks) = tasks.as_ref().filter(|_| !filter.task_ids.is_empty()) {
            if !may_be_task(&call.context) {
                return fail(link, &call, missing_extension(TASKS_EXTENSION));
            }
            let elsewhere;
            match tasks.listened_to(link, &call, &mut filter) {
                Ok(all) => (listened, elsewhere) = all,
                Err(error) => return fail(link, &call, error),
            }
            #[cfg(feature = "redis")]
            if !elsewhere.is_empty()
                && let Some(router) = self.this.upgrade()
            {
                let (tasks, to) = (tasks.clone(), link.clone());
                return link.spawn(Box::pin(async move {
                    match tasks.listened_to_afar(&to, &call, elsewhere).await {
                        Ok(found) => {
                            listened.extend(found);
                            router.listen_to(&to, call, filter, Some((tasks, listened)));
                        }
                        Err(error) => fail(&to, &call, error),
                    }
                }));
            }
            drop(elsewhere);
        }
        self.listen_to(link, call, filter, tasks.map(|tasks| (tasks, listened)));
    }

    /// Lets a client listen to this, and to these tasks.
    fn listen_to(
        &self,
        link: &Arc<dyn Link>,
        call: Call,
        mut filter: SubscriptionFilter,
        tasks: Option<(Arc<Tasks>, Listened)>,
    ) {
        if let Some((_, listened)) = &tasks {
            filter.task_ids = listened.iter().map(|(_, id, _)| id.clone()).collect();
        }
        for capability in SubscriptionFilter::capabilities().filter(|capability| !link.declares(capability)) {
            filter.without(capability);
        }
        let hook = self.look(link, &call, |registry, changes| {
            let may = |uri: &str| may_use(registry, changes, Kind::Resource, uri, &call.context.transport);
            filter.resource_subscriptions.retain(|uri| knows(registry, uri, changes) && may(uri));
            registry.subscription.clone()
        });
        let uris = match hook {
            Some(_) => std::mem::take(&mut filter.resource_subscriptions),
            None => Vec::new(),
        };
        let Call { id, context, .. } = call;
        let asking = Arc::new(Asking::default());
        let outer = Context::new(id, context.clone(), link.clone(), asking.clone());
        // A request that waits for the hook can be cancelled.
        if !uris.is_empty() && !link.started(&outer) {
            return;
        }
        let (link, common, allowed) = (link.clone(), self.common.clone(), Mutex::default());
        let gathers =
            Arc::new(Gathers { link, call: id, context, common, tasks, asking, filter, uris: uris.clone(), allowed });
        for (place, uri) in uris.into_iter().enumerate() {
            if let (Some(hook), false) = (&hook, outer.is_cancelled()) {
                ask(&gathers, hook, place, uri);
            }
        }
        // It goes on where the last one of these ends.
    }
}

/// Reads the filter of a listen request.
fn asked(
    params: Option<&RawJson>,
    has_tasks: bool,
    others: impl FnOnce(&Map<String, Value>, &mut SubscriptionFilter) -> Result<()>,
) -> Result<SubscriptionFilter> {
    let members: Map<String, Value> = params.and_then(|params| params.to().ok()).unwrap_or_default();
    match members.get("notifications") {
        None => Err(Error::invalid_params("\"notifications\": missing, expected an object of what to listen to")),
        Some(Value::Object(members)) => {
            let mut filter = SubscriptionFilter::read(members)?;
            if has_tasks {
                filter.read_tasks(members)?;
            }
            others(members, &mut filter)?;
            Ok(filter)
        }
        Some(other) => {
            let other = other.to_string();
            let message = format!("\"notifications\": expected an object, got {}", shortened(&other, 60));
            Err(Error::invalid_params(message))
        }
    }
}

/// The runs of the hook that one request waits for.
#[derive(Default)]
struct Asking(Mutex<Vec<Context>>);

impl Asking {
    fn take(&self) -> Vec<Context> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handler for Asking {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        drop(reply);
    }

    fn cancel(&self, _: &Context, reason: Option<&str>) {
        self.take().iter().for_each(|context| context.cancel(reason));
    }
}

/// A request whose resources the hook is asked about. Dropped, it has been asked about all of them.
struct Gathers {
    link: Arc<dyn Link>,
    call: CallId,
    context: RequestContext,
    common: Arc<Common>,
    tasks: Option<(Arc<Tasks>, Listened)>,
    asking: Arc<Asking>,
    /// The part of the filter that the hook is not asked about.
    filter: SubscriptionFilter,
    uris: Vec<String>,
    /// The places of those that it has nothing against.
    allowed: Mutex<Vec<usize>>,
}

impl Drop for Gathers {
    fn drop(&mut self) {
        drop(self.asking.take());
        let mut filter = std::mem::take(&mut self.filter);
        let mut allowed = std::mem::take(&mut *self.allowed.lock().unwrap_or_else(PoisonError::into_inner));
        allowed.sort_unstable();
        filter.resource_subscriptions.extend(allowed.into_iter().filter_map(|place| self.uris.get(place).cloned()));
        let counted = Counted::new(&self.common.listeners);
        let listen = Listen::new(self.call, filter, self.context.clone(), counted);
        // Should the client be gone, those that watch its resources are told so.
        self.link.clone().input(Input::Listen(Box::new(listen)));
        // Changes of them since they were asked about are not lost.
        if let Some((tasks, listened)) = &self.tasks {
            for one in listened {
                if let Some((version, params)) = tasks.tell_now(one) {
                    self.link.clone().input(Input::Task { id: one.1.as_str().into(), version, params });
                }
            }
        }
    }
}

/// Asks the hook about one resource.
fn ask(gathers: &Arc<Gathers>, hook: &Arc<dyn Handler>, place: usize, uri: String) {
    let params = RawJson::from_value(&json!({"uri": uri, "subscribed": true}));
    let context = Context::new(CallId::new(0), gathers.context.clone(), gathers.link.clone(), hook.clone());
    gathers.asking.0.lock().unwrap_or_else(PoisonError::into_inner).push(context.clone());
    let (gathers, own, verdict) = (gathers.clone(), hook.clone(), AtomicU8::new(UNKNOWN));
    let shaper = Asked { gathers, hook: own, context: context.clone(), place, uri, verdict };
    let reply = Reply::new(context.clone(), Some(Arc::new(shaper)));
    report::guarded("the subscription", || hook.call(context, params, reply));
}

const UNKNOWN: u8 = 0;
const ALLOWED: u8 = 1;
const REFUSED: u8 = 2;

/// One resource that the hook is asked about: it is listened to when the hook does not refuse.
struct Asked {
    gathers: Arc<Gathers>,
    hook: Arc<dyn Handler>,
    context: Context,
    place: usize,
    uri: String,
    verdict: AtomicU8,
}

impl Drop for Asked {
    fn drop(&mut self) {
        match self.verdict.load(Ordering::Acquire) {
            ALLOWED => self.gathers.allowed.lock().unwrap_or_else(PoisonError::into_inner).push(self.place),
            // Nobody knows how far the hook came.
            UNKNOWN if self.context.is_cancelled() => {
                let Gathers { link, context, common, .. } = &*self.gathers;
                tell_ended(link, context.clone(), &self.hook, &self.uri, common);
            }
            _ => {}
        }
    }
}

impl Shaper for Asked {
    fn shape(&self, payload: Payload, _: crate::protocol::revision::Revision) -> Result<Payload> {
        let (verdict, outcome) = match payload {
            Payload::Failed(text) => (REFUSED, Err(Error::rpc(code::INTERNAL_ERROR, text))),
            _ => (ALLOWED, Ok(Payload::Object(RawJson::empty_object()))),
        };
        self.verdict.store(verdict, Ordering::Release);
        outcome
    }

    fn subject(&self) -> String {
        "the subscription".into()
    }

    fn name(&self) -> &str {
        "subscription"
    }

    fn failures(&self) -> &crate::call::Failures {
        &self.gathers.common.failures
    }
}
