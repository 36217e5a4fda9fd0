//! Principal of a request: a state between rounds is bound to it besides the request itself.

use std::cell::Cell;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::call::Context;
use crate::error::{Error, Result};
use crate::jsonrpc::code;
use crate::protocol::RequestContext;
use crate::report;

/// Reason why a request has no principal when the function asks something of it.
pub(crate) const MUST_NOT_ASK: &str = "it must not ask the client";

/// Function of a server that names the principal of a request.
pub(crate) struct Principal(pub(crate) Arc<Names>);

/// An error is why it cannot say.
type Names = dyn Fn(&Context) -> Result<Option<String>, &'static str> + Send + Sync;

thread_local! {
    /// A principal is being asked for.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

struct Asking;

impl Asking {
    fn begin() -> Option<Self> {
        (!ASKED.replace(true)).then_some(Self)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKED.set(false);
    }
}

/// Returns the sender of the request. Forms of different kinds are never equal.
///
/// # Errors
/// −32603 when the server's function panics or asks the client.
pub(super) fn principal(context: &Context) -> Result<Value> {
    let Some(given) = context.state::<Principal>() else {
        let checked = context.principal().map(|principal| json!({"principal": principal.identity()}));
        return Ok(checked.unwrap_or_else(|| authorized(context.request())));
    };
    let wrong = |why: &str| Error::rpc(code::INTERNAL_ERROR, format!("the server's principal: {why}"));
    let Some(_asking) = Asking::begin() else { return Err(wrong(MUST_NOT_ASK)) };
    let named = report::guarded("what says whose a request is", || (given.0)(context));
    let named = named.ok_or_else(|| wrong("it panicked"))?.map_err(wrong)?;
    if named.as_deref() == Some("") {
        // All whose name is empty would be one.
        return Err(wrong("expected a text that is not empty, or none"));
    }
    Ok(named.map_or(Value::Null, |name| json!({"named": name})))
}

/// As far as that is known: of a JSON Web Token its issuer and subject, which stay when the token is renewed, else
/// whatever it was authorized with.
fn authorized(request: &RequestContext) -> Value {
    let headers = request.transport.headers();
    let Some((_, given)) = headers.into_iter().find(|(name, _)| name == "authorization") else { return Value::Null };
    let claims = given.split_once(' ').and_then(|(_, token)| token.split('.').nth(1).map(str::to_owned));
    let claims = claims.and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
    let claims: Option<Value> = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
    match claims.as_ref().map(|claims| (&claims["iss"], &claims["sub"])) {
        Some((issuer, Value::String(subject))) if !subject.is_empty() => json!({"iss": issuer, "sub": subject}),
        _ => json!({"header": given}),
    }
}
