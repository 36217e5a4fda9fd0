//! The fixture server: the official conformance suite's tools, then those of tests/cases/FIXTURES.md.
//! `run --stdio | --http HOST:PORT`

mod official;
mod own;

use tricorn::Server;
use tricorn::server::ServerOptions;

/// A setting from the environment, as a JSON number for the option of the same name.
fn setting(members: &mut serde_json::Map<String, serde_json::Value>, name: &str) {
    if let Ok(value) = std::env::var(format!("EVERYTHING_{}", name.to_uppercase()))
        && let Ok(number) = value.parse::<u64>()
    {
        members.insert(name.to_owned(), number.into());
    }
}

fn server() -> tricorn::Result<Server> {
    let mut options = serde_json::json!({
        "name": "everything",
        "version": "1.0.0",
        "title": "Everything",
        "description": "Every fixture of the contract suite",
        "website_url": "https://example.com/everything",
        "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
        "instructions": "Call any tool.",
    });
    if let Some(members) = options.as_object_mut() {
        setting(members, "page_size");
        setting(members, "max_in_flight");
    }
    let app = Server::with_options(ServerOptions::parse(&options.to_string())?);
    own::tools(official::tools(app.clone(), &app)?, &app)
}

#[tokio::main]
async fn main() -> tricorn::Result<()> {
    let app = server()?;
    let args: Vec<String> = std::env::args().collect();
    let Some(place) = args.iter().position(|a| a == "--http") else { return app.serve_stdio().await };
    let address = args.get(place + 1).and_then(|a| a.rsplit_once(':'));
    let (host, port) = address.ok_or_else(|| tricorn::Error::misuse("usage: run --stdio | --http HOST:PORT"))?;
    let mut http = serde_json::json!({"host": host, "port": port.parse::<u16>().unwrap_or_default()});
    if let Some(members) = http.as_object_mut() {
        setting(members, "max_sessions");
        setting(members, "session_idle_timeout");
    }
    let serving = app.serve_http(tricorn::http::HttpOptions::parse(&http.to_string())?).await?;
    eprintln!("ready {}", serving.url());
    serving.join().await;
    Ok(())
}
