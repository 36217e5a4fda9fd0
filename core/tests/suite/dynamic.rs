//! Tests of entries that are taken out of a server while it runs.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use tricorn::Reply;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::Kind;

/// Calls back when it goes.
struct Guard(Server, Arc<Mutex<usize>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.remove_tool("other");
        self.0.list_changed(Kind::Tool);
        *self.1.lock().unwrap() += 1;
    }
}

struct Held(Guard);

impl tricorn::Handler for Held {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&Arc::strong_count(&self.0.1)));
    }
}

#[test]
fn it_may_use_the_server_when_it_is_dropped() {
    let (server, gone) = (Server::new("s"), Arc::new(Mutex::new(0)));
    let held = || Arc::new(Held(Guard(server.clone(), gone.clone())));
    server.add_tool(Tool::new("t", ""), held()).unwrap();
    server.add_tool(Tool::new("t", ""), held()).unwrap_err();
    assert!(server.remove_tool("t"));
    for _ in 0..2 {
        server.set_source(Kind::Tool, Some(held()), None);
        server.set_completion(held());
        server.set_subscription(held());
    }
    assert_eq!(*gone.lock().unwrap(), 5);
}

/// Calls of the subscription hook.
#[derive(Clone, Default)]
struct Hears(Arc<Mutex<Vec<(String, bool)>>>, Arc<tokio::sync::Notify>);

impl tricorn::Handler for Hears {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let told: serde_json::Value = params.to().unwrap();
        let one = (told["uri"].as_str().unwrap().to_owned(), told["subscribed"].as_bool().unwrap());
        self.0.lock().unwrap().push(one);
        self.1.notify_one();
        reply.value(RawJson::from_value(&true));
    }
}

#[tokio::test]
async fn the_hook_hears_of_subscriptions_that_begin_and_end() {
    let hears = Hears::default();
    let server = Server::new("s").resource_template(ResourceTemplate::new("a://{n}", "a"), || async { Ok("x") });
    server.set_subscription(Arc::new(hears.clone()));
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    let client = Client::in_memory(&server, &options).await.unwrap();
    for _ in 0..2 {
        client.subscribe("a://1").await.unwrap();
        client.subscribe("a://2").await.unwrap();
    }
    client.unsubscribe("a://1").await.unwrap();
    client.unsubscribe("a://1").await.unwrap();
    client.unsubscribe("a://3").await.unwrap();
    let told = |uri: &str, begins| (uri.to_owned(), begins);
    let begun = vec![told("a://1", true), told("a://2", true), told("a://1", false)];
    assert_eq!(*hears.0.lock().unwrap(), begun);
    client.close().await;
    let ended = async {
        while hears.0.lock().unwrap().len() < 4 {
            hears.1.notified().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), ended).await.expect("told of the end");
    assert_eq!(hears.0.lock().unwrap()[3], told("a://2", false));
}

/// Keeps its questions.
#[derive(Clone, Default)]
struct Keeps(Hears, Arc<Mutex<Vec<Reply>>>);

impl tricorn::Handler for Keeps {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        let told: serde_json::Value = params.to().unwrap();
        if told["subscribed"] == true {
            self.1.lock().unwrap().push(reply);
            self.0.0.lock().unwrap().push((told["uri"].as_str().unwrap().to_owned(), true));
            self.0.1.notify_one();
        } else {
            self.0.call(cx, params, reply);
        }
    }
}

