//! Functions as handlers: their forms, and how errors of their own reach the model or the log.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tricorn::prelude::*;

#[derive(Debug)]
enum StoreError {
    NotFound(u32),
    Broken(std::io::Error),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(id) => write!(f, "there is no order {id}"),
            Self::Broken(_) => f.write_str("the orders cannot be read"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotFound(_) => None,
            Self::Broken(error) => Some(error),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    id: u32,
}

fn get(id: u32) -> Result<String, StoreError> {
    match id {
        1 => Err(StoreError::NotFound(1)),
        2 => Err(StoreError::Broken(std::io::Error::other("disk db-3"))),
        _ => Ok("shoes".into()),
    }
}

fn boxed(id: u32) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    Ok(get(id)?)
}

fn any(id: u32) -> anyhow::Result<String> {
    Ok(get(id)?)
}

async fn texts(app: &Server, tool: &str) -> Vec<String> {
    let client = Client::in_memory(app, &ClientOptions::default()).await.expect("connected");
    let mut found = Vec::new();
    for id in 1..4 {
        found.push(client.call_tool(tool, json!({"id": id})).await.expect("an answer").text());
    }
    client.close().await;
    found
}

#[tokio::test]
async fn an_error_of_ones_own_is_hidden_unless_it_is_for_the_model() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = log.clone();
    let app = Server::new("errors")
        .on_error(move |error, name| {
            let mut text = format!("{name}: {error}");
            let mut next = error.source();
            while let Some(source) = next {
                text.push_str(&format!(": {source}"));
                next = source.source();
            }
            told.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        })
        .tool("own", "An own error", async |Which { id }: Which| Ok(get(id)?))
        .tool("boxed", "One in a box", async |Which { id }: Which| Ok(boxed(id)?))
        .tool("any", "One of anyhow", async |Which { id }: Which| Ok(any(id)?))
        .tool("shown", "For the model", async |Which { id }: Which| Ok(get(id).for_model()?))
        .tool("any_shown", "The same of anyhow", async |Which { id }: Which| Ok(any(id).for_model()?));
    let heard = || std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));

    let hidden = r#"tool "own" failed: StoreError"#.to_owned();
    assert_eq!(texts(&app, "own").await, [hidden.clone(), hidden, "shoes".into()]);
    assert_eq!(heard(), ["own: there is no order 1", "own: the orders cannot be read: disk db-3"]);
    for tool in ["boxed", "any"] {
        let found = texts(&app, tool).await;
        assert!(found[..2].iter().all(|text| !text.contains("order") && text.contains("failed")), "{found:?}");
        assert_eq!(found[2], "shoes");
        let both = ["there is no order 1", "the orders cannot be read: disk db-3"];
        assert_eq!(heard(), both.map(|text| format!("{tool}: {text}")));
    }
    for tool in ["shown", "any_shown"] {
        assert_eq!(texts(&app, tool).await, ["there is no order 1", "the orders cannot be read", "shoes"]);
        // Only of what the model does not see.
        assert_eq!(heard(), [format!("{tool}: the orders cannot be read: disk db-3")]);
    }
}

#[tokio::test]
async fn a_function_may_want_its_context_alone_or_nothing_at_all() {
    let app = Server::new("forms")
        .tool("bare", "No arguments", async || Ok("bare"))
        .tool("context", "The context", async |context: Context| Ok(context.request().method))
        .tool("unit", "Nothing", async |(): ()| Ok("unit"))
        .tool("both", "Nothing, and the context", async |(): (), context: Context| Ok(context.request().method))
        .prompt(Prompt::new("prompt"), async |context: Context| Ok(context.request().method));
    let client = Client::in_memory(&app, &ClientOptions::default()).await.expect("connected");
    for (tool, text) in [("bare", "bare"), ("context", "tools/call"), ("unit", "unit"), ("both", "tools/call")] {
        assert_eq!(client.call_tool(tool, json!({})).await.expect("an answer").text(), text, "{tool}");
    }
    let tools = client.list_tools().await.expect("a list");
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:?}");
    }
    client.close().await;
}

/// User that is signed in, as a layer before the endpoint knows.
#[cfg(feature = "http")]
#[derive(Clone, Debug, PartialEq)]
struct User(&'static str);

#[cfg(feature = "http")]
async fn served(endpoint: &mut tricorn::http::Endpoint, user: Option<User>) -> String {
    use http_body_util::BodyExt as _;
    use tower_service::Service as _;

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "who", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut request = http::Request::post("/")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "who")
        .body(http_body_util::Full::new(bytes::Bytes::from(body)))
        .expect("a request");
    if let Some(user) = user {
        request.extensions_mut().insert(user);
    }
    let response = endpoint.call(request).await.expect("an answer");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[cfg(feature = "http")]
#[tokio::test]
async fn what_stands_before_the_endpoint_knows_handlers_know() {
    let app = Server::new("host")
        .middleware(async |request: tricorn::middleware::Request, context: Context, next: tricorn::middleware::Next| {
            let before = context.host::<User>().cloned();
            next.run(request, &context.with_state(before)).await
        })
        .tool("who", "Who is signed in", async |context: Context| {
            let before = context.state::<Option<User>>().expect("the middleware ran");
            assert_eq!((*before).as_ref(), context.host::<User>());
            Ok(context.host::<User>().map_or("nobody", |User(name)| *name))
        });
    let mut endpoint = app.endpoint(tricorn::http::HttpOptions::new()).expect("an endpoint");
    for user in ["ada", "bob", "eve"] {
        assert_eq!(served(&mut endpoint, Some(User(user))).await, user);
    }
    assert_eq!(served(&mut endpoint, None).await, "nobody");
    let client = Client::in_memory(&app, &ClientOptions::default()).await.expect("connected");
    assert_eq!(client.call_tool("who", json!({})).await.expect("an answer").text(), "nobody");
    client.close().await;
}
