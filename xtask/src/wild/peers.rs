//! The peers, as `tests/wild/peers.toml` lists them, and how they get here.

use crate::stamp::{Inputs, once};
use crate::{place, process, setup, tool};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

/// Side of a peer on the wire, and the part of ours that it meets.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A client or a framework, against our servers.
    Client,
    /// Stands between a client and our servers.
    Bridge,
    /// A server, called by our clients.
    Server,
    /// A web framework that our server is mounted in.
    Web,
    /// Makes one file of our server.
    Bundler,
    /// Runs our server.
    Runtime,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Registry {
    Npm,
    Pypi,
    /// Go modules, with the `go` of this machine.
    Go,
    /// Maven Central, with the `mvn` and `javac` of this machine.
    Maven,
    /// Crates that a program of ours is built with.
    Crates,
}

impl Registry {
    /// Its name on the page.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
            Self::Go => "Go",
            Self::Maven => "Maven",
            Self::Crates => "crates",
        }
    }

    /// Programs that its peers need, and that the setup does not bring.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Npm | Self::Pypi | Self::Crates => &[],
            Self::Go => &["go"],
            Self::Maven => &["mvn", "javac", "java"],
        }
    }
}

/// A call of a peer's tool, and what its answer has.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: toml::Table,
    /// A part of the answer's text.
    #[serde(default)]
    pub(super) has: String,
    #[serde(default)]
    pub(super) error: bool,
    /// Is called 50 times at once, too.
    #[serde(default)]
    pub(super) many: bool,
    /// Reports how far it is.
    #[serde(default)]
    pub(super) progress: bool,
}

/// A check that fails, and why that is no fault of ours.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) checks: Vec<String>,
    /// Only in cells whose id has this in it.
    #[serde(default)]
    pub(super) on: String,
    /// The cause, and whose fault it is by the specification.
    pub(super) why: String,
    /// Fails now and then, as what it depends on is a race.
    #[serde(default)]
    pub(super) sometimes: bool,
    /// The smallest thing that shows it.
    pub(super) reproduction: String,
    /// The way round.
    pub(super) instead: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) registry: Registry,
    pub(super) packages: Vec<String>,
    /// Packages that `--update` asks for in place of the newest: `mcp<2`, `name@1`.
    #[serde(default, skip_serializing)]
    newest: Vec<String>,
    /// The folder below `target/wild`, where several peers share one.
    #[serde(default)]
    folder: String,
    /// The file below `tests/wild/drivers`.
    #[serde(default)]
    pub(super) driver: String,
    /// The version of this machine's interpreter that is the peer itself, such as `3.12`.
    #[serde(default)]
    python: String,
    /// The peers whose drivers call it, where it is none of the clients.
    #[serde(default)]
    pub(super) by: Vec<String>,
    #[serde(default = "both")]
    pub(super) transports: Vec<String>,
    /// Command of a server of theirs, a mount or a bridge.
    #[serde(default)]
    pub(super) start: Vec<String>,
    /// Text of its output when it listens; without it `ready URL`, as ours do.
    #[serde(default)]
    pub(super) ready: String,
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// A file of the cell's folder that is changed while streams are open: the server reloads itself.
    #[serde(default)]
    pub(super) touch: String,
    /// Command that is run once after the installation.
    #[serde(default)]
    pub(super) prepare: Vec<String>,
    #[serde(default)]
    pub(super) tools: Vec<String>,
    #[serde(default)]
    pub(super) calls: Vec<Call>,
    #[serde(default)]
    pub(super) resources: bool,
    #[serde(default)]
    pub(super) prompts: bool,
    /// Checks that cannot be asked of it; `CHECK on stdio`, `CHECK on http`: there alone.
    #[serde(default)]
    without: Vec<String>,
    /// Is in every run.
    #[serde(default)]
    pub(super) core: bool,
    #[serde(default)]
    pub(super) known: Vec<Known>,
    #[serde(skip)]
    loose: bool,
}

/// A word of a command that stands for the browser.
pub(super) const CHROMIUM: &str = "{chromium}";

