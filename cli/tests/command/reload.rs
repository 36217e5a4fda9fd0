//! `tricorn run --reload`: a server whose code changes under connected clients.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::json;
use tricorn::client::{Client, ClientOptions, Target};

use crate::place::{command, python};
use crate::running::Running;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the tool `add`, and others.
fn write(file: &Path, add: &str, others: &str) {
    let code = format!(
        "from tricorn import Server\n\napp = Server('demo')\n\n\n@app.tool\ndef add(a: int, b: int) -> int:\n    return {add}\n\n\n{others}"
    );
    std::fs::write(file, code).unwrap();
}

/// Waits for a line with this beginning.
fn until(lines: &Receiver<String>, beginning: &str) -> String {
    let (end, mut before) = (Instant::now() + PATIENCE, Vec::new());
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.starts_with(beginning) => return line,
            Ok(line) => before.push(line),
            Err(why) => panic!("no line {beginning:?} ({why}) after {before:?}"),
        }
    }
}

async fn names(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn sum(client: &Client) -> String {
    client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap().text()
}

/// Runs the server of a folder, and gives what it says and its URL.
fn run(folder: &Path, python: &str) -> (Running, Receiver<String>, String) {
    let (child, lines) = start(folder, python);
    let url = until(&lines, "ready ").trim_start_matches("ready ").to_owned();
    (child, lines, url)
}

/// Runs the server of a folder, and gives what it says.
fn start(folder: &Path, python: &str) -> (Running, Receiver<String>) {
    let words = command();
    let mut program = Command::new(&words[0]);
    program
        .args(&words[1..])
        .args(["run", "server.py", "--http", "127.0.0.1:0", "--reload"])
        .current_dir(folder)
        .env("VIRTUAL_ENV", Path::new(python).parent().unwrap().parent().unwrap())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut program);
    let (sender, lines) = channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    (child, lines)
}

/// Hears of resources that have changed.
#[derive(Clone)]
struct Updates(std::sync::mpsc::Sender<()>);

impl tricorn::client::Events for Updates {
    fn notification(&self, method: &str, _params: Option<&tricorn::jsonrpc::RawJson>) {
        if method == "notifications/resources/updated" {
            let _ = self.0.send(());
        }
    }
}

#[test]
fn a_server_that_does_not_start_is_waited_for() {
    let Some(python) = python() else { return eprintln!("left out: there is no Python (TRICORN_PYTHON)") };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.py");
    std::fs::write(&file, "from tricorn import Server\n\napp = Server('demo'\n").unwrap();
    let (_child, lines) = start(folder.path(), &python);
    until(&lines, "not started: waiting for a change");
    write(&file, "a + b", "");
    let url = until(&lines, "ready ").trim_start_matches("ready ").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&Target::from_text(&url).unwrap(), &ClientOptions::new()).await.unwrap();
        assert_eq!(sum(&client).await, "3");
        client.close().await;
    });
}

#[test]
fn subscriptions_wait_for_a_server_that_connects() {
    let Some(python) = python() else { return eprintln!("left out: there is no Python (TRICORN_PYTHON)") };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, start: &str| {
        let code = format!(
            "import os\nfrom tricorn import Server\n\n{start}\napp = Server('demo')\n\n\n@app.resource('note://one')\ndef one() -> str:\n    return '1'\n\n\n@app.tool\ndef {name}() -> str:\n    app.resource_updated('note://one')\n    return 'told'\n"
        );
        std::fs::write(folder.path().join("server.py"), code).unwrap();
    };
    write("first", "");
    let (_child, lines, url) = run(folder.path(), &python);
    let (sender, told) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let handlers = tricorn::client::Handlers::new().events(Updates(sender));
        let target = Target::from_text(&url).unwrap();
        let client = Client::connect_with(&target, &ClientOptions::new(), &handlers).await.unwrap();
        client.subscribe("note://one").await.unwrap();
        // The first start of it is that which looks, the second one that of the session.
        write(
            "second",
            "open('starts', 'a').write('1')\nif os.path.getsize('starts') == 2:\n    raise SystemExit(3)\n",
        );
        until(&lines, "reloaded: ");
        write("third", "");
        until(&lines, "reloaded: ");
        client.call_tool("third", json!({})).await.unwrap();
        let end = Instant::now() + PATIENCE;
        while told.try_recv().is_err() {
            assert!(Instant::now() < end, "the subscription is gone");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.close().await;
    });
}

