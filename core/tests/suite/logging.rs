//! Log messages: the level that a client sets holds in every revision, through memory and over HTTP.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(all(feature = "runtime", feature = "http"))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;
use tricorn::{CallOptions, ErrorKind, Events};

const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const MODERN: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Keeps the levels of the messages that come.
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        if method == "notifications/message" {
            let message: Value = params.unwrap().to().unwrap();
            self.0.send(message["level"].as_str().unwrap().to_owned()).unwrap();
        }
    }
}

/// Says which messages were wanted.
fn server() -> Server {
    Server::new("logs").tool("work", "", |_: Nothing, cx: Context| async move {
        let levels = [LogLevel::Debug, LogLevel::Warning, LogLevel::Alert];
        Ok(json!(levels.map(|level| cx.log(level, None, &"x"))).to_string())
    })
}

async fn connected(
    server: &Server,
    http: &HttpServer,
    revision: &str,
    over: &str,
) -> (Client, UnboundedReceiver<String>) {
    let (sender, heard) = unbounded_channel();
    let (options, handlers) = (ClientOptions::new().revision(revision), Handlers::new().events(Heard(sender)));
    let client = match over {
        "memory" => Client::in_memory_with(server, &options, &handlers).await,
        _ => Client::connect_with(&Target::from_text(http.url()).unwrap(), &options, &handlers).await,
    };
    (client.unwrap(), heard)
}

#[tokio::test]
async fn a_level_that_was_set_holds_in_every_revision() {
    let server = server();
    let http = server.serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    for revision in ALL {
        for over in ["memory", "http"] {
            let (client, mut heard) = connected(&server, &http, revision, over).await;
            for (level, wanted, messages) in [
                (LogLevel::Warning, "[false,true,true]", &["warning", "alert"][..]),
                (LogLevel::Debug, "[true,true,true]", &["debug", "warning", "alert"]),
                (LogLevel::Alert, "[false,false,true]", &["alert"]),
            ] {
                client.set_log_level(level).await.unwrap();
                for _ in 0..2 {
                    let said = client.call_tool("work", json!({})).await.unwrap().text();
                    assert_eq!(said, wanted, "{level:?} over {over} in {revision}");
                    for message in messages {
                        let next = tokio::time::timeout(PATIENCE, heard.recv()).await.unwrap();
                        assert_eq!(next.as_deref(), Some(*message), "{level:?} over {over} in {revision}");
                    }
                }
            }
            client.close().await;
            assert!(heard.try_recv().is_err(), "over {over} in {revision}");
        }
    }
}

#[tokio::test]
async fn a_request_may_ask_for_another_level_than_the_rest() {
    let server = server();
    let client = Client::in_memory(&server, &ClientOptions::new().revision(MODERN)).await.unwrap();
    client.set_log_level(LogLevel::Warning).await.unwrap();
    for (own, wanted) in [("debug", "[true,true,true]"), ("emergency", "[false,false,false]")] {
        let asking = CallOptions::new().meta(json!({"io.modelcontextprotocol/logLevel": own}));
        assert_eq!(client.call_tool_with("work", json!({}), &asking).await.unwrap().text(), wanted);
        assert_eq!(client.call_tool("work", json!({})).await.unwrap().text(), "[false,true,true]");
    }
}

#[tokio::test]
async fn what_is_no_level_is_refused_alike_and_changes_nothing() {
    let server = server();
    for revision in ALL {
        let client = Client::in_memory(&server, &ClientOptions::new().revision(revision)).await.unwrap();
        client.set_log_level(LogLevel::Warning).await.unwrap();
        for params in [json!({"level": "loud"}), json!({"level": 7}), json!({})] {
            let params = RawJson::from_value(&params);
            let error = client.request("logging/setLevel", Some(params), &CallOptions::new()).await.unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Rpc, Some(-32602)), "{revision}: {error}");
        }
        assert_eq!(client.call_tool("work", json!({})).await.unwrap().text(), "[false,true,true]", "{revision}");
    }
}
