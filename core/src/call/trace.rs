//! The trace that requests belong to, on its way in and out.

use std::fmt;
use std::sync::Arc;

use super::Context;
use crate::jsonrpc::RawJson;
use crate::model::TraceContext;
use crate::protocol::revision::object;
use crate::report;

type Source = dyn Fn() -> Option<TraceContext> + Send + Sync;

/// Function that names the trace of a client's requests.
#[derive(Clone, Default)]
pub(crate) struct TraceSource(Option<Arc<Source>>);

impl TraceSource {
    pub(crate) fn new(f: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(f)))
    }

    /// That of what runs on this thread.
    pub(crate) fn current(&self) -> Option<TraceContext> {
        let f = self.0.as_ref()?;
        report::guarded("what tells the trace context", || f()).flatten()
    }
}

impl fmt::Debug for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TraceSource(..)" } else { "TraceSource()" })
    }
}

/// The parameters with the trace in their `_meta`, unless that has one already.
pub(crate) fn traced(params: Option<&RawJson>, trace: &TraceContext) -> RawJson {
    let all = object::members(params.map_or("{}", RawJson::get));
    let mut text = String::from("{");
    let mut meta = String::from("{");
    let (mut has_parent, mut has_baggage) = (false, false);
    for (key, value) in &all {
        if key != "_meta" {
            object::push_member(&mut text, key, value.get());
            continue;
        }
        for (key, value) in object::members(value.get()) {
            // A parent and its state belong together.
            has_parent |= matches!(key.as_ref(), "traceparent" | "tracestate");
            has_baggage |= key == "baggage";
            object::push_member(&mut meta, &key, value.get());
        }
    }
    for (name, value) in trace.members() {
        if !(if name == "baggage" { has_baggage } else { has_parent }) {
            object::push_member(&mut meta, name, RawJson::from_value(value).get());
        }
    }
    meta.push('}');
    object::push_member(&mut text, "_meta", &meta);
    text.push('}');
    RawJson::written(text)
}

/// The trace of a request with these parameters, as it goes out with what is told of it besides.
pub(crate) fn trace_of(params: Option<&RawJson>, told: Option<&TraceContext>) -> Option<TraceContext> {
    let joined = match told {
        Some(trace) => traced(params, trace),
        None => params?.clone(),
    };
    let meta = object::members(joined.get()).into_iter().find(|(key, _)| key == "_meta");
    TraceContext::of_meta(&joined.slice(meta?.1))
}

impl Context {
    /// The trace that the request belongs to: `traceparent`, `tracestate` and `baggage` of its `_meta`, or what
    /// middleware put in their place with [`with_state`](Self::with_state). Malformed members are left out. A handler's
    /// questions to the peer belong to the same trace. Of a request that a client sends: what it will carry, where its
    /// `_meta` says nothing else.
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.request().trace_context_beside(self.states())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_joins_what_meta_has_and_replaces_nothing() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceContext::new(Some(parent), Some("a=1"), Some("k=v")).expect("a trace");
        let joined = |params: Option<&str>| {
            traced(params.map(|text| RawJson::written(text.to_owned())).as_ref(), &trace).get().to_owned()
        };
        let both = format!(r#""traceparent":"{parent}","tracestate":"a=1""#);
        assert_eq!(joined(None), format!(r#"{{"_meta":{{{both},"baggage":"k=v"}}}}"#));
        assert_eq!(
            joined(Some(r#"{"_meta":{"n":12345678901234567890123,"baggage":""},"name":"t"}"#)),
            format!(r#"{{"name":"t","_meta":{{"n":12345678901234567890123,"baggage":"",{both}}}}}"#)
        );
        assert_eq!(
            joined(Some(r#"{"_meta":{"traceparent":"mine"}}"#)),
            r#"{"_meta":{"traceparent":"mine","baggage":"k=v"}}"#
        );
        assert_eq!(
            joined(Some(r#"{"_meta":{"tracestate":"m=1"}}"#)),
            r#"{"_meta":{"tracestate":"m=1","baggage":"k=v"}}"#
        );
    }
}
