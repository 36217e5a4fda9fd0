//! One client against one server.

use super::peers::{CHROMIUM, Kind, Known, Peer, Registry};
use crate::place::{self, Lang};
use crate::process;
use crate::setup;
use crate::tool;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The beginning of the names of cells whose peer has its newest version, not the pinned one.
const NEWEST: &str = "newest.";

/// All outcomes of former runs with the pinned versions.
pub(super) fn kept() -> Vec<Outcome> {
    let folder = std::fs::read_dir(place::target("wild/cells")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.path()).collect();
    files.sort();
    files.iter().filter_map(|f| read(f)).filter(|o| !o.id.starts_with(NEWEST)).collect()
}

/// The file with the outcome of a cell.
fn stamp(id: &str) -> PathBuf {
    place::target("wild/cells").join(format!("{id}.json"))
}

fn read(file: &Path) -> Option<Outcome> {
    serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

/// Seconds for all checks of a cell.
const LIMIT: u64 = 150;
/// Additional time for the start, the end and the count of leftovers.
const AROUND: Duration = Duration::from_secs(60);

/// The variable that tells a server that it shares no sessions.
const STATELESS: &str = "WILD_STATELESS";

/// Meeting of a peer with one of our programs.
pub(super) struct Cell<'a> {
    pub(super) id: String,
    pub(super) peer: &'a Peer,
    pub(super) lang: Option<Lang>,
    pub(super) transport: String,
    plan: Map<String, Value>,
    controls: Controls,
    env: Vec<(&'static str, String)>,
}

/// The same with an official SDK in the place of ours.
struct Controls {
    /// One that speaks the revisions before 2026.
    legacy: Option<Map<String, Value>>,
    /// One that speaks 2026-07-28, if there is one.
    modern: Option<Map<String, Value>>,
}

impl Controls {
    fn of(&self, revision: Option<&str>) -> Option<&Map<String, Value>> {
        let modern = self.modern.as_ref().filter(|_| revision.is_some_and(|r| r > "2026"));
        modern.or(self.legacy.as_ref())
    }
}

/// One thing that was asked of a cell. Without `ok` the peer has no way to do it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) ok: Option<bool>,
    pub(super) note: String,
}

/// Outcome of a cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) id: String,
    pub(super) peer: String,
    pub(super) version: String,
    pub(super) lang: String,
    pub(super) transport: String,
    pub(super) revision: Option<String>,
    pub(super) checks: Vec<Check>,
    /// Those that fail and are not known to.
    pub(super) failed: Vec<String>,
    /// Those that are known to fail, and do, with the reason.
    pub(super) known: Vec<(String, String)>,
    /// Checks that fail in the same way where neither end is ours; none when nobody asked.
    pub(super) control: Option<Vec<String>>,
    key: String,
}

impl Outcome {
    pub(super) fn good(&self) -> bool {
        self.failed.is_empty()
    }

    /// Lines about what failed, with the place of the wire log.
    pub(super) fn complaints(&self) -> Vec<String> {
        let note = |name: &str| self.checks.iter().find(|c| c.check == name).map_or("", |c| c.note.as_str());
        let control = |name: &String| match &self.control {
            Some(failed) if failed.contains(name) => " (the control fails, too)",
            Some(_) => " (the control passes)",
            None => "",
        };
        let log = place::short(&log(&self.id));
        self.failed.iter().map(|f| format!("{}: {f}: {}{}; {log}", self.id, note(f), control(f))).collect()
    }

    /// The outcome of the same cell with the pinned version.
    pub(super) fn pinned(&self) -> Option<Self> {
        read(&stamp(self.id.strip_prefix(NEWEST)?))
    }

    /// A line when the newest version does otherwise than the pinned one did.
    pub(super) fn changes(&self) -> Option<String> {
        let before = self.pinned()?;
        let words = |o: &Self| {
            let verdict = if o.good() { "ok".to_owned() } else { format!("fails: {}", o.failed.join(", ")) };
            format!("{verdict} ({})", o.revision.as_deref().unwrap_or("no revision"))
        };
        let (was, is) = (words(&before), words(self));
        (was != is).then(|| format!("{}: {} {was} -> {} {is}", before.id, before.version, self.version))
    }

