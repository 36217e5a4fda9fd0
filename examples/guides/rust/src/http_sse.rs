//! HTTP+SSE: the oldest transport, for clients and servers that have nothing newer.

use serde_json::json;
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

fn server() -> Server {
    Server::new("old").tool("greet", "Greet", || async { Ok("hello") })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let serving = server().serve_http(HttpOptions::new().port(0).sse(true)).await?;

    let client = tricorn::connect(serving.url()).await?;
    println!("/mcp: {}", client.revision());
    client.close().await;

    // A client finds out by itself that there is nothing newer at a URL.
    let client = tricorn::connect(&serving.url().replace("/mcp", "/sse")).await?;
    println!("/sse: {}, {}", client.revision(), client.call_tool("greet", json!({})).await?.text());
    client.close().await;

    serving.close();
    serving.join().await;
    Ok(())
}
