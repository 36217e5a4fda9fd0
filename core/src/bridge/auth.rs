//! Authorization of a host: options as JSON, in which numbers name functions of the host that are asked. Each gets an
//! object and answers with one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Bridge;
use super::functions::{Function, Nothing};
use crate::auth::store::{MAX_BYTES, too_long};
use crate::auth::{FileStore, MemoryStore, Reservation, Secret, TokenKey, TokenStore};
use crate::call::BoxFuture;
use crate::client::{Auth, Browser, Callback, ClientOptions, Redirect, StoreOptions, Wanted};
use crate::driver::runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Principal, times};
use crate::server;

/// Longest time that a store of the host may take for one operation.
const STORE: Duration = Duration::from_secs(60);
/// Longest time that a function of the host may take to give a token: it may ask somebody.
const SOURCE: Duration = Duration::from_secs(300);

/// Options without their member `auth`, and that.
fn apart(what: &str, options: &str) -> Result<(String, Option<Map<String, Value>>)> {
    if !options.contains("\"auth\"") {
        return Ok((options.to_owned(), None));
    }
    let wrong = |why: String| Error::misuse(format!("{what}: {why}"));
    let mut members: Map<String, Value> = serde_json::from_str(options).map_err(|e| wrong(e.to_string()))?;
    let auth = match members.remove("auth") {
        None | Some(Value::Null) => None,
        Some(Value::Object(auth)) => Some(auth),
        Some(_) => return Err(wrong("option \"auth\": expected an object".into())),
    };
    Ok((Value::Object(members).to_string(), auth))
}

// ---- the client ------------------------------------------------------------------------------------------------

/// Options of a host besides those of [`Auth`].
#[derive(Deserialize, Default)]
#[serde(default)]
struct Functions {
    redirect_uri: Option<String>,
    callback: Option<u32>,
    browser: Option<u32>,
    tokens: Option<u32>,
    assertions: Option<u32>,
    store: Option<Place>,
}

