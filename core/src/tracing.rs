//! Events of `tracing` as log messages of the protocol.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! let subscriber = tracing_subscriber::registry().with(tricorn::tracing::layer());
//! # let _ = subscriber;
//! ```

use std::cell::Cell;
use std::fmt;

use serde_json::{Map, Value};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as Spans;
use tracing_subscriber::registry::LookupSpan;

use crate::call::{Context, current};
use crate::protocol::LogLevel;

/// A layer that sends what happens inside a server's handler to the client of its call, as
/// [`Context::log`](crate::Context::log) does: only what that client's log level lets through. `TRACE` and `DEBUG` are
/// `debug`, the others have their namesakes; the logger is the event's target; the data is the message, or with fields
/// an object of `message` and the fields.
///
/// Inside a handler is what its future does, and what happens in a span that was made there, so a task that a handler
/// spawns is to be given the current span. Anything else is let be, for other layers.
#[must_use]
#[deprecated(note = "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")]
pub fn layer() -> LogLayer {
    LogLayer(())
}

/// See [`layer`].
#[derive(Debug, Clone, Copy)]
pub struct LogLayer(());

/// The call in which a span was made.
struct MadeIn(Context);

thread_local! {
    /// A message is being sent, and what that causes is no message.
    static SENDING: Cell<bool> = const { Cell::new(false) };
}

/// As long as this lives, nothing else is sent from this thread.
struct Sending;

impl Sending {
    fn begin() -> Option<Self> {
        (!SENDING.replace(true)).then_some(Self)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        SENDING.set(false);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, spans: Spans<'_, S>) {
        if let (Some(context), Some(span)) = (current(), spans.span(id)) {
            span.extensions_mut().insert(MadeIn(context));
        }
    }

    #[expect(deprecated, reason = "this is how it is sent")]
    fn on_event(&self, event: &Event<'_>, spans: Spans<'_, S>) {
        let made_in = || {
            let mut scope = spans.event_scope(event)?;
            scope.find_map(|span| span.extensions().get::<MadeIn>().map(|MadeIn(context)| context.clone()))
        };
        let Some(context) = current().or_else(made_in) else { return };
        let level = level(*event.metadata().level());
        if !context.is_logged(level) {
            return;
        }
        let Some(_sending) = Sending::begin() else { return };
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let alone = fields.0.len() == 1;
        let data = match fields.0.get_mut("message") {
            Some(message) if alone => message.take(),
            _ => Value::Object(fields.0),
        };
        context.log(level, Some(event.metadata().target()), &data);
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// An event's fields as JSON.
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, value.to_string());
    }
}
