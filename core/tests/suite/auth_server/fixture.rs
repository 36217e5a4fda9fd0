//! An authorization server in memory, and a protected server without sockets.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::model::{CacheHints, CacheScope, TaskSupport};
use tricorn::prelude::*;
use tricorn::server::{Auth, CacheOptions};

pub(crate) const ISSUER: &str = "https://as.example.com/tenant";
pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A key that tokens are signed with.
pub(crate) struct Key {
    kid: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    pub(crate) fn new(kid: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self { kid, pair: EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap() }
    }

    pub(crate) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    pub(crate) fn jwk(&self) -> Value {
        let (x, y) = (encoded(&self.public()[1..33]), encoded(&self.public()[33..]));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid, "x": x, "y": y})
    }

    /// A token with the claims of a good one, some of them changed; `null` takes one away.
    pub(crate) fn token(&self, changes: &Value) -> String {
        self.token_with(&json!({"alg": "ES256", "typ": "at+jwt", "kid": self.kid}), changes)
    }

    pub(crate) fn token_with(&self, header: &Value, changes: &Value) -> String {
        let text = unsigned(header, changes);
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", encoded(signature))
    }
}

/// Header and claims of a token.
pub(crate) fn unsigned(header: &Value, changes: &Value) -> String {
    let mut claims = json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "base",
        "iat": now(), "exp": now() + 600});
    let all = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(all.remove(name)),
            value => drop(all.insert(name.clone(), value.clone())),
        }
    }
    format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()))
}

/// A token signed with a secret.
pub(crate) fn hs256(kid: &str, secret: &[u8]) -> String {
    let text = unsigned(&json!({"alg": "HS256", "typ": "at+jwt", "kid": kid}), &json!({}));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
    format!("{text}.{}", encoded(signature))
}

/// State of the authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    Down,
    Slow,
    Endless,
    Garbage,
    /// It says that it is another.
    Lying,
}

pub(crate) struct Authority {
    pub(crate) mode: Mutex<Mode>,
    pub(crate) keys: Mutex<Vec<Arc<Key>>>,
    /// Number of requests for the keys.
    pub(crate) asked: AtomicUsize,
    /// The requests for introspection: their credentials and bodies.
    pub(crate) introspected: Mutex<Vec<(String, String)>>,
}

impl Authority {
    pub(crate) fn new(mode: Mode) -> Arc<Self> {
        let keys = Mutex::new(vec![Arc::new(Key::new("one"))]);
        let (asked, introspected) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { mode: Mutex::new(mode), keys, asked, introspected })
    }

    pub(crate) fn key(&self) -> Arc<Key> {
        self.keys.lock().unwrap()[0].clone()
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn answer(self: Arc<Self>, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let mode = *self.mode.lock().unwrap();
        let answer = |status: u16, body: String| Ok(Response::builder().status(status).body(body.into()).unwrap());
        let issuer = if mode == Mode::Lying { "https://evil.example.com" } else { ISSUER };
        match request.uri().to_string().as_str() {
            // As many have it: only OpenID Connect's, and with the path in front.
            "https://as.example.com/tenant/.well-known/openid-configuration" => {
                let document = json!({"issuer": issuer, "jwks_uri": "https://as.example.com/keys"});
                answer(200, document.to_string())
            }
            "https://as.example.com/keys" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                match mode {
                    Mode::Up | Mode::Lying => {
                        let keys: Vec<_> = self.keys.lock().unwrap().iter().map(|key| key.jwk()).collect();
                        answer(200, json!({"keys": keys}).to_string())
                    }
                    Mode::Down => Err("connection refused".into()),
                    Mode::Slow => pending().await,
                    Mode::Endless => answer(200, format!("{{\"keys\":[{}]}}", " ".repeat(1 << 20))),
                    Mode::Garbage => answer(200, "<html>".into()),
                }
            }
            "https://as.example.com/introspect" => {
                if mode == Mode::Down {
                    return answer(500, "{}".into());
                }
                let credentials = request.headers()["authorization"].to_str().unwrap().to_owned();
                let body = String::from_utf8(request.body().to_vec()).unwrap();
                let good = body.starts_with("token=good&");
                self.introspected.lock().unwrap().push((credentials, body));
                let claims =
                    json!({"active": good, "aud": RESOURCE, "sub": "ada", "scope": "base", "exp": now() + 600});
                answer(200, claims.to_string())
            }
            _ => answer(404, String::new()),
        }
    }

    /// Makes the options ask this authorization server.
    pub(crate) fn fetched_by(self: &Arc<Self>, auth: Auth) -> Auth {
        let authority = self.clone();
        auth.fetch_with(move |request| authority.clone().answer(request))
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Day {
    #[allow(dead_code, reason = "what the arguments are")]
    day: String,
}

fn server(ran: &Arc<AtomicUsize>) -> Server {
    let form = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let counted = ran.clone();
    let read = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok("read".to_owned()) }
    };
    let (one, two, three, four) = (read.clone(), read.clone(), read.clone(), read);
    Server::new("protected")
        .tasks(TaskOptions::default())
        .cache(CacheOptions::of(CacheHints::new().scope(CacheScope::Public)))
        .tool("whoami", "", |_: Nothing, cx: Context| async move {
            let (json, headers) = (cx.request().to_json(), cx.request().transport.headers());
            let names: Vec<_> = headers.into_iter().map(|(name, _)| name).collect();
            let principal = cx.principal().unwrap();
            let facts = json!({"subject": principal.subject, "client": principal.client_id, "scopes": principal.scopes,
                "tenant": principal.claims.get("tenant")});
            Ok(json!({"principal": facts, "headers": names, "context": json}).to_string())
        })
        .tool("ask", "", move |_: Nothing, cx: Context| {
            let form = form.clone();
            async move { Ok(cx.elicit("well?", &form).await?.content["a"].to_string()) }
        })
        .tool_with(Tool::new("job", "").task_support(TaskSupport::Required), |_: Nothing| async { Ok("done") })
        .tool_with(Tool::new("write", "").scopes(["files:write", "files:list"]), move |_: Nothing| one())
        .resource(Resource::new("notes://open", "open"), || async { Ok("open") })
        .resource(Resource::new("notes://secret", "secret").scopes(["notes"]), two)
        .resource_template(ResourceTemplate::new("days://{day}", "days").scopes(["days"]), move |_: Day| three())
        .prompt(Prompt::new("plan").scopes(["plans"]), move |_: Day| four())
        .prompt(Prompt::new("greet"), || async { Ok("hello") })
}

