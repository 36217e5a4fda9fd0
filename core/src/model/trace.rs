//! The trace that a request belongs to, as W3C Trace Context and W3C Baggage write it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::meta;
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::RawJson;

/// The members of `_meta`, in the order in which they are written.
pub(crate) const TRACE_MEMBERS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The most members of a `tracestate`.
const MAX_STATES: usize = 32;
/// The longest `baggage` in bytes.
const MAX_BAGGAGE: usize = 8192;

/// The trace that a request belongs to: `traceparent` and `tracestate` of W3C Trace Context, `baggage` of W3C Baggage,
/// in `_meta` of a request. Malformed members are not in here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TraceContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baggage: Option<String>,
}

impl TraceContext {
    /// A trace context of these, each as its W3C header has it.
    ///
    /// ```
    /// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let trace = tricorn::TraceContext::new(Some(parent), None, Some("tenant=7"))?;
    /// assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    /// # Ok::<(), tricorn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the one that is malformed, for a `tracestate` without a
    /// `traceparent`, and when there is nothing at all.
    pub fn new(traceparent: Option<&str>, tracestate: Option<&str>, baggage: Option<&str>) -> Result<Self> {
        let wrong = |name: &str, expected: &str, got: &str| {
            let got = shortened(got, 80);
            Err(Error::misuse(format!("trace context: {name:?}: expected {expected}, got {got:?}")))
        };
        match (traceparent, tracestate, baggage) {
            (Some(text), ..) if !is_traceparent(text) => {
                let expected = "\"00-<32 digits>-<16 digits>-<2 digits>\", lower case hex and ids that are not zero";
                wrong("traceparent", expected, text)
            }
            (_, Some(text), _) if !is_tracestate(text) => {
                wrong("tracestate", "at most 32 different \"key=value\" with commas between", text)
            }
            (None, Some(text), _) => wrong("tracestate", "a \"traceparent\" beside it", text),
            (_, _, Some(text)) if !is_baggage(text) => {
                wrong("baggage", "at most 8192 bytes of \"key=value\" with commas between", text)
            }
            (None, None, None) => {
                Err(Error::misuse("trace context: expected \"traceparent\", \"tracestate\" or \"baggage\", got none"))
            }
            _ => Ok(Self {
                traceparent: traceparent.map(str::to_owned),
                tracestate: tracestate.map(str::to_owned),
                baggage: baggage.map(str::to_owned),
            }),
        }
    }

