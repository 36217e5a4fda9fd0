//! Recorded servers: what is played is what was said, and secrets are not in it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::http::Http;
use crate::place::{command, everything, root};
use crate::running::Running;

fn run(folder: &Path, args: &[&str]) -> Output {
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).args(args).current_dir(folder).stdin(Stdio::null());
    program.output().unwrap()
}

/// Status, answer and what was said besides.
fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const CALLS: [&[&str]; 9] = [
    &["add", "a=1", "b=2"],
    &["test_multiple_content_types", "--json"],
    &["test_error_handling"],
    &["fail", "kind=protocol"],
    &["test_tool_with_logging"],
    &["test_tool_with_progress"],
    &["test_sampling", "prompt=hi", "--sampler", "echo hello"],
    &["test_elicitation", "message=Really?"],
    &["slow", "ms=10"],
];

#[test]
fn what_is_played_is_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let everything = everything();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        for call in CALLS {
            let args = [&["call", "--revision", revision], call].concat();
            let live = [args.as_slice(), &["--record", "a.jsonl", "--", &everything, "--stdio"]].concat();
            let live = said(&run(folder.path(), &live));
            for target in ["replay:a.jsonl", "replay:a.jsonl?strict"] {
                let mut played = args.clone();
                played.insert(1, target);
                assert_eq!(said(&run(folder.path(), &played)), live, "{revision} {call:?} {target}");
            }
        }
    }
}

#[test]
fn what_is_recorded_over_http_is_played_and_compared() {
    let (folder, http) = (tempfile::tempdir().unwrap(), Http::start(&[]));
    for revision in ["2025-11-25", "2026-07-28"] {
        let list = ["list", "--revision", revision, &http.url, "--json", "--record", "a.jsonl"];
        let live = run(folder.path(), &list);
        assert!(live.status.success(), "{live:?}");
        let played = run(folder.path(), &["list", "replay:a.jsonl", "--json"]);
        let played = said(&played).1.replace("\"memory\"", "\"http\"");
        assert_eq!(played, said(&live).1);
        let same = said(&run(folder.path(), &["replay", "a.jsonl", "--against", &http.url]));
        assert_eq!(same, (Some(0), "no differences\n".to_owned(), String::new()), "{revision}");
    }
}

#[test]
fn a_token_is_not_in_a_cassette() {
    let folder = tempfile::tempdir().unwrap();
    let (everything, token) = (everything(), "canary-4f9a7c21e8");
    let variable = format!("NOTES={token}");
    let args = ["call", "test_simple_text", "-e", &variable, "--record", "a.jsonl", "--", &everything, "--stdio"];
    assert!(run(folder.path(), &args).status.success());
    let (http, header) = (Http::start(&[]), format!("Authorization: Bearer {token}"));
    let url = format!("{}?api_key={token}", http.url);
    run(folder.path(), &["call", &url, "test_simple_text", "-H", &header, "--record", "b.jsonl"]);
    let message = format!("message={token}");
    let words = ["call", &url, "test_elicitation", &message, "-H", &header];
    run(folder.path(), &[&words[..], &["--record", "c.jsonl"]].concat());
    run(folder.path(), &[&words[..], &["--record", "d.jsonl", "--no-redact"]].concat());
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for name in ["a.jsonl", "b.jsonl", "c.jsonl"] {
        let text = text(name);
        assert!(text.lines().count() > 3 && !text.contains(token), "{name}: {text}");
    }
    assert!(text("c.jsonl").contains("<secret-") && text("d.jsonl").contains(token));
}

#[test]
fn a_served_target_is_recorded_and_a_cassette_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let everything = everything();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add","arguments":{"b":2,"a":1}}}"#;
    let sum = r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"3"}],"structuredContent":{"result":3}}}"#;
    let served = |args: &[&str]| {
        let words = command();
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).args(args).current_dir(folder.path());
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running::start(&mut program);
        let mut input = child.stdin.take().unwrap();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        writeln!(input, "{hello}\n{ready}\n{call}").unwrap();
        drop(input);
        said(&child.output())
    };
    let (status, answers, _) =
        served(&["record", "-o", "a.jsonl", "--revision", "2025-11-25", "--", &everything, "--stdio"]);
    assert_eq!((status, answers.lines().last()), (Some(0), Some(sum)), "{answers}");
    let (status, answers, _) = served(&["replay", "a.jsonl"]);
    assert_eq!((status, answers.lines().last()), (Some(0), Some(sum)), "{answers}");
    let (status, _, left) = served(&["replay", "a.jsonl", "--strict"]);
    assert!(status == Some(1) && left.contains("logging/setLevel was not asked"), "{left}");
    let file = folder.path().join("a.jsonl");
    let words = command();
    let mut bridge = Command::new(&words[0]);
    bridge.args(&words[1..]).args(["replay", file.to_str().unwrap(), "--http", "127.0.0.1:0"]);
    let bridge = Http::of(bridge);
    let answered = run(folder.path(), &["ping", &bridge.url]);
    assert!(answered.status.success(), "{answered:?}");
}

#[test]
fn the_cassettes_of_the_fixture_server_hold_for_it() {
    let everything = everything();
    for era in ["legacy", "modern"] {
        let file = root().join("tests/cassettes").join(format!("{era}.jsonl"));
        let file = file.to_str().unwrap();
        let same = said(&run(&root(), &["replay", file, "--against", &everything]));
        assert_eq!(same, (Some(0), "no differences\n".to_owned(), String::new()), "{era}");
        let again = said(&run(&root(), &["diff", file, file]));
        assert_eq!(again, (Some(0), "no differences\n".to_owned(), String::new()), "{era}");
    }
}
