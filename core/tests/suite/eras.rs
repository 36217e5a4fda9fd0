//! Tests of a client's memory of a server's era, and of conclusions that it does not draw from it.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tricorn::client::{Client, ClientOptions, Target};
use tricorn::protocol::revision::Era;
use tricorn::{Error, ErrorKind};

use crate::http_client::server::*;

/// Connects with headers of its own: tokens change, and the server is the same.
async fn connect(server: &Server, token: u32) -> Result<Era, Error> {
    let headers = BTreeMap::from([("Authorization".to_owned(), format!("Bearer {token}"))]);
    let target = Target::Url { url: server.url(), headers };
    let options = ClientOptions::new().header("X-Request-Id", token.to_string());
    let client = tokio::time::timeout(PATIENCE, Client::connect(&target, &options)).await.unwrap()?;
    client.close().await;
    Ok(client.revision().era())
}

#[tokio::test]
async fn a_legacy_server_is_probed_once() {
    let server = Server::new(|seen| legacy(seen, "s").unwrap()).await;
    for token in 0..2 {
        assert_eq!(connect(&server, token).await.unwrap(), Era::Legacy);
    }
    let first = |method: &str| server.methods().iter().filter(|m| *m == method).count();
    assert_eq!((first("server/discover"), first("initialize")), (1, 2));
}

#[tokio::test]
async fn a_modern_server_is_not_demoted_because_of_one_odd_answer() {
    for (status, body) in [("400 Bad Request", ""), ("404 Not Found", ""), ("404 Not Found", "<html>"), ("200 OK", "")]
    {
        let probes = AtomicUsize::new(0);
        let server = Server::new(move |seen| match seen.method() {
            "server/discover" if probes.fetch_add(1, Ordering::Relaxed) == 1 => raw(status, &[], body),
            _ => modern(seen).or_else(|| legacy(seen, "s")).unwrap(),
        })
        .await;
        assert_eq!(connect(&server, 1).await.unwrap(), Era::Modern);
        let error = connect(&server, 2).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.message().contains("modern one before"), "{error}");
        assert_eq!(connect(&server, 3).await.unwrap(), Era::Modern);
        assert_eq!(server.methods(), ["server/discover"; 3], "{status} {body:?}");
    }
}

#[tokio::test]
async fn a_server_that_was_replaced_by_an_old_one_is_reported_and_then_used() {
    let probes = AtomicUsize::new(0);
    let server = Server::new(move |seen| match seen.method() {
        "server/discover" if probes.fetch_add(1, Ordering::Relaxed) == 0 => modern(seen).unwrap(),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    assert_eq!(connect(&server, 1).await.unwrap(), Era::Modern);
    assert_eq!(connect(&server, 2).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(connect(&server, 3).await.unwrap(), Era::Legacy);
}

#[tokio::test]
async fn what_may_pass_makes_nobody_legacy() {
    type Say = fn(&Seen) -> Reply;
    let ways: [(&str, Say, Option<ErrorKind>); 6] = [
        ("429", |seen| refuse("429 Too Many Requests", seen, -32603), Some(ErrorKind::Transport)),
        // It may be a legacy one, but only as long as this connection lasts.
        ("503", |seen| refuse("503 Service Unavailable", seen, -32603), None),
        ("503, -32000", |seen| refuse("503 Service Unavailable", seen, -32000), None),
        ("500", |seen| refuse("500 Internal Server Error", seen, -32603), None),
        ("200", |seen| refuse("200 OK", seen, -32603), None),
        ("silence", |_| Reply::Hold(vec![]), None),
    ];
    for (what, say, kind) in ways {
        let probes = AtomicUsize::new(0);
        let server = Server::new(move |seen| match seen.method() {
            "server/discover" if probes.fetch_add(1, Ordering::Relaxed) == 0 => say(seen),
            _ => modern(seen).or_else(|| legacy(seen, "s")).unwrap(),
        })
        .await;
        let target = Target::Url { url: server.url(), headers: BTreeMap::new() };
        let patience = Duration::from_millis(if what == "silence" { 50 } else { 5000 });
        let options = ClientOptions::new().probe_timeout(patience);
        let first = tokio::time::timeout(PATIENCE, Client::connect(&target, &options)).await.unwrap();
        match kind {
            Some(kind) => {
                let failed = first.unwrap_err();
                assert_eq!(failed.kind(), kind, "{what}: {failed}");
                assert!(failed.message().contains(what.split(',').next().unwrap()), "{failed}");
            }
            None => assert_eq!(first.unwrap().revision().era(), Era::Legacy, "{what}"),
        }
        assert_eq!(connect(&server, 2).await.unwrap(), Era::Modern, "{what}");
    }
}

#[tokio::test]
async fn a_failure_inside_a_modern_server_is_told_and_not_remembered() {
    let probes = AtomicUsize::new(0);
    let server = Server::new(move |seen| match (seen.method(), probes.fetch_add(1, Ordering::Relaxed)) {
        (_, 1) => refuse("200 OK", seen, -32603),
        (_, 2) => raw("400 Bad Request", &[], ""),
        _ => modern(seen).unwrap(),
    })
    .await;
    assert_eq!(connect(&server, 1).await.unwrap(), Era::Modern);
    assert_eq!(connect(&server, 2).await.unwrap_err().code(), Some(-32603));
    // Still known to be modern.
    assert!(connect(&server, 3).await.unwrap_err().message().contains("modern one before"));
}

fn refuse(status: &'static str, seen: &Seen, code: i64) -> Reply {
    error(status, &seen.body["id"], code, &serde_json::Value::Null)
}

#[tokio::test]
async fn a_blocked_way_says_nothing_about_the_server() {
    let probes = AtomicUsize::new(0);
    let server = Server::new(move |seen| match (seen.method(), probes.fetch_add(1, Ordering::Relaxed)) {
        (_, 1) => raw("503 Service Unavailable", &[], ""),
        (_, 2) => raw("401 Unauthorized", &[], ""),
        (_, 3) => raw("404 Not Found", &[], ""),
        _ => modern(seen).unwrap(),
    })
    .await;
    assert_eq!(connect(&server, 1).await.unwrap(), Era::Modern);
    for kind in [ErrorKind::Transport, ErrorKind::Auth, ErrorKind::Unsupported] {
        assert_eq!(connect(&server, 2).await.unwrap_err().kind(), kind);
    }
    assert_eq!(server.methods(), ["server/discover"; 4]);
}
