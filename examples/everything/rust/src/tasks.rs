//! Tools that run as tasks: the extension of 2026-07-28 where the client declares it, those of 2025-11-25 where the
//! client asks for one.

use std::time::Duration;

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::model::TaskSupport;
use tricorn::prelude::*;

use crate::official::Nothing;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Compute {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    filename: String,
}

fn form(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

pub(crate) fn tools(app: Server) -> Server {
    let tool = |name: &str, description: &str, support| Tool::new(name, description).task_support(support);
    app.tool("greet", "Greet someone, at once", |who: Greet| async move { Ok(format!("Hello, {}!", who.name)) })
        .tool_with(
            tool("slow_compute", "Compute for some seconds", TaskSupport::Optional),
            |asked: Compute| async move {
                tokio::time::sleep(Duration::try_from_secs_f64(asked.seconds)?).await;
                Ok(format!("computed {} in {} s", asked.label, asked.seconds))
            },
        )
        .tool_with(tool("failing_job", "Work for a second and fail", TaskSupport::Required), |_: Nothing| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(CallToolResult::failed("the job failed"))
        })
        .tool_with(
            tool("protocol_error_job", "End with a JSON-RPC error", TaskSupport::Required),
            |_: Nothing| async move { Err::<String, _>(Error::rpc(-32603, "the job broke").into()) },
        )
        .tool_with(
            tool("confirm_delete", "Ask before something is deleted", TaskSupport::Required),
            |file: Delete, ctx: Context| async move {
                let answer = ctx.elicit(&format!("Delete {}?", file.filename), &form("confirm", "boolean")).await?;
                let sure = answer.content.get("confirm").and_then(Value::as_bool) == Some(true);
                Ok(format!("{} {}", if sure { "deleted" } else { "kept" }, file.filename))
            },
        )
        .tool_with(
            tool("multi_input", "Ask two things at once", TaskSupport::Required),
            |_: Nothing, ctx: Context| async move {
                let (left, right) = (form("name", "string"), form("confirm", "boolean"));
                let (left, right) = tokio::join!(ctx.elicit("Left?", &left), ctx.elicit("Right?", &right));
                let (left, right) = (left?, right?);
                Ok(format!("{} {}", left.content["name"].as_str().unwrap_or_default(), right.content["confirm"]))
            },
        )
        .tool("test_tool_with_task", "Ask, then go on as a task", |_: Nothing, ctx: Context| async move {
            let answer = ctx.elicit("What is your name?", &form("name", "string")).await?;
            ctx.run_as_task()?;
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(format!("Hello, {}!", answer.content["name"].as_str().unwrap_or_default()))
        })
}
