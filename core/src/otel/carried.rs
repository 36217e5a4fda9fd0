//! Spans and baggage of OpenTelemetry as the members of `_meta`, and back.

use opentelemetry::Context as Spans;
use opentelemetry::baggage::{Baggage, BaggageExt};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use percent_encoding::percent_decode_str;

use crate::model::TraceContext;

/// The span that a trace context names.
pub(super) fn span_context(trace: &TraceContext) -> Option<SpanContext> {
    let id = TraceId::from_hex(trace.trace_id()?).ok()?;
    let span = SpanId::from_hex(trace.parent_id()?).ok()?;
    let state = trace.tracestate().and_then(|text| text.parse::<TraceState>().ok()).unwrap_or_default();
    Some(SpanContext::new(id, span, TraceFlags::new(trace.flags() & 1), true, state))
}

/// The context with the entries of a `baggage` besides.
pub(super) fn with_baggage(spans: &Spans, baggage: &str) -> Spans {
    let mut all = Baggage::new();
    for (key, (value, metadata)) in spans.baggage() {
        all.insert_with_metadata(key.clone(), value.clone(), metadata.as_str());
    }
    for member in baggage.split(',') {
        let (pair, properties) = member.split_once(';').unwrap_or((member, ""));
        let Some((key, value)) = pair.split_once('=') else { continue };
        if let Ok(value) = percent_decode_str(value.trim()).decode_utf8() {
            all.insert_with_metadata(key.trim().to_owned(), value.into_owned(), properties.trim());
        }
    }
    spans.with_baggage(all)
}

/// The context's span and baggage, when there are any that can be told.
pub(super) fn trace_context(spans: &Spans) -> Option<TraceContext> {
    let span = spans.span().span_context().clone();
    let parent = span
        .is_valid()
        .then(|| format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags() & TraceFlags::SAMPLED));
    let state = Some(span.trace_state().header()).filter(|state| parent.is_some() && !state.is_empty());
    let baggage = Some(spans.baggage().to_string()).filter(|baggage| !baggage.is_empty());
    // Members that W3C has no place for are left out, and the rest goes.
    let of = |state: Option<&str>, baggage: Option<&str>| TraceContext::new(parent.as_deref(), state, baggage).ok();
    of(state.as_deref(), baggage.as_deref()).or_else(|| of(state.as_deref(), None)).or_else(|| of(None, None))
}
