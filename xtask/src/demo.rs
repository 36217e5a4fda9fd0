//! `cargo xtask demo`: every language serves, every language calls, and so do programs that others wrote.

use crate::interop::{self, Client, ERAS, Target};
use crate::place::{self, Lang};
use crate::process::{self, Background};
use crate::report::{self, Table};
use crate::{setup, tool};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Line that a quickstart client prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    protocol_version: String,
    era: String,
    transport: String,
    result: i64,
    ms: f64,
}

/// Runs all cells; true if every one worked.
pub(crate) fn main() -> Result<bool> {
    tool::need(&Lang::ALL)?;
    let made = setup::languages(&Lang::ALL);
    let mut failures = Vec::new();
    for lang in Lang::ALL {
        if let Some(why) = made.why_not(lang) {
            failures.push(format!("{lang}: {why}"));
        }
    }
    let mut head = vec!["server \\ client"];
    head.extend(Lang::ALL.map(Lang::name));
    let mut table = Table::new(&head);
    for server in Lang::ALL {
        let mut row = vec![vec![server.name().to_owned()]];
        let absent = |lang| made.why_not(lang).is_some();
        if absent(server) {
            row.extend(Lang::ALL.map(|_| vec!["no server".to_owned()]));
        } else {
            report::step(format!("calling the {server} server"));
            let served = serve(server);
            for client in Lang::ALL {
                row.push(match absent(client) {
                    true => vec!["no client".to_owned()],
                    false => cell(server, client, &served, &mut failures),
                });
            }
        }
        table.row(row);
    }
    report::clear();
    report::line("what was negotiated, and one call of add(1, 2) there and back\n");
    report::line(table.to_string());
    others(&made, &mut failures)?;
    for failure in &failures {
        report::line(format!("failed: {failure}"));
    }
    report::line(if failures.is_empty() { "every cell worked" } else { "not every cell worked" });
    Ok(failures.is_empty())
}

/// A language's quickstart client against its own server: how many calls there were, and which failed.
pub(crate) fn quickstart(lang: Lang) -> (usize, Vec<String>) {
    let mut failures = Vec::new();
    let served = serve(lang);
    let calls = cell(lang, lang, &served, &mut failures).len();
    (calls, failures)
}

fn program(lang: Lang, which: &str) -> PathBuf {
    place::root().join(format!("examples/quickstart/{lang}/run-{which}"))
}

fn serve(lang: Lang) -> Result<(Background, String)> {
    let mut command = tool::command(program(lang, "server"));
    command.args(["--http", "127.0.0.1:0"]);
    Background::start(command, LIMIT, |line| line.strip_prefix("ready ").map(str::to_owned))
}

/// One client against one server: both transports, both eras.
fn cell(server: Lang, client: Lang, served: &Result<(Background, String)>, failures: &mut Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for transport in ["stdio", "http"] {
        for (revision, pinned) in ERAS {
            report::detail(&format!("{client} {transport} {revision}"));
            let target = match (transport, served) {
                ("stdio", _) => Ok(process::quote(&program(server, "server").to_string_lossy())),
                (_, Ok((_, url))) => Ok(url.clone()),
                (_, Err(error)) => Err(format!("the server does not start: {error:#}")),
            };
            match target.and_then(|t| ask(client, &t, pinned).map_err(|e| format!("{e:#}"))).and_then(|line| {
                let good = wrong(&line, transport, revision);
                good.map_or(Ok(line), Err)
            }) {
                Ok(line) => lines.push(format!("{} {:<5} {:>6.2} ms", line.protocol_version, transport, line.ms)),
                Err(why) => {
                    lines.push(format!("{revision} {transport:<5}    FAIL"));
                    failures.push(format!("{client} → {server} {transport} {revision}: {why}"));
                }
            }
        }
    }
    lines
}

fn ask(client: Lang, target: &str, revision: Option<&str>) -> Result<Line> {
    let mut command = tool::command(program(client, "client"));
    command.arg(target);
    if let Some(revision) = revision {
        command.args(["--revision", revision]);
    }
    let done = process::run_with(command, LIMIT, None, |_| {})?;
    if !done.ok() {
        bail!("{}", done.why());
    }
    parse(&done.stdout)
}

fn parse(stdout: &str) -> Result<Line> {
    let mut lines = stdout.lines().filter(|l| !l.trim().is_empty());
    match (lines.next(), lines.next()) {
        (Some(line), None) => Ok(serde_json::from_str(line)?),
        _ => bail!("not one line: {stdout:.200}"),
    }
}

/// Describes a line that is not as it should be.
fn wrong(line: &Line, transport: &str, revision: &str) -> Option<String> {
    let era = if revision >= "2026" { "modern" } else { "legacy" };
    let good = line.protocol_version == revision && line.era == era && line.transport == transport && line.result == 3;
    (!good).then(|| format!("the client reports {line:?}"))
}

/// Two servers that others wrote: their tools, and what they answer to real input.
fn others(made: &setup::Made, failures: &mut Vec<String>) -> Result<()> {
    let peers = setup::servers()?;
    for server in interop::published(&peers)? {
        if !["server-everything", "mcp-server-time"].contains(&server.name) {
            continue;
        }
        let mut told = false;
        for lang in Lang::ALL.into_iter().filter(|l| made.why_not(*l).is_none()) {
            report::step(format!("the {lang} client calls {}", server.name));
            let target = Target::Words(server.words.clone());
            let answered = Client::ours(lang).call(&target, None, &server.calls);
            let checked = answered.and_then(|said| server.check(&said).map(|()| said));
            let said = match checked {
                Ok(said) => said,
                Err(why) => {
                    failures.push(format!("{lang} → {}: {why}", server.name));
                    continue;
                }
            };
            if !told {
                told = true;
                report::line(format!("{} ({}): {}", server.name, said.protocol_version, said.tools().join(", ")));
                for (call, answer) in server.calls.iter().zip(said.texts()) {
                    let text: String = answer.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
                    report::line(format!("  {}({}) = {}", call.name, call.arguments, text));
                }
            }
            report::line(format!("  {lang}: {} tools, {} calls answered", said.tools().len(), said.texts().len()));
        }
    }
    report::line("");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"protocolVersion":"2026-07-28","era":"modern","transport":"http","result":3,"ms":0.4}"#;

    #[test]
    fn a_client_prints_one_line() {
        let line = parse(&format!("{LINE}\n")).expect("one line");
        assert_eq!(wrong(&line, "http", "2026-07-28"), None);
        assert!(wrong(&line, "stdio", "2026-07-28").is_some());
        assert!(wrong(&line, "http", "2025-11-25").is_some());
        assert!(parse(&format!("{LINE}\n{LINE}\n")).is_err());
        assert!(parse("").is_err());
    }
}
