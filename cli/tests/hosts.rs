//! Installs into the configurations of `tests/cli/hosts` and takes out again, in homes that are made for it.
//!
//! Every case is run as it stands there: a dry run, which changes nothing; the installation; the same again, which finds
//! it done; and the removal, once with the backup and once without, which gives the file its old bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Parser;
use serde::Deserialize;
use tricorn_cli::hosts::{self, Command, Places, System};

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A case. `$HOME` stands for the home that is made, `$PROJECT` for the current folder in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reports that it rebuilds, or the property that it shows.
    #[serde(rename = "about")]
    _about: String,
    host: String,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Folders and other files that are there.
    #[serde(default)]
    folders: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The file, below the home.
    file: String,
    /// The file that it is a link to.
    #[serde(default)]
    link: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    bom: bool,
    #[serde(default)]
    crlf: bool,
    /// None where the file is missing.
    #[serde(default)]
    before: Option<String>,
    /// The words after `install HOST`.
    #[serde(default)]
    args: Vec<String>,
    #[serde(default = "weather")]
    name: String,
    #[serde(default)]
    code: u8,
    /// None where nothing changes.
    #[serde(default)]
    after: Option<String>,
    /// The text after the removal, if it is another than before.
    #[serde(default)]
    removed: Option<String>,
    /// The same without a backup.
    #[serde(default)]
    removed_without_backup: Option<String>,
    /// Parts of what is said on standard error.
    #[serde(default)]
    said: Vec<String>,
}

fn weather() -> String {
    "weather".to_owned()
}

const USUAL: &[&str] = &["--name", "weather", "--env", "API_KEY=k-123456789", "--", "npx", "-y", "weather-server"];

struct Home {
    _folder: tempfile::TempDir,
    places: Places,
}

impl Home {
    fn new(system: System) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let project = home.join("project");
        std::fs::create_dir_all(&project).unwrap();
        let places = Places {
            system,
            home,
            folder: project,
            variables: BTreeMap::new(),
            tricorn: vec!["/usr/bin/tricorn".to_owned()],
            python: None,
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_881_600),
        };
        Self { _folder: folder, places }
    }

    fn real(&self, text: &str) -> String {
        let project = self.places.folder.to_str().unwrap();
        text.replace("$PROJECT", project).replace("$HOME", self.places.home.to_str().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.places.home.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, self.real(text)).unwrap();
        if text.starts_with("#!") {
            executable(&path);
        }
    }

    fn run(&self, words: &[&str]) -> (u8, String, String) {
        let words: Vec<String> = words.iter().map(|word| self.real(word)).collect();
        let line = Line::try_parse_from(std::iter::once("tricorn".to_owned()).chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = hosts::run(&line.command, &self.places, None, &mut out, &mut err);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn masked(&self, text: &str) -> String {
        text.replace(self.places.folder.to_str().unwrap(), "$PROJECT")
            .replace(self.places.home.to_str().unwrap(), "$HOME")
    }

    fn backups(&self, file: &str) -> Vec<PathBuf> {
        let path = self.path(file);
        let name = format!("{}.bak-tricorn-", path.file_name().unwrap().to_str().unwrap());
        let all = std::fs::read_dir(path.parent().unwrap()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<_> =
            all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&name)).collect();
        all.sort();
        all
    }
}

#[cfg(unix)]
fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn executable(_path: &Path) {}

fn cases() -> Vec<(PathBuf, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/hosts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let case = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, case)
    };
    paths.into_iter().map(read).collect()
}

impl Case {
    fn bytes(&self, home: &Home, text: &str) -> Vec<u8> {
        let text = home.real(text);
        let text = if self.crlf { text.replace('\n', "\r\n") } else { text };
        let bom = if self.bom { "\u{feff}" } else { "" };
        format!("{bom}{text}").into_bytes()
    }

    fn home(&self) -> Home {
        let system = match self.system.as_deref() {
            None | Some("linux") => System::Linux,
            Some("mac") => System::Mac,
            Some("windows") => System::Windows,
            Some(other) => panic!("no system {other}"),
        };
        let mut home = Home::new(system);
        home.places.variables =
            self.variables.iter().map(|(name, value)| (name.clone(), OsString::from(home.real(value)))).collect();
        for folder in &self.folders {
            std::fs::create_dir_all(home.path(folder)).unwrap();
        }
        for (name, text) in &self.files {
            home.write(name, text);
        }
        if let Some(before) = &self.before {
            let path = home.path(self.link.as_ref().unwrap_or(&self.file));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, self.bytes(&home, before)).unwrap();
            if self.read_only {
                let mut permissions = std::fs::metadata(&path).unwrap().permissions();
                permissions.set_readonly(true);
                std::fs::set_permissions(&path, permissions).unwrap();
            }
        }
        #[cfg(unix)]
        if let Some(link) = &self.link {
            let path = home.path(&self.file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(home.path(link), path).unwrap();
        }
        home
    }
}

