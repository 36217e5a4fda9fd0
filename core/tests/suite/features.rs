//! Resources, prompts, completion, questions to the client and what changes while a server runs, through memory, in
//! every revision that has them.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tricorn::client::{Client, ClientOptions, Handlers, Roots};
use tricorn::jsonrpc::RawJson;
use tricorn::model::{CallToolResult, Content, Resource, ResourceTemplate, Tool};
use tricorn::prelude::*;
use tricorn::server::{CreateMessageRequestParams, Kind, Parameters, Server};
use tricorn::{CallOptions, Error, Events, Handler, Reply};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PATIENCE: Duration = Duration::from_secs(20);

async fn connected(server: &Server, revision: &str, handlers: &Handlers) -> Client {
    let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

/// Answers with what a function says, at once.
struct With<F>(F);

impl<F: Fn(Value) -> Value + Send + Sync + 'static> Handler for With<F> {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&(self.0)(params.to().unwrap())));
    }
}

fn with(f: impl Fn(Value) -> Value + Send + Sync + 'static) -> Arc<dyn Handler> {
    Arc::new(With(f))
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    shelf: String,
    number: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Formal,
    Friendly,
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Whom
    name: String,
    tone: Option<Tone>,
    times: Option<u8>,
}

fn server() -> Server {
    let greet = |g: Greeting| async move {
        let tone = if matches!(g.tone, Some(Tone::Formal)) { "formally" } else { "warmly" };
        Ok(format!("Greet {} {tone}, {} times.", g.name, g.times.unwrap_or(1)))
    };
    Server::new("shop")
        .page_size(2)
        .resource(Resource::new("shop://hours", "hours").mime_type("text/plain").title("Opening hours"), || async {
            Ok("9 to 5")
        })
        .resource(Resource::new("shop://logo", "logo").mime_type("image/png"), || async {
            Ok(ResourceContents::blob([1, 2, 3]))
        })
        .resource(Resource::new("shop://broken", "broken"), || async {
            Err::<String, _>(HandlerError::from(std::io::Error::other("secret")))
        })
        .resource_template(ResourceTemplate::new("shop://shelf/{shelf}/{number}", "item"), |item: Item| async move {
            Ok(json!({"shelf": item.shelf, "number": item.number}))
        })
        .prompt(Prompt::new("greet").description("Greet somebody"), greet)
}

#[tokio::test]
async fn resources_are_listed_page_by_page_and_read() {
    let server = server();
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let listed = client.list_resources().await.unwrap();
        let uris: Vec<_> = listed.iter().map(|r| r["uri"].as_str().unwrap()).collect();
        assert_eq!(
            uris,
            ["shop://broken", "shop://hours", "shop://logo"],
            "by name, where there is more than one page"
        );
        assert_eq!(listed[1].contains_key("title"), revision > "2025-06", "{revision}");
        let first = client.page(Kind::Resource, None, &CallOptions::new()).await.unwrap();
        assert_eq!(client.list_resources_page(None).await.unwrap(), first);
        assert_eq!(client.list_resource_templates_page(None).await.unwrap().entries.len(), 1);
        assert_eq!((first.entries.len(), first.next_cursor.is_some()), (2, true));
        let streamed: Vec<_> = client.pages(Kind::Resource, &CallOptions::new()).collect::<Vec<_>>().await;
        assert_eq!(streamed.len(), 3);
        let text = client.read_resource("shop://hours").await.unwrap();
        assert_eq!(json!(text.contents), json!([{"uri": "shop://hours", "mimeType": "text/plain", "text": "9 to 5"}]));
        let blob = client.read_resource("shop://logo").await.unwrap();
        assert_eq!(json!(blob.contents), json!([{"uri": "shop://logo", "mimeType": "image/png", "blob": "AQID"}]));
        let item = client.read_resource("shop://shelf/a%20b/7").await.unwrap();
        assert_eq!(item.text(), r#"{"shelf":"a b","number":7}"#);
        assert_eq!(item.contents[0].members()["mimeType"], "application/json");
        let templates = client.list_resource_templates().await.unwrap();
        assert_eq!(templates[0]["uriTemplate"], "shop://shelf/{shelf}/{number}");
    }
}