    /// Reads the trace of `_meta`; malformed members are left out, and `tracestate` with the `traceparent` that it
    /// belongs to.
    #[must_use]
    pub fn of_meta(meta: &RawJson) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow, default)]
            traceparent: Option<&'a RawValue>,
            #[serde(borrow, default)]
            tracestate: Option<&'a RawValue>,
            #[serde(borrow, default)]
            baggage: Option<&'a RawValue>,
        }
        let has = |name: &str| memchr::memmem::find(meta.get().as_bytes(), name.as_bytes()).is_some();
        if !has(TRACE_MEMBERS[0]) && !has(TRACE_MEMBERS[2]) {
            return None;
        }
        let members: Members<'_> = meta.borrow().ok()?;
        let valid = |raw: Option<&RawValue>, is_valid: fn(&str) -> bool| {
            raw.and_then(meta::string).filter(|text| is_valid(text)).map(Cow::into_owned)
        };
        let traceparent = valid(members.traceparent, is_traceparent);
        let tracestate = traceparent.as_ref().and_then(|_| valid(members.tracestate, is_tracestate));
        let baggage = valid(members.baggage, is_baggage);
        (traceparent.is_some() || baggage.is_some()).then_some(Self { traceparent, tracestate, baggage })
    }

    /// As [`of_value`](Self::of_value), from JSON; "" is none.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>> {
        if text.is_empty() {
            return Ok(None);
        }
        let value = serde_json::from_str(text).map_err(|e| Error::misuse(format!("trace context: {e}")))?;
        Self::of_value(&value).map(Some)
    }

    /// Reads `{"traceparent"?, "tracestate"?, "baggage"?}`, where `null` is none.
    ///
    /// # Errors
    /// As [`new`](Self::new); for other members, and for what is no text.
    pub(crate) fn of_value(value: &Value) -> Result<Self> {
        let Value::Object(members) = value else {
            return Err(Error::misuse(format!("trace context: expected an object, got {value}")));
        };
        let mut given = [None; 3];
        for (name, value) in members {
            let Some(place) = TRACE_MEMBERS.iter().position(|known| known == name) else {
                return Err(Error::misuse(format!("trace context: {name:?}: expected one of {TRACE_MEMBERS:?}")));
            };
            given[place] = match value {
                Value::Null => None,
                Value::String(text) => Some(text.as_str()),
                other => return Err(Error::misuse(format!("trace context: {name:?}: expected a string, got {other}"))),
            };
        }
        let [traceparent, tracestate, baggage] = given;
        Self::new(traceparent, tracestate, baggage)
    }

    /// `version-traceid-parentid-flags`.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns the entries that tracing systems keep beside it, `key=value,…`.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns the entries that the program gave the trace on its way, `key=value,…`, percent-encoded.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// The trace, 32 hex digits.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }

    /// The span that the request was made in, 16 hex digits.
    #[must_use]
    pub fn parent_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(36..52)
    }

    /// Returns true if its sender records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags() & 1 == 1
    }

    pub(crate) fn flags(&self) -> u8 {
        let digits = self.traceparent.as_deref().and_then(|text| text.get(53..55));
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }

    /// The members that there are, with their names.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let values = [self.traceparent(), self.tracestate(), self.baggage()];
        TRACE_MEMBERS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Versions to come may have more behind, after a dash.
fn is_traceparent(text: &str) -> bool {
    let Some((fields, rest)) = text.split_at_checked(55) else { return false };
    let mut fields = fields.split('-');
    let mut field = |length| fields.next().filter(|field| field.len() == length && is_hex(field));
    let is_some = |id: &str| id.bytes().any(|byte| byte != b'0');
    let (Some(version), Some(trace), Some(parent), Some(_)) = (field(2), field(32), field(16), field(2)) else {
        return false;
    };
    let rest_fits = rest.is_empty() || version != "00" && rest.starts_with('-');
    version != "ff" && is_some(trace) && is_some(parent) && rest_fits
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn is_tracestate(text: &str) -> bool {
    let is_key = |key: &str| {
        (1..=256).contains(&key.len())
            && key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && key.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@'))
    };
    let is_value = |value: &str| {
        (1..=256).contains(&value.len()) && value.bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b',' | b'='))
    };
    let mut keys = Vec::new();
    for member in text.split(',').map(trimmed).filter(|member| !member.is_empty()) {
        match member.split_once('=') {
            Some((key, value)) if is_key(key) && is_value(value) && !keys.contains(&key) => keys.push(key),
            _ => return false,
        }
        if keys.len() > MAX_STATES {
            return false;
        }
    }
    !keys.is_empty()
}

