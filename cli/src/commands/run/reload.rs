//! A server that is started anew when its code changes, behind a bridge that keeps its clients.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tricorn::client::Target;

use super::serve::{Ending, SESSIONS, address, close, serve_bridge};
use crate::arguments::{Connection, Run};
use crate::bridge::Bridge;
use crate::connection::{options, runtime};
use crate::failure::{Failure, Outcome, UNREACHABLE};
use crate::launcher::Launcher;
use crate::output::{Screen, one_line};
use crate::targets::{self, Found, Reach, Way};

/// Endings of files with code. Data that a server writes does not start it anew.
const CODE: [&str; 14] =
    ["py", "pyw", "pyx", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rs", "swift", "toml"];
/// Folders of what is installed, built or kept, whatever `.gitignore` says.
const OTHERS: [&str; 8] =
    ["__pycache__/", "node_modules/", "site-packages/", "target/", "venv/", "env/", "build/", "dist/"];
/// Folders that are watched.
const FOLDERS: usize = 4096;
/// Time without a change after which the server is started: an editor writes several files one after the other.
const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for that.
const PATIENCE: Duration = Duration::from_secs(3);
/// Names of changed files that are told.
const TOLD: usize = 3;

/// Serves the target over HTTP or standard streams; after each change of its code clients find the new one.
pub(super) fn serve(run: &Run, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let address = run.http.as_deref().map(address).transpose()?;
    if run.connection.record.is_some() {
        return Err(Failure::misuse(
            "--record and --reload: a cassette is of one run of a server: leave out one of them",
        ));
    }
    let find = || targets::find(&run.target, &run.connection, &Way::Streams, launcher, screen);
    let found = find()?;
    let root = root(run, &found)?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let mut code = Code::watch(&root)?;
        let mut found = found;
        let mut bridge = loop {
            match Bridge::renewable(found, options(&run.connection), screen, SESSIONS).await {
                Ok(bridge) => break bridge,
                // Nobody is connected over HTTP yet, and somebody is about to mend it.
                Err(failure) if address.is_some() && failure.status == UNREACHABLE => {
                    screen.error(&failure.message);
                    screen.line(&format!("not started: waiting for a change of {}", root.display()));
                    found = loop {
                        // Saved once more it may start: the reason may be elsewhere.
                        code.contents.clear();
                        let changed = code.changed().await;
                        screen.line(&said(&changed));
                        match find() {
                            Ok(found) => break found,
                            Err(failure) => screen.error(&failure.message),
                        }
                    };
                }
                Err(failure) => return Err(failure),
            }
        };
        let mut ending = Ending::new();
        screen.line(&screen.error_style().dim(&format!("watching {}", root.display())));
        let server = bridge.server.clone();
        let status = tokio::select! {
            status = serve_bridge(&server, address, SESSIONS, &mut ending, screen) => status,
            () = renew(&mut code, &mut bridge, find, screen) => Ok(0),
        };
        close(&bridge, &mut ending).await;
        status
    });
    runtime.shutdown_background();
    outcome
}

/// Starts the server after each change, for ever. One that does not start leaves the one before in its place.
async fn renew(code: &mut Code, bridge: &mut Bridge, find: impl Fn() -> Outcome<Found>, screen: &Screen) {
    loop {
        let changed = code.changed().await;
        let outcome = match find() {
            Ok(found) => bridge.renew(found).await,
            Err(failure) => Err(failure),
        };
        let files = said(&changed);
        match outcome {
            Ok(differences) if differences.is_empty() => screen.line(&format!("reloaded: {files}")),
            Ok(differences) => screen.line(&format!("reloaded: {files}: {}", differences.join(", "))),
            Err(failure) => {
                // Saved once more it may start: the reason may be elsewhere, such as a package that is missing.
                code.contents.clear();
                screen.error(&failure.message);
                screen.line(&format!("not reloaded: {files}: the server before the change goes on"));
            }
        }
    }
}

fn said(changed: &BTreeSet<PathBuf>) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let name = |path: &PathBuf| one_line(&path.strip_prefix(&here).unwrap_or(path).to_string_lossy());
    let mut names: Vec<_> = changed.iter().take(TOLD).map(name).collect();
    if changed.len() > TOLD {
        names.push(format!("{} more", changed.len() - TOLD));
    }
    format!("{} changed", names.join(", "))
}

/// The folder of a target's code: that of its file or package; for a command line the folder that it is started in.
fn root(run: &Run, found: &Found) -> Outcome<PathBuf> {
    let refused = |why: &str| Failure::misuse(format!("--reload: {}: {why}", found.name));
    match &found.reach {
        Reach::Many(_) => return Err(refused("say which server is meant, FILE#NAME")),
        Reach::One(Target::Command { cwd: Some(folder), .. }) => return Ok(PathBuf::from(folder)),
        Reach::One(Target::Command { .. }) => {}
        Reach::One(_) => return Err(refused("it is not started here: expected a file, a package or a command line")),
    }
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| refused(&error.to_string()));
    if Connection::is_command(&run.target) {
        return absolute(Path::new("."));
    }
    let (path, _) = targets::parts(&run.target);
    let path = absolute(path)?;
    match path.parent() {
        Some(folder) if !path.is_dir() => Ok(folder.to_owned()),
        _ => Ok(path),
    }
}

/// The files of a folder with code, and what changes in them.
struct Code {
    root: PathBuf,
    ignored: Gitignore,
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<PathBuf>,
    /// Those that are watched.
    folders: BTreeSet<PathBuf>,
    /// Contents of files that have changed, as hashes: a server that writes some of its code anew as it was would be
    /// started for ever.
    contents: HashMap<PathBuf, u64>,
    hasher: RandomState,
    /// Folders that are watched, at most.
    most: usize,
}

