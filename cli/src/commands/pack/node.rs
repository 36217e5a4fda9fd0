//! Bundles of Node.js servers: the project, and the packages that it depends on.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::files::{Files, Rules, builder, built, cannot};
use super::project::Project;
use super::{Bundle, Start};
use crate::failure::{Failure, Outcome};

/// The first version that runs TypeScript.
const STRIPS: &str = ">=22.18.0";

/// A package, as it is installed here and as it is going to be placed.
struct Package {
    /// Its folder here, without links.
    real: PathBuf,
    /// Its place in the bundle; empty for the project itself.
    place: String,
    about: Value,
}

/// Packs a file and what it needs.
pub(super) fn bundle(node: &Path, file: &Path) -> Outcome<Bundle> {
    let project = Project::of(file, &["package.json"])?;
    let mut files = Files::default();
    let own = super::own_files(&project, file, &mut files)?;
    let mut vendored = Vec::new();
    let mut warnings = Vec::new();
    if let Some(root) = &project.root {
        for package in packages(root, &mut warnings)? {
            let text = |name: &str| package.about[name].as_str().unwrap_or_default();
            vendored.push(format!("{} {}", text("name"), text("version")).trim().to_owned());
            copy(&package, &mut files)?;
        }
    }
    vendored.sort();
    let is_compiled = files.all.keys().any(|place| place.ends_with(".node"));
    let bound = is_compiled.then(|| format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    let has_types = own.ends_with("ts");
    let version = match &project.node {
        _ if has_types => STRIPS.to_owned(),
        Some(said) => said.clone(),
        None => format!(">={}", major(node).unwrap_or_else(|| "20".to_owned())),
    };
    Ok(Bundle {
        project,
        files,
        kind: "node",
        entry: own.clone(),
        start: Start {
            command: "node".to_owned(),
            arguments: vec![format!("${{__dirname}}/{own}")],
            on_windows: None,
            check: vec![node.to_string_lossy().into_owned()],
        },
        runtime: Some(("node", version)),
        vendored,
        bound,
        warnings,
    })
}

fn major(node: &Path) -> Option<String> {
    let said = Command::new(node).arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    said.trim().strip_prefix('v')?.split('.').next().map(|major| format!("{major}.0.0"))
}

/// Packages that the one in `root` depends on, with theirs, each where Node.js looks for it: at the top, or below the one
/// that needs another version.
fn packages(root: &Path, warnings: &mut Vec<String>) -> Outcome<Vec<Package>> {
    let real = root.canonicalize().map_err(|error| cannot("read", root, &error))?;
    let about = read(&real)?;
    let mut placed: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut todo = VecDeque::from([Package { real, place: String::new(), about }]);
    let mut all = Vec::new();
    while let Some(package) = todo.pop_front() {
        for (name, is_optional) in dependencies(&package.about) {
            let Some(real) = resolved(&package.real, &name) else {
                if !is_optional {
                    warnings.push(format!("not installed, so not packed: {name}"));
                }
                continue;
            };
            // Packages that are seen from here, going up.
            let levels = levels(&package.place);
            let seen = levels.iter().find_map(|level| placed.get(&inside(level, &name)).map(|found| (level, found)));
            let level = match seen {
                Some((_, found)) if *found == real => continue,
                None => String::new(),
                Some(_) if placed.contains_key(&inside(&package.place, &name)) => continue,
                Some(_) => package.place.clone(),
            };
            let place = inside(&level, &name);
            placed.insert(place.clone(), real.clone());
            let about = read(&real)?;
            todo.push_back(Package { real, place, about });
        }
        if !package.place.is_empty() {
            all.push(package);
        }
    }
    Ok(all)
}

/// `node_modules/a/node_modules/b`, `node_modules/a`, ``: where packages are looked for, from the inside.
fn levels(place: &str) -> Vec<String> {
    let mut levels = vec![place.to_owned()];
    let mut rest = place;
    while let Some((outer, _)) = rest.rsplit_once("/node_modules/") {
        levels.push(outer.to_owned());
        rest = outer;
    }
    if !place.is_empty() {
        levels.push(String::new());
    }
    levels
}

fn inside(level: &str, name: &str) -> String {
    if level.is_empty() { format!("node_modules/{name}") } else { format!("{level}/node_modules/{name}") }
}

fn dependencies(about: &Value) -> Vec<(String, bool)> {
    let named = |member: &str| about[member].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let optional: Vec<String> = named("optionalDependencies").collect();
    let mut all: Vec<_> =
        named("dependencies").filter(|name| !optional.contains(name)).map(|name| (name, false)).collect();
    // An optional package that is used has been named by the project itself.
    let may_be_there = |name: &String| about["peerDependenciesMeta"][name]["optional"] == true;
    let peers = named("peerDependencies").filter(|name| !may_be_there(name));
    all.extend(optional.into_iter().chain(peers).map(|name| (name, true)));
    // A name that leads out of its folder is nobody's.
    all.retain(|(name, _)| !name.split('/').any(|part| part.is_empty() || part.starts_with('.')));
    all
}

/// The folder of a package, as Node.js finds it from another one's.
fn resolved(from: &Path, name: &str) -> Option<PathBuf> {
    let folders = from.ancestors().filter(|folder| folder.file_name().is_none_or(|last| last != "node_modules"));
    let found =
        folders.map(|folder| folder.join("node_modules").join(name)).find(|path| path.join("package.json").is_file());
    found?.canonicalize().ok()
}

fn read(folder: &Path) -> Outcome<Value> {
    let path = folder.join("package.json");
    let text = std::fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::misuse(format!("{}: {error}", path.display())))
}

