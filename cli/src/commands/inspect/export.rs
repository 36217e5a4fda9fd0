//! The log as a cassette: JSON Lines, a message on each, without secrets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use tricorn::cassette::{Redaction, event_line, message_line};
use tricorn::client::Target;

use super::hub::{Record, What};
use crate::targets::Reach;

/// Knows the values that were given for the connection: of headers, the environment, arguments, the URL, and what a
/// configuration file has for its servers.
pub(crate) fn redaction(reach: &Reach, headers: &BTreeMap<String, String>) -> Redaction {
    let mut values: Vec<String> = headers.values().cloned().collect();
    match reach {
        Reach::One(Target::Command { args, env, .. }) => {
            values.extend(env.values().flatten().cloned());
            values.extend(Redaction::secrets_among(args));
        }
        Reach::One(Target::Url { url, headers, .. }) => {
            values.extend(headers.values().cloned());
            values.extend(Redaction::secrets_of(url));
        }
        Reach::One(_) => {}
        Reach::Many(file) => values.extend(secrets_in(file)),
    }
    Redaction::new(values)
}

/// Values that a configuration file has for its servers.
fn secrets_in(file: &Path) -> Vec<String> {
    let mut values = Vec::new();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let read: Value = serde_json::from_str(&text).unwrap_or_default();
    for server in ["mcpServers", "servers"].iter().filter_map(|name| read[*name].as_object()).flat_map(Map::values) {
        for name in ["env", "headers"] {
            let own = server[name].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
            values.extend(own.flat_map(with_variables));
        }
        let args: Vec<_> = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.extend(Redaction::secrets_among(&args).iter().flat_map(|value| with_variables(value)));
        values.extend(server["url"].as_str().map(Redaction::secrets_of).unwrap_or_default());
    }
    values
}

/// A value of a configuration: as it stands, and with its variables in their places.
fn with_variables(value: &str) -> Vec<String> {
    let mut out = value.to_owned();
    while let Some(at) = out.find("${") {
        let Some(length) = out[at..].find('}') else { break };
        let name = out[at + 2..at + length].trim_start_matches("env:");
        let (name, default) = name.split_once(":-").unwrap_or((name, ""));
        let of = std::env::var(name).unwrap_or_else(|_| default.to_owned());
        out.replace_range(at..=at + length, &of.replace("${", ""));
    }
    vec![value.to_owned(), out]
}

/// Writes the records of one connection. `head` describes it.
pub(super) fn cassette(
    head: Map<String, Value>,
    connection: u64,
    redaction: &mut Redaction,
    log: &[Arc<Record>],
) -> String {
    let mut out = format!("{}\n", Value::Object(head));
    for record in log.iter().filter(|record| record.connection == connection) {
        let line = match &record.what {
            // Messages between a group and its servers have been seen before it, or are going to be.
            What::Message { server: Some(_), .. } => continue,
            What::Message { by_client, on, text, .. } => message_line(record.time, *by_client, on, text, redaction),
            What::Event { name, text } => event_line(record.time, name, text, redaction),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    const SECRET: &str = "canary/secret+value";

    #[test]
    fn secrets_of_files_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mcp.json");
        let servers = json!({"mcpServers": {"a": {"command": "x", "env": {"A": "six-secret-6"}},
            "b": {"url": "https://h/?key=seven-secret", "headers": {"X": "Bearer eight-secret"}}}});
        std::fs::write(&file, servers.to_string()).expect("written");
        let mut redaction = redaction(&Reach::Many(file), &BTreeMap::new());
        let clean = redaction.text("six-secret-6 seven-secret eight-secret");
        assert!(["six", "seven", "eight"].iter().all(|word| !clean.contains(word)), "{clean}");
    }

    #[test]
    fn a_cassette_has_the_records_of_one_connection() {
        let message = |connection, text: &str| {
            let what = What::Message { by_client: true, server: None, on: "stdio".to_owned(), text: text.to_owned() };
            Arc::new(Record { time: Duration::from_micros(1500), connection, what })
        };
        let what = What::Event { name: "stderr", text: format!("x {SECRET}") };
        let event = Record { time: Duration::from_millis(2), connection: 2, what };
        let log = [message(1, "{}"), message(2, r#"{"method":"ping"}"#), message(2, "?"), Arc::new(event)];
        let Value::Object(head) = json!({"cassette": 1}) else { unreachable!() };
        let text = cassette(head, 2, &mut Redaction::new([SECRET.to_owned()]), &log);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"cassette":1}"#,
                r#"{"t":1.5,"from":"client","on":"stdio","msg":{"method":"ping"}}"#,
                r#"{"t":1.5,"from":"client","on":"stdio","text":"?"}"#,
                r#"{"t":2.0,"event":"stderr","text":"x <secret-1>"}"#,
            ]
        );
        let read = tricorn::cassette::Cassette::parse("export", &text).expect("a cassette");
        assert_eq!(read.entries().len(), 3);
    }
}