impl Code {
    fn watch(root: &Path) -> Outcome<Self> {
        let failed = |error: notify::Error| Failure::misuse(format!("--reload: {}: {error}", root.display()));
        // More than that at a time are one change all the same.
        let (sender, changes) = mpsc::channel(256);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            let is_change = !matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)));
            for path in event.paths.into_iter().filter(|_| is_change) {
                let _ = sender.try_send(path);
            }
        });
        let mut rules = GitignoreBuilder::new(root);
        drop(rules.add(root.join(".gitignore")));
        for rule in OTHERS {
            drop(rules.add_line(None, rule));
        }
        let ignored = rules.build().unwrap_or_else(|_| Gitignore::empty());
        let mut code = Self {
            root: root.to_owned(),
            ignored,
            watcher: watcher.map_err(failed)?,
            changes,
            folders: BTreeSet::new(),
            contents: HashMap::new(),
            hasher: RandomState::new(),
            most: FOLDERS,
        };
        code.add(root).map_err(failed)?;
        Ok(code)
    }

    /// Watches a folder and those in it.
    fn add(&mut self, folder: &Path) -> notify::Result<()> {
        let ignored = self.ignored.clone();
        let mut walk = WalkBuilder::new(folder);
        walk.require_git(false).parents(false).follow_links(false).filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || (is_folder && !ignored.matched(entry.path(), true).is_ignore())
        });
        let folders =
            walk.build().filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir()));
        for entry in folders {
            if self.folders.len() >= self.most {
                self.forget_gone();
            }
            if self.folders.len() >= self.most && !self.folders.contains(entry.path()) {
                let why = format!("there are more than {FOLDERS} folders in it: start it in the folder of the server");
                return Err(notify::Error::generic(&why));
            }
            match self.watcher.watch(entry.path(), RecursiveMode::NonRecursive) {
                // It has gone meanwhile.
                Err(_) if !entry.path().is_dir() => continue,
                watched => watched?,
            }
            self.folders.insert(entry.into_path());
        }
        Ok(())
    }

    /// Takes folders that are not there any more off the count; the system has forgotten them by itself.
    fn forget_gone(&mut self) {
        let gone: Vec<_> = self.folders.iter().filter(|folder| !folder.is_dir()).cloned().collect();
        for folder in gone {
            // Not there: an error says that it had.
            let _ = self.watcher.unwatch(&folder);
            self.folders.remove(&folder);
        }
    }

    /// Waits until files with code have changed, and then until no more do.
    async fn changed(&mut self) -> BTreeSet<PathBuf> {
        loop {
            let mut changed = self.written().await;
            // Only now is what was written whole.
            changed.retain(|path| self.is_another(path));
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    /// Waits until files with code were written, and then until no more are.
    async fn written(&mut self) -> BTreeSet<PathBuf> {
        let mut written = BTreeSet::new();
        while written.is_empty() {
            match self.changes.recv().await {
                Some(path) => self.take(path, &mut written),
                None => std::future::pending().await,
            }
        }
        let until = tokio::time::Instant::now() + PATIENCE;
        while let Ok(Some(path)) = timeout(QUIET, self.changes.recv()).await {
            self.take(path, &mut written);
            if tokio::time::Instant::now() >= until {
                break;
            }
        }
        written
    }

    fn take(&mut self, path: PathBuf, changed: &mut BTreeSet<PathBuf>) {
        let Ok(inside) = path.strip_prefix(&self.root) else { return };
        let is_hidden = inside.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        if is_hidden || self.ignored.matched_path_or_any_parents(&path, path.is_dir()).is_ignore() {
            return;
        }
        if path.is_dir() {
            // Files that came with it have no events of their own.
            let _ = self.add(&path);
            let inside = WalkBuilder::new(&path).max_depth(Some(1)).build().filter_map(Result::ok);
            changed.extend(inside.map(ignore::DirEntry::into_path).filter(|path| is_code(path)).take(TOLD));
        } else if is_code(&path) {
            changed.insert(path);
        }
    }

    /// Says whether a file has another content than when it was looked at last.
    fn is_another(&mut self, path: &Path) -> bool {
        if self.contents.len() >= FOLDERS {
            self.contents.clear();
        }
        let content = std::fs::read(path).map_or(0, |bytes| self.hasher.hash_one(bytes));
        self.contents.insert(path.to_owned(), content) != Some(content)
    }
}

fn is_code(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    CODE.contains(&ending.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_have_gone_make_room() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| root.path().join(name);
        std::fs::create_dir(folder("first")).expect("made");
        let mut code = Code::watch(root.path()).map_err(|failure| failure.message).expect("watched");
        code.most = 2;
        std::fs::create_dir(folder("second")).expect("made");
        assert!(code.add(&folder("second")).is_err());
        std::fs::remove_dir(folder("first")).expect("removed");
        assert!(code.add(&folder("second")).is_ok());
        assert_eq!(code.folders.len(), 2);
    }

    #[tokio::test]
    async fn a_file_that_is_written_as_it_was_is_no_change() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("made.py");
        let mut code = Code::watch(root.path()).map_err(|failure| failure.message).expect("watched");
        for (content, is_change) in [("x = 1", true), ("x = 1", false), ("x = 2", true)] {
            std::fs::write(&file, content).expect("written");
            let changed = timeout(Duration::from_secs(1), code.changed()).await;
            assert_eq!(changed.is_ok(), is_change, "{content}");
        }
    }
}
