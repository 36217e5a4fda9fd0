//! RFC 7591, OAuth 2.0 Dynamic Client Registration, and the other ways to be known to an authorization server.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::Auth;
use super::fetch::{Fetch, Fetched, object};
use super::refusal::refusal_of;
use super::server_metadata::ServerMetadata;
use super::url::{Parts, is_safe, is_same_issuer};
use crate::error::shown_url;
use crate::idiom::named;

/// Identity of a client at one authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// Unix seconds; 0 is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret_expires_at: Option<u64>,
    /// Its way of authenticating at the token endpoint, where that was agreed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_endpoint_auth_method: Option<String>,
    /// Redirect URI of a client that was registered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect_uri: Option<String>,
    pub(crate) known_by: KnownBy,
}

/// Way in which an authorization server has come to know a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KnownBy {
    /// The program was given the client's id.
    Preregistration,
    /// By a document at the URL that is the client's id.
    MetadataDocument,
    /// By [RFC 7591](https://www.rfc-editor.org/rfc/rfc7591).
    Registration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?}, {:?})", self.client_id, self.known_by)
    }
}

impl Client {
    fn new(client_id: &str, known_by: KnownBy) -> Self {
        Self {
            client_id: client_id.to_owned(),
            client_secret: None,
            client_secret_expires_at: None,
            token_endpoint_auth_method: None,
            redirect_uri: None,
            known_by,
        }
    }

    /// It is not to be used for another login.
    pub(crate) fn expire(&mut self) {
        self.client_secret_expires_at = Some(1);
    }

    /// Returns true if it is of use for another login: not when its secret has expired, or it was registered with
    /// another address to come back to.
    pub(crate) fn is_usable(&self, now: u64, redirect_uri: Option<&str>) -> bool {
        let expired = self.client_secret_expires_at.is_some_and(|at| at != 0 && at <= now);
        let moved =
            self.redirect_uri.is_some() && redirect_uri.is_some_and(|uri| self.redirect_uri.as_deref() != Some(uri));
        !expired && !moved
    }
}

/// Next step towards a client that the authorization server knows.
#[derive(Debug)]
pub(crate) enum Choice {
    Known(Client),
    /// At this endpoint.
    Register(String),
}

/// Chooses in the specification's order: known before, by a metadata document, by registration.
///
/// # Errors
/// Advice for people, as nothing else is left.
pub(crate) fn choose(auth: &Auth, metadata: &ServerMetadata, issuer: &str) -> Result<Choice, String> {
    if let Some(id) = &auth.client_id {
        if let Some(own) = auth.issuer.as_deref().filter(|own| !is_same_issuer(own, issuer)) {
            let option = named("client_id");
            return Err(format!(
                "{option} {id:?} belongs to the authorization server {}, and the server wants {}: give the {option} that \
                 the latter knows",
                shown_url(own),
                shown_url(issuer)
            ));
        }
        let client_secret = auth.client_secret.clone();
        return Ok(Choice::Known(Client { client_secret, ..Client::new(id, KnownBy::Preregistration) }));
    }
    let understands = metadata.client_id_metadata_document_supported == Some(true);
    if let Some(url) = auth.client_metadata_url.as_ref().filter(|_| understands) {
        return Ok(Choice::Known(Client::new(url, KnownBy::MetadataDocument)));
    }
    if let Some(endpoint) = &metadata.registration_endpoint {
        if !is_safe(endpoint) {
            return Err(format!("its registration_endpoint is {}, expected an https URL", shown_url(endpoint)));
        }
        return Ok(Choice::Register(endpoint.clone()));
    }
    let why = match (&auth.client_metadata_url, understands) {
        (None, true) => format!(", but understands {}, which was not given", named("client_metadata_url")),
        (Some(_), _) => ", and client_id_metadata_document_supported is not true".to_owned(),
        (None, false) => String::new(),
    };
    Err(format!(
        "{} registers no clients by itself (it lists no registration_endpoint{why}): register this program there, and \
         give its {}",
        shown_url(issuer),
        named("client_id")
    ))
}

