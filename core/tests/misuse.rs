//! The wrong uses of `tests/cases/misuse.json`, made with the public Rust API. Their errors are compared text by text.
//!
//! `cargo test --test misuse` checks. `cargo test --test misuse -- --print [FILE]` prints the texts as JSON, by the names
//! of the rows.
#![expect(clippy::print_stdout, reason = "it is a program, and this its report")]
#![expect(deprecated, reason = "rows are about roots and HTTP+SSE, too")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use regex::{Captures, Regex};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tricorn::TraceContext;
use tricorn::auth::MemoryStore;
use tricorn::client::{Auth, CacheOptions, GroupOptions};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{ConcurrencyLimit, RateLimit};
use tricorn::model::{Principal, SubscriptionFilter};
use tricorn::prelude::*;
use tricorn::server::files::{Directory, File};
use tricorn::server::{self, Extension, Form, Parameters, Question};

const LANGUAGE: &str = "rust";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/misuse.json");
/// A URL where nothing listens: options of HTTP are refused before a connection is made.
const URL: &str = "http://127.0.0.1:9/mcp";
/// The longest that a row may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Table {
    cases: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    make: String,
    #[serde(default)]
    options: Map<String, Value>,
    error: String,
    #[serde(default)]
    today: BTreeMap<String, String>,
    #[serde(default)]
    skip: BTreeMap<String, String>,
    target: Option<Value>,
    #[serde(default)]
    call: String,
    #[serde(default)]
    arguments: Vec<Value>,
    #[serde(default)]
    client: Map<String, Value>,
}

impl Row {
    fn is_skipped(&self) -> bool {
        self.skip.keys().any(|languages| languages.split(',').any(|language| language == LANGUAGE))
    }

    fn argument<T: DeserializeOwned>(&self, at: usize) -> Made<T> {
        read(self.arguments.get(at).unwrap_or(&Value::Null))
    }
}

