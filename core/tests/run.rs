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
        .tool("child", "Start one that reads its input to the end", |_: Nothing| async {
            let child = Command::new("sh").args(["-c", "cat | wc -c"]).stdout(Stdio::piped()).spawn()?;
            let count = tokio::task::spawn_blocking(|| child.wait_with_output()).await??;
            Ok(String::from_utf8_lossy(&count.stdout).trim().to_owned())
        })
        .tool("line", "Read a line", |_: Nothing| async {
            Ok(format!("{} bytes", std::io::stdin().read_line(&mut String::new())?))
        })
        .tool("print", "Print 8 KiB", |_: Nothing| async {
            writeln!(std::io::stdout(), "{}", "x".repeat(8191))?;
            Err::<String, _>(HandlerError::new("and fail"))
        })
}

fn call(tool: &str) -> String {
    request(1, tool)
}

fn request(id: usize, tool: &str) -> String {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}}}"#
    )
}

/// A process that serves, and the lines of its standard error.
struct Served {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Served {
    fn new(args: &[&str]) -> Self {
        Self::of(Command::new(std::env::current_exe().unwrap()).args(args))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command
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

/// As `nohup` starts it.
fn a_terminal_that_ends_is_ignored() {
    let script = "trap '' HUP; exec \"$0\"";
    let mut served = Served::of(Command::new("sh").args(["-c", script]).arg(std::env::current_exe().unwrap()));
    let mut stdin = served.child.stdin.take().unwrap();
    writeln!(stdin, "{}", call("wait")).unwrap();
    served.line("waiting");
    served.signal(Signal::HUP);
    writeln!(stdin, "{}", request(2, "fail")).unwrap();
    served.line("tricorn: tool \"fail\" failed: ");
    served.signal(Signal::TERM);
    assert_eq!(served.status(), Some(0));
}

fn at_the_end_of_input() {
    let mut served = Served::new(&["--other"]);
    let mut stdin = served.child.stdin.take().unwrap();
    writeln!(stdin, "{}", call("fail")).unwrap();
    assert_eq!(served.line("tricorn: tool \"fail\" failed: "), "ParseIntError: invalid digit found in string");
    drop(stdin);
    assert_eq!(served.status(), Some(0));
}

/// A process that serves, of whose standard error nobody hears.
struct Talking {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    answers: mpsc::Receiver<serde_json::Value>,
}

impl Talking {
    fn new(stderr: impl Into<Stdio>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("TRICORN_TEST_SERVES", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(serde_json::from_str(&line).unwrap()))
        });
        Self { child, stdin, answers }
    }

    /// Asks all of them at once; the texts of the answers in the order of the questions.
    fn ask(&mut self, tools: &[&str]) -> Vec<String> {
        let stdin = self.stdin.as_mut().unwrap();
        for (id, tool) in tools.iter().enumerate() {
            writeln!(stdin, "{}", request(id, tool)).unwrap();
        }
        let mut texts = vec![String::new(); tools.len()];
        for _ in tools {
            let answer = self.answers.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("no answer: {e}"));
            let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
            texts[id] = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        }
        texts
    }

    /// The status that it ends with.
    fn status(mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() >= end {
                let _ = self.child.kill();
                panic!("it is still there");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn children_read_nothing_of_the_protocol() {
    let mut served = Talking::new(Stdio::null());
    let mut tools = vec!["line"; 100];
    tools[0] = "child";
    let texts = served.ask(&tools);
    assert_eq!(texts[0], "0");
    assert!(texts[1..].iter().all(|text| text == "0 bytes"), "{texts:?}");
    drop(served.stdin.take());
    assert_eq!(served.status(), Some(0));
}

/// 100 calls print far more than all pipes hold.
fn nobody_reads_standard_error(signal: Option<Signal>) {
    let (_unread, stderr) = std::io::pipe().unwrap();
    let mut served = Talking::new(stderr);
    let texts = served.ask(&["print"; 100]);
    assert!(texts.iter().all(|text| text == "and fail"), "{texts:?}");
    match signal {
        Some(signal) => kill_process(Pid::from_child(&served.child), signal).unwrap(),
        None => drop(served.stdin.take()),
    }
    assert_eq!(served.status(), Some(0));
}

fn standard_error_takes_nothing() {
    for stderr in [std::fs::File::options().write(true).open("/dev/full").ok().map(Stdio::from), closed_pipe()] {
        let Some(stderr) = stderr else { continue };
        let mut served = Talking::new(stderr);
        assert_eq!(served.ask(&["print", "print", "print"]), ["and fail"; 3]);
        drop(served.stdin.take());
        assert_eq!(served.status(), Some(0));
    }
}

/// Nobody will ever read it.
fn closed_pipe() -> Option<Stdio> {
    let (_, writer) = std::io::pipe().unwrap();
    Some(writer.into())
}

fn nobody_reads_standard_output() {
    for busy in [false, true] {
        let (reader, stdout) = std::io::pipe().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("TRICORN_TEST_SERVES", "1").stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take().unwrap());
        if busy {
            writeln!(stdin.as_ref().unwrap(), "{}", call("wait")).unwrap();
            assert!(BufReader::new(stderr).lines().map_while(Result::ok).any(|line| line == "waiting"));
        }
        drop(reader);
        let (_never, answers) = mpsc::channel();
        // Its input stays open.
        assert_eq!(Talking { child, stdin, answers }.status(), Some(0), "busy: {busy}");
    }
}

/// As in Node, whose standard streams close where another program begins.
async fn connects() -> tricorn::Result<ExitCode> {
    use rustix::io::{FdFlags, fcntl_setfd};
    fcntl_setfd(rustix::stdio::stderr(), FdFlags::CLOEXEC).unwrap();
    let script = "echo real words >&2; exec 3<>/dev/null; [ -e /dev/fd/2 ] || exit 3";
    let failed = Client::connect(&Target::command("sh", ["-c", script]), &ClientOptions::default())
        .await
        .expect_err("no server");
    assert!(failed.message().contains("exit status: 0"), "{}", failed.message());
    Ok(ExitCode::SUCCESS)
}

fn a_child_has_a_standard_error() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended = command.env("TRICORN_TEST_SERVES", "connects").stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8_lossy(&ended.stderr);
    // Started again for the second question.
    assert!(!said.is_empty() && said.lines().all(|line| line == "real words"), "{said}");
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    if std::env::var_os("TRICORN_TEST_SERVES").is_some_and(|what| what == "connects") {
        return connects().await;
    }
    if std::env::var_os("TRICORN_TEST_SERVES").is_some() {
        Events::warning(&NoEvents, "careful");
        return server().run().await;
    }
    over_stdio(Signal::INT, 130);
    over_stdio(Signal::TERM, 0);
    #[cfg(target_os = "linux")]
    {
        // Under `nohup` the child would ignore it, too.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 0 {
            over_stdio(Signal::HUP, 129);
        }
        a_terminal_that_ends_is_ignored();
    }
    #[cfg(feature = "http")]
    over_http(Signal::INT, 130);
    #[cfg(feature = "http")]
    over_http(Signal::TERM, 0);
    at_the_end_of_input();
    children_read_nothing_of_the_protocol();
    nobody_reads_standard_error(None);
    nobody_reads_standard_error(Some(Signal::TERM));
    standard_error_takes_nothing();
    nobody_reads_standard_output();
    a_child_has_a_standard_error();
    Ok(ExitCode::SUCCESS)
}
