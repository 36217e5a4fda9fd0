//! The client against a protected server and its authorization servers, over real sockets.
#![cfg(feature = "auth")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod asked;
mod kept;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tricorn::auth::{MemoryStore, Reservation, Secret, TokenKey, TokenStore};
use tricorn::client::{Auth, Browser, Callback, Client, ClientOptions, Handlers, Redirect, Target};
use tricorn::{BoxFuture, CallOptions, Error, ErrorKind};

use crate::http_client::server::{PATIENCE, Reply, Seen, Server, answer, legacy, modern, raw, result};

/// State of the servers, and the requests that they have seen.
#[derive(Default)]
struct World {
    port: u16,
    /// The path of the issuer that the resource names.
    issuer: &'static str,
    tokens: BTreeSet<String>,
    /// Scopes of each token.
    scopes: HashMap<String, String>,
    issued: usize,
    /// Every request for a token, as it was posted.
    forms: Vec<String>,
    registered: Vec<String>,
    /// Answers of the token endpoint instead, first come first served.
    failures: Vec<(&'static str, Value)>,
    /// Scope that the call of a tool needs.
    needs: Option<&'static str>,
    never_enough: bool,
    /// The refusal of a call does not say what it needs.
    nameless: bool,
    /// A token of a refresh is good for nothing.
    refreshes_in_vain: bool,
    /// The call of a tool needs a scope that is called as the tool is.
    needs_its_name: bool,
    /// No token is good any more.
    refuses: bool,
    /// A refusal says which token it has seen.
    echoes: bool,
    /// The server speaks an older revision.
    legacy: bool,
    /// No token is good for its streams.
    no_streams: bool,
    /// Scope that is granted, whatever was asked for.
    grants: Option<&'static str>,
    dpop: bool,
    proofs: Vec<Value>,
    /// Number of tokens that end at once.
    short: usize,
    extra: Value,
}

/// Two authorization servers and a resource at one port.
struct Servers {
    server: Server,
    world: Arc<Mutex<World>>,
}

impl Servers {
    async fn new(world: World) -> Self {
        let world = Arc::new(Mutex::new(World { issuer: "/as1", ..world }));
        let own = world.clone();
        let server = Server::new(move |seen| route(&mut own.lock().unwrap(), seen)).await;
        world.lock().unwrap().port = server.port;
        Self { server, world }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    async fn connect(&self, auth: &Auth) -> Result<Client, Error> {
        let target = Target::from_text(&self.server.url()).unwrap();
        let options = ClientOptions::new().auth(auth.clone());
        tokio::time::timeout(PATIENCE, Client::connect(&target, &options)).await.expect("connected in time")
    }

    fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}/as1", self.server.port)
    }

    /// Returns the number of requests for a path.
    fn count(&self, path: &str) -> usize {
        self.server.seen().iter().filter(|seen| seen.path.split('?').next() == Some(path)).count()
    }
}

fn json_answer(status: &str, body: &Value) -> Reply {
    answer(status, &[], body)
}

fn route(world: &mut World, seen: &Seen) -> Reply {
    let origin = format!("http://127.0.0.1:{}", world.port);
    let prm = "/.well-known/oauth-protected-resource/mcp";
    match seen.path.as_str() {
        "/mcp" => protected(world, seen, &format!("{origin}{prm}")),
        path if path == prm => {
            let issuer = format!("{origin}{}", world.issuer);
            json_answer("200 OK", &json!({"resource": format!("{origin}/mcp"), "authorization_servers": [issuer]}))
        }
        path if path.starts_with("/.well-known/oauth-authorization-server/as") => {
            let issuer = format!("{origin}{}", path.trim_start_matches("/.well-known/oauth-authorization-server"));
            let mut metadata = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            });
            for (name, value) in world.extra.as_object().into_iter().flatten() {
                metadata[name] = value.clone();
            }
            json_answer("200 OK", &metadata)
        }
        path if path.ends_with("/register") => {
            let id = format!("client-of{}", path.trim_end_matches("/register").replace('/', "-"));
            world.registered.push(id.clone());
            json_answer("201 Created", &json!({"client_id": id}))
        }
        path if path.ends_with("/token") => token(world, seen),
        _ => raw("404 Not Found", &[], ""),
    }
}

