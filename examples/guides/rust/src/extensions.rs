//! Extensions: settings, requests and notifications of one's own, for the clients that declare them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use tricorn::client::Change;
use tricorn::jsonrpc::RawJson;
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::Extension;

const SEARCH: &str = "com.example/search";
const RESERVE: &str = "com.example/reserve";
const ORDERED: &str = "notifications/com.example/ordered";
const SUBJECTS: &str = "com.example/subjects";
const BOOKS: [&str; 3] = ["Tea at Five", "Tea at Six", "Coffee at Ten"];

#[derive(Deserialize, JsonSchema)]
struct Query {
    query: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Book {
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Found {
    found: Vec<String>,
}

/// Settings that the client declares.
#[derive(Deserialize)]
struct Settings {
    limit: usize,
}

/// Settings that the server declares.
#[derive(Deserialize)]
struct Offered {
    languages: Vec<String>,
}

fn settings(ctx: &Context) -> Option<Settings> {
    ctx.extension(SEARCH)?.to().ok()
}

fn server() -> Server {
    let search = Extension::new(SEARCH)
        .settings(json!({"languages": ["en", "de"]}))
        .idempotent_method(SEARCH, |Query { query }: Query, ctx: Context| async move {
            let limit = settings(&ctx).map_or(BOOKS.len(), |settings| settings.limit);
            let titles = BOOKS.into_iter().filter(|title| title.contains(&query)).take(limit);
            Ok(Found { found: titles.map(str::to_owned).collect() })
        })
        .method(RESERVE, |Book { title }: Book| async move {
            Ok(json!({"resultType": "com.example/ticket", "title": title, "number": 7}))
        })
        // Who listens asks for it by this member of the filter.
        .notification(ORDERED, SUBJECTS);
    Server::new("library").extension(search).tool(
        "limit",
        "How much this client takes",
        |_: Nothing, ctx: Context| async move {
            Ok(match settings(&ctx) {
                Some(Settings { limit }) => format!("at most {limit}"),
                None => "no search".to_owned(),
            })
        },
    )
}

fn order(app: &Server, title: &str, subject: &str) -> tricorn::Result<()> {
    let book = Book { title: title.to_owned() };
    app.notify(ORDERED, Some(RawJson::from_value(&book)), Some(subject))
}

async fn hear(app: &Server, client: &Client) -> tricorn::Result<()> {
    let filter = SubscriptionFilter::new().other(SUBJECTS, json!(["tea"]));
    let mut changes = client.listen(filter).await?;
    order(app, "Coffee at Eleven", "coffee")?;
    order(app, "Tea at Seven", "tea")?;
    while let Some(change) = changes.next().await {
        if let Change::Extension { params, .. } = change?
            && let Ok(Book { title }) = params.to()
        {
            println!("ordered: {title}");
            if title == "Tea at Seven" {
                break;
            }
        }
    }
    Ok(())
}

async fn search(client: &Client, query: Value) -> tricorn::Result<String> {
    let params = RawJson::from_value(&json!({"query": query}));
    let result = client.request(SEARCH, Some(params), &CallOptions::new()).await?;
    Ok(result.to::<Found>().map(|Found { found }| found.join(", ")).unwrap_or_default())
}

async fn refusal(client: &Client, query: Value) -> String {
    match search(client, query).await {
        Ok(found) => format!("found {found}"),
        Err(error) => format!("error {}", error.code().unwrap_or_default()),
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    for revision in ["2025-11-25", "2026-07-28"] {
        println!("{revision}");
        let plain = ClientOptions::new().revision(revision);
        let client = Client::in_memory(&app, &plain.clone().extension(SEARCH, json!({"limit": 1}))).await?;
        let capabilities = client.capabilities();
        let offered = capabilities.extension(SEARCH).map_or("{}", |settings| settings.get());
        let languages = serde_json::from_str(offered).map_or(Vec::new(), |Offered { languages }| languages);
        println!("languages: {}", languages.join(", "));
        println!("found: {}", search(&client, json!("Tea")).await?);
        println!("tool: {}", client.call_tool("limit", json!({})).await?.text());
        println!("wrong: {}", refusal(&client, json!(7)).await);
        let heard = timeout(Duration::from_secs(10), hear(&app, &client)).await;
        heard.unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, "nothing was heard")))?;
        client.close().await;

        let client = Client::in_memory(&app, &plain).await?; // declares nothing
        let said = client.call_tool("limit", json!({})).await?;
        println!("undeclared: {}, {}", said.text(), refusal(&client, json!("Tea")).await);
        client.close().await;
    }

    let options = ClientOptions::new().revision("2026-07-28").extension(SEARCH, json!({"limit": 1}));
    let client = Client::in_memory(&app, &options).await?;
    let params = RawJson::from_value(&json!({"title": "Tea at Six"}));
    if let Err(error) = client.request(RESERVE, Some(params.clone()), &CallOptions::new()).await {
        println!("unasked: {}", error.kind().as_str());
    }
    let ticket = client.request(RESERVE, Some(params), &CallOptions::new().any_result(true)).await?;
    let ticket: Value = ticket.to().unwrap_or_default();
    println!("reserved: {} {}", ticket["resultType"].as_str().unwrap_or_default(), ticket["number"]);
    client.close().await;
    Ok(())
}
