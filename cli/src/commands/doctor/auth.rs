//! The way to a login: the challenge, every document that it leads to, and tokens that are for somebody else.

use serde_json::Value;
use tricorn::http::Exchanges;

use super::http::Site;
use super::report::{Report, Severity};
use super::wire::Exchanged;
use crate::output::one_line;

/// Authorization servers that are looked at.
const MOST_SERVERS: usize = 4;
/// A resource that no token of this server should be for.
const FOREIGN: &str = "https://other.example/mcp";

/// A client that has its own credentials.
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: String,
}

/// Looks at what a refused request leads to. Gives a token if there is a client that may have one.
pub(super) async fn all(
    site: &Site<'_>,
    url: &str,
    refused: &Exchanged,
    client: Option<&Client>,
    report: &Report,
) -> Option<String> {
    report.ran(&["no-challenge", "no-metadata", "resource-differs"]);
    // There may be several, of a scheme each.
    let challenges = refused.headers.iter().filter(|(name, _)| name == "www-authenticate");
    let challenge = challenges.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
    if challenge.is_empty() {
        report.find("no-challenge", format!("HTTP status {} without WWW-Authenticate", refused.status));
    }
    let named = parameter(&challenge, "resource_metadata");
    let (place, metadata) = match resource_metadata(site.exchanges, url, named).await {
        Ok(found) => found,
        // A server may have tokens that are given by hand; one that names its metadata has others.
        Err(missing) => {
            let severity = if named.is_some() { Severity::Error } else { Severity::Warning };
            missing.tell(report, severity);
            return None;
        }
    };
    let resource = metadata["resource"].as_str().unwrap_or_default();
    if !is_of(resource, url) {
        report.find("resource-differs", format!("{place}: {} is not {}", metadata["resource"], bare(url)));
    }
    let servers = metadata["authorization_servers"].as_array().cloned().unwrap_or_default();
    if servers.is_empty() {
        report.find("no-metadata", format!("{place}: authorization_servers: {}", metadata["authorization_servers"]));
    }
    let mut token = None;
    for issuer in servers.iter().filter_map(Value::as_str).take(MOST_SERVERS) {
        let Some(document) = server(site.exchanges, issuer, report).await else { continue };
        if let Some(client) = client.filter(|_| token.is_none()) {
            token = tokens(site, &document, bare(url), client, report).await;
        }
    }
    token
}

/// The URL without what is no part of a resource's name.
fn bare(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// True if a resource's name is this URL, or one above it.
fn is_of(resource: &str, url: &str) -> bool {
    let (resource, url) = (resource.trim_end_matches('/'), bare(url).trim_end_matches('/'));
    let same = resource.eq_ignore_ascii_case(url);
    let above = url.strip_prefix(resource).is_some_and(|rest| rest.starts_with('/'));
    // `https:` alone is above everything.
    same || (above && resource.split_once("://").is_some_and(|(_, host)| !host.is_empty()))
}

/// A parameter of a challenge.
fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let lower = challenge.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower[from..].find(name) {
        let after = from + at + name.len();
        let rest = challenge[after..].trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            let value = value.trim_start();
            return match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([',', ' ']).next(),
            };
        }
        from = after;
    }
    None
}

/// Scheme and host, and the path.
fn parts(url: &str) -> Option<(&str, &str)> {
    let url = bare(url);
    let from = url.find("://")? + 3;
    let at = url[from..].find('/').map_or(url.len(), |at| from + at);
    Some((&url[..at], url[at..].trim_end_matches('/')))
}

/// Places without the document that should be at one of them.
#[derive(Default)]
struct Missing {
    places: Vec<String>,
    /// Not all have answered, so that it may be the network's affair.
    is_unsure: bool,
}

impl Missing {
    fn tell(&self, report: &Report, severity: Severity) {
        let places = one_line(&self.places.join("; "));
        if self.is_unsure {
            report.skip(super::catalogue::Area::Auth, places);
        } else {
            report.find_as("no-metadata", severity, places);
        }
    }

    /// The document at a place, or another one that is missing.
    async fn fetched(&mut self, exchanges: &Exchanges, url: &str) -> Option<Value> {
        match exchanges.document(url, None).await {
            Ok((200, body)) => match serde_json::from_slice::<Value>(&body) {
                Ok(document) if document.is_object() => return Some(document),
                _ => self.places.push(format!("{url}: no JSON object")),
            },
            Ok((status, _)) => self.places.push(format!("{url}: HTTP status {status}")),
            Err(error) => {
                self.is_unsure = true;
                self.places.push(format!("{url}: {}", error.message()));
            }
        }
        None
    }
}

