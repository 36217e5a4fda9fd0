//! Pages that a client's user has to visit.
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

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
    let mut options = ClientOptions::default();
    options.revision = Some("2025-11-25".into());
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

#[tokio::test]
async fn a_page_is_visited_and_its_end_is_told() {
    let server = Server::new("pages").tool("visit", "", |_: Nothing, cx: Context| async move {
        let agreed = cx.elicit_url("Sign in", PAGE, "e-1").await? == ElicitAction::Accept;
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
async fn pages_that_have_to_be_visited_first_are_named() {
    let page = json!({"mode": "url", "message": "Sign in", "url": PAGE, "elicitationId": "e-1"});
    let pages = vec![page.clone()];
    let server = Server::new("pages").tool("late", "", move |_: Nothing| {
        let error = Error::url_elicitation_required(&pages);
        async move { Err::<(), HandlerError>(error.into()) }
    });
    let error = connected(&server, &Handlers::new()).await.call_tool("late", json!({})).await.unwrap_err();
    assert_eq!(error.code(), Some(-32042));
    assert_eq!(error.data().unwrap().to::<Value>().unwrap(), json!({"elicitations": [page]}));
}
