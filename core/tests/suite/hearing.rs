//! Tests of a program's output beside messages, and of the errors for a program that does not start.
#![cfg(all(feature = "stdio", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tricorn::client::{Client, ClientOptions, Handlers, Stderr, Target};
use tricorn::{Error, ErrorKind, Events};

use crate::child::PATIENCE;

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Events for Heard {
    fn warning(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

fn target(script: &str) -> Target {
    Target::Command {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: BTreeMap::new(),
        cwd: None,
        stderr: Stderr::Event,
    }
}

async fn connect(script: &str, revision: Option<&str>) -> (Result<Client, Error>, Vec<String>) {
    let options = revision.into_iter().fold(ClientOptions::new(), ClientOptions::revision);
    let heard = Arc::new(Heard::default());
    let (target, handlers) = (target(script), Handlers::new().events(heard.clone()));
    let client = Client::connect_with(&target, &options, &handlers);
    let client = tokio::time::timeout(PATIENCE, client).await.unwrap();
    let warnings = heard.0.lock().unwrap().clone();
    (client, warnings)
}

/// Answers `initialize` in this form, and each later request with an empty result.
fn legacy(form: &str) -> String {
    format!(
        r#"read -r line
        result='{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}'
        {form}
        read -r line
        while read -r line; do
          id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
          printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[]}}}}\n' "$id"
        done"#
    )
}

#[tokio::test]
async fn the_first_line_that_is_no_message_is_said_once_and_escaped() {
    let form = r#"printf 'listening \033[32mon\033[0m stdio\nready\n\n'
        printf '{"jsonrpc":"2.0","id":1,"result":%s}\nmore\n' "$result""#;
    let (client, warnings) = connect(&legacy(form), Some("2025-11-25")).await;
    let client = client.unwrap();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains("no message") && warning.contains(r"listening \u{1b}[32mon"), "{warning}");
    assert!(client.call_tool("t", json!({})).await.unwrap().content.is_empty());
    client.close().await;
}

#[tokio::test]
async fn messages_in_other_forms_are_read() {
    for (what, form) in [
        (
            "a header, and no line break behind the message",
            r#"body=$(printf '{"jsonrpc":"2.0","id":1,"result":%s}' "$result")
            printf 'Content-Length: %s\r\nContent-Type: application/json\r\n\r\n%s' "${#body}" "$body""#,
        ),
        ("several lines", r#"printf '{\n  "jsonrpc": "2.0",\n  "result":\n %s,\n  "id": 1\n}\n' "$result""#),
        ("an id as text behind a log", r#"printf 'INFO {"jsonrpc":"2.0","result":%s,"id":"1"}\n' "$result""#),
    ] {
        let (client, warnings) = connect(&legacy(form), Some("2025-11-25")).await;
        let client = client.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(warnings.len(), 1, "{what}: {warnings:?}");
        let called = tokio::time::timeout(PATIENCE, client.call_tool("t", json!({}))).await.unwrap();
        assert!(called.unwrap().content.is_empty(), "{what}");
        client.close().await;
    }
}

#[tokio::test]
async fn what_a_server_writes_beside_is_said_with_the_error() {
    let options = ClientOptions::new().probe_timeout(Duration::from_millis(100));
    let options = options.request_timeout(Duration::from_millis(200));
    let target = target("echo 'Usage: server [options]'; while read -r line; do :; done");
    let heard = Handlers::new().events(Heard::default());
    let failed = Client::connect_with(&target, &options, &heard).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Timeout, "{failed}");
    assert!(failed.message().contains("Usage: server [options]"), "{failed}");
}

#[tokio::test]
async fn a_program_that_does_not_start_is_started_once_and_named() {
    let mark = std::env::temp_dir().join(format!("tricorn-{}-starts", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let script = format!(
        "echo start >> {}; echo Traceback >&2; echo 'ImportError: no module' >&2; echo >&2; exit 3",
        mark.display()
    );
    let (failed, _) = connect(&script, None).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Closed, "{failed}");
    let message = failed.message();
    assert!(message.starts_with("the server ended (exit status: 3); it is \"sh\""), "{message}");
    assert!(message.contains("the last line of its standard error is \"ImportError: no module\""), "{message}");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "start\n");
    std::fs::remove_file(&mark).unwrap();
}

#[tokio::test]
async fn a_program_that_dies_of_the_first_question_is_started_again_and_both_are_told() {
    let mark = std::env::temp_dir().join(format!("tricorn-{}-questions", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let script = format!("read -r line; echo \"$line\" >> {}; exit 4", mark.display());
    let (failed, _) = connect(&script, None).await;
    let failed = failed.unwrap_err();
    let message = failed.message();
    assert_eq!(failed.kind(), ErrorKind::Closed, "{failed}");
    for part in ["\"initialize\" failed: the server ended (exit status: 4)", "\"server/discover\"", "\"revision\""] {
        assert!(message.contains(part), "{message}");
    }
    let asked = std::fs::read_to_string(&mark).unwrap();
    assert_eq!(asked.lines().count(), 2, "{asked}");
    std::fs::remove_file(&mark).unwrap();
}