/// Runs a case, and gives what differs.
fn run(case: &Case, bless: &mut BTreeMap<&'static str, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let home = case.home();
    let path = home.path(&case.file);
    let before = case.before.as_ref().map(|before| case.bytes(&home, before));
    let current = || std::fs::read(&path).ok();
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| home.masked(&String::from_utf8_lossy(bytes)));
    let usual: Vec<_> = USUAL.iter().map(|word| (*word).to_owned()).collect();
    let args = if case.args.is_empty() { &usual } else { &case.args };
    let mut install = vec!["install", case.host.as_str()];
    install.extend(args.iter().map(String::as_str));

    let mut dry = install.clone();
    dry.insert(2, "--dry-run");
    let (code, out, err) = home.run(&dry);
    if code != case.code && !case.read_only {
        wrong.push(format!("dry run: status {code}\n{out}{err}"));
    }
    if current() != before {
        wrong.push("the dry run changed the file".to_owned());
    }
    let (code, out, err) = home.run(&install);
    if code != case.code {
        wrong.push(format!("status {code}, expected {}\n{out}{err}", case.code));
    }
    for part in &case.said {
        let part = home.real(part);
        if !err.contains(&part) {
            wrong.push(format!("standard error lacks {part:?}: {err}"));
        }
    }
    let after = case.after.as_ref().map(|after| case.bytes(&home, after)).or_else(|| before.clone());
    if current() != after {
        wrong.push(format!("after: {:#?}", text(&current())));
        let plain = text(&current()).unwrap_or_default();
        bless.insert("after", plain.trim_start_matches('\u{feff}').replace("\r\n", "\n"));
    }
    let after = current();
    if case.code != 0 || after.is_none() || case.host == "claude-code" && !args.iter().any(|word| word == "project") {
        return wrong;
    }
    let backups = home.backups(&case.file);
    match &before {
        Some(before) if backups.len() == 1 => {
            if std::fs::read(&backups[0]).unwrap() != *before {
                wrong.push("the backup is not the old file".to_owned());
            }
        }
        None if backups.is_empty() => {}
        _ => wrong.push(format!("backups: {backups:?}")),
    }
    if case.link.is_some() && !std::fs::symlink_metadata(&path).unwrap().is_symlink() {
        wrong.push("the link is gone".to_owned());
    }
    let (code, out, _) = home.run(&install);
    if code != 0 || !out.contains("is already installed") || current() != after || home.backups(&case.file) != backups {
        wrong.push(format!("the second installation: {out}"));
    }
    let uninstall = ["uninstall", &case.host, &case.name];
    let scoped = ["uninstall", &case.host, &case.name, "--scope", "project"];
    let uninstall: &[&str] = if args.iter().any(|word| word == "project") { &scoped } else { &uninstall };
    for (key, with, wanted) in [
        ("removed", true, &case.removed),
        (
            "removed_without_backup",
            false,
            case.removed_without_backup.as_ref().map_or(&case.removed, |_| &case.removed_without_backup),
        ),
    ] {
        let kept: Vec<_> = backups.iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        if !with {
            home.backups(&case.file).iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
        let (code, out, err) = home.run(uninstall);
        let wanted = wanted.as_ref().map(|text| case.bytes(&home, text)).or_else(|| before.clone());
        if code != 0 || current() != wanted {
            wrong.push(format!("{key}: status {code} {out}{err} {:#?}", text(&current())));
            let plain = text(&current()).unwrap_or_default();
            bless.insert(key, plain.trim_start_matches('\u{feff}').replace("\r\n", "\n"));
        }
        home.backups(&case.file).iter().for_each(|path| std::fs::remove_file(path).unwrap());
        kept.into_iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
        std::fs::write(&path, after.as_ref().unwrap()).unwrap();
    }
    wrong
}

/// Writes into the cases what came out, to be read before it is committed.
const BLESS: &str = "TRICORN_BLESS";

