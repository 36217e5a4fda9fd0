//! Questions of the server during a request.

mod field;
mod form;
mod sampler;
mod visits;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tricorn::client::Handlers;
use tricorn::jsonrpc::RawJson;
use tricorn::{Context, Handler, Reply};

pub(crate) use visits::{visit, visit_login};

use crate::failure::Outcome;
use crate::output::{Screen, one_line};

/// Makes the handlers that answer the server's questions.
pub(crate) fn handlers(
    sampler: Option<&str>,
    limit: Option<Duration>,
    screen: &Screen,
    runtime: &Handle,
) -> Outcome<Handlers> {
    let asked = Asked { screen: screen.clone(), runtime: runtime.clone(), turn: Arc::default() };
    let handlers = Handlers::new().elicitation_with_url(Arc::new(asked));
    let Some(command) = sampler else { return Ok(handlers) };
    let sampler = sampler::Sampler::new(command, limit, screen, runtime)?;
    #[expect(deprecated, reason = "servers that ask a model in this way are there")]
    let handlers = handlers.sampling_with_tools(Arc::new(sampler));
    Ok(handlers)
}

/// Asks the user, one question after the other.
struct Asked {
    screen: Screen,
    runtime: Handle,
    turn: Arc<Mutex<()>>,
}

impl Handler for Asked {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let (screen, turn) = (self.screen.clone(), self.turn.clone());
        let Ok(question) = params.to::<Value>() else { return reply.value(action("decline")) };
        self.runtime.spawn(async move {
            let _turn = turn.lock().await;
            if context.is_cancelled() {
                return reply.value(action("cancel"));
            }
            let answered = tokio::task::spawn_blocking(move || answer(&screen, &question)).await;
            reply.value(answered.unwrap_or_else(|_| action("cancel")));
        });
    }
}

fn answer(screen: &Screen, question: &Value) -> RawJson {
    let message = question["message"].as_str().unwrap_or_default();
    if !screen.can_ask() {
        screen.line(&format!("the server asks \"{}\": declined, as there is no terminal to ask on", one_line(message)));
        return action("decline");
    }
    let _held = screen.hold();
    let answered = match question["url"].as_str().filter(|_| question["mode"] == "url") {
        Some(url) => visits::ask(screen, message, url).map(|yes| if yes { Some(Value::Null) } else { None }),
        None => form::fill(screen, message, &question["requestedSchema"]).map(|content| content.map(Value::Object)),
    };
    match answered {
        Ok(Some(Value::Null)) => action("accept"),
        Ok(Some(content)) => RawJson::from_value(&json!({"action": "accept", "content": content})),
        Ok(None) => action("decline"),
        // Ctrl-C, or the end of input.
        Err(_) => action("cancel"),
    }
}

fn action(name: &str) -> RawJson {
    RawJson::from_value(&json!({"action": name}))
}