async fn resource_metadata(exchanges: &Exchanges, url: &str, named: Option<&str>) -> Result<(String, Value), Missing> {
    let mut missing = Missing::default();
    let Some((origin, path)) = parts(url) else { return Err(missing) };
    let well_known = format!("{origin}/.well-known/oauth-protected-resource");
    let places = match named {
        Some(named) => vec![named.to_owned()],
        None if path.is_empty() => vec![well_known],
        None => vec![format!("{well_known}{path}"), well_known],
    };
    for place in places {
        if let Some(found) = missing.fetched(exchanges, &place).await {
            return Ok((place, found));
        }
    }
    Err(missing)
}

/// The document of an authorization server.
async fn server(exchanges: &Exchanges, issuer: &str, report: &Report) -> Option<Value> {
    let Some((origin, path)) = parts(issuer) else {
        report.find("no-metadata", format!("authorization_servers: {issuer:?} is no URL"));
        return None;
    };
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ];
    places.dedup();
    let mut missing = Missing::default();
    for place in places {
        let Some(document) = missing.fetched(exchanges, &place).await else { continue };
        report.ran(&["issuer-differs", "no-S256"]);
        let said = &document["issuer"];
        if said.as_str() != Some(issuer) {
            // Many clients do not mind a slash.
            let is_same = said.as_str().is_some_and(|said| said.trim_end_matches('/') == issuer.trim_end_matches('/'));
            let severity = if is_same { Severity::Warning } else { Severity::Error };
            report.find_as("issuer-differs", severity, format!("{place}: {said} is not {issuer:?}"));
        }
        let methods = &document["code_challenge_methods_supported"];
        if !methods.as_array().is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
            report.find("no-S256", format!("{place}: code_challenge_methods_supported: {methods}"));
        }
        return Some(document);
    }
    missing.tell(report, Severity::Error);
    None
}

/// Gets a token for this server, and one for another, which has to be refused.
async fn tokens(site: &Site<'_>, document: &Value, url: &str, client: &Client, report: &Report) -> Option<String> {
    let endpoint = document["token_endpoint"].as_str()?;
    let own = token(site.exchanges, endpoint, url, client).await;
    let foreign = token(site.exchanges, endpoint, FOREIGN, client).await;
    if own.is_none() {
        let why = format!("{}: no token by client credentials", one_line(endpoint));
        report.skip(super::catalogue::Area::Auth, why);
    }
    if let Some(foreign) = foreign {
        report.ran(&["foreign-audience-ok"]);
        let shown = format!("Bearer {foreign}");
        if let Some(answer) = site.first(&[("authorization", &shown)]).await
            && answer.is_served()
        {
            report.find("foreign-audience-ok", format!("HTTP status {} with a token for {FOREIGN}", answer.status));
            if let Some(session) = answer.header("mcp-session-id") {
                site.end(session).await;
            }
        }
    }
    own
}

async fn token(exchanges: &Exchanges, endpoint: &str, resource: &str, client: &Client) -> Option<String> {
    let pairs = [
        ("grant_type", "client_credentials"),
        ("client_id", &client.id),
        ("client_secret", &client.secret),
        ("resource", resource),
    ];
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let (status, body) = exchanges.document(endpoint, Some(form)).await.ok()?;
    let answer: Value = serde_json::from_slice(&body).ok()?;
    answer["access_token"].as_str().filter(|_| status == 200).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_and_urls_are_read() {
        let challenge = r#"Bearer realm="a", resource_metadata="https://h/x", scope="a b""#;
        assert_eq!(parameter(challenge, "resource_metadata"), Some("https://h/x"));
        assert_eq!(parameter("Bearer resource_metadata=https://h/x, a=b", "resource_metadata"), Some("https://h/x"));
        assert_eq!(parameter("Bearer", "resource_metadata"), None);
        assert_eq!(parts("https://h:1/a/b/?q"), Some(("https://h:1", "/a/b")));
        for (resource, is) in [
            ("https://h/mcp", true),
            ("https://h/mcp/", true),
            ("https://h", true),
            ("https://h/other", false),
            ("https://h/m", false),
            ("", false),
        ] {
            assert_eq!(is_of(resource, "https://h/mcp?x=1"), is, "{resource}");
        }
    }
}
