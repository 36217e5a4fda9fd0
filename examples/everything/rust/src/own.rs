//! The tools of tests/cases/FIXTURES.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::jsonrpc::RawJson;
use tricorn::model::{CallToolResult, Content, Tool};
use tricorn::prelude::*;

use crate::official::{Nothing, PNG, WAV};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    kind: String,
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

/// Counts of the calls of `slow`, by their outcome.
#[derive(Default)]
struct Counts {
    started: AtomicU64,
    cancelled: AtomicU64,
    finished: AtomicU64,
}

/// Counts a call of `slow` as cancelled when it is dropped before it finished.
struct Counted(Arc<Counts>, bool);

impl Drop for Counted {
    fn drop(&mut self) {
        let count = if self.1 { &self.0.finished } else { &self.0.cancelled };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The ordinary error that `fail` ends with.
#[derive(Debug)]
struct ValueError;

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secret detail")
    }
}

impl std::error::Error for ValueError {}

fn parsed(definition: Value) -> tricorn::Result<Tool> {
    Tool::parse(&definition.to_string())
}

fn all_content() -> CallToolResult {
    CallToolResult::new([
        Content::text("one")
            .with("annotations", json!({"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}))
            .meta(json!({"com.example/n": 1})),
        Content::image(PNG, "image/png"),
        Content::audio(WAV, "audio/wav"),
        Content::resource_link("test://linked", "linked")
            .with("title", "Linked".into())
            .with("description", "A link".into())
            .with("mimeType", "text/plain".into())
            .with("size", 3.into()),
        Content::resource_text("test://text", "text/plain", "abc"),
        Content::resource_blob("test://blob", "application/octet-stream", "AAEC"),
        Content::text("last"),
    ])
}

#[expect(clippy::print_stdout, reason = "this is what a careless author does")]
fn print(text: &str) {
    println!("{text}");
}

pub(crate) fn tools(app: Server, shared: &Server, tasks: bool) -> tricorn::Result<Server> {
    let counts = Arc::new(Counts::default());
    let mut slow = Tool::new("slow", "Take some milliseconds");
    if tasks {
        slow = slow.task_support(TaskSupport::Optional);
    }
    let (slow_counts, metrics_of, touched) = (counts.clone(), shared.clone(), shared.clone());
    let echo = parsed(json!({
        "name": "echo", "title": "Echo", "description": "Return the text unchanged",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "description": "What to say"}},
                        "required": ["text"], "additionalProperties": false},
        "annotations": {"title": "Echo (hint)", "readOnlyHint": true, "destructiveHint": false,
                        "idempotentHint": true, "openWorldHint": false},
        "icons": [{"src": "https://example.com/echo.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}],
        "_meta": {"com.example/color": "blue"},
    }))?;
    let structured = parsed(json!({
        "name": "structured", "description": "A weather report",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"]},
        "outputSchema": {"type": "object", "properties": {"city": {"type": "string"}, "temperature": {"type": "number"},
                         "conditions": {"type": "string"}}, "required": ["city", "temperature", "conditions"]},
    }))?;
    let structured_invalid = parsed(json!({
        "name": "structured_invalid", "description": "Breaks its own output schema", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }))?;
    let any_value = parsed(json!({
        "name": "any_value", "description": "Return any JSON value",
        "inputSchema": {"type": "object", "properties": {"value": {}}, "required": ["value"]},
        "outputSchema": {"type": ["object", "array", "string", "number", "boolean", "null"]},
    }))?;
    let draft7 = parsed(json!({
        "name": "draft7", "description": "Arguments described in draft-07",
        "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "definitions": {"label": {"type": "string", "maxLength": 3}},
            "properties": {"pair": {"type": "array", "items": [{"$ref": "#/definitions/label"}, {"type": "integer"}],
                                    "additionalItems": false}},
            "required": ["pair"]},
    }))?;
    Ok(app
        .tool("add", "Add two numbers", |Add { a, b }: Add| async move {
            a.checked_add(b).ok_or_else(|| HandlerError::new("the sum is too large"))
        })
        .tool_with(echo, |mut arguments: Value| async move {
            Ok(match arguments["text"].take() {
                Value::String(text) => text,
                other => other.to_string(),
            })
        })
        .tool_with(slow, move |Slow { ms }: Slow, ctx: Context| {
            let counts = slow_counts.clone();
            async move {
                counts.started.fetch_add(1, Ordering::Relaxed);
                let mut counted = Counted(counts, false);
                #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
                let total = ms as f64;
                ctx.progress(0.0, Some(total), Some("started"));
                tokio::time::sleep(Duration::from_millis(ms)).await;
                counted.1 = true;
                drop(counted);
                ctx.progress(total, Some(total), Some("done"));
                Ok(format!("slept {ms} ms"))
            }
        })
        .tool("fail", "Fail in the way asked for: tool, exception or protocol", |Fail { kind }: Fail| async move {
            match kind.as_str() {
                "tool" => Err(HandlerError::new("the tool says no")),
                "exception" => Err(ValueError.into()),
                "protocol" => {
                    let data = RawJson::trusted(r#"{"hint":"try another kind"}"#);
                    Err(Error::rpc(4242, "custom refusal").with_data(data).into())
                }
                _ => Ok("no failure".to_owned()),
            }
        })
        .tool("all_content", "Return a block of every type", |_: Nothing| async { Ok(all_content()) })
        .tool_with(structured, |arguments: Value| async move {
            Ok(json!({"city": arguments["city"], "temperature": 22.5, "conditions": "sunny"}))
        })
        .tool_with(structured_invalid, |_: Value| async { Ok(json!({"n": "not a number"})) })
        .tool_with(any_value, |mut arguments: Value| async move { Ok(arguments["value"].take()) })
        .tool("context", "Return what the engine knows about this request", |_: Nothing, ctx: Context| async move {
            Ok(ctx.request().to_json().to::<Value>()?)
        })
        .tool_with(draft7, |_: Value| async { Ok("draft7 ok".to_owned()) })
        .tool("empty", "Return nothing", |_: Nothing| async { Ok(()) })
        .tool("print", "Print on standard output, as a careless author would", |Print { text }: Print| async move {
            print(&text);
            Ok("printed".to_owned())
        })
        .tool("count", "Report each number up to this one", |Count { to }: Count, ctx: Context| async move {
            for n in 1..=to {
                ctx.progress(f64::from(n), Some(f64::from(to)), None);
            }
            Ok(format!("counted to {to}"))
        })
        .tool("touch", "Say that a resource has changed", move |Touch { uri }: Touch| {
            let app = touched.clone();
            async move {
                app.resource_updated(&uri);
                Ok(format!("touched {uri}"))
            }
        })
        .tool("roots", "Return the URIs of the client's roots", |_: Nothing, ctx: Context| async move {
            let roots = ctx.list_roots().await?.roots;
            Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "))
        })
        .tool("test_metrics", "Return the server's gauges", move |_: Nothing| {
            let (counts, app) = (counts.clone(), metrics_of.clone());
            async move {
                let count = |c: &AtomicU64| c.load(Ordering::Relaxed);
                let (started, cancelled, finished) =
                    (count(&counts.started), count(&counts.cancelled), count(&counts.finished));
                Ok(json!({
                    "server": app.metrics(),
                    "slow": {"started": started, "cancelled": cancelled, "finished": finished,
                             "running": started.saturating_sub(cancelled + finished)},
                }))
            }
        }))
}
