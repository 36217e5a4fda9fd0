//! Testing a server: the real protocol, without a process or a socket.

use serde_json::{Value, json};
use tricorn::http::HttpOptions;
use tricorn::prelude::*;
use tricorn::protocol::revision::Revision;
use tricorn::server::ElicitAction;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("calculator").tool("add", "Add two numbers", |Add { a, b }: Add| async move { Ok(a + b) }).tool(
        "confirm",
        "Ask before something happens",
        |_: Nothing, ctx: Context| async move {
            let answer = ctx.elicit("Really?", &json!({"type": "object", "properties": {}})).await?;
            Ok(if answer.action == ElicitAction::Accept { "sure" } else { "no" })
        },
    )
}

/// The user of a test.
async fn yes(question: Value) -> Result<Value, HandlerError> {
    println!("asked: {}", question["message"].as_str().unwrap_or_default());
    Ok(json!("accept"))
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let sum = json!({"a": 1, "b": 2});
    for revision in Revision::ALL {
        let options = ClientOptions::new().revision(revision.to_string());
        let client = Client::in_memory(&app, &options).await?;
        let three = client.call_tool("add", &sum).await?.text();
        assert_eq!(three, "3");
        println!("{revision}: 1 + 2 = {three}");
        client.close().await;
    }

    let client = Client::in_memory(&app, &ClientOptions::default()).await?;
    println!("wrong: {}", client.call_tool("add", json!({"a": "one", "b": 2})).await?.text());
    client.close().await;

    let options = ClientOptions::new().revision("2025-11-25");
    let handlers = Handlers::new().elicitation(yes);
    let client = Client::in_memory_with(&app, &options, &handlers).await?;
    println!("asking: {}", client.call_tool("confirm", json!({})).await?.text());
    client.close().await;

    let serving = app.serve_http(HttpOptions::new().port(0)).await?;
    let client = tricorn::connect(serving.url()).await?;
    println!("over http: {}", client.call_tool("add", &sum).await?.structured_as::<i64>()?);
    client.close().await;
    serving.close();
    serving.join().await;
    Ok(())
}
