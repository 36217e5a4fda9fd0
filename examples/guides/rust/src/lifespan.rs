//! Lifespan: what a server starts with its first use and stops with its last.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tricorn::prelude::*;

#[derive(Default)]
struct Database {
    rows: Mutex<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn notes() -> Server {
    let open = || async {
        println!("open");
        Ok::<_, Error>(Database::default())
    };
    let close = |database: Arc<Database>| async move {
        println!("close, rows: {}", database.rows.lock().unwrap_or_else(PoisonError::into_inner).len());
    };
    Server::new("notes").lifespan(open, close).tool(
        "note",
        "Write something down",
        |Note { text }: Note, ctx: Context| async move {
            let database = ctx.state::<Database>().ok_or_else(|| HandlerError::new("there is no database"))?;
            let mut rows = database.rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push(text);
            Ok(rows.len())
        },
    )
}

struct Settings {
    greeting: &'static str,
}

fn polite() -> Server {
    Server::new("polite").state(Settings { greeting: "Good morning" }).tool(
        "greet",
        "Greet",
        |_: Nothing, ctx: Context| async move { Ok(ctx.state::<Settings>().map(|settings| settings.greeting)) },
    )
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = notes();
    let options = ClientOptions::default();
    let one = Client::in_memory(&app, &options).await?;
    let two = Client::in_memory(&app, &options).await?;
    println!("one: row {}", one.call_tool("note", json!({"text": "Buy milk."})).await?.text());
    println!("two: row {}", two.call_tool("note", json!({"text": "Buy bread."})).await?.text());
    two.close().await;
    println!("one is still there");
    println!("one: row {}", one.call_tool("note", json!({"text": "Bake."})).await?.text());
    one.close().await;

    let again = Client::in_memory(&app, &options).await?;
    println!("again: row {}", again.call_tool("note", json!({"text": "Eat."})).await?.text());
    again.close().await;

    let client = Client::in_memory(&polite(), &options).await?;
    println!("greet: {}", client.call_tool("greet", json!({})).await?.text());
    client.close().await;
    Ok(())
}
