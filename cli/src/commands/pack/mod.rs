//! Bundles of servers, and entries for the registry.

mod archive;
mod files;
mod manifest;
mod node;
mod project;
mod python;
mod schema;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tricorn::client::{Client, ClientOptions, Events, Handlers, Stderr, Target};

use crate::arguments::Pack;
use crate::commands::text;
use crate::connection::{Hears, Session, run_found, runtime};
use crate::failure::{FAILED, Failure, INTERRUPTED, Outcome};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::output::{Screen, one_line, shown, size};
use crate::targets::{self, Code, Source};
use archive::Written;
use files::{Files, cannot};
use manifest::{Facts, Place};
use project::Project;

/// Time for a bundle to start.
const STARTING: Duration = Duration::from_secs(60);
/// Variables without which no program starts.
const KEPT: [&str; 8] = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot", "SYSTEMROOT", "COMSPEC", "PATHEXT"];
/// Lines of its standard error that are kept meanwhile.
const LINES: usize = 100;
/// Names that are listed.
const SHOWN: usize = 12;

/// Contents of a bundle, and its way to start.
struct Bundle {
    project: Project,
    files: Files,
    /// `python`, `node` or `binary`.
    kind: &'static str,
    entry: String,
    start: Start,
    /// The runtime that it needs, and its versions.
    runtime: Option<(&'static str, String)>,
    /// The packages that came along.
    vendored: Vec<String>,
    /// The platform that it is bound to.
    bound: Option<String>,
    warnings: Vec<String>,
}

/// The command line of a bundle.
struct Start {
    command: String,
    arguments: Vec<String>,
    on_windows: Option<String>,
    /// The command and options that stand for `command` when it is tried here.
    check: Vec<String>,
}

/// Packs a server, asks it what it is, and tries the bundle.
pub(super) fn pack(pack: &Pack, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    if pack.connection.record.is_some() {
        return Err(Failure::misuse("--record: pack has no messages to record"));
    }
    if let Some(output) = pack.output.as_ref().filter(|path| path.extension().is_none_or(|ending| ending != "mcpb")) {
        return Err(Failure::misuse(format!("-o {}: a bundle has the ending .mcpb", output.display())));
    }
    for (option, place) in [("-o", &pack.output), ("--server-json", &pack.server_json)] {
        let folder = place.as_deref().and_then(std::path::Path::parent).filter(|folder| !folder.as_os_str().is_empty());
        if let (Some(place), Some(folder)) = (place, folder.filter(|folder| !folder.is_dir())) {
            let why = format!("there is no folder {}", folder.display());
            return Err(Failure::misuse(format!("{option} {}: {why}", place.display())));
        }
    }
    if let Some(place) = pack.server_json.as_ref().filter(|place| place.exists() && !files::is_entry(place)) {
        let why = "it is there, and is no entry of the registry: name another file";
        return Err(Failure::misuse(format!("--server-json {}: {why}", place.display())));
    }
    let Source { found, code } = targets::source(&pack.target, &pack.connection, launcher, screen)?;
    if matches!(code, Code::Remote(_)) {
        if pack.output.is_some() || pack.server_json.is_none() {
            let hint = "it can have an entry in the registry alone: --server-json FILE, without -o";
            return Err(Failure::misuse(format!("{}: a server at a URL is not packed; {hint}", found.name)));
        }
        return run_found(found, &pack.connection, Hears::Nothing, screen, async |session| {
            remote(session, &code, pack).await
        });
    }
    let mut facts = None;
    run_found(found, &pack.connection, Hears::Nothing, screen, async |session| {
        facts = Some(Facts::of(session).await?);
        Ok(0)
    })?;
    let Some(facts) = facts else { return Ok(0) };
    let mut bundle = match &code {
        Code::Python { interpreter, file, name } => python::bundle(interpreter, file, name.as_deref())?,
        Code::Node { node, file } => node::bundle(node, file)?,
        Code::Program { program, manifest } => binary(program, manifest.as_deref())?,
        Code::Remote(_) => return Ok(0),
    };
    let secrets: Vec<String> = pack.connection.env.iter().map(|(name, _)| name.clone()).collect();
    let manifest = manifest::manifest(&facts, &mut bundle, pack.author.as_deref(), &secrets)?;
    bundle.files.text("manifest.json", pretty(&manifest)?);
    bundle.warnings.iter().for_each(|warning| screen.warn(warning));
    let name = text_of(&manifest, "name");
    let output = pack.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.mcpb")));
    let file_name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut entry = match &pack.server_json {
        None => None,
        Some(_) => {
            let url = pack.download.clone().or_else(|| manifest::download(&facts, &bundle.project, &file_name));
            let Some(url) = url else {
                let hint = "--download https://…/NAME.mcpb";
                return Err(Failure::misuse(format!("say where the bundle is going to be for the registry: {hint}")));
            };
            // The digest is known when the bundle is.
            let at = Place::Bundle { url, sha256: "0".repeat(64), secrets };
            Some(manifest::server_json(&facts, &bundle.project, pack.name.as_deref(), at)?)
        }
    };
    let written = Written::new(&bundle.files, &output)?;
    if !pack.no_check {
        check(&written, &bundle, &facts, pack, screen)?;
    }
    let (bytes, sha256) = (written.bytes, written.sha256.clone());
    // Both are written before one takes its place.
    let beside = match (&mut entry, &pack.server_json) {
        (Some(entry), Some(place)) => {
            entry["packages"][0]["fileSha256"] = sha256.clone().into();
            Some((draft(place, &pretty(entry)?)?, place))
        }
        _ => None,
    };
    written.keep(&output)?;
    if let Some((draft, place)) = beside {
        archive::keep(draft, place)?;
    }
    if pack.json {
        screen.json(&json!({
            "bundle": output, "bytes": bytes, "sha256": sha256, "files": bundle.files.all.len(),
            "vendored": bundle.vendored, "platform": bundle.bound, "leftOut": bundle.files.left_out,
            "checked": !pack.no_check, "manifest": manifest, "server": entry,
        }));
    } else {
        screen.print(&report(&output, bytes, &bundle, &manifest, pack));
    }
    Ok(0)
}

/// A file beside its place, which it takes when it is persisted.
fn draft(place: &Path, text: &str) -> Outcome<NamedTempFile> {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let made = NamedTempFile::new_in(folder).and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
    made.map_err(|error| cannot("write", place, &error))
}

async fn remote(session: &Session, code: &Code, pack: &Pack) -> Outcome<u8> {
    let (Code::Remote(url), Some(place)) = (code, &pack.server_json) else { return Ok(0) };
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    if authority.contains('@') || url.contains(['?', '#']) {
        let hint = "everybody reads the registry, so the address has neither a user nor a query; name what is asked for with --header";
        return Err(Failure::misuse(format!("{}: {hint}", session.name)));
    }
    let facts = Facts::of(session).await?;
    let headers = pack.connection.header.iter().map(|(name, _)| name.clone()).collect();
    let at = Place::Remote { url: url.clone(), headers };
    let entry = manifest::server_json(&facts, &Project::default(), pack.name.as_deref(), at)?;
    std::fs::write(place, pretty(&entry)?).map_err(|error| cannot("write", place, &error))?;
    if pack.json {
        session.screen.json(&json!({"server": entry}));
    } else {
        session.screen.print(&format!("{}: {}", place.display(), text_of(&entry, "name")));
    }
    Ok(0)
}

/// Tells people what was packed.
fn report(output: &Path, bytes: u64, bundle: &Bundle, manifest: &Value, pack: &Pack) -> String {
    let mut lines = vec![format!(
        "{}: {} {}, {} files, {}",
        output.display(),
        one_line(text_of(manifest, "name")),
        one_line(text_of(manifest, "version")),
        bundle.files.all.len(),
        size(bytes as usize)
    )];
    let mut row = |name: &str, values: &[String]| {
        if !values.is_empty() {
            let shown: Vec<_> = values.iter().take(SHOWN).map(|value| one_line(value)).collect();
            let more = values.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("  {name:<9} {}{more}", shown.join(", ")));
        }
    };
    let named = |member: &str| -> Vec<String> {
        let all = manifest[member].as_array().into_iter().flatten();
        all.map(|entry| text_of(entry, "name").to_owned()).collect()
    };
    row("tools", &named("tools"));
    row("prompts", &named("prompts"));
    row("packages", &bundle.vendored);
    let runtime = bundle.runtime.as_ref().map(|(name, version)| format!("{name} {version}"));
    row("needs", &runtime.into_iter().chain(bundle.bound.clone()).collect::<Vec<_>>());
    row("asks for", &pack.connection.env.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    row("left out", &bundle.files.left_out);
    if let Some(place) = &pack.server_json {
        lines.push(format!("  registry  {}", place.display()));
    }
    lines.push(match pack.no_check {
        true => "not tried".to_owned(),
        false => "tried: unpacked in an empty home, it starts and has the same tools".to_owned(),
    });
    lines.join("\n")
}

/// Adds the project's files, or the file alone, and gives the file's place.
fn own_files(project: &Project, file: &Path, files: &mut Files) -> Outcome<String> {
    let file = file.canonicalize().map_err(|error| cannot("read", file, &error))?;
    let Some(root) = &project.root else {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let place = format!("server/{name}");
        files.add(place.clone(), file)?;
        return Ok(place);
    };
    files.project(root, "server")?;
    let root = root.canonicalize().map_err(|error| cannot("read", root, &error))?;
    let inside = file.strip_prefix(&root).ok().map(|path| path.to_string_lossy().replace('\\', "/"));
    let place = inside.map(|inside| format!("server/{inside}")).unwrap_or_default();
    if !files.all.contains_key(&place) {
        let why = match files::has_private_key(&file) {
            true => "it looks as if it held a private key, and is left out",
            false => "it is left out itself: look at .mcpbignore",
        };
        return Err(Failure::misuse(format!("{}: {why}", file.display())));
    }
    Ok(place)
}

/// Packs a program.
fn binary(program: &Path, manifest: Option<&Path>) -> Outcome<Bundle> {
    let project = match manifest {
        Some(manifest) => Project::of(manifest, &["Cargo.toml"])?,
        None => Project::default(),
    };
    let mut files = Files::default();
    let program = program.canonicalize().map_err(|error| cannot("read", program, &error))?;
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let place = format!("server/{name}");
    files.add(place.clone(), program)?;
    Ok(Bundle {
        project,
        files,
        kind: "binary",
        start: Start {
            command: format!("${{__dirname}}/{place}"),
            arguments: Vec::new(),
            on_windows: None,
            check: Vec::new(),
        },
        entry: place,
        runtime: None,
        vendored: Vec::new(),
        bound: Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        warnings: Vec::new(),
    })
}

/// Unpacks the bundle elsewhere, starts it without anything of this user, and compares its tools.
fn check(written: &Written, bundle: &Bundle, facts: &Facts, pack: &Pack, screen: &Screen) -> Outcome<()> {
    let folder = tempfile::tempdir().map_err(|error| cannot("write into", &std::env::temp_dir(), &error))?;
    let (place, home) = (folder.path().join("bundle"), folder.path().join("home"));
    written.unpack(&place)?;
    std::fs::create_dir_all(&home).map_err(|error| cannot("write into", &home, &error))?;
    let filled = |text: &String| text.replace("${__dirname}", &place.to_string_lossy());
    let command: Vec<String> = match bundle.start.check.is_empty() {
        true => vec![filled(&bundle.start.command)],
        false => bundle.start.check.clone(),
    };
    let command: Vec<String> = command.into_iter().chain(bundle.start.arguments.iter().map(filled)).collect();
    let mut env: BTreeMap<String, Option<String>> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| !KEPT.contains(&name.as_str()))
        .map(|name| (name, None))
        .collect();
    for name in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        env.insert(name.to_owned(), Some(home.to_string_lossy().into_owned()));
    }
    env.extend(pack.connection.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let target = Target::Command {
        command: program.clone(),
        args: arguments.to_vec(),
        env,
        cwd: Some(home.to_string_lossy().into_owned()),
        stderr: Stderr::Event,
    };
    let heard = Arc::new(Heard::default());
    let handlers = Handlers::new().events(heard.clone());
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let connecting = async {
            let client = Client::connect_with(&target, &ClientOptions::new().restart(false), &handlers).await?;
            let tools = if client.capabilities().has("tools") { client.list_tools().await? } else { Vec::new() };
            client.close().await;
            Ok::<_, tricorn::Error>(tools)
        };
        Interrupts::new().first(tokio::time::timeout(STARTING, connecting)).await
    });
    runtime.shutdown_background();
    let Some(outcome) = outcome else { return Err(Failure::silent(INTERRUPTED)) };
    let failed = |why: String| {
        heard.lines().iter().for_each(|line| screen.line(&shown(line)));
        let hint = "--no-check packs it nevertheless";
        Failure::new(FAILED, format!("the bundle does not run elsewhere: {why}; {hint}"))
    };
    let tools = match outcome {
        Ok(Ok(tools)) => tools,
        Ok(Err(error)) => return Err(failed(error.message().to_owned())),
        Err(_) => return Err(failed(format!("no answer in {} s", STARTING.as_secs()))),
    };
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected: Vec<&str> = facts.tools.iter().map(|tool| text(tool, "name")).collect();
    if names != expected {
        return Err(failed(format!("it has other tools there ({})", names.join(", "))));
    }
    Ok(())
}

/// The last lines that a server wrote on its standard error, for when it does not start.
#[derive(Default)]
struct Heard(Mutex<VecDeque<String>>);

impl Heard {
    fn lines(&self) -> VecDeque<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Events for Heard {
    fn stderr(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn pretty(value: &Value) -> Outcome<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::new(FAILED, error.to_string()))
}