/// The method that a client which registers asks for.
fn wanted_method(metadata: &ServerMetadata) -> &'static str {
    let Some(listed) = &metadata.token_endpoint_auth_methods_supported else { return "none" };
    ["none", "client_secret_basic", "client_secret_post"]
        .into_iter()
        .find(|method| listed.iter().any(|own| own == method))
        .unwrap_or("none")
}

/// A registration, RFC 7591 §3.1.
pub(crate) fn request(endpoint: &str, auth: &Auth, metadata: &ServerMetadata, redirect_uri: &str) -> Fetch {
    let refreshes = metadata.grant_types_supported.as_ref().is_none_or(|all| all.iter().any(|g| g == "refresh_token"));
    let grants: &[&str] = if refreshes { &["authorization_code", "refresh_token"] } else { &["authorization_code"] };
    // OpenID Connect's default is `web`, which may not come back to this machine.
    let native = Parts::of(redirect_uri).is_none_or(|parts| parts.is_loopback());
    let mut body = json!({
        "client_name": auth.client_name.as_deref().unwrap_or("tricorn"),
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted_method(metadata),
        "application_type": auth.application_type.as_deref().unwrap_or(if native { "native" } else { "web" }),
    });
    if let Some(uri) = &auth.client_uri {
        body["client_uri"] = uri.as_str().into();
    }
    if auth.dpop == Some(true) {
        // RFC 9449 §5.2.
        body["dpop_bound_access_tokens"] = true.into();
    }
    Fetch::post(endpoint, "application/json", body.to_string())
}

