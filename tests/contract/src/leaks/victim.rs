//! Clients that are killed in the middle of a call, or of a question to them: real processes, so that the kernel
//! closes what they held.

use super::http::Client;
use super::mix::Line as _;
use super::pipe;
use crate::Outcome;
use crate::launch;
use crate::proc::alive;
use crate::replay::outgoing::complete;
use crate::wire::http::Endpoint;
use crate::wire::stdio::Pipe;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// The other side of this module: `contract victim http URL legacy|modern|QUESTION`, or
/// `contract victim stdio call|QUESTION COMMAND…`, where QUESTION is the number of one. Says `started` and waits for its
/// end.
pub fn main(mut arguments: impl Iterator<Item = String>) -> Outcome<ExitCode> {
    match arguments.next().as_deref() {
        Some("http") => {
            let endpoint = Endpoint::parse(&arguments.next().unwrap_or_default())?;
            let what = arguments.next().unwrap_or_default();
            let mut exchange = match what.parse() {
                Ok(question) => Client::able(&endpoint, LIMIT)?.start_question(question)?,
                Err(_) => Client::open(&endpoint, what == "modern", LIMIT)?.start_slow()?,
            };
            println!("started 0");
            exchange.next(LIMIT)?;
        }
        Some("stdio") => {
            let what = arguments.next().unwrap_or_default();
            let command: Vec<String> = arguments.collect();
            let mut server = Pipe::open(&launch::stdio(&command, &[]))?;
            if let Ok(question) = what.parse() {
                let mut client = pipe::Client::open(server, LIMIT)?;
                client.start_question(question)?;
                println!("started {}", client.id());
                client.overhear()?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut call = json!({"id": 1, "method": "tools/call", "params": {
                "name": "slow", "arguments": {"ms": 600_000}, "_meta": {"progressToken": 1}}});
            complete(&mut call, true);
            server.send(call.to_string().as_bytes())?;
            server.next(LIMIT)?.ok_or("the server ended")?;
            println!("started {}", server.id());
            server.next(LIMIT)?;
        }
        _ => return Err("victim http|stdio …".into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Start a victim and wait until its call runs; the number it says.
fn start(arguments: &[&str]) -> Outcome<(Child, u32)> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("victim")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start a client: {error}"))?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or("no standard output")?;
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    match line.trim().strip_prefix("started ").and_then(|number| number.parse().ok()) {
        Some(number) => Ok((child, number)),
        None => {
            end(&mut child);
            Err(format!("a client did not get its call running: {line:?}"))
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Kill so many clients of an HTTP server in the middle of a call, or every second one of those that can be asked in the
/// middle of a question.
pub(super) fn kill(url: &str, modern: bool, count: usize) -> Outcome {
    for number in 0..count {
        let question = (number / 2).to_string();
        let what = match (modern, number % 2) {
            (true, _) => "modern",
            (false, 0) => "legacy",
            _ => &question,
        };
        let (mut child, _) = start(&["http", url, what])?;
        end(&mut child);
    }
    Ok(())
}

/// Kill clients that had started a stdio server: the server sees the end of its input and ends.
pub(super) fn orphans(command: &[String], count: usize) -> Outcome {
    for number in 0..count {
        let question = (number / 2).to_string();
        let mut arguments = vec!["stdio", if number % 2 == 0 { "call" } else { &question }];
        arguments.extend(command.iter().map(String::as_str));
        let (mut child, server) = start(&arguments)?;
        end(&mut child);
        let deadline = Instant::now() + Duration::from_secs(5);
        while alive(server) {
            if Instant::now() > deadline {
                return Err(format!("server {number} (process {server}) still runs 5 s after its client was killed"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}
