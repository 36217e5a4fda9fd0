//! A client and a server in one process.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "runtime")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Counts what is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn closing_the_server_ends_its_calls_and_its_clients() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let (started, dropped) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (starts, drops) = (started.clone(), dropped.clone());
        let server = Server::new("memory").tool("wait", "", move |_: Nothing| {
            let (starts, guard) = (starts.clone(), Dropped(drops.clone()));
            async move {
                let _guard = guard;
                starts.notify_one();
                std::future::pending::<()>().await;
                Ok(())
            }
        });
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory(&server, &options).await.expect("connected");
        let call = client.call_tool("wait", json!({}));
        let close = async {
            started.notified().await;
            server.close();
        };
        let both = async { tokio::join!(call, close).0 };
        let outcome = tokio::time::timeout(Duration::from_secs(20), both).await.expect("the call ends");
        assert_eq!(outcome.expect_err("no answer").kind(), ErrorKind::Closed, "{revision}");
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[tokio::test]
async fn a_tool_that_comes_later_is_served_on_open_connections() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let server = Server::new("memory");
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory(&server, &options).await.expect("connected");
        client.ping().await.expect("alive");
        assert_eq!(client.list_tools().await.expect("an empty list").len(), 0, "{revision}");
        let _server = server.tool("late", "", |_: Nothing| async { Ok("here".to_owned()) });
        assert_eq!(client.list_tools().await.expect("a list").len(), 1, "{revision}");
        assert!(!client.call_tool("late", json!({})).await.expect("an answer").is_error, "{revision}");
    }
}

#[derive(Debug)]
struct Secret;

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secret")
    }
}

impl std::error::Error for Secret {}

#[tokio::test]
async fn errors_that_the_model_is_not_shown_are_heard_by_the_server() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let server = Server::new("memory")
        .tool("hidden", "", |_: Nothing| async { Err::<String, _>(Secret.into()) })
        .tool("panics", "", |_: Nothing| async { if true { panic!("oh no") } else { Ok(1) } })
        .tool("shown", "", |_: Nothing| async { Err::<String, _>(HandlerError::new("shown")) })
        .tool_with(
            Tool::new("misfit", "").output_schema(json!({"type": "object", "required": ["n"]})),
            |_: Nothing| async { Ok(json!({})) },
        )
        .on_error(move |error, tool| {
            let known = error.downcast_ref::<Secret>().is_some();
            hears.lock().expect("unpoisoned").push((tool.to_owned(), error.to_string(), known));
        });
    let client = Client::in_memory(&server, &ClientOptions::default()).await.expect("connected");
    let mut texts = Vec::new();
    for tool in ["hidden", "panics", "shown", "misfit"] {
        let result = client.call_tool(tool, json!({})).await.expect("an answer");
        assert!(result.is_error, "{tool}");
        texts.push(result.text());
    }
    assert!(texts[0].contains("Secret") && !texts[0].contains("secret"), "{texts:?}");
    assert_eq!(texts[2], "shown");
    let heard = heard.lock().expect("unpoisoned").clone();
    let of = |tool: &str| heard.iter().filter(|h| h.0 == tool).map(|h| (h.1.as_str(), h.2)).collect::<Vec<_>>();
    assert_eq!(of("hidden"), [("secret", true)]);
    assert_eq!(of("panics"), [("oh no", false)]);
    assert_eq!(of("shown"), []);
    assert!(of("misfit").len() == 1 && of("misfit")[0].0.contains("\"n\""), "{heard:?}");
}

#[tokio::test]
async fn a_server_says_what_was_built() {
    let mut server = Server::new("memory")
        .version("2")
        .title("Memory")
        .description("A server")
        .website_url("https://example.com/")
        .icons(&json!([{"src": "https://example.com/icon.png"}]))
        .page_size(2)
        .max_message_bytes(10_000)
        .max_nesting(20)
        .max_in_flight(1)
        .max_queued_notifications(5);
    for name in ["a", "b", "c"] {
        server = server.tool(name, "", |_: Nothing| async { Ok(1) });
    }
    let client = Client::in_memory(&server, &ClientOptions::default()).await.expect("connected");
    let info: serde_json::Value = client.server_info().expect("info").to().expect("json");
    let expected = json!({"name": "memory", "version": "2", "title": "Memory", "description": "A server",
        "websiteUrl": "https://example.com/", "icons": [{"src": "https://example.com/icon.png"}]});
    assert_eq!(info, expected);
    let options = CallOptions::new().meta(json!({"com.example/trace": 1}));
    let page = client.list_tools_page_with(None, &options).await.expect("a page");
    assert_eq!(page.tools.len(), 2);
    assert_eq!(client.list_tools_with(&options).await.expect("all").len(), 3);
    client.ping_with(&options).await.expect("alive");
    let error = client.ping_with(&CallOptions::new().meta(3)).await.expect_err("no object");
    assert!(error.message().starts_with("ping: meta: expected an object"), "{error}");
    for (name, wrong) in
        [("page_size", Server::new("s").page_size(0)), ("max_nesting", Server::new("s").max_nesting(0).max_nesting(1))]
    {
        let error = Client::in_memory(&wrong, &ClientOptions::default()).await.expect_err(name);
        assert!(error.message().contains(name), "{error}");
    }
}

