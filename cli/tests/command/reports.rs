//! Reports about the commands and bridges of others, rebuilt. Each test names the one that it is about.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Http;
use crate::place::{command, everything, python};
use crate::running::Running;
#[cfg(unix)]
use crate::terminal::Terminal;

/// A server whose tools say what they were called with, and with which variables and arguments it was started.
const ECHO: &str = r#"
import json, os, sys

TOOLS = [
    {"name": "environment", "inputSchema": {"type": "object"}},
    # Properties that are no schemas.
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"prop": "array", "description": "an array"}}},
]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        answer = {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"}}}
    elif method == "tools/list":
        answer = {"result": {"tools": TOOLS}}
    elif method == "tools/call":
        own = {name: value for name, value in os.environ.items() if name.startswith("ECHO_")}
        text = json.dumps([sys.argv[1:], own] if params["name"] == "environment" else params["arguments"])
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    else:
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

fn made(folder: &Path, args: &[&str]) -> Command {
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).args(args).current_dir(folder).stdin(Stdio::null());
    program.env("HOME", folder).env("XDG_CONFIG_HOME", folder.join(".config")).env_remove("VIRTUAL_ENV");
    program
}

fn run(folder: &Path, args: &[&str]) -> Output {
    made(folder, args).output().unwrap()
}

fn stdout(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn refused(folder: &Path, args: &[&str], status: i32) -> String {
    let output = run(folder, args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// A folder with the server, and the words that start it.
fn echo() -> Option<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("echo.py"), ECHO).unwrap();
    match python() {
        Some(python) => Some((folder, python)),
        None => {
            eprintln!("left out: there is no Python (TRICORN_PYTHON)");
            None
        }
    }
}

/// modelcontextprotocol/inspector 172 and 629: values of variables ended at their first `=`, and empty ones were refused.
#[test]
fn values_of_variables_are_whole() {
    let Some((folder, python)) = echo() else { return };
    let variables = ["-e", "ECHO_TOKEN=abc=def=", "-e", "ECHO_EMPTY="];
    let args = [&["call", "environment"], &variables[..], &["--", &python, "echo.py", "a b", ""]].concat();
    let said: Value = serde_json::from_str(&stdout(folder.path(), &args)).unwrap();
    assert_eq!(said, json!([["a b", ""], {"ECHO_TOKEN": "abc=def=", "ECHO_EMPTY": ""}]));
}

/// modelcontextprotocol/inspector 657: a list became a text, where the schema is broken as well.
#[test]
fn a_list_is_a_list_also_where_its_schema_is_none() {
    let Some((folder, python)) = echo() else { return };
    for argument in ["prop=a,b", r#"prop:=["a","b"]"#] {
        let said = stdout(folder.path(), &["call", "odd", argument, "--", &python, "echo.py"]);
        assert_eq!(said, r#"{"prop": ["a", "b"]}"#, "{argument}");
    }
}

/// PrefectHQ/fastmcp 4081: a server that is started anew got another argument than the first one.
#[test]
fn a_server_that_is_started_anew_has_the_same_arguments() {
    let Some((folder, python)) = echo() else { return };
    let args = ["run", "--reload", "--http", "127.0.0.1:0", "--", &python, "echo.py", "--name", "testing"];
    let server = Http::of(made(folder.path(), &args));
    let called = || stdout(folder.path(), &["call", &server.url, "environment"]);
    assert_eq!(called(), r#"[["--name", "testing"], {}]"#);
    std::fs::write(folder.path().join("echo.py"), ECHO.replace("[sys.argv[1:], own]", "[sys.argv[1:], own, 2]"))
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while called() != r#"[["--name", "testing"], {}, 2]"# {
        assert!(Instant::now() < end, "{}", called());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// modelcontextprotocol/servers 447, cline/cline 1948 and others: a command line without `--`.
#[test]
fn a_command_line_without_dashes_is_one_where_that_is_sure() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".cursor")).unwrap();
    let run = |args: &[&str]| stdout(folder.path(), &[&["install", "--dry-run", "cursor"], args].concat());
    for args in [
        &["npx", "some-server"][..],
        &["npx", "-y", "some-server"],
        &["uvx", "some-server"],
        &["docker", "run", "-i", "--rm", "-e", "KEY", "--name", "s", "some-server"],
    ] {
        let plain = run(args);
        assert_eq!(plain, run(&[&["--"], args].concat()));
        let words = args[1..].iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        assert!(plain.contains(&format!("\"args\": [{words}]")), "{plain}");
    }
    let refused = |args: &[&str]| refused(folder.path(), args, 2);
    let said = refused(&["install", "cursor", "npx", "-y", "some-server", "--dry-run"]);
    assert_eq!(said, "error: --dry-run stands after npx: give it before, or -- before npx if it is meant for that");
    let said = refused(&["install", "cursor", "npx -y some-server"]);
    assert!(said.ends_with("a command line stands after --, without quotes around it"), "{said}");
    let said = refused(&["install", "cursor", "--", "npx -y some-server"]);
    assert_eq!(said, "error: no program \"npx -y some-server\": leave out the quotes around the command line");
    let said = refused(&["list", "npx", "-y", "some-server"]);
    assert_eq!(said, "error: a command line comes after everything else: … -- npx -y some-server");
    let said = refused(&["list", "--timeout", "5", "--json", "npx", "-y", "some-server"]);
    assert_eq!(said, "error: a command line comes after everything else: … -- npx -y some-server");
    // Elsewhere such a word is one like others.
    for args in [
        &["call", "server.py", "npx", "--wrong"][..],
        &["list", "--wrong", "npx", "some-server"],
        &["list", "server.py", "--timeout", "5", "npx", "--wrong"],
        &["login", "npx", "--wrong"],
    ] {
        let said = refused(args);
        assert!(said.starts_with("error: unexpected argument"), "{args:?}: {said}");
    }
    assert!(!folder.path().join(".cursor/mcp.json").exists());
}

/// The bytes that answer one request over HTTP, up to the end of their JSON or the first event.
fn post(url: &str, session: Option<&str>, message: &Value) -> (String, Value) {
    let (mut stream, path) = connected(url);
    let body = message.to_string();
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
    let accept = "accept: application/json, text/event-stream\r\ncontent-type: application/json";
    let head = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{accept}\r\n{session}connection: close");
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let json = text.lines().find_map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok());
    (text, json.unwrap_or_default())
}

