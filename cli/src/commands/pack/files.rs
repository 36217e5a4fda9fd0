//! The files of a bundle: those of the project, without secrets and without what is made anew.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::failure::{FAILED, Failure, Outcome};

/// Bounds of one bundle.
const MOST_FILES: usize = 50_000;
const MOST_BYTES: u64 = 1 << 30;
const DEEPEST: usize = 64;
/// The part of a file that is looked at for a private key.
const LOOKED_AT: u64 = 1 << 20;

/// Files that are no part of what runs.
const LEFT_OUT: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".github",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".mcpbignore",
    ".idea",
    ".vscode",
    ".DS_Store",
    "Thumbs.db",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    "*.pyc",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".coverage",
    "*.egg-info",
    ".cache",
    "*.tsbuildinfo",
    "*.log",
    "*.mcpb",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "uv.lock",
    "poetry.lock",
];

/// Files that have secrets in them by their names, whatever `.mcpbignore` says.
const SECRET: &[&str] = &[
    ".env*",
    "*.env",
    ".dev.vars*",
    "*.tfvars",
    "*.tfstate*",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".docker",
    ".mcp.json",
    "mcp.json",
    ".dockercfg",
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    "credentials.json",
    "credentials.toml",
    "service-account*.json",
    "client_secret*.json",
    "token.json",
    "tokens.json",
    "secrets.*",
    "secrets/",
];

/// Content of a file.
pub(super) enum Content {
    File(PathBuf),
    Text(Vec<u8>),
}

/// All files of a bundle by their places in it, with slashes.
#[derive(Default)]
pub(super) struct Files {
    pub(super) all: BTreeMap<String, Content>,
    /// Files that may be secrets, and links that lead elsewhere.
    pub(super) left_out: Vec<String>,
    bytes: u64,
}

impl Files {
    /// Adds a file that is there. The first one at a place stays.
    pub(super) fn add(&mut self, place: String, path: PathBuf) -> Outcome<()> {
        if self.all.contains_key(&place) {
            return Ok(());
        }
        // Such a name would be another path where the bundle is unpacked.
        if place.contains(['\\', ':']) || place.split('/').any(|part| part == "..") {
            self.left_out.push(path.display().to_string());
            return Ok(());
        }
        self.bytes += fs::metadata(&path).map_err(|error| cannot("read", &path, &error))?.len();
        if self.bytes > MOST_BYTES || self.all.len() >= MOST_FILES {
            let most = format!("more than {MOST_FILES} files or {} MiB", MOST_BYTES >> 20);
            return Err(Failure::misuse(format!("{}: {most}: leave some out by a .mcpbignore", path.display())));
        }
        self.all.insert(place, Content::File(path));
        Ok(())
    }

    pub(super) fn text(&mut self, place: &str, text: impl Into<Vec<u8>>) {
        self.all.insert(place.to_owned(), Content::Text(text.into()));
    }

    /// Adds what is in a folder of the project, below `place`.
    pub(super) fn project(&mut self, root: &Path, place: &str) -> Outcome<()> {
        let root = root.canonicalize().map_err(|error| cannot("read", root, &error))?;
        let rules = Rules::of(&root)?;
        self.folder(&root, &root, place, &rules, 0)
    }