/// Store of logins.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"memory\", \"file\", \"keychain\" or a store (given otherwise)")]
enum Place {
    Named(String),
    Directory(InDirectory),
    Host {
        handler: u32,
        #[serde(default)]
        reserves: bool,
    },
    Shared(StoreOptions),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InDirectory {
    directory: String,
}

const FUNCTIONS: [&str; 6] = ["redirect_uri", "callback", "browser", "tokens", "assertions", "store"];

/// A client's options, in which `auth` is [`Auth`] as JSON and besides: `{"browser"?: handler of {"url"}, "redirect_uri"?,
/// "callback"?: handler of {"redirect_uri"} that gives {"url"}, where the browser came back, "tokens"?: handler of
/// {"issuer", "resource"?} that gives {"token"}, "assertions"?: the same of {"assertion"}, "store"?: "memory" |
/// "file" | "keychain" | URL | {"url", "secret", "prefix"?} | {"directory"} | {"handler", "reserves"?}}`. The handler of a store gets `{"op", "issuer"?,
/// "server", "login"?, "wait"?}`: `load` gives `{"login"?}`, `find` `{"logins": [{"issuer", "login"}]}`; `save`, `remove`
/// and, where it `reserves`, `reserve` and `release` give `{}`.
///
/// # Errors
/// [`Misuse`](ErrorKind::Misuse) naming the option that is unknown or wrong.
pub(super) fn client_options<T>(
    bridge: &Bridge,
    options: &str,
    parse: impl FnOnce(&str) -> Result<T>,
    of: fn(&mut T) -> &mut ClientOptions,
) -> Result<T> {
    let (rest, auth) = apart("client options", options)?;
    let mut options = parse(&rest)?;
    if let Some(auth) = auth {
        let own = of(&mut options);
        own.auth = Some(client(bridge, auth)?);
        own.check()?;
    }
    Ok(options)
}

fn client(bridge: &Bridge, mut members: Map<String, Value>) -> Result<Auth> {
    let is_port = |port: &Value| port.as_u64().is_some_and(|port| port <= u64::from(u16::MAX));
    if let Some(port) = members.get("redirect_port").filter(|port| port.is_number() && !is_port(port)) {
        let name = crate::idiom::named("redirect_port");
        return Err(Error::misuse(format!("auth: {name}: expected a port, 0 to 65535, got {port}")));
    }
    let functions: Map<String, Value> = FUNCTIONS.into_iter().filter_map(|name| members.remove_entry(name)).collect();
    let functions: Functions = crate::options::read("option \"auth\"", &Value::Object(functions).to_string())?;
    let mut auth: Auth = crate::options::read("option \"auth\"", &Value::Object(members).to_string())?;
    let function = |handler, place| Function::new(bridge, handler, place);
    if let Some(handler) = functions.browser {
        auth = auth.browser(HostBrowser(function(handler, "option \"auth\": \"browser\": ")));
    }
    match (functions.redirect_uri, functions.callback) {
        (Some(redirect_uri), Some(handler)) => {
            crate::auth::client::check_redirect(&redirect_uri)?;
            auth = auth.redirect(HostRedirect {
                function: function(handler, "option \"auth\": \"callback\": "),
                redirect_uri,
            });
        }
        (None, None) => {}
        _ => {
            return Err(Error::misuse(format!(
                "option \"auth\": {:?} and \"callback\" go together: give both",
                crate::idiom::named("redirect_uri")
            )));
        }
    }
    if let Some(handler) = functions.tokens {
        #[derive(Deserialize)]
        struct Given {
            token: String,
        }
        let tokens = function(handler, "option \"auth\": \"token\": ");
        auth = auth.tokens_from(move |wanted| {
            let asked = tokens.ask::<Given>(&wanted_of(&wanted), SOURCE);
            Box::pin(async move { Ok(asked.await?.token) })
        });
    }
    if let Some(handler) = functions.assertions {
        #[derive(Deserialize)]
        struct Given {
            assertion: String,
        }
        let assertions = function(handler, "option \"auth\": \"assertion\": ");
        auth = auth.assertion_from(move |wanted| {
            let asked = assertions.ask::<Given>(&wanted_of(&wanted), SOURCE);
            async move { Ok(asked.await?.assertion) }
        });
    }
    Ok(match functions.store {
        None => auth,
        Some(Place::Named(name)) => match name.as_str() {
            "memory" => auth.store(MemoryStore::new()),
            "file" => auth.store(FileStore::new()?),
            "keychain" => auth.store(FileStore::with_keychain()?),
            url if url.contains("://") => shared(auth, StoreOptions::new(url))?,
            _ => {
                let why = "expected \"memory\", \"file\", \"keychain\" or a store's URL";
                return Err(Error::misuse(format!("option \"auth\": \"store\": {why}, got another string")));
            }
        },
        Some(Place::Directory(place)) => auth.store(FileStore::at(place.directory)),
        Some(Place::Shared(store)) => shared(auth, store)?,
        Some(Place::Host { handler, reserves }) => {
            let (function, turns) = (function(handler, "option \"auth\": \"store\": "), MemoryStore::new());
            auth.store(HostStore { function, reserves, turns })
        }
    })
}

/// Keeps logins in a store that other processes share.
fn shared(auth: Auth, store: StoreOptions) -> Result<Auth> {
    #[cfg(feature = "redis")]
    return Ok(auth.store(crate::auth::RedisStore::new(store)?));
    #[cfg(not(feature = "redis"))]
    store.check("option \"auth\": \"store\"").map(|()| auth)
}

fn wanted_of(wanted: &Wanted) -> Value {
    json!({"issuer": wanted.issuer, "resource": wanted.resource})
}

struct HostBrowser(Function);

impl Browser for HostBrowser {
    fn open(&self, url: &str) -> BoxFuture<Result<()>> {
        let asked = self.0.ask::<Nothing>(&json!({"url": url}), Duration::MAX);
        Box::pin(async move { asked.await.map(drop) })
    }
}

struct HostRedirect {
    function: Function,
    redirect_uri: String,
}

impl Redirect for HostRedirect {
    fn listen(&self) -> BoxFuture<Result<Callback>> {
        #[derive(Deserialize)]
        struct Came {
            url: String,
        }
        let asked = self.function.ask::<Came>(&json!({"redirect_uri": self.redirect_uri}), Duration::MAX);
        let query = async move {
            let came = asked.await?.url;
            // Whoever has the query only may give that.
            let query = match came.split_once('?') {
                Some((before, query)) if before.contains("://") => query,
                _ => came.as_str(),
            };
            Ok(query.split('#').next().unwrap_or_default().to_owned())
        };
        let callback = Callback::new(self.redirect_uri.clone(), Box::pin(query));
        Box::pin(std::future::ready(Ok(callback)))
    }
}

/// A store of the host's. In this process one at a time changes a login, whatever the host does about others.
#[derive(Clone)]
struct HostStore {
    function: Function,
    reserves: bool,
    turns: MemoryStore,
}

#[derive(Deserialize)]
struct Kept {
    #[serde(default)]
    login: Option<String>,
}

impl HostStore {
    fn about(op: &str, key: &TokenKey) -> Value {
        json!({"op": op, "issuer": key.issuer, "server": key.server})
    }

