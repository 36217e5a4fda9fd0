//! What the server offers in the newest revision alone: a call that asks is made again, who listens is told, tasks.

use crate::{Changed, failed, value};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult, Task, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskManager, TaskOptions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::broadcast;

const QUESTIONS: [(&str, &str); 3] = [("First?", "a"), ("Second?", "b"), ("Third?", "c")];

/// Whether a request is one of the newest revision.
pub(crate) fn is(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= rmcp::model::ProtocolVersion::V_2026_07_28)
}

/// The tools that are here alone.
pub(crate) fn tools() -> Result<Vec<Tool>, ErrorData> {
    let tool = |name: &str, description: &str, properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        json!({"name": name, "description": description, "inputSchema": schema})
    };
    value(json!([
        tool("three_questions", "Ask three things, one after the other", json!({})),
        tool("two_questions", "Ask two things at once", json!({})),
        tool("test_trigger_tool_change", "Say that the list of tools has changed", json!({})),
        tool("slow_compute", "Compute", json!({"seconds": {"type": "number"}, "label": {"type": "string"}})),
        tool("confirm_delete", "Ask before something is deleted", json!({"filename": {"type": "string"}})),
    ]))
}

/// What a call is answered with, if it is one of these; none: its tool is that of all revisions. `tasks` are those of a
/// client that has them, too.
pub(crate) async fn call(
    request: &CallToolRequestParams,
    tasks: Option<&TaskManager>,
    changes: &broadcast::Sender<Changed>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let answers = request.input_responses.clone().unwrap_or_default();
    let once = |method: &str, params: Value, say: fn(&Value) -> String| match answers.get("answer") {
        Some(answer) => Ok(said(say(answer))),
        None => ask(json!({"answer": {"method": method, "params": params}}), None),
    };
    Ok(Some(match &*request.name {
        "test_sampling" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": arguments["prompt"]}});
            let question = json!({"messages": [message], "maxTokens": 100});
            once("sampling/createMessage", question, |answer| {
                let content = &answer["content"];
                let text = content["text"].as_str().or(content[0]["text"].as_str()).unwrap_or_default();
                format!("LLM response: {text}")
            })?
        }
        "test_elicitation" => {
            let form = crate::person();
            let question = json!({"mode": "form", "message": arguments["message"], "requestedSchema": form});
            once("elicitation/create", question, |answer| {
                let action = answer["action"].as_str().unwrap_or_default();
                format!("User response: action={action}, content={}", answer["content"])
            })?
        }
        "roots" => once("roots/list", json!({}), |answer| {
            let roots = answer["roots"].as_array().into_iter().flatten();
            roots.filter_map(|root| root["uri"].as_str()).collect::<Vec<_>>().join(" ")
        })?,
        "three_questions" => {
            let state = request.request_state.as_deref().unwrap_or("[]");
            let mut given: Vec<String> = serde_json::from_str(state).map_err(failed)?;
            if let (Some(answer), Some((_, name))) = (answers.get("answer"), QUESTIONS.get(given.len())) {
                given.push(answer["content"][name].as_str().unwrap_or_default().to_owned());
            }
            match QUESTIONS.get(given.len()) {
                Some((message, name)) => {
                    let question = json!({"answer": form(message, name, "string")});
                    ask(question, Some(json!(given).to_string()))?
                }
                None => said(given.join(" ")),
            }
        }
        "two_questions" => match (answers.get("left"), answers.get("right")) {
            (Some(left), Some(right)) => {
                let text = |answer: &Value, name: &str| answer["content"][name].as_str().unwrap_or_default().to_owned();
                said(format!("{} {}", text(left, "left"), text(right, "right")))
            }
            _ => {
                let (left, right) = (form("Left?", "left", "string"), form("Right?", "right", "string"));
                ask(json!({"left": left, "right": right}), None)?
            }
        },
        "test_trigger_tool_change" => {
            // Nobody may be listening.
            let _ = changes.send(Changed::Tools);
            said("The list of tools has changed".to_owned())
        }
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or_default();
            let label = arguments["label"].as_str().unwrap_or_default().to_owned();
            let work = async move {
                tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
                text(format!("computed {label} in {seconds} s"))
            };
            match tasks {
                Some(tasks) => task(tasks.spawn(options(), |_| Box::pin(async { Ok(work.await) }))),
                None => work.await.into(),
            }
        }
        "confirm_delete" => {
            let tasks = tasks.ok_or_else(|| failed("it is a task, and the client has none"))?;
            let filename = arguments["filename"].as_str().unwrap_or_default().to_owned();
            let question = value(form(&format!("Delete {filename}?"), "confirm", "boolean"))?;
            task(tasks.spawn(options(), move |task| {
                Box::pin(async move {
                    let answer = task.request_input("sure", question).await?;
                    let word = if answer["content"]["confirm"] == true { "deleted" } else { "kept" };
                    Ok(text(format!("{word} {filename}")))
                })
            }))
        }
        _ => return Ok(None),
    }))
}

/// The prompt that asks before it is made.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get("user_context")) else {
        let question = json!({"user_context": form("In which context?", "context", "string")});
        return Ok(InputRequiredResult::new(Some(value(question)?), None).into());
    };
    let text = format!("Context: {}", answer["content"]["context"].as_str().unwrap_or_default());
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    value(json!([message])).map(|messages| GetPromptResult::new(messages).into())
}

fn options() -> TaskOptions {
    TaskOptions::new().with_poll_interval_ms(50)
}

fn task(task: Task) -> CallToolResponse {
    CreateTaskResult::new(task).into()
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn said(what: String) -> CallToolResponse {
    text(what).into()
}

fn form(message: &str, name: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn ask(questions: Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(InputRequiredResult::new(Some(value(questions)?), state).into())
}
