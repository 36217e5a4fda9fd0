//! `cargo xtask interop`: ours against the official SDKs, both directions, both eras, both transports.
//!
//! The contract of the programs is in `tests/interop/README.md`.

mod check;
mod party;

use crate::place::Lang;
use crate::process::Background;
use crate::report::{self, Counts, Table};
use crate::{setup, tool};
use anyhow::Result;
use check::{Call, Expect, Said};
use party::Server;
pub(crate) use party::{Client, Target};

/// Negotiated newest first, and pinned to the last revision with a handshake.
pub(crate) const ERAS: [(&str, Option<&str>); 2] = [("2026-07-28", None), ("2025-11-25", Some("2025-11-25"))];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
}

impl Transport {
    const ALL: [Self; 2] = [Self::Stdio, Self::Http];

    fn name(self) -> &'static str {
        if self == Self::Stdio { "stdio" } else { "http" }
    }
}

/// What the whole run came to.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<String>,
    pub(crate) tables: String,
}

/// The task by itself.
pub(crate) fn main(langs: &[Lang], control: bool) -> Result<bool> {
    let outcome = if control {
        tool::need(&[Lang::Python, Lang::Node])?;
        controls()?
    } else {
        tool::need(langs)?;
        setup::languages(langs).all_ready()?;
        run(langs)?
    };
    report::clear();
    report::line(outcome.tables);
    for failure in &outcome.failures {
        report::line(format!("failed: {failure}"));
    }
    report::line(format!("{} passed, {} failed", outcome.counts.passed, outcome.counts.failed));
    Ok(outcome.counts.failed == 0)
}

/// The peers against each other and against the published servers: what fails here is no defect of ours.
fn controls() -> Result<Outcome> {
    let peers = setup::peers()?;
    let (servers, clients) = theirs(&peers);
    let mut outcome = Outcome::default();
    outcome.grid("official servers, official clients", &servers, &clients);
    outcome.published(&clients, &peers)?;
    Ok(outcome)
}

fn theirs(peers: &setup::Peers) -> (Vec<Server>, Vec<Client>) {
    party::PEERS.iter().map(|p| (Server::theirs(*p, peers), Client::theirs(*p, peers))).unzip()
}

/// Every pair for these languages.
pub(crate) fn run(langs: &[Lang]) -> Result<Outcome> {
    let peers = setup::peers()?;
    let (their_servers, their_clients) = theirs(&peers);
    let our_clients: Vec<Client> = langs.iter().map(|l| Client::ours(*l)).collect();
    let our_servers: Vec<Server> = langs.iter().map(|l| Server::ours(*l)).collect();
    let mut outcome = Outcome::default();
    outcome.grid("our servers, official clients", &our_servers, &their_clients);
    outcome.grid("official servers, our clients", &their_servers, &our_clients);
    outcome.published(&our_clients, &peers)?;
    Ok(outcome)
}

impl Outcome {
    fn grid(&mut self, title: &str, servers: &[Server], clients: &[Client]) {
        let mut head = vec!["server \\ client"];
        head.extend(clients.iter().map(|c| c.party.name()));
        let mut table = Table::new(&head);
        for server in servers {
            report::step(format!("interop with the server {}", server.party));
            // One HTTP server for all clients: both eras live on one endpoint.
            let served = server.serve();
            let mut row = vec![vec![server.party.name().to_owned()]];
            row.extend(clients.iter().map(|client| self.cell(server, &served, client)));
            table.row(row);
            drop(served);
        }
        self.tables.push_str(&format!("{title}\n{table}\n"));
    }

    fn cell(&mut self, server: &Server, served: &Result<(Background, String)>, client: &Client) -> Vec<String> {
        let mut lines = Vec::new();
        for transport in Transport::ALL {
            for (revision, pinned) in ERAS {
                let name = format!("{} → {} {} {revision}", client.party, server.party, transport.name());
                report::detail(&name);
                let target = match (transport, served) {
                    (Transport::Stdio, _) => Ok(Target::Words(server.stdio())),
                    (Transport::Http, Ok((_, url))) => Ok(Target::Url(url.clone())),
                    (Transport::Http, Err(error)) => Err(format!("the server does not start: {error:#}")),
                };
                let result =
                    target.and_then(|t| check::fixture(&client.call(&t, pinned, &check::FIXTURE_CALLS)?, revision));
                self.counts += Counts::of(result.is_ok());
                let word = if result.is_ok() { "ok" } else { "FAIL" };
                lines.push(format!("{:<5} {revision} {word}", transport.name()));
                if let Err(why) = result {
                    self.failures.push(format!("{name}: {why}"));
                }
            }
        }
        lines
    }