fn token(world: &mut World, seen: &Seen) -> Reply {
    let form = seen.body.as_str().unwrap_or_default().to_owned();
    let basic = seen.header("authorization").unwrap_or_default();
    world.forms.push(format!("{} {form} {basic}", seen.path));
    if !world.failures.is_empty() {
        let (status, body) = world.failures.remove(0);
        return json_answer(status, &body);
    }
    let proof = seen.header("dpop").map(claims_of);
    if world.dpop && proof.as_ref().is_none_or(|proof| proof["nonce"] != "as-nonce") {
        return answer("400 Bad Request", &["DPoP-Nonce: as-nonce"], &json!({"error": "use_dpop_nonce"}));
    }
    world.issued += 1;
    let token = format!("token-{}", world.issued);
    // The authorization code names what was asked for.
    let asked = parameter(&form, "code").or_else(|| parameter(&form, "scope")).unwrap_or_default();
    let scope = world.grants.map_or(asked, str::to_owned);
    if !(world.refreshes_in_vain && form.contains("grant_type=refresh_token")) {
        world.tokens.insert(token.clone());
    }
    world.scopes.insert(token.clone(), scope.clone());
    let kind = if world.dpop { "DPoP" } else { "Bearer" };
    let refresh = format!("refresh-{}", world.issued);
    let life = if world.issued <= world.short { 0 } else { 3600 };
    let mut body = json!({"access_token": token, "token_type": kind, "expires_in": life, "refresh_token": refresh});
    if world.grants.is_some() {
        body["scope"] = json!(scope);
    }
    json_answer("200 OK", &body)
}

fn protected(world: &mut World, seen: &Seen, metadata: &str) -> Reply {
    let scheme = if world.dpop { "DPoP" } else { "Bearer" };
    let shown = seen.header("authorization").unwrap_or_default();
    let token = shown.strip_prefix(scheme).map(str::trim).unwrap_or_default().to_owned();
    if !world.tokens.contains(&token) || world.refuses || (world.no_streams && seen.verb == "GET") {
        let said = if world.echoes { format!(", error_description=\"seen: {token}\"") } else { String::new() };
        let challenge = format!("WWW-Authenticate: {scheme} resource_metadata=\"{metadata}\", scope=\"read\"{said}");
        return raw("401 Unauthorized", &[&challenge], "");
    }
    if world.dpop {
        let proof = seen.header("dpop").map(claims_of).unwrap_or_default();
        world.proofs.push(proof.clone());
        if proof["nonce"] != "rs-nonce" {
            return raw(
                "401 Unauthorized",
                &["WWW-Authenticate: DPoP error=\"use_dpop_nonce\"", "DPoP-Nonce: rs-nonce"],
                "",
            );
        }
    }
    let own = seen.body["params"]["name"].as_str().filter(|_| world.needs_its_name);
    if seen.method() == "tools/call"
        && let Some(needed) = own.or(world.needs)
        && (world.never_enough || !world.scopes[&token].split(' ').any(|own| own == needed))
    {
        let scope = if world.never_enough { format!("{needed}{}", world.issued) } else { needed.to_owned() };
        let scope = if world.nameless { String::new() } else { format!(", scope=\"{scope}\"") };
        let challenge =
            format!("WWW-Authenticate: Bearer error=\"insufficient_scope\"{scope}, resource_metadata=\"{metadata}\"");
        return raw("403 Forbidden", &[&challenge], "");
    }
    let usual = if world.legacy { legacy(seen, "s") } else { modern(seen) };
    usual.unwrap_or_else(|| {
        result(seen, &json!({"content": [{"type": "text", "text": token}], "resultType": "complete"}))
    })
}

fn claims_of(proof: &str) -> Value {
    let claims = proof.split('.').nth(1).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap_or_default()).unwrap_or_default()
}

fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
}

/// Somebody with a browser, who says yes. The code says what was asked for.
#[derive(Clone, Default)]
struct User {
    opened: Arc<Mutex<Vec<String>>>,
    waiting: Arc<Mutex<Option<oneshot::Sender<String>>>>,
    /// Instead of the right issuer.
    issuer: Option<&'static str>,
    /// Number of the next logins of which nobody comes back: the authorization server shows a page instead.
    lost: Arc<Mutex<usize>>,
}