#[tokio::test]
async fn the_hook_hears_of_the_end_of_a_subscription_whose_client_left_before_it_held() {
    let keeps = Keeps::default();
    let server = Server::new("s").resource_template(ResourceTemplate::new("a://{n}", "a"), || async { Ok("x") });
    server.set_subscription(Arc::new(keeps.clone()));
    let told = async |count: usize| {
        let told = async {
            while keeps.0.0.lock().unwrap().len() < count {
                keeps.0.1.notified().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), told).await.expect("told");
        keeps.0.0.lock().unwrap().last().unwrap().clone()
    };
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    let client = Client::in_memory(&server, &options).await.unwrap();
    // Given up.
    tokio::select! {
        biased;
        _ = client.subscribe("a://1") => panic!("answered"),
        told = told(1) => assert_eq!(told, ("a://1".to_owned(), true)),
    }
    client.ping().await.unwrap();
    let reply = keeps.1.lock().unwrap().remove(0);
    reply.value(RawJson::trusted("true"));
    assert_eq!(told(2).await, ("a://1".to_owned(), false));
    // Gone.
    let other = client.clone();
    let subscribes = tokio::spawn(async move { other.subscribe("a://2").await });
    told(3).await;
    client.close().await;
    assert!(subscribes.await.unwrap().is_err());
    let reply = keeps.1.lock().unwrap().remove(0);
    reply.value(RawJson::trusted("true"));
    assert_eq!(told(4).await, ("a://2".to_owned(), false));
    // One that is refused has not begun.
    let client = Client::in_memory(&server, &options).await.unwrap();
    let subscribes = tokio::spawn(async move { client.subscribe("a://3").await });
    told(5).await;
    let reply = keeps.1.lock().unwrap().remove(0);
    reply.failed("no");
    assert!(subscribes.await.unwrap().is_err());
    assert_eq!(keeps.0.0.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn subscriptions_have_a_bound_in_bytes() {
    let server = Server::new("s");
    server.set_source(Kind::Resource, None, Some(Arc::new(Hears::default())));
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    let client = Client::in_memory(&server, &options).await.unwrap();
    let uri = |n: usize, length: usize| format!("{:x<length$}", format!("a://{n}/"));
    let long = client.subscribe(&uri(0, (8 << 10) + 1)).await.unwrap_err();
    assert_eq!((long.code(), long.message().len() < 200), (Some(-32602), true), "{long}");
    for n in 0..128 {
        client.subscribe(&uri(n, 8 << 10)).await.unwrap();
    }
    let full = client.subscribe("a://1").await.unwrap_err();
    assert_eq!(full.code(), Some(-32600), "{full}");
    client.subscribe(&uri(7, 8 << 10)).await.expect("it is subscribed to already");
    client.unsubscribe(&uri(7, 8 << 10)).await.unwrap();
    client.subscribe("a://1").await.unwrap();
}

/// A directory that goes when the test does.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tricorn-dynamic-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("inner")).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn files_are_listed_as_they_are() {
    use tricorn::server::files::{Directory, File};
    let scratch = Scratch::new("files");
    let at = |name: &str| scratch.0.join(name);
    std::fs::write(at("a.md"), "outer").unwrap();
    std::fs::write(at("inner/a.md"), "inner").unwrap();
    let said = Arc::new(Mutex::new(0));
    let hears = said.clone();
    let server = Server::new("s")
        .page_size(2)
        .file(File::new(at("later.txt"), "notes://later").unwrap())
        .directory(Directory::new(&scratch.0, "docs://all").unwrap())
        .directory(Directory::new(at("inner"), "docs://all/inner").unwrap().max_files(1))
        .on_error(move |error, _| {
            assert!(error.to_string().contains("max_files"), "{error}");
            *hears.lock().unwrap() += 1;
        });
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    let client = Client::in_memory(&server, &options).await.unwrap();
    let listed = client.list_resources().await.unwrap();
    assert_eq!((&listed[0]["name"], listed[0].get("size")), (&"later.txt".into(), None));
    client.read_resource("notes://later").await.unwrap_err();
    for text in ["12", "1234"] {
        std::fs::write(at("later.txt"), text).unwrap();
        assert_eq!(client.list_resources().await.unwrap()[0]["size"], text.len());
    }
    let again = server.add_directory(Directory::new(at("inner"), "docs://all/").unwrap()).unwrap_err();
    assert_eq!(again.kind(), tricorn::ErrorKind::Misuse);
    assert!(again.message().contains("directory \"docs://all/\" is already registered"), "{again}");
    let read = client.read_resource("docs://all/inner/a.md").await.unwrap();
    assert_eq!(read.text(), "inner", "the innermost directory that has it");
    std::fs::remove_file(at("inner/a.md")).unwrap();
    std::fs::create_dir_all(at("other")).unwrap();
    std::fs::write(at("other/b.md"), "b").unwrap();
    assert_eq!(client.read_resource("docs://all/other/b.md").await.unwrap().text(), "b");
    assert_eq!(*said.lock().unwrap(), 0);
    std::fs::write(at("inner/b.md"), "b").unwrap();
    std::fs::write(at("inner/c.md"), "c").unwrap();
    for _ in 0..2 {
        client.list_resources().await.unwrap();
    }
    assert_eq!(*said.lock().unwrap(), 1, "that there are too many is said once");
    // The outer one is no more in the middle of its pages.
    let mut pages = client.pages(Kind::Resource, &tricorn::CallOptions::new());
    let uris = |page: tricorn::client::ListPage| {
        page.entries.iter().map(|e| e["uri"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(uris(pages.next_page().await.unwrap().unwrap()), ["notes://later"]);
    assert_eq!(uris(pages.next_page().await.unwrap().unwrap()), ["docs://all/a.md", "docs://all/inner/b.md"]);
    let base = |entries: &[serde_json::Map<String, serde_json::Value>]| {
        entries.iter().filter(|r| r["uri"].as_str().unwrap().starts_with("docs://all/")).count()
    };
    assert_eq!(base(&client.list_resources().await.unwrap()), 6);
    // Hidden, its files are neither listed nor read, and the other directories stay.
    assert!(server.set_enabled(Kind::Resource, "docs://all/inner", false));
    assert!(!server.set_enabled(Kind::Resource, "docs://all/inner/", false));
    assert_eq!(base(&client.list_resources().await.unwrap()), 5);
    assert!(server.set_enabled(Kind::Resource, "docs://all", false));
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
    client.read_resource("docs://all/other/b.md").await.unwrap_err();
    assert!(server.set_enabled(Kind::Resource, "docs://all/", true));
    assert!(server.set_enabled(Kind::Resource, "docs://all/inner/", true));
    // A resource of that URI is shown and hidden for itself.
    let same = Resource::new("docs://all/inner/", "inner");
    server.add_resource(same, Says::at_once("inner")).unwrap();
    assert!(server.set_enabled(Kind::Resource, "docs://all/inner/", false));
    assert_eq!(base(&client.list_resources().await.unwrap()), 6);
    assert!(server.remove(Kind::Resource, "docs://all/inner/"));
    client.read_resource("docs://all/other/b.md").await.unwrap();
    assert!(server.remove(Kind::Resource, "docs://all"));
    assert!(!server.remove(Kind::Resource, "docs://all"));
    assert_eq!(uris(pages.next_page().await.unwrap().unwrap()), ["docs://all/inner/b.md"]);
    assert_eq!(pages.next_page().await.unwrap(), None);
    client.read_resource("docs://all/a.md").await.unwrap_err();
}

/// Does something in the session of its client.
struct InSession<F>(F);

impl<F: Fn(tricorn::server::Session) -> serde_json::Value + Send + Sync + 'static> tricorn::Handler for InSession<F> {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&(self.0)(cx.session().unwrap())));
    }
}

/// Runs something in the session of a client that a server is connected to.
async fn within(
    server: &Server,
    client: &Client,
    f: impl Fn(tricorn::server::Session) -> serde_json::Value + Send + Sync + 'static,
) -> serde_json::Value {
    server.add_tool(Tool::new("within", ""), Arc::new(InSession(f))).unwrap();
    let result = client.call_tool("within", serde_json::json!({})).await.unwrap();
    assert!(server.remove_tool("within"));
    serde_json::from_str(&result.text()).unwrap()
}

async fn legacy(server: &Server) -> Client {
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    Client::in_memory(server, &options).await.unwrap()
}

#[tokio::test]
async fn a_session_sees_what_was_said_of_its_entries() {
    use serde_json::json;
    let server = Server::new("s");
    server.add_tool(Tool::new("t", ""), Arc::new(Hears::default())).unwrap();
    server.add_tool(Tool::new("vault", ""), Arc::new(Hears::default())).unwrap();
    server.set_enabled(Kind::Tool, "vault", false);
    let client = legacy(&server).await;
    let changed = within(&server, &client, |session| {
        let set = |name: &str, yes: bool| session.set_enabled(Kind::Tool, name, yes).unwrap();
        json!([set("unknown", false), set("t", true), set("t", false), set("t", false)])
    });
    assert_eq!(changed.await, json!([false, false, true, false]));
    // The server's own is not the session's to remove, and stays hidden.
    let removed = within(&server, &client, |session| json!(session.remove(Kind::Tool, "t").unwrap())).await;
    assert_eq!(removed, false);
    assert!(client.list_tools().await.unwrap().is_empty());
    // Hidden by the server, which says nothing of the session's own.
    within(&server, &client, |session| {
        session.add_tool(Tool::new("vault", "own"), Arc::new(Hears::default())).unwrap();
        json!(1)
    })
    .await;
    let listed = client.list_tools().await.unwrap();
    assert_eq!((listed.len(), &listed[0]["description"]), (1, &json!("own")));
    let shown = within(&server, &client, |session| {
        json!([session.remove(Kind::Tool, "vault").unwrap(), session.set_enabled(Kind::Tool, "t", true).unwrap()])
    });
    assert_eq!(shown.await, json!([true, true]));
    assert_eq!(client.list_tools().await.unwrap()[0]["name"], "t");
}

#[tokio::test]
async fn a_session_is_told_of_what_was_declared() {
    use serde_json::json;
    let add = |session: tricorn::server::Session| {
        let hears = || Arc::new(Hears::default());
        let added = [
            session.add_prompt(Prompt::new("p"), tricorn::server::Parameters::default(), hears()),
            session.add_resource(Resource::new("a://1", "1"), hears()),
            session.add_resource_template(
                ResourceTemplate::new("a://{n}", "a"),
                tricorn::server::Parameters::default(),
                hears(),
            ),
        ];
        json!(added.map(|outcome| outcome.err().map(|error| format!("{}: {}", error.kind().as_str(), error.message()))))
    };
    let bare = Server::new("s");
    let client = legacy(&bare).await;
    for refused in within(&bare, &client, add).await.as_array().unwrap() {
        let text = refused.as_str().unwrap();
        assert!(text.starts_with("unsupported: ") && text.contains("\"capabilities\""), "{text}");
    }
    let declaring = Server::new("s").capabilities(["prompts", "resources"]);
    let client = legacy(&declaring).await;
    assert!(client.capabilities().has("prompts") && client.list_prompts().await.unwrap().is_empty());
    assert_eq!(within(&declaring, &client, add).await, json!([null, null, null]));
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    assert_eq!(client.list_prompts_page(None).await.unwrap().entries.len(), 1);
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
    assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
    let wrong = tricorn::server::ServerOptions::parse(r#"{"name": "s", "capabilities": ["magic"]}"#).unwrap_err();
    assert!(wrong.message().contains("\"magic\"") && wrong.message().contains("prompts"), "{wrong}");
}

/// Answers with its text, once it is let go when it has to wait.
#[derive(Clone)]
struct Says(&'static str, Option<Arc<tokio::sync::Semaphore>>, Arc<tokio::sync::Notify>);

impl Says {
    fn at_once(text: &'static str) -> Arc<Self> {
        Arc::new(Self(text, None, Arc::default()))
    }
}

impl tricorn::Handler for Says {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        let this = self.clone();
        this.2.notify_one();
        tokio::spawn(async move {
            if let Some(gate) = this.1 {
                drop(gate.acquire().await);
            }
            reply.value(RawJson::from_value(&this.0));
        });
    }
}

#[tokio::test]
async fn what_is_replaced_keeps_its_place() {
    use tricorn::server::Parameters;
    let server = Server::new("s").page_size(1);
    let (gate, runs) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(tokio::sync::Notify::new()));
    let old = Arc::new(Says("old", Some(gate.clone()), runs.clone()));
    let tool = |name: &str, text: &str| Tool::new(name, text);
    server.add_tool(tool("a", "old"), old).unwrap();
    for name in ["b", "c"] {
        server.add_tool(tool(name, "old"), Says::at_once("old")).unwrap();
    }
    server.set_enabled(Kind::Tool, "c", false);
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).unwrap();
    let client = Client::in_memory(&server, &options).await.unwrap();
    let first = client.list_tools_page(None).await.unwrap();
    let caller = client.clone();
    let running = tokio::spawn(async move { caller.call_tool("a", serde_json::json!({})).await });
    runs.notified().await;
    for name in ["a", "b", "c"] {
        server.replace_tool(tool(name, "new"), Says::at_once("new")).unwrap();
    }
    server.replace_tool(tool("d", "new"), Says::at_once("new")).unwrap();
    let bad = Tool::new("a", "bad").input_schema(serde_json::json!({"type": "array"}));
    server.replace_tool(bad, Says::at_once("bad")).unwrap_err();
    let second = client.list_tools_page(first.next_cursor.as_deref()).await.unwrap();
    assert_eq!(second.tools[0]["name"], "b", "a cursor goes on where it was");
    let listed: Vec<_> = client.list_tools().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|t| (t["name"].as_str().unwrap(), t["description"].clone())).collect();
    assert_eq!(listed, ["a", "b", "d"].map(|name| (name, "new".into())));
    gate.add_permits(1);
    let text = CallToolResult::text;
    assert_eq!(text(&running.await.unwrap().unwrap()), "old", "what runs goes on");
    assert_eq!(text(&client.call_tool("a", serde_json::json!({})).await.unwrap()), "new");
    assert!(client.call_tool("c", serde_json::json!({})).await.is_err(), "hidden as before");
    // The others likewise.
    for n in 0..2 {
        let (uri, name) = ("a://1", format!("n{n}"));
        server.replace_resource(Resource::new(uri, &name), Says::at_once("x")).unwrap();
        let template = ResourceTemplate::new("a://{b}", &name);
        server.replace_resource_template(template, Parameters::default(), Says::at_once("x")).unwrap();
        let prompt = Prompt::new("p").description(&name);
        server.replace_prompt(prompt, Parameters::default(), Says::at_once("x")).unwrap();
    }
    let client = Client::in_memory(&server, &options).await.unwrap();
    assert_eq!(client.list_resources().await.unwrap()[0]["name"], "n1");
    assert_eq!(client.list_resource_templates().await.unwrap()[0]["name"], "n1");
    assert_eq!(client.list_prompts().await.unwrap()[0]["description"], "n1");
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
}

