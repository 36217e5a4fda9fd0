//! The benchmark server: `run --stdio | --http [HOST:PORT]`.
#![expect(deprecated, reason = "what the specification has deprecated works on")]

use std::time::Duration;

use serde_json::json;
use tricorn::model::Tool;
use tricorn::prelude::*;
use tricorn::server::CreateMessageRequestParams;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    question: String,
}

#[derive(Deserialize)]
struct Filler {
    key: String,
    #[serde(default)]
    limit: i64,
    #[serde(default)]
    verbose: bool,
}

fn filler() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "key": {"type": "string", "description": "Record key"},
            "limit": {"type": "integer", "description": "Maximum number of rows", "default": 10},
            "verbose": {"type": "boolean", "description": "Return all columns", "default": false},
        },
        "required": ["key"],
    })
}

/// A resource, a template, a prompt, and tools that ask their client once.
fn features(app: Server) -> Server {
    let form = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    app.resource(Resource::new("bench://hello", "hello").mime_type("text/plain"), || async { Ok("hello from bench") })
        .resource_template(
            ResourceTemplate::new("bench://item/{id}", "item").mime_type("text/plain"),
            |Item { id }: Item| async move { Ok(format!("item {id}")) },
        )
        .prompt(Prompt::new("greet").description("Greet somebody."), |Greet { name }: Greet| async move {
            Ok(format!("Say hello to {name}."))
        })
        .tool("ask_model", "Ask the client's model.", |Ask { question }: Ask, ctx: Context| async move {
            let question = CreateMessageRequestParams::new(100).user(&Content::text(question));
            Ok(ctx.sample(&question).await?.text())
        })
        .tool("ask_user", "Ask the user.", move |Ask { question }: Ask, ctx: Context| {
            let form = form.clone();
            async move { Ok(ctx.elicit(&question, &form).await?.content["answer"].as_str().unwrap_or_default().to_owned()) }
        })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<ExitCode> {
    let mut app = Server::new("bench")
        .tool("add", "Add two integers.", |Add { a, b }: Add| async move { Ok(Sum { sum: a.wrapping_add(b) }) })
        .tool("echo", "Return the text.", |Echo { text }: Echo| async move { Ok(text) })
        .tool("sleep_ms", "Sleep for some milliseconds.", |Sleep { ms }: Sleep| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(format!("slept {ms}"))
        });
    app = features(app);
    for n in 5..100 {
        let description = format!("Filler tool number {n}: looks a record up by key and returns at most limit rows.");
        let tool = Tool::new(format!("tool_{n:03}"), description).input_schema(filler());
        app = app.tool_with(tool, |arguments: serde_json::Value| async move {
            let Filler { key, limit, verbose } = serde_json::from_value(arguments)?;
            Ok(format!("{key} {limit} {verbose}"))
        });
    }
    app.run().await
}
