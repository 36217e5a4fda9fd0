//! Ends of a request on its way: a handler runs, or an error is the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use crate::call::{Context, Handler, Link, Reply, Scope, Shaper};
use crate::error::Error;
use crate::jsonrpc::RawJson;
use crate::protocol::Call;

pub(super) fn fail(link: &Arc<dyn Link>, call: &Call, error: Error) {
    link.clone().complete(call.id, Err(error));
}

/// Runs a handler.
pub(super) fn start(
    link: &Arc<dyn Link>,
    call: Call,
    handler: Arc<dyn Handler>,
    shaper: Option<Arc<dyn Shaper>>,
    params: RawJson,
) {
    let context = Context::new(call.id, call.context, link.clone(), handler.clone());
    run_with(context, &handler, shaper, params);
}

/// Runs the handler of a request.
pub(super) fn run_with(context: Context, handler: &Arc<dyn Handler>, shaper: Option<Arc<dyn Shaper>>, params: RawJson) {
    if !context.link().started(&context) {
        return;
    }
    #[cfg(feature = "runtime")]
    if let Err(error) = context.resume() {
        return context.link().clone().complete(context.call(), Err(error));
    }
    let reply = Reply::new(context.clone(), shaper).in_time();
    #[cfg(feature = "runtime")]
    let reply = reply.for_again(&context, &params);
    let _scope = Scope::enter(&context);
    // A panic that gets here has dropped the reply, which has answered.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| handler.call(context, params, reply)));
}