    fn loaded(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
        let asked = self.function.ask::<Kept>(&Self::about("load", key), STORE);
        Box::pin(async move { Ok(asked.await?.login.map(Into::into)) })
    }
}

impl TokenStore for HostStore {
    fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
        self.loaded(key)
    }

    fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>> {
        #[derive(Deserialize)]
        struct Found {
            logins: Vec<Login>,
        }
        #[derive(Deserialize)]
        struct Login {
            issuer: String,
            login: String,
        }
        let asked = self.function.ask::<Found>(&json!({"op": "find", "server": server}), STORE);
        let server = server.to_owned();
        Box::pin(async move {
            let of = |Login { issuer, login }| (TokenKey::new(issuer, server.clone()), login.into());
            Ok(asked.await?.logins.into_iter().map(of).collect())
        })
    }

    fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(async move {
            let turn = store.turns.reserve(&key, wait).await?;
            // From here on its end is told, also of one that was given up while it was asked for.
            let reserved = Reserved { store, key, turn: Some(turn) };
            if reserved.store.reserves {
                let mut params = Self::about("reserve", &reserved.key);
                params["wait"] = wait.as_secs_f64().into();
                reserved.store.function.ask::<Nothing>(&params, wait.max(STORE)).await?;
            }
            Ok(Box::new(reserved) as Box<dyn Reservation>)
        })
    }

    /// In this process; others know nothing of it.
    fn reserve_login(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Option<Box<dyn Reservation>>>> {
        self.turns.reserve_login(key, wait)
    }
}

struct Reserved {
    store: HostStore,
    key: TokenKey,
    turn: Option<Box<dyn Reservation>>,
}

impl Reservation for Reserved {
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>>> {
        self.store.loaded(&self.key)
    }

    fn save(&mut self, login: &Secret) -> BoxFuture<Result<()>> {
        if login.expose().len() > MAX_BYTES {
            return Box::pin(std::future::ready(Err(too_long(&self.key))));
        }
        let mut params = HostStore::about("save", &self.key);
        params["login"] = login.expose().into();
        let asked = self.store.function.ask::<Nothing>(&params, STORE);
        Box::pin(async move { asked.await.map(drop) })
    }

