//! Everything that a page is told, in its order: the log of messages, which is kept, and news, of which the last are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

/// Records of the log that are kept, and their bytes.
const RECORDS: usize = 5000;
const RECORD_BYTES: usize = 16 << 20;
/// News that are kept for pages that are slow, and their bytes.
const NEWS: usize = 1000;
const NEWS_BYTES: usize = 32 << 20;

/// Something that passed, or happened, at a connection.
pub(super) struct Record {
    /// Time since the command started.
    pub(super) time: Duration,
    /// The connection that it belongs to: each reconnect begins another one.
    pub(super) connection: u64,
    pub(super) what: What,
}

pub(super) enum What {
    /// A message as it passed, or what stood in the place of one.
    /// `server`: between a group and its server of this name, whose ids are its own.
    Message { by_client: bool, server: Option<Arc<str>>, on: String, text: String },
    /// A line of the server's standard error, a warning, an end.
    Event { name: &'static str, text: String },
}

/// The newest entries of one kind, within their bounds. The newest one is kept however long it is.
struct Ring<T> {
    entries: VecDeque<(u64, usize, T)>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl<T> Ring<T> {
    fn new(most: usize, most_bytes: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, most, most_bytes }
    }

    fn push(&mut self, number: u64, size: usize, entry: T) {
        self.entries.push_back((number, size, entry));
        self.bytes += size;
        while self.entries.len() > self.most || (self.bytes > self.most_bytes && self.entries.len() > 1) {
            let Some((_, size, _)) = self.entries.pop_front() else { break };
            self.bytes -= size;
        }
    }

    /// The first entry after this number.
    fn after(&self, number: u64) -> Option<&(u64, usize, T)> {
        let at = self.entries.partition_point(|(known, ..)| *known <= number);
        self.entries.get(at)
    }

    fn first(&self) -> Option<u64> {
        self.entries.front().map(|(number, ..)| *number)
    }
}

struct State {
    next: u64,
    connection: u64,
    log: Ring<Arc<Record>>,
    news: Ring<String>,
    /// The number of the last news that are no longer kept.
    forgotten: u64,
}

/// Milliseconds, of which three digits behind the point are told.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Log and news.
pub(super) struct Hub {
    state: Mutex<State>,
    started: Instant,
    changed: watch::Sender<u64>,
}

/// Next events for a page, as text, and the number that they go up to.
pub(super) struct Batch {
    pub(super) text: String,
    pub(super) upto: u64,
}

impl Hub {
    pub(super) fn new() -> Self {
        let state = State {
            next: 1,
            connection: 0,
            log: Ring::new(RECORDS, RECORD_BYTES),
            news: Ring::new(NEWS, NEWS_BYTES),
            forgotten: 0,
        };
        Self { state: Mutex::new(state), started: Instant::now(), changed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the command started.
    pub(super) fn time(&self) -> f64 {
        millis(self.started.elapsed())
    }

    /// Counts another connection and gives its number.
    pub(super) fn begin_connection(&self) -> u64 {
        let mut state = self.lock();
        state.connection += 1;
        state.connection
    }

    fn push(&self, add: impl FnOnce(&mut State, u64)) {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        add(&mut state, number);
        drop(state);
        self.changed.send_replace(number);
    }

    /// Adds to the log.
    pub(super) fn record(&self, connection: u64, what: What) {
        let time = self.started.elapsed();
        let size = match &what {
            What::Message { text, .. } | What::Event { text, .. } => text.len() + 100,
        };
        self.push(|state, number| state.log.push(number, size, Arc::new(Record { time, connection, what })));
    }

    /// Tells all pages something that is of no interest later.
    pub(super) fn tell(&self, event: &str, data: &impl Serialize) {
        if let Ok(data) = serde_json::to_string(data) {
            self.tell_text(event, &data);
        }
    }

    /// As [`tell`](Self::tell), for JSON text, whose numbers stay as they are spelt.
    pub(super) fn tell_text(&self, event: &str, data: &str) {
        // A break would end the event's line; in JSON they stand between its parts only.
        let data = data.replace(['\n', '\r'], " ");
        self.push(|state, number| {
            let text = format!("id: {number}\nevent: {event}\ndata: {data}\n\n");
            let before = state.news.first();
            state.news.push(number, text.len(), text);
            if before.is_some() && before != state.news.first() {
                state.forgotten = state.news.first().map_or(number, |first| first - 1);
            }
        });
    }

    /// Empties the log.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.log = Ring::new(RECORDS, RECORD_BYTES);
        drop(state);
        self.tell("cleared", &());
    }

    /// The number of what comes last so far.
    pub(super) fn last(&self) -> u64 {
        self.lock().next - 1
    }

    /// Returns all that is kept of the log.
    pub(super) fn log(&self) -> Vec<Arc<Record>> {
        self.lock().log.entries.iter().map(|(.., record)| record.clone()).collect()
    }

    /// Waits until there is something after this number.
    pub(super) async fn reaches(&self, number: u64) {
        let mut changed = self.changed.subscribe();
        let _ = changed.wait_for(|last| *last > number).await;
    }

    /// Returns the next events: of the log after `log`, of the news after `news`. About a megabyte at once; `None`: none.
    /// A page for which news were lost is told so: it asks for the state again.
    pub(super) fn batch(&self, log: u64, news: u64) -> Option<Batch> {
        const SIZE: usize = 1 << 20;
        let state = self.lock();
        let (mut log, mut news) = (log, news);
        let mut text = String::new();
        let mut upto = 0;
        if news < state.forgotten {
            text.push_str("event: lost\ndata: {}\n\n");
            news = state.forgotten;
            upto = news;
        }
        while text.len() < SIZE {
            let (record, told) = (state.log.after(log), state.news.after(news));
            let is_record = match (record, told) {
                (Some((a, ..)), Some((b, ..))) => a < b,
                (record, _) => record.is_some(),
            };
            upto = match (is_record, record, told) {
                (true, Some((number, _, record)), _) => {
                    written(*number, record, &mut text);
                    log = *number;
                    *number
                }
                (false, _, Some((number, _, told))) => {
                    text.push_str(told);
                    news = *number;
                    *number
                }
                _ => break,
            };
        }
        (upto > 0).then_some(Batch { text, upto })
    }
}

/// Facts about a message that the page shows without reading all of it.
#[derive(serde::Deserialize, Default)]
struct Outline<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Serialize, Default)]
struct Shown<'a> {
    n: u64,
    t: f64,
    c: u64,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    text: &'a str,
}