#[test]
fn configurations_keep_their_bytes() {
    let cases = cases();
    let mut failed = Vec::new();
    for (path, case) in &cases {
        if case.link.is_some() && cfg!(not(unix)) {
            continue;
        }
        let mut bless = BTreeMap::new();
        let wrong = run(case, &mut bless);
        if std::env::var_os(BLESS).is_some() && !bless.is_empty() {
            let mut document: toml_edit::DocumentMut = std::fs::read_to_string(path).unwrap().parse().unwrap();
            for (key, text) in bless {
                document[key] = toml_edit::value(text);
            }
            std::fs::write(path, document.to_string()).unwrap();
        }
        failed
            .extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", path.file_name().unwrap().to_string_lossy())));
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

/// A home with servers in many places.
fn furnished() -> Home {
    let mut home = Home::new(System::Linux);
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "weather": {"command": "npx", "args": ["-y", "weather", "--api-key", "k-123456789"], "env": {"TOKEN": "t-123456789"}},
            "notes": {"url": "https://user:pw@notes.example/mcp?key=k-123456789", "headers": {"Authorization": "Bearer t"}},
            "wëb": {"command": "web", "disabled": true}
        }}"#,
    );
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"all": {"type": "stdio", "command": "all"}}, "projects": {
            "$PROJECT": {"mcpServers": {"mine": {"type": "http", "url": "https://mine.example"}}, "disabledMcpServers": ["mine"], "disabledMcpjsonServers": ["no"]},
            "/elsewhere": {"mcpServers": {}}
        }}"#,
    );
    home.write(
        "project/.mcp.json",
        r#"{"mcpServers": {"no": {"command": "no"}, "yes": {"command": "yes", "args": ["${HOME}/a b"]}}}"#,
    );
    home.write(".config/Code/User/mcp.json", "{\n  \"servers\": {\n    \"a\": \n}\n");
    home.write(
        ".config/Code/User/profiles/7f/mcp.json",
        r#"{"servers": {"p": {"type": "http", "url": "https://p.example", "headers": {"K": "${input:k}"}}}}"#,
    );
    home.write(
        ".config/Code/User/settings.json",
        "{ // mine\n\"mcp\": {\"servers\": {\"older\": {\"command\": \"older\"}}},}",
    );
    home.write(".config/zed/settings.json", r#"{"context_servers": {"z": {"command": {"path": "zz", "args": ["1"], "env": {"A": "b"}}}, "ext": {"settings": {}}}}"#);
    home.write(
        ".gemini/settings.json",
        r#"{"mcp": {"excluded": ["g"]}, "mcpServers": {"g": {"httpUrl": "https://g.example/mcp"}}}"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.c]\ncommand = \"c\"\nenabled = false\n[mcp_servers.c.env]\nA = \"1\"\n",
    );
    home.write(".config/goose/config.yaml", "extensions:\n  developer:\n    type: builtin\n  gg:\n    type: stdio\n    cmd: gg\n    args: [-v]\n    envs: {X: y}\n");
    home.write("project/deep/er/file", "");
    home.places.folder = home.path("project");
    home
}

const FOUND: &str = include_str!("../../tests/cli/hosts/discover.txt");

#[test]
fn discovered_are_servers_of_all_hosts() {
    let mut home = furnished();
    let project = home.places.folder.clone();
    home.places.folder = project.join("deep/er");
    let (code, out, err) = home.run(&["discover"]);
    home.places.folder = project;
    let said = format!("{}{}", home.masked(&out), home.masked(&err));
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cli/hosts/discover.txt"), &said).unwrap();
    }
    assert_eq!(code, 0);
    assert_eq!(said, FOUND);
    let (_, out, _) = home.run(&["discover", "cursor", "vscode", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["servers"][0]["env"], serde_json::json!(["TOKEN"]));
    assert_eq!(value["servers"][2]["enabled"], serde_json::json!(false));
    assert_eq!(value["problems"][0]["line"], serde_json::json!(4));
    assert!(!out.contains("123456789"), "{out}");
}