    /// Our clients against servers that others published, on real input.
    fn published(&mut self, clients: &[Client], peers: &setup::Peers) -> Result<()> {
        let servers = published(peers)?;
        let mut head = vec!["published server \\ client"];
        head.extend(clients.iter().map(|c| c.party.name()));
        let mut table = Table::new(&head);
        for server in &servers {
            report::step(format!("interop with {}", server.name));
            let mut row = vec![vec![server.name.to_owned()]];
            for client in clients {
                report::detail(client.party.name());
                let target = Target::Words(server.words.clone());
                let result =
                    client.call(&target, None, &server.calls).and_then(|said| server.check(&said).map(|()| said));
                self.counts += Counts::of(result.is_ok());
                row.push(vec![match result {
                    Ok(said) => format!("ok, {} tools, {}", said.tools.len(), said.protocol_version),
                    Err(why) => {
                        self.failures.push(format!("{} → {}: {why}", client.party, server.name));
                        "FAIL".to_owned()
                    }
                }]);
            }
            table.row(row);
        }
        self.tables.push_str(&format!("servers from the registries\n{table}"));
        Ok(())
    }
}

/// A server that others published, and what it has to answer.
pub(crate) struct Published {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<String>,
    pub(crate) calls: Vec<Call>,
    expect: Expect,
}

impl Published {
    /// Why the answers are not as they have to be.
    pub(crate) fn check(&self, said: &Said) -> Result<(), String> {
        self.expect.check(said)
    }
}

/// The four servers that our clients have to work with. Two of them need a folder of their own.
pub(crate) fn published(peers: &setup::Peers) -> Result<Vec<Published>> {
    let folder = check::playground()?;
    let npm = |name: &str| {
        let entry = peers.npm_servers.join("node_modules/@modelcontextprotocol").join(name).join("dist/index.js");
        vec!["node".to_owned(), entry.to_string_lossy().into_owned()]
    };
    let pypi = |name: &str| vec![peers.python_servers.join(name).to_string_lossy().into_owned()];
    let and = |mut words: Vec<String>, more: &[&str]| {
        words.extend(more.iter().map(|m| (*m).to_owned()));
        words
    };
    let here = folder.to_string_lossy().into_owned();
    let file = folder.join("hello.txt").to_string_lossy().into_owned();
    Ok(vec![
        Published {
            name: "server-everything",
            words: and(npm("server-everything"), &["stdio"]),
            calls: vec![
                Call::new("echo", serde_json::json!({ "message": "hello from Tricorn" })),
                Call::new("get-sum", serde_json::json!({ "a": 19, "b": 23 })),
            ],
            expect: Expect::texts(&["hello from Tricorn", "42"]),
        },
        Published {
            name: "server-filesystem",
            words: and(npm("server-filesystem"), &[&here]),
            calls: vec![
                Call::new("read_text_file", serde_json::json!({ "path": file })),
                Call::new("list_directory", serde_json::json!({ "path": here })),
            ],
            expect: Expect::texts(&["hello, file", "hello.txt"]),
        },
        Published {
            name: "mcp-server-time",
            words: and(pypi("mcp-server-time"), &["--local-timezone", "UTC"]),
            calls: vec![
                Call::new("get_current_time", serde_json::json!({ "timezone": "Europe/Oslo" })),
                Call::new(
                    "convert_time",
                    serde_json::json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
                ),
            ],
            expect: Expect::texts(&["Europe/Oslo", "T21:00"]),
        },
        Published {
            name: "mcp-server-git",
            words: and(pypi("mcp-server-git"), &["--repository", &here]),
            calls: vec![
                Call::new("git_log", serde_json::json!({ "repo_path": here, "max_count": 1 })),
                Call::new("git_status", serde_json::json!({ "repo_path": here })),
            ],
            expect: Expect::texts(&["Say hello", "main"]),
        },
    ])
}
