//! Installs into the configurations of `tests/cli/hosts` and takes out again, in homes that are made for it.
//!
//! Every case is run as it stands there: a dry run, which changes nothing; the installation; the same again, which finds
//! it done; and the removal, once with the backup and once without, which gives the file its old bytes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Parser;
use serde::Deserialize;
use tricorn_cli::hosts::{self, Command, Entry, Kind, Places, System};

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
    folder: tempfile::TempDir,
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
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_881_600),
        };
        Self { folder, places }
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
        text.replace(self.places.folder.to_str().unwrap(), "$PROJECT").replace(self.places.home.to_str().unwrap(), "$HOME")
    }

    fn backups(&self, file: &str) -> Vec<PathBuf> {
        let path = self.path(file);
        let name = format!("{}.bak-", path.file_name().unwrap().to_str().unwrap());
        let all = std::fs::read_dir(path.parent().unwrap()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<_> = all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&name)).collect();
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
        let case = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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

/// What differs, in the case's own terms.
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
    if case.code != 0 || case.host == "claude-code" && !args.iter().any(|word| word == "project") {
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
        ("removed_without_backup", false, case.removed_without_backup.as_ref().map_or(&case.removed, |_| &case.removed_without_backup)),
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
        failed.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", path.file_name().unwrap().to_string_lossy())));
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
    println!("{} cases", cases.len());
}