    pub(super) fn passed(&self) -> usize {
        self.checks.iter().filter(|c| c.ok == Some(true)).count()
    }

    /// Lines about what is known to fail.
    pub(super) fn known(&self) -> Vec<String> {
        self.known.iter().map(|(check, why)| format!("{}: {check}: {why}", self.id)).collect()
    }
}

fn log(id: &str) -> PathBuf {
    place::target("wild/logs").join(format!("{id}.log"))
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

fn here(path: &str) -> String {
    text(place::root().join(path))
}

/// Returns the command of a language's fixture.
fn fixture(lang: Lang) -> Vec<String> {
    vec![here(&format!("examples/everything/{lang}/run"))]
}

/// Our client of a language, and whether it takes the plans of `cargo xtask interop`.
fn ours(lang: Lang) -> (Vec<String>, bool) {
    match lang {
        Lang::Python => (vec![text(tool::venv("python")), here("tests/wild/drivers/ours.py")], false),
        Lang::Node => (vec!["node".to_owned(), here("tests/wild/drivers/ours.mjs")], false),
        Lang::Rust | Lang::Swift => (vec![here(&format!("tests/interop/ours/{lang}/run"))], true),
    }
}

/// The cells of a peer. A core takes one transport for each language.
pub(super) fn of<'a>(peer: &'a Peer, all: &'a [Peer], langs: &[Lang], core: bool) -> Vec<Cell<'a>> {
    let mut cells = Vec::new();
    let named = |name: &str| all.iter().find(|p| p.name == name);
    let (legacy, modern) = (named("mcp 1.x"), named("mcp 2.x"));
    let by: Vec<&Peer> = all.iter().filter(|p| peer.by.contains(&p.name)).collect();
    for (n, transport) in peer.transports.iter().enumerate() {
        match peer.kind {
            Kind::Client | Kind::Bridge => {
                let client = by.first().copied().unwrap_or(peer);
                for (m, lang) in langs.iter().enumerate() {
                    if core && peer.transports.len() > 1 && (n + m) % 2 == 1 {
                        continue;
                    }
                    let plan = bridged(peer, json_of(client.client()), fixture(*lang), transport);
                    let controls = official(peer, client, legacy, transport);
                    cells.push(Cell::new(peer, Some(*lang), "", transport, plan, controls));
                }
            }
            Kind::Server => {
                for lang in langs {
                    let (client, interop) = ours(*lang);
                    let plan = theirs(peer, json_of(client), interop, transport);
                    let control = |base: Option<&Peer>, program: &str| {
                        let client = vec![base?.interpreter(), here(&format!("tests/interop/python/{program}"))];
                        Some(theirs(peer, json_of(client), true, transport))
                    };
                    let controls =
                        Controls { legacy: control(legacy, "client1.py"), modern: control(modern, "client.py") };
                    cells.push(Cell::new(peer, Some(*lang), "", transport, plan, controls));
                }
            }
            Kind::Web | Kind::Bundler | Kind::Runtime => {
                for client in &by {
                    let plan = theirs(peer, json_of(client.client()), false, transport);
                    let controls = official(peer, client, legacy, transport);
                    cells.push(Cell::new(peer, None, &client.name, transport, plan, controls));
                }
            }
        }
    }
    cells
}

/// The same client, and the same bridge, with a server on the official SDK.
fn official(peer: &Peer, client: &Peer, base: Option<&Peer>, transport: &str) -> Controls {
    let plan = |base: &Peer| {
        let server = vec![base.interpreter(), here("tests/wild/control.py")];
        let mut plan = bridged(peer, json_of(client.client()), server, transport);
        plan.insert("joined".to_owned(), json!(true));
        // One of several processes, if the peer's server is one.
        if let Some(word) = peer.env.get(STATELESS) {
            plan.insert("server_env".to_owned(), json!({ STATELESS: word }));
        }
        plan
    };
    Controls { legacy: base.map(plan), modern: None }
}

fn json_of(words: Vec<String>) -> Value {
    json!(words)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A client of theirs and a fixture, with a bridge in between where the peer is one.
fn bridged(peer: &Peer, client: Value, server: Vec<String>, transport: &str) -> Map<String, Value> {
    let mut plan = object(
        json!({ "client": client, "server": server, "transport": transport, "without": peer.without(transport) }),
    );
    if peer.kind == Kind::Bridge {
        let shell: Vec<String> = server.iter().map(|w| process::quote(w)).collect();
        let shell = format!("{} --stdio", shell.join(" "));
        let mut words = Vec::new();
        for word in &peer.start {
            if word == "{server...}" {
                words.extend(server.iter().cloned());
                words.push("--stdio".to_owned());
            } else {
                words.push(filled(peer, word).replace("{server}", &shell));
            }
        }
        if peer.ready.is_empty() {
            plan.insert("bridge".to_owned(), json!(words));
        } else {
            plan.insert("server".to_owned(), json!(words));
            plan.insert("ready".to_owned(), json!(peer.ready));
            plan.insert("url".to_owned(), json!(peer.url));
        }
    }
    plan
}

/// A client and a server that the peer's entry starts.
fn theirs(peer: &Peer, client: Value, interop: bool, transport: &str) -> Map<String, Value> {
    let words: Vec<String> = peer.start.iter().map(|w| filled(peer, w)).collect();
    let env: Map<String, Value> = peer.env.iter().map(|(k, v)| (k.clone(), json!(filled(peer, v)))).collect();
    let mut plan = object(json!({
        "client": client, "server": words, "transport": transport, "interop": interop, "server_env": env,
        "calls": peer.calls, "tools": peer.tools, "resources": peer.resources, "prompts": peer.prompts,
        "without": peer.without(transport), "as_is": peer.kind == Kind::Server,
    }));
    if !peer.ready.is_empty() {
        plan.insert("ready".to_owned(), json!(peer.ready));
        plan.insert("url".to_owned(), json!(peer.url));
    }
    if !peer.touch.is_empty() {
        plan.insert("touch".to_owned(), json!(peer.touch));
    }
    plan
}

/// A word of the list with the places of this machine.
fn filled(peer: &Peer, word: &str) -> String {
    if word == CHROMIUM {
        return setup::chromium().map(text).unwrap_or_default();
    }
    word.replace("{bin}", &peer.bin().to_string_lossy())
        .replace("{dir}", &peer.dir().to_string_lossy())
        .replace("{root}", &place::root().to_string_lossy())
}

impl<'a> Cell<'a> {
    fn new(
        peer: &'a Peer,
        lang: Option<Lang>,
        by: &str,
        transport: &str,
        plan: Map<String, Value>,
        controls: Controls,
    ) -> Self {
        let whom = lang.map_or_else(|| by.to_owned(), |l| l.name().to_owned());
        let id = format!("{}{}.{whom}.{transport}", if peer.is_loose() { NEWEST } else { "" }, peer.name);
        let id = id.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' }).collect();
        // Ports are the relay's, and packages of the registries know nothing of ours.
        let path = here("bindings-python/python");
        let mut env = vec![("EVERYTHING_ALLOWED_HOSTS", "*".to_owned())];
        if peer.kind == Kind::Web && peer.registry == Registry::Pypi {
            env.push(("PYTHONPATH", path));
        }
        Self { id, peer, lang, transport: transport.to_owned(), plan, controls, env }
    }

    /// Returns a digest of everything that the outcome depends on beside the programs of this machine.
    fn key(&self) -> String {
        let built = [
            place::built("example-everything"),
            place::built("interop-client"),
            place::root().join("bindings-node/dist/index.js"),
            place::root().join("bindings-python/python/tricorn/_core.abi3.so"),
        ];
        let stamp =
            |p: &PathBuf| std::fs::metadata(p).and_then(|m| m.modified()).map(|t| format!("{t:?}")).unwrap_or_default();
        let built: Vec<String> = built.iter().map(stamp).collect();
        let peer = serde_json::to_string(self.peer).unwrap_or_default();
        let whole = format!("{peer} {} {built:?}", json!(self.plan));
        format!(
            "{:016x}",
            whole.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
        )
    }

    /// Plays it, unless it passed before and that is to be kept.
    pub(super) fn play(&self, keep: bool) -> Result<Outcome> {
        let stamp = stamp(&self.id);
        let key = self.key();
        if let Some(before) = read(&stamp).filter(|b| keep && b.key == key && b.good()) {
            return Ok(before);
        }
        let (checks, revision) = self.attempt(&self.id, &self.plan);
        let failing: Vec<String> = checks.iter().filter(|c| c.ok == Some(false)).map(|c| c.check.clone()).collect();
        let knows = |k: &&Known| self.id.contains(&k.on);
        let of = |check: &str| self.peer.known.iter().filter(knows).find(|k| k.checks.iter().any(|c| c == check));
        let mut failed = Vec::new();
        let mut known = Vec::new();
        for check in &failing {
            match of(check) {
                Some(k) => known.push((check.clone(), k.why.clone())),
                None => failed.push(check.clone()),
            }
        }
        let stale = self
            .peer
            .known
            .iter()
            .filter(knows)
            .filter(|k| !k.sometimes)
            .flat_map(|k| &k.checks)
            .filter(|c| !failing.contains(c));
        failed.extend(stale.map(|c| format!("{c} (works, what is known of it is stale)")));
        let control = match self.controls.of(revision.as_deref()) {
            Some(plan) if !failing.is_empty() => {
                let (checks, _) = self.attempt(&format!("{}.control", self.id), plan);
                Some(checks.into_iter().filter(|c| c.ok == Some(false)).map(|c| c.check).collect())
            }
            _ => None,
        };
        if failed.is_empty() && known.is_empty() {
            // Nobody reads the wire of what passed.
            let _ = std::fs::remove_file(log(&self.id));
            let _ = std::fs::remove_file(log(&self.id).with_extension("stderr"));
        }
        let outcome = Outcome {
            id: self.id.clone(),
            peer: self.peer.name.clone(),
            version: self.peer.version(),
            lang: self.lang.map_or_else(String::new, |l| l.name().to_owned()),
            transport: self.transport.clone(),
            revision,
            checks,
            failed,
            known,
            control,
            key,
        };
        std::fs::create_dir_all(place::target("wild/cells"))?;
        std::fs::write(&stamp, serde_json::to_string_pretty(&outcome)?)?;
        Ok(outcome)
    }

    /// The checks and the revision. A cell that cannot even start is no end of the others.
    fn attempt(&self, id: &str, plan: &Map<String, Value>) -> (Vec<Check>, Option<String>) {
        self.run(id, plan).unwrap_or_else(|error| {
            (vec![Check { check: "start".to_owned(), ok: Some(false), note: format!("{error:#}") }], None)
        })
    }

    fn run(&self, id: &str, plan: &Map<String, Value>) -> Result<(Vec<Check>, Option<String>)> {
        let log = log(id);
        let work = place::target("wild/work").join(id);
        let _ = std::fs::remove_dir_all(&work);
        std::fs::create_dir_all(&work)?;
        std::fs::create_dir_all(log.parent().context("no folder")?)?;
        let mut plan = plan.clone();
        plan.insert("cell".to_owned(), json!(id));
        plan.insert("limit".to_owned(), json!(LIMIT));
        plan.insert("log".to_owned(), json!(log));
        let plan = Value::Object(plan).to_string().replace("{work}", &work.to_string_lossy());
        let plan = plan.replace("{root}", &place::root().to_string_lossy());
        let (python, _) = tool::python().context("no python3")?;
        let mut command = tool::command(python);
        command.arg(here("tests/wild/cell.py")).arg(plan).current_dir(&work);
        for (name, value) in &self.env {
            command.env(name, value);
        }
        let done = process::run_with(command, Duration::from_secs(LIMIT) + AROUND, None, |_| {})?;
        let mut checks = Vec::new();
        let mut revision = None;
        for line in done.stdout.lines().filter(|l| l.starts_with('{')) {
            let value: Value = serde_json::from_str(line)?;
            match serde_json::from_value::<Check>(value.clone()) {
                Ok(check) => checks.push(check),
                Err(_) => revision = value["revision"].as_str().map(str::to_owned),
            }
        }
        if !done.ok() || checks.is_empty() {
            checks.push(Check { check: "end".to_owned(), ok: Some(false), note: done.why() });
        }
        Ok((checks, revision))
    }
}