    fn remove(&mut self) -> BoxFuture<Result<()>> {
        let asked = self.store.function.ask::<Nothing>(&HostStore::about("remove", &self.key), STORE);
        Box::pin(async move { asked.await.map(drop) })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let turn = self.turn.take();
        if !self.store.reserves {
            return;
        }
        let asked = self.store.function.ask::<Nothing>(&HostStore::about("release", &self.key), STORE);
        runtime::spawn(async move {
            if let Err(error) = asked.await {
                crate::report::say(error.message());
            }
            drop(turn);
        });
    }
}

// ---- the server ------------------------------------------------------------------------------------------------

/// A server's `auth` of the host.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerAuth {
    issuer: Option<String>,
    jwks_uri: Option<String>,
    introspection: Option<Introspection>,
    verifier: Option<u32>,
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
#[serde(deny_unknown_fields)]
struct Introspection {
    url: String,
    client_id: String,
    client_secret: String,
}

/// Verdict of a host's function on a token.
#[derive(Deserialize)]
struct Verdict {
    #[serde(default)]
    principal: Option<Known>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    subject: String,
    #[serde(default)]
    issuer: Option<String>,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    claims: Map<String, Value>,
    #[serde(default)]
    expires_at: Option<f64>,
}

/// A server's options, in which `auth` is what [`server::Auth`] takes by the names of its functions, as JSON: one of
/// `issuer`, `introspection` (`{"url", "client_id", "client_secret"}`) and `verifier`, a handler of `{"token"}` that gives
/// `{"principal"?: {"subject", "issuer"?, "clientId"?, "scopes"?, "claims"?, "expiresAt"?}}`; none, and the token is
/// refused. Times are in seconds.
///
/// # Errors
/// [`Misuse`](ErrorKind::Misuse) naming the option that is unknown or wrong.
pub(super) fn server_options(bridge: &Bridge, options: &str) -> Result<(String, Option<server::Auth>)> {
    let (rest, auth) = apart("server options", options)?;
    let auth = auth.map(|auth| server_auth(bridge, &Value::Object(auth).to_string())).transpose()?;
    Ok((rest, auth))
}

fn server_auth(bridge: &Bridge, options: &str) -> Result<server::Auth> {
    let given: ServerAuth = crate::options::read("option \"auth\"", options)?;
    let mut auth = match (given.issuer, given.introspection, given.verifier) {
        (Some(issuer), None, None) => server::Auth::issuer(issuer),
        (None, Some(Introspection { url, client_id, client_secret }), None) => {
            server::Auth::introspection(url, client_id, client_secret)
        }
        (None, None, Some(handler)) => {
            let function = Function::new(bridge, handler, "option \"auth\": \"verifier\": ");
            // The wait is bounded by the option `timeout`.
            server::Auth::verifier(move |token| {
                let asked = function.ask::<Verdict>(&json!({"token": token}), Duration::MAX);
                async move {
                    let known = asked.await?.principal;
                    known.map(principal).ok_or_else(|| Error::new(ErrorKind::Auth, "the token is refused"))
                }
            })
        }
        _ => {
            let why = "expected one of \"issuer\", \"introspection\" and \"verifier\"";
            return Err(Error::misuse(format!("option \"auth\": {why}")));
        }
    };
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
        auth = auth.clock_skew(crate::options::seconds("clock_skew", skew)?);
    }
    if let Some(timeout) = given.timeout {
        auth = auth.timeout(crate::options::seconds("timeout", timeout)?);
    }
    for (scope, narrower) in given.scope_implies {
        auth = auth.scope_implies(scope, narrower);
    }
    Ok(auth.audiences(given.audiences).required_scopes(given.required_scopes).scopes_supported(given.scopes_supported))
}

fn principal(known: Known) -> Principal {
    let mut principal = Principal::new(known.subject).scopes(known.scopes).claims(known.claims);
    principal.issuer = known.issuer;
    principal.client_id = known.client_id;
    // A time before 1970 has passed as well as 1970 has.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let seconds = known.expires_at.map(|at| at as u64);
    principal.expires_at = seconds.map(times::from_unix);
    principal
}