fn written(number: u64, record: &Record, out: &mut String) {
    let mut shown = Shown { n: number, t: millis(record.time), c: record.connection, ..Shown::default() };
    let outline: Option<Outline<'_>>;
    match &record.what {
        What::Event { name, text } => (shown.kind, shown.text) = (name, text),
        What::Message { by_client, server, on, text } => {
            shown.from = Some(if *by_client { "client" } else { "server" });
            (shown.s, shown.on, shown.text) = (server.as_deref(), Some(on.as_str()), text);
            outline = serde_json::from_str(text).ok();
            shown.kind = match &outline {
                Some(Outline { method: Some(_), id: Some(_), .. }) => "request",
                Some(Outline { method: Some(_), .. }) => "notification",
                Some(Outline { error: Some(_), .. }) => "error",
                Some(Outline { result: Some(_), .. }) => "result",
                _ if text.trim_start().starts_with('[') && serde_json::from_str::<&RawValue>(text).is_ok() => "batch",
                _ => "unreadable",
            };
            if let Some(outline) = &outline {
                (shown.id, shown.method) = (outline.id.map(RawValue::get), outline.method.as_deref());
            }
        }
    }
    if let Ok(data) = serde_json::to_string(&shown) {
        out.push_str(&format!("id: {number}\nevent: log\ndata: {data}\n\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> What {
        What::Event { name: "stderr", text: text.to_owned() }
    }

    #[test]
    fn the_log_keeps_the_newest_within_its_bounds() {
        let hub = Hub::new();
        (0..RECORDS + 10).for_each(|at| hub.record(1, line(&at.to_string())));
        let first = match &hub.log()[0].what {
            What::Event { text, .. } | What::Message { text, .. } => text.clone(),
        };
        assert_eq!(first, "10");
        let long = "x".repeat(RECORD_BYTES / 2);
        (0..4).for_each(|_| hub.record(1, line(&long)));
        assert_eq!(hub.log().len(), 1, "two of them are too much, with what is beside each");
    }

    #[test]
    fn a_page_is_told_in_order_and_what_it_lost() {
        let hub = Hub::new();
        hub.record(1, line("a"));
        hub.tell("state", &"b");
        hub.record(1, line("c"));
        assert!(!hub.batch(0, 0).expect("a batch").text.contains("event: lost"));
        let batch = hub.batch(0, 0).expect("a batch");
        let events: Vec<_> = batch.text.lines().filter(|line| line.starts_with("event")).collect();
        assert_eq!((events, batch.upto), (vec!["event: log", "event: state", "event: log"], 3));
        assert!(hub.batch(3, 3).is_none());
        (0..=NEWS).for_each(|at| hub.tell("progress", &at));
        assert!(hub.batch(3, 3).expect("a batch").text.starts_with("event: lost\n"));
    }

    #[test]
    fn messages_are_told_by_what_they_are() {
        let mut out = String::new();
        for (text, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request"),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notification"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "error"),
            ("[]", "batch"),
            ("hello", "unreadable"),
        ] {
            out.clear();
            let what = What::Message { by_client: true, server: None, on: "stdio".to_owned(), text: text.to_owned() };
            written(7, &Record { time: Duration::from_millis(1), connection: 1, what }, &mut out);
            assert!(out.contains(&format!("\"kind\":\"{kind}\"")), "{out}");
        }
    }
}
