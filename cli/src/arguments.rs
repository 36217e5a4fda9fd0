//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};

use crate::commands::doctor::Profile;
use crate::failure::{Failure, MISUSE, Outcome};
use crate::hosts;
use crate::launcher::Launcher;
use crate::output::{Screen, version};

/// Stands in the place of a target whose command line is given after `--`.
const AFTER_DASHES: &str = "\u{1}";

const TARGETS: &str = "\
A target is one of
  https://example.com/mcp      a URL
  server.py, server.py:app     a Python file, with the name of its server
  server.mjs, server.ts        a JavaScript or TypeScript file
  folder, folder/Cargo.toml    a package of Rust or Swift, which is built first
  mcp.json, mcp.json#weather   a configuration file, with the name of a server
  claude-desktop:weather       a server that an installed host has configured
  replay:session.jsonl         a cassette, which tricorn record has made
  … -- program argument …      a command line, after everything else";

const CODES: &str = "\
Exit status: 0 done, 1 the tool or the server said no, 2 misuse,
3 no connection, 4 a login is needed, 130 Ctrl-C";

/// Lists, calls and runs servers of the Model Context Protocol.
#[derive(Debug, Parser)]
#[command(
    name = "tricorn",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    styles = STYLES,
    after_help = AFTER
)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default())
    .usage(AnsiColor::Yellow.on_default())
    .literal(AnsiColor::Green.on_default());

const AFTER: &str = "\
A target is a URL, a file (server.py, server.py:app, server.mjs, Cargo.toml, mcp.json#name) or a command line after --

Examples:
  tricorn list server.py
  tricorn call https://example.com/mcp add a=1 b=2
  tricorn read notes://today -- npx some-server

`tricorn COMMAND --help` tells more of each.";

