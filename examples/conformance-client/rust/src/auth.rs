//! Authorization of the client at the suite's protected servers, and the user that it needs for that.

use std::sync::{Arc, Mutex};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::sync::oneshot;
use tricorn::auth::MemoryStore;
use tricorn::client::{Auth, Browser, Callback, Grant, Identity, Redirect};
use tricorn::{BoxFuture, Error, ErrorKind, Result};

/// Client id of this program, which the suite knows; nobody fetches it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Nothing listens there.
const CALLBACK: &str = "http://localhost:3000/callback";

/// The options that a scenario is to be passed with.
pub(crate) fn options(scenario: &str, context: &Value) -> Auth {
    let text = |name: &str| context[name].as_str().unwrap_or_default().to_owned();
    let auth = match scenario {
        "auth/client-credentials-basic" => Auth::client_credentials(text("client_id"), text("client_secret")),
        "auth/client-credentials-jwt" => {
            Auth::private_key_jwt(text("client_id"), text("private_key_pem"), text("signing_algorithm"))
        }
        "auth/enterprise-managed-authorization" => {
            let identity = Identity::new(text("idp_token_endpoint"), text("idp_client_id"), text("idp_id_token"));
            Auth::identity_assertion(identity).client_id(text("client_id")).client_secret(text("client_secret"))
        }
        "auth/wif-jwt-bearer" => {
            Auth::new().grant(Grant::JwtBearer).client_id(text("client_id")).assertion(text("valid_jwt"))
        }
        "auth/pre-registration" => Auth::new().client_id(text("client_id")).client_secret(text("client_secret")),
        _ => Auth::new().client_metadata_url(DOCUMENT).dpop(scenario.starts_with("auth/dpop")),
    };
    let user = User::default();
    auth.browser(user.clone()).redirect(user).store(MemoryStore::new())
}

/// Consents to everything at once.
#[derive(Clone, Default)]
struct User(Arc<Mutex<Option<oneshot::Sender<String>>>>);

impl Browser for User {
    fn open(&self, url: &str) -> BoxFuture<Result<()>> {
        let (url, waiting) = (url.to_owned(), self.0.clone());
        Box::pin(async move {
            let failed = |why: String| Error::new(ErrorKind::Auth, format!("the authorization page: {why}"));
            let url = url.parse().map_err(|e| failed(format!("{e}")))?;
            // Without following the redirect: it leads to nobody.
            let answer = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>().get(url).await;
            let answer = answer.map_err(|e| failed(e.to_string()))?;
            let location = answer.headers().get("location").and_then(|value| value.to_str().ok());
            let query = location.and_then(|url| url.split_once('?')).map(|(_, query)| query.to_owned());
            let query = query.ok_or_else(|| failed(format!("HTTP {}, and no way back", answer.status())))?;
            let waiting = waiting.lock().map_or(None, |mut waiting| waiting.take());
            if let Some(waiting) = waiting {
                let _ = waiting.send(query);
            }
            Ok(())
        })
    }
}

impl Redirect for User {
    fn listen(&self) -> BoxFuture<Result<Callback>> {
        let (tell, told) = oneshot::channel();
        if let Ok(mut waiting) = self.0.lock() {
            *waiting = Some(tell);
        }
        let query = Box::pin(async { told.await.map_err(|_| Error::closed("nobody came back")) });
        Box::pin(async { Ok(Callback::new(CALLBACK, query)) })
    }
}
