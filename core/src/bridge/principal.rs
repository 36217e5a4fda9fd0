//! Principal of a request, as a function of the host names it.

use std::sync::Arc;

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
    /// Nothing yet.
    Nothing,
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
        Some(Said::Nothing) => Err(MUST_NOT_ASK),
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
        let asked = handled(&context.with_state(Said::Nothing), &host, RawJson::empty_object());
        Box::pin(async move {
            let failed = || Error::rpc(code::INTERNAL_ERROR, "the server's principal: it failed");
            let answered: Answered = match asked.await {
                Ok(answer) => answer.to().map_err(|_| failed())?,
                // The function may have passed on an error that it got.
                Err(error) if error.message().ends_with(MUST_NOT_ASK) => return Err(error),
                Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                Err(_) => return Err(failed()),
            };
            next.run(request, &context.with_state(Said::Whose(answered.principal))).await
        })
    }
}