/// Commands, with their arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists the tools, resources, templates and prompts of a server.
    #[command(after_help = help("tricorn list server.py --tools\n  tricorn list --json -- npx some-server"))]
    List(List),
    /// Calls a tool.
    #[command(
        disable_help_flag = true,
        override_usage = "tricorn call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE|KEY:=JSON|@FILE.json]...",
        after_help = help(
            "tricorn call server.py add a=1 b=2\n  tricorn call server.py search words=a,b 'limits:={\"most\": 3}'\n  tricorn call server.py add --help\n  tricorn call add @arguments.json -- python server.py"
        )
    )]
    Call(Call),
    /// Reads a resource.
    #[command(after_help = help("tricorn read server.py notes://today\n  tricorn read server.py image://logo -o logo.png"))]
    Read(Read),
    /// Gets a prompt.
    #[command(after_help = help("tricorn prompt server.py review file=main.rs"))]
    Prompt(Prompt),
    /// Completes an argument of a prompt or a variable of a resource template.
    #[command(after_help = help(
        "tricorn complete server.py review language=py\n  tricorn complete server.py 'repo://{owner}/{name}' name=tri owner=ada"
    ))]
    Complete(Complete),
    /// Tells of changes at a server until Ctrl-C.
    #[command(after_help = help("tricorn listen https://example.com/mcp --uri notes://today"))]
    Listen(Listen),
    /// Asks a server for a sign of life.
    #[command(after_help = help("tricorn ping https://example.com/mcp"))]
    Ping(Ping),
    /// Lists, follows or cancels the tasks of a server.
    #[command(after_help = help("tricorn tasks https://example.com/mcp\n  tricorn tasks https://example.com/mcp 786f --result"))]
    Tasks(Tasks),
    /// Serves a target over standard streams or HTTP.
    #[command(after_help = help(
        "tricorn run server.py\n  tricorn run server.py --http 127.0.0.1:8000\n  tricorn run https://example.com/mcp\n  tricorn run --http 127.0.0.1:8000 -- npx some-server"
    ))]
    Run(Run),
    /// Serves a target over standard streams or HTTP, and records what passes as a cassette.
    #[command(after_help = help(
        "tricorn record server.py -o session.jsonl\n  tricorn record https://example.com/mcp -o session.jsonl --http 127.0.0.1:8000\n  tricorn call server.py add a=1 b=2 --record session.jsonl"
    ))]
    Record(Record),
    /// Serves a cassette over standard streams or HTTP, or sends its requests to a live server.
    #[command(after_help = help(
        "tricorn replay session.jsonl\n  tricorn replay session.jsonl --strict --http 127.0.0.1:8000\n  tricorn replay session.jsonl --against server.py\n  tricorn list replay:session.jsonl"
    ))]
    Replay(Replay),
    /// Shows what two cassettes answer differently.
    #[command(
        after_help = "Exit status: 0 no difference, 1 differences, 2 misuse\n\nExample:\n  tricorn diff old.jsonl new.jsonl"
    )]
    Diff(Diff),
    /// Packs a server as a bundle (.mcpb), and writes its entry for the registry (server.json).
    #[command(after_help = help(
        "tricorn pack server.py -o weather.mcpb\n  tricorn pack src/server.ts --env API_KEY=… --server-json server.json\n  tricorn pack https://example.com/mcp --name com.example/weather --server-json server.json"
    ))]
    Pack(Pack),
    /// Makes a new project: a server that runs, with a test and a file for CI.
    #[command(
        after_help = "Examples:\n  tricorn new my-server --lang python\n  tricorn new my-server --lang rust --dry-run"
    )]
    New(New),
    /// Logs in at a server with a browser, and keeps the login for the other commands.
    #[command(
        after_help = "Examples:\n  tricorn login https://example.com/mcp\n  tricorn login https://example.com/mcp --scope files:write --no-browser"
    )]
    Login(Login),
    /// Forgets the login at a server.
    #[command(after_help = "Example:\n  tricorn logout https://example.com/mcp")]
    Logout(Logins),
    /// Says whose login is stored for a server, and for how long.
    #[command(after_help = "Example:\n  tricorn whoami https://example.com/mcp")]
    Whoami(Logins),
    /// Prints the access token of the stored login, refreshed if it has expired.
    #[command(
        after_help = "Example:\n  curl -H \"Authorization: Bearer $(tricorn token https://example.com/mcp)\" https://example.com/mcp"
    )]
    Token(Logins),
    /// Opens a page in the browser that shows a server and every message.
    #[command(after_help = help(
        "tricorn inspect server.py\n  tricorn inspect https://example.com/mcp --no-open\n  tricorn inspect --port 6274 -- npx some-server"
    ))]
    Inspect(Inspect),
    /// Examines a server: what is wrong, what shows it, how it is mended.
    #[command(after_help = help(
        "tricorn doctor server.py\n  tricorn doctor https://example.com/mcp --json\n  tricorn doctor --fail-under 90 --junit report.xml -- npx some-server\n  tricorn doctor --http -- python server.py --port 8000"
    ))]
    Doctor(Doctor),
    /// Writes a completion script for a shell.
    #[command(after_help = "Example:\n  tricorn completions bash > ~/.local/share/bash-completion/completions/tricorn")]
    Completions(Completions),
    #[command(flatten)]
    Hosts(hosts::Command),
}

fn help(examples: &str) -> String {
    format!("{TARGETS}\n\n{CODES}\n\nExamples:\n  {examples}")
}

/// Options of all commands that connect to a server.
#[derive(Debug, Args, Default, Clone)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Gives up after so many seconds without an answer or progress; 0 for never
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Sends an HTTP header, "NAME: VALUE", with every request
    #[arg(long, short = 'H', value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
    /// Speaks this revision of the protocol only, or "legacy" or "modern" ones
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// Sets a variable, NAME=VALUE, in the environment of a server that is started
    #[arg(long, short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Answers the server's questions to a model: gets the request as JSON, prints the text
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) sampler: Option<String>,
    /// Shows log messages of this level and above: debug, info, notice, warning, error, …, none
    #[arg(long, value_name = "LEVEL", default_value = "info", hide_default_value = true)]
    pub(crate) log_level: String,
    /// Records what passes as a cassette in this file, which is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<String>,
    /// Leaves secrets in what is recorded
    #[arg(long)]
    pub(crate) no_redact: bool,
    #[arg(skip)]
    pub(crate) command: Vec<String>,
}

