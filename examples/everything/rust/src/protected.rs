//! Features of tests/cases/FIXTURES.md for a server that protects itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tricorn::Server;
use tricorn::model::Principal;
use tricorn::prelude::*;
use tricorn::server::{Auth, Parameters};

use crate::official::Nothing;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Given {
    issuer: Option<String>,
    introspection: Option<Introspection>,
    verifier: Option<BTreeMap<String, Option<Known>>>,
    jwks_uri: Option<String>,
    resource: Option<String>,
    audiences: Vec<String>,
    required_scopes: Vec<String>,
    scopes_supported: Vec<String>,
    scope_implies: BTreeMap<String, Vec<String>>,
    authorization_servers: Vec<String>,
    resource_name: Option<String>,
    resource_documentation: Option<String>,
    clock_skew: Option<f64>,
    timeout: Option<f64>,
}

#[derive(Deserialize)]
struct Introspection {
    url: String,
    client_id: String,
    client_secret: String,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Known {
    subject: String,
    issuer: Option<String>,
    client_id: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    claims: Map<String, Value>,
    expires_at: Option<u64>,
}

impl From<Known> for Principal {
    fn from(known: Known) -> Self {
        let mut principal = Self::new(known.subject).scopes(known.scopes).claims(known.claims);
        (principal.issuer, principal.client_id) = (known.issuer, known.client_id);
        principal.expires_at = known.expires_at.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        principal
    }
}

/// The option `auth`.
pub(crate) fn auth(given: &str) -> tricorn::Result<Auth> {
    let wrong = |why: String| Error::misuse(format!("EVERYTHING_AUTH: {why}"));
    let given: Given = serde_json::from_str(given).map_err(|e| wrong(e.to_string()))?;
    let mut auth = match (given.issuer, given.introspection, given.verifier) {
        (Some(issuer), None, None) => Auth::issuer(issuer),
        (None, Some(Introspection { url, client_id, client_secret }), None) => {
            Auth::introspection(url, client_id, client_secret)
        }
        (None, None, Some(known)) => {
            let known = Arc::new(known);
            Auth::verifier(move |token| {
                let found = known.get(&token).cloned();
                async move {
                    match found {
                        Some(Some(known)) => Ok(known.into()),
                        Some(None) => Err(Error::new(ErrorKind::Timeout, "nobody can tell")),
                        None => Err(Error::new(ErrorKind::Auth, "unknown token")),
                    }
                }
            })
        }
        _ => return Err(wrong("expected one of issuer, introspection and verifier".into())),
    };
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).map_err(|e| wrong(e.to_string()));
    if let Some(url) = given.jwks_uri {
        auth = auth.jwks_uri(url);
    }
    if let Some(url) = given.resource {
        auth = auth.resource(url);
    }
    if !given.authorization_servers.is_empty() {
        auth = auth.authorization_servers(given.authorization_servers);
    }
    if let Some(name) = given.resource_name {
        auth = auth.resource_name(name);
    }
    if let Some(url) = given.resource_documentation {
        auth = auth.resource_documentation(url);
    }
    if let Some(skew) = given.clock_skew {
        auth = auth.clock_skew(seconds(skew)?);
    }
    if let Some(timeout) = given.timeout {
        auth = auth.timeout(seconds(timeout)?);
    }
    for (scope, narrower) in given.scope_implies {
        auth = auth.scope_implies(scope, narrower);
    }
    Ok(auth.audiences(given.audiences).required_scopes(given.required_scopes).scopes_supported(given.scopes_supported))
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Of {
    id: String,
}

/// Adds the entries that need scopes, and the tool that tells the caller's principal.
pub(crate) fn offers(app: Server) -> Server {
    let delete = Tool::new("delete_file", "Delete a file").scopes(["files:read", "files:write"]);
    let secret = Resource::new("test://secret", "secret").mime_type("text/plain").scopes(["files:read"]);
    let of = ResourceTemplate::new("test://secret/{id}", "secret-of").mime_type("text/plain").scopes(["files:read"]);
    let say = Prompt::new("secret_prompt").description("Say a secret").scopes(["files:read"]);
    let complete = |_: Value| async { Ok(vec!["alpha".to_owned()]) };
    app.tool("whoami", "Say who asks", |_: Nothing, ctx: Context| async move {
        let principal = ctx.principal();
        Ok(json!({
            "subject": principal.map(|own| &own.subject),
            "issuer": principal.map(|own| &own.issuer),
            "client_id": principal.map(|own| &own.client_id),
            "scopes": principal.map(|own| &own.scopes),
            "expires_at": principal.and_then(|own| own.expires_at?.duration_since(UNIX_EPOCH).ok()).map(|time| time.as_secs()),
            "team": principal.map(|own| own.claims.get("team")),
            "reads": principal.is_some_and(|own| own.has_scope("files:read")),
        }))
    })
    .tool_with(delete, |file: Named| async move { Ok(format!("deleted {}", file.name)) })
    .resource(secret, || async { Ok("the secret") })
    .resource_template(of, |of: Of| async move { Ok(format!("the secret of {}", of.id)) })
    .prompt_with(say, Parameters::default().complete("id", complete), |of: Of| async move {
        Ok(format!("Say the secret of {}.", of.id))
    })
}
