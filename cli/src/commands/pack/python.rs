//! Bundles of Python servers: the project, and the distributions of its environment that it needs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use super::files::{Content, Files, Rules, cannot, sorted};
use super::project::Project;
use super::{Bundle, Start};
use crate::failure::{FAILED, Failure, Outcome};
use crate::targets::SERVE;

/// Asks an interpreter what a server needs of it.
const ASK: &str = include_str!("python.py");
/// The line of the program that serves a file which says which file that is.
const GIVEN: &str = "PATH, NAME, HTTP = sys.argv[1:4]\n";

#[derive(Deserialize)]
struct Said {
    version: [u32; 3],
    base: PathBuf,
    machine: String,
    distributions: Vec<String>,
    files: Vec<(String, PathBuf)>,
    /// Files of distributions that are links to their sources, with the folder of these.
    linked: Vec<(String, PathBuf, PathBuf)>,
    missing: Vec<String>,
}

/// Packs a file and what it needs.
pub(super) fn bundle(interpreter: &Path, file: &Path, name: Option<&str>) -> Outcome<Bundle> {
    let project = Project::of(file, &["pyproject.toml", "setup.py", "requirements.txt", ".mcpbignore"])?;
    let mut files = Files::default();
    let own = super::own_files(&project, file, &mut files)?;
    let said = ask(interpreter, file, &project, &files)?;
    for (place, path) in said.files {
        files.add(format!("lib/{place}"), path)?;
    }
    let mut rules = BTreeMap::new();
    for (place, path, folder) in said.linked {
        let root = folder.canonicalize().map_err(|error| cannot("read", &folder, &error))?;
        if !rules.contains_key(&root) {
            rules.insert(root.clone(), Rules::of(&root)?);
        }
        if let Some(rules) = rules.get(&root) {
            files.linked(&root, format!("lib/{place}"), path, rules)?;
        }
    }
    files.text("run.py", program(&own, name.unwrap_or_default())?);
    let compiled = compiled(&files);
    let [major, minor, _] = said.version;
    let python = match compiled {
        // A module compiled for one version is for no other.
        Compiled::ForVersion => format!(">={major}.{minor},<{major}.{}", minor + 1),
        _ => format!(">={major}.{minor}"),
    };
    let mut warnings = Vec::new();
    if !said.missing.is_empty() {
        let names = said.missing.join(", ");
        warnings.push(format!("imported and not found, so not packed: {names}"));
    }
    let bound = match compiled {
        Compiled::Not => None,
        _ => Some(format!("{} {}", std::env::consts::OS, said.machine)),
    };
    Ok(Bundle {
        project,
        files,
        kind: "python",
        entry: "run.py".to_owned(),
        start: Start {
            command: "python3".to_owned(),
            arguments: vec!["${__dirname}/run.py".to_owned()],
            on_windows: Some("python".to_owned()),
            // Without the packages of this machine.
            check: vec![said.base.to_string_lossy().into_owned(), "-E".into(), "-s".into(), "-S".into()],
        },
        runtime: Some(("python", python)),
        vendored: said.distributions,
        bound,
        warnings,
    })
}

fn ask(interpreter: &Path, file: &Path, project: &Project, files: &Files) -> Outcome<Said> {
    let sources = files.all.iter().filter(|(place, _)| place.ends_with(".py"));
    let sources: Vec<_> = sources
        .filter_map(|(_, content)| match content {
            Content::File(path) => Some(path.to_string_lossy().into_owned()),
            Content::Text(_) => None,
        })
        .collect();
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    let local: Vec<_> = sorted(folder)?
        .iter()
        .filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "py"))
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .collect();
    let question = json!({"files": sources, "local": local, "requires": project.requires}).to_string();
    let failed =
        |why: &str| Failure::new(FAILED, format!("{} cannot say what the server needs: {why}", interpreter.display()));
    let mut asked = Command::new(interpreter);
    asked.args(["-I", "-c", ASK]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut asked = asked.spawn().map_err(|error| failed(&error.to_string()))?;
    if let Some(mut input) = asked.stdin.take() {
        // A trial that has ended already says why below.
        let _ = input.write_all(question.as_bytes());
    }
    let output = asked.wait_with_output().map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.lines().last().unwrap_or("it has failed; Python 3.10 or later is needed")));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error.to_string()))
}

/// The program that serves the file, with its packages before those of the machine.
fn program(own: &str, name: &str) -> Outcome<String> {
    let text = |text: &str| serde_json::to_string(text).map_err(|error| Failure::new(FAILED, error.to_string()));
    let given = format!(
        "HERE = os.path.dirname(os.path.abspath(__file__))\nPATH, NAME, HTTP = os.path.join(HERE, *{}.split(\"/\")), {}, \"\"\n\
         sys.path.insert(1, os.path.join(HERE, \"lib\"))\n",
        text(own)?,
        text(name)?
    );
    Ok(SERVE.replacen(GIVEN, &given, 1).replace("(\"<string>\", ast.__file__)", "(__file__, ast.__file__)"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compiled {
    Not,
    /// For this platform and every Python.
    Stable,
    /// For this platform and this Python.
    ForVersion,
}

fn compiled(files: &Files) -> Compiled {
    let libraries = files.all.keys().filter(|place| {
        let name = place.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so")
            || name.ends_with(".pyd")
            || name.ends_with(".dylib")
            || name.ends_with(".dll")
            || name.contains(".so.")
    });
    libraries.fold(Compiled::Not, |worst, place| {
        // `x.cpython-311-x86_64-linux-gnu.so`, `x.cp311-win_amd64.pyd`
        let is_bound = place.contains(".cpython-") || place.contains(".cp3");
        if is_bound || worst == Compiled::ForVersion { Compiled::ForVersion } else { Compiled::Stable }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_bundle_says_which_file_it_serves() {
        let made = program("server/a \"b\".py", "app").unwrap();
        assert!(!made.contains("sys.argv[1:4]") && made.contains(r#"*"server/a \"b\".py".split("/")"#), "{made}");
        assert!(made.contains("(__file__, ast.__file__)"));
    }

    #[test]
    fn compiled_modules_bind_to_a_platform_or_a_version() {
        for (place, expected) in [
            ("lib/a.py", Compiled::Not),
            ("lib/a/_core.abi3.so", Compiled::Stable),
            ("lib/a/_core.pyd", Compiled::Stable),
            ("lib/a.libs/libx.so.1", Compiled::Stable),
            ("lib/a.cpython-311-x86_64-linux-gnu.so", Compiled::ForVersion),
            ("lib/a.cp311-win_amd64.pyd", Compiled::ForVersion),
        ] {
            let mut files = Files::default();
            files.text(place, "");
            assert!(compiled(&files) == expected, "{place}");
        }
    }
}
