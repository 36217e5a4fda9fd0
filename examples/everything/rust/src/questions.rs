//! Tools that ask their user, in straight lines: what becomes of that in which revision is not theirs to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::prelude::*;
use tricorn::server::{ElicitAction, Question};

use crate::official::Nothing;

fn form(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

fn text(answer: &ElicitResult, name: &str) -> String {
    answer.content.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the text made of one filled in text, or the action that is no acceptance.
pub(crate) fn answered(answer: &ElicitResult, name: &str, made: impl FnOnce(String) -> String) -> String {
    match answer.action {
        ElicitAction::Accept => made(text(answer, name)),
        other => word(other).to_owned(),
    }
}

fn word(action: ElicitAction) -> &'static str {
    match action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        _ => "cancel",
    }
}

pub(crate) fn tools(app: Server) -> Server {
    let reserved = Arc::new(AtomicU32::new(0));
    app.tool("three_questions", "Ask three things, one after the other", |_: Nothing, ctx: Context| async move {
        let mut given = Vec::new();
        for (message, name) in [("First?", "a"), ("Second?", "b"), ("Third?", "c")] {
            let answer = ctx.elicit(message, &form(name, "string")).await?;
            if answer.action != ElicitAction::Accept {
                return Ok(format!("{message}: {}", word(answer.action)));
            }
            given.push(text(&answer, name));
        }
        Ok(given.join(" "))
    })
    .tool("two_questions", "Ask two things at once", |_: Nothing, ctx: Context| async move {
        let left = Question::elicit("Left?", &form("left", "string"));
        let right = Question::elicit("Right?", &form("right", "string"));
        let answers = ctx.ask_all([left, right]).await?;
        let (left, right): (ElicitResult, ElicitResult) = (answers[0].to()?, answers[1].to()?);
        Ok(format!("{} {}", text(&left, "left"), text(&right, "right")))
    })
    .tool("step_once", "Do something once, then ask", move |_: Nothing, ctx: Context| {
        let reserved = reserved.clone();
        async move {
            let number = ctx.step("reserve", async { reserved.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let answer = ctx.elicit("Confirm?", &form("confirm", "boolean")).await?;
            let said = match answer.action {
                ElicitAction::Accept => answer.content["confirm"].to_string(),
                other => word(other).to_owned(),
            };
            Ok(format!("reservation {number}: {said}"))
        }
    })
}