/// `tricorn list`
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Lists tools, and what else is asked for
    #[arg(long)]
    pub(crate) tools: bool,
    /// Lists resources, and what else is asked for
    #[arg(long)]
    pub(crate) resources: bool,
    /// Lists resource templates, and what else is asked for
    #[arg(long)]
    pub(crate) templates: bool,
    /// Lists prompts, and what else is asked for
    #[arg(long)]
    pub(crate) prompts: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn call`
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath, required_unless_present = "help")]
    pub(crate) target: Option<String>,
    /// The tool's name
    #[arg(value_name = "TOOL", required_unless_present = "help")]
    pub(crate) tool: Option<String>,
    /// Arguments: KEY=VALUE as the tool's schema has it, KEY:=JSON, KEY=@FILE for a text; for all a JSON object or @FILE.json (@- standard input)
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Prints the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Starts it as a task of the server, prints the task's id and does not wait
    #[arg(long)]
    pub(crate) task: bool,
    /// Puts images and sounds here; default: the system's folder for temporary files
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<std::path::PathBuf>,
    /// Shows the arguments of the tool, or without one this
    #[arg(long, short = 'h')]
    pub(crate) help: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn read`
#[derive(Debug, Args)]
pub(crate) struct Read {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The resource's URI
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// Writes what is read to this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<std::path::PathBuf>,
    /// Prints the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn prompt`
#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The prompt's name
    #[arg(value_name = "PROMPT")]
    pub(crate) name: String,
    /// Arguments, which are texts: KEY=VALUE, KEY=@FILE, @FILE.json for all
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Prints the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn complete`
#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The name of a prompt, or a resource template
    #[arg(value_name = "PROMPT|TEMPLATE")]
    pub(crate) reference: String,
    /// The argument to complete, with what is there of it
    #[arg(value_name = "KEY=BEGINNING")]
    pub(crate) argument: String,
    /// Arguments that are known already
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) others: Vec<String>,
    /// Prints the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn listen`
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Tells of this resource, too; without one, of all lists
    #[arg(long, value_name = "URI")]
    pub(crate) uri: Vec<String>,
    /// Tells of this task, too
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) task: Vec<String>,
    /// Ends after so many changes
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Prints JSON, a change on each line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn ping`
#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn tasks`
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// A task's id; without one all are listed
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    pub(crate) id: Option<String>,
    /// Waits for the task and prints its result
    #[arg(long, requires = "id", conflicts_with = "cancel")]
    pub(crate) result: bool,
    /// Cancels the task
    #[arg(long, requires = "id")]
    pub(crate) cancel: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Puts images and sounds of a result here; default: the system's folder for temporary files
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Serves HTTP there; HOST, or both, may be left out: 127.0.0.1:8000
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8000", require_equals = false)]
    pub(crate) http: Option<String>,
    /// Restarts the server when its code changes; clients stay connected
    #[arg(long)]
    pub(crate) reload: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn record`
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The cassette, which is replaced if there is one
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: String,
    /// Serves HTTP there, for one session at a time; HOST, or both, may be left out: 127.0.0.1:8000
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8000", require_equals = false)]
    pub(crate) http: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The cassette
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
    /// Gives each answer once, and only to the request that was recorded
    #[arg(long)]
    pub(crate) strict: bool,
    /// Serves HTTP there; HOST, or both, may be left out: 127.0.0.1:8000
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8000", require_equals = false)]
    pub(crate) http: Option<String>,
    /// Sends the recorded requests to this server, and shows what it answers differently
    #[arg(long, value_name = "TARGET", value_hint = ValueHint::AnyPath, conflicts_with_all = ["http", "strict"])]
    pub(crate) against: Option<String>,
    /// Prints the differences as JSON
    #[arg(long, requires = "against")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn diff`
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A cassette
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) first: String,
    /// Another one
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) second: String,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tricorn pack`
#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The server: a file or a package; for an entry of the registry alone, a URL
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The bundle; default: NAME.mcpb here
    #[arg(long, short, value_name = "FILE.mcpb", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<std::path::PathBuf>,
    /// Author of the server; default: the author in the project's file, else git's user.name
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// Writes the registry's entry to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) server_json: Option<std::path::PathBuf>,
    /// The server's name in the registry, OWNER/NAME; default: by the repository on GitHub
    #[arg(long, value_name = "OWNER/NAME", requires = "server_json")]
    pub(crate) name: Option<String>,
    /// The address that the bundle is going to have; default: by the repository on GitHub
    #[arg(long, value_name = "URL", requires = "server_json")]
    pub(crate) download: Option<String>,
    /// Does not unpack and start the bundle
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn inspect`
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Serves the page on this port of 127.0.0.1; default: one that is free
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Prints the link and opens no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The server; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes a JUnit report there, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<std::path::PathBuf>,
    /// Fails below this score, of 100
    #[arg(long, value_name = "SCORE", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) fail_under: u32,
    /// Looks at schemas as these hosts do; all where none is named
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_enum)]
    pub(crate) profile: Vec<Profile>,
    /// Calls tools that do not say that they only read, too
    #[arg(long)]
    pub(crate) call: bool,
    /// Starts the target, which serves HTTP: at this URL, else at the first one that it names in its output
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub(crate) http: Option<String>,
    /// Gets tokens as this client, whose secret is in TRICORN_CLIENT_SECRET: one for the server and one for another
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// `tricorn new`
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The project's name, and its folder's: lower-case words with hyphens between
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The language
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// Lists the files without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Languages of new projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    #[value(alias = "py")]
    Python,
    #[value(alias = "ts")]
    Typescript,
    #[value(alias = "rs")]
    Rust,
    Swift,
}