/// Longest time that a registry may take.
const INSTALL: Duration = Duration::from_secs(15 * 60);
const POM: &str = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
    <groupId>wild</groupId><artifactId>wild</artifactId><version>1</version>";

fn both() -> Vec<String> {
    vec!["stdio".to_owned(), "http".to_owned()]
}

#[derive(Deserialize)]
struct File {
    peer: Vec<Peer>,
}

/// All of them, in the order of the file.
pub(super) fn read() -> Result<Vec<Peer>> {
    let text = std::fs::read_to_string(place::root().join("tests/wild/peers.toml"))?;
    let file: File = toml::from_str(&text).context("tests/wild/peers.toml")?;
    Ok(file.peer)
}

/// Sources of a package without its version: `@scope/name`, `name`.
fn bare(package: &str) -> &str {
    let package = package.split("==").next().unwrap_or(package);
    match package.get(1..).and_then(|rest| rest.find('@')) {
        Some(at) => &package[..=at],
        None => package,
    }
}

/// A package of any version; of an alias, which is made for one major version, the newest of that.
fn loosened(package: &str) -> String {
    match package.rsplit_once('@') {
        Some((name, version)) if package.contains("@npm:") => {
            format!("{name}@{}", version.split('.').next().unwrap_or(version))
        }
        _ => bare(package).to_owned(),
    }
}

/// A text that each run has by itself: the newest of today is not that of next week.
fn this_run() -> &'static str {
    static NOW: LazyLock<String> = LazyLock::new(|| format!("{:?}", SystemTime::now()));
    &NOW
}

impl Peer {
    /// Its drivers are used for others.
    pub(super) fn is_base(&self) -> bool {
        ["mcp 1.x", "mcp 2.x"].contains(&self.name.as_str())
    }

    /// Comes from a registry by itself; crates are built with ours.
    pub(super) fn can_loosen(&self) -> bool {
        self.registry != Registry::Crates
    }

    /// Takes the newest versions from now on, in a folder of their own.
    pub(super) fn loosen(&mut self) {
        self.loose = true;
    }

    pub(super) fn is_loose(&self) -> bool {
        self.loose
    }

    /// The words for the registry.
    fn asked(&self) -> Vec<String> {
        let newest = |package: &String| {
            let mut said = self.newest.iter();
            let said = said.find(|s| s.strip_prefix(bare(package)).is_some_and(|rest| rest.starts_with(['<', '@'])));
            said.cloned().unwrap_or_else(|| loosened(package))
        };
        if self.loose { self.packages.iter().map(newest).collect() } else { self.packages.clone() }
    }

    fn slug(&self) -> String {
        let name = if self.folder.is_empty() { &self.name } else { &self.folder };
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        if self.loose { format!("newest/{name}") } else { name }
    }

    /// Returns the folder of its installation.
    pub(super) fn dir(&self) -> PathBuf {
        place::target("wild").join(self.slug())
    }

    /// Returns the folder of its programs.
    pub(super) fn bin(&self) -> PathBuf {
        self.dir().join(if self.registry == Registry::Npm { "node_modules/.bin" } else { "bin" })
    }

    /// A program that it needs and this machine does not have.
    pub(super) fn missing(&self) -> Option<&str> {
        if !self.python.is_empty() && setup::python_of(&self.python).is_none() {
            return Some(&self.name);
        }
        let missing = self.registry.programs().iter().copied().find(|program| process::which(program).is_none());
        let browser = self.start.iter().any(|word| word == CHROMIUM);
        missing.or_else(|| (browser && setup::chromium().is_none()).then_some("Chromium"))
    }