fn is_baggage(text: &str) -> bool {
    let is_key = |key: &str| {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !key.is_empty() && key.bytes().all(is_token)
    };
    let is_value = |value: &str| value.bytes().all(|b| matches!(b, b'!'..=b'~') && !matches!(b, b'"' | b',' | b'\\'));
    text.len() <= MAX_BAGGAGE
        && text.split(',').all(|member| {
            // Properties come after a semicolon, `key` or `key=value`.
            let mut parts = member.split(';').map(trimmed);
            let first = parts.next().and_then(|first| first.split_once('='));
            first.is_some_and(|(key, value)| is_key(trimmed(key)) && is_value(trimmed(value)))
                && parts.all(|part| match part.split_once('=') {
                    Some((key, value)) => is_key(trimmed(key)) && is_value(trimmed(value)),
                    None => is_key(part),
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(meta: &Value) -> Option<TraceContext> {
        TraceContext::of_meta(&RawJson::from_value(meta))
    }

    #[test]
    fn a_traceparent_is_read_as_w3c_has_it() {
        let later = format!("cc{}-what-will-be", &PARENT[2..]);
        for good in [PARENT, &PARENT.replace("-01", "-00"), &format!("cc{}", &PARENT[2..]), &later] {
            let trace = of(&json!({"traceparent": good})).expect(good);
            assert_eq!(trace.traceparent(), Some(good));
            assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
            assert_eq!(trace.parent_id(), Some("00f067aa0ba902b7"));
            assert_eq!(trace.is_sampled(), !good.ends_with("-00"));
        }
        let no_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let no_parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
        let bad = [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT[..54],
            &format!("{PARENT}-x"),
            &format!("{PARENT}x"),
            &format!("cc{}x", &PARENT[2..]),
            &format!("ff{}", &PARENT[2..]),
            &PARENT.replace('-', "_"),
            &PARENT.replace("-01", "-0x"),
            &format!("ä{}", &PARENT[1..]),
            &no_trace,
            &no_parent,
        ];
        for bad in bad {
            // The state goes with it, the baggage is a standard of its own.
            let all = json!({"traceparent": bad, "tracestate": "a=1", "baggage": "b=2"});
            let trace = of(&all).expect("baggage");
            assert_eq!((trace.traceparent(), trace.tracestate(), trace.baggage()), (None, None, Some("b=2")), "{bad}");
            assert_eq!((trace.trace_id(), trace.is_sampled()), (None, false));
            let message = TraceContext::new(Some(bad), None, None).expect_err(bad).message().to_owned();
            assert!(message.contains("\"traceparent\": expected"), "{message}");
        }
        for other in [json!({}), json!({"traceparent": 1}), json!({"tracestate": "a=1"}), json!({"traceparent": null})]
        {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_malformed_state_or_baggage_is_left_out() {
        let many = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        let read = |state: &str| of(&json!({"traceparent": PARENT, "tracestate": state})).expect("a parent").tracestate;
        for good in ["a=1", "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", "0t@v/*-_=a b", "a=1,,b=2", &many(32)] {
            assert_eq!(read(good).as_deref(), Some(good));
        }
        for bad in ["", ",", "a", "A=1", "a=", "a=b=c", "a=1,a=2", "a=ü", &many(33), &format!("a={}", "v".repeat(257))]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
        let read = |baggage: &str| of(&json!({"baggage": baggage})).and_then(|trace| trace.baggage);
        for good in
            ["k=v", "userId=alice,serverNode=DF%2028", "a = 1 ; p ; q=2 , b=", &format!("k={}", "v".repeat(8190))]
        {
            assert_eq!(read(good).as_deref(), Some(good));
        }
        for bad in ["", "k", "=v", "k=a b", "k=\"v\"", "k=v,", "k=ü", "k=v;=", &format!("k={}", "v".repeat(8191))] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn who_makes_one_is_told_what_is_wrong() {
        for (value, part) in [
            (json!([]), "expected an object"),
            (json!({}), "got none"),
            (json!({"traceParent": PARENT}), "\"traceParent\": expected one of"),
            (json!({"traceparent": 1}), "\"traceparent\": expected a string"),
            (json!({"tracestate": "a=1"}), "a \"traceparent\" beside it"),
            (json!({"traceparent": PARENT, "tracestate": "a"}), "\"tracestate\": expected"),
            (json!({"baggage": "k"}), "\"baggage\": expected"),
        ] {
            let message = TraceContext::of_value(&value).expect_err(part).message().to_owned();
            assert!(message.contains(part), "{value}: {message}");
        }
        let all = json!({"traceparent": PARENT, "tracestate": null, "baggage": "b=2"});
        let trace = TraceContext::of_value(&all).expect("a trace");
        assert_eq!(json!(trace), json!({"traceparent": PARENT, "baggage": "b=2"}));
        let members: Vec<_> = trace.members().collect();
        assert_eq!(members, [("traceparent", PARENT), ("baggage", "b=2")]);
    }
}