pub(crate) struct Fixture {
    pub(crate) endpoint: Endpoint,
    pub(crate) authority: Arc<Authority>,
    /// Number of runs of handlers that need scopes.
    pub(crate) ran: Arc<AtomicUsize>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(Mode::Up, |auth| auth)
    }

    pub(crate) fn with(mode: Mode, change: impl FnOnce(Auth) -> Auth) -> Self {
        let authority = Authority::new(mode);
        let auth = Auth::issuer(ISSUER).resource(RESOURCE).required_scopes(["base"]);
        let auth = change(auth.timeout(Duration::from_millis(if mode == Mode::Slow { 30 } else { 20_000 })));
        Self::of(authority, auth)
    }

    pub(crate) fn of(authority: Arc<Authority>, auth: Auth) -> Self {
        let ran = Arc::default();
        let server = server(&ran);
        Self { ran, ..Self::serving(server, authority, auth) }
    }

    /// Another server than the one that the tests have in common.
    pub(crate) fn serving(server: Server, authority: Arc<Authority>, auth: Auth) -> Self {
        let server = server.auth(authority.fetched_by(auth));
        let mut options = HttpOptions::parse(r#"{"sse": true, "allowed_hosts": ["mcp.example.com"]}"#).unwrap();
        options = options.allowed_origins(["https://app.example.com"]);
        Self { endpoint: server.endpoint(options).unwrap(), authority, ran: Arc::default() }
    }

    /// A token of ada's.
    pub(crate) fn token(&self, changes: &Value) -> String {
        self.authority.key().token(changes)
    }

    pub(crate) async fn start(
        &self,
        verb: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Response<tricorn::http::Body> {
        let mut request = Request::builder().method(verb).uri(target).header("host", "mcp.example.com");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.endpoint.handle(request.body(Full::new(Bytes::from(body))).unwrap()).await
    }

    /// The stream of a listener with this filter.
    pub(crate) async fn listen(&self, token: &str, filter: &Value) -> tricorn::http::Body {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", bearer.as_str()),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "subscriptions/listen"),
        ];
        let body = modern("subscriptions/listen", json!({"notifications": filter}));
        self.start("POST", "/mcp", &headers, body.to_string()).await.into_body()
    }

    pub(crate) async fn send(&self, verb: &str, target: &str, headers: &[(&str, &str)], body: String) -> Answer {
        Answer::of(self.start(verb, target, headers, body).await).await
    }

    /// A POST with these headers besides the usual ones.
    pub(crate) async fn post(&self, token: Option<&str>, more: &[(&str, &str)], body: &Value) -> Answer {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let params = &body["params"];
        if params["_meta"].is_object() {
            headers.extend([("mcp-protocol-version", MODERN), ("mcp-method", body["method"].as_str().unwrap())]);
            let name = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
            headers.extend(name.map(|name| ("mcp-name", name)));
        }
        headers.extend(more);
        self.send("POST", "/mcp", &headers, body.to_string()).await
    }

    /// A modern request of somebody with this token.
    pub(crate) async fn ask(&self, token: &str, method: &str, params: Value) -> Answer {
        self.post(Some(token), &[], &modern(method, params)).await
    }
}

pub(crate) fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn legacy(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn initialize(version: &str) -> Value {
    let info = json!({"name": "c", "version": "1"});
    legacy("initialize", &json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info}))
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: Response<tricorn::http::Body>) -> Self {
        let (head, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        let json = serde_json::from_str(data).unwrap_or_default();
        Self { status: head.status.as_u16(), headers: head.headers, json, text }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A parameter of its one challenge.
    pub(crate) fn challenge(&self, name: &str) -> Option<String> {
        assert_eq!(self.headers.get_all("www-authenticate").iter().count(), 1, "{self:?}");
        let header = self.header("www-authenticate").unwrap().strip_prefix("Bearer").unwrap();
        let found = header.split(", ").find_map(|param| param.trim().strip_prefix(name)?.strip_prefix("=\""))?;
        Some(found.strip_suffix('"').unwrap().to_owned())
    }
}
