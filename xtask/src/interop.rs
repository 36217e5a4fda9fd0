//! `cargo xtask interop`: ours against the official SDKs, both directions, both eras, all transports.
//!
//! The contract of the programs is in `tests/interop/README.md`; what they do is in `tests/interop/features.json`.

mod check;
mod party;

use crate::place::Lang;
use crate::report::{self, Counts, Table};
use crate::{setup, tool};
use anyhow::Result;
use check::{Call, Expect, Kind, Plan, Said};
pub(crate) use party::{Client, Target};
use party::{Party, Server};

/// Negotiated newest first, and pinned to the last revision with a handshake.
pub(crate) const ERAS: [(&str, Option<&str>); 2] = [("2026-07-28", None), ("2025-11-25", Some("2025-11-25"))];

/// Meeting of a pair: its name, the kind, and the revision that is pinned.
struct Meeting {
    transport: &'static str,
    kind: Kind,
    revision: &'static str,
}

impl Meeting {
    const fn new(transport: &'static str, kind: Kind, revision: &'static str) -> Self {
        Self { transport, kind, revision }
    }

    fn pinned(&self) -> Option<&'static str> {
        (self.kind != Kind::Modern).then_some(self.revision)
    }
}

const MEETINGS: [Meeting; 6] = [
    Meeting::new("stdio", Kind::Modern, ERAS[0].0),
    Meeting::new("stdio", Kind::Legacy, ERAS[1].0),
    Meeting::new("http", Kind::Modern, ERAS[0].0),
    Meeting::new("http", Kind::Legacy, ERAS[1].0),
    Meeting::new("sse", Kind::Sse, ERAS[1].0),
    Meeting::new("cut", Kind::Cut, ERAS[1].0),
];

/// Clients that run side by side: most of their time is the start of an interpreter.
const LANES: usize = 2;

/// Result of the whole run.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<String>,
    /// Reasons why pairs were left out, one line for all of one exception.
    pub(crate) skips: Vec<String>,
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
    let plan = Plan::read()?;
    let mut outcome = Outcome::default();
    outcome.grid("official servers, official clients", &plan, &servers, &clients);
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
    let plan = Plan::read()?;
    let mut outcome = Outcome::default();
    outcome.versions(&plan)?;
    outcome.grid("our servers, official clients", &plan, &our_servers, &their_clients);
    outcome.grid("official servers, our clients", &plan, &their_servers, &our_clients);
    outcome.published(&our_clients, &peers)?;
    Ok(outcome)
}

impl Outcome {
    /// Exceptions are true of the pinned versions, or stale.
    fn versions(&mut self, plan: &Plan) -> Result<()> {
        for exception in &plan.exceptions {
            let name = exception.client.as_ref().or(exception.server.as_ref());
            let pinned = party::PEERS.iter().find(|p| name.is_some_and(|name| name == p.name())).map(|p| p.version());
            let pinned = pinned.transpose()?;
            let fits = pinned.as_ref() == Some(&exception.version);
            self.counts += Counts::of(fits);
            if !fits {
                let pinned = pinned.unwrap_or_else(|| "no such party".to_owned());
                self.failures.push(format!("an exception of {name:?} {} is stale: {pinned}", exception.version));
            }
        }
        Ok(())
    }