/// `tricorn login`
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's URL, or its name in a configuration: mcp.json#name, cursor:name
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,
    /// Asks for this scope, besides what the server wants
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// The program's id at the authorization server, where none can be registered; its secret is in TRICORN_CLIENT_SECRET
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The authorization server to log in at, where the server names several or none
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// The port of this machine that the browser comes back to
    #[arg(long, value_name = "PORT")]
    pub(crate) redirect_port: Option<u16>,
    /// Prints the address of the login page instead of opening it
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Waits so many seconds for the user
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300", allow_negative_numbers = true)]
    pub(crate) timeout: Duration,
    /// Sends an HTTP header, "NAME: VALUE", with every request
    #[arg(long, short = 'H', value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tricorn logout`, `whoami`, `token`
#[derive(Debug, Args)]
pub(crate) struct Logins {
    /// The server's URL, or its name in a configuration: mcp.json#name, cursor:name
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tricorn completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected seconds, such as 30 or 0.5, got {text:?}");
    let number: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number).map_err(|_| wrong())
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        // The text may be a secret.
        _ => Err("expected \"NAME: VALUE\"".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl Connection {
    /// True if the target is a command line.
    pub(crate) fn is_command(target: &str) -> bool {
        target == AFTER_DASHES
    }
}

/// Reads the command line. `None` when everything that was asked for has been printed.
pub(crate) fn read(arguments: Vec<OsString>, launcher: &Launcher, screen: &Screen) -> Outcome<Option<Command>> {
    // The command line of an entry is an argument like others.
    let is_install = arguments.first().is_some_and(|word| word == "install");
    let (mut own, command) = if is_install {
        (crate::hosts::with_dashes(arguments).map_err(Failure::misuse)?, None)
    } else {
        split(arguments)?
    };
    if command.is_some() {
        const CONNECTING: [&str; 12] = [
            "list", "call", "read", "prompt", "complete", "listen", "ping", "tasks", "doctor", "run", "record",
            "inspect",
        ];
        match own.first().and_then(|word| word.to_str()) {
            None => return Err(Failure::misuse(format!("a command is missing before --: {}", CONNECTING.join(", ")))),
            Some(
                "uninstall" | "discover" | "replay" | "diff" | "completions" | "new" | "login" | "logout" | "whoami"
                | "token",
            ) => {
                return Err(Failure::misuse("nothing may follow after -- here"));
            }
            _ => {}
        }
        if let Some(target) = also_named(&own) {
            return Err(Failure::misuse(two_targets(target, command.as_deref().unwrap_or_default())));
        }
        // After the name of the command, where the target's place is.
        own.insert(own.len().min(1), AFTER_DASHES.into());
    }
    let bare = bare_command(&own, launcher);
    let words: Vec<_> = own.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = std::iter::once(launcher.name().into()).chain(own);
    let parsed = definition(launcher).try_get_matches_from(line).and_then(|found| Line::from_arg_matches(&found));
    match parsed {
        Ok(Line { command: mut found }) => {
            match (found.connection_mut(), command) {
                (Some(connection), Some(command)) => connection.command = command,
                (None, Some(_)) => return Err(Failure::misuse("nothing may follow after -- here")),
                _ => {}
            }
            Ok(Some(found))
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            screen.styled_error(&error.render());
            Err(Failure::silent(MISUSE))
        }
        Err(error) if error.kind() == ErrorKind::UnknownArgument && bare.is_some() => {
            let words = bare.unwrap_or_default();
            Err(Failure::misuse(format!("a command line comes after everything else: … -- {words}")))
        }
        Err(error) if error.use_stderr() => {
            let said = as_argument(&error, &words, launcher).unwrap_or_else(|| on_one_line(&error, &words, launcher));
            Err(Failure::misuse(said))
        }
        Err(error) => {
            screen.styled(&error.render());
            Ok(None)
        }
    }
}

/// A target before `--`, which there is one too many of.
fn also_named(own: &[OsString]) -> Option<&str> {
    const CODE: [&str; 8] = ["py", "pyw", "js", "mjs", "cjs", "ts", "mts", "cts"];
    let is_target = |word: &str| {
        let path = crate::targets::parts(word).0;
        let is_code = path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| CODE.contains(&ending));
        is_code && path.is_file()
    };
    let pairs = own.iter().zip(own.iter().skip(1));
    let words = pairs.filter(|(before, _)| *before != "-o" && *before != "--output");
    words.filter_map(|(_, word)| word.to_str()).find(|word| is_target(word))
}