    /// Checks that cannot be asked of it there.
    pub(super) fn without(&self, transport: &str) -> Vec<&str> {
        let there = |check: &'_ String| match check.rsplit_once(" on ") {
            Some((_, place)) => place == transport,
            None => true,
        };
        let all = self.without.iter().filter(|check| there(check));
        all.map(|check| check.rsplit_once(" on ").map_or(check.as_str(), |(name, _)| name)).collect()
    }

    /// Returns the interpreter of its environment's programs.
    pub(super) fn interpreter(&self) -> String {
        if self.registry != Registry::Npm {
            return self.bin().join("python").to_string_lossy().into_owned();
        }
        // A peer that needs a newer Node than this machine has names one among its packages.
        let own = self.bin().join("node");
        if own.exists() { own.to_string_lossy().into_owned() } else { "node".to_owned() }
    }

    /// The command line of its driver.
    pub(super) fn client(&self) -> Vec<String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        match self.registry {
            Registry::Npm => vec![self.interpreter(), text(self.dir().join(&self.driver))],
            Registry::Pypi => vec![self.interpreter(), text(drivers().join(&self.driver))],
            Registry::Go => vec![text(self.bin().join("driver"))],
            Registry::Crates => Vec::new(),
            Registry::Maven => {
                let classes = format!("{}:{}", text(self.dir().join("classes")), text(self.dir().join("lib/*")));
                let class = self.driver.trim_end_matches(".java").to_owned();
                vec!["java".to_owned(), "-cp".to_owned(), classes, class]
            }
        }
    }

    /// Packages of the registry, with the programs of ours that run beside them.
    pub(super) fn install(&self) -> Result<()> {
        let dir = self.dir();
        let asked = self.asked();
        let packages: Vec<&str> = asked.iter().map(String::as_str).collect();
        let stamp = format!("wild-{}", self.slug().replace('/', "-"));
        // Peers that share a folder name their own package first.
        let mut sorted = packages.clone();
        sorted.sort_unstable();
        let mut inputs = sorted.iter().fold(Inputs::new(), |inputs, p| inputs.text(p));
        if self.loose {
            inputs = inputs.text(this_run());
        }
        if let Some(shared) = self.shared() {
            for file in [shared, self.driver.as_str()] {
                inputs = inputs.path(&format!("tests/wild/drivers/{file}"))?;
            }
        }
        match self.registry {
            Registry::Npm => {
                once(&stamp, &inputs, &dir.join("node_modules"), || {
                    self.clear()?;
                    setup::npm_packages(&dir, &packages)
                })?;
                for (from, ending) in [("drivers", "mjs"), ("mounts", "mjs"), ("bundles", "mjs")] {
                    copy(from, ending, &dir)?;
                }
                let ours = dir.join("node_modules/tricorn");
                if !ours.exists() {
                    std::os::unix::fs::symlink(place::root(), &ours)?;
                }
                // Else what is imported there as `tricorn` is the repository itself, and never the package.
                std::fs::write(dir.join("package.json"), "{ \"private\": true }\n")?;
            }
            Registry::Pypi => once(&stamp, &inputs.text(&self.python), &dir.join("bin/python"), || {
                self.clear()?;
                setup::pip_packages_of(setup::python_of(&self.python), &dir, &packages, &stamp)
            })?,
            Registry::Crates => {}
            Registry::Go => once(&stamp, &inputs, &dir.join("go.sum"), || {
                self.clear()?;
                self.go_packages(&packages, &stamp)
            })?,
            Registry::Maven => once(&stamp, &inputs, &dir.join("lib"), || {
                self.clear()?;
                self.maven_packages(&packages, &stamp)
            })?,
        }
        if let Some((program, words)) = self.prepare.split_first() {
            let mut command = tool::command(program);
            let place = |w: &String| w.replace("{dir}", &dir.to_string_lossy());
            command.args(words.iter().map(place)).current_dir(&dir);
            process::must("the preparation", command, Duration::from_secs(120), &place::log(&stamp))?;
        }
        Ok(())
    }

    /// Removes the newest versions of the run before: installers keep what is there and fits.
    fn clear(&self) -> Result<()> {
        let dir = self.dir();
        if self.loose && dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
        Ok(())
    }

    /// The file beside its driver that is compiled with it.
    fn shared(&self) -> Option<&'static str> {
        match self.registry {
            Registry::Go if !self.driver.is_empty() => Some("checks.go"),
            Registry::Maven if !self.driver.is_empty() => Some("Checks.java"),
            _ => None,
        }
    }

    /// A program in its folder, up to its end.
    fn make(&self, what: &str, words: &[&str], stamp: &str) -> Result<()> {
        let mut command = tool::command(what);
        command.args(words).current_dir(self.dir());
        process::must(&format!("{what} {}", words.join(" ")), command, INSTALL, &place::log(stamp)).map(drop)
    }

    /// A folder with what a driver is compiled from.
    fn sources(&self) -> Result<Vec<&str>> {
        std::fs::create_dir_all(self.bin())?;
        let files: Vec<&str> = self.shared().into_iter().flat_map(|shared| [shared, self.driver.as_str()]).collect();
        for file in &files {
            std::fs::copy(drivers().join(file), self.dir().join(file))?;
        }
        Ok(files)
    }

    /// Go modules: the driver, or the programs that the packages are.
    fn go_packages(&self, packages: &[&str], stamp: &str) -> Result<()> {
        let files = self.sources()?;
        std::fs::write(self.dir().join("go.mod"), "module wild\n\ngo 1.25.0\n")?;
        for &package in packages {
            self.make("go", &["get", package], stamp)?;
        }
        if files.is_empty() {
            let programs = packages.iter().map(|p| bare(p));
            self.make("go", &["build", "-o", "bin/"].into_iter().chain(programs).collect::<Vec<_>>(), stamp)
        } else {
            let words: Vec<&str> = ["build", "-o", "bin/driver"].into_iter().chain(files).collect();
            self.make("go", &words, stamp)
        }
    }

    /// Artifacts of Maven Central, `group:artifact@version`, and the driver.
    fn maven_packages(&self, packages: &[&str], stamp: &str) -> Result<()> {
        let files = self.sources()?;
        let mut dependencies = String::new();
        for &package in packages {
            let name = bare(package);
            let (group, artifact) = name.split_once(':').context("no group:artifact")?;
            let version = package.get(name.len() + 1..).unwrap_or("LATEST");
            dependencies += &format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
            );
        }
        let pom = format!("{POM}<dependencies>{dependencies}</dependencies></project>\n");
        std::fs::write(self.dir().join("pom.xml"), pom)?;
        let _ = std::fs::remove_dir_all(self.dir().join("lib"));
        self.make("mvn", &["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], stamp)?;
        let words: Vec<&str> = ["-d", "classes", "-cp", "lib/*"].into_iter().chain(files).collect();
        self.make("javac", &words, stamp)
    }

    /// The version that is installed of its first package.
    pub(super) fn version(&self) -> String {
        if !self.python.is_empty() {
            let mut command = tool::command(self.interpreter());
            command.args(["-c", "import sys; print(sys.version.split()[0])"]);
            return tool::ask(command).unwrap_or_else(|| "?".to_owned());
        }
        let package = self.packages.first().map_or("", |p| p);
        let name = package.split('[').next().map(bare).unwrap_or_default();
        let found = match self.registry {
            Registry::Npm => self.npm_version(name.split("@npm:").next().unwrap_or(name)),
            Registry::Pypi => self.pypi_version(name),
            Registry::Go => self.go_version(name),
            Registry::Maven => self.maven_version(name),
            Registry::Crates => crate_version(name),
        };
        found.unwrap_or_else(|| "?".to_owned())
    }

    /// Returns its origin, for the page.
    pub(super) fn origin(&self) -> &'static str {
        if self.python.is_empty() { self.registry.title() } else { "the machine's" }
    }

    fn npm_version(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.dir().join("node_modules").join(name).join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
        manifest["version"].as_str().map(str::to_owned)
    }

    fn pypi_version(&self, name: &str) -> Option<String> {
        let lib = std::fs::read_dir(self.dir().join("lib")).ok()?.flatten().next()?.path().join("site-packages");
        let prefix = format!("{}-", name.replace(['-', '.'], "_").to_lowercase());
        std::fs::read_dir(lib).ok()?.flatten().find_map(|entry| {
            let file = entry.file_name().to_string_lossy().replace('.', "_").to_lowercase();
            let whole = entry.file_name().to_string_lossy().into_owned();
            let version = file.starts_with(&prefix) && file.ends_with("_dist-info");
            version.then(|| whole[prefix.len()..].trim_end_matches(".dist-info").to_owned())
        })
    }

    /// The version of the module that a package is of.
    fn go_version(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.dir().join("go.mod")).ok()?;
        text.lines().find_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            let (module, version) = (words.next()?, words.next()?);
            (version.starts_with('v') && name.starts_with(module)).then(|| version.to_owned())
        })
    }

    fn maven_version(&self, name: &str) -> Option<String> {
        let prefix = format!("{}-", name.split_once(':')?.1);
        std::fs::read_dir(self.dir().join("lib")).ok()?.flatten().find_map(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let version = file.strip_prefix(&prefix)?.strip_suffix(".jar")?;
            version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
        })
    }

    /// Describes the differences between the newest version and the pinned one.
    pub(super) fn changes(&self) -> Option<String> {
        // Such an interpreter is the machine's, whatever the registry has.
        if !self.python.is_empty() {
            return None;
        }
        let pinned = self.packages.first().map_or("", |p| p);
        let pinned = pinned.rsplit(['=', '@']).next().unwrap_or_default();
        let newest = self.version();
        (newest != pinned).then(|| format!("{}: {pinned} -> {newest}", self.name))
    }
}