    fn folder(&mut self, root: &Path, folder: &Path, place: &str, rules: &Rules, depth: usize) -> Outcome<()> {
        if depth > DEEPEST {
            return Err(Failure::misuse(format!("{}: more than {DEEPEST} folders in each other", folder.display())));
        }
        for path in sorted(folder)? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                self.left_out.push(path.display().to_string());
                continue;
            };
            let shown = || path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let real = match path.canonicalize() {
                Ok(real) if real.starts_with(root) => real,
                _ => {
                    self.left_out.push(shown());
                    continue;
                }
            };
            let is_folder = real.is_dir();
            let is_environment = is_folder && real.join("pyvenv.cfg").is_file();
            if is_environment || (name.ends_with(".json") && is_entry(&real)) {
                continue;
            }
            // The target of a link, or a folder around it, may be a secret or left out, too.
            let judged = match rules.judge_target(&real, is_folder) {
                Judgement::Take => rules.judge(&path, is_folder),
                other => other,
            };
            match judged {
                Judgement::LeaveOut => continue,
                Judgement::Secret => {
                    self.left_out.push(shown());
                    continue;
                }
                Judgement::Take => {}
            }
            let inside = format!("{place}/{name}");
            if is_folder {
                // A link to a folder could lead around in a circle.
                if path.is_symlink() {
                    self.left_out.push(shown());
                } else {
                    self.folder(root, &path, &inside, rules, depth + 1)?;
                }
            } else if !real.is_file() || has_private_key(&real) {
                self.left_out.push(shown());
            } else {
                self.add(inside, real)?;
            }
        }
        Ok(())
    }

    /// Adds a file of a package that is a link to its sources in `root`, by the rules for a project's own files.
    pub(super) fn linked(&mut self, root: &Path, place: String, path: PathBuf, rules: &Rules) -> Outcome<()> {
        if rules.is_taken(root, &path) {
            return self.add(place, path);
        }
        self.left_out.push(path.display().to_string());
        Ok(())
    }

    /// Adds all that is in the folder of a package that is installed, except `skip`, by the name.
    pub(super) fn installed(&mut self, folder: &Path, place: &str, takes: &dyn Fn(&Path, bool) -> bool) -> Outcome<()> {
        self.installed_at(folder, place, takes, 0)
    }

    fn installed_at(
        &mut self,
        folder: &Path,
        place: &str,
        takes: &dyn Fn(&Path, bool) -> bool,
        depth: usize,
    ) -> Outcome<()> {
        if depth > DEEPEST {
            return Err(Failure::misuse(format!("{}: more than {DEEPEST} folders in each other", folder.display())));
        }
        for path in sorted(folder)? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let is_folder = path.is_dir() && !path.is_symlink();
            if is_own(name) || is_of_sources(name) || !takes(&path, is_folder) {
                continue;
            }
            let inside = format!("{place}/{name}");
            if is_folder {
                self.installed_at(&path, &inside, takes, depth + 1)?;
            } else if path.is_file() {
                self.add(inside, path)?;
            }
        }
        Ok(())
    }
}

/// Names that are nobody's but this machine's, also in a package that is installed.
fn is_own(name: &str) -> bool {
    matches!(
        name,
        ".git" | ".env" | ".npmrc" | ".yarnrc" | ".netrc" | ".pypirc" | "node_modules" | "__pycache__" | ".DS_Store"
    ) || name.starts_with(".env.")
}

/// Files of a package that only editors and debuggers read.
fn is_of_sources(name: &str) -> bool {
    [".map", ".d.ts", ".d.mts", ".d.cts", ".tsbuildinfo"].iter().any(|ending| name.ends_with(ending))
}

/// The files of a folder in the order of their names.
pub(super) fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut paths: Vec<_> =
        entries.map_err(|error| cannot("read", folder, &error))?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

pub(super) fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(FAILED, format!("cannot {what} {}: {error}", path.display()))
}

/// Returns true if a file looks as if it held a private key.
pub(super) fn has_private_key(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
    const LINE: &[u8] = b"PRIVATE KEY-----";
    read.is_ok()
        && head.windows(LINE.len()).any(|window| window == LINE)
        && head.windows(10).any(|part| part == b"-----BEGIN")
}

/// Returns true for an entry of the registry, which has the digest of the bundle in it.
pub(super) fn is_entry(path: &Path) -> bool {
    const SCHEMAS: &[u8] = b"static.modelcontextprotocol.io/schemas/";
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
    read.is_ok() && head.windows(SCHEMAS.len()).any(|window| window == SCHEMAS)
}

enum Judgement {
    Take,
    LeaveOut,
    Secret,
}

/// Rules for what is packed.
pub(super) struct Rules {
    ignored: Gitignore,
    secret: Gitignore,
}

impl Rules {
    /// The rules of a project, with its own ones.
    pub(super) fn of(root: &Path) -> Outcome<Self> {
        Self::with(root, ".mcpbignore")
    }

    /// The rules of a folder, with those of a file in it.
    pub(super) fn with(root: &Path, own: &str) -> Outcome<Self> {
        let mut ignored = builder(root, LEFT_OUT)?;
        let own = root.join(own);
        if own.is_file()
            && let Some(error) = ignored.add(&own)
        {
            return Err(Failure::misuse(format!("{}: {error}", own.display())));
        }
        Ok(Self { ignored: built(&ignored)?, secret: built(&builder(root, SECRET)?)? })
    }

