//! Pages that a client's user has to visit, and roots that change.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::ElicitAction;
use tricorn::{Events, Handler, Reply};

const PAGE: &str = "https://example.com/in?x=1#y";

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Agrees to visit every page.
#[derive(Default)]
struct Visitor(Mutex<Vec<Value>>);

impl Handler for Visitor {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        self.0.lock().unwrap().push(params.to().unwrap());
        reply.value(RawJson::from_value(&json!({"action": "accept"})));
    }
}

/// Visits none.
struct Declines;

impl Handler for Declines {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&json!({"action": "decline"})));
    }
}

/// Hears the ends of visits.
struct Ends(tokio::sync::mpsc::UnboundedSender<Value>);

impl Events for Ends {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        if method == "notifications/elicitation/complete" {
            self.0.send(params.unwrap().to().unwrap()).unwrap();
        }
    }
}

async fn connected(server: &Server, handlers: &Handlers) -> Client {
    let options = ClientOptions::new().revision("2025-11-25");
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

#[tokio::test]
async fn a_page_is_visited_and_its_end_is_told() {
    let server = Server::new("pages").tool("visit", "", |_: Nothing, cx: Context| async move {
        let agreed = cx.elicit_url("Sign in", PAGE, "e-1").await?.action == ElicitAction::Accept;
        cx.elicitation_complete("e-1")?;
        Ok(agreed)
    });
    let visitor = Arc::new(Visitor::default());
    let (sender, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let handlers = Handlers::new().elicitation_with_url(visitor.clone()).events(Ends(sender));
    let client = connected(&server, &handlers).await;
    assert_eq!(client.call_tool("visit", json!({})).await.unwrap().text(), "true");
    let asked = json!({"mode": "url", "message": "Sign in", "url": PAGE, "elicitationId": "e-1"});
    assert_eq!(*visitor.0.lock().unwrap(), [asked]);
    let end = tokio::time::timeout(Duration::from_secs(20), ends.recv()).await.unwrap();
    assert_eq!(end, Some(json!({"elicitationId": "e-1"})));
    // Who can fill in forms only is asked for nothing else.
    let forms = connected(&server, &Handlers::new().elicitation(visitor.clone())).await;
    let refused = forms.call_tool("visit", json!({})).await.unwrap();
    assert!(refused.is_error && refused.text().contains("elicitation.url"), "{}", refused.text());
    assert_eq!(visitor.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_handlers_lead_to_pages_in_the_newest_revision() {
    let visitor = Arc::new(Visitor::default());
    let seen = visitor.clone();
    let pages = ["e-1", "e-2"].map(|id| json!({"mode": "url", "message": "Sign in", "url": PAGE, "elicitationId": id}));
    let server = Server::new("pages")
        .tool("visit", "", |_: Nothing, cx: Context| async move {
            let agreed = cx.elicit_url("Sign in", PAGE, "e-1").await?.action == ElicitAction::Accept;
            cx.elicitation_complete("e-1")?;
            Ok(agreed)
        })
        .tool("late", "", move |_: Nothing| {
            let visited = seen.0.lock().unwrap().len();
            let error = (visited < 2).then(|| Error::url_elicitation_required(&pages));
            async move { error.map_or(Ok(visited), |error| Err(HandlerError::from(error))) }
        });
    let options = ClientOptions::new().revision("2026-07-28");
    let handlers = Handlers::new().elicitation_with_url(visitor.clone());
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    assert_eq!(client.call_tool("late", json!({})).await.unwrap().text(), "2");
    let asked = json!({"mode": "url", "message": "Sign in", "url": PAGE});
    assert_eq!(*visitor.0.lock().unwrap(), [asked.clone(), asked]);
    assert_eq!(client.call_tool("visit", json!({})).await.unwrap().text(), "true");
    // Who cannot visit pages is told what it would need.
    visitor.0.lock().unwrap().clear();
    let forms = Handlers::new().elicitation(visitor.clone());
    let forms = Client::in_memory_with(&server, &options, &forms).await.unwrap();
    let refused = forms.call_tool("late", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "{refused}");
}

#[tokio::test]
async fn a_page_that_is_being_visited_is_not_asked_for_again() {
    let runs = Arc::new(AtomicUsize::new(0));
    let (counted, page) =
        (runs.clone(), json!({"mode": "url", "message": "Sign in", "url": PAGE, "elicitationId": "e-1"}));
    let server = Server::new("pages").tool("late", "", move |_: Nothing| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let error = (run < 4).then(|| Error::url_elicitation_required(std::slice::from_ref(&page)));
        async move { error.map_or(Ok(run), |error| Err(HandlerError::from(error))) }
    });
    let options = ClientOptions::new().revision("2026-07-28");
    let visitor = Arc::new(Visitor::default());
    let handlers = Handlers::new().elicitation_with_url(visitor.clone());
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    assert_eq!(client.call_tool("late", json!({})).await.unwrap().text(), "4");
    assert_eq!(visitor.0.lock().unwrap().len(), 1, "it is visited once");
    // Who does not want to is not asked twice.
    runs.store(0, Ordering::SeqCst);
    let handlers = Handlers::new().elicitation_with_url(Arc::new(Declines));
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    let refused = client.call_tool("late", json!({})).await.unwrap_err();
    assert_eq!((refused.code(), runs.load(Ordering::SeqCst)), (Some(-32603), 2), "{refused}");
}

#[tokio::test]
async fn pages_that_have_to_be_visited_first_are_named() {
    let page = json!({"mode": "url", "message": "Sign in", "url": PAGE, "elicitationId": "e-1"});
    let pages = vec![page.clone()];
    let server = Server::new("pages").tool("late", "", move |_: Nothing| {
        let error = Error::url_elicitation_required(&pages);
        async move { Err::<(), HandlerError>(error.into()) }
    });
    let handlers = Handlers::new().elicitation_with_url(Arc::new(Visitor::default()));
    let error = connected(&server, &handlers).await.call_tool("late", json!({})).await.unwrap_err();
    assert_eq!(error.code(), Some(-32042));
    assert_eq!(error.data().unwrap().to::<Value>().unwrap(), json!({"elicitations": [page]}));
    // Long after the call, and to nobody else.
    let (sender, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let (other, mut nothing) = tokio::sync::mpsc::unbounded_channel();
    let visitor = || Handlers::new().elicitation_with_url(Arc::new(Visitor::default()));
    let asked = connected(&server, &visitor().events(Ends(sender))).await;
    let idle = connected(&server, &visitor().events(Ends(other))).await;
    asked.call_tool("late", json!({})).await.unwrap_err();
    server.elicitation_complete("unknown");
    for _ in 0..2 {
        server.elicitation_complete("e-1");
    }
    let end = tokio::time::timeout(Duration::from_secs(20), ends.recv()).await.unwrap();
    assert_eq!(end, Some(json!({"elicitationId": "e-1"})));
    asked.ping().await.unwrap();
    idle.ping().await.unwrap();
    assert!(ends.try_recv().is_err() && nothing.try_recv().is_err());
    // Who cannot visit pages is not sent to any.
    let error = connected(&server, &Handlers::new()).await.call_tool("late", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.data()), (Some(-32603), None));
}

#[tokio::test]
async fn a_server_hears_that_roots_have_changed_and_asks_for_them() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let server = Server::new("roots").state(7_u8).on_roots_changed(move |_: Nothing, cx: Context| {
            let sender = sender.clone();
            async move {
                let roots: Vec<String> = cx.list_roots().await?.roots.into_iter().map(|root| root.uri).collect();
                sender.send((roots, cx.state::<u8>().map(|state| *state)))?;
                Ok(())
            }
        });
        let roots = tricorn::client::Roots::new([json!("file:///a")]).unwrap();
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory_with(&server, &options, &Handlers::new().roots(&roots)).await.unwrap();
        roots.set([json!("file:///b"), json!("file:///c")]).unwrap();
        let told = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await.unwrap();
        assert_eq!(told, Some((vec!["file:///b".to_owned(), "file:///c".to_owned()], Some(7))), "{revision}");
        client.close().await;
    }
}

/// Has one root at a time.
struct Here(Mutex<&'static str>);

impl Handler for Here {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        let root = *self.0.lock().unwrap();
        reply.value(RawJson::from_value(&json!([root])));
    }
}

#[tokio::test]
async fn a_functions_roots_are_said_to_have_changed() {
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new("roots").on_roots_changed(move |_: Nothing, cx: Context| {
        let sender = sender.clone();
        async move {
            sender.send(cx.list_roots().await?.roots.remove(0).uri)?;
            Ok(())
        }
    });
    let here = Arc::new(Here(Mutex::new("file:///a")));
    let client =
        connected(&server, &Handlers::new().answer("roots/list", here.clone(), json!({"listChanged": true}))).await;
    *here.0.lock().unwrap() = "file:///b";
    client.roots_changed().unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await.unwrap();
    assert_eq!(told.as_deref(), Some("file:///b"));
    // Who has not said that they may change cannot say that they have.
    let silent = Handlers::new().answer("roots/list", here, json!({}));
    for handlers in [silent, Handlers::new()] {
        let client = connected(&server, &handlers).await;
        for refused in [client.roots_changed(), client.notify("notifications/roots/list_changed", None)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), tricorn::ErrorKind::Misuse);
            assert!(error.message().contains("roots.listChanged"), "{error}");
        }
        client.ping().await.unwrap();
    }
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn changed_roots_are_said_with_the_same_code_in_every_revision() {
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new("roots")
        .on_roots_changed(move |_: Nothing, _: Context| {
            let sender = sender.clone();
            async move {
                sender.send(())?;
                Ok(())
            }
        })
        .tool("root", "", |_: Nothing, cx: Context| async move { Ok(cx.list_roots().await?.roots.remove(0).uri) });
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let (here, options) = (Arc::new(Here(Mutex::new("file:///a"))), ClientOptions::new().revision(revision));
        let handlers = Handlers::new().answer("roots/list", here.clone(), json!({"listChanged": true}));
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        *here.0.lock().unwrap() = "file:///b";
        client.roots_changed().unwrap();
        assert_eq!(client.call_tool("root", json!({})).await.unwrap().text(), "file:///b", "{revision}");
        // Where they are asked for when they are needed, nothing was told.
        if revision < "2026" {
            tokio::time::timeout(Duration::from_secs(20), heard.recv()).await.unwrap().unwrap();
        }
        client.close().await;
        assert!(heard.try_recv().is_err(), "{revision}");
        let silent = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
        assert_eq!(silent.roots_changed().unwrap_err().kind(), tricorn::ErrorKind::Misuse, "{revision}");
    }
}