/// The version that ours are built with.
fn crate_version(name: &str) -> Option<String> {
    let lock: toml::Table = std::fs::read_to_string(place::root().join("Cargo.lock")).ok()?.parse().ok()?;
    let mut packages = lock["package"].as_array()?.iter();
    let found = packages.find(|package| package.get("name").and_then(toml::Value::as_str) == Some(name))?;
    found.get("version").and_then(toml::Value::as_str).map(str::to_owned)
}

fn drivers() -> PathBuf {
    place::root().join("tests/wild/drivers")
}

fn copy(from: &str, ending: &str, to: &std::path::Path) -> Result<()> {
    for file in crate::stamp::sources(&place::root().join("tests/wild").join(from))? {
        if let Some(name) = file.file_name()
            && file.extension().is_some_and(|e| e == ending)
        {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_package_without_its_version() {
        let names = ["@a/b@1.2", "c@3", "d==4.0", "e[x]==5", "f", "g.com/h/i@v1.2.3", "j.k:l@6"].map(bare);
        assert_eq!(names, ["@a/b", "c", "d", "e[x]", "f", "g.com/h/i", "j.k:l"]);
    }

    #[test]
    fn a_package_of_the_newest_version() {
        let asked = ["@a/b@1.2", "c4@npm:c@4.2.1", "d==4.0", "g.com/h/i@v1.2.3"].map(loosened);
        assert_eq!(asked, ["@a/b", "c4@npm:c@4", "d", "g.com/h/i"]);
    }

    #[test]
    fn an_update_asks_for_what_the_entry_says() {
        let mut peers = read().expect("tests/wild/peers.toml");
        let peer = peers.iter_mut().find(|p| p.name == "mcp 1.x").expect("it is in the list");
        assert_eq!(peer.asked(), peer.packages);
        peer.loosen();
        assert_eq!(peer.asked(), ["mcp<2", "uvicorn"]);
        assert!(peer.dir().ends_with("wild/newest/mcp1"));
    }

    #[test]
    fn the_file_is_as_it_should_be() {
        let peers = read().expect("tests/wild/peers.toml");
        for peer in &peers {
            assert!(peer.packages.iter().all(|p| bare(p) != p), "{}: no version is pinned", peer.name);
            assert_eq!(peers.iter().filter(|p| p.name == peer.name).count(), 1, "{} is there twice", peer.name);
            assert!(peer.by.iter().all(|b| peers.iter().any(|p| p.name == *b)), "{}: no such driver", peer.name);
            let told = |k: &Known| [&k.why, &k.reproduction, &k.instead].iter().all(|text| !text.is_empty());
            assert!(peer.known.iter().all(told), "{}: a failure that is not explained", peer.name);
            // Peers that share a folder are installed once, for all of them.
            let sorted = |p: &Peer| p.packages.iter().cloned().collect::<BTreeSet<_>>();
            let differs = peers.iter().any(|p| p.slug() == peer.slug() && sorted(p) != sorted(peer));
            assert!(!differs, "{}: other packages in the same folder", peer.name);
        }
    }
}