#[test]
fn the_configuration_of_the_current_folder_is_discovered() {
    let home = Home::new(System::Linux);
    home.write("project/mcp.json", r#"{"servers": {"here": {"command": "npx", "args": ["here"]}}}"#);
    let (code, out, _) = home.run(&["discover"]);
    assert_eq!((code, home.masked(&out).as_str()), (0, "This folder: $PROJECT/mcp.json\n  here  npx here\n"));
    let (_, out, _) = home.run(&["discover", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["servers"][0]["host"], serde_json::Value::Null);
    let (_, out, _) = home.run(&["discover", "cursor"]);
    assert_eq!(out, "");
    home.write("project/mcp.json", "{");
    let (code, out, err) = home.run(&["discover"]);
    assert!(code == 0 && out.is_empty() && err.contains("(This folder)"), "{out}{err}");
}

#[test]
fn entries_that_are_no_servers_are_warned_of() {
    let home = Home::new(System::Linux);
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"bad": 5, "empty": {}, "good": {"command": "g"}}}"#);
    home.write(".codeium/windsurf/mcp_config.json", r#"{"mcpServers": []}"#);
    let (code, out, err) = home.run(&["discover"]);
    assert!(code == 0 && out.contains("good"), "{code} {out}");
    for part in [
        "\"bad\" is a number, not a server (Cursor); it is left as it is, mend it or name other hosts",
        "\"empty\" has neither a command nor a URL (Cursor)",
        "mcpServers is a list, not a table of servers (Windsurf)",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn checks_are_the_callers() {
    let home = furnished();
    let line = Line::try_parse_from(["tricorn", "discover", "cursor", "--check"]).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert_eq!(hosts::run(&line.command, &home.places, None, &mut out, &mut err), 2);
    let one = |entry: &hosts::Entry| {
        assert_ne!(entry.name, "wëb", "it is switched off");
        if entry.name == "notes" { Err("no answer".to_owned()) } else { Ok("3 tools".to_owned()) }
    };
    let check = |entries: &[hosts::Entry]| entries.iter().map(one).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert_eq!(hosts::run(&line.command, &home.places, Some(&check), &mut out, &mut err), 1);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.matches("ok: 3 tools").count(), 1, "{out}");
    assert_eq!(out.matches("failed: no answer").count(), 1, "{out}");
    // It is done anyway, once for each server.
    home.write(".codeium/windsurf/mcp_config.json", &std::fs::read_to_string(home.path(".cursor/mcp.json")).unwrap());
    let said = |words: &[&str], most: usize| {
        let line = Line::try_parse_from(["tricorn", "discover", "cursor", "windsurf"].iter().chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let check = |entries: &[hosts::Entry]| {
            assert_eq!(entries.len(), most);
            check(entries)
        };
        let code = hosts::run(&line.command, &home.places, Some(&check), &mut out, &mut err);
        (code, String::from_utf8(out).unwrap().matches("ok: 3 tools").count())
    };
    assert_eq!((said(&[], 2), said(&["--no-check"], 0)), ((1, 2), (0, 0)));
}

/// A clone of a stranger's has files that name programs.
#[test]
fn servers_that_a_folder_names_are_started_when_that_is_said() {
    let home = Home::new(System::Linux);
    home.write("project/mcp.json", r#"{"servers": {"here": {"command": "npx", "args": ["here"]}}}"#);
    home.write("project/.cursor/mcp.json", r#"{"mcpServers": {"there": {"command": "sh", "args": ["./x"]}}}"#);
    let said = |words: &[&str]| {
        let line = Line::try_parse_from(["tricorn", "discover"].iter().chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let check = |entries: &[hosts::Entry]| vec![Ok("up".to_owned()); entries.len()];
        assert_eq!(hosts::run(&line.command, &home.places, Some(&check), &mut out, &mut err), 0);
        (String::from_utf8(out).unwrap().matches("ok: up").count(), String::from_utf8(err).unwrap())
    };
    // One of the user's own is not started here, where a stranger's modules would be found first.
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"mine": {"command": "python", "args": ["-m", "mine"]}}}"#);
    let line = Line::try_parse_from(["tricorn", "discover"]).unwrap();
    let check = |entries: &[hosts::Entry]| {
        let [hosts::Entry { kind: hosts::Kind::Stdio { cwd, .. }, .. }] = entries else { panic!("{entries:?}") };
        assert_eq!(cwd.as_deref(), home.places.home.to_str());
        vec![Ok("up".to_owned())]
    };
    assert_eq!(hosts::run(&line.command, &home.places, Some(&check), &mut Vec::new(), &mut Vec::new()), 0);
    std::fs::remove_file(home.path(".cursor/mcp.json")).unwrap();

    let (started, note) = said(&[]);
    assert!(started == 0 && note.contains("--check starts them"), "{started}: {note}");
    assert_eq!(said(&["--check"]), (2, String::new()));
    assert_eq!(said(&["--no-check"]), (0, String::new()));
}

#[test]
fn paths_of_a_configuration_stay_where_they_are() {
    use serde_json::json;
    let home = Home::new(System::Linux);
    home.write("project/group/server", "#!/bin/sh\n");
    home.write("project/group/data/words.txt", "");
    home.write("project/group/data/deep/own.txt", "");
    let entry =
        json!({"command": "./server", "args": ["data/words.txt", "./none", "--own=./data", "data"], "cwd": "."});
    let deep = json!({"command": "python", "args": ["own.txt"], "cwd": "data/deep"});
    let bare = json!({"command": "server", "args": ["./data/words.txt"]});
    let all = json!({"mcpServers": {"a": entry, "b": deep, "c": bare}});
    home.write("project/group/mcp.json", &all.to_string());
    let written = |host: &str, file: &str, name: &str| {
        let (entry, said) = installed(&home, host, file, &[&format!("group/mcp.json#{name}")]);
        let (_, _, dry) = home.run(&["install", host, "--dry-run", "--name", "new", &format!("group/mcp.json#{name}")]);
        assert!(said.starts_with(&home.masked(&dry)), "{dry}: {said}");
        (entry, said)
    };
    let cursor = |name: &str| written("cursor", ".cursor/mcp.json", name);
    let (entry, said) = cursor("a");
    let args = ["$PROJECT/group/data/words.txt", "./none", "--own=./data", "data"];
    assert_eq!(entry, json!({"command": "$PROJECT/group/server", "args": args, "cwd": "$PROJECT/group"}));
    let note = "note: ./server is written as $PROJECT/group/server: hosts start programs in other folders";
    assert!(said.contains(note), "{said}");
    let (entry, _) = cursor("b");
    let deep = "$PROJECT/group/data/deep";
    assert_eq!(entry, json!({"command": "python", "args": [format!("{deep}/own.txt")], "cwd": deep}));
    let (entry, _) = cursor("c");
    assert_eq!(entry, json!({"command": "server", "args": ["$PROJECT/group/data/words.txt"]}));
    // A host that knows no folder.
    let (entry, said) = written("windsurf", ".codeium/windsurf/mcp_config.json", "b");
    assert_eq!(entry, json!({"command": "python", "args": [format!("{deep}/own.txt")]}));
    assert!(said.contains(&format!("Windsurf starts programs where it likes: {deep} is left out")), "{said}");
}

#[test]
fn a_server_of_a_host_is_found_by_its_name() {
    let home = furnished();
    let entry = hosts::find("Cursor:weather", &home.places).unwrap();
    let hosts::Kind::Stdio { command, env, .. } = entry.kind else { panic!("no program") };
    assert_eq!((command.as_str(), env[0].1.as_str()), ("npx", "t-123456789"));
    let said = |name: &str| hosts::find(name, &home.places).unwrap_err();
    assert_eq!(said("cursor:wether"), "Cursor has no server \"wether\"; did you mean weather?");
    assert_eq!(said("windsurf:a"), "Windsurf has no server \"a\"; it has none");
    assert!(said("vscode:a").contains("mcp.json:4:1: "), "{}", said("vscode:a"));
    assert!(said("nobody:a").contains("expected HOST:NAME"));
}

#[test]
fn a_server_is_copied_from_host_to_host() {
    let home = furnished();
    let (_, out, _) = home.run(&["install", "codex", "cursor:weather", "--dry-run", "-e", "MINE=m-123456789"]);
    assert!(out.contains("+TOKEN = \"•••\"") && out.contains("m-123456789"), "{out}");
    let (code, _, err) = home.run(&["install", "codex", "cursor:weather"]);
    assert_eq!(code, 0, "{err}");
    let text = std::fs::read_to_string(home.path(".codex/config.toml")).unwrap();
    assert!(text.ends_with("\n[mcp_servers.weather.env]\nTOKEN = \"t-123456789\"\n"), "{text}");
}

#[test]
fn secrets_of_others_are_masked() {
    let home = furnished();
    let (_, out, _) = home.run(&["install", "cursor", "--dry-run", "--name", "x", "-e", "MINE=m-123456789", "--", "x"]);
    assert!(out.contains("m-123456789") && out.contains("•••"), "{out}");
    assert!(!out.contains("t-123456789") && !out.contains("k-123456789"), "{out}");
    let (code, _, err) = home.run(&["install", "cursor", "--name", "weather", "--", "other"]);
    assert_eq!(code, 1);
    assert!(err.contains("Cursor has another server \"weather\"; --force replaces it"), "{err}");
    assert!(!err.contains("t-123456789") && !err.contains("k-123456789"), "{err}");
}

#[test]
fn misuse_is_said() {
    let home = furnished();
    let refused = |words: &[&str], part: &str| {
        let (code, out, err) = home.run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(part), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    };
    refused(&["install", "cursor"], "a target is missing");
    refused(&["install", "cursor", "a.py", "--", "b"], "not both");
    refused(&["install", "cursor", "missing.py"], "there is no such file");
    refused(&["install", "cursor", "deep"], "hosts do not build packages");
    refused(&["install", "cursor", "deep/er/file"], "no idea how to run this file");
    home.write("project/serve.sh", "echo");
    let why = if cfg!(unix) { "is not executable: chmod +x makes it so" } else { "no idea how to run this file" };
    refused(&["install", "cursor", "serve.sh"], why);
    refused(&["install", "cursor", "ftp://example.com"], "http:// and https:// alone");
    refused(&["install", "cursor", "https://a.example", "-e", "A=b"], "a URL has no environment");
    refused(&["install", "cursor", "-H", "A: b", "--", "a"], "a program has no headers");
    refused(&["install", "cursor", "--name", " ", "--", "a"], "a name is missing");
    refused(&["install", "cursor", "--name=-a", "--", "a"], "a name that begins with -");
    refused(&["install", "cursor", ".mcp.json"], "say which server is meant, .mcp.json#NAME: no, yes");
    refused(&["install", "cursor", ".mcp.json#yess"], "did you mean yes?");
    refused(&["install", "codex", "--name", "a b", "--", "a"], "give another with --name");
    refused(&["install", "windsurf", "--scope", "project", "--", "a"], "no file for a project");
    refused(&["install", "cursor", "cursor:wether"], "did you mean weather?");
}

#[test]
fn removal_of_what_is_not_there_is_said() {
    let home = furnished();
    let (code, _, err) = home.run(&["uninstall", "cursor", "wether"]);
    assert_eq!(code, 1);
    assert!(err.contains("did you mean weather?"), "{err}");
    let (code, _, err) = home.run(&["uninstall", "windsurf", "a"]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no $HOME".replace("$HOME", home.places.home.to_str().unwrap()).as_str()), "{err}");
}

/// Without its own command the file of Claude Code is edited as those of others are.
#[test]
fn claude_code_without_its_command_is_edited() {
    let home = Home::new(System::Linux);
    let install = ["install", "claude-code", "--name", "weather", "--", "npx", "weather-server"];
    let (code, _, err) = home.run(&install);
    assert!(code == 1 && home.masked(&err).contains("there is no $HOME/.claude.json; --force creates it"), "{err}");
    let before =
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}},\n  \"projects\": {\"/b\": {}}\n}\n";
    home.write(".claude.json", before);
    let (code, out, err) = home.run(&[&install[..2], &["--dry-run"], &install[2..]].concat());
    assert!(code == 0 && out.contains("+++") && out.contains("weather-server"), "{out}{err}");
    assert_eq!(std::fs::read_to_string(home.path(".claude.json")).unwrap(), before);
    let warning = "warning: claude is not in PATH, so $HOME/.claude.json itself is edited; a session of Claude Code that is running may write over it: restart that session\n";
    assert_eq!(home.masked(&err), warning);
    let (code, out, err) = home.run(&install);
    assert!(code == 0 && out.starts_with("Installed \"weather\" in Claude Code: "), "{out}{err}");
    assert!(home.masked(&err).starts_with(warning) || home.masked(&err).contains(warning), "{err}");
    assert_eq!(home.backups(".claude.json").len(), 1);
    let text = std::fs::read_to_string(home.path(".claude.json")).unwrap();
    let places: Vec<_> = ["numStartups", "\"a\"", "weather", "projects"].iter().map(|part| text.find(part)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
    let (code, _, err) = home.run(&["uninstall", "claude-code", "weather"]);
    assert!(code == 0 && home.masked(&err).contains(warning), "{err}");
    assert_eq!(std::fs::read_to_string(home.path(".claude.json")).unwrap(), before);
}

/// Claude Code's own command is run, in the place of which stands a script here.
#[cfg(unix)]
#[test]
fn claude_code_does_it_itself() {
    let mut home = furnished();
    home.write("bin/claude", "#!/bin/sh\necho \"$@\" >> $HOME/said\n[ -e $HOME/no ] && { echo 'not today' >&2; exit 3; }\n[ $2 = add-json ] && echo \"{\\\"mcpServers\\\": {\\\"$5\\\": $6}}\" > $HOME/.claude.json\nexit 0\n");
    let install = ["install", "claude-code", "https://weather.example/mcp", "--header", "K: v"];
    let mut path = home.path("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    home.places.variables.insert("PATH".to_owned(), path);
    let mut dry = install.to_vec();
    dry.push("--dry-run");
    let (code, out, _) = home.run(&dry);
    let value = r#"{"type":"http","url":"https://weather.example/mcp","headers":{"K":"v"}}"#;
    assert_eq!((code, out), (0, format!("claude mcp add-json --scope user weather '{value}'\n")));
    assert!(!home.path("said").exists());
    let (code, out, err) = home.run(&install);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("Installed \"weather\" in Claude Code by its own command"), "{out}");
    assert_eq!(
        std::fs::read_to_string(home.path("said")).unwrap(),
        format!("mcp add-json --scope user weather {value}\n")
    );
    assert!(home.run(&install).1.contains("already installed"));
    let mut other = install.to_vec();
    other[2] = "https://weather.example/other";
    let (code, _, err) = home.run(&other);
    assert_eq!(code, 1);
    assert!(err.contains("has another server \"weather\"; --force"), "{err}");
    home.write("no", "");
    let (code, _, err) = home.run(&["uninstall", "claude-code", "weather"]);
    assert_eq!(code, 1);
    assert!(err.contains("not today"), "{err}");
}

#[cfg(unix)]
#[test]
fn modes_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = furnished();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = home.path(".cursor/mcp.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    home.run(&["install", "cursor", "--name", "x", "--", "x"]);
    assert_eq!((mode(&path), mode(&home.backups(".cursor/mcp.json")[0])), (0o640, 0o640));
    home.run(&["install", "windsurf", "--force", "--name", "x", "--", "x"]);
    assert_eq!(mode(&home.path(".codeium/windsurf/mcp_config.json")), 0o600);
    home.run(&["install", "cursor", "--scope", "project", "--name", "x", "--", "x"]);
    assert_eq!(mode(&home.path("project/.cursor/mcp.json")), 0o644);
}

#[test]
fn what_is_no_configuration_stays() {
    let home = furnished();
    let path = home.path(".cursor/mcp.json");
    let install = ["install", "cursor", "--name", "x", "--", "x"];
    std::fs::write(&path, b"{}\n\xff").unwrap();
    let (code, _, err) = home.run(&install);
    assert!(code == 1 && err.contains("mcp.json:2: not UTF-8"), "{err}");
    std::fs::write(&path, vec![b' '; 10 * 1024 * 1024 + 1]).unwrap();
    let (code, _, err) = home.run(&install);
    assert!(code == 1 && err.contains("more than the 10 MB"), "{err}");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let (code, _, err) = home.run(&install);
    assert!(code == 1 && err.contains("not a file"), "{err}");
    std::fs::remove_dir(&path).unwrap();
    for (host, file, start) in [
        ("cursor", ".cursor/mcp.json", ""),
        ("codex", ".codex/config.toml", "a = "),
        ("goose", ".config/goose/config.yaml", "a: "),
    ] {
        for part in ["[", "{\"a\": ", "{a = "] {
            let text = format!("{start}{}", part.repeat(50_000));
            std::fs::write(home.path(file), &text).unwrap();
            let (code, _, err) = home.run(&["install", host, "--name", "x", "--", "x"]);
            assert!(code == 1 && err.contains("left as it is"), "{err}");
            assert_eq!(std::fs::read_to_string(home.path(file)).unwrap(), text);
        }
    }
}

/// Installs by these words, and gives the entry that the file then has, and what was said.
fn installed(home: &Home, host: &str, file: &str, words: &[&str]) -> (serde_json::Value, String) {
    let (code, _, err) = home.run(&[&["install", host, "--force", "--name", "weather"], words].concat());
    assert_eq!(code, 0, "{err}");
    let text = home.masked(&std::fs::read_to_string(home.path(file)).unwrap());
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    (whole["mcpServers"]["weather"].clone(), home.masked(&err))
}

/// modelcontextprotocol/python-sdk 478, modelcontextprotocol/servers 760, ahujasid/blender-mcp 179: a host with windows does
/// not know the `PATH` of the shell.
#[cfg(unix)]
#[test]
fn a_program_that_the_host_would_not_find_is_written_with_its_path() {
    use serde_json::json;
    const DESKTOP: &str = "Library/Application Support/Claude/claude_desktop_config.json";
    let mut home = Home::new(System::Mac);
    home.write("bin/uvx", "#!/bin/sh\n");
    home.write("bin/npx", "#!/usr/bin/env node\n");
    let mut path = home.path("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    home.places.variables.insert("PATH".to_owned(), path);
    let desktop = |words: &[&str]| installed(&home, "claude-desktop", DESKTOP, words);
    let (entry, said) = desktop(&["--", "uvx", "some-server"]);
    assert_eq!(entry, json!({"command": "$HOME/bin/uvx", "args": ["some-server"]}));
    assert!(said.contains("uvx is written as $HOME/bin/uvx: Claude Desktop does not look"), "{said}");
    // A script is run by a program that has to be found, too.
    let (entry, _) = desktop(&["--", "npx", "-y", "some-server"]);
    let folders = "$HOME/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    assert_eq!(entry, json!({"command": "$HOME/bin/npx", "args": ["-y", "some-server"], "env": {"PATH": folders}}));
    // One with a PATH of its own, one of the system, and one that is not there.
    assert_eq!(desktop(&["-e", "PATH=/opt/bin", "--", "npx", "x"]).0["command"], "npx");
    let (entry, said) = desktop(&["--", "sh", "server.sh"]);
    assert_eq!((&entry["command"], said.contains("is written as")), (&json!("sh"), false));
    let (entry, said) = desktop(&["--", "nowhere", "x"]);
    assert_eq!(entry["command"], "nowhere");
    assert!(said.contains("nowhere is not in PATH here: Claude Desktop has to find it"), "{said}");
    // A host of the shell has its PATH, and a project is of many machines.
    home.write(".gemini/settings.json", "{}");
    assert_eq!(installed(&home, "gemini", ".gemini/settings.json", &["--", "uvx", "x"]).0["command"], "uvx");
    let project = installed(&home, "cursor", "project/.cursor/mcp.json", &["--scope", "project", "--", "uvx", "x"]);
    assert_eq!(project.0["command"], "uvx");
}

/// The program of an environment that is thrown away is not there any more when the host starts it.
#[cfg(unix)]
#[test]
fn environments_that_are_thrown_away_are_left_out() {
    use serde_json::json;
    const DESKTOP: &str = "Library/Application Support/Claude/claude_desktop_config.json";
    let mut home = Home::new(System::Mac);
    home.write(".cache/uv/archive-v0/x1/bin/uvx", "#!/bin/sh\n");
    home.write(".cache/uv/environments-v2/x2/bin/only", "#!/bin/sh\n");
    home.write("bin/uvx", "#!/bin/sh\n");
    home.write("fnm/node-versions/v24/installation/bin/npx", "#!/usr/bin/env node\n");
    std::fs::create_dir_all(home.path("fnm_multishells")).unwrap();
    std::os::unix::fs::symlink(home.path("fnm/node-versions/v24/installation"), home.path("fnm_multishells/1_2"))
        .unwrap();
    let path = "$HOME/.cache/uv/archive-v0/x1/bin:$HOME/.cache/uv/environments-v2/x2/bin:own:$HOME/bin:$HOME/fnm_multishells/1_2/bin:/usr/bin";
    home.places.variables.insert("PATH".to_owned(), home.real(path).into());
    let desktop = |words: &[&str]| installed(&home, "claude-desktop", DESKTOP, words);
    assert_eq!(desktop(&["--", "uvx", "x"]).0, json!({"command": "$HOME/bin/uvx", "args": ["x"]}));
    // The folder that the one of the shell is a link to stays. The rest of the PATH is kept.
    let node = "$HOME/fnm/node-versions/v24/installation/bin";
    let folders = format!("{node}:$HOME/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    let expected = json!({"command": format!("{node}/npx"), "args": ["x"], "env": {"PATH": folders}});
    assert_eq!(desktop(&["--", "npx", "x"]).0, expected);
    let (entry, said) = desktop(&["--", "only", "x"]);
    assert_eq!(entry["command"], "only");
    assert!(said.contains("only is in PATH here only in an environment that is thrown away"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_virtual_environment_is_named_by_its_path() {
    let mut home = Home::new(System::Linux);
    home.write("project/own/bin/python", "#!/bin/sh\n");
    home.write("project/server.py", "run()\n");
    home.write("project/other/.venv/bin/python", "#!/bin/sh\n");
    home.write("project/other/server.py", "run()\n");
    home.write(".gemini/settings.json", "{}");
    let install = |home: &Home, words: &[&str]| {
        let entry = installed(home, "gemini", ".gemini/settings.json", words).0;
        (entry["command"].as_str().unwrap().to_owned(), entry["args"][0].as_str().unwrap().to_owned())
    };
    let expected = |command: &str, file: &str| (command.to_owned(), file.to_owned());
    let found = install(&home, &["other/server.py"]);
    assert_eq!(found, expected("$PROJECT/other/.venv/bin/python", "$PROJECT/other/server.py"));
    // The active one, also where its path begins in the current folder, as a program of the shell and of a command line.
    home.places.variables.insert("VIRTUAL_ENV".to_owned(), "own".into());
    let path = home.path("project/own/bin").into_os_string();
    home.places.variables.insert("PATH".to_owned(), path);
    assert_eq!(install(&home, &["server.py"]), expected("$PROJECT/own/bin/python", "$PROJECT/server.py"));
    let found = install(&home, &["--", "python", "server.py"]);
    assert_eq!(found, expected("$PROJECT/own/bin/python", "$PROJECT/server.py"));
}

/// anthropics/claude-ai-mcp 891, Part-DB/Part-DB-server 1480: with its path, which has a blank in it, a script of npm and an
/// argument with a blank are too much for `cmd`.
#[cfg(unix)]
#[test]
fn scripts_of_windows_keep_their_names() {
    use serde_json::json;
    let mut home = Home::new(System::Windows);
    home.write("Program Files/npx.cmd", "#!\n");
    home.write("Program Files/uv.exe", "#!\n");
    home.write("Program Files/serve.cmd", "#!\n");
    home.places.variables.insert("PATH".to_owned(), home.path("Program Files").into_os_string());
    let cursor = |words: &[&str]| installed(&home, "cursor", ".cursor/mcp.json", words);
    let (entry, said) = cursor(&["--", "npx", "-y", "some-server", "C:\\My Files"]);
    assert_eq!(entry, json!({"command": "cmd", "args": ["/c", "npx", "-y", "some-server", "C:\\My Files"]}));
    assert!(said.contains("Cursor looks for npx in its own PATH: start it anew when that has changed"), "{said}");
    assert_eq!(cursor(&["--", "serve", "x"]).0["command"], "serve");
    assert_eq!(cursor(&["--", "uv", "run", "x"]).0["command"], "$HOME/Program Files/uv.exe");
}

/// modelcontextprotocol/python-sdk 240: two words in one argument.
#[test]
fn two_words_in_one_argument_are_said() {
    let home = Home::new(System::Linux);
    let words = ["--", "npx", "-y @modelcontextprotocol/server-everything"];
    let (_, said) = installed(&home, "cursor", ".cursor/mcp.json", &words);
    let expected =
        "note: \"-y @modelcontextprotocol/server-everything\" is one argument: leave out its quotes if it is two";
    assert!(said.contains(expected), "{said}");
    let (_, said) = installed(&home, "cursor", ".cursor/mcp.json", &["--", "x", "--header=A: b", "- a", "-c", "a b"]);
    assert!(!said.contains("is one argument"), "{said}");
}

#[test]
fn a_cassette_is_installed_as_a_server() {
    let home = Home::new(System::Linux);
    home.write("project/session.jsonl", "{\"cassette\":1}\n");
    let words = ["install", "cursor", "--force", "replay:session.jsonl?strict"];
    assert_eq!(home.run(&words).0, 0);
    let text = home.masked(&std::fs::read_to_string(home.path(".cursor/mcp.json")).unwrap());
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    let args = ["replay", "$PROJECT/session.jsonl", "--strict"];
    assert_eq!(whole["mcpServers"]["session"], serde_json::json!({"command": "/usr/bin/tricorn", "args": args}));
    let (code, _, err) = home.run(&["install", "cursor", "replay:nothing.jsonl"]);
    assert!(code == 2 && err.contains("there is no such file; tricorn record"), "{err}");
    home.write("project/broken.jsonl", "{}\n");
    assert_eq!(home.run(&["install", "cursor", "replay:broken.jsonl"]).0, 2);
}