#[test]
fn a_server_that_writes_code_is_not_started_for_ever() {
    let Some(python) = python() else { return eprintln!("left out: there is no Python (TRICORN_PYTHON)") };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.py");
    // As code generators do (pallets/werkzeug 1333).
    let server = |more: &str| {
        format!(
            "from tricorn import Server\n\nopen('made.py', 'w').write('x = 1')\nopen('starts', 'a').write('1')\napp = Server('demo')\n{more}"
        )
    };
    std::fs::write(&file, server("")).unwrap();
    let (_child, lines, _url) = run(folder.path(), &python);
    std::fs::write(&file, server("# another\n")).unwrap();
    until(&lines, "reloaded: ");
    let starts = || std::fs::read(folder.path().join("starts")).unwrap().len();
    std::thread::sleep(Duration::from_secs(1));
    let settled = starts();
    std::thread::sleep(Duration::from_secs(2));
    assert!(settled <= 4 && starts() == settled, "{settled}, then {}", starts());
}

#[test]
fn a_client_stays_connected_while_the_code_changes() {
    let Some(python) = python() else { return eprintln!("left out: there is no Python (TRICORN_PYTHON)") };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.py");
    write(&file, "a + b", "");
    let (mut child, lines, url) = run(folder.path(), &python);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&Target::from_text(&url).unwrap(), &ClientOptions::new()).await.unwrap();
        assert_eq!((names(&client).await, sum(&client).await), (vec!["add".to_owned()], "3".to_owned()));

        write(&file, "a + b + 100", "@app.tool\ndef sub(a: int) -> int:\n    return -a\n");
        assert_eq!(until(&lines, "reloaded: "), "reloaded: server.py changed: + tool sub");
        assert_eq!((names(&client).await.len(), sum(&client).await), (2, "103".to_owned()));

        write(&file, "a + b +", "");
        let error = until(&lines, "SyntaxError");
        assert!(error.contains("invalid syntax"), "{error}");
        assert_eq!(
            until(&lines, "not reloaded: "),
            "not reloaded: server.py changed: the server before the change goes on"
        );
        assert_eq!(sum(&client).await, "103");

        // Neither data nor what is installed is code.
        std::fs::write(folder.path().join("data.json"), "{}").unwrap();
        std::fs::create_dir_all(folder.path().join("node_modules/a")).unwrap();
        std::fs::write(folder.path().join("node_modules/a/index.js"), "").unwrap();
        write(&file, "a * b", "");
        assert_eq!(until(&lines, "reloaded: "), "reloaded: server.py changed: - tool sub");
        assert_eq!(sum(&client).await, "2");

        // A folder that came later is watched, too.
        std::fs::create_dir(folder.path().join("parts")).unwrap();
        std::fs::write(folder.path().join("parts/more.py"), "").unwrap();
        let line = until(&lines, "reloaded: ");
        assert!(line.contains("more.py"), "{line}");
        client.close().await;
    });
    #[cfg(unix)]
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    #[cfg(not(unix))]
    child.kill().unwrap();
    let status = child.wait().unwrap();
    #[cfg(unix)]
    assert_eq!(status.code(), Some(0));
    let _ = status;
}

#[test]
fn reload_needs_code() {
    for (words_after, why) in [
        (&["https://example.com/mcp"][..], "it is not started here: expected a file, a package or a command line"),
        (&["nothing.py"], "there is no file \"nothing.py\""),
        (&["nothing.py", "--record", "a.jsonl"], "a cassette is of one run of a server: leave out one of them"),
    ] {
        let words = command();
        let mut program = Command::new(&words[0]);
        let output = program.args(&words[1..]).args(["run", "--reload"]).args(words_after).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && said.contains(why) && output.stdout.is_empty(),
            "{words_after:?}: {said}"
        );
    }
}