#[test]
fn a_definition_is_checked_where_it_is_registered() {
    use serde_json::json;
    let server = Server::new("s");
    let resource =
        |key: &str, value| server.add_resource(Resource::new("a://1", "n").with(key, value), Says::at_once(""));
    for (key, value) in [
        ("size", json!(-1)),
        ("annotations", json!({"priority": 7})),
        ("icons", json!([{"src": "javascript:alert(1)"}])),
        ("_meta", json!({"bad key!": 1})),
    ] {
        let message = resource(key, value).unwrap_err().message().to_owned();
        assert!(message.starts_with("resource \"a://1\": ") && message.contains(key), "{message}");
    }
    resource("_meta", json!({"com.example/a": 1})).unwrap();
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": {"io.modelcontextprotocol/x": 1}});
    server.add_tool(Tool::parse(&tool.to_string()).unwrap(), Says::at_once("")).unwrap_err();
    let icons = json!([{"src": "http://h/i.png"}]);
    let prompt = Prompt::new("p").icons(icons.clone());
    server.add_prompt(prompt, tricorn::server::Parameters::default(), Says::at_once("")).unwrap_err();
    tricorn::server::ServerOptions::parse(&json!({"name": "s", "icons": icons}).to_string()).unwrap_err();
}

#[tokio::test]
async fn what_can_never_be_read_is_not_registered() {
    use serde_json::json;
    use tricorn::server::Parameters;
    let server = Server::new("s");
    let add = |kind: serde_json::Value| {
        let schema = json!({"type": "object", "properties": {"keys": kind}, "$defs": {"D": {"type": "object"}}});
        let template = ResourceTemplate::new("k://x{?keys*}", "n");
        server.add_resource_template(template, Parameters::of(Some(schema)), Says::at_once(""))
    };
    for kind in [json!({"type": "object"}), json!({"$ref": "#/$defs/D"})] {
        let message = add(kind).unwrap_err().message().to_owned();
        assert!(message.contains("\"keys*\" gives a list"), "{message}");
    }
    add(json!({"type": "array", "items": {"type": "string"}})).unwrap();
    server.add_resource(Resource::new("x://white space", "n"), Says::at_once("")).unwrap_err();
    let server = server.resource(Resource::new("a://nothing", "n"), || async { Ok(None::<String>) });
    let client = Client::in_memory(&server, &ClientOptions::default()).await.unwrap();
    let error = client.read_resource("a://nothing").await.unwrap_err();
    assert!(error.message().contains("it gave nothing"), "{error}");
}

#[tokio::test]
async fn there_are_at_least_as_many_completions_as_were_given() {
    use tricorn::server::Parameters;
    let parameters = Parameters::default()
        .complete("x", |_: serde_json::Value| async { Ok(serde_json::json!({"values": ["a", "b", "c"], "total": 1})) });
    let server = Server::new("s");
    let prompt = Prompt::new("p").argument("x", "", true);
    server.add_prompt(prompt, parameters, Says::at_once("")).unwrap();
    let client = Client::in_memory(&server, &ClientOptions::default()).await.unwrap();
    let found = client.complete(Kind::Prompt, "p", "x", "", None).await.unwrap();
    assert_eq!((found.completion.total, found.completion.has_more), (Some(3), Some(false)));
}
