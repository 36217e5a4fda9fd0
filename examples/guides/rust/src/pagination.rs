//! Pagination: long lists come in pages.

use serde_json::{Map, Value};
use tricorn::prelude::*;
use tricorn::server::Kind;

fn server() -> Server {
    ["one", "two", "three", "four", "five"].into_iter().fold(Server::new("shelf").page_size(2), |app, name| {
        app.resource(Resource::new(format!("book://{name}"), name), move || async move { Ok(format!("Book {name}.")) })
    })
}

fn names(entries: &[Map<String, Value>]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry["name"].as_str()).collect()
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let client = Client::in_memory(&server(), &ClientOptions::default()).await?;
    let options = CallOptions::new();

    let mut cursor = None;
    loop {
        let page = client.list_resources_page(cursor.as_deref()).await?;
        println!("page: {}", names(&page.entries).join(", "));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }

    // Asks for a page when the loop gets there. `Pages` is a stream of entries, too.
    let mut pages = client.pages(Kind::Resource, &options);
    let mut seen = Vec::new();
    while !seen.iter().any(|name| name == "three")
        && let Some(page) = pages.next_page().await?
    {
        seen.extend(names(&page.entries).into_iter().map(str::to_owned));
    }
    println!("lazily: {}", seen.join(" "));

    println!("all: {}", client.list_resources().await?.len());

    if let Err(error) = client.list_resources_page(Some("nonsense")).await {
        println!("bad cursor: error {}", error.code().unwrap_or_default());
    }
    client.close().await;
    Ok(())
}