/// The command line that stands without `--` in the place of the target, after options that there are: one that is not
/// known is its own.
fn bare_command(own: &[OsString], launcher: &Launcher) -> Option<String> {
    let words: Option<Vec<_>> = own.iter().map(|word| word.to_str()).collect();
    let words = words?;
    // Most command lines have none of it.
    if !words.iter().skip(1).any(|word| crate::hosts::is_runner(word)) {
        return None;
    }
    let mut all = definition(launcher);
    all.build();
    let command = all.find_subcommand(words.first()?)?;
    if command.get_positionals().next()?.get_id() != "target" {
        return None;
    }
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let name = word.split('=').next().unwrap_or(word);
        let is_meant = |option: &&clap::Arg| match name.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => option.get_short().is_some_and(|short| name.chars().nth(1) == Some(short)),
        };
        let option = command.get_arguments().filter(|option| !option.is_positional()).find(is_meant)?;
        let is_alone = if name.starts_with("--") { name == *word } else { word.chars().count() == 2 };
        let takes = option.get_action().takes_values() && is_alone && !option.is_require_equals_set();
        at += if takes { 2 } else { 1 };
    }
    let words = words.get(at..).filter(|words| words.first().is_some_and(|word| crate::hosts::is_runner(word)))?;
    shlex::try_join(words.iter().copied()).ok()
}

/// Says how a file gets arguments.
fn two_targets(target: &str, command: &[String]) -> String {
    let path = crate::targets::parts(target).0;
    let is_python = path.extension().is_some_and(|ending| ending == "py" || ending == "pyw");
    let program = if is_python { "python" } else { "node" };
    let arguments = shlex::try_join(command.iter().map(String::as_str)).unwrap_or_default();
    format!(
        "{target} and a command line after -- are two targets; a file gets arguments by a command line: -- {program} {} {arguments}",
        path.display()
    )
}

