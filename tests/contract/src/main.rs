//! `contract`: the black-box suite. Each subcommand ends with `N passed, M failed, K skipped`.
#![allow(clippy::print_stdout, reason = "a command-line tool: its report is its standard output")]

use contract::options::Options;
use contract::proxy;
use contract::replay::{self, BAD};
use contract::report::Report;
use contract::{
    Outcome, attacks, bad, cases, cassettes, coverage, guides, launchers, leaks, logins, peer, stateless, together,
};
use std::process::ExitCode;

const USAGE: &str =
    "contract transcripts|bad-input|launchers|leaks|cases|cuts|attacks|logins|guides|stateless|together --lang rust|python|node|swift [--transport stdio|http]
         [--only GLOB] [--server COMMAND] [--timeout SECONDS] [--verbose]
  transcripts   replay tests/transcripts against the fixture server
  bad-input     tests/transcripts/bad and broken HTTP: an error each, and life goes on
  launchers     servers start with a ready line and end on EOF and SIGTERM
  leaks         [--calls N --cancels N --sessions N --rounds N --kills N --streams N --tasks N --orphans N]
  cases         tests/cases against a runner of the language [--against LANG]
  cuts          the cases with a proxy that breaks connections: the language's client with a server
                in Rust, a client in Rust with the language's server
  attacks       [--mount none|KIND] tests/cases/attacks: who gets into a protected server, over HTTP, and who does
                not; where it listens itself (none) and where it is mounted
  logins        [--others N] the language's client and protected server with a real authorization server
                (tests/auth/provider), and N scenes with each official SDK in the place of one of them (all)
  guides        the guides' protected server and the program that logs in, with the same one, a browser, nginx
                and a desktop's keyring
  stateless     [--requests N --front nginx|own] two processes with one secret behind a round-robin proxy
  together      clients of all revisions at once: on one port, and two of them on one pipe
contract cassettes [--lang LANG --among LANG,LANG --keep FOLDER]
  every fixture server recorded by the clients of all languages (of --among) and played by them, with equal results and
  no secret in a file; --lang: servers of this language only
contract coverage [write]
  tests/requirements.yaml: every requirement proved in every language, or a reason; docs/parity.md says the same
contract peer SCRIPT --stdio | --http HOST:PORT
  play the server's side of a script (used by cases)
contract proxy RULES URL COMMAND...
  run the command, {proxy} in it replaced by the URL of a proxy that breaks connections by the rules (used by interop)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    match dispatch(&command, arguments) {
        Ok(code) => code,
        Err(reason) => {
            eprintln!("contract {command}: {reason}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(command: &str, arguments: impl Iterator<Item = String>) -> Outcome<ExitCode> {
    let own: &[&str] = match command {
        "leaks" => &["calls", "cancels", "sessions", "rounds", "kills", "streams", "tasks", "orphans"],
        "cases" => &["against"],
        "cassettes" => &["among", "keep"],
        "stateless" => &["requests", "front"],
        "attacks" => &["mount"],
        "logins" => &["others"],
        "peer" => return peer::main(arguments),
        "proxy" => return proxy::main(arguments),
        "victim" => return leaks::victim::main(arguments),
        "transcripts" | "bad-input" | "launchers" | "cuts" | "guides" | "together" | "coverage" => &[],
        _ => return Err(format!("what to do?\n{USAGE}")),
    };
    let options = Options::parse(arguments, own)?;
    let mut report = Report::new(options.verbose);
    match command {
        "transcripts" => replay::run(&options, |name| !name.starts_with(BAD), &mut report)?,
        "bad-input" => bad::run(&options, &mut report)?,
        "launchers" => launchers::run(&options, &mut report)?,
        "leaks" => leaks::run(&options, &mut report)?,
        "cases" => cases::run(&options, &mut report)?,
        "cassettes" => cassettes::run(&options, &mut report)?,
        "cuts" => cases::run_cuts(&options, &mut report)?,
        "attacks" => attacks::run(&options, &mut report)?,
        "logins" => logins::run(&options, &mut report)?,
        "guides" => guides::run(&options, &mut report)?,
        "stateless" => stateless::run(&options, &mut report)?,
        "together" => together::run(&options, &mut report)?,
        _ => coverage::run(&options, &mut report)?,
    }
    Ok(report.finish())
}