#[tokio::test]
async fn what_is_not_there_or_wrong_is_said_so() {
    let server = server();
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let none = client.read_resource("shop://nothing").await.unwrap_err();
        let code = if revision > "2026" { -32602 } else { -32002 };
        assert_eq!(none.code(), Some(code), "{revision}");
        assert!(none.data().unwrap().get().contains("shop://nothing"));
        let wrong = client.read_resource("shop://shelf/a/x").await.unwrap_err();
        assert_eq!((wrong.code(), wrong.message()), (Some(-32602), r#"argument "number": expected integer, got "x""#));
        let broken = client.read_resource("shop://broken").await.unwrap_err();
        assert_eq!(broken.code(), Some(-32603));
        assert!(!broken.message().contains("secret"), "{broken}");
        let params = RawJson::from_value(&json!({"cursor": "nonsense"}));
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let error = client.request(method, Some(params.clone()), &CallOptions::new()).await.unwrap_err();
            assert_eq!(error.code(), Some(-32602), "{method}");
        }
    }
}

#[tokio::test]
async fn prompts_have_typed_arguments() {
    let server = server();
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let listed = client.list_prompts().await.unwrap();
        assert_eq!(
            listed[0]["arguments"],
            json!([{"name": "name", "description": "Whom", "required": true},
                   {"name": "tone", "required": false}, {"name": "times", "required": false}])
        );
        let got = client.get_prompt("greet", json!({"name": "Ada", "tone": "formal", "times": "3"})).await.unwrap();
        assert_eq!(got["description"], "Greet somebody");
        let message = json!([{"role": "user", "content": {"type": "text", "text": "Greet Ada formally, 3 times."}}]);
        assert_eq!(got["messages"], message);
        for (arguments, expected) in [
            (json!({}), r#"argument "name": missing"#),
            (json!({"name": 1}), r#"argument "name": expected string, got 1"#),
            (json!({"name": "x", "times": "many"}), r#"argument "times": expected"#),
        ] {
            let error = client.get_prompt("greet", arguments).await.unwrap_err();
            assert_eq!(error.code(), Some(-32602));
            assert!(error.message().contains(expected), "{error}");
        }
        let unknown = client.get_prompt("nothing", ()).await.unwrap_err();
        assert_eq!(unknown.code(), Some(-32602));
    }
}

#[tokio::test]
async fn arguments_are_completed() {
    let many = |_: Value| json!((0..150).map(|n| format!("v{n}")).collect::<Vec<_>>());
    let street = |asked: Value| {
        let city = asked.get("context").map_or("nowhere", |context| context["arguments"]["city"].as_str().unwrap());
        json!([format!("{city} {}", asked["argument"]["value"].as_str().unwrap())])
    };
    let parameters = Parameters::default().complete("city", With(many)).complete("street", With(street));
    let server = server();
    let prompt = Prompt::new("visit").argument("city", "", true).argument("street", "", false);
    server.add_prompt(prompt, parameters, with(|_| json!("x"))).unwrap();
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let tones = client.complete(Kind::Prompt, "greet", "tone", "f", None).await.unwrap();
        assert_eq!(json!(tones.completion), json!({"values": ["formal", "friendly"], "total": 2, "hasMore": false}));
        let cities = client.complete(Kind::Prompt, "visit", "city", "", None).await.unwrap();
        assert_eq!((cities.completion.values.len(), cities.completion.total), (100, Some(150)));
        assert_eq!(cities.completion.has_more, Some(true));
        let known = Map::from_iter([("city".to_owned(), json!("Rome"))]);
        let street = client.complete(Kind::Prompt, "visit", "street", "via", Some(&known)).await.unwrap();
        let has_context = !["2024-11-05", "2025-03-26"].contains(&revision);
        assert_eq!(street.completion.values, [if has_context { "Rome via" } else { "nowhere via" }]);
        for (name, argument) in [("greet", "nothing"), ("nothing", "x")] {
            let error = client.complete(Kind::Prompt, name, argument, "", None).await.unwrap_err();
            assert_eq!(error.code(), Some(-32602));
        }
    }
}

/// Keeps the notifications that were heard.
#[derive(Default)]
struct Heard {
    all: Mutex<Vec<(String, Value)>>,
    more: tokio::sync::Notify,
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let params = params.map_or(Value::Null, |p| p.to().unwrap());
        self.all.lock().unwrap().push((method.to_owned(), params));
        self.more.notify_one();
    }
}

