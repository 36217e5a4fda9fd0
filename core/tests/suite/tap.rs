//! Everything that passes, as a tap sees it.
#![cfg(feature = "http")]

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use tricorn::client::{Tap, Target};
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

/// Who sent it, the stream, the message.
type Frame = (bool, String, Value);

#[derive(Clone, Default)]
struct Seen {
    frames: Arc<Mutex<Vec<Frame>>>,
    statuses: Arc<Mutex<Vec<(String, u16)>>>,
}

impl Tap for Seen {
    fn frame(&self, by_client: bool, on: &str, frame: &bytes::Bytes) {
        let message = serde_json::from_slice(frame).expect("JSON");
        self.frames.lock().expect("lock").push((by_client, on.to_owned(), message));
    }

    fn status(&self, on: &str, status: u16) {
        self.statuses.lock().expect("lock").push((on.to_owned(), status));
    }
}

impl Seen {
    /// The stream of the call and that of its answer.
    fn call(&self) -> (String, String) {
        let frames = self.frames.lock().expect("lock");
        let (by_client, sent_on, call) = frames.iter().find(|(.., one)| one["method"] == "tools/call").expect("a call");
        assert!(by_client);
        assert_eq!(call["params"]["arguments"], json!({"a": 1}));
        let mut answers = frames.iter().filter(|(by_client, _, one)| !by_client && one["id"] == call["id"]);
        let (_, came_on, answer) = answers.next().expect("an answer");
        assert!(answers.next().is_none(), "once");
        assert_eq!(answer["result"]["content"][0]["text"], "2");
        (sent_on.clone(), came_on.clone())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Given {
    a: i64,
}

fn server() -> Server {
    Server::new("tapped").tool("next", "", async |given: Given| Ok((given.a + 1).to_string()))
}

#[tokio::test]
async fn messages_are_seen_both_ways_in_memory() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let seen = Seen::default();
        let options = ClientOptions::new().revision(revision).tap(seen.clone());
        let client = Client::in_memory(&server(), &options).await.expect("connected");
        client.call_tool("next", json!({"a": 1})).await.expect("called");
        client.close().await;
        assert_eq!(seen.call(), ("memory".to_owned(), "memory".to_owned()), "{revision}");
        let first = seen.frames.lock().expect("lock")[0].clone();
        let opens = if revision == "2026-07-28" { "server/discover" } else { "initialize" };
        assert_eq!((first.0, &first.2["method"]), (true, &json!(opens)));
    }
}

#[tokio::test]
async fn exchanges_have_numbers_over_http() {
    let serving = server().serve_http(HttpOptions::new().port(0)).await.expect("serving");
    for revision in ["2025-11-25", "2026-07-28"] {
        let seen = Seen::default();
        let options = ClientOptions::new().revision(revision).tap(seen.clone());
        let target = Target::from_text(serving.url()).expect("a URL");
        let client = Client::connect(&target, &options).await.expect("connected");
        client.call_tool("next", json!({"a": 1})).await.expect("called");
        client.close().await;
        let (sent, came) = seen.call();
        assert!(sent.starts_with("post:") && sent == came, "{sent} {came}");
        assert!(seen.statuses.lock().expect("lock").contains(&(sent, 200)));
    }
}
