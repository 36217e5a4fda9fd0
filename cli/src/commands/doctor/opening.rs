//! The opening of a connection: revisions, ids, unknown methods, garbage.

use std::time::Duration;

use serde_json::{Value, json};

use super::report::Report;
use super::wire::{LEGACY, MODERN, PATIENCE, SOON, Said, Wire, client_info};
use crate::output::one_line;

/// A revision that never was.
pub(super) const NONE: &str = "1999-01-01";
/// Time for a server to begin.
pub(super) const BEGINS: Duration = Duration::from_secs(30);
/// Time for the stream of a session to open.
const STREAM: Duration = Duration::from_millis(50);

/// Outcome of `initialize`.
pub(super) enum Opened {
    /// It is open, in the wire's revision.
    Open,
    /// The server speaks none of these revisions, or not in this way.
    Refused,
    Silent,
    Ended(String),
}

/// Opens an older revision.
pub(super) async fn open(wire: &mut Wire, revision: &str, limit: Duration) -> Opened {
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client_info()});
    let said = wire.request_within("initialize", params, limit).await;
    let Some(result) = said.result() else {
        return match said {
            Said::Silent => Opened::Silent,
            Said::Ended(how) => Opened::Ended(how),
            Said::Answer(_) | Said::Status(..) => Opened::Refused,
        };
    };
    wire.report.reached();
    let agreed = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
    let known = LEGACY.contains(&agreed.as_str());
    wire.report.ran(&["wrong-revision", "no-info", "id-retyped", "result-and-error", "asks-undeclared", "not-utf8"]);
    if !known {
        let evidence = format!("asked for {revision}, answered {}", result["protocolVersion"]);
        wire.report.find("wrong-revision", evidence);
    } else if agreed == revision {
        wire.report.speaks(revision);
    }
    info(&wire.report, &result["serverInfo"]);
    if !result["capabilities"].is_object() {
        wire.report.find("no-info", format!("no capabilities: {}", one_line(&result.to_string())));
    }
    wire.capabilities = result["capabilities"].as_object().cloned().unwrap_or_default();
    wire.set_revision(if known { &agreed } else { revision });
    if wire.is_http() {
        wire.open_stream();
        wire.listen(STREAM).await;
    }
    if let Some(how) = wire.tell("notifications/initialized", json!({})).await {
        return Opened::Ended(how);
    }
    Opened::Open
}

fn info(report: &Report, info: &Value) {
    let text = |name: &str| info[name].as_str().filter(|text| !text.trim().is_empty());
    match (text("name"), text("version")) {
        (Some(name), Some(version)) => report.set_server(name, version),
        _ => report.find("no-info", format!("serverInfo: {info}")),
    }
}

/// Ids, `ping` and methods that do not exist, in an open session of an older revision.
pub(super) async fn basics(wire: &mut Wire) {
    wire.report.ran(&["ping-silent"]);
    for id in [json!(7), json!("7"), json!("a")] {
        match wire.request_as(id, "ping", json!({}), PATIENCE).await {
            Said::Silent => {
                wire.report.find("ping-silent", format!("no answer in {} s", PATIENCE.as_secs()));
                break;
            }
            Said::Ended(how) => {
                wire.report.find("ping-silent", format!("at a ping: {how}"));
                return;
            }
            said if said.error().is_some() => wire.report.find("ping-silent", one_line(&said.shown())),
            Said::Answer(_) | Said::Status(..) => {}
        }
    }
    unknown(wire).await;
}

pub(super) async fn unknown(wire: &mut Wire) {
    wire.report.ran(&["unknown-not-32601"]);
    let said = wire.ask("x/none", json!({})).await;
    if matches!(said, Said::Ended(_)) {
        return;
    }
    if said.code() != Some(-32601) {
        wire.report.find("unknown-not-32601", format!("x/none: {}", one_line(&said.shown())));
    }
}

/// Garbage, and then a request.
pub(super) async fn garbage(wire: &mut Wire) {
    wire.report.ran(&["garbage-kills"]);
    let ended = wire.send_raw(None, &Value::Null, b"{bad".to_vec()).await;
    let ended = match ended {
        Some(how) => Some(how),
        None => match wire.request("x/none", json!({})).await {
            Said::Ended(how) => Some(how),
            _ => None,
        },
    };
    if let Some(how) = ended {
        wire.report.find("garbage-kills", format!("after {{bad: {how}"));
    }
}

/// Outcome of `server/discover`, as the first request.
pub(super) enum Probed {
    Modern,
    /// Older revisions alone.
    Legacy,
    Silent,
    Ended(String),
}

pub(super) async fn probe(wire: &mut Wire, limit: Duration) -> Probed {
    let said = wire.request_within("server/discover", json!({}), limit).await;
    match &said {
        Said::Silent => return Probed::Silent,
        Said::Ended(how) => return Probed::Ended(how.clone()),
        Said::Status(401 | 403, _) => return Probed::Legacy,
        _ => {}
    }
    let Some(result) = said.result().filter(|result| result["supportedVersions"].is_array()) else {
        return Probed::Legacy;
    };
    let supported: Vec<_> = result["supportedVersions"].as_array().into_iter().flatten().collect();
    if !supported.iter().any(|version| **version == MODERN) {
        return Probed::Legacy;
    }
    wire.report.reached();
    wire.report.speaks(MODERN);
    wire.capabilities = result["capabilities"].as_object().cloned().unwrap_or_default();
    shape(&wire.report, "server/discover", result);
    let named = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    if named.is_object() {
        info(&wire.report, named);
    }
    Probed::Modern
}

/// Checks the members that every result of the newer revisions has.
pub(super) fn shape(report: &Report, method: &str, result: &Value) {
    report.ran(&["no-resultType", "no-ttl"]);
    if !result["resultType"].is_string() {
        report.find("no-resultType", method);
    }
    let is_kept = method.ends_with("/list") || ["server/discover", "resources/read"].contains(&method);
    let is_complete = result["resultType"].as_str().is_none_or(|kind| kind == "complete");
    if is_kept && is_complete && !(result["ttlMs"].is_number() && result["cacheScope"].is_string()) {
        report.find("no-ttl", method);
    }
}

/// Checks that only the newer revisions have, after a probe that was answered.
pub(super) async fn modern(wire: &mut Wire) {
    for id in [json!("7"), json!("a")] {
        wire.request_as(id, "server/discover", json!({}), PATIENCE).await;
    }
    let (list, read) = if wire.has("tools") { ("tools/list", false) } else { ("resources/list", true) };
    if wire.has("tools") || wire.has("resources") {
        let said = wire.request(list, json!({})).await;
        if let Some(result) = said.result() {
            shape(&wire.report, list, result);
        }
        wire.report.ran(&["takes-no-meta"]);
        let id = wire.id();
        let said = match wire.begin_bare(&id, list, json!({})).await {
            Some(said) => said,
            None => wire.answer(&id, SOON).await,
        };
        if let Some(result) = said.result() {
            wire.report.find("takes-no-meta", format!("{list}: {}", one_line(&result.to_string())));
        }
    }
    if wire.has("resources") && !read {
        let said = wire.request("resources/list", json!({})).await;
        if let Some(result) = said.result() {
            shape(&wire.report, "resources/list", result);
        }
    }
}
