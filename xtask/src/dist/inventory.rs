//! The crates in a package: their licences as a text, and a bill of materials as CycloneDX 1.6 has it.

use super::matrix::Plan;
use crate::{place, process, tool};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";
pub(super) const SBOM: &str = "sbom.cdx.json";
/// Longest time that cargo takes to name the crates.
const LOOK: Duration = Duration::from_secs(120);
/// Files of a crate that hold its terms, by the beginnings of their names.
const TERMS: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Clone, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// The crates that a package of the workspace is made of, for one platform; without those that only build it.
pub(super) struct Inventory {
    name: String,
    version: String,
    crates: Vec<Package>,
    /// Names and versions of the crates that each of them uses.
    uses: BTreeMap<String, Vec<String>>,
}

impl Inventory {
    pub(super) fn of(package: &str, plan: &Plan) -> Result<Self> {
        let log = place::log("dist metadata");
        let known = tool::cargo(&["metadata", "--locked", "--format-version=1", "--filter-platform", plan.target]);
        let done = process::must("cargo metadata", known, LOOK, &log)?;
        let metadata: Metadata = serde_json::from_str(&done.stdout).context("cargo metadata")?;
        let mut tree = tool::cargo(&["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        tree.args(["--package", package, "--target", plan.target]);
        let done = process::must("cargo tree", tree, LOOK, &log)?;
        // The metadata has what any package of the workspace asks for, the tree what this one does.
        let used = done.stdout.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(format!("{}@{}", words.next()?, words.next()?.trim_start_matches('v')))
        });
        Self::among(package, metadata, &used.collect())
    }

    fn among(package: &str, metadata: Metadata, used: &BTreeSet<String>) -> Result<Self> {
        let packages: BTreeMap<_, _> = metadata.packages.into_iter().map(|one| (one.id.clone(), one)).collect();
        let nodes: BTreeMap<_, _> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let root = packages.values().find(|one| one.name == package);
        let root = root.with_context(|| format!("no package {package}"))?.clone();
        let (mut seen, mut open) = (BTreeSet::new(), vec![root.id.as_str()]);
        let mut uses = BTreeMap::new();
        while let Some(id) = open.pop() {
            let Some(node) = nodes.get(id).filter(|_| seen.insert(id.to_owned())) else { continue };
            let is_used = |one: &&Dependency| packages.get(&one.pkg).is_some_and(|one| used.contains(&reference(one)));
            let linked = node.deps.iter().filter(|one| one.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            let linked = linked.filter(is_used);
            let linked: Vec<&str> = linked.map(|one| one.pkg.as_str()).collect();
            let reference = |id: &&str| packages.get(*id).map(reference);
            uses.insert(id.to_owned(), linked.iter().filter_map(reference).collect());
            open.extend(linked);
        }
        let mut crates: Vec<_> = seen.iter().filter_map(|id| packages.get(id)).cloned().collect();
        crates.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
        let uses = crates.iter().map(|one| (reference(one), uses.remove(&one.id).unwrap_or_default())).collect();
        Ok(Self { name: root.name, version: root.version, crates, uses })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The crates of others.
    fn others(&self) -> impl Iterator<Item = &Package> {
        self.crates.iter().filter(|one| one.source.is_some())
    }

    /// Each text of terms once, after the crates that it is of.
    pub(super) fn licences(&self) -> String {
        let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        let mut all = String::from(
            "This package contains code of the crates below, under the terms named here.\n\
             Where there is a choice with MIT among it, the terms of MIT are printed.\n\n",
        );
        for one in self.others() {
            let licence = one.license.as_deref().unwrap_or("see its file");
            let _ = writeln!(all, "{} {}: {licence}", one.name, one.version);
            for text in terms(&one.manifest_path, licence) {
                // The same words, however they are broken into lines.
                let key = text.split_whitespace().collect();
                let (_, crates) = texts.entry(key).or_insert_with(|| (text, Vec::new()));
                crates.push(format!("{} {}", one.name, one.version));
            }
        }
        let mut texts: Vec<_> = texts.into_values().collect();
        texts.sort_by(|one, other| one.1.cmp(&other.1));
        for (text, crates) in texts {
            let _ = write!(all, "\n{}\n{}\n\n{text}\n", "-".repeat(80), crates.join(", "));
        }
        all
    }

    /// The bill of materials. It names no time: two runs give the same.
    fn materials(&self) -> Value {
        let component = |one: &Package| {
            let mut component = json!({
                "type": "library",
                "bom-ref": reference(one),
                "name": one.name,
                "version": one.version,
                "purl": format!("pkg:cargo/{}@{}", one.name, one.version),
            });
            if let Some(licence) = &one.license {
                // As crates once separated two of them.
                component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
            }
            component
        };
        let dependency = |(one, uses): (&String, &Vec<String>)| json!({"ref": one, "dependsOn": uses});
        let main = format!("{}@{}", self.name, self.version);
        let kind = if self.name == "tricorn-cli" { "application" } else { "library" };
        let rest = self.crates.iter().filter(|one| reference(one) != main).map(component);
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": {
                "type": kind, "bom-ref": main, "name": self.name, "version": self.version,
            }},
            "components": rest.collect::<Vec<_>>(),
            "dependencies": self.uses.iter().map(dependency).collect::<Vec<_>>(),
        })
    }

    /// Both files into a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        std::fs::write(folder.join(LICENCES), self.licences())?;
        std::fs::write(folder.join(SBOM), serde_json::to_string_pretty(&self.materials())?)?;
        Ok(())
    }
}

fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

/// The files with a crate's terms.
fn terms(manifest: &Path, licence: &str) -> Vec<String> {
    let files = manifest.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_terms = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        TERMS.iter().any(|start| name.starts_with(start)) && path.is_file()
    };
    let mut files: Vec<_> = files.map(|entry| entry.path()).filter(is_terms).collect();
    files.sort();
    let is_mit =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase().contains("mit"));
    if [" OR ", "/"].iter().any(|or| licence.contains(or)) && licence.contains("MIT") && files.iter().any(is_mit) {
        files.retain(is_mit);
    }
    let text =
        |path: PathBuf| std::fs::read_to_string(path).ok().map(|text| text.replace("\r\n", "\n").trim().to_owned());
    files.into_iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_only_build_or_that_another_package_asks_for_are_left_out() {
        let package = |name: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "source": (name != "root").then_some("registry"), "manifest_path": "/nowhere/Cargo.toml"})
        };
        let dependency = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let packages = ["root", "linked", "deep", "build", "asked"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                {"id": "root", "deps": [dependency("linked", Value::Null), dependency("build", json!("build"))]},
                {"id": "linked", "deps": [dependency("deep", Value::Null), dependency("asked", Value::Null)]},
                {"id": "deep", "deps": []},
                {"id": "build", "deps": []},
                {"id": "asked", "deps": []},
            ]},
        });
        let used: BTreeSet<_> = ["root", "linked", "deep"].map(|name| format!("{name}@1.0.0")).into();
        let metadata = serde_json::from_value(metadata).expect("it is metadata");
        let inventory = Inventory::among("root", metadata, &used).expect("it is there");
        assert_eq!(inventory.others().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["deep", "linked"]);
        let materials = inventory.materials();
        assert_eq!(materials["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(materials["dependencies"][1], json!({"ref": "linked@1.0.0", "dependsOn": ["deep@1.0.0"]}));
    }
}
