//! The call that runs on this thread: for everything that a handler does without being given its context, such as
//! tracing.

#[cfg(feature = "tracing")]
use std::cell::RefCell;

use super::Context;

#[cfg(feature = "tracing")]
thread_local! {
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// As long as this lives, the call is the thread's current one, and its span that of OpenTelemetry.
#[must_use]
pub(crate) struct Scope {
    #[cfg(feature = "tracing")]
    before: Option<Context>,
    #[cfg(feature = "otel")]
    _spans: Option<opentelemetry::ContextGuard>,
}

/// The span in which a request's handler runs.
#[cfg(feature = "otel")]
pub(crate) struct OtelScope(pub(crate) opentelemetry::Context);

impl Scope {
    #[cfg_attr(not(any(feature = "tracing", feature = "otel")), expect(unused_variables, reason = "nobody asks"))]
    pub(crate) fn enter(context: &Context) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            before: CURRENT.replace(Some(context.clone())),
            #[cfg(feature = "otel")]
            _spans: context.state::<OtelScope>().map(|scope| scope.0.clone().attach()),
        }
    }
}

/// Runs a future elsewhere for the current caller: in the span of OpenTelemetry that is current here.
#[cfg(all(feature = "runtime", feature = "otel"))]
pub(crate) fn in_scope<F: Future>(future: F) -> impl Future<Output = F::Output> {
    opentelemetry::trace::FutureExt::with_current_context(future)
}

/// Runs a future elsewhere for the current caller.
#[cfg(all(feature = "runtime", not(feature = "otel")))]
pub(crate) fn in_scope<F: Future>(future: F) -> F {
    future
}

#[cfg(feature = "tracing")]
impl Drop for Scope {
    fn drop(&mut self) {
        // A context that goes may run user code, so not while it is borrowed.
        let over = CURRENT.replace(self.before.take());
        drop(over);
    }
}

/// The call whose handler runs on this thread.
#[cfg(feature = "tracing")]
pub(crate) fn current() -> Option<Context> {
    // A thread that ends has none.
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}
