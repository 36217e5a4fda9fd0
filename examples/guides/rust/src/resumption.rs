//! Resumption: a stream ends early, and nothing is lost.

use std::time::Duration;

use serde_json::json;
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    let description = "Work long, without a connection all the time";
    Server::new("long").tool("work", description, |_: Nothing, ctx: Context| async move {
        ctx.progress(1.0, Some(2.0), Some("on the first stream"));
        ctx.close_stream();
        ctx.progress(2.0, Some(2.0), Some("after the client came back"));
        Ok("all there")
    })
}

#[derive(Deserialize)]
struct Progress {
    progress: f64,
    total: f64,
    message: String,
}

fn show(progress: &RawJson) {
    if let Ok(Progress { progress, total, message }) = progress.to() {
        println!("{progress} of {total}: {message}");
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let retry = Duration::from_millis(100);
    let serving = server().serve_http(HttpOptions::new().port(0).sse_retry(retry)).await?;
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::connect(&serving.url().parse()?, &options).await?;
    let calling = CallOptions::new().on_progress(|progress| show(&progress));
    println!("result: {}", client.call_tool_with("work", json!({}), &calling).await?.text());
    client.close().await;
    serving.close();
    serving.join().await;
    Ok(())
}
