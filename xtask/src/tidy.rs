//! `cargo xtask tidy`: the rules of the tree that no compiler checks. The lists are in `xtask/tidy.toml`.

mod circles;
mod deprecated;
mod faults;
mod figures;
mod functions;
mod impls;
mod layers;
mod source;
mod stems;
mod style;

use crate::report::{self, Counts};
use crate::{guides, place, release, stamp, tool};
use anyhow::{Context, Result};
use serde::Deserialize;
use source::Source;
use std::collections::BTreeMap;

/// `xtask/tidy.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    layers: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    stems: stems::Stems,
    /// Files with `use super::*`, with the reason.
    #[serde(default)]
    globs: BTreeMap<String, String>,
    /// Inherent methods apart from their type, `path type`, with the reason.
    #[serde(default)]
    inherent: BTreeMap<String, String>,
    /// Functions that are long, `path name`, with the reason.
    #[serde(default)]
    functions: BTreeMap<String, String>,
    #[serde(default)]
    circles: Circles,
    generated: Generated,
    /// The families of `tests/faults.yaml`, and the last number of each.
    faults: BTreeMap<String, usize>,
}

/// Imports between files.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Circles {
    /// Rooms of the packages, from the ground up; those of one list do not know each other.
    rooms: Vec<Vec<String>>,
    /// Files that still import each other.
    known: Vec<std::collections::BTreeSet<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    paths: Vec<String>,
}

/// The tree that is looked at.
struct Tree {
    rules: Rules,
    files: Vec<Source>,
}

impl Tree {
    /// Files of a folder that people wrote.
    fn under<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Source> {
        self.written().filter(move |f| f.path.starts_with(folder))
    }

    fn written(&self) -> impl Iterator<Item = &Source> {
        let made = |f: &Source| self.rules.generated.paths.iter().any(|g| f.path.starts_with(g.as_str()));
        self.files.iter().filter(move |f| !made(f))
    }
}

type Rule = (&'static str, fn(&Tree) -> Vec<String>);

const RULES: [Rule; 21] = [
    ("core layers import only what is below them", layers::imports),
    ("files do not import each other in circles", circles::none),
    ("rooms of the packages import only what is below them", circles::rooms),
    ("no `use super::*` outside of tests", impls::globs),
    ("inherent methods stand in the folder of their type", impls::inherent),
    ("long functions have a reason", functions::lengths),
    ("revision dates stay in protocol/revision", layers::dates),
    ("no flatten or untagged where raw values are", layers::raw_values),
    ("the core never touches standard output", layers::stdout),
    ("every exemption from a lint has a reason", layers::reasons),
    ("a concept has the same stem in every language", stems::table),
    ("names say what a thing is", style::names),
    ("nothing is left to do without an issue", style::left_over),
    ("no path or host of one machine", style::machines),
    ("the README shows the quickstart", style::readme),
    ("the guides show the examples", |_| guides::stale().unwrap_or_else(|error| vec![format!("{error:#}")])),
    ("what is deprecated is marked in every language", deprecated::marks),
    ("faults that were found in use have tests", faults::listed),
    ("launchers can be started", style::launchers),
    ("all packages have one version", |tree| {
        release::faults(|path| tree.files.iter().find(|file| file.path == path).map(|file| file.text.clone()))
    }),
    ("generated types are those of the schema", |_| {
        xtask_gen_types::run(place::root(), true).err().map(|error| format!("{error:#}")).into_iter().collect()
    }),
];

/// Output of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the lines of the core and of the packages, too
    #[arg(long)]
    figures: bool,
}

/// Checks that the tree is tidy, and prints the findings.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let (counts, findings) = run()?;
    if options.figures {
        figures::table(&tree()?).iter().for_each(report::line);
    }
    findings.iter().for_each(report::line);
    report::line(format!("{} passed, {} failed", counts.passed, counts.failed));
    Ok(counts.failed == 0)
}

/// Each rule counts as one test.
pub(crate) fn run() -> Result<(Counts, Vec<String>)> {
    let tree = tree()?;
    let mut counts = Counts::default();
    let mut findings = Vec::new();
    for (name, rule) in RULES {
        let found = rule(&tree);
        counts += Counts::of(found.is_empty());
        findings.extend(found.into_iter().map(|f| format!("tidy: {f}  ({name})")));
    }
    Ok((counts, findings))
}

fn tree() -> Result<Tree> {
    let text = std::fs::read_to_string(place::root().join("xtask/tidy.toml"))?;
    let rules: Rules = toml::from_str(&text).context("xtask/tidy.toml")?;
    Ok(Tree { rules, files: files()? })
}

/// Returns the files that git has or would add; without git everything that is no product.
fn files() -> Result<Vec<Source>> {
    let mut command = tool::command("git");
    command.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut paths: Vec<String> = match tool::ask(command) {
        Some(list) => list.lines().map(str::to_owned).collect(),
        None => stamp::sources(place::root())?.iter().map(|p| place::short(p)).collect(),
    };
    paths.sort();
    paths.dedup();
    Ok(paths.into_iter().filter_map(Source::read).collect())
}