fn connected(url: &str) -> (TcpStream, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (stream, format!("/{path}"))
}

fn open(url: &str) -> String {
    let info = json!({"name": "x", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let (head, _) = post(url, None, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let session = fields.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).unwrap().1.to_owned();
    post(url, Some(&session), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    session
}

fn call(url: &str, session: &str) -> Value {
    let params = json!({"name": "environment", "arguments": {}});
    post(url, Some(session), &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).1
}

/// supercorp-ai/supergateway 139 and 177: a program that ends at its start left the client waiting, and one that could not
/// be started ended the gateway with all sessions.
#[cfg(unix)]
#[test]
fn a_session_whose_program_does_not_start_is_told_at_once_and_alone() {
    let Some((folder, python)) = echo() else { return };
    let script = folder.path().join("server.sh");
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        // A file that is being run is not written to.
        let new = folder.path().join("new.sh");
        std::fs::write(&new, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(new, &script).unwrap();
    };
    write(&format!("exec {python} echo.py"));
    let server = Http::of(made(folder.path(), &["run", "--http", "127.0.0.1:0", "--", "./server.sh"]));
    let works = |session: &str| call(&server.url, session)["result"]["content"][0]["text"] == "[[], {}]";
    let first = open(&server.url);
    // Not even the first session is told less than the others.
    write("echo \"Cannot find module './x'\" >&2; exit 1");
    let begun = Instant::now();
    let message = call(&server.url, &first)["error"]["message"].to_string();
    assert!(message.contains("Cannot find module './x'"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    write(&format!("exec {python} echo.py"));
    assert!(works(&first));
    let second = open(&server.url);
    std::fs::remove_file(&script).unwrap();
    let message = call(&server.url, &second)["error"]["message"].to_string();
    assert!(message.contains("cannot start"), "{message}");
    assert!(works(&first));
}

/// supercorp-ai/supergateway 126: a client that opened its stream once more ended the program.
#[test]
fn a_stream_that_is_opened_once_more_ends_nothing() {
    let Some((folder, python)) = echo() else { return };
    let server = Http::of(made(folder.path(), &["run", "--http", "127.0.0.1:0", "--", &python, "echo.py"]));
    let session = open(&server.url);
    assert_eq!(call(&server.url, &session)["result"]["content"][0]["text"], "[[], {}]");
    let streams: Vec<_> = (0..3)
        .map(|_| {
            let (mut stream, path) = connected(&server.url);
            let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream");
            write!(stream, "{head}\r\nmcp-session-id: {session}\r\n\r\n").unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            assert!(line.contains("200") || line.contains("409"), "{line}");
            stream
        })
        .collect();
    drop(streams);
    assert_eq!(call(&server.url, &session)["result"]["content"][0]["text"], "[[], {}]");
}

/// punkpeye/mcp-remote 106: a bridge to a URL did not get over a server that was started anew and knew no session.
#[test]
fn a_bridge_outlives_the_server_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = || {
        let mut server = Command::new(everything());
        server.args(["--http", &format!("127.0.0.1:{port}")]);
        Http::of(server)
    };
    let before = server();
    let mut bridge = made(folder.path(), &["run", &before.url, "--revision", "legacy"]);
    let mut bridge = Running::start(bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut input = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| -> Value {
        writeln!(input, "{message}").unwrap();
        let answers = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        answers.into_iter().find(|answer| answer["id"] == message["id"]).unwrap()
    };
    let info = json!({"name": "x", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    let add = |id: u32| {
        let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    assert_eq!(ask(add(2))["result"]["structuredContent"]["result"], 3);
    drop(before);
    let _after = server();
    assert_eq!(ask(add(3))["result"]["structuredContent"]["result"], 3);
}

/// A program that serves HTTP where standard streams are expected.
const WEB: &str = r#"
import http.server, json, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "web", "version": "1"}}
        known = message.get("method") == "initialize"
        answer = {"result": result} if known else {"error": {"code": -32601, "message": "no"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print(f"MCP server listening on port {server.server_address[1]}", file=getattr(sys, sys.argv[1]), flush=True)
server.serve_forever()
"#;

/// PrefectHQ/fastmcp 209 and others: nothing happens, as the program serves HTTP.
#[test]
fn a_program_that_serves_http_is_named_by_all_commands() {
    let Some((folder, python)) = echo() else { return };
    std::fs::write(folder.path().join("web.py"), WEB).unwrap();
    for stream in ["stdout", "stderr"] {
        let entry = json!({"command": python, "args": [folder.path().join("web.py"), stream]});
        let configuration = json!({"mcpServers": {"web": entry}});
        std::fs::write(folder.path().join("mcp.json"), configuration.to_string()).unwrap();
        let target = ["--", &python, "web.py", stream];
        for (args, status) in [
            ([&["list"], &target[..]].concat(), 3),
            ([&["doctor"], &target[..]].concat(), 3),
            ([&["doctor", "--revision", "modern"], &target[..]].concat(), 3),
            (vec!["discover", "--check"], 1),
        ] {
            let begun = Instant::now();
            let output = run(folder.path(), &args);
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
            assert!(
                said.contains("serves HTTP, not standard streams: start it by itself and name http://127"),
                "{said}"
            );
            assert!(begun.elapsed() < Duration::from_secs(14), "{args:?}: {:?}", begun.elapsed());
        }
    }
}

/// Servers are started by `discover`, all at once, and those that are switched off are not.
#[test]
fn discover_says_of_each_server_if_it_starts() {
    let Some((folder, python)) = echo() else { return };
    let echo = json!({"command": python, "args": [folder.path().join("echo.py")]});
    let mark = |name: &str| {
        let script = format!("import time; open({name:?}, 'w'); time.sleep(5); raise SystemExit('gone')");
        json!({"command": python, "args": ["-c", script], "cwd": folder.path()})
    };
    let mut off = mark("off");
    off["disabled"] = true.into();
    let mut servers = serde_json::Map::from_iter([("echo".to_owned(), echo), ("off".to_owned(), off)]);
    servers.extend((0..6).map(|number| (format!("dies{number}"), mark("started"))));
    std::fs::write(folder.path().join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();

    let only = stdout(folder.path(), &["discover", "--no-check"]);
    assert!(only.contains("(disabled)") && !only.contains("ok: ") && !only.contains("failed: "), "{only}");
    assert!(!folder.path().join("started").exists());
    let begun = Instant::now();
    let output = run(folder.path(), &["discover", "--check", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for server in found["servers"].as_array().unwrap() {
        let check = match server["name"].as_str().unwrap() {
            "echo" => json!({"ok": true, "message": "echo 1"}),
            "off" => Value::Null,
            name => {
                let why = format!("cannot connect to {name}: the server ended (exit status: 1): gone");
                json!({"ok": false, "message": why})
            }
        };
        assert_eq!(server["check"], check, "{server}");
    }
    assert!(folder.path().join("started").exists() && !folder.path().join("off").exists());
}

/// Several installations into the file of one host: none takes another one's entry away.
#[test]
fn installations_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".cursor")).unwrap();
    let start = |number: usize| {
        let name = format!("s{number}");
        let mut program = made(folder.path(), &["install", "cursor", "--name", &name, "--", "some-server"]);
        program.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<_> = (0..12).map(start).collect();
    for program in started {
        let output = program.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(folder.path().join(".cursor/mcp.json")).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["mcpServers"].as_object().unwrap().len(), 12, "{text}");
    let left = std::fs::read_dir(folder.path().join(".cursor")).unwrap().flatten().map(|entry| entry.file_name());
    let others: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("mcp.json")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// A server whose tool asks for a page to be visited, and says what was answered.
#[cfg(unix)]
const PAYS: &str = r#"
import json, sys

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "pays", "version": "1"}}})
    elif method == "tools/list":
        send({"id": message["id"], "result": {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        call = message["id"]
        send({"id": "page", "method": "elicitation/create", "params": {
            "mode": "url", "message": "Pay first", "url": "https://pay.example/a?b=1", "elicitationId": "1"}})
    elif message.get("id") == "page":
        text = "answered " + message["result"]["action"]
        send({"id": call, "result": {"content": [{"type": "text", "text": text}]}})
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
"#;

/// A page that no browser shows counts as visited if the user says so; one that is shown needs no second question.
#[cfg(unix)]
#[test]
fn a_page_counts_as_visited_when_it_was_shown_or_the_user_says_so() {
    let Some((folder, python)) = echo() else { return };
    let (script, opened) = (folder.path().join("pays.py"), folder.path().join("opened"));
    std::fs::write(&script, PAYS).unwrap();
    let args = ["call", "pay", "--", &python, script.to_str().unwrap()];
    for (answer, action) in [("y", "accept"), ("n", "decline")] {
        let env = [("BROWSER", "no-such-browser:false"), ("NO_COLOR", "1")];
        let mut terminal = Terminal::start_with(120, &env, &args);
        terminal.until("Open pay.example in the browser?");
        terminal.types("y");
        terminal.until("Have you visited the page?");
        let text = terminal.text();
        assert_eq!(text.matches("https://pay.example/a?b=1").count(), 2, "{text}");
        assert!(text.contains("no browser was opened (BROWSER: false: it ended"), "{text}");
        terminal.types(answer);
        assert_eq!(terminal.end(), 0);
        assert!(terminal.text().contains(&format!("answered {action}")), "{}", terminal.text());
    }
    let browser = format!("sh -c 'echo \"$0\" > {}' %s", opened.display());
    let mut terminal = Terminal::start_with(120, &[("BROWSER", &browser)], &args);
    terminal.until("Open pay.example in the browser?");
    terminal.types("y");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("answered accept"), "{}", terminal.text());
    let end = Instant::now() + Duration::from_secs(30);
    while !std::fs::read_to_string(&opened).is_ok_and(|text| text.ends_with('\n')) {
        assert!(Instant::now() < end, "it is not opened");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(std::fs::read_to_string(opened).unwrap(), "https://pay.example/a?b=1\n");
}

/// A web server that gives a page, whatever is asked for.
const PAGE: &str = r#"
import http.server, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b"<!DOCTYPE html><title>Welcome</title>"
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print(f"ready http://127.0.0.1:{server.server_address[1]}", file=sys.stderr, flush=True)
server.serve_forever()
"#;

/// A URL without its path leads to a page.
#[test]
fn a_url_of_a_page_is_said_to_be_no_endpoint() {
    let Some((folder, python)) = echo() else { return };
    let mut program = Command::new(&python);
    program.args(["-c", PAGE]);
    let page = Http::of(program);
    let hint = format!("most servers have it at /mcp: {}/mcp", page.url);
    for (path, answer, hint) in [
        ("/", "HTTP 200 OK with a body of type \"text/html\", expected a message", hint.as_str()),
        ("/missing", "HTTP 404 Not Found, with a page", &hint),
        ("/missing/mcp", "HTTP 404 Not Found, with a page", "check the path of the URL, which is /mcp at most servers"),
    ] {
        let url = format!("{}{path}", page.url);
        let said = refused(folder.path(), &["list", &url], 3);
        assert_eq!(said, format!("error: {url}: no MCP endpoint is there ({answer}); {hint}"));
    }
}

/// The help of each command ends with an example of it.
#[test]
fn each_help_ends_with_an_example() {
    let folder = tempfile::tempdir().unwrap();
    let all = stdout(folder.path(), &["--help"]);
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names =
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|name| !name.is_empty());
    let mut count = 0;
    for name in names {
        let help = stdout(folder.path(), &[name, "--help"]);
        let last = help.rsplit("\n\n").next().unwrap();
        let example = last.starts_with("Example") && last.contains(&format!("tricorn {name} "));
        assert!(example || name == "discover" && last.contains("tricorn discover"), "{name}: {last}");
        count += 1;
    }
    assert!(count > 20, "{count} commands");
}
