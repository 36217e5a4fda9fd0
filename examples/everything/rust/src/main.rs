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

use serde_json::json;
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
        app = tasks::tools(app.tasks(TaskOptions::new().max_task_ttl(seconds)));
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

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    let mut http = tricorn::http::HttpOptions::default();
    http.max_sessions = setting("MAX_SESSIONS").unwrap_or(http.max_sessions);
    http.max_connections = setting("MAX_CONNECTIONS").unwrap_or(http.max_connections);
    http.session_idle_timeout = setting("SESSION_IDLE_TIMEOUT").unwrap_or(http.session_idle_timeout);
    http.sse_retry = setting("SSE_RETRY").unwrap_or(http.sse_retry);
    http.drain_timeout = setting("DRAIN_TIMEOUT").unwrap_or(http.drain_timeout);
    http.allowed_hosts = setting("ALLOWED_HOSTS").into_iter().collect();
    http.sse = setting::<String>("SSE").is_some();
    http.cert = setting("CERT");
    http.key = setting("KEY");
    if setting::<String>("MOUNT").is_some() {
        return mounted::serve(&server()?, http).await;
    }
    server()?.run_with(http).await
}
