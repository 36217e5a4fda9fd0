//! Lists whose pages come from several processes.
#![expect(clippy::unwrap_used, reason = "tests")]

use schemars::JsonSchema;
use tricorn::client::{Client, ClientOptions};
use tricorn::prelude::*;
use tricorn::server::Kind;
use tricorn::{CallOptions, ErrorKind};

#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

fn server(names: &[String], page_size: usize) -> Server {
    names.iter().fold(Server::new("s").page_size(page_size), |server, name| {
        let text = name.clone();
        let server = server.tool(name, "", |_: Nothing| async { Ok(1) });
        server.resource(Resource::new(format!("test://{name}"), name.clone()), move || {
            let text = text.clone();
            async move { Ok(text) }
        })
    })
}

async fn connected(server: &Server) -> Client {
    Client::in_memory(server, &ClientOptions::default()).await.unwrap()
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// All entries, each page from the next of these servers.
async fn walk(clients: &[Client], kind: Kind) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    for client in clients.iter().cycle() {
        let page = client.page(kind, cursor.as_deref(), &CallOptions::new()).await.unwrap();
        found.extend(page.entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    found
}

#[tokio::test]
async fn the_same_offers_in_another_order_neither_lose_nor_repeat() {
    let (long, longer) = ("n".repeat(300), format!("{}o", "n".repeat(300)));
    let names = named(&["d", "b", "ä", &longer, "a", &long, "c"]);
    let other: Vec<_> = names.iter().rev().cloned().collect();
    let clients = [connected(&server(&names, 2)).await, connected(&server(&other, 2)).await];
    for kind in [Kind::Tool, Kind::Resource] {
        let found = walk(&clients, kind).await;
        let turned: Vec<_> = clients.iter().rev().cloned().collect();
        assert_eq!(walk(&turned, kind).await, found, "{kind:?}");
        assert_eq!(found[..4], ["a", "b", "c", "d"], "{kind:?}");
        let mut sorted = found.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!((found.len(), sorted.len()), (names.len(), names.len()), "{kind:?}");
    }
}

#[tokio::test]
async fn one_page_is_in_the_order_of_its_author() {
    let names = named(&["second", "first", "third"]);
    assert_eq!(walk(&[connected(&server(&names, 3)).await], Kind::Tool).await, names);
    let more = server(&names, 2);
    let client = connected(&more).await;
    let first = client.list_tools_page(None).await.unwrap();
    assert_eq!(first.tools.iter().map(|t| t["name"].as_str().unwrap()).collect::<Vec<_>>(), ["first", "second"]);
    // It goes on where the name would be.
    more.remove_tool("second");
    let rest = client.list_tools_page(first.next_cursor.as_deref()).await.unwrap();
    assert_eq!((rest.tools.len(), &rest.tools[0]["name"]), (1, &"third".into()));
    for bad in ["t-", "t-7", "t", "r-YQ", "t-YQ=="] {
        let refused = client.list_tools_page(Some(bad)).await.unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::Rpc, Some(-32602)), "{bad}");
    }
}

#[cfg(feature = "files")]
#[tokio::test]
async fn so_are_directories() {
    use tricorn::server::files::Directory;
    let scratch = crate::dynamic::Scratch::new("paging");
    let served = |order: [&'static str; 2]| {
        order.into_iter().fold(server(&named(&["x"]), 1), |server, name| {
            let at = scratch.0.join(name);
            std::fs::create_dir_all(&at).unwrap();
            for file in ["1.txt", "2.txt"] {
                std::fs::write(at.join(file), name).unwrap();
            }
            server.directory(Directory::new(&at, &format!("docs://{name}")).unwrap())
        })
    };
    let clients = [connected(&served(["one", "two"])).await, connected(&served(["two", "one"])).await];
    let mut found = Vec::new();
    let mut cursor = None::<String>;
    for client in clients.iter().cycle() {
        let page = client.list_resources_page(cursor.as_deref()).await.unwrap();
        found.extend(page.entries.iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let files = ["one/1.txt", "one/2.txt", "two/1.txt", "two/2.txt"].map(|name| format!("docs://{name}"));
    assert_eq!((found[0].as_str(), &found[1..]), ("test://x", &files[..]));
}
