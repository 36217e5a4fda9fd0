//! Many servers as one.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::client::{ClientGroup, ClientOptions, GroupListing, GroupOptions, Handlers, Prefix, Servers, Target};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::model::{Resource, ResourceTemplate, Tool};
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;
use tricorn::server::Kind;
use tricorn::{Error, ErrorKind, Events, Handler, Reply};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct None {}

/// Answers with its own text.
struct Says(String);

impl Handler for Says {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.text(self.0.clone());
    }
}

/// A server with these tools, which say whose they are.
fn tools(name: &str, tools: &[&str]) -> Server {
    let server = Server::new(name);
    for tool in tools {
        add(&server, name, tool);
    }
    server
}

fn add(server: &Server, name: &str, tool: &str) {
    server.add_tool(Tool::new(tool, ""), Arc::new(Says(format!("{name}.{tool}")))).unwrap();
}

fn legacy() -> GroupOptions {
    ClientOptions::new().revision("2025-11-25").into()
}

fn names(listing: &GroupListing) -> Vec<&str> {
    listing.entries.iter().map(|entry| entry.name.as_str()).collect()
}

async fn said(group: &ClientGroup, tool: &str) -> String {
    group.call_tool(tool, json!({})).await.unwrap().text()
}

#[tokio::test]
async fn names_lead_to_their_servers() {
    let servers = Servers::new().server("a", tools("a", &["add", "one"])).server("b", tools("b", &["add", "two"]));
    let group = ClientGroup::connect(servers, ClientOptions::default()).await.unwrap();
    // Without a listing before.
    assert_eq!(said(&group, "b_add").await, "b.add");
    let listing = group.tools().await;
    assert_eq!(names(&listing), ["a_add", "one", "b_add", "two"]);
    assert!(listing.failures.is_empty());
    let first = &listing.entries[0];
    assert_eq!((first.server.as_str(), first.definition["name"].as_str()), ("a", Some("add")));
    for (tool, answer) in [("a_add", "a.add"), ("one", "a.one"), ("two", "b.two")] {
        assert_eq!(said(&group, tool).await, answer);
    }
    let unknown = group.call_tool("add", json!({})).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Misuse);
    assert!(unknown.message().contains("did you mean \"a_add\" or \"b_add\""), "{unknown}");

    let options = GroupOptions::new().prefix(Prefix::Always);
    let servers = Servers::new().server("a b", tools("a", &["one"]));
    let group = ClientGroup::connect(servers, options).await.unwrap();
    assert_eq!(names(&group.tools().await), ["a_b_one"]);
    assert_eq!(said(&group, "a_b_one").await, "a.one");
}

