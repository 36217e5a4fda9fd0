//! `Server::run` as a process: this program plays the server, too.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tricorn::prelude::*;
use tricorn::{Events, NoEvents};

/// The longest anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Says on standard error when it is dropped.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        eprintln!("dropped");
    }
}

fn server() -> Server {
    Server::new("run")
        .tool("wait", "Wait for ever", |_: Nothing| async {
            // From here on it is a task: the signal must not find it halfway to becoming one.
            tokio::task::yield_now().await;
            let _dropped = Dropped;
            eprintln!("waiting");
            std::future::pending::<()>().await;
            Ok(String::new())
        })
        .tool("fail", "Fail", |_: Nothing| async { Ok("no number".parse::<u8>()?.to_string()) })
}

fn call(tool: &str) -> String {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}}}"#
    )
}

/// A process that serves, and the lines of its standard error.
struct Served {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Served {
    fn new(args: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(args)
            .env("TRICORN_TEST_SERVES", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// The next line that begins so, without its beginning.
    fn line(&self, beginning: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|e| panic!("no line {beginning:?}: {e}"));
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The status that the process ends with.
    fn status(mut self) -> Option<i32> {
        // Its standard error ends with it.
        let end = Instant::now() + PATIENCE;
        while self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
        if Instant::now() >= end {
            let _ = self.child.kill();
        }
        self.child.wait().unwrap().code()
    }
}

fn over_stdio(signal: Signal, status: i32) {
    let mut served = Served::new(&[]);
    let mut stdin = served.child.stdin.take().unwrap();
    writeln!(stdin, "{}", call("wait")).unwrap();
    served.line("waiting");
    served.signal(signal);
    served.line("dropped");
    assert_eq!(served.status(), Some(status));
}

#[cfg(feature = "http")]
fn over_http(signal: Signal, status: i32) {
    let served = Served::new(&["--http", "0"]);
    assert_eq!(served.line("tricorn: "), "careful", "where warnings go by default");
    let url = served.line("ready ");
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let body = call("wait");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: wait\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    served.line("waiting");
    served.signal(signal);
    served.line("dropped");
    assert_eq!(served.status(), Some(status));
}

fn at_the_end_of_input() {
    let mut served = Served::new(&["--other"]);
    let mut stdin = served.child.stdin.take().unwrap();
    writeln!(stdin, "{}", call("fail")).unwrap();
    assert_eq!(served.line("tricorn: tool \"fail\" failed: "), "ParseIntError: invalid digit found in string");
    drop(stdin);
    assert_eq!(served.status(), Some(0));
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    if std::env::var_os("TRICORN_TEST_SERVES").is_some() {
        Events::warning(&NoEvents, "careful");
        return server().run().await;
    }
    over_stdio(Signal::INT, 130);
    over_stdio(Signal::TERM, 0);
    #[cfg(feature = "http")]
    over_http(Signal::INT, 130);
    #[cfg(feature = "http")]
    over_http(Signal::TERM, 0);
    at_the_end_of_input();
    Ok(ExitCode::SUCCESS)
}
