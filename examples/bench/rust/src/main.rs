//! The benchmark server: `run --stdio | --http [HOST:PORT]`.

use std::time::Duration;

use serde_json::json;
use tricorn::model::Tool;
use tricorn::prelude::*;

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

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<ExitCode> {
    let mut app = Server::new("bench")
        .tool("add", "Add two integers.", |Add { a, b }: Add| async move { Ok(Sum { sum: a + b }) })
        .tool("echo", "Return the text.", |Echo { text }: Echo| async move { Ok(text) })
        .tool("sleep_ms", "Sleep for some milliseconds.", |Sleep { ms }: Sleep| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(format!("slept {ms}"))
        });
    for n in 3..100 {
        let description = format!("Filler tool number {n}: looks a record up by key and returns at most limit rows.");
        let tool = Tool::new(format!("tool_{n:03}"), description).input_schema(filler());
        app = app.tool_with(tool, |arguments: serde_json::Value| async move {
            let Filler { key, limit, verbose } = serde_json::from_value(arguments)?;
            Ok(format!("{key} {limit} {verbose}"))
        });
    }
    app.run().await
}
