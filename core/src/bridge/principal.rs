//! Principal of a request, as a function of the host names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use super::{Bridge, HostHandler};
use crate::call::rounds::{MUST_NOT_ASK, Principal};
use crate::call::{BoxFuture, Context, Handler, Middleware, Next, Request, handled};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};
use crate::server::Server;

/// Innermost middleware, as the engine asks at a place where nobody can wait for a host, and what middleware has found out
/// is there for the function.
struct Asking {
    bridge: Bridge,
    handler: u32,
}

/// Answer of the function about a request.
enum Said {
    /// Nothing yet; true once the function has asked the client, which it was refused.
    Nothing(AtomicBool),
    Whose(Option<String>),
}

#[derive(Deserialize)]
struct Answered {
    // It has to be there: what a function that failed is answered with must not be taken for nobody.
    #[serde(deserialize_with = "Option::deserialize")]
    principal: Option<String>,
}

/// From now on this function of the host says it.
pub(super) fn ask(server: &Server, bridge: &Bridge, handler: u32) {
    let middleware = Asking { bridge: bridge.clone(), handler };
    server.shared.router.middleware.set_innermost(Arc::new(middleware));
    let said = |context: &Context| match context.state::<Said>().as_deref() {
        Some(Said::Whose(whose)) => Ok(whose.clone()),
        Some(Said::Nothing(has_asked)) => {
            has_asked.store(true, Ordering::Relaxed);
            Err(MUST_NOT_ASK)
        }
        // The principal must not depend on who asks first.
        None => Err("it is asked after all middleware, which therefore must not ask the client"),
    };
    drop(server.clone().state(Principal(Arc::new(said))));
}

impl Middleware for Asking {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        if !context.needs_principal() {
            return next.run(request, &context);
        }
        let host: Arc<dyn Handler> = Arc::new(HostHandler { bridge: self.bridge.clone(), handler: self.handler });
        let inside = context.with_state(Said::Nothing(AtomicBool::new(false)));
        let asked = handled(&inside, &host, RawJson::empty_object());
        Box::pin(async move {
            // It fails of what it was refused, however the host words that.
            let failed = || {
                let has_asked = match inside.state::<Said>().as_deref() {
                    Some(Said::Nothing(has_asked)) => has_asked.load(Ordering::Relaxed),
                    _ => false,
                };
                let why = if has_asked { MUST_NOT_ASK } else { "it failed" };
                Error::rpc(code::INTERNAL_ERROR, format!("the server's principal: {why}"))
            };
            let answered: Answered = match asked.await {
                Ok(answer) => answer.to().map_err(|_| failed())?,
                Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                Err(_) => return Err(failed()),
            };
            next.run(request, &context.with_state(Said::Whose(answered.principal))).await
        })
    }
}
