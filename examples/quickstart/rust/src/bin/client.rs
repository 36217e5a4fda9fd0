//! A first client: `quickstart-client TARGET [--revision R]`, where TARGET is a URL or a command line.
//! Prints one line of JSON: what was negotiated, what 1 + 2 is, and how long the call took.
#![expect(clippy::print_stdout, reason = "the answer goes to the user")]

use std::time::Instant;

use serde_json::json;
use tricorn::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<()> {
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or_else(|| Error::misuse("usage: quickstart-client TARGET [--revision R]"))?;
    let mut options = ClientOptions::default();
    if let (Some("--revision"), Some(revision)) = (args.next().as_deref(), args.next()) {
        options = options.revision(revision);
    }
    let client = Client::connect(&target.parse()?, &options).await?;
    // The first call of a program costs more.
    client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    let started = Instant::now();
    let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    let ms = started.elapsed().as_secs_f64() * 1000.0;
    let result: i64 = sum.structured_as()?;
    let revision = client.revision();
    println!(
        "{}",
        json!({"protocolVersion": revision, "era": revision.era().as_str(), "transport": client.transport(),
               "result": result, "ms": (ms * 1000.0).round() / 1000.0})
    );
    client.close().await;
    Ok(())
}
