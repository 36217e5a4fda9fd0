//! The log as a cassette: JSON Lines, a message on each, without secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tricorn::cassette::{Redaction, event_line, message_line};
use tricorn::client::Target;

use super::hub::{Record, What};
use crate::targets::{Found, Reach};

/// Knows the values that were given for the connection: of headers, the environment, the URL.
pub(super) fn redaction(found: &Found, headers: &BTreeMap<String, String>) -> Redaction {
    let mut values: Vec<String> = headers.values().cloned().collect();
    match &found.reach {
        Reach::One(Target::Command { env, .. }) => values.extend(env.values().flatten().cloned()),
        Reach::One(Target::Url { url, headers, .. }) => {
            values.extend(headers.values().cloned());
            values.extend(Redaction::secrets_of(url));
        }
        _ => {}
    }
    Redaction::new(values)
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
            What::Message { by_client, on, text } => message_line(record.time, *by_client, on, text, redaction),
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

    const SECRET: &str = "canary/secret+value";

    #[test]
    fn a_cassette_has_the_records_of_one_connection() {
        let message = |connection, text: &str| {
            let what = What::Message { by_client: true, on: "stdio".to_owned(), text: text.to_owned() };
            Arc::new(Record { time: 1.5, connection, what })
        };
        let event =
            Record { time: 2.0, connection: 2, what: What::Event { name: "stderr", text: format!("x {SECRET}") } };
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
