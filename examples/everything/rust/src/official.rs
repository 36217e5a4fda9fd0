//! Features that the official suite asks for.

use std::time::Duration;

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::model::{CallToolResult, Content, Tool};
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;

use crate::questions::answered;

pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
pub(crate) const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(Deserialize)]
struct Region {
    region: Option<String>,
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) fn tools(app: Server, shared: &Server) -> tricorn::Result<Server> {
    let (changing, prompting) = (shared.clone(), shared.clone());
    let region = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    Ok(app
        .tool("test_simple_text", "Return one text", |_: Nothing| async {
            Ok("This is a simple text response for testing.".to_owned())
        })
        .tool("test_image_content", "Return an image", |_: Nothing| async { Ok(Content::image(PNG, "image/png")) })
        .tool("test_audio_content", "Return a sound", |_: Nothing| async { Ok(Content::audio(WAV, "audio/wav")) })
        .tool("test_embedded_resource", "Return a resource with its text", |_: Nothing| async {
            let text = "This is an embedded resource content.";
            Ok(Content::resource_text("test://embedded-resource", "text/plain", text))
        })
        .tool("test_multiple_content_types", "Return a text, an image and a resource", |_: Nothing| async {
            Ok(CallToolResult::new([
                Content::text("Multiple content types test:"),
                Content::image(PNG, "image/png"),
                Content::resource_text(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ]))
        })
        .tool("test_error_handling", "Fail", |_: Nothing| async {
            Err::<String, _>(HandlerError::new("This tool intentionally returns an error for testing"))
        })
        .tool("test_tool_with_progress", "Report progress three times", |_: Nothing, ctx: Context| async move {
            for progress in [0.0, 50.0, 100.0] {
                ctx.progress(progress, Some(100.0), None);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok("Tool with progress executed successfully".to_owned())
        })
        .tool("test_tool_with_logging", "Log three messages", |_: Nothing, ctx: Context| async move {
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                ctx.log(LogLevel::Info, None, &message);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok("Tool with logging executed successfully".to_owned())
        })
        .tool_with(
            Tool::new("json_schema_2020_12_tool", "Show that a schema arrives unchanged")
                .input_schema(schema_2020_12()),
            |_: Value| async { Ok("schema ok".to_owned()) },
        )
        .tool_with(
            Tool::new("test_x_mcp_header", "Return the region, which also travels as a header").input_schema(region),
            |arguments: Value| async move {
                let region: Region = serde_json::from_value(arguments)?;
                Ok(format!("region: {}", region.region.as_deref().unwrap_or("none")))
            },
        )
        .tool("test_missing_capability", "Need a client that can sample", |_: Nothing, ctx: Context| async move {
            ctx.require("sampling")?;
            Ok("The client can sample".to_owned())
        })
        .tool(
            "test_streaming_elicitation",
            "Ask the user, in a revision that has no requests of servers",
            |_: Nothing, ctx: Context| async move {
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                let answer = ctx.elicit("What is your name?", &form).await?;
                Ok(answered(&answer, "name", |name| format!("Hello, {name}!")))
            },
        )
        .tool(
            "test_logging_tool",
            "Log one message, which is only delivered when the client asked for it",
            |_: Nothing, ctx: Context| async move {
                ctx.log(LogLevel::Info, None, &"This is a log message");
                Ok("Tried to log".to_owned())
            },
        )
        .tool("test_trigger_tool_change", "Add a tool and remove it again", move |_: Nothing| {
            let app = changing.clone();
            async move {
                struct ShortLived;
                impl tricorn::Handler for ShortLived {
                    fn call(&self, _: Context, _: tricorn::jsonrpc::RawJson, reply: tricorn::Reply) {
                        reply.text("still here");
                    }
                }
                app.add_tool(Tool::new("short_lived", "Exist for a moment"), std::sync::Arc::new(ShortLived))?;
                app.remove_tool("short_lived");
                Ok("The list of tools has changed".to_owned())
            }
        })
        .tool("test_trigger_prompt_change", "Add a prompt and remove it again", move |_: Nothing| {
            let app = prompting.clone();
            async move {
                struct ShortLived;
                impl tricorn::Handler for ShortLived {
                    fn call(&self, _: Context, _: tricorn::jsonrpc::RawJson, reply: tricorn::Reply) {
                        reply.text("still here");
                    }
                }
                let prompt = Prompt::new("short_lived");
                app.add_prompt(prompt, tricorn::server::Parameters::default(), std::sync::Arc::new(ShortLived))?;
                app.remove(tricorn::server::Kind::Prompt, "short_lived");
                Ok("The list of prompts has changed".to_owned())
            }
        }))
}