/// End of a row.
enum Fault {
    /// The library refused it.
    Refused(Error),
    /// It is none that can be made here.
    Row(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

type Made<T = ()> = Result<T, Fault>;

fn unknown<T>(what: &str) -> Made<T> {
    Err(Fault::Row(format!("this checker knows no {what:?}")))
}

/// A value as the language's type has it.
fn read<T: DeserializeOwned>(value: &Value) -> Made<T> {
    let why = |e| Fault::Row(format!("{value} cannot be written here, which `skip` has to say: {e}"));
    serde_json::from_value(value.clone()).map_err(why)
}

fn member<T: DeserializeOwned>(options: &Map<String, Value>, name: &str) -> Made<T> {
    read(options.get(name).unwrap_or(&Value::Null))
}

fn time(seconds: &Value) -> Made<Duration> {
    let why = |e| Fault::Row(format!("{seconds} cannot be written here, which `skip` has to say: {e}"));
    Duration::try_from_secs_f64(read(seconds)?).map_err(why)
}

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Code {
    code: String,
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    number: String,
}

/// A server with one of everything.
fn demo() -> Server {
    Server::new("demo")
        .tool("add", "", async |numbers: Numbers| Ok::<_, HandlerError>(numbers.a + numbers.b))
        .tool("slow", "", async || Ok::<String, HandlerError>(std::future::pending().await))
        .prompt(Prompt::new("hello"), async || Ok::<_, HandlerError>("Hello"))
        .resource(Resource::new("notes://1", "one"), async || Ok::<_, HandlerError>("One"))
}

async fn make(row: &Row) -> Made {
    let options = &row.options;
    match row.make.as_str() {
        "server" => used(server_of(options)?).await,
        "task" => used(Server::new("demo").tasks(task_options(options)?)).await,
        "client" => client(row).await,
        "auth" => {
            let options = ClientOptions::new().auth(client_auth(options)?);
            Client::connect(&Target::from_text(URL)?, &options).await?.close().await;
            Ok(())
        }
        "group" => {
            let servers = Servers::new().server("one", Target::from_text(URL)?);
            ClientGroup::connect(servers, group_options(options)?).await?.close().await;
            Ok(())
        }
        "http" => served(demo(), http_options(options)?).await,
        "server_auth" => served(demo().auth(server_auth(options)?), HttpOptions::new().port(0)).await,
        "tool" => {
            let tool = tool(options)?;
            used(demo().tool_with(tool, async || Ok::<_, HandlerError>("done"))).await
        }
        "prompt" => prompt(options).await,
        "resource" => resource(options).await,
        "middleware" => used(middleware(row)?).await,
        "extension" => Ok(demo().add_extension(extension(options)?)?),
        "principal" => principal(options),
        "trace" => trace(options).await,
        "question" => {
            let form = Form::new(member(options, "schema")?)?;
            drop(Question::elicit(&member::<String>(options, "message")?, &form));
            Ok(())
        }
        "on_server" => on_server(row),
        "request" => request(row).await,
        other => unknown(other),
    }
}

/// Serves a client with it: mistakes in a server are reported when it serves.
async fn used(server: Server) -> Made {
    Client::in_memory(&server, &ClientOptions::default()).await?.close().await;
    Ok(())
}

async fn served(server: Server, options: HttpOptions) -> Made {
    server.serve_http(options).await?.close();
    Ok(())
}

fn server_of(options: &Map<String, Value>) -> Made<Server> {
    let mut server = Server::new("demo");
    for (name, value) in options {
        server = match (name.as_str(), value) {
            ("page_size", _) => server.page_size(read(value)?),
            ("max_memory", _) => server.max_memory(read(value)?),
            ("max_message_bytes", _) => server.max_message_bytes(read(value)?),
            ("max_nesting", _) => server.max_nesting(read(value)?),
            ("max_in_flight", _) => server.max_in_flight(read(value)?),
            ("max_listeners", _) => server.max_listeners(read(value)?),
            ("max_request_state_bytes", _) => server.max_request_state_bytes(read(value)?),
            ("ping_interval", _) => server.ping_interval(time(value)?),
            ("ping_timeout", _) => server.ping_timeout(time(value)?),
            ("revision", _) => server.revision(read::<String>(value)?),
            ("icons", _) => server.icons(value),
            ("request_state_keys", _) => server.request_state_keys(read::<Vec<String>>(value)?),
            ("capabilities", Value::Object(members)) => {
                members.iter().fold(server, |server, (name, value)| server.capability(name, value.clone()))
            }
            ("capabilities", _) => server.capabilities(read::<Vec<String>>(value)?),
            _ => return unknown(name),
        };
    }
    Ok(server)
}

fn task_options(options: &Map<String, Value>) -> Made<TaskOptions> {
    let mut tasks = TaskOptions::new();
    for (name, value) in options {
        tasks = match name.as_str() {
            "max_tasks" => tasks.max_tasks(read(value)?),
            "max_session_tasks" => tasks.max_session_tasks(read(value)?),
            "max_task_bytes" => tasks.max_task_bytes(read(value)?),
            "task_ttl" => tasks.task_ttl(time(value)?),
            "max_task_ttl" => tasks.max_task_ttl(time(value)?),
            _ => return unknown(name),
        };
    }
    Ok(tasks)
}

fn client_options(options: &Map<String, Value>) -> Made<ClientOptions> {
    let mut all = ClientOptions::new();
    for (name, value) in options {
        all = match name.as_str() {
            "request_timeout" => all.request_timeout(time(value)?),
            "probe_timeout" => all.probe_timeout(time(value)?),
            "shutdown_grace" => all.shutdown_grace(time(value)?),
            "ping_interval" => all.ping_interval(time(value)?),
            "ping_timeout" => all.ping_timeout(time(value)?),
            "max_memory" => all.max_memory(read(value)?),
            "max_message_bytes" => all.max_message_bytes(read(value)?),
            "max_decoded_bytes" => all.max_decoded_bytes(read(value)?),
            "revision" => all.revision(read::<String>(value)?),
            "ca" => all.ca(read::<String>(value)?),
            "cert" => all.cert(read::<String>(value)?),
            "key" => all.key(read::<String>(value)?),
            "capabilities" => all.capabilities(RawJson::from_value(value)),
            "cache" => all.cache(cache_options(&read(value)?)?),
            "headers" => {
                let headers = read::<BTreeMap<String, String>>(value)?;
                headers.into_iter().fold(all, |all, (name, value)| all.header(name, value))
            }
            "extensions" => {
                let extensions = read::<BTreeMap<String, Value>>(value)?;
                extensions.into_iter().fold(all, |all, (id, settings)| all.extension(id, settings))
            }
            _ => return unknown(name),
        };
    }
    Ok(all)
}

fn cache_options(options: &Map<String, Value>) -> Made<CacheOptions> {
    let mut cache = CacheOptions::new();
    for (name, value) in options {
        cache = match name.as_str() {
            "max_entries" => cache.max_entries(read(value)?),
            "max_bytes" => cache.max_bytes(read(value)?),
            _ => return unknown(name),
        };
    }
    Ok(cache)
}

async fn client(row: &Row) -> Made {
    let mut options = row.options.clone();
    let mut handlers = Handlers::new();
    if let Some(roots) = options.remove("roots") {
        handlers = handlers.roots(&Roots::new(read::<Vec<Value>>(&roots)?)?);
    }
    let server = options.remove("server");
    let options = client_options(&options)?;
    let client = match &row.target {
        Some(given) => Client::connect_with(&target(given, server)?, &options, &handlers).await?,
        None => Client::in_memory_with(&demo(), &options, &handlers).await?,
    };
    client.close().await;
    Ok(())
}

/// A target as text, or as the JSON that [`Target::parse`] reads.
fn target(given: &Value, server: Option<Value>) -> Made<Target> {
    let mut given = given.clone();
    if let Some(server) = server {
        let Some(members) = given.as_object_mut() else { return unknown("server") };
        members.insert("server".to_owned(), server);
    }
    Ok(match given.as_str() {
        Some(text) => Target::from_text(text)?,
        None => Target::parse(&given.to_string())?,
    })
}

fn client_auth(options: &Map<String, Value>) -> Made<Auth> {
    let mut auth = Auth::new().store(MemoryStore::new()).no_browser(true);
    for (name, value) in options {
        auth = match name.as_str() {
            "token" => auth.token(read::<String>(value)?),
            "grant" => auth.grant(read(value)?),
            "client_id" => auth.client_id(read::<String>(value)?),
            "client_secret" => auth.client_secret(read::<String>(value)?),
            "private_key" => auth.private_key(read::<String>(value)?),
            "signing_algorithm" => auth.signing_algorithm(read::<String>(value)?),
            "client_metadata_url" => auth.client_metadata_url(read::<String>(value)?),
            "issuer" => auth.issuer(read::<String>(value)?),
            "application_type" => auth.application_type(read::<String>(value)?),
            "login_timeout" => auth.login_timeout(time(value)?),
            "scopes" => auth.scopes(read::<Vec<String>>(value)?),
            _ => return unknown(name),
        };
    }
    Ok(auth)
}

fn group_options(options: &Map<String, Value>) -> Made<GroupOptions> {
    let mut of_client = options.clone();
    let timeout = of_client.remove("connect_timeout");
    let group = GroupOptions::new().client(client_options(&of_client)?);
    match timeout {
        Some(timeout) => Ok(group.connect_timeout(time(&timeout)?)),
        None => Ok(group),
    }
}

fn http_options(options: &Map<String, Value>) -> Made<HttpOptions> {
    let mut http = HttpOptions::new().port(0);
    for (name, value) in options {
        http = match name.as_str() {
            "host" => http.host(read::<String>(value)?),
            "path" => http.path(read::<String>(value)?),
            "cert" => http.cert(read::<String>(value)?),
            "key" => http.key(read::<String>(value)?),
            "max_sessions" => http.max_sessions(read(value)?),
            "max_connections" => http.max_connections(read(value)?),
            "session_idle_timeout" => http.session_idle_timeout(time(value)?),
            "drain_timeout" => http.drain_timeout(time(value)?),
            "header_timeout" => http.header_timeout(time(value)?),
            "idle_timeout" => http.idle_timeout(time(value)?),
            "body_timeout" => http.body_timeout(time(value)?),
            "write_timeout" => http.write_timeout(time(value)?),
            "keep_alive_interval" => http.keep_alive_interval(time(value)?),
            "sse_retry" => http.sse_retry(time(value)?),
            "sse" => http.sse(read(value)?),
            "stateless" => http.stateless(read(value)?),
            "allowed_hosts" => http.allowed_hosts(read::<Vec<String>>(value)?),
            "allowed_origins" => http.allowed_origins(read::<Vec<String>>(value)?),
            "trusted_proxies" => http.trusted_proxies(read::<Vec<String>>(value)?),
            _ => return unknown(name),
        };
    }
    Ok(http)
}

fn server_auth(options: &Map<String, Value>) -> Made<server::Auth> {
    let mut auth = match (options.get("issuer"), options.get("introspection")) {
        (Some(issuer), None) => server::Auth::issuer(read::<String>(issuer)?),
        (None, Some(Value::Object(asked))) => {
            let text = |name| member::<String>(asked, name);
            server::Auth::introspection(text("url")?, text("client_id")?, text("client_secret")?)
        }
        _ => return Err(Fault::Row("each way to check a token has a function of its own".to_owned())),
    };
    for (name, value) in options {
        auth = match name.as_str() {
            "issuer" | "introspection" => auth,
            "resource" => auth.resource(read::<String>(value)?),
            "jwks_uri" => auth.jwks_uri(read::<String>(value)?),
            "required_scopes" => auth.required_scopes(read::<Vec<String>>(value)?),
            "scopes_supported" => auth.scopes_supported(read::<Vec<String>>(value)?),
            "scope_implies" => {
                let implied = read::<BTreeMap<String, Vec<String>>>(value)?;
                implied.into_iter().fold(auth, |auth, (scope, narrower)| auth.scope_implies(scope, narrower))
            }
            _ => return unknown(name),
        };
    }
    Ok(auth)
}

fn tool(options: &Map<String, Value>) -> Made<Tool> {
    let mut tool = Tool::new(member::<String>(options, "name")?, "");
    for (name, value) in options {
        tool = match name.as_str() {
            "name" => tool,
            "input_schema" => tool.input_schema(value.clone()),
            "output_schema" => tool.output_schema(value.clone()),
            "icons" => tool.icons(value.clone()),
            "meta" => tool.meta(value.clone()),
            "scopes" => tool.scopes(read::<Vec<String>>(value)?),
            // The type of the builder has the right ones only: a definition as text may say another.
            "task_support" => {
                let mut definition = tool.members().clone();
                definition.insert("execution".to_owned(), json!({"taskSupport": value}));
                Tool::parse(&Value::Object(definition).to_string())?
            }
            _ => return unknown(name),
        };
    }
    Ok(tool)
}

/// Adds completions of known values.
fn completing(parameters: Parameters, complete: &Value) -> Made<Parameters> {
    let choices = read::<BTreeMap<String, Vec<String>>>(complete)?;
    Ok(choices.into_iter().fold(parameters, |parameters, (name, values)| {
        parameters.complete(&name, move |_: Value| {
            let values = json!(values);
            async move { Ok::<_, HandlerError>(values) }
        })
    }))
}

async fn prompt(options: &Map<String, Value>) -> Made {
    let mut prompt = Prompt::new(member::<String>(options, "name")?);
    let mut parameters = Parameters::default();
    for (name, value) in options {
        match name.as_str() {
            "name" => {}
            "arguments" => prompt = prompt.with("arguments", value.clone()),
            "meta" => prompt = prompt.meta(value.clone()),
            "complete" => parameters = completing(parameters, value)?,
            _ => return unknown(name),
        }
    }
    used(demo().prompt_with(prompt, parameters, async |given: Code| Ok::<_, HandlerError>(given.code))).await
}

/// Adds a resource, or a template where its URI has variables.
async fn resource(options: &Map<String, Value>) -> Made {
    let (uri, called) = (member::<String>(options, "uri")?, member::<String>(options, "name")?);
    let mut others = options.iter().filter(|(name, _)| !["uri", "name"].contains(&name.as_str()));
    if uri.contains('{') {
        let parameters = others.try_fold(Parameters::default(), |parameters, (name, value)| match name.as_str() {
            "complete" => completing(parameters, value),
            _ => unknown(name),
        })?;
        let template = ResourceTemplate::new(uri, called);
        let text = async |given: Number| Ok::<_, HandlerError>(given.number);
        return used(demo().resource_template_with(template, parameters, text)).await;
    }
    let resource = others.try_fold(Resource::new(uri, called), |resource, (name, value)| match name.as_str() {
        // The functions for these take what is right only: `with` takes any member.
        "annotations" | "size" => Ok(resource.with(name, value.clone())),
        _ => unknown(name),
    })?;
    used(demo().resource(resource, async || Ok::<_, HandlerError>("text"))).await
}

fn middleware(row: &Row) -> Made<Server> {
    let only = |known: &str| match row.options.iter().find(|(name, _)| *name != known) {
        Some((other, _)) => unknown(other),
        None => Ok(&row.options[known]),
    };
    let server = Server::new("demo");
    Ok(match row.call.as_str() {
        "rate_limit" => server.middleware(RateLimit::per_second(read(only("per_second")?)?)?),
        "concurrency_limit" => server.middleware(ConcurrencyLimit::new(read(only("max")?)?)?),
        other => return unknown(other),
    })
}

fn extension(options: &Map<String, Value>) -> Made<Extension> {
    let mut extension = Extension::new(member::<String>(options, "id")?);
    for (name, value) in options {
        extension = match name.as_str() {
            "id" | "member" => extension,
            "settings" => extension.settings(value.clone()),
            "method" => extension.method(read::<String>(value)?, async || Ok::<_, HandlerError>(json!({}))),
            "notification" => extension.notification(read::<String>(value)?, member::<String>(options, "member")?),
            _ => return unknown(name),
        };
    }
    Ok(extension)
}

fn principal(options: &Map<String, Value>) -> Made {
    let mut principal = Principal::new(member::<String>(options, "subject")?);
    for (name, value) in options {
        principal = match name.as_str() {
            "subject" => principal,
            "issuer" => principal.issuer(read::<String>(value)?),
            "scopes" => principal.scopes(read::<Vec<String>>(value)?),
            _ => return unknown(name),
        };
    }
    Ok(principal.check()?)
}

async fn trace(options: &Map<String, Value>) -> Made {
    if let Some(other) = options.keys().find(|name| *name != "traceparent") {
        return unknown(other);
    }
    let parent = member::<Option<String>>(options, "traceparent")?;
    let options = CallOptions::new().trace_context(TraceContext::new(parent.as_deref(), None, None)?);
    let client = Client::in_memory(&demo(), &ClientOptions::default()).await?;
    client.list_tools_with(&options).await?;
    client.close().await;
    Ok(())
}

fn on_server(row: &Row) -> Made {
    let server = demo();
    server.add_extension(Extension::new("com.example/x"))?;
    let text = |at| row.argument::<String>(at);
    match row.call.as_str() {
        "notify" => server.notify(&text(0)?, Some(RawJson::from_value(&row.argument::<Value>(1)?)), None)?,
        "add_directory" => server.add_directory(Directory::new(text(0)?, &text(1)?)?)?,
        "add_file" => server.add_file(File::new(text(0)?, &text(1)?)?)?,
        other => return unknown(other),
    }
    Ok(())
}

async fn request(row: &Row) -> Made {
    let client = Client::in_memory(&demo(), &client_options(&row.client)?).await?;
    if row.call == "listen" {
        drop(client.listen(filter(&row.options)?).await?);
        client.close().await;
        return Ok(());
    }
    let mut options = CallOptions::new();
    for (name, value) in &row.options {
        options = match name.as_str() {
            "timeout" => options.timeout(time(value)?),
            "max_timeout" => options.max_timeout(time(value)?),
            "meta" => options.meta(value),
            _ => return unknown(name),
        };
    }
    let name = || row.argument::<String>(0);
    let params = || row.argument::<Value>(1);
    match row.call.as_str() {
        "call_tool" => drop(client.call_tool_with(&name()?, params()?, &options).await?),
        "request" => drop(client.request(&name()?, Some(RawJson::from_value(&params()?)), &options).await?),
        "notify" => client.notify(&name()?, Some(RawJson::from_value(&params()?)))?,
        other => return unknown(other),
    }
    client.close().await;
    Ok(())
}

fn filter(options: &Map<String, Value>) -> Made<SubscriptionFilter> {
    options.iter().try_fold(SubscriptionFilter::new(), |filter, (name, value)| match name.as_str() {
        "extensions" => {
            let members = read::<BTreeMap<String, Value>>(value)?;
            Ok(members.into_iter().fold(filter, |filter, (member, value)| filter.other(member, value)))
        }
        _ => unknown(name),
    })
}

/// The text of the error that a row ends with, or why it cannot be made.
async fn told(row: &Row) -> Result<String, String> {
    match tokio::time::timeout(PATIENCE, make(row)).await {
        Ok(Ok(())) => Ok("(nothing was refused)".to_owned()),
        Ok(Err(Fault::Refused(error))) if error.kind() == ErrorKind::Misuse => Ok(error.message().to_owned()),
        Ok(Err(Fault::Refused(error))) => Ok(format!("{}: {}", error.kind().as_str(), error.message())),
        Ok(Err(Fault::Row(why))) => Err(why),
        Err(_) => Err(format!("it took longer than {PATIENCE:?}")),
    }
}

/// The expected text as this language has it: names of options in snake_case, times in seconds.
fn rendered(text: &str) -> Regex {
    let placeholder = Regex::new(r"\{(?:([otn]):([^}]*)|u|s|all|any)\}").expect("a pattern");
    let words = |found: &Captures<'_>| match &found[0] {
        "{u}" => "seconds".to_owned(),
        "{s}" => "a JSON Schema".to_owned(),
        "{all}" => "[a-z_]+(?:, [a-z_]+)+".to_owned(),
        "{any}" => ".*".to_owned(),
        _ if &found[1] == "t" => regex::escape(&format!("{} s", &found[2])),
        _ => regex::escape(&found[2]),
    };
    let (mut pattern, mut end) = ("(?s)^".to_owned(), 0);
    for found in placeholder.captures_iter(text) {
        let place = found.get_match();
        pattern += &regex::escape(&text[end..place.start()]);
        pattern += &words(&found);
        end = place.end();
    }
    pattern += &regex::escape(&text[end..]);
    pattern.push('$');
    Regex::new(&pattern).expect("a pattern")
}

/// Compares the text of a row with the one that is expected. Returns what is wrong.
fn check(row: &Row, told: &Result<String, String>) -> Result<(), String> {
    let got = told.as_ref().map_err(|why| format!("  {why}"))?;
    let is_wanted = rendered(&row.error).is_match(got);
    let today = row.today.get(LANGUAGE);
    if today.map_or(is_wanted, |today| rendered(today).is_match(got) && !is_wanted) {
        return Ok(());
    }
    let hint = if is_wanted { " (as it should be: remove its `today`)" } else { "" };
    Err(format!("  expected {}\n  got      {got}{hint}", today.unwrap_or(&row.error)))
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let prints = words.next().is_some_and(|word| word == "--print");
    let file = words.next().filter(|_| prints).unwrap_or_else(|| FILE.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let table: Table = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
    let rows: Vec<&Row> = table.cases.iter().filter(|row| !row.is_skipped()).collect();
    let (mut texts, mut failed) = (Map::new(), 0);
    for row in &rows {
        let told = told(row).await;
        if prints {
            texts.insert(row.name.clone(), told.unwrap_or_else(|why| format!("({why})")).into());
        } else if let Err(why) = check(row, &told) {
            failed += 1;
            println!("{}:\n{why}", row.name);
        }
    }
    if prints {
        println!("{:#}", Value::Object(texts));
        return ExitCode::SUCCESS;
    }
    let differing = rows.iter().filter(|row| row.today.contains_key(LANGUAGE)).count();
    println!("{LANGUAGE}: {} cases, {failed} failed, {differing} with another text today", rows.len());
    ExitCode::from(u8::from(failed > 0 || rows.is_empty()))
}