/// Reads the answer to a registration, RFC 7591 §3.2.
///
/// # Errors
/// The reason why there is no client, for people.
pub(crate) fn answer(fetched: &Fetched, redirect_uri: &str) -> Result<Client, String> {
    #[derive(Deserialize)]
    struct Wire {
        client_id: String,
        client_secret: Option<String>,
        /// Seconds, a number by the book; some write it as a text.
        #[serde(default)]
        client_secret_expires_at: Value,
        token_endpoint_auth_method: Option<String>,
    }
    if !(200..300).contains(&fetched.status) {
        let refusal = refusal_of(fetched);
        let advice = match refusal.error.as_deref() {
            Some("invalid_redirect_uri") => {
                format!(
                    " (it was asked to send browsers back to {}: use another {})",
                    shown_url(redirect_uri),
                    named("redirect_uri")
                )
            }
            Some("invalid_client_metadata") => {
                format!(" ({} or {} may be at fault)", named("application_type"), named("redirect_uri"))
            }
            _ => format!(" (give a {} that is registered there already)", named("client_id")),
        };
        return Err(format!("{refusal}{advice}"));
    }
    let wire: Wire =
        object(&fetched.body).map_err(|e| format!("HTTP {} with no registered client ({e})", fetched.status))?;
    if wire.client_id.is_empty() {
        return Err(format!("HTTP {} with an empty client_id", fetched.status));
    }
    let expires_at = match &wire.client_secret_expires_at {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    Ok(Client {
        client_secret: wire.client_secret.filter(|secret| !secret.is_empty()),
        // Less than nothing is as good as never.
        client_secret_expires_at: expires_at.map(|at| at.max(0.0) as u64),
        token_endpoint_auth_method: wire.token_endpoint_auth_method,
        redirect_uri: Some(redirect_uri.to_owned()),
        ..Client::new(&wire.client_id, KnownBy::Registration)
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::Value;

    use super::*;

    const DOCUMENT: &str = "https://app.example/client.json";

    fn metadata(document: bool, registers: bool) -> ServerMetadata {
        ServerMetadata {
            registration_endpoint: registers.then(|| "https://as/register".into()),
            client_id_metadata_document_supported: document.then_some(true),
            ..ServerMetadata::default()
        }
    }

    #[test]
    fn the_order_is_the_specifications() {
        let known = Auth::new().client_id("me").client_secret("s");
        let document = || Auth::new().client_metadata_url(DOCUMENT);
        for (auth, metadata, expected) in [
            (known.clone(), metadata(true, true), Ok("me")),
            (known.clone().issuer("https://as"), metadata(true, true), Ok("me")),
            (known.clone().issuer("https://as/"), metadata(true, true), Ok("me")),
            (
                known.issuer("https://as/t"),
                metadata(true, true),
                Err("belongs to the authorization server \"https://as/t\""),
            ),
            (document(), metadata(true, true), Ok(DOCUMENT)),
            (document(), metadata(false, true), Ok("register")),
            (Auth::new(), metadata(true, true), Ok("register")),
            (Auth::new(), metadata(true, false), Err("understands client_metadata_url")),
            (document(), metadata(false, false), Err("client_id_metadata_document_supported is not true")),
            (Auth::new(), metadata(false, false), Err("lists no registration_endpoint): register this program there")),
        ] {
            match (choose(&auth, &metadata, "https://as"), expected) {
                (Ok(Choice::Known(client)), Ok(id)) => assert_eq!(client.client_id, id),
                (Ok(Choice::Register(endpoint)), Ok("register")) => assert_eq!(endpoint, "https://as/register"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (outcome, expected) => panic!("{outcome:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_registered_is_said_in_full() {
        let listed = |methods: &[&str], grants: &[&str]| ServerMetadata {
            token_endpoint_auth_methods_supported: Some(methods.iter().map(|m| (*m).to_owned()).collect()),
            grant_types_supported: Some(grants.iter().map(|g| (*g).to_owned()).collect()),
            ..ServerMetadata::default()
        };
        let both = &["authorization_code", "refresh_token"][..];
        for (metadata, redirect, method, kind, grants) in [
            (ServerMetadata::default(), "http://127.0.0.1:1/c", "none", "native", 2),
            (listed(&["client_secret_basic"], both), "http://localhost/c", "client_secret_basic", "native", 2),
            (listed(&["client_secret_post"], both), "https://app.example/c", "client_secret_post", "web", 2),
            (listed(&["client_secret_post", "none"], &["authorization_code"]), "https://a/c", "none", "web", 1),
        ] {
            let fetch = request("https://as/register", &Auth::new().client_name("me"), &metadata, redirect);
            let (media, body) = fetch.body.expect("a body");
            let body: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(media, "application/json");
            assert_eq!(body["token_endpoint_auth_method"], method);
            assert_eq!(body["application_type"], kind);
            assert_eq!(body["grant_types"].as_array().map(Vec::len), Some(grants));
            assert_eq!((&body["redirect_uris"][0], &body["client_name"]), (&redirect.into(), &"me".into()));
        }
    }

    #[test]
    fn an_answer_is_a_client_or_a_reason() {
        let answer = |status, body: &'static str| {
            answer(
                &Fetched { status, headers: Vec::new(), body: Bytes::from_static(body.as_bytes()) },
                "http://localhost/c",
            )
        };
        let client = answer(201, r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":10.5,"x":1}"#)
            .expect("a client");
        assert!(client.is_usable(9, Some("http://localhost/c")) && !client.is_usable(10, None));
        assert!(!client.is_usable(0, Some("http://localhost/d")));
        assert!(!format!("{client:?}").contains("\"s\""));
        for (status, body, why) in [
            (400, r#"{"error":"invalid_redirect_uri","error_description":"no"}"#, "use another redirect_uri"),
            (403, "<html>", "HTTP 403"),
            (201, "{}", "no registered client"),
            (200, r#"{"client_id":""}"#, "empty client_id"),
        ] {
            let error = answer(status, body).expect_err(body);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_document_has_an_https_url_with_a_path() {
        for (url, good) in [
            (DOCUMENT, true),
            ("https://app.example/", false),
            ("https://app.example", false),
            ("http://app.example/c", false),
            ("http://localhost/c", false),
            ("https://app.example/a/../c", false),
            ("https://app.example/c#x", false),
            ("https://u:p@app.example/c", false),
        ] {
            assert_eq!(crate::auth::url::is_document_url(url), good, "{url}");
        }
    }
}