impl Heard {
    async fn first(&self, method: &str) -> Value {
        let found = async {
            loop {
                let found = self.all.lock().unwrap().iter().find(|(m, _)| m == method).map(|(_, p)| p.clone());
                match found {
                    Some(params) => return params,
                    None => self.more.notified().await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no {method}: {:?}", self.all))
    }

    fn count(&self, method: &str) -> usize {
        self.all.lock().unwrap().iter().filter(|(m, _)| m == method).count()
    }
}

#[tokio::test]
async fn changes_are_told_once_and_only_to_those_who_want_them() {
    let server = server();
    for revision in LEGACY {
        let heard = Arc::new(Heard::default());
        let client = connected(&server, revision, &Handlers::new().events(heard.clone())).await;
        client.subscribe("shop://hours").await.unwrap();
        client.subscribe("shop://shelf/a/1").await.unwrap();
        client.unsubscribe("shop://shelf/a/1").await.unwrap();
        server.resource_updated("shop://shelf/a/1");
        server.resource_updated("shop://logo");
        server.resource_updated("shop://hours");
        assert_eq!(heard.first("notifications/resources/updated").await, json!({"uri": "shop://hours"}));
        assert_eq!(heard.count("notifications/resources/updated"), 1);
        for n in 0..50 {
            server.add_tool(Tool::new(format!("t{n}"), ""), with(|_| json!("x"))).unwrap();
        }
        heard.first("notifications/tools/list_changed").await;
        assert!(heard.count("notifications/tools/list_changed") < 5, "they are gathered");
        assert_eq!(client.list_tools().await.unwrap().len(), 50);
        assert!(server.set_enabled(Kind::Tool, "t0", false));
        assert!(!server.set_enabled(Kind::Tool, "t0", false), "it was already");
        assert_eq!(client.list_tools().await.unwrap().len(), 49);
        let hidden = client.call_tool("t0", json!({})).await.unwrap_err();
        assert!(hidden.message().contains("unknown tool"), "{hidden}");
        let unknown = client.subscribe("shop://nothing").await.unwrap_err();
        assert_eq!(unknown.code(), Some(-32002));
        assert!(server.remove(Kind::Prompt, "greet"));
        heard.first("notifications/prompts/list_changed").await;
        assert_eq!(client.list_prompts().await.unwrap().len(), 0);
        server.add_prompt(Prompt::new("greet"), Parameters::default(), with(|_| json!("hello"))).unwrap();
        for n in 0..50 {
            assert!(server.remove_tool(&format!("t{n}")));
        }
    }
}

#[tokio::test]
async fn a_subscription_that_is_refused_does_not_hold() {
    struct Refuses;
    impl Handler for Refuses {
        fn call(&self, _: Context, _: RawJson, reply: Reply) {
            reply.error(Error::rpc(-32602, "not for you"));
        }
    }
    let server = server();
    server.set_subscription(Arc::new(Refuses));
    let heard = Arc::new(Heard::default());
    let client = connected(&server, "2025-11-25", &Handlers::new().events(heard.clone())).await;
    assert_eq!(client.subscribe("shop://hours").await.unwrap_err().message(), "not for you");
    server.resource_updated("shop://hours");
    server.list_changed(Kind::Resource);
    heard.first("notifications/resources/list_changed").await;
    assert_eq!(heard.count("notifications/resources/updated"), 0);
}

#[tokio::test]
async fn cursors_survive_changes_of_the_registry() {
    let server = Server::new("s").page_size(2);
    for n in 0..6 {
        server.add_tool(Tool::new(format!("t{n}"), ""), with(|_| json!("x"))).unwrap();
    }
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let mut pages = client.pages(Kind::Tool, &CallOptions::new());
    let names = |page: tricorn::client::ListPage| {
        page.entries.iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(pages.next_page().await.unwrap().unwrap()), ["t0", "t1"]);
    server.remove_tool("t1");
    server.remove_tool("t3");
    server.add_tool(Tool::new("t6", ""), with(|_| json!("x"))).unwrap();
    assert_eq!(names(pages.next_page().await.unwrap().unwrap()), ["t2", "t4"]);
    assert_eq!(names(pages.next_page().await.unwrap().unwrap()), ["t5", "t6"]);
    assert_eq!(pages.next_page().await.unwrap(), None);
}

#[tokio::test]
async fn one_session_may_see_other_things_than_the_rest() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let server = Server::new("s").tool("unlock", "", |_: Nothing, ctx: Context| async move {
        let session = ctx.session()?;
        session.set_enabled(Kind::Tool, "vault", true)?;
        session.add_tool(Tool::new("own", ""), with(|_| json!("mine")))?;
        session.add_tool(Tool::new("vault", "another"), with(|_| json!("silver")))?;
        Ok("done")
    });
    server.add_tool(Tool::new("vault", ""), with(|_| json!("gold"))).unwrap();
    server.set_enabled(Kind::Tool, "vault", false);
    let heard = Arc::new(Heard::default());
    let one = connected(&server, "2025-11-25", &Handlers::new().events(heard.clone())).await;
    let other = connected(&server, "2025-11-25", &Handlers::new()).await;
    let names = |tools: Vec<Map<String, Value>>| {
        tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(one.list_tools().await.unwrap()), ["unlock"]);
    one.call_tool("unlock", json!({})).await.unwrap();
    heard.first("notifications/tools/list_changed").await;
    assert_eq!(names(one.list_tools().await.unwrap()), ["unlock", "own", "vault"]);
    assert_eq!(text(&one.call_tool("own", json!({})).await.unwrap()), "mine");
    assert_eq!(text(&one.call_tool("vault", json!({})).await.unwrap()), "silver");
    assert_eq!(names(other.list_tools().await.unwrap()), ["unlock"]);
    let modern = connected(&server, "2026-07-28", &Handlers::new()).await;
    let refused = modern.call_tool("unlock", json!({})).await.unwrap();
    assert!(refused.is_error);
    assert_eq!(names(modern.list_tools().await.unwrap()), ["unlock"]);
}

fn text(result: &CallToolResult) -> String {
    result.text()
}

#[tokio::test]
async fn sources_list_and_serve_what_is_not_registered() {
    let server = server();
    let list = with(|params| match params["cursor"].as_str() {
        None => json!({"resources": [{"uri": "db://1", "name": "1"}], "nextCursor": "more"}),
        Some(_) => json!([{"uri": "db://2", "name": "2"}]),
    });
    server.set_source(Kind::Resource, Some(list), Some(with(|params| json!(format!("row {}", params["uri"])))));
    server.set_source(
        Kind::Prompt,
        None,
        Some(with(|params| json!(format!("Do {}", params["name"].as_str().unwrap())))),
    );
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let said = &client.get_prompt("this", ()).await.unwrap()["messages"];
        assert_eq!(*said, json!([{"role": "user", "content": {"type": "text", "text": "Do this"}}]));
        assert_eq!(client.list_resources().await.unwrap().len(), 5);
        assert_eq!(client.read_resource("db://2").await.unwrap().text(), r#"row "db://2""#);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn asking() -> Server {
    Server::new("asks")
        .tool("sample", "", |_: Nothing, ctx: Context| async move {
            let question = CreateMessageRequestParams::new(10).user(&Content::text("hello"));
            Ok(ctx.sample(&question).await?.text())
        })
        .tool("elicit", "", |_: Nothing, ctx: Context| async move {
            let answer: Option<Greeting> = ctx.elicit_as("Who?").await?;
            Ok(answer.map_or_else(|| "nobody".to_owned(), |g| g.name))
        })
        .tool("roots", "", |_: Nothing, ctx: Context| async move {
            let roots = ctx.list_roots().await?.roots;
            Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        })
}

#[tokio::test]
async fn a_handler_asks_its_client() {
    let server = asking();
    for revision in LEGACY {
        let roots = Roots::new([json!("/srv/a b"), json!({"uri": "file:///x", "name": "x"})]).unwrap();
        let handlers = Handlers::new()
            .sampling(with(|params| json!(format!("you said {}", params["messages"][0]["content"]["text"]))))
            .elicitation(with(|params| {
                assert_eq!(params["requestedSchema"]["required"], json!(["name"]));
                json!({"name": "Ada"})
            }))
            .roots(&roots);
        let client = connected(&server, revision, &handlers).await;
        assert_eq!(text(&client.call_tool("sample", json!({})).await.unwrap()), r#"you said "hello""#);
        assert_eq!(text(&client.call_tool("roots", json!({})).await.unwrap()), "file:///srv/a%20b file:///x");
        roots.set([json!("/other")]).unwrap();
        assert_eq!(text(&client.call_tool("roots", json!({})).await.unwrap()), "file:///other");
        let elicited = client.call_tool("elicit", json!({})).await.unwrap();
        if revision < "2025-06" {
            assert!(elicited.is_error, "the revision has no elicitation");
        } else {
            assert_eq!(text(&elicited), "Ada");
        }
    }
}

#[tokio::test]
async fn nothing_is_sent_for_a_capability_that_was_not_declared() {
    let client = connected(&asking(), "2025-11-25", &Handlers::new()).await;
    for (tool, capability) in [("sample", "sampling"), ("elicit", "elicitation"), ("roots", "roots")] {
        let result = client.call_tool(tool, json!({})).await.unwrap();
        let said = format!("was not sent: the client does not declare the capability {capability:?}");
        assert!(result.is_error && text(&result).contains(&said), "{}", text(&result));
    }
}

/// Never answers, and says when it is cancelled.
#[derive(Default)]
struct Silent {
    asked: tokio::sync::Notify,
    cancelled: tokio::sync::Notify,
    reply: Mutex<Option<Reply>>,
}

impl Handler for Silent {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        *self.reply.lock().unwrap() = Some(reply);
        self.asked.notify_one();
    }

    fn cancel(&self, _: &Context, _: Option<&str>) {
        self.cancelled.notify_one();
    }
}

#[tokio::test]
async fn cancelling_a_call_cancels_what_its_handler_asked() {
    let silent = Arc::new(Silent::default());
    let client = connected(&asking(), "2025-11-25", &Handlers::new().sampling(silent.clone())).await;
    let call = tokio::spawn(async move { client.call_tool("sample", json!({})).await });
    tokio::time::timeout(PATIENCE, silent.asked.notified()).await.unwrap();
    call.abort();
    tokio::time::timeout(PATIENCE, silent.cancelled.notified()).await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_client_reaches_the_handler() {
    struct Rejects;
    impl Handler for Rejects {
        fn call(&self, _: Context, _: RawJson, reply: Reply) {
            reply.error(Error::rpc(-1, "User rejected sampling request"));
        }
    }
    let client = connected(&asking(), "2025-11-25", &Handlers::new().sampling(Arc::new(Rejects))).await;
    let result = client.call_tool("sample", json!({})).await.unwrap();
    let told = "the question was answered with error -1: User rejected sampling request";
    assert_eq!((result.is_error, result.text().as_str()), (true, told));
}

#[cfg(feature = "files")]
#[tokio::test]
async fn files_and_directories_are_resources() {
    use tricorn::server::files::{Directory, File};
    let root = std::env::temp_dir().join(format!("tricorn-features-{}", std::process::id()));
    std::fs::create_dir_all(root.join("docs/deep")).unwrap();
    for (path, text) in [("docs/a.md", "# a"), ("docs/b.txt", "b"), ("docs/deep/c.json", "{}"), ("secret", "no")] {
        std::fs::write(root.join(path), text).unwrap();
    }
    std::os::unix::fs::symlink(root.join("secret"), root.join("docs/link")).ok();
    let server = server()
        .file(File::new(root.join("docs/a.md"), "notes://one").unwrap())
        .directory(Directory::new(root.join("docs"), "docs://all").unwrap());
    server.set_source(Kind::Resource, Some(with(|_| json!([{"uri": "db://1", "name": "1"}]))), None);
    for revision in ALL {
        let client = connected(&server, revision, &Handlers::new()).await;
        let listed = client.list_resources().await.unwrap();
        let uris: Vec<_> = listed.iter().map(|r| r["uri"].as_str().unwrap()).collect();
        assert_eq!(
            (uris[0], &uris[4..]),
            ("notes://one", &["docs://all/a.md", "docs://all/b.txt", "docs://all/deep/c.json", "db://1"][..]),
            "{revision}"
        );
        assert_eq!((&listed[4]["mimeType"], &listed[4]["size"]), (&json!("text/markdown"), &json!(3)));
        for uri in ["notes://one", "docs://all/a.md"] {
            assert_eq!(client.read_resource(uri).await.unwrap().text(), "# a");
        }
        for uri in ["docs://all/nothing", "docs://all/link", "docs://all/%2e%2e/secret", "docs://all/../secret"] {
            let error = client.read_resource(uri).await.unwrap_err();
            assert!(matches!(error.code(), Some(-32002 | -32602)), "{uri}: {error}");
        }
    }
    std::fs::remove_dir_all(&root).unwrap();
}