impl Browser for User {
    fn open(&self, url: &str) -> BoxFuture<Result<(), Error>> {
        let (endpoint, query) = url.split_once('?').unwrap();
        let own = endpoint.trim_end_matches("/authorize").to_owned();
        let scope = parameter(query, "scope").unwrap_or_default();
        let issuer = self.issuer.map_or(own, str::to_owned);
        let state = parameter(query, "state").unwrap();
        let answer = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("code", &*scope), ("state", &*state), ("iss", &*issuer)])
            .finish();
        self.opened.lock().unwrap().push(url.to_owned());
        let waiting = self.waiting.lock().unwrap().take().unwrap();
        let mut lost = self.lost.lock().unwrap();
        match *lost {
            0 => drop(waiting.send(answer)),
            _ => *lost -= 1,
        }
        drop(lost);
        Box::pin(async { Ok(()) })
    }
}

impl Redirect for User {
    fn listen(&self) -> BoxFuture<Result<Callback, Error>> {
        let (tell, told) = oneshot::channel();
        *self.waiting.lock().unwrap() = Some(tell);
        let query = Box::pin(async { told.await.map_err(|_| Error::new(ErrorKind::Auth, "nobody came back")) });
        Box::pin(async { Ok(Callback::new("http://127.0.0.1:1/callback", query)) })
    }
}

fn login(user: &User) -> Auth {
    Auth::new().browser(user.clone()).redirect(user.clone()).store(MemoryStore::new())
}

async fn call(client: &Client) -> Result<String, Error> {
    call_named(client, "t").await
}

async fn call_named(client: &Client, name: &str) -> Result<String, Error> {
    let options = CallOptions::new().idempotent(true);
    let calling = client.call_tool_with(name, json!({}), &options);
    let result = tokio::time::timeout(PATIENCE, calling).await.expect("called in time")?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_user_logs_in_once() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let auth = login(&user);
    let client = servers.connect(&auth).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    // The next client finds what the first one has got.
    let other = servers.connect(&auth).await.unwrap();
    assert_eq!(call(&other).await.unwrap(), "token-1");
    assert_eq!((user.opened.lock().unwrap().len(), servers.world().registered.len()), (1, 1));
    let url = user.opened.lock().unwrap()[0].clone();
    assert!(url.starts_with(&format!("{}/authorize?", servers.issuer())), "{url}");
    let query = url.split_once('?').unwrap().1;
    assert_eq!(parameter(query, "resource"), Some(servers.server.url()));
    assert_eq!(parameter(query, "scope").as_deref(), Some("read"));
    let registration = servers.server.wait_for("a registration", |seen| seen.path.ends_with("/register")).await;
    assert_eq!(registration.body["application_type"], "native");
    assert_eq!(registration.body["grant_types"], json!(["authorization_code", "refresh_token"]));
    let steps: Vec<_> = auth.trace().into_iter().map(|step| step.step).collect();
    assert_eq!(steps[..2], ["challenge", "resource metadata"]);
    assert_eq!(steps.last(), Some(&"token"));
}

