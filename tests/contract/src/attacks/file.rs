//! The data: `tests/cases/attacks/*.json`, as its README describes it.

use crate::Outcome;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(rename = "about")]
    _about: String,
    /// Languages whose fixture is not protected yet, and why.
    #[serde(default)]
    pub(super) skip: BTreeMap<String, String>,
    /// For each language, the ways in which its fixture can be mounted.
    #[serde(default)]
    pub(super) mounts: BTreeMap<String, Vec<String>>,
    /// Tokens by name.
    pub(super) tokens: BTreeMap<String, Value>,
    pub(super) groups: Vec<Group>,
}

/// Attacks on one server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    /// The server's option `auth`.
    pub(super) auth: Value,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// State of the authorization server.
    #[serde(default = "up")]
    pub(super) authority: String,
    /// The token of the good request.
    pub(super) good: String,
    /// Secrets that nobody may see besides the tokens.
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    pub(super) attacks: Vec<Attack>,
}

fn up() -> String {
    "up".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attack {
    pub(super) name: String,
    /// One after the other.
    pub(super) requests: Vec<Sent>,
    /// Paths that the authorization server is not asked for by it.
    #[serde(default)]
    pub(super) never_asked: Vec<String>,
}

/// A request, and what has to come back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    /// State of the authorization server from here on.
    #[serde(default)]
    pub(super) authority: Option<String>,
    /// The name of the token in its header.
    #[serde(default)]
    pub(super) token: Option<String>,
    #[serde(default = "post")]
    pub(super) verb: String,
    #[serde(default)]
    pub(super) target: Option<String>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// Capabilities of the client.
    #[serde(default)]
    pub(super) capabilities: Option<Value>,
    #[serde(default)]
    pub(super) revision: Option<String>,
    #[serde(default)]
    pub(super) session: Option<String>,
    /// Answers the questions of the last answer so, by the same method.
    #[serde(default)]
    pub(super) reply: Option<Value>,
    #[serde(default)]
    pub(super) headers: Vec<(String, String)>,
    /// In place of the message.
    #[serde(default)]
    pub(super) body: Option<String>,
    /// The answer is a stream, which stays open to the end of the attack: the name of its first event's data.
    #[serde(default)]
    pub(super) stream: Option<String>,
    /// One, or several; 0: it hangs up without an answer.
    #[serde(deserialize_with = "some_of")]
    pub(super) status: Vec<u16>,
    /// Statuses that will do, too, where the server is mounted, whatever else is expected: others' HTTP servers answer
    /// some requests themselves, or leave them to their users.
    #[serde(default, deserialize_with = "some_of")]
    pub(super) mounted_status: Vec<u16>,
    /// A pattern for the one challenge; null: there is none.
    #[serde(default, deserialize_with = "given")]
    pub(super) challenge: Option<Value>,
    #[serde(default)]
    pub(super) head: Option<Value>,
    #[serde(default)]
    pub(super) answer: Option<Value>,
    /// Status and body are those of the request before.
    #[serde(default)]
    pub(super) as_before: bool,
}

fn post() -> String {
    "POST".into()
}

fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

fn some_of<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<u16>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        One(u16),
        Some(Vec<u16>),
    }
    Ok(match Either::deserialize(from)? {
        Either::One(status) => vec![status],
        Either::Some(all) => all,
    })
}

/// Every file, by its name.
pub(super) fn read_all(folder: &Path) -> Outcome<Vec<(String, File)>> {
    let shown = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).map_err(|error| shown(&error))?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).map_err(|error| shown(&error))?;
            let file = serde_json::from_str(&text).map_err(|error| format!("{name}.json: {error}"))?;
            Ok((name, file))
        })
        .collect()
}
