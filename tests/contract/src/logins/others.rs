//! The official SDKs in the place of the client or of the server: programs of `tests/interop`, on their public API.
//! What they cannot do is in `tests/interop/logins.json`.

use super::provider::Provider;
use super::stage::Cast;
use super::{Scene, issuer, played, scenes};
use crate::launch;
use crate::options::Options;
use crate::report::Report;
use crate::{Failure, Outcome};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Scenes of their clients at our servers, from the one that shows most.
const CLIENTS: [(&str, Scene); 4] = [
    ("a token ends during a call, and the next call has another", scenes::refresh),
    ("registers, and logs in", |stage| scenes::log_in(stage, None)),
    ("logs in, 2025-11-25", |stage| scenes::log_in(stage, Some("2025-11-25"))),
    ("more is granted on the way", scenes::step_up),
];

/// Scenes of our clients at their servers.
const SERVERS: [(&str, Scene); 5] =
    [CLIENTS[0], CLIENTS[1], CLIENTS[2], CLIENTS[3], ("a token for another server is refused", scenes::audience)];

/// An official SDK.
struct Sdk {
    name: &'static str,
    version: String,
    client: Vec<String>,
    server: Vec<String>,
}

/// Exception for an SDK that cannot play a scene, in the version that this is known of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// The SDK on this side,
    client: Option<String>,
    /// or on that.
    server: Option<String>,
    version: String,
    scene: String,
    why: String,
}

#[derive(Deserialize)]
struct Exceptions {
    exceptions: Vec<Exception>,
}

/// Plays the scenes: all of them, or the first `--others` of each list.
pub(super) fn run(options: &Options, report: &mut Report, client: &[String], server: &[String]) -> Outcome {
    let root = launch::root()?;
    let text = std::fs::read_to_string(root.join("tests/interop/logins.json")).map_err(|error| error.to_string())?;
    let known: Exceptions =
        serde_json::from_str(&text).map_err(|error| format!("tests/interop/logins.json: {error}"))?;
    let language = &options.language;
    let count = options.number("others", usize::MAX)?;
    for sdk in sdks(&root)? {
        let theirs = Cast { client: sdk.client.clone(), server: server.to_vec(), protection: issuer };
        for (scene, play) in CLIENTS.into_iter().take(count) {
            let exception = known.find(scene, |exception| exception.client.as_deref() == Some(sdk.name));
            let name = format!("{language} server, {} client: {scene}", sdk.name);
            meet(&name, &sdk, exception, options, report, || played(&theirs, play, options));
        }
        let ours = Cast { client: client.to_vec(), server: sdk.server.clone(), protection: protected_by };
        for (scene, play) in SERVERS.into_iter().take(count) {
            let exception = known.find(scene, |exception| exception.server.as_deref() == Some(sdk.name));
            let name = format!("{language} client, {} server: {scene}", sdk.name);
            meet(&name, &sdk, exception, options, report, || played(&ours, play, options));
        }
    }
    let example = Cast { client: client.to_vec(), server: example(&root)?, protection: protected_by };
    let name = format!("{language} client, example of sdk 1 (npm): registers, and logs in");
    if options.wants(&name) {
        report.record(&name, played(&example, scenes::log_in_elsewhere, options));
    }
    Ok(())
}

/// A server of theirs as they ship it, with an authorization server of theirs.
fn example(root: &Path) -> Outcome<Vec<String>> {
    let program = root.join("target/interop/npm-sdk1/example.mjs");
    if !program.exists() {
        return Err(format!("{} is not there: cargo xtask interop gets it", program.display()));
    }
    Ok(vec!["node".to_owned(), program.to_string_lossy().into_owned()])
}

impl Exceptions {
    fn find(&self, scene: &str, is_of: impl Fn(&Exception) -> bool) -> Option<&Exception> {
        self.exceptions.iter().find(|exception| exception.scene == scene && is_of(exception))
    }
}

fn meet(
    name: &str,
    sdk: &Sdk,
    exception: Option<&Exception>,
    options: &Options,
    report: &mut Report,
    play: impl FnOnce() -> Outcome,
) {
    if !options.wants(name) {
        return;
    }
    match exception {
        None => report.record(name, play()),
        Some(stale) if stale.version != sdk.version => {
            report.fail(name, &format!("an exception of {} is stale: this is {}", stale.version, sdk.version));
        }
        // It is tried, and has to fail.
        Some(exception) => match play() {
            Ok(()) => report.fail(name, "works, the exception is stale"),
            Err(_) => report.skip(name, &format!("{} {}: {}", sdk.name, sdk.version, exception.why)),
        },
    }
}

fn protected_by(provider: &Provider) -> (String, String) {
    ("PROTECTED_BY".to_owned(), provider.issuer().to_owned())
}

fn sdks(root: &Path) -> Outcome<[Sdk; 2]> {
    let interop = root.join("target/interop");
    let there = |path: PathBuf| {
        if path.exists() {
            return Ok(path.to_string_lossy().into_owned());
        }
        Err(format!("{} is not there: cargo xtask interop gets it", path.display()))
    };
    let python = |file: &str| -> Outcome<Vec<String>> {
        Ok(vec![there(interop.join("python-sdk/bin/python"))?, there(root.join("tests/interop/python").join(file))?])
    };
    let node = |file: &str| -> Outcome<Vec<String>> {
        Ok(vec!["node".to_owned(), there(interop.join("npm-sdk").join(file))?])
    };
    Ok([
        Sdk {
            name: "mcp (PyPI)",
            version: python_version(&interop)?,
            client: python("login.py")?,
            server: python("protected.py")?,
        },
        Sdk {
            name: "sdk (npm)",
            version: npm_version(&interop)?,
            client: node("login.mjs")?,
            server: node("protected.mjs")?,
        },
    ])
}

/// Returns the installed version, by the name of the folder that has it.
fn python_version(interop: &Path) -> Outcome<String> {
    let missing = || -> Failure { "the official Python SDK is not installed".to_owned() };
    let inside = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let packages = inside(interop.join("python-sdk/lib")).into_iter().map(|version| version.join("site-packages"));
    packages
        .flat_map(inside)
        .find_map(|path| {
            let version = path.file_name()?.to_str()?.strip_prefix("mcp-")?.strip_suffix(".dist-info")?;
            Some(version.to_owned())
        })
        .ok_or_else(missing)
}

fn npm_version(interop: &Path) -> Outcome<String> {
    let path = interop.join("npm-sdk/node_modules/@modelcontextprotocol/client/package.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let package: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    package["version"].as_str().map(str::to_owned).ok_or_else(|| "the official TypeScript SDK has no version".into())
}
