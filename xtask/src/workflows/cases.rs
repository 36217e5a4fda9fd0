//! Steps of workflows, run on this machine: `tests/workflows/steps.toml`.

use super::steps::{Script, Workflow};
use crate::{place, process, report, tool};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PATH: &str = "tests/workflows/steps.toml";
const LIMIT: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(3600);
/// As GitHub runs a script with `shell: bash`.
const SHELL: [&str; 5] = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];
/// Variables of this machine that a script sees: where programs are, and how registries are reached. Names that end with
/// "_" stand for all that begin so.
const KEPT: [&str; 20] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "RUSTUP_",
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_SOURCE_",
    "PYENV_",
    "PIP_",
    "NPM_CONFIG_",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// `tests/workflows/steps.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Steps that run here, by what they show.
    #[serde(default)]
    case: Vec<Case>,
    /// Steps that do not, by the reason.
    #[serde(default)]
    elsewhere: BTreeMap<String, Vec<String>>,
}

/// A step, run once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// `file / job / name of the step`.
    step: String,
    shows: String,
    /// It compiles: only when all are asked for.
    #[serde(default)]
    compiles: bool,
    /// Variables that the file takes from an expression, and those of GitHub.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// A script that makes what the steps before it leave.
    #[serde(default)]
    before: String,
    /// Programs with a script in their place.
    #[serde(default)]
    #[serde(rename = "stand-ins")]
    stand_ins: BTreeMap<String, String>,
    /// It has to fail.
    #[serde(default)]
    fails: bool,
    /// Text of its output.
    #[serde(default)]
    prints: Vec<String>,
    /// A script that looks at what it leaves.
    #[serde(default)]
    after: String,
}

pub(super) fn list() -> Result<List> {
    let text = std::fs::read_to_string(place::root().join(PATH)).with_context(|| format!("cannot read {PATH}"))?;
    toml::from_str(&text).context(PATH)
}

impl List {
    /// Steps of the files that the list has not, and the other way round.
    pub(super) fn missing(&self, files: &BTreeMap<String, Workflow>) -> Vec<String> {
        let scripts = |(file, workflow): (&String, &Workflow)| {
            workflow.scripts().map(|(job, step)| format!("{file} / {job} / {step}")).collect::<Vec<_>>()
        };
        let there: BTreeSet<String> = files.iter().flat_map(scripts).collect();
        let run = self.case.iter().map(|case| case.step.clone());
        let listed: BTreeSet<String> = run.chain(self.elsewhere.values().flatten().cloned()).collect();
        let unlisted =
            there.difference(&listed).map(|step| format!("{PATH}: does not say whether this runs here: {step}"));
        unlisted.chain(listed.difference(&there).map(|step| format!("{PATH}: there is no step {step}"))).collect()
    }

    /// One line for each step.
    pub(super) fn describe(&self) -> Vec<String> {
        let run = self.case.iter().map(|case| {
            let when = if case.compiles { "with --all" } else { "always" };
            format!("{when:<10} {}: {}", case.step, case.shows)
        });
        let not = self
            .elsewhere
            .iter()
            .flat_map(|(why, steps)| steps.iter().map(move |step| format!("{:<10} {step}: {why}", "elsewhere")));
        run.chain(not).collect()
    }
}

/// Runs cases, and gives the failures of each.
pub(super) fn run(
    files: &BTreeMap<String, Workflow>,
    list: &List,
    all: bool,
    only: Option<&str>,
) -> Result<Vec<Vec<String>>> {
    let name = |case: &Case| format!("{}: {}", case.step, case.shows);
    let wanted = |case: &&Case| (all || !case.compiles) && only.is_none_or(|only| name(case).contains(only));
    let cases: Vec<&Case> = list.case.iter().filter(wanted).collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let place = Place::new(&place::target("workflows"))?;
    let mut results = Vec::new();
    for case in cases {
        report::step(name(case));
        let failure = case.run(files, &place).err().map(|error| format!("{}: {error:#}", name(case)));
        results.push(failure.into_iter().collect());
    }
    Ok(results)
}

