//! Tests of the caches of HTTP clients, alone and together, against servers that answer by script; and of the headers
//! that mirror arguments, which come from lists that may be cached.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tricorn::client::{CacheOptions, Client, ClientOptions, Handlers, MemoryCache, Target};
use tricorn::{CallOptions, Error, ErrorKind};

use crate::http_client::heard::{Heard, listening};
use crate::http_client::server::*;

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn connect(server: &Server, options: &ClientOptions, handlers: &Handlers) -> Client {
    let target = Target::from_text(&server.url()).unwrap();
    within("connecting", Client::connect_with(&target, options, handlers)).await.unwrap()
}

/// For clients that keep answers together.
fn in_one_memory() -> ClientOptions {
    ClientOptions::new().cache(CacheOptions::new().memory(Arc::new(MemoryCache::new(100, 1 << 20))))
}

async fn alone(server: &Server) -> Client {
    connect(server, &ClientOptions::new(), &Handlers::new()).await
}

fn marked(name: &str, mark: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"v": {"type": "string", "x-mcp-header": mark}}}})
}

fn list(tools: &[Value], scope: &str) -> Value {
    json!({"tools": tools, "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": scope})
}

async fn names(client: &Client) -> Vec<String> {
    let tools = within("listing", client.list_tools()).await.unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn call(client: &Client, name: &str, arguments: Value) -> Result<String, Error> {
    let result = within("calling", client.call_tool_with(name, arguments, &CallOptions::new())).await?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

/// A server whose list says for whom it is, and names how often it was asked for.
async fn counting(scope: &'static str) -> Server {
    let count = AtomicUsize::new(0);
    Server::new(move |seen| match seen.method() {
        "tools/list" => {
            let name = format!("t{}", count.fetch_add(1, Ordering::SeqCst) + 1);
            result(seen, &list(&[marked(&name, "Region")], scope))
        }
        "tools/call" => result(seen, &text(seen.header("mcp-param-region").unwrap_or("none"))),
        _ => modern(seen).unwrap(),
    })
    .await
}

#[tokio::test]
async fn clients_share_what_is_for_all_and_what_is_under_the_same_authorization() {
    for (scope, others) in [("public", "t1"), ("private", "t2")] {
        let server = counting(scope).await;
        let options = in_one_memory();
        let handlers = Handlers::new();
        let user = |token: &str| options.clone().header("Authorization", format!("Bearer {token}"));
        let ada = connect(&server, &user("ada"), &handlers).await;
        assert_eq!(names(&ada).await, ["t1"], "{scope}");
        assert_eq!(names(&connect(&server, &user("ada"), &handlers).await).await, ["t1"], "{scope}");
        let bob = connect(&server, &user("bob"), &handlers).await;
        assert_eq!(names(&bob).await, [others], "{scope}");
        let nobody = connect(&server, &options, &handlers).await;
        assert_eq!(names(&nobody).await, [if scope == "public" { "t1" } else { "t3" }], "{scope}");
        // Who has another store knows nothing of it.
        let expected = if scope == "public" { "t2" } else { "t4" };
        assert_eq!(names(&alone(&server).await).await, [expected], "{scope}");
    }
}

#[cfg(feature = "auth")]
#[tokio::test]
async fn who_logs_in_shares_nothing_private() {
    let server = counting("private").await;
    let (options, handlers) = (in_one_memory(), Handlers::new());
    let user = |token: &str| options.clone().auth(tricorn::client::Auth::bearer(token));
    let ada = connect(&server, &user("ada"), &handlers).await;
    let bob = connect(&server, &user("bob"), &handlers).await;
    assert_eq!((names(&ada).await, names(&bob).await), (vec!["t1".to_owned()], vec!["t2".to_owned()]));
    assert_eq!(names(&ada).await, ["t1"], "kept for the client itself");
}

#[tokio::test]
async fn an_option_shares_within_the_process_and_a_scope_of_ones_own_counts() {
    let server = counting("private").await;
    let options = |scope: &str, token: &str| {
        ClientOptions::new().cache(CacheOptions::new().shared(true).scope(scope)).header("Authorization", token)
    };
    let none = Handlers::new();
    assert_eq!(names(&connect(&server, &options("ada", "token 1"), &none).await).await, ["t1"]);
    // The token was renewed; the user is the same.
    assert_eq!(names(&connect(&server, &options("ada", "token 2"), &none).await).await, ["t1"]);
    assert_eq!(names(&connect(&server, &options("bob", "token 1"), &none).await).await, ["t2"]);
}

#[tokio::test]
async fn who_gets_a_list_from_another_client_mirrors_arguments_too() {
    let server = counting("public").await;
    let (options, handlers) = (in_one_memory(), Handlers::new());
    let first = connect(&server, &options, &handlers).await;
    let second = connect(&server, &options, &handlers).await;
    assert_eq!((names(&first).await, names(&second).await), (vec!["t1".to_owned()], vec!["t1".to_owned()]));
    assert_eq!(call(&second, "t1", json!({"v": "eu"})).await.unwrap(), "eu");
    // Also a client that lists nothing at the server later mirrors what it knows.
    assert_eq!(names(&first).await, ["t1"]);
    assert_eq!(call(&first, "t1", json!({"v": "Zürich"})).await.unwrap(), "=?base64?WsO8cmljaA==?=");
}

#[tokio::test]
async fn a_list_is_asked_for_again_once_the_server_says_that_it_has_changed() {
    let count = AtomicUsize::new(0);
    let server = Server::new(move |seen| match seen.method() {
        "tools/list" => {
            let name = format!("t{}", count.fetch_add(1, Ordering::SeqCst) + 1);
            result(seen, &list(&[marked(&name, "Region")], "public"))
        }
        "tools/call" => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": text("ok")});
            Reply::Write(vec![SSE_HEAD.into(), event(&changed), event(&answer), SSE_END.into()])
        }
        _ => modern(seen).unwrap(),
    })
    .await;
    let heard = Arc::new(Heard::default());
    let client = listening(&server, &heard).await;
    assert_eq!((names(&client).await, names(&client).await), (vec!["t1".to_owned()], vec!["t1".to_owned()]));
    call(&client, "t1", json!({})).await.unwrap();
    assert_eq!(*heard.notifications.lock().unwrap(), ["notifications/tools/list_changed"]);
    assert_eq!(names(&client).await, ["t2"]);
}

#[tokio::test]
async fn a_wrong_cursor_ends_all_pages_that_were_kept() {
    let changed = Arc::new(AtomicBool::new(false));
    let is_changed = changed.clone();
    let server = Server::new(move |seen| {
        let page = |name: &str, next: &str| {
            let mut page = list(&[json!({"name": name, "inputSchema": {"type": "object"}})], "private");
            page["nextCursor"] = next.into();
            page
        };
        let is_changed = is_changed.load(Ordering::SeqCst);
        match (seen.method(), seen.body["params"]["cursor"].as_str()) {
            ("tools/list", None) if is_changed => result(seen, &list(&[marked("new", "R")], "private")),
            ("tools/list", None) => result(seen, &page("first", "2")),
            ("tools/list", Some("2")) if !is_changed => result(seen, &page("second", "3")),
            ("tools/list", _) => error("200 OK", &seen.body["id"], -32602, &Value::Null),
            _ => modern(seen).unwrap(),
        }
    })
    .await;
    let client = alone(&server).await;
    let page =
        async |cursor: Option<&str>| client.list_tools_page(cursor).await.map(|page| page.tools[0]["name"].clone());
    assert_eq!(within("a page", page(None)).await.unwrap(), "first");
    assert_eq!(within("a page", page(Some("2"))).await.unwrap(), "second");
    changed.store(true, Ordering::SeqCst);
    assert_eq!(within("a page", page(None)).await.unwrap(), "first", "kept");
    assert_eq!(within("a page", page(Some("3"))).await.unwrap_err().code(), Some(-32602));
    assert_eq!(within("a page", page(None)).await.unwrap(), "new");
    assert_eq!(within("a page", page(Some("2"))).await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn a_kept_page_that_leads_astray_has_all_pages_read_anew() {
    use futures_util::StreamExt;
    let version = Arc::new(AtomicUsize::new(1));
    let now = version.clone();
    let server = Server::new(move |seen| {
        let now = now.load(Ordering::SeqCst);
        let tool = |name: &str| json!({"name": format!("{name}{now}"), "inputSchema": {"type": "object"}});
        match (seen.method(), seen.body["params"]["cursor"].as_str()) {
            ("tools/list", None) => {
                let mut page =
                    list(&[json!({"name": "same", "inputSchema": {"type": "object"}}), tool("a")], "private");
                page["nextCursor"] = format!("c{now}").into();
                result(seen, &page)
            }
            ("tools/list", Some(cursor)) if cursor == format!("c{now}") && now < 9 => {
                let mut page = list(&[tool("b")], "private");
                page["ttlMs"] = 0.into();
                result(seen, &page)
            }
            ("tools/list", _) => error("200 OK", &seen.body["id"], -32602, &Value::Null),
            _ => modern(seen).unwrap(),
        }
    })
    .await;
    let client = alone(&server).await;
    assert_eq!(names(&client).await, ["same", "a1", "b1"]);
    version.store(2, Ordering::SeqCst);
    assert_eq!(names(&client).await, ["same", "a2", "b2"], "nothing of what was kept");
    let name = |entry: &serde_json::Map<String, Value>| entry["name"].as_str().unwrap().to_owned();
    let pages = || client.pages(tricorn::server::Kind::Tool, &CallOptions::new());
    // What was given cannot be taken back, but nothing is given twice.
    version.store(3, Ordering::SeqCst);
    let streamed: Vec<_> = within("streaming", pages().map(|entry| name(&entry.unwrap())).collect()).await;
    assert_eq!(streamed, ["same", "a2", "a3", "b3"]);
    version.store(4, Ordering::SeqCst);
    let (mut pages, mut paged) = (pages(), Vec::new());
    while let Some(page) = within("a page", pages.next_page()).await.unwrap() {
        paged.push(page.entries.iter().map(name).collect::<Vec<_>>());
    }
    assert_eq!(paged, [vec!["same", "a3"], vec!["a4"], vec!["b4"]]);
    // One that refuses all of its own cursors is asked twice.
    version.store(9, Ordering::SeqCst);
    let before = server.methods().len();
    assert_eq!(within("listing", client.list_tools()).await.unwrap_err().code(), Some(-32602));
    assert_eq!(server.methods().len() - before, 3, "the kept page's successor, the first, its successor");
}

#[tokio::test]
async fn an_old_list_is_given_when_the_server_is_down_and_that_was_asked_for() {
    const ANSWERS: [&str; 4] = ["", "503 Service Unavailable", "404 Not Found", "410 Gone"];
    let status = Arc::new(AtomicUsize::new(0));
    let now = status.clone();
    let server = Server::new(move |seen| match seen.method() {
        "tools/list" if now.load(Ordering::SeqCst) > 0 => raw(ANSWERS[now.load(Ordering::SeqCst)], &[], ""),
        "tools/list" => {
            let mut short = list(&[marked("t", "R")], "private");
            // Over before it is asked for again.
            short["ttlMs"] = json!(1e-6);
            result(seen, &short)
        }
        _ => modern(seen).unwrap(),
    })
    .await;
    let options = ClientOptions::new().cache(CacheOptions::new().stale_on_error(true));
    let client = connect(&server, &options, &Handlers::new()).await;
    let plain = alone(&server).await;
    assert_eq!((names(&client).await, names(&plain).await), (vec!["t".to_owned()], vec!["t".to_owned()]));
    status.store(1, Ordering::SeqCst);
    let page = within("a page", client.page(tricorn::server::Kind::Tool, None, &CallOptions::new())).await.unwrap();
    assert!(page.is_stale() && page.entries[0]["name"] == "t", "{page:?}");
    assert_eq!(within("listing", plain.list_tools()).await.unwrap_err().kind(), ErrorKind::Transport);
    // It answers, and will not: that is not being down.
    for refused in [2, 3] {
        status.store(refused, Ordering::SeqCst);
        let error = within("listing", client.list_tools()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Transport && error.message().contains(ANSWERS[refused]), "{error}");
    }
}

// ---- headers that mirror arguments --------------------------------------------------------------------------------

#[tokio::test]
async fn what_was_kept_of_a_list_is_dropped_when_it_leads_to_the_wrong_headers() {
    let moved = Arc::new(AtomicBool::new(false));
    let is_moved = moved.clone();
    let server = Server::new(move |seen| {
        let is_moved = is_moved.load(Ordering::SeqCst);
        let mark = if is_moved { "Zone" } else { "Region" };
        match seen.method() {
            "tools/list" => result(seen, &list(&[marked("t", mark)], "public")),
            "tools/call" => match (is_moved, seen.header("mcp-param-region"), seen.header("mcp-param-zone")) {
                (false, Some(value), None) | (true, None, Some(value)) => result(seen, &text(value)),
                _ => error("400 Bad Request", &seen.body["id"], -32020, &Value::Null),
            },
            _ => modern(seen).unwrap(),
        }
    })
    .await;
    let client = alone(&server).await;
    let header = async |client: &Client| {
        let tools = within("listing", client.list_tools()).await.unwrap();
        tools[0]["inputSchema"]["properties"]["v"]["x-mcp-header"].as_str().unwrap().to_owned()
    };
    assert_eq!(header(&client).await, "Region");
    assert_eq!(call(&client, "t", json!({"v": "eu"})).await.unwrap(), "eu");
    moved.store(true, Ordering::SeqCst);
    assert_eq!(header(&client).await, "Region", "kept");
    assert_eq!(call(&client, "t", json!({"v": "eu"})).await.unwrap(), "eu");
    let sent = ["server/discover", "tools/list", "tools/call", "tools/call", "tools/list", "tools/call"];
    assert_eq!(server.methods(), sent);
    assert_eq!(header(&client).await, "Zone", "what was kept is not given any more");
}

#[tokio::test]
async fn a_tool_that_lost_its_marks_is_called_again_without_headers() {
    let server = Server::new(move |seen| match (seen.method(), seen.header("mcp-param-region")) {
        ("tools/list", _) if seen.body["id"].is_string() => {
            // A tool before it and one behind it have marks, it has none any more.
            let plain = json!({"name": "t", "inputSchema": {"type": "object"}});
            result(seen, &list(&[marked("a", "A"), plain, marked("z", "Z")], "private"))
        }
        ("tools/list", _) => result(seen, &list(&[marked("t", "Region")], "private")),
        ("tools/call", Some(_)) => error("400 Bad Request", &seen.body["id"], -32020, &Value::Null),
        ("tools/call", None) => result(seen, &text("ok")),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = alone(&server).await;
    assert_eq!(names(&client).await, ["t"]);
    assert_eq!(call(&client, "t", json!({"v": "eu"})).await.unwrap(), "ok");
    assert_eq!(server.methods(), ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn a_refused_call_reads_on_until_its_own_tool_comes() {
    // The tool is known with an old mark, and its new one is on the second page.
    let server = Server::new(move |seen| {
        let again = seen.body["id"].is_string();
        match (seen.method(), seen.body["params"]["cursor"].as_str()) {
            ("tools/list", None) if again => {
                let mut page = list(&[marked("a", "A")], "private");
                page["nextCursor"] = "2".into();
                result(seen, &page)
            }
            ("tools/list", Some("2")) => result(seen, &list(&[marked("t", "Zone")], "private")),
            ("tools/list", _) => result(seen, &list(&[marked("t", "Region")], "private")),
            ("tools/call", _) if seen.header("mcp-param-zone") == Some("eu") => result(seen, &text("ok")),
            ("tools/call", _) => error("400 Bad Request", &seen.body["id"], -32020, &Value::Null),
            _ => modern(seen).unwrap(),
        }
    })
    .await;
    let client = alone(&server).await;
    assert_eq!(names(&client).await, ["t"]);
    assert_eq!(call(&client, "t", json!({"v": "eu"})).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_tool_that_was_never_listed_is_called_without_headers() {
    let server = Server::new(move |seen| match seen.method() {
        "tools/list" => result(seen, &list(&[marked("other", "Region")], "private")),
        "tools/call" if seen.body["params"]["name"] == "refused" => {
            error("400 Bad Request", &seen.body["id"], -32020, &Value::Null)
        }
        "tools/call" => result(seen, &text("ok")),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = alone(&server).await;
    assert_eq!(call(&client, "unlisted", json!({"v": "eu"})).await.unwrap(), "ok");
    let headers = server.seen()[1].protocol_headers().iter().any(|(name, _)| name.starts_with("mcp-param-"));
    assert_eq!((server.methods(), headers), (vec!["server/discover".into(), "tools/call".into()], false));
    // The list has no such tool: nothing to try again with.
    assert_eq!(call(&client, "refused", json!({})).await.unwrap_err().code(), Some(-32020));
    assert_eq!(server.methods()[2..], ["tools/call", "tools/list"]);
}
