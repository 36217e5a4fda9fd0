//! Recorded servers: what is played is what was said, and secrets are not in it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

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

/// Lines to the command, and its answers by their ids.
fn talk(folder: &Path, args: &[&str], lines: &[Value]) -> (Option<i32>, Vec<Value>, String) {
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).args(args).current_dir(folder);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running::start(&mut program);
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let (status, answers, err) = said(&child.output());
    (status, answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), err)
}

fn initialize(revision: &str) -> Value {
    let info = json!({"name": "x", "version": "1"});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}})
}

fn call(id: u32, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn a_cassette_is_played_to_clients_of_other_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let (everything, words) = (everything(), command());
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let simple = |call: &[&str]| ["add", "fail", "test_error_handling", "slow"].contains(&call[0]);
    for (recorded, asked) in [
        ("2025-11-25", "2026-07-28"),
        ("2026-07-28", "2025-11-25"),
        ("2026-07-28", "legacy"),
        ("2025-11-25", "2024-11-05"),
        ("2024-11-05", "2025-06-18"),
    ] {
        // Members that the revisions cannot carry alike are left out, and so is the text of results.
        let calls = CALLS.iter().filter(|call| !call.contains(&"--json") && (asked > "2025-06" || simple(call)));
        for call in calls {
            let live =
                [&["call", "--revision", recorded], *call, &["--record", "a.jsonl", "--", &everything, "--stdio"]];
            let live = said(&run(folder.path(), &live.concat()));
            let served = [&["call", "--revision", asked], *call, &["--"], &words, &["replay", "a.jsonl"]];
            assert_eq!(said(&run(folder.path(), &served.concat())), live, "{recorded} to {asked}: {call:?}");
            let connected = [&["call", "replay:a.jsonl", "--revision", asked], *call];
            assert_eq!(said(&run(folder.path(), &connected.concat())), live, "{recorded} to {asked}: {call:?}");
        }
    }
}

#[test]
fn a_cassette_is_served_over_http_in_every_revision() {
    for era in ["legacy", "modern"] {
        let file = root().join("tests/cassettes").join(format!("{era}.jsonl"));
        let words = command();
        let mut server = Command::new(&words[0]);
        server.args(&words[1..]).args(["replay", file.to_str().unwrap(), "--http", "127.0.0.1:0"]);
        let server = Http::of(server);
        for asked in ["2024-11-05", "2025-11-25", "2026-07-28"] {
            let added = said(&run(&root(), &["call", &server.url, "add", "a=1", "b=2", "--revision", asked]));
            assert_eq!(added, (Some(0), "3\n".to_owned(), String::new()), "{era} to {asked}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_opens_a_connection_says_how_a_cassette_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let everything = everything();
    let add = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let record = ["call", "add", "a=1", "b=2", "--record", "a.jsonl"];
    let record = |revision| {
        let args = [&record[..], &["--revision", revision, "--", &everything, "--stdio"]].concat();
        assert!(run(folder.path(), &args).status.success());
    };
    record("2026-07-28");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let lines = [initialize("2025-11-25"), ready, list, call(3, add.clone())];
    let (status, answers, err) = talk(folder.path(), &["replay", "a.jsonl", "--strict"], &lines);
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("a.jsonl: recorded was 2026-07-28, asked is 2025-11-25: answers are adapted"), "{err}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "everything");
    let sum = answers.iter().find(|answer| answer["id"] == 3).unwrap();
    assert_eq!(sum["result"], json!({"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}));
    // A bridge passes on notifications, too; a request that was not recorded gets an error that names the cassette.
    let other = [&lines[..2], &[call(3, json!({"name": "sub", "arguments": {}}))]].concat();
    let (status, answers, err) = talk(folder.path(), &["replay", "a.jsonl", "--strict"], &other);
    assert!(status == Some(1) && err.contains("tools/call add was not asked"), "{err}");
    let message = answers.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cassette \"a.jsonl\": no answer to tools/call"), "{message}");

    record("2025-11-25");
    let envelope = |name: &str| format!("io.modelcontextprotocol/{name}");
    let meta = json!({envelope("protocolVersion"): "2026-07-28", envelope("clientCapabilities"): {},
        envelope("clientInfo"): {"name": "x", "version": "1"}});
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let mut params = add.clone();
    params["_meta"] = meta.clone();
    for args in [&["replay", "a.jsonl"][..], &["replay", "a.jsonl", "--revision", "modern"]] {
        let (_, answers, err) = talk(folder.path(), args, &[discover.clone(), call(2, params.clone())]);
        assert_eq!(answers[0]["result"]["supportedVersions"], json!(["2026-07-28"]), "{err}");
        let sum = answers.iter().find(|answer| answer["id"] == 2).unwrap();
        assert_eq!(sum["result"]["structuredContent"], json!({"result": 3}), "{sum}");
        assert_eq!(sum["result"]["resultType"], "complete");
    }
    // The recorded client had asked the same, and was told that there is no such method.
    let hello = initialize("2025-11-25");
    let session =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
    let unknown = json!({"code": -32601, "message": "no such method"});
    let said = [
        ("client", discover.clone()),
        ("server", json!({"jsonrpc": "2.0", "id": 1, "error": unknown})),
        ("client", hello.clone()),
        ("server", json!({"jsonrpc": "2.0", "id": 1, "result": session})),
    ];
    let lines = said.map(|(from, msg)| json!({"t": 1, "from": from, "on": "stdio", "msg": msg}).to_string());
    std::fs::write(folder.path().join("a.jsonl"), format!("{{\"cassette\":1}}\n{}\n", lines.join("\n"))).unwrap();
    let (status, answers, err) = talk(folder.path(), &["replay", "a.jsonl"], &[discover, hello]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert_eq!((&answers[0]["error"], &answers[1]["result"]), (&unknown, &session));
}