#[tokio::test]
async fn meta_reaches_the_tool_and_the_call_is_counted() {
    let own = Arc::new(Mutex::new(None::<Server>));
    let inner = own.clone();
    let server = Server::new("memory").tool("meta", "", move |_: Nothing, cx: Context| {
        let in_flight = inner.lock().expect("unpoisoned").as_ref().map_or(0, |server| server.usage().in_flight);
        async move { Ok(json!({"request": cx.request().to_json(), "in_flight": in_flight})) }
    });
    *own.lock().expect("unpoisoned") = Some(server.clone());
    let client = Client::in_memory(&server, &ClientOptions::default()).await.expect("connected");
    let options = CallOptions::new().meta(json!({"com.example/trace": [1]}));
    let result = client.call_tool_with("meta", json!({}), &options).await.expect("an answer");
    let seen: serde_json::Value = result.structured_as().expect("an object");
    assert_eq!(seen["in_flight"], 1);
    assert!(seen["request"].to_string().contains("com.example/trace"), "{seen}");
    assert_eq!(server.usage().in_flight, 0);
}

#[tokio::test]
async fn a_clients_handler_notifies_as_a_client() {
    /// Answers with what became of two notifications.
    struct Notifies;
    impl tricorn::Handler for Notifies {
        fn call(&self, cx: Context, _: tricorn::jsonrpc::RawJson, reply: tricorn::Reply) {
            let own = cx.notify("notifications/roots/list_changed", None).is_ok();
            let other = cx.notify("notifications/tools/list_changed", None).expect_err("a server's");
            reply.value(tricorn::jsonrpc::RawJson::from_value(&format!("{own} {other}")));
        }
    }
    let server = Server::new("memory").tool("ask", "", |_: Nothing, cx: Context| async move {
        let params = json!({"messages": [], "maxTokens": 1});
        let params = tricorn::jsonrpc::RawJson::from_value(&params);
        let answer = cx.ask("sampling/createMessage", Some(params), &CallOptions::default()).await?;
        Ok(answer.get().to_owned())
    });
    let options = ClientOptions::new().revision("2025-11-25");
    let handlers = Handlers::new().sampling(Arc::new(Notifies));
    let client = Client::in_memory_with(&server, &options, &handlers).await.expect("connected");
    let said = client.call_tool("ask", json!({})).await.expect("a result").text();
    assert!(said.contains("true misuse") && said.contains("no notification of a client"), "{said}");
}

#[tokio::test]
async fn a_client_notifies_what_its_revision_has_clients_notify() {
    let server = Server::new("memory");
    for (revision, taken) in [("2025-11-25", true), ("2026-07-28", false)] {
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory(&server, &options).await.expect("connected");
        client.notify("notifications/cancelled", None).expect("a client's");
        let told = client.notify("notifications/progress", None);
        assert_eq!(
            told.map_err(|error| error.kind()),
            if taken { Ok(()) } else { Err(ErrorKind::Misuse) },
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_tool_may_have_any_name() {
    let names = ["a/b c!", "é☃", "_", &"long".repeat(60)];
    let server = names.iter().fold(Server::new("memory"), |server, name| {
        let said = (*name).to_owned();
        server.tool(name, "", move |_: Nothing| std::future::ready(Ok(said.clone())))
    });
    let client = Client::in_memory(&server, &ClientOptions::default()).await.expect("connected");
    let listed = client.list_tools().await.expect("a list");
    assert_eq!(listed.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), names);
    for name in names {
        assert_eq!(client.call_tool(name, json!({})).await.expect("a result").text(), name);
    }
}

#[tokio::test]
async fn a_server_declares_what_the_protocol_knows_nothing_of() {
    let declared = json!({"experimental": {"ours": {"depth": 3}}, "com.example": {"x": [1]}, "prompts": {}});
    let options = json!({"name": "test", "capabilities": declared}).to_string();
    let server = Server::with_options(serde_json::from_str(&options).expect("works"));
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).expect("works");
        let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.expect("works");
        let told: serde_json::Value = client.capabilities().raw().to().expect("works");
        assert_eq!(told["experimental"], declared["experimental"], "{revision}");
        assert_eq!(told["com.example"], declared["com.example"], "{revision}");
        assert!(told["prompts"].is_object(), "{revision}");
    }
    for (name, value, said) in [
        ("promts", json!({}), "\"promts\": expected completions, prompts"),
        ("experimental", json!(true), "expected an object, got true"),
        ("prompts", json!({"listChanged": false}), "what it says is the engine's"),
        ("tasks", json!({}), "option \"tasks\""),
    ] {
        let error = Client::in_memory(&Server::new("test").capability(name, value), &ClientOptions::default())
            .await
            .expect_err("refused");
        assert!(error.message().contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_client_in_this_process_is_a_connection() {
    let server = Server::new("memory");
    let options = ClientOptions::default();
    let first = Client::in_memory(&server, &options).await.expect("connected");
    let second = Client::in_memory(&server, &options).await.expect("connected");
    assert_eq!(server.usage().connections, 2);
    first.close().await;
    assert_eq!(server.usage().connections, 1);
    drop(second);
    let gone = async {
        while server.usage().connections > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("a client that is dropped is gone");
}

#[tokio::test]
async fn a_timeout_names_the_option_that_it_came_from() {
    let server =
        Server::new("memory").tool("wait", "", |_: Nothing| std::future::pending::<Result<(), HandlerError>>());
    let options = ClientOptions::new().request_timeout(Duration::from_millis(50));
    let client = Client::in_memory(&server, &options).await.expect("connected");
    for (call, option) in [
        (CallOptions::new(), "(request_timeout)"),
        (CallOptions::new().timeout(Duration::from_millis(20)), "(timeout)"),
    ] {
        let late = client.call_tool_with("wait", json!({}), &call).await.expect_err("no answer");
        assert!(late.kind() == ErrorKind::Timeout && late.message().contains(option), "{late}");
    }
}
