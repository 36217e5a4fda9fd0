//! The fixture server: the official conformance suite's tools, then those of tests/cases/FIXTURES.md.
//! `run --stdio | --http [HOST:PORT]`; with `EVERYTHING_MOUNT` in somebody else's HTTP server.
#![expect(deprecated, reason = "what the specification has deprecated works on")]

mod by_hand;
mod extension;
mod handshake;
mod mounted;
mod official;
mod own;
mod protected;
mod questions;
mod tasks;

use std::time::Duration;

use serde_json::json;
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

/// A setting from the environment.
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(format!("EVERYTHING_{name}")).ok()?.parse().ok()
}

fn server() -> tricorn::Result<Server> {
    let mut app = Server::new("everything")
        .version("1.0.0")
        .title("Everything")
        .description("Every fixture of the contract suite")
        .website_url("https://example.com/everything")
        .icons(&json!([
            {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}
        ]))
        .instructions("Call any tool.");
    if let Some(entries) = setting("PAGE_SIZE") {
        app = app.page_size(entries);
    }
    if let Some(requests) = setting("MAX_IN_FLIGHT") {
        app = app.max_in_flight(requests);
    }
    if let Some(cache) = setting::<serde_json::Value>("CACHE") {
        let cache = serde_json::from_value(cache).map_err(|e| Error::misuse(format!("EVERYTHING_CACHE: {e}")))?;
        app = app.cache(cache);
    }
    if let Some(seconds) = setting("TASKS") {
        app = tasks::tools(app.tasks(TaskOptions::new().max_task_ttl(Duration::from_secs_f64(seconds))));
    }
    if let Some(revision) = setting::<String>("REVISION") {
        app = app.revision(revision);
    }
    if let Some(key) = setting::<String>("REQUEST_STATE_KEY") {
        app = app.request_state_keys([key]);
    }
    if setting::<String>("EXTENSION").is_some() {
        app = extension::search(app.clone(), &app);
    }
    let app = official::tools(app.clone(), &app)?;
    let app = questions::tools(by_hand::tools(app));
    let app = handshake::questions(handshake::prompts(handshake::resources(app, setting::<String>("CACHE").is_some())));
    let app = own::tools(app.clone(), &app, setting::<f64>("TASKS").is_some())?;
    Ok(match setting::<String>("AUTH") {
        Some(auth) => protected::offers(app).auth(protected::auth(&auth)?),
        None => app,
    })
}

fn http_options() -> tricorn::Result<HttpOptions> {
    let mut given = json!({
        "allowed_hosts": setting::<String>("ALLOWED_HOSTS").map(|host| [host]),
        "sse": setting::<String>("SSE").is_some(),
        "cert": setting::<String>("CERT"),
        "key": setting::<String>("KEY"),
    });
    for name in ["max_sessions", "max_connections", "session_idle_timeout", "sse_retry", "drain_timeout"] {
        given[name] = setting(&name.to_ascii_uppercase()).unwrap_or_default();
    }
    HttpOptions::parse(&given.to_string())
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    let http = http_options()?;
    if setting::<String>("MOUNT").is_some() {
        return mounted::serve(&server()?, http).await;
    }
    server()?.run_with(http).await
}