/// Copies a package. One that is a link to its sources is copied as it would be published.
fn copy(package: &Package, files: &mut Files) -> Outcome<()> {
    let is_installed = package.real.components().any(|part| part.as_os_str() == "node_modules");
    if is_installed {
        return files.installed(&package.real, &package.place, &|_, _| true);
    }
    let own = if package.real.join(".npmignore").is_file() { ".npmignore" } else { ".gitignore" };
    let listed = package.about["files"].as_array();
    // The list of files counts more than what is ignored.
    let safe = Rules::with(&package.real, if listed.is_some() { ".mcpbignore" } else { own })?;
    let Some(listed) = listed else {
        let rules = built(&builder(&package.real, &[".git", "target", "*.log", "test", "tests"])?)?;
        return files.installed(&package.real, &package.place, &|path, is_folder| {
            !rules.matched(path, is_folder).is_ignore() && safe.is_taken(&package.real, path)
        });
    };
    let anchored: Vec<_> = listed
        .iter()
        .filter_map(Value::as_str)
        .map(|pattern| match pattern.strip_prefix('!') {
            Some(pattern) => format!("!/{}", pattern.trim_start_matches("./").trim_matches('/')),
            None => format!("/{}", pattern.trim_start_matches("./").trim_matches('/')),
        })
        .chain(["/package.json".into(), "/README*".into(), "/LICEN?E*".into(), "/NOTICE*".into()])
        .collect();
    let rules = built(&builder(&package.real, &anchored.iter().map(String::as_str).collect::<Vec<_>>())?)?;
    // A folder on the way to what is listed has to be entered.
    let ways: Vec<PathBuf> = anchored
        .iter()
        .map(|pattern| pattern.trim_start_matches(['!', '/']))
        .map(|pattern| pattern.split('/').take_while(|part| !part.contains(['*', '?', '['])).collect::<PathBuf>())
        .map(|way| package.real.join(way))
        .collect();
    files.installed(&package.real, &package.place, &|path, is_folder| {
        let is_listed = rules.matched_path_or_any_parents(path, is_folder).is_ignore();
        let is_wanted =
            is_listed || (is_folder && ways.iter().any(|way| way.starts_with(path) || path.starts_with(way)));
        is_wanted && safe.is_taken(&package.real, path)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn packages_are_placed_where_node_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        let package = |path: &str, about: Value| {
            write(&root.join(path).join("package.json"), &about.to_string());
            write(&root.join(path).join("index.js"), "");
        };
        package("", json!({"name": "p", "dependencies": {"a": "1", "b": "1"}, "devDependencies": {"dev": "1"}}));
        package(
            "node_modules/a",
            json!({"name": "a", "version": "1.0.0", "dependencies": {"c": "1", "b": "1"},
            "peerDependencies": {"dev": "1"}, "peerDependenciesMeta": {"dev": {"optional": true}}}),
        );
        package(
            "node_modules/b",
            json!({"name": "b", "dependencies": {"c": "2", "../x": "1"}, "optionalDependencies": {"o": "1"}}),
        );
        package("node_modules/c", json!({"name": "c", "version": "1.0.0", "dependencies": {"a": "1"}}));
        package("node_modules/b/node_modules/c", json!({"name": "c", "version": "2.0.0"}));
        package("node_modules/dev", json!({"name": "dev"}));
        let mut warnings = Vec::new();
        let found = packages(&root, &mut warnings).unwrap();
        let mut places: Vec<_> = found.iter().map(|package| package.place.as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["node_modules/a", "node_modules/b", "node_modules/b/node_modules/c", "node_modules/c"]);
        assert!(warnings.is_empty(), "{warnings:?}");
        let version = |place: &str| &found.iter().find(|package| package.place == place).unwrap().about["version"];
        assert_eq!(
            (version("node_modules/c"), version("node_modules/b/node_modules/c")),
            (&json!("1.0.0"), &json!("2.0.0"))
        );
    }

    #[test]
    fn a_linked_package_without_a_list_leaves_out_secrets_and_what_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("sources");
        for (path, text) in [
            ("package.json", "{}"),
            ("index.js", "x"),
            (".gitignore", "local/\n"),
            ("local/x", "canary"),
            ("prod.env", "canary"),
            (".aws/credentials", "canary"),
            ("k.pem", "-----BEGIN PRIVATE KEY-----"),
        ] {
            write(&real.join(path), text);
        }
        #[cfg(unix)]
        {
            write(&dir.path().join("outside"), "canary");
            std::os::unix::fs::symlink(dir.path().join("outside"), real.join("link.txt")).unwrap();
        }
        let mut files = Files::default();
        copy(&Package { real, place: "node_modules/x".into(), about: json!({"name": "x"}) }, &mut files).unwrap();
        let places: Vec<_> = files.all.keys().map(String::as_str).collect();
        assert_eq!(places, ["node_modules/x/index.js", "node_modules/x/package.json"]);
    }

    #[test]
    fn a_linked_package_is_copied_as_it_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("sources");
        for path in ["package.json", "lib/dist/index.js", "lib/src/index.ts", "target/big", "README.md", ".npmrc"] {
            write(&real.join(path), "x");
        }
        let about = json!({"name": "x", "files": ["lib/dist", "!lib/dist/*.map"]});
        let mut files = Files::default();
        copy(&Package { real, place: "node_modules/x".into(), about }, &mut files).unwrap();
        let places: Vec<_> = files.all.keys().map(String::as_str).collect();
        assert_eq!(
            places,
            ["node_modules/x/README.md", "node_modules/x/lib/dist/index.js", "node_modules/x/package.json"]
        );
    }
}
