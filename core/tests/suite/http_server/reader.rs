//! Event streams, event by event.

use http::Response;
use http_body_util::BodyExt;
use serde_json::Value;
use tricorn::http::Body;

use super::fixture::within;

/// One event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) retry: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }
}

/// A stream that is being read.
pub(crate) struct Reader {
    body: Body,
    text: String,
}

impl Reader {
    pub(crate) fn new(response: Response<Body>) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event, comments apart; `None` at the stream's end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let mut read = Event::default();
                for line in event.lines().filter(|line| !line.starts_with(':')) {
                    let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                    let field = match name {
                        "event" => &mut read.kind,
                        "id" => &mut read.id,
                        "retry" => &mut read.retry,
                        "data" => &mut read.data,
                        other => panic!("{other}"),
                    };
                    *field = value.to_owned();
                }
                self.text = rest.to_owned();
                if read != Event::default() {
                    return Some(read);
                }
                continue;
            }
            let frame = within("the next event", self.body.frame()).await?.unwrap();
            self.text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
    }

    /// All that is left.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