    /// Returns true for a file within `root` that is neither left out nor secret. Links are followed.
    pub(super) fn is_taken(&self, root: &Path, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| {
            real.starts_with(root)
                && matches!(self.judge_target(&real, real.is_dir()), Judgement::Take)
                && !(real.is_file() && has_private_key(&real))
        })
    }

    /// The judgement of a path with the folders that it is in.
    fn judge_target(&self, path: &Path, is_folder: bool) -> Judgement {
        if self.secret.matched_path_or_any_parents(path, is_folder).is_ignore() {
            return Judgement::Secret;
        }
        let ignored = self.ignored.matched_path_or_any_parents(path, is_folder).is_ignore();
        if ignored { Judgement::LeaveOut } else { Judgement::Take }
    }

    fn judge(&self, path: &Path, is_folder: bool) -> Judgement {
        if self.secret.matched(path, is_folder).is_ignore() {
            return Judgement::Secret;
        }
        if self.ignored.matched(path, is_folder).is_ignore() { Judgement::LeaveOut } else { Judgement::Take }
    }
}

/// Rules as `.gitignore` has them, for upper and lower case alike.
pub(super) fn builder(root: &Path, patterns: &[&str]) -> Outcome<GitignoreBuilder> {
    let mut builder = GitignoreBuilder::new(root);
    let made = builder
        .case_insensitive(true)
        .map(|_| ())
        .and_then(|()| patterns.iter().try_for_each(|pattern| builder.add_line(None, pattern).map(|_| ())));
    made.map_err(|error| Failure::misuse(error.to_string()))?;
    Ok(builder)
}

pub(super) fn built(builder: &GitignoreBuilder) -> Outcome<Gitignore> {
    builder.build().map_err(|error| Failure::misuse(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_what_is_ignored_stay_here() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        for (path, text) in [
            ("server.py", "app"),
            ("data/cities.json", "{}"),
            ("data/big.bin", "0"),
            ("certs/ca.pem", "-----BEGIN CERTIFICATE-----"),
            ("certs/own.pem", "-----BEGIN EC PRIVATE KEY-----"),
            (".env", "KEY=canary"),
            (".ENV.local", "KEY=canary"),
            ("deploy/id_ed25519", "canary"),
            ("deploy/Server.KEY", "canary"),
            (".git/config", "canary"),
            (".aws/credentials", "canary"),
            (".envrc", "canary"),
            (".docker/config.json", "canary"),
            ("deploy/secrets/api", "canary"),
            ("mcp.json", "canary"),
            ("big.txt", &format!("{}-----BEGIN PRIVATE KEY-----", "x".repeat(100_000))),
            ("env/pyvenv.cfg", "home = /usr/bin"),
            ("env/lib/x.py", "x"),
            (".venv/lib/x.py", "x"),
            ("node_modules/a/index.js", "x"),
            ("pkg/__pycache__/x.pyc", "x"),
            (".mcpbignore", "data/*.bin\n!.env\n# a comment\n"),
            ("keyboard.py", "no key"),
            (
                "server.json",
                r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"}"#,
            ),
            ("data/server.json", "{}"),
            (
                "dist/entry.json",
                r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"}"#,
            ),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        #[cfg(unix)]
        {
            fs::write(dir.path().join("outside.txt"), "canary").unwrap();
            std::os::unix::fs::symlink(dir.path().join("outside.txt"), root.join("link.txt")).unwrap();
            std::os::unix::fs::symlink(&root, root.join("circle")).unwrap();
            std::os::unix::fs::symlink("server.py", root.join("same.py")).unwrap();
            std::os::unix::fs::symlink(".env", root.join("settings.txt")).unwrap();
            std::os::unix::fs::symlink(".aws/credentials", root.join("login.txt")).unwrap();
            std::os::unix::fs::symlink(".git/config", root.join("config.txt")).unwrap();
            fs::write(root.join("a\\..\\b.txt"), "x").unwrap();
        }
        let mut files = Files::default();
        files.project(&root, "server").unwrap();
        let places: Vec<_> = files.all.keys().map(String::as_str).filter(|place| *place != "server/same.py").collect();
        assert_eq!(
            places,
            [
                "server/certs/ca.pem",
                "server/data/cities.json",
                "server/data/server.json",
                "server/keyboard.py",
                "server/server.py"
            ]
        );
        let expected = [".ENV.local", ".env", "certs/own.pem", "deploy/Server.KEY", "deploy/id_ed25519"];
        let left: Vec<_> = files.left_out.iter().map(|path| path.replace('\\', "/")).collect();
        assert!(expected.iter().all(|path| left.contains(&(*path).to_owned())), "{left:?}");
        #[cfg(unix)]
        for path in ["link.txt", "circle", "settings.txt", "login.txt", "mcp.json", "big.txt", ".envrc"] {
            assert!(left.contains(&path.to_owned()), "{left:?}");
        }
    }
}