/// A clone of the repository as it is, and a folder beside it for what is no part of it.
struct Place {
    clone: PathBuf,
    temporary: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> Result<Self> {
        let this = Self { clone: folder.join("clone"), temporary: folder.join("temporary") };
        if folder.exists() {
            std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        std::fs::create_dir_all(folder)?;
        let mut clone = tool::command("git");
        clone.args(["clone", "--quiet", "--shared"]).arg(place::root()).arg(&this.clone);
        process::must("git clone", clone, LIMIT, &place::log("workflows clone"))?;
        // Changes that are not committed yet belong to it.
        let mut changed = tool::command("git");
        changed.args(["ls-files", "--modified", "--deleted", "--others", "--exclude-standard"]);
        for path in tool::ask(changed).unwrap_or_default().lines() {
            let (from, to) = (place::root().join(path), this.clone.join(path));
            if from.is_file() {
                std::fs::create_dir_all(to.parent().unwrap_or(&to))?;
                std::fs::copy(&from, &to).with_context(|| format!("cannot copy {path}"))?;
            } else if to.is_file() {
                std::fs::remove_file(&to)?;
            }
        }
        this.git(&["add", "--all"])?;
        Ok(this)
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let mut command = tool::command("git");
        command.args(args).current_dir(&self.clone);
        process::must("git", command, LIMIT, &place::log("workflows git")).map(drop)
    }

    /// As if nothing had run in it.
    fn clean(&self) -> Result<()> {
        self.git(&["checkout", "--quiet", "--", "."])?;
        self.git(&["clean", "--quiet", "--force", "-d", "-x", "--exclude=/target"])?;
        if self.temporary.exists() {
            std::fs::remove_dir_all(&self.temporary)?;
        }
        std::fs::create_dir_all(self.temporary.join("bin")).context("cannot make a folder")
    }
}

impl Case {
    fn run(&self, files: &BTreeMap<String, Workflow>, place: &Place) -> Result<()> {
        let [file, job, step] = self.step.split(" / ").collect::<Vec<_>>()[..] else {
            bail!("the step is not named as file / job / name");
        };
        let script =
            files.get(file).and_then(|workflow| workflow.script(job, step)).context("there is no such step")?;
        place.clean()?;
        for (name, text) in &self.stand_ins {
            let program = place.temporary.join("bin").join(name);
            std::fs::write(&program, format!("#!/usr/bin/env bash\n{text}"))?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode)?;
        }
        let env = self.environment(&script, place)?;
        let limit = if self.compiles { LONG } else { LIMIT };
        let run = |what: &str, text: &str| {
            let log = place::log(&format!("workflows {file} {job} {step} {what}"));
            process::run(bash(text, &env, place)?, limit, Some(&log))
        };
        for (what, text) in [("before", self.before.as_str()), ("script", script.text), ("after", self.after.as_str())]
        {
            let done = run(what, text)?;
            let expected = done.ok() != (what == "script" && self.fails) && !done.timed_out;
            if !expected {
                bail!("{what}: {}", if done.ok() { "it did not fail".to_owned() } else { done.why() });
            }
            let missing = self.prints.iter().find(|text| what == "script" && !done.text().contains(text.as_str()));
            if let Some(missing) = missing {
                bail!("{missing:?} is not in what it prints: {:?}", done.text().trim());
            }
        }
        Ok(())
    }

    /// Variables that GitHub would set, and those of the case for the expressions.
    fn environment(&self, script: &Script<'_>, place: &Place) -> Result<BTreeMap<String, String>> {
        let mut env: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| is_kept(name)).collect();
        let bin = place.temporary.join("bin").display().to_string();
        env.insert("PATH".to_owned(), format!("{bin}:{}", std::env::var("PATH").unwrap_or_default()));
        let file = |name: &str| place.temporary.join(name).display().to_string();
        for (name, value) in [
            ("CI", "true".to_owned()),
            ("GITHUB_ACTIONS", "true".to_owned()),
            ("GITHUB_ENV", file("env")),
            ("GITHUB_OUTPUT", file("output")),
            ("GITHUB_PATH", file("path")),
            ("GITHUB_REF", "refs/heads/main".to_owned()),
            ("GITHUB_REF_NAME", "main".to_owned()),
            ("GITHUB_REF_TYPE", "branch".to_owned()),
            ("GITHUB_REPOSITORY", "example/tricorn".to_owned()),
            ("GITHUB_STEP_SUMMARY", file("summary")),
            ("GITHUB_WORKSPACE", place.clone.display().to_string()),
            ("RUNNER_OS", "Linux".to_owned()),
            ("RUNNER_TEMP", place.temporary.display().to_string()),
        ] {
            env.insert(name.to_owned(), value);
        }
        env.extend(script.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        env.extend(self.env.clone());
        if let Some((name, value)) = env.iter().find(|(_, value)| value.contains("${{")) {
            bail!("{name} is {value}: give it a value in {PATH}");
        }
        Ok(env)
    }
}

fn is_kept(name: &str) -> bool {
    let name = name.to_uppercase();
    KEPT.iter().any(|kept| if kept.ends_with('_') { name.starts_with(kept) } else { name == *kept })
}

/// A script in a file, as GitHub has it.
fn bash(text: &str, env: &BTreeMap<String, String>, place: &Place) -> Result<Command> {
    let script = place.temporary.join("script.sh");
    std::fs::write(&script, text)?;
    let mut command = tool::command("nice");
    command.args(["-n", "10"]).args(SHELL).arg(script).current_dir(&place.clone).env_clear().envs(env);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_with_a_script_is_listed() {
        let file = "jobs:\n  one:\n    steps:\n      - name: A\n        run: a\n      - name: B\n        run: b\n";
        let files = BTreeMap::from([("x.yml".to_owned(), Workflow::read(file).expect("a workflow"))]);
        let list: List = toml::from_str(
            "case = [{ step = \"x.yml / one / A\", shows = \"it\" }]\n[elsewhere]\nlater = [\"x.yml / one / C\"]\n",
        )
        .expect("a list");
        let found = list.missing(&files);
        assert!(found[0].ends_with("runs here: x.yml / one / B") && found[1].ends_with("no step x.yml / one / C"));
        assert_eq!(found.len(), 2);
        assert_eq!(list.describe().len(), 2);
    }

    #[test]
    fn scripts_see_what_leads_to_registries_and_little_else() {
        assert!(["PATH", "npm_config_registry", "PIP_INDEX_URL", "https_proxy"].into_iter().all(is_kept));
        assert!(!["VERSION", "CARGO_PKG_VERSION", "RUSTFLAGS", "GITHUB_TOKEN", "PATHS"].into_iter().any(is_kept));
    }

    #[test]
    fn this_repository_lists_all_of_its_steps() {
        let files = super::super::workflows(&place::root().join(super::super::FOLDER)).expect("workflows");
        assert_eq!(list().expect("a list").missing(&files), Vec::<String>::new());
    }
}
