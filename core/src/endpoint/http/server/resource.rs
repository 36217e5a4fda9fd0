//! Metadata of a protected server for everybody: the servers that give tokens for it (RFC 9728); and its check of
//! requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::body::Body;
use super::cors;
use super::endpoint::{Endpoint, Inner};
use super::reply::{self, Refusal};
use super::sender::Sender;
use crate::auth::resource_metadata::well_known;
use crate::auth::url::Parts as Url;
use crate::model::Principal;

/// Path of the metadata of a resource without a path, and of each resource for those who know no better.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A document for the host of a mounted endpoint to serve, by GET and HEAD and to everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataDocument {
    /// The path of its URL, from the root of the host.
    pub path: String,
    /// JSON text, of the media type `application/json`.
    pub text: String,
}

impl Endpoint {
    /// The protected-resource metadata (RFC 9728) of a server with [`Auth`](crate::server::Auth) and a
    /// [`resource`](crate::server::Auth::resource). The endpoint serves it itself where requests for that path reach it;
    /// a host that mounts the endpoint elsewhere has to serve it. `None`: there is nothing to say.
    #[must_use]
    pub fn resource_metadata(&self) -> Option<MetadataDocument> {
        let guard = self.inner.guard.as_ref()?;
        let resource = guard.resource(None)?;
        let url = well_known(&resource).into_iter().next()?;
        Some(MetadataDocument { path: Url::of(&url)?.path.to_owned(), text: guard.metadata(&resource) })
    }
}

impl Inner {
    /// The answer to a request for the metadata, which anybody may read, pages of any origin included.
    pub(super) fn metadata(&self, head: &Parts) -> Option<Response<Body>> {
        let guard = self.guard.as_ref()?;
        let path = head.uri.path();
        let below = path.strip_prefix(WELL_KNOWN)?;
        let host = match self.host(head) {
            Ok(host) => host,
            Err(refusal) => return Some(refusal.into()),
        };
        let mut resource = guard.resource(host)?;
        let own = Url::of(&resource).map_or("", |url| url.path);
        let is = |other: &str| below == other.trim_end_matches('/') || below == other;
        let pair = guard.pair_resource(host);
        let at_pair = pair.filter(|pair| is(Url::of(pair).map_or("", |url| url.path)) || is(&self.options.sse_path));
        // A listening server may have another path outside.
        if let Some(pair) = at_pair.filter(|_| !below.is_empty() && !is(own)) {
            resource = pair;
        } else if !below.is_empty() && !is(own) && (self.mounted || !is(&self.options.path)) {
            return None;
        }
        let mut response = match head.method {
            Method::GET => reply::json(StatusCode::OK, guard.metadata(&resource).into()),
            Method::HEAD => {
                let mut response = reply::json(StatusCode::OK, "".into());
                response.headers_mut().insert(CONTENT_LENGTH, guard.metadata(&resource).len().into());
                response
            }
            Method::OPTIONS if cors::is_preflight(&head.headers) => cors::preflight(&head.headers),
            _ => Refusal::method(format!("method {} is not served here", head.method), "GET, HEAD").into(),
        };
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        Some(response)
    }

    /// Finds the principal of a request, where tokens are checked.
    pub(super) async fn guarded(
        &self,
        head: &mut Parts,
        at_pair: bool,
        from: Option<IpAddr>,
    ) -> Result<Option<Arc<Principal>>, Refusal> {
        let Some(guard) = &self.guard else { return Ok(None) };
        let host = self.host(head)?.map(str::to_owned);
        guard.admit(head, host.as_deref(), at_pair, from).await.map(Some)
    }

    /// Checks that a request's access token has the scopes that it needs.
    pub(super) fn permit(&self, sender: &Sender, needed: impl FnOnce() -> Vec<String>) -> Result<(), Refusal> {
        match (&self.guard, &sender.principal) {
            (Some(guard), Some(principal)) => guard.permit(principal, &sender.headers, sender.at_pair, &needed()),
            _ => Ok(()),
        }
    }

    /// Returns the longest time of a stream of the sender's that has no end of its own: as long as its token is good.
    pub(super) fn patience(&self, sender: &Sender) -> Option<Duration> {
        self.guard.as_ref()?.time_left(sender.principal.as_deref()?)
    }

    /// Lets pages that may read the answers read the challenge, too.
    pub(super) fn expose_challenge(&self, response: &mut Response<Body>) {
        if self.guard.is_some() {
            let shown = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
            response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, shown);
        }
    }
}