#[tokio::test]
async fn an_answer_of_somebody_else_is_not_used() {
    for (issuer, why) in
        [("https://evil.example.com", "it names the issuer \"https://evil.example.com\""), ("/", "expected")]
    {
        let servers = Servers::new(World::default()).await;
        let user = User { issuer: Some(issuer), ..User::default() };
        let error = servers.connect(&login(&user)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(error.message().contains(why), "{error}");
        assert!(servers.world().forms.is_empty());
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let extra = json!({"issuer": "https://attacker.example.com"});
    let servers = Servers::new(World { extra, ..World::default() }).await;
    let user = User::default();
    let error = servers.connect(&login(&user)).await.unwrap_err();
    assert!(error.message().contains("its issuer is \"https://attacker.example.com\""), "{error}");
    assert!(user.opened.lock().unwrap().is_empty() && servers.world().registered.is_empty());
}

#[tokio::test]
async fn scopes_grow_where_a_call_needs_more() {
    let servers = Servers::new(World { needs: Some("write"), ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-2");
    assert_eq!(call(&client).await.unwrap(), "token-2");
    let asked: Vec<_> =
        user.opened.lock().unwrap().iter().map(|url| parameter(url, "scope").unwrap_or_default()).collect();
    assert_eq!(asked, ["read", "read write"]);
}

#[tokio::test]
async fn scopes_do_not_grow_for_ever() {
    let servers = Servers::new(World { needs: Some("more"), never_enough: true, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("after 2 logins with more scopes"), "{error}");
    assert_eq!(user.opened.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn what_was_not_granted_is_not_asked_for_again_and_again() {
    let servers = Servers::new(World { needs: Some("write"), grants: Some("read"), ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    for _ in 0..3 {
        let error = call(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(error.message().contains("the scopes that it wants were not granted"), "{error}");
    }
    assert_eq!(user.opened.lock().unwrap().len(), 2);
    // Whoever logs in for another reason may be given more.
    {
        let mut world = servers.world();
        world.tokens.clear();
        world.grants = None;
        world.failures = vec![("400 Bad Request", json!({"error": "invalid_grant"}))];
    }
    call(&client).await.unwrap();
    assert_eq!(user.opened.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn another_authorization_server_is_another_client() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    {
        let mut world = servers.world();
        world.issuer = "/as2";
        world.tokens.clear();
    }
    assert_eq!(call(&client).await.unwrap(), "token-2");
    assert_eq!(servers.world().registered, ["client-of-as1", "client-of-as2"]);
    let shown = servers.world().forms.clone();
    assert!(shown.iter().filter(|form| form.starts_with("/as2/")).all(|form| !form.contains("client-of-as1")));
    assert!(!shown.iter().any(|form| form.contains("refresh-1")), "{shown:?}");
}

#[tokio::test]
async fn a_program_is_let_in_as_itself() {
    let servers = Servers::new(World::default()).await;
    let client = servers.connect(&Auth::client_credentials("c", "s").store(MemoryStore::new())).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    let resource: String = form_urlencoded::byte_serialize(servers.server.url().as_bytes()).collect();
    let basic = STANDARD.encode("c:s");
    let form = format!("/as1/token grant_type=client_credentials&scope=read&resource={resource} Basic {basic}");
    assert_eq!(servers.world().forms, [form]);
    assert!(servers.world().registered.is_empty());
}

#[tokio::test]
async fn tokens_of_the_programs_own() {
    let servers = Servers::new(World::default()).await;
    servers.world().tokens.insert("mine".into());
    let client = servers.connect(&Auth::bearer("mine")).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "mine");
    servers.world().tokens.clear();
    assert_eq!(call(&client).await.unwrap_err().kind(), ErrorKind::Auth);
    // A function is asked again, once.
    let given = Arc::new(Mutex::new(vec!["second", "first"]));
    let own = given.clone();
    let auth = Auth::bearer_from(move |_| {
        let next = own.lock().unwrap().pop().unwrap_or("second");
        async move { Ok(next.to_owned()) }
    });
    servers.world().tokens.insert("second".into());
    let client = servers.connect(&auth).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "second");
    servers.world().tokens.clear();
    let error = call(&client).await.unwrap_err();
    assert!(error.message().contains("the function has no other"), "{error}");
    assert!(servers.world().forms.is_empty());
}

#[tokio::test]
async fn tokens_are_bound_to_a_key_with_the_servers_nonces() {
    let extra = json!({"dpop_signing_alg_values_supported": ["ES256"]});
    let servers = Servers::new(World { dpop: true, extra, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    let world = servers.world();
    let ids: BTreeSet<_> = world.proofs.iter().map(|proof| proof["jti"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), world.proofs.len());
    for proof in &world.proofs {
        assert_eq!((&proof["htm"], &proof["htu"]), (&json!("POST"), &json!(servers.server.url())));
        assert!(proof["ath"].is_string());
    }
    // One for the server's nonce, and then none without it.
    assert_eq!(world.proofs.iter().filter(|proof| proof["nonce"] != "rs-nonce").count(), 1);
    assert_eq!(user.opened.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn tokens_go_to_their_server_alone() {
    let servers = Servers::new(World::default()).await;
    let client = servers.connect(&Auth::client_credentials("c", "s").store(MemoryStore::new())).await.unwrap();
    call(&client).await.unwrap();
    for seen in servers.server.seen() {
        let shown = seen.header("authorization").is_some_and(|value| value.starts_with("Bearer"));
        assert!(!shown || seen.path == "/mcp", "{}", seen.path);
        assert!(!seen.path.contains("token-"), "{}", seen.path);
    }
    let options = ClientOptions::new().auth(Auth::new().store(MemoryStore::new())).header("Authorization", "Bearer x");
    let target = Target::from_text(&servers.server.url()).unwrap();
    let error = Client::connect(&target, &options).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.message().contains("give one of them"), "{error}");
    let target = Target::from_text("http://example.com/mcp").unwrap();
    let error =
        Client::connect(&target, &ClientOptions::new().auth(Auth::new().store(MemoryStore::new()))).await.unwrap_err();
    assert!(error.message().contains("tokens are not sent in the clear"), "{error}");
}