#[tokio::test]
async fn one_that_fails_does_not_stop_the_others() {
    let config = json!({"mcpServers": {
        "gone": {"command": "/no/such/program"},
        "off": {"command": "/no/such/program", "disabled": true},
        "slow": {"command": "sleep", "args": ["60"]},
        "wrong": {"ulr": "http://h/mcp"},
    }});
    let path = std::env::temp_dir().join(format!("tricorn group {}.json", std::process::id()));
    std::fs::write(&path, config.to_string()).unwrap();
    let options = legacy().connect_timeout(Duration::from_millis(300));
    for servers in [Servers::from_file(&path), Servers::parse(&config.to_string())] {
        let servers = servers.unwrap().server("here", tools("here", &["t"]));
        let group = ClientGroup::connect(servers, options.clone()).await.unwrap();
        assert_eq!(group.names(), ["gone", "slow", "wrong", "here"]);
        let kinds: Vec<_> = group.failures().into_iter().map(|(name, error)| (name, error.kind())).collect();
        let expected = [("gone", ErrorKind::Transport), ("slow", ErrorKind::Timeout), ("wrong", ErrorKind::Misuse)];
        assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(said(&group, "t").await, "here.t");
        let unknown = group.call_tool("u", json!({})).await.unwrap_err();
        assert!(unknown.message().contains("of server \"slow\" nothing is known"), "{unknown}");
        assert!(group.get("gone").is_none() && group.get("here").is_some());
        assert_eq!(group.reconnect("slow").await.unwrap_err().kind(), ErrorKind::Timeout);
        assert!(group.remove("slow").await && !group.remove("slow").await);
        let nobody = group.reconnect("slow").await.unwrap_err();
        assert!(nobody.message().contains("only: gone, wrong, here"), "{nobody}");
        group.close().await;
    }
    std::fs::remove_file(&path).unwrap();
    for wrong in ["3", "{}", r#"[["a"]]"#, "\"/no/such/file.json\""] {
        assert_eq!(Servers::parse(wrong).unwrap_err().kind(), ErrorKind::Misuse, "{wrong}");
    }
    let pair = Servers::parse(r#"[["a", "/no/such/program x"], ["a", {"url": "http://h/mcp"}]]"#).unwrap();
    let twice = ClientGroup::connect(pair, ClientOptions::default()).await.unwrap_err();
    assert!(twice.message().contains("already"), "{twice}");
    let many: Servers = (0..65).map(|n| (n.to_string(), Server::new("s"))).collect();
    let many = ClientGroup::connect(many, ClientOptions::default()).await.unwrap_err();
    assert!(many.message().contains("at most 64"), "{many}");
}

/// Counts notifications and ends.
#[derive(Default)]
struct Heard {
    all: Mutex<Vec<String>>,
    more: Notify,
}

impl Heard {
    fn add(&self, server: &str, what: &str) {
        self.all.lock().unwrap().push(format!("{server} {what}"));
        self.more.notify_one();
    }

    async fn wait(&self, what: &str) {
        let found = async {
            while !self.all.lock().unwrap().iter().any(|known| known == what) {
                self.more.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no {what}: {:?}", self.all));
    }
}

/// One server's part.
struct Of(String, Arc<Heard>);

impl Events for Of {
    fn notification(&self, method: &str, _: Option<&RawJson>) {
        self.1.add(&self.0, method);
    }

    fn closed(&self, _: &Error) {
        self.1.add(&self.0, "closed");
    }
}

#[tokio::test]
async fn servers_change_and_go() {
    let (a, b) = (tools("a", &["add"]), tools("b", &["add"]));
    let heard = Arc::new(Heard::default());
    let told = heard.clone();
    let servers = Servers::new().server("a", a.clone()).server("b", b.clone());
    let group = ClientGroup::connect_with(servers, legacy(), move |name| {
        Handlers::new().events(Of(name.to_owned(), told.clone()))
    })
    .await
    .unwrap();
    assert_eq!(said(&group, "a_add").await, "a.add");
    // What changes is listed anew, of that server alone.
    add(&a, "a", "more");
    heard.wait("a notifications/tools/list_changed").await;
    a.remove_tool("add");
    tokio::time::timeout(PATIENCE, async {
        while group.call_tool("add", json!({})).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!((said(&group, "add").await.as_str(), said(&group, "more").await.as_str()), ("b.add", "a.more"));

    b.close();
    heard.wait("b closed").await;
    assert_eq!(group.failures().into_keys().collect::<Vec<_>>(), ["b"]);
    assert!(group.get("b").is_none());
    assert_eq!(names(&group.tools().await), ["more"]);
    let gone = group.call_tool("add", json!({})).await.unwrap_err();
    assert!(gone.message().contains("of server \"b\" nothing is known"), "{gone}");

    group.remove("b").await;
    group.add("c", tools("c", &["add"])).await.unwrap();
    assert!(group.add("c", Server::new("c")).await.is_err());
    assert_eq!((said(&group, "add").await.as_str(), group.failures().len()), ("c.add", 0));
    let before = group.get("c").unwrap();
    group.reconnect("c").await.unwrap();
    heard.wait("c closed").await;
    assert!(before.list_tools().await.is_err(), "the connection before has ended");
    assert_eq!(said(&group, "add").await, "c.add");
    group.close().await;
    assert!(group.names().is_empty());
}

#[tokio::test]
async fn a_server_that_fails_does_not_rename_what_others_have() {
    let fails = Arc::<AtomicBool>::default();
    let failing = fails.clone();
    let (a, b) = (tools("a", &["add", "one"]), tools("b", &["add"]));
    let b = b.middleware(move |request: Request, cx: Context, next: Next| {
        let fails = failing.load(Ordering::SeqCst) && request.method == "tools/list";
        async move { if fails { Err(Error::rpc(-31999, "not now")) } else { next.run(request, &cx).await } }
    });
    let servers = Servers::new().server("a", a.clone()).server("b", b.clone());
    let group = ClientGroup::connect(servers, legacy()).await.unwrap();
    assert_eq!(names(&group.tools().await), ["a_add", "one", "b_add"]);
    fails.store(true, Ordering::SeqCst);
    let listing = group.tools().await;
    assert_eq!((names(&listing), listing.failures["b"].code()), (vec!["a_add", "one"], Some(-31999)));
    assert_eq!(said(&group, "a_add").await, "a.add");
    assert_eq!(group.call_tool("add", json!({})).await.unwrap_err().kind(), ErrorKind::Misuse);
    // Nor one that has gone.
    b.close();
    while group.get("b").is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(names(&group.tools().await), ["a_add", "one"]);
    group.remove("b").await;
    assert_eq!(names(&group.tools().await), ["add", "one"]);
}

#[tokio::test]
async fn a_name_does_not_lead_to_another_server_unseen() {
    let (a, b) = (tools("a", &["one"]), tools("b", &["two"]));
    let servers = Servers::new().server("a", a.clone()).server("b", b.clone());
    let group = ClientGroup::connect(servers, legacy()).await.unwrap();
    assert_eq!(names(&group.tools().await), ["one", "two"]);
    group.remove("a").await;
    add(&b, "b", "one");
    let refused = group.call_tool("one", json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    assert!(refused.message().contains("server \"a\"") && refused.message().contains("list it again"), "{refused}");
    assert_eq!(names(&group.tools().await), ["two", "one"]);
    assert_eq!(said(&group, "one").await, "b.one");
}

#[tokio::test]
async fn resources_and_prompts_are_found() {
    let server = |name: &'static str| {
        let own = format!("{name}://own");
        Server::new(name)
            .resource(Resource::new("x://shared", "shared"), || async { Ok("shared") })
            .resource(Resource::new(own, "own"), move || async move { Ok(name) })
            .resource_template(
                ResourceTemplate::new(format!("{name}://item/{{id}}"), "item"),
                move |_: Value| async move { Ok(format!("item of {name}")) },
            )
            .prompt(Prompt::new("greet"), move |_: None| async move { Ok(format!("greetings from {name}")) })
    };
    let servers = Servers::new().server("a", server("a")).server("b", server("b")).server("c", Server::new("c"));
    let group = ClientGroup::connect(servers, legacy()).await.unwrap();
    let read = async |uri: &str| group.read_resource(uri).await.map(|read| read.text());
    assert_eq!(read("b://own").await.unwrap(), "b");
    assert_eq!(read("a://item/1").await.unwrap(), "item of a");
    let both = read("x://shared").await.unwrap_err();
    assert!(both.message().contains("(get), one of \"a\", \"b\""), "{both}");
    let neither = read("x://nothing").await.unwrap_err();
    assert!(neither.message().contains("one of \"a\", \"b\""), "{neither}");
    assert_eq!(group.get("a").unwrap().read_resource("x://shared").await.unwrap().text(), "shared");

    assert_eq!(names(&group.resources().await), ["a_shared", "a_own", "b_shared", "b_own"]);
    assert_eq!(names(&group.resource_templates().await), ["a_item", "b_item"]);
    assert_eq!(names(&group.prompts().await), ["a_greet", "b_greet"]);
    let got = group.get_prompt("b_greet", json!({})).await.unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "greetings from b");
    assert!(group.get_prompt("greet", json!({})).await.unwrap_err().message().contains("b_greet"));
    for (kind, name) in [(Kind::ResourceTemplate, "a://item/{id}"), (Kind::ResourceTemplate, "a_item")] {
        let completed = group.complete(kind, name, "id", "", Option::None).await;
        // Nothing completes it, which the one server that was asked says.
        assert_ne!(completed.map_err(|error| error.kind()).err(), Some(ErrorKind::Misuse));
    }
    // With one server that has resources, the unlisted is read there.
    assert!(group.remove("b").await);
    assert_eq!(read("x://nothing").await.unwrap_err().code(), Some(-32002));
    assert_eq!(read("x://shared").await.unwrap(), "shared");
}

#[tokio::test]
async fn the_log_level_is_told_to_all_and_to_those_that_come() {
    let server = || {
        Server::new("s").tool("t", "", |_: None, cx: Context| async move {
            Ok(cx.log(LogLevel::Debug, Option::None, &"x").to_string())
        })
    };
    for options in [legacy(), ClientOptions::new().revision("2026-07-28").into()] {
        let servers = Servers::new().server("a", server());
        let group = ClientGroup::connect(servers, options).await.unwrap();
        assert_eq!(said(&group, "t").await, "false");
        assert!(group.set_log_level(LogLevel::Debug).await.is_empty());
        assert_eq!(said(&group, "t").await, "true");
        group.add("b", server()).await.unwrap();
        assert_eq!(said(&group, "b_t").await, "true");
    }
}

#[tokio::test]
async fn a_server_that_does_not_hear_of_the_log_level_is_not_waited_for() {
    let script = r#"read line
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},' "$id"
        printf '"serverInfo":{"name":"s","version":"1"}}}\n'
        while read line; do :; done"#;
    let options = legacy().connect_timeout(Duration::from_millis(500));
    let group = ClientGroup::connect(Servers::new(), options).await.unwrap();
    group.set_log_level(LogLevel::Debug).await;
    let joins = group.add("mute", Target::command("sh", ["-c", script]));
    tokio::time::timeout(PATIENCE, joins).await.unwrap().unwrap();
    group.close().await;
}

#[tokio::test]
async fn an_entry_without_a_name_fails_alone() {
    let servers = Servers::parse(&json!({"mcpServers": {"": {"command": "x"}}}).to_string()).unwrap();
    let group = ClientGroup::connect(servers.server("a", tools("a", &["t"])), legacy()).await.unwrap();
    assert_eq!(said(&group, "t").await, "a.t");
    let failures = group.failures();
    assert_eq!(failures.keys().collect::<Vec<_>>(), [""]);
    assert!(failures[""].message().contains("expected a name"), "{:?}", failures[""]);
    assert_eq!(group.add("", tools("b", &[])).await.unwrap_err().kind(), ErrorKind::Misuse);
}