/// Says how an argument of a tool or a prompt is given, where one stands as an option: `count=5`.
fn as_argument(error: &clap::Error, words: &[String], launcher: &Launcher) -> Option<String> {
    let command = words.first().filter(|word| matches!(word.as_str(), "call" | "prompt"))?;
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = option.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let name = name.split('=').next().filter(|name| !name.is_empty())?;
    let mut all = definition(launcher);
    all.build();
    let known: Vec<_> = all.find_subcommand(command)?.get_arguments().filter_map(clap::Arg::get_long).collect();
    let begin = "unexpected argument";
    let near = tricorn::bridge::meant(name, &known).into_iter().find(|near| near.chars().next() == name.chars().next());
    if let Some(near) = near {
        return Some(format!("{begin} '--{name}' found; did you mean --{near}, or the argument {name}=VALUE?"));
    }
    let inline = format!("--{name}=");
    let at = words.iter().position(|word| *word == format!("--{name}") || word.starts_with(&inline))?;
    let value = words.get(at).and_then(|word| word.strip_prefix(&inline));
    let next = || words.get(at + 1).map(String::as_str).filter(|word| !word.starts_with('-') && *word != AFTER_DASHES);
    let value = shlex::try_quote(value.or_else(next).unwrap_or("VALUE")).ok()?;
    let what = if command == "call" { "tool" } else { "prompt" };
    Some(format!("{begin} '--{name}' found; an argument of the {what} stands without dashes: {name}={value}"))
}

/// Puts an error that clap prints on several lines on one.
fn on_one_line(error: &clap::Error, words: &[String], launcher: &Launcher) -> String {
    if let (ErrorKind::ValueValidation, Some(ContextValue::String(option)), Some(why)) =
        (error.kind(), error.get(ContextKind::InvalidArg), std::error::Error::source(error))
    {
        // The value may be a secret.
        return format!("{option}: {why}");
    }
    let text = error.to_string();
    let said = text.strip_prefix("error: ").unwrap_or(&text);
    let said = said.split("\n\nUsage:").next().unwrap_or(said).split("\n\nFor more").next().unwrap_or(said);
    let said: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = said.join(" ").replace(" tip: ", "; ");
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    // `Usage: tricorn call [OPTIONS]`
    let command = usage.split_whitespace().nth(2).filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    // Errors of values do not have it.
    let is_command = |word: &&str| definition(launcher).find_subcommand(word).is_some();
    let first = || words.first().map(String::as_str).filter(is_command);
    let command = command.or_else(first).map(|command| format!(" {command}")).unwrap_or_default();
    format!("{said}; {}{command} --help tells more", launcher.name())
}

/// Prints the help of one command.
pub(crate) fn print_help(name: &str, launcher: &Launcher, screen: &Screen) {
    let mut all = definition(launcher);
    all.build();
    if let Some(command) = all.find_subcommand_mut(name) {
        screen.styled(&command.render_help());
    }
}

/// The whole command line, as clap knows it.
pub(crate) fn definition(launcher: &Launcher) -> clap::Command {
    let name = launcher.name().to_owned();
    Line::command().name(name.clone()).bin_name(name).version(version::text(launcher))
}

/// Takes off what follows after `--`.
fn split(mut arguments: Vec<OsString>) -> Outcome<(Vec<OsString>, Option<Vec<String>>)> {
    let Some(at) = arguments.iter().position(|word| word == "--") else { return Ok((arguments, None)) };
    let words = arguments.split_off(at).into_iter().skip(1);
    let words: Result<Vec<_>, _> = words.map(OsString::into_string).collect();
    match words {
        Ok(words) if words.is_empty() => Err(Failure::misuse("after -- a program is expected, and its arguments")),
        Ok(words) => Ok((arguments, Some(words))),
        Err(word) => Err(Failure::misuse(format!("{word:?} is not UTF-8"))),
    }
}

impl Command {
    fn connection_mut(&mut self) -> Option<&mut Connection> {
        Some(match self {
            Self::List(List { connection, .. })
            | Self::Call(Call { connection, .. })
            | Self::Read(Read { connection, .. })
            | Self::Prompt(Prompt { connection, .. })
            | Self::Complete(Complete { connection, .. })
            | Self::Listen(Listen { connection, .. })
            | Self::Ping(Ping { connection, .. })
            | Self::Tasks(Tasks { connection, .. })
            | Self::Doctor(Doctor { connection, .. })
            | Self::Inspect(Inspect { connection, .. })
            | Self::Run(Run { connection, .. })
            | Self::Record(Record { connection, .. })
            | Self::Replay(Replay { connection, .. })
            | Self::Pack(Pack { connection, .. }) => connection,
            Self::New(_)
            | Self::Diff(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Whoami(_)
            | Self::Token(_)
            | Self::Completions(_)
            | Self::Hosts(_) => return None,
        })
    }
}
