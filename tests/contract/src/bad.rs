//! Bad input. Messages that are wrong are transcripts (`tests/transcripts/bad`); what is wrong
//! below them, in the HTTP itself, is the table here. After each of them a valid call works,
//! and in the end no descriptor, session or call is left over.

mod broken;

use crate::launch::{self, Listening};
use crate::options::Options;
use crate::proc::{Footprint, Tolerance};
use crate::replay::{self, BAD};
use crate::report::Report;
use crate::script::Transport;
use crate::wire::http::{Connection, Exchange, Request};
use crate::{Outcome, pattern};
use broken::{Case, Then};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Descriptors may differ by what is in the act of closing; bad input must not cost memory
/// either, but a first 4 MiB body makes an allocator keep pages: 16 MiB.
const TOLERANCE: Tolerance = Tolerance { percent: 5, memory: 16 * 1024, threads: 2, descriptors: 4 };

/// Transcripts first, then the table.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    replay::run(options, |name| name.starts_with(BAD), report)?;
    if options.transport == Some(Transport::Stdio) {
        return Ok(());
    }
    let command = launch::server(options)?;
    let mut server = Listening::start(&command, &[])?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    live(&server, options.timeout)?;
    let before = Footprint::of_group(server.id())?;
    for case in broken::cases(&server.endpoint) {
        let name = format!("{language} http {}", case.name);
        if !options.wants(&name) {
            continue;
        }
        let outcome = attempt(&server, &case, options.timeout).and_then(|()| {
            live(&server, options.timeout).map_err(|reason| format!("the valid call after it: {reason}"))
        });
        report.record(&name, outcome);
        if !server.alive() {
            report.fail(&format!("{name} (afterwards)"), "the server died");
            server = Listening::start(&command, &[])?;
        }
    }
    report.record(&format!("{language} http bad input leaves nothing behind"), nothing_left(&server, before, options));
    Ok(())
}

fn nothing_left(server: &Listening, before: Footprint, options: &Options) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        live(server, options.timeout)?;
        let growth = Footprint::of_group(server.id())?.growth(before, TOLERANCE);
        if growth.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(growth.join("; "));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A valid call on a new connection.
fn live(server: &Listening, limit: Duration) -> Outcome {
    let request = good_call(&server.endpoint.path);
    let mut exchange = Exchange::start(Connection::open(&server.endpoint)?, &request, &server.endpoint.authority)?;
    let answer = exchange.next(limit)?.ok_or("no answer")?;
    is_the_text(&answer)
}

fn is_the_text(answer: &Value) -> Outcome {
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    if text == Some("This is a simple text response for testing.") { Ok(()) } else { Err(pattern::brief(answer)) }
}

/// A modern call of the simplest tool.
fn good_call(path: &str) -> Request {
    let mut meta = pattern::modern_meta();
    meta.insert("com.example/n".into(), 1.into());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_simple_text", "arguments": {}, "_meta": meta}});
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", pattern::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "test_simple_text"),
    ];
    Request {
        method: "POST".into(),
        path: path.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: Some(message.to_string().into_bytes()),
    }
}

fn attempt(server: &Listening, case: &Case, limit: Duration) -> Outcome {
    let mut connection = Connection::open(&server.endpoint)?;
    connection.send(&case.bytes)?;
    let (codes, count) = match &case.then {
        Then::HangUp => return Ok(()),
        Then::Status(codes) => (*codes, 1),
        Then::StatusOrClosed(codes) => {
            let mut exchange = Exchange::raw(connection, false);
            return match exchange.head(limit) {
                Ok(head) if codes.contains(&head.status) => Ok(()),
                Ok(head) => Err(format!("status {}, not {codes:?} or a closed connection", head.status)),
                Err(reason) if reason.contains("hung up") => Ok(()),
                Err(reason) => Err(reason),
            };
        }
        Then::Answers(count) => (&[200][..], *count),
    };
    for _ in 0..count {
        let mut exchange = Exchange::raw(connection, case.without_body);
        let status = exchange.head(limit)?.status;
        if !codes.contains(&status) {
            let body = exchange.body(limit).unwrap_or_default();
            let body = pattern::shorten(&String::from_utf8_lossy(&body));
            return Err(format!("status {status}, not {codes:?}: {body}"));
        }
        if count == 1 {
            return Ok(());
        }
        is_the_text(&exchange.next(limit)?.ok_or("no answer")?)?;
        exchange.next(limit)?;
        match exchange.recycle() {
            Some(next) => connection = next,
            None => return Err("the connection was not kept".into()),
        }
    }
    Ok(())
}
