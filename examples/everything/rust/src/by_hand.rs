//! The official suite's tools that keep their rounds of questions themselves, under the keys that it knows.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tricorn::Server;
use tricorn::prelude::*;
use tricorn::server::{CreateMessageRequestParams, ElicitAction, InputRequired, Question};

use crate::official::Nothing;

fn form(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

fn who() -> Question {
    Question::elicit("What is your name?", &form("name", "string"))
}

fn capital() -> Question {
    let question = Content::text("What is the capital of France?");
    Question::sample(&CreateMessageRequestParams::new(100).user(&question))
}

/// Returns the value that the user filled in under this key. Anything else is none, and asked for again.
fn filled<T: DeserializeOwned>(answers: &Map<String, Value>, key: &str, member: &str) -> Option<T> {
    let mut answer: ElicitResult = serde_json::from_value(answers.get(key)?.clone()).ok()?;
    let value = answer.content.get_mut(member).filter(|_| answer.action == ElicitAction::Accept)?;
    serde_json::from_value(value.take()).ok()
}

/// Returns the answer of the client's model.
fn said(answers: &Map<String, Value>, key: &str) -> Option<String> {
    answers.get(key)?.get("content")?.get("text")?.as_str().map(str::to_owned)
}

/// The URIs of the client's roots.
fn roots(answers: &Map<String, Value>, key: &str) -> Option<String> {
    let roots = answers.get(key)?.get("roots")?.as_array()?;
    let uris: Option<Vec<&str>> = roots.iter().map(|root| root.get("uri")?.as_str()).collect();
    Some(uris?.join(" "))
}

pub(crate) fn tools(app: Server) -> Server {
    app.tool("test_input_required_result_elicitation", "Ask for a name", |_: Nothing, ctx: Context| async move {
        match filled::<String>(&ctx.input_responses()?, "user_name", "name") {
            Some(name) => Ok(format!("Hello, {name}!")),
            None => Err(InputRequired::new().ask("user_name", who()).into()),
        }
    })
    .tool("test_input_required_result_sampling", "Ask the client's model", |_: Nothing, ctx: Context| async move {
        match said(&ctx.input_responses()?, "capital_question") {
            Some(text) => Ok(format!("The model says: {text}")),
            None => Err(InputRequired::new().ask("capital_question", capital()).into()),
        }
    })
    .tool("test_input_required_result_list_roots", "Ask for the roots", |_: Nothing, ctx: Context| async move {
        match roots(&ctx.input_responses()?, "client_roots") {
            Some(uris) => Ok(format!("Roots: {uris}")),
            None => Err(InputRequired::new().ask("client_roots", Question::list_roots()).into()),
        }
    })
    .tool("test_input_required_result_request_state", "Keep a state", |_: Nothing, ctx: Context| async move {
        let state = ctx.request_state::<String>()?;
        match (filled::<bool>(&ctx.input_responses()?, "confirm", "ok"), state.as_deref()) {
            (Some(_), Some("kept")) => Ok("state-ok".to_owned()),
            _ => {
                let question = Question::elicit("Confirm?", &form("ok", "boolean"));
                Err(InputRequired::new().ask("confirm", question).state(&"kept").into())
            }
        }
    })
    .tool("test_input_required_result_multiple_inputs", "Ask three things", |_: Nothing, ctx: Context| async move {
        let answers = ctx.input_responses()?;
        let name = filled::<String>(&answers, "user_name", "name");
        match (name, said(&answers, "greeting"), roots(&answers, "client_roots")) {
            (Some(name), Some(greeting), Some(uris)) => Ok(format!("{name} {greeting} {uris}")),
            _ => {
                let greeting = CreateMessageRequestParams::new(100).user(&Content::text("Greet the user."));
                let required = InputRequired::new().ask("user_name", who()).state(&"asked");
                let required = required.ask("greeting", Question::sample(&greeting));
                Err(required.ask("client_roots", Question::list_roots()).into())
            }
        }
    })
    .tool("test_input_required_result_multi_round", "Ask twice", |_: Nothing, ctx: Context| async move {
        let answers = ctx.input_responses()?;
        let kept = ctx.request_state::<Map<String, Value>>()?.unwrap_or_default();
        let kept = kept.get("name").and_then(Value::as_str).map(str::to_owned);
        let Some(name) = kept.or_else(|| filled(&answers, "step1", "name")) else {
            let question = Question::elicit("Step 1: what is your name?", &form("name", "string"));
            return Err(InputRequired::new().ask("step1", question).state(&json!({})).into());
        };
        match filled::<String>(&answers, "step2", "color") {
            Some(color) => Ok(format!("{name} likes {color}")),
            None => {
                let question = Question::elicit("Step 2: which color?", &form("color", "string"));
                Err(InputRequired::new().ask("step2", question).state(&json!({"name": name})).into())
            }
        }
    })
    .tool("test_input_required_result_tampered_state", "Seal a state", |_: Nothing, ctx: Context| async move {
        match ctx.request_state::<String>()? {
            Some(kept) => Ok(format!("kept {kept}")),
            None => {
                let question = Question::elicit("Confirm?", &form("ok", "boolean"));
                Err(InputRequired::new().ask("confirm", question).state(&"untouched").into())
            }
        }
    })
    .tool("test_input_required_result_capabilities", "Ask what can be asked", |_: Nothing, ctx: Context| async move {
        let answers = ctx.input_responses()?;
        let given = [said(&answers, "capital_question"), filled(&answers, "user_name", "name")];
        let given: Vec<String> = given.into_iter().flatten().collect();
        if !given.is_empty() {
            return Ok(given.join(" "));
        }
        let declared = &ctx.request().peer.capabilities;
        let mut required = InputRequired::new();
        if declared.has("sampling") {
            required = required.ask("capital_question", capital());
        }
        if declared.has("elicitation") {
            required = required.ask("user_name", who());
        }
        Err(required.into())
    })
    .prompt(
        Prompt::new("test_input_required_result_prompt").description("Ask before it is made"),
        |_: Nothing, ctx: Context| async move {
            match filled::<String>(&ctx.input_responses()?, "user_context", "context") {
                Some(context) => Ok(format!("Context: {context}")),
                None => {
                    let question = Question::elicit("In which context?", &form("context", "string"));
                    Err(InputRequired::new().ask("user_context", question).into())
                }
            }
        },
    )
}
