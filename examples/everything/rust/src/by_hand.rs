//! The official suite's tools that keep their rounds of questions themselves, under the keys that it knows.

use serde_json::{Map, Value, json};
use tricorn::Server;
use tricorn::prelude::*;
use tricorn::server::{CreateMessageRequestParams, ElicitAction, InputRequired, Question};

use crate::official::Nothing;

fn form(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

fn name() -> Question {
    Question::elicit("What is your name?", &form("name", "string"))
}

fn capital() -> Question {
    let question = Content::text("What is the capital of France?");
    Question::sample(&CreateMessageRequestParams::new(100).user(&question))
}

/// What the user filled in under this key. What is no such answer is none, and asked for again.
fn filled(answers: &Map<String, Value>, key: &str, member: &str) -> Option<Value> {
    let answer: ElicitResult = serde_json::from_value(answers.get(key)?.clone()).ok()?;
    answer.content.get(member).filter(|_| answer.action == ElicitAction::Accept).cloned()
}

pub(crate) fn tools(app: Server) -> Server {
    app.tool("test_input_required_result_elicitation", "Ask for a name", |_: Nothing, ctx: Context| async move {
        match filled(&ctx.input_responses()?, "user_name", "name") {
            Some(Value::String(name)) => Ok(format!("Hello, {name}!")),
            _ => Err(InputRequired::new().ask("user_name", name()).into()),
        }
    })
    .tool("test_input_required_result_sampling", "Ask the client's model", |_: Nothing, ctx: Context| async move {
        match ctx.input_responses()?.get("capital_question") {
            Some(Value::Object(answer)) => Ok(format!("The model says: {}", answer["content"]["text"])),
            _ => Err(InputRequired::new().ask("capital_question", capital()).into()),
        }
    })
    .tool("test_input_required_result_list_roots", "Ask for the roots", |_: Nothing, ctx: Context| async move {
        match ctx.input_responses()?.get("client_roots") {
            Some(Value::Object(answer)) => Ok(format!("Roots: {}", answer["roots"])),
            _ => Err(InputRequired::new().ask("client_roots", Question::list_roots()).into()),
        }
    })
    .tool("test_input_required_result_request_state", "Keep a state", |_: Nothing, ctx: Context| async move {
        let state = ctx.request_state::<String>()?;
        match (filled(&ctx.input_responses()?, "confirm", "ok"), state.as_deref()) {
            (Some(_), Some("kept")) => Ok("state-ok".to_owned()),
            _ => {
                let question = Question::elicit("Confirm?", &form("ok", "boolean"));
                Err(InputRequired::new().ask("confirm", question).state(&"kept").into())
            }
        }
    })
    .tool("test_input_required_result_multiple_inputs", "Ask three things", |_: Nothing, ctx: Context| async move {
        let answers = ctx.input_responses()?;
        match (filled(&answers, "user_name", "name"), answers.get("greeting"), answers.get("client_roots")) {
            (Some(name), Some(greeting), Some(roots)) => Ok(format!("{name} {greeting} {roots}")),
            _ => {
                let greeting = CreateMessageRequestParams::new(100).user(&Content::text("Greet the user."));
                let required = InputRequired::new().ask("user_name", name()).state(&"asked");
                let required = required.ask("greeting", Question::sample(&greeting));
                Err(required.ask("client_roots", Question::list_roots()).into())
            }
        }
    })
    .tool("test_input_required_result_multi_round", "Ask twice", |_: Nothing, ctx: Context| async move {
        let answers = ctx.input_responses()?;
        match ctx.request_state::<u32>()? {
            Some(2) if filled(&answers, "step2", "color").is_some() => Ok("both steps done".to_owned()),
            Some(_) if answers.contains_key("step1") || answers.contains_key("step2") => {
                let question = Question::elicit("Step 2: which color?", &form("color", "string"));
                Err(InputRequired::new().ask("step2", question).state(&2).into())
            }
            _ => {
                let question = Question::elicit("Step 1: what is your name?", &form("name", "string"));
                Err(InputRequired::new().ask("step1", question).state(&1).into())
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
        if !ctx.input_responses()?.is_empty() {
            return Ok("answered".to_owned());
        }
        let declared = &ctx.request().peer.capabilities;
        let mut required = InputRequired::new();
        if declared.has("sampling") {
            required = required.ask("capital_question", capital());
        }
        if declared.has("elicitation") {
            required = required.ask("user_name", name());
        }
        Err(required.into())
    })
    .prompt(
        Prompt::new("test_input_required_result_prompt").description("Ask before it is made"),
        |_: Nothing, ctx: Context| async move {
            match filled(&ctx.input_responses()?, "user_context", "context") {
                Some(context) => Ok(format!("Context: {context}")),
                None => {
                    let question = Question::elicit("In which context?", &form("context", "string"));
                    Err(InputRequired::new().ask("user_context", question).into())
                }
            }
        },
    )
}