#[tokio::test]
async fn roots_that_change_all_the_time_are_told_one_after_the_other() {
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let running = Arc::new(Mutex::new((0_usize, 0_usize)));
    let counted = running.clone();
    let server = Server::new("roots").on_roots_changed(move |_: Nothing, cx: Context| {
        let (sender, counted) = (sender.clone(), counted.clone());
        async move {
            {
                let mut counted = counted.lock().unwrap();
                *counted = (counted.0 + 1, counted.1.max(counted.0 + 1));
            }
            let roots = cx.list_roots().await?.roots;
            counted.lock().unwrap().0 -= 1;
            sender.send(roots[0].uri.clone())?;
            Ok(())
        }
    });
    let roots = tricorn::client::Roots::new([json!("file:///0")]).unwrap();
    let client = connected(&server, &Handlers::new().roots(&roots)).await;
    for n in 1..=1000 {
        roots.set([json!(format!("file:///{n}"))]).unwrap();
    }
    let last = async { while heard.recv().await != Some("file:///1000".to_owned()) {} };
    tokio::time::timeout(Duration::from_secs(20), last).await.unwrap();
    assert_eq!(running.lock().unwrap().1, 1, "never two at once");
    client.close().await;
}

/// Answers every form with these.
struct Answers(Value);

impl Handler for Answers {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&self.0));
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_the_form_are_said_to() {
    let server = Server::new("forms").tool("ask", "", |_: Nothing, cx: Context| async move {
        let form = json!({"type": "object", "properties": {"em": {"type": "string"}}, "required": ["em"]});
        Ok(cx.elicit("Who?", &form).await?.action == ElicitAction::Accept)
    });
    let problem = "the client's answer to \"elicitation/create\" does not fit";
    for (answer, says) in [
        (json!({"e": "x"}), format!("{problem} the form: answer \"em\": missing (required)")),
        (json!(5), format!("{problem}: expected an ElicitResult, an object of answers, or null")),
    ] {
        let client = connected(&server, &Handlers::new().elicitation(Arc::new(Answers(answer)))).await;
        let result = client.call_tool("ask", json!({})).await.unwrap();
        assert!(result.is_error);
        assert_eq!(result.text(), format!("the question was answered with error -32603: {says}"));
    }
}