    fn grid(&mut self, title: &str, plan: &Plan, servers: &[Server], clients: &[Client]) {
        let mut head = vec!["server \\ client"];
        head.extend(clients.iter().map(|c| c.party.name()));
        let mut table = Table::new(&head);
        for server in servers {
            report::step(format!("interop with the server {}", server.party));
            // One HTTP server for all clients of a lane: both eras and both transports live on one port, and nobody hears of
            // what a client beside it changes.
            let lane = |n: usize| {
                let own: Vec<_> = clients.iter().enumerate().skip(n).step_by(LANES).collect();
                if own.is_empty() {
                    return Vec::new();
                }
                let served = server.serve().map_err(|error| format!("the server does not start: {error:#}"));
                let url = served.as_ref().map(|(_, url)| url.as_str()).map_err(String::as_str);
                own.into_iter().map(|(i, client)| (i, cells(plan, server, url, client))).collect()
            };
            let mut done: Vec<_> = std::thread::scope(|scope| {
                let lanes: Vec<_> = (0..LANES).map(|n| scope.spawn(move || lane(n))).collect();
                lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect()
            });
            done.sort_by_key(|(i, _)| *i);
            let mut row = vec![vec![server.party.name().to_owned()]];
            for (_, cells) in done {
                self.counts += cells.counts;
                self.failures.extend(cells.failures);
                for skip in cells.skips {
                    if !self.skips.contains(&skip) {
                        self.skips.push(skip);
                    }
                }
                row.push(cells.lines);
            }
            table.row(row);
        }
        self.tables.push_str(&format!("{title}\n{table}\n"));
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
                    Ok(said) => format!("ok, {} tools, {}", said.tools().len(), said.protocol_version),
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

/// Result of one pair.
#[derive(Default)]
struct Cells {
    counts: Counts,
    failures: Vec<String>,
    skips: Vec<String>,
    lines: Vec<String>,
}

/// A pair everywhere it meets.
fn cells(plan: &Plan, server: &Server, url: Result<&str, &str>, client: &Client) -> Cells {
    let mut cells = Cells::default();
    for meeting in &MEETINGS {
        let Meeting { transport, revision, kind } = meeting;
        let name = format!("{} → {} {transport} {revision}", client.party, server.party);
        report::detail(&name);
        let known = plan.exceptions(client.party.name(), server.party.name(), *kind);
        if let Some(never) = known.iter().find(|e| e.features.is_empty()) {
            cells.counts += Counts::new(0, 0, 1);
            cells.skips.push(never.reason());
            cells.lines.push(format!("{transport:<5} {revision} – {}", never.why));
            continue;
        }
        let expected: Vec<&str> = known.iter().flat_map(|e| &e.features).map(String::as_str).collect();
        let attempt = || {
            meet(plan, server, url, client, meeting).and_then(|said| {
                if said.protocol_version != *revision {
                    return Err(format!("{} was negotiated", said.protocol_version));
                }
                let failures = plan.failures(*kind, &said);
                let stale = expected.iter().filter(|e| !failures.iter().any(|f| f.0 == **e));
                let stale = stale.map(|e| format!("{e}: works, the exception is stale"));
                let new = failures.iter().filter(|f| !expected.contains(&f.0)).map(|f| format!("{}: {}", f.0, f.1));
                let wrong: Vec<String> = stale.chain(new).collect();
                if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
            })
        };
        let mut result = attempt();
        // What their servers still have of a stream depends on whether they have noticed its end: see the README.
        let again = *kind == Kind::Cut && !matches!(server.party, Party::Ours(_)) && result.is_err();
        if again {
            result = attempt();
        }
        cells.counts += Counts::of(result.is_ok());
        let word = match (&result, known.first()) {
            (Ok(()), None) if again => "ok, at the second try".to_owned(),
            (Ok(()), None) => "ok".to_owned(),
            (Ok(()), Some(known)) => format!("ok, without {}: {}", expected.join(", "), known.why),
            (Err(_), _) => "FAIL".to_owned(),
        };
        cells.lines.push(format!("{transport:<5} {revision} {word}"));
        if let Err(why) = result {
            cells.failures.push(format!("{name}: {why}"));
        }
    }
    cells
}

fn meet(
    plan: &Plan,
    server: &Server,
    url: Result<&str, &str>,
    client: &Client,
    meeting: &Meeting,
) -> Result<Said, String> {
    let target = match meeting.kind {
        _ if meeting.transport == "stdio" => Target::Words(server.stdio()),
        Kind::Cut => Target::Cut(url?.to_owned(), serde_json::json!(plan.rules(meeting.kind))),
        Kind::Sse => Target::Sse(url?.replace("/mcp", "/sse")),
        Kind::Modern | Kind::Legacy => Target::Url(url?.to_owned()),
    };
    client.play(&target, meeting.pinned(), &plan.answers, &plan.steps(meeting.kind))
}

/// A server that others published, and what it has to answer.
pub(crate) struct Published {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<String>,
    pub(crate) calls: Vec<Call>,
    expect: Expect,
}

impl Published {
    /// Returns the reason why the answers are not as they have to be.
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
