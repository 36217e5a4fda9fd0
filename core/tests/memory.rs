//! A client and a server in one process.
#![cfg(feature = "runtime")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
        let mut options = ClientOptions::default();
        options.revision = Some(revision.into());
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
        let mut options = ClientOptions::default();
        options.revision = Some(revision.into());
        let client = Client::in_memory(&server, &options).await.expect("connected");
        client.ping().await.expect("alive");
        assert_eq!(client.list_tools().await.expect("an empty list").len(), 0, "{revision}");
        let _server = server.tool("late", "", |_: Nothing| async { Ok("here".to_owned()) });
        assert_eq!(client.list_tools().await.expect("a list").len(), 1, "{revision}");
        assert!(!client.call_tool("late", json!({})).await.expect("an answer").is_error, "{revision}");
    }
}
