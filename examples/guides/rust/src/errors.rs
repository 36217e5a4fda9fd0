//! Errors: whose fault it was decides what becomes of it.

use std::time::Duration;

use serde_json::json;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;

/// Something that went wrong inside.
#[derive(Debug)]
struct JamError;

impl std::fmt::Display for JamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secret detail")
    }
}

impl std::error::Error for JamError {}

fn server() -> Server {
    Server::new("printer")
        .on_error(|error, name| println!("log: {name}: {error}"))
        .tool("empty", "Fail, and say why", || async { Err::<String, _>(HandlerError::new("out of paper")) })
        .tool("crash", "Fail by accident", || async { Err::<String, _>(JamError.into()) })
        .tool("refuse", "Refuse the request", || async {
            let data = RawJson::from_value(&json!({"tray": 9}));
            Err::<String, _>(Error::rpc(4242, "no such tray").with_data(data).into())
        })
        .tool("stuck", "Never answer", || async {
            std::future::pending::<()>().await;
            Ok("")
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let client = Client::in_memory(&app, &ClientOptions::default()).await?;
    for name in ["empty", "crash"] {
        let result = client.call_tool(name, json!({})).await?;
        println!("failed: is_error={}, {}", result.is_error, result.text());
    }
    if let Err(error) = client.call_tool("refuse", json!({})).await {
        let (code, data) = (error.code().unwrap_or_default(), error.data().map_or("", RawJson::get));
        println!("{}: {code}, {}, {data}", error.kind().as_str(), error.message());
    }
    let hurried = CallOptions::new().timeout(Duration::from_millis(100));
    if let Err(error) = client.call_tool_with("stuck", json!({}), &hurried).await {
        println!("{}: {}", error.kind().as_str(), error.message());
    }
    if let Err(error) = client.list_prompts().await {
        println!("{}: nothing was sent", error.kind().as_str());
    }
    client.close().await;

    if let Err(error) = tricorn::connect("http://127.0.0.1:9/mcp").await {
        println!("{}: nobody listens", error.kind().as_str());
    }
    let options = ClientOptions::new().revision("2020-01-01");
    if let Err(error) = Client::in_memory(&app, &options).await {
        let known = error.message().contains("expected one of");
        println!("{}: {}", error.kind().as_str(), if known { "expected one of" } else { error.message() });
    }
    Ok(())
}
