//! Elicitation: a tool asks the user, by a form or a page.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::ElicitAction;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    name: String,
    #[serde(default = "two")]
    seats: u32,
    #[serde(default)]
    meal: Meal,
}

fn two() -> u32 {
    2
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Debug)]
#[serde(rename_all = "lowercase")]
enum Meal {
    #[default]
    Fish,
    Vegetables,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("restaurant")
        .tool("book", "Book a table", |_: Nothing, ctx: Context| async move {
            let Some(booking) = ctx.elicit_as::<Booking>("A table?").await? else { return Ok("declined".to_owned()) };
            Ok(format!("{} for {}, {}", booking.seats, booking.name, format!("{:?}", booking.meal).to_lowercase()))
        })
        .tool("sign_in", "Sign in at a page that the client does not see", |_: Nothing, ctx: Context| async move {
            let answer = ctx.elicit_url("Please sign in", "https://example.com/login?id=7", "7").await?;
            ctx.elicitation_complete("7")?; // as a rule later, when the page says so
            Ok(if answer.action == ElicitAction::Accept { "accept" } else { "not accepted" })
        })
        .tool("pay", "Needs a visit before it can even begin", || async {
            let page = json!({"mode": "url", "message": "Please pay", "url": "https://example.com/pay",
                              "elicitationId": "8"});
            Err::<String, _>(Error::url_elicitation_required(&[page]).into())
        })
}

/// Stands for a dialog, and for the question whether to visit a page.
fn ask(params: &Value, answers: &Mutex<Vec<Value>>) -> Value {
    if params["mode"] == "url" {
        println!("visit: {}", params["url"].as_str().unwrap_or_default());
        return json!("accept");
    }
    let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).remove(0);
    if answer != "decline" {
        let properties = params["requestedSchema"]["properties"].as_object().into_iter().flatten();
        let fields = properties.map(|(name, field)| {
            let choices = field["enum"].as_array().map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>());
            let choices = choices.map_or(String::new(), |all| format!(" {}", all.join("|")));
            let default = field.get("default").map(|default| match default {
                Value::String(text) => format!(" ({text})"),
                other => format!(" ({other})"),
            });
            format!("{name}{choices}{}", default.unwrap_or_default())
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        println!("asked: {} {fields}", params["message"].as_str().unwrap_or_default());
    }
    answer
}

/// Hears which visits are over.
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let Some(Ok(params)) = params.map(RawJson::to::<Value>) else { return };
        if method == "notifications/elicitation/complete" {
            self.0.send(params["elicitationId"].as_str().unwrap_or_default().to_owned()).ok();
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let answers =
        Arc::new(Mutex::new(vec![json!({"name": "Ada"}), json!("decline"), json!({"name": "Ada", "seats": "many"})]));
    let user = move |params: Value| {
        let answers = answers.clone();
        async move { Ok(ask(&params, &answers)) }
    };
    let (sender, mut completed) = unbounded_channel();
    let handlers = Handlers::new().elicitation_with_url(user).events(Heard(sender));
    let options = ClientOptions::new().revision("2025-11-25");
    let app = server();
    let client = Client::in_memory_with(&app, &options, &handlers).await?;

    println!("book: {}", client.call_tool("book", json!({})).await?.text());
    println!("book: {}", client.call_tool("book", json!({})).await?.text());
    if client.call_tool("book", json!({})).await?.is_error {
        println!("book: the answer did not fit");
    }
    println!("sign_in: {}", client.call_tool("sign_in", json!({})).await?.text());
    println!("complete: {}", completed.recv().await.unwrap_or_default());
    if let Err(error) = client.call_tool("pay", json!({})).await {
        let pages: Value = error.data().and_then(|data| data.to().ok()).unwrap_or_default();
        let url = pages["elicitations"][0]["url"].as_str().unwrap_or_default();
        println!("pay: error {}, {url}", error.code().unwrap_or_default());
    }
    app.elicitation_complete("8"); // the page was visited
    println!("complete: {}", completed.recv().await.unwrap_or_default());
    client.close().await;
    Ok(())
}
