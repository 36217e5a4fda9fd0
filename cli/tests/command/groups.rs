//! Several servers as one, over standard streams.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::place::{command, python};
use crate::running::Running;

/// A server with the capabilities of its first argument, which starts after the seconds of the second one, and says so in
/// the file of the third.
const MEMBER: &str = r#"
import json, sys, time

declared = json.loads(sys.argv[1])
time.sleep(float(sys.argv[2]))
print("started", file=open(sys.argv[3], "a"))
for line in sys.stdin:
    message = json.loads(line)
    kind, _, what = message["method"].partition("/")
    if "id" not in message:
        continue
    if kind == "initialize":
        asked = message["params"]
        if "elicitation" in asked["capabilities"]:
            print("can be asked", file=open(sys.argv[3], "a"))
        answer = {"result": {"protocolVersion": asked["protocolVersion"], "capabilities": declared,
            "serverInfo": {"name": "member", "version": "1"}}}
    elif kind in declared and what == "list":
        entry = {"name": "hi", "inputSchema": {"type": "object"}} if kind == "tools" else {"name": "hi"}
        answer = {"result": {kind: [entry]}}
    else:
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

struct Group {
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    child: Running,
}

impl Group {
    /// Starts a group of members with these capabilities, each after so many seconds.
    fn start(folder: &Path, members: &[(&str, Value, &str)]) -> Option<Self> {
        let python = python()?;
        std::fs::write(folder.join("member.py"), MEMBER).unwrap();
        let entry = |(name, declared, after): &(&str, Value, &str)| {
            let args = json!([folder.join("member.py"), declared.to_string(), after, folder.join("log")]);
            ((*name).to_owned(), json!({"command": python, "args": args}))
        };
        let servers: serde_json::Map<_, _> = members.iter().map(entry).collect();
        std::fs::write(folder.join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
        let words = command();
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).args(["run", "mcp.json"]).current_dir(folder);
        let mut child = Running::start(program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Self { input, lines: BufReader::new(output).lines(), child })
    }

    fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{line}").unwrap();
        let lines = self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.into_iter().find(|answer| answer["id"] == id).expect("an answer")
    }

    /// The capabilities that it declares to a client with these.
    fn open(&mut self, capabilities: Value) -> Vec<String> {
        let info = json!({"name": "x", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
        let answer = self.ask(1, "initialize", params);
        writeln!(self.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        answer["result"]["capabilities"].as_object().unwrap().keys().cloned().collect()
    }
}

fn read(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

#[cfg(unix)]
#[test]
fn a_group_declares_what_its_servers_have() {
    let folder = tempfile::tempdir().unwrap();
    let members = [("a", json!({"tools": {}}), "0.2"), ("b", json!({"tools": {}}), "0")];
    let Some(mut group) = Group::start(folder.path(), &members) else { return eprintln!("left out: no Python") };
    assert_eq!(group.open(json!({"elicitation": {}})), ["logging", "tools"]);
    // They start once, and are told what the client can do.
    let mut log: Vec<_> = read(folder.path()).lines().map(str::to_owned).collect();
    log.sort();
    assert_eq!(log, ["can be asked", "can be asked", "started", "started"]);
    let listed = group.ask(2, "tools/list", json!({}));
    let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["a_hi", "b_hi"]);
    // Lists that nobody has are empty, also where they are asked for all the same.
    for (id, method, member) in [
        (3, "prompts/list", "prompts"),
        (4, "resources/list", "resources"),
        (5, "resources/templates/list", "resourceTemplates"),
    ] {
        assert_eq!(group.ask(id, method, json!({}))["result"][member], json!([]), "{method}");
    }
    assert_eq!(group.ask(6, "resources/read", json!({"uri": "a://b"}))["error"]["code"], -32601);
    drop(group.input);
    assert_eq!(group.child.wait().unwrap().code(), Some(0));
    assert_eq!(read(folder.path()).matches("started").count(), 2);
}

#[cfg(unix)]
#[test]
fn a_group_declares_what_one_of_its_servers_has() {
    let folder = tempfile::tempdir().unwrap();
    let members = [("a", json!({"tools": {}}), "0"), ("b", json!({"prompts": {}}), "0")];
    let Some(mut group) = Group::start(folder.path(), &members) else { return eprintln!("left out: no Python") };
    // A server with prompts completes their arguments.
    assert_eq!(group.open(json!({})), ["completions", "logging", "prompts", "tools"]);
    assert_eq!(group.ask(2, "prompts/list", json!({}))["result"]["prompts"], json!([{"name": "hi"}]));
    assert_eq!(group.ask(3, "resources/list", json!({}))["result"]["resources"], json!([]));
}

#[cfg(unix)]
#[test]
fn a_group_without_tools_answers_lists_that_nobody_has() {
    for declared in [json!({"prompts": {}}), json!({})] {
        let folder = tempfile::tempdir().unwrap();
        let members = [("a", declared, "0"), ("b", json!({}), "0")];
        let Some(mut group) = Group::start(folder.path(), &members) else { return eprintln!("left out: no Python") };
        group.open(json!({}));
        assert_eq!(group.ask(2, "resources/list", json!({}))["result"]["resources"], json!([]));
        assert_eq!(group.ask(3, "tools/list", json!({}))["result"]["tools"], json!([]));
    }
}

#[cfg(unix)]
#[test]
fn a_client_that_goes_at_once_starts_no_servers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut group) = Group::start(folder.path(), &[("a", json!({}), "0"), ("b", json!({}), "0")]) else {
        return eprintln!("left out: no Python");
    };
    drop(group.input);
    assert_eq!(group.child.wait().unwrap().code(), Some(0));
    assert_eq!(read(folder.path()), "");
}
