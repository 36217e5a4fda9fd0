//! Messages through bridges: as they came, in both directions, over both transports.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Http;
use crate::place::{command, python};
use crate::running::Running;

/// A server of the standard library alone, whose client is asked and told things that no specification has.
const SERVER: &str = r#"
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

client = None
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        client = params
        send(id=id, result={
            "protocolVersion": params["protocolVersion"],
            "capabilities": {
                "tools": {}, "experimental": {"com.example/trace": {"depth": 3}}, "com.example/vault": {"open": True}, "com.example/bare": {},
            },
            "serverInfo": {
                "name": "raw", "version": "7", "title": "Raw", "description": "Says more",
                "websiteUrl": "https://example.com", "icons": [{"src": "http://example.com/i.png", "sizes": ["48x48"]}],
            },
            "instructions": "Ask for anything.",
        })
    elif method == "com.example/client":
        send(id=id, result={"info": client["clientInfo"], "capabilities": client["capabilities"]})
    elif method == "com.example/echo":
        send(method="notifications/com.example/heard", params={"before": "the answer"})
        send(id=id, result={"params": params, "big": 12345678901234567890, "_meta": {"com.example/kept": [1.0]}})
    elif method == "com.example/fail":
        send(id=id, error={"code": 4711, "message": "not today", "data": {"until": "tomorrow"}})
    elif method == "notifications/com.example/poke":
        send(id="q-1", method="com.example/question", params=params)
    elif method is None and id == "q-1":
        send(method="notifications/com.example/answered", params={k: message[k] for k in ("result", "error") if k in message})
    elif method == "tools/list":
        send(id=id, result={"tools": [{
            "name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["n"]},
            "com.example/rank": 1, "_meta": {"com.example/shown": True},
        }]})
    elif method == "tools/call":
        send(id=id, result={"content": [{"type": "com.example/scent", "name": "rose"}], "structuredContent": {"m": 1}})
    elif id is not None:
        send(id=id, result={})
"#;

/// A client that writes and reads lines.
struct Lines {
    child: Running,
    lines: Receiver<Value>,
}

impl Lines {
    fn of(mut command: Command) -> Self {
        let mut child = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let (stdout, (sender, lines)) = (child.stdout.take().unwrap(), channel());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&self) -> Value {
        let mut message = self.lines.recv_timeout(Duration::from_secs(60)).expect("a message");
        message.as_object_mut().unwrap().remove("jsonrpc");
        message
    }

    fn ask(&mut self, id: i64, method: &str, params: &Value) -> Value {
        self.send(json!({"id": id, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

fn tricorn(args: &[&str]) -> Command {
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).args(args);
    program
}

#[test]
fn messages_pass_as_they_came() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("raw.py");
    std::fs::write(&file, SERVER).unwrap();
    let over_http = Http::of(tricorn(&["run", "--http", "127.0.0.1:0", "--", &python, "-u", file.to_str().unwrap()]));
    // From standard streams to HTTP, and from there to standard streams.
    let mut client = Lines::of(tricorn(&["run", &over_http.url]));
    let capabilities = json!({"experimental": {"com.example/trace": {"depth": 2}}, "com.example/vault": {}});
    let info = json!({"name": "probe", "version": "0.1", "title": "Probe"});
    let opened = client.ask(
        1,
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}),
    );
    let result = &opened["result"];
    assert_eq!(
        result["serverInfo"],
        json!({
            "name": "raw", "version": "7", "title": "Raw", "description": "Says more",
            "websiteUrl": "https://example.com", "icons": [{"src": "http://example.com/i.png", "sizes": ["48x48"]}],
        })
    );
    assert_eq!(result["instructions"], "Ask for anything.");
    assert_eq!(result["capabilities"]["experimental"], json!({"com.example/trace": {"depth": 3}}));
    assert_eq!(result["capabilities"]["com.example/vault"], json!({"open": true}));
    assert_eq!(result["capabilities"]["com.example/bare"], json!({}));
    client.send(json!({"method": "notifications/initialized"}));

    let told = client.ask(2, "com.example/client", &json!({}));
    assert_eq!(told["result"]["info"], info, "{told}");
    assert_eq!(told["result"]["capabilities"]["experimental"], capabilities["experimental"], "{told}");
    assert_eq!(told["result"]["capabilities"]["com.example/vault"], json!({}), "{told}");

    let params = json!({"n": 1.50, "deep": [{"a": null}], "_meta": {"com.example/mine": "yes"}});
    client.send(json!({"id": 3, "method": "com.example/echo", "params": params}));
    let heard = client.next();
    let expected = json!({"method": "notifications/com.example/heard", "params": {"before": "the answer"}});
    assert_eq!(heard, expected);
    let echoed = client.next();
    let expected = json!({"params": params, "big": 12345678901234567890u64, "_meta": {"com.example/kept": [1.0]}});
    assert_eq!(echoed, json!({"id": 3, "result": expected}));

    let failed = client.ask(4, "com.example/fail", &json!({}));
    let expected = json!({"code": 4711, "message": "not today", "data": {"until": "tomorrow"}});
    assert_eq!(failed["error"], expected);

    client.send(json!({"method": "notifications/com.example/poke", "params": {"hard": true}}));
    let asked = client.next();
    assert_eq!((&asked["method"], &asked["params"]), (&json!("com.example/question"), &json!({"hard": true})));
    client.send(json!({"id": asked["id"], "result": {"ouch": 1}}));
    let answered = json!({"method": "notifications/com.example/answered", "params": {"result": {"ouch": 1}}});
    assert_eq!(client.next(), answered);

    let listed = client.ask(5, "tools/list", &json!({}));
    let tool = &listed["result"]["tools"][0];
    assert_eq!((&tool["com.example/rank"], &tool["_meta"]), (&json!(1), &json!({"com.example/shown": true})));
    let called = client.ask(6, "tools/call", &json!({"name": "odd", "arguments": {}}));
    let expected = json!({"content": [{"type": "com.example/scent", "name": "rose"}], "structuredContent": {"m": 1}});
    assert_eq!(called["result"], expected);
}
