//! Options that come as JSON from other languages: unknown names are refused, with the nearest known one.

use std::time::Duration;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::{Error, Result, shortened};

/// Reads options; those that exist are the members of `T`.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming the option, what is expected, and for an unknown one the nearest.
pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    let known = members::<T>();
    let text = if text.trim().is_empty() { "{}" } else { text };
    let value: Value = serde_json::from_str(text).map_err(|e| Error::misuse(format!("{what}: {e}")))?;
    let Value::Object(members) = &value else {
        return Err(Error::misuse(format!("{what}: expected an object, got {value}")));
    };
    for name in members.keys() {
        if !known.contains(&name.as_str()) {
            return Err(unknown(what, name, known));
        }
    }
    // `null` stands for the default.
    let given: serde_json::Map<String, Value> =
        members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    // The path tells a member that is wrong from one that is missing.
    serde_path_to_error::deserialize(&Value::Object(given.clone())).map_err(|e| {
        let name = match e.path().iter().next() {
            Some(serde_path_to_error::Segment::Map { key }) => key.clone(),
            _ => return Error::misuse(format!("{what}: {}", e.inner())),
        };
        let value = given.get(&name).unwrap_or(&Value::Null);
        Error::misuse(format!("{what}: option {name:?}: {}", in_words(e.inner(), &name, value)))
    })
}

/// Shortest text that counts as the beginning of a name.
const SHORTEST: usize = 4;

/// The refusal of an option that does not exist, with the nearest one that does, or else all of them.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let (far, nearest) = known.iter().map(|k| (strsim::levenshtein(k, name), *k)).min().unwrap_or_default();
    let begun = known.iter().find(|k| name.len() >= SHORTEST && k.starts_with(name));
    // A name with less than half in common was not meant.
    let meant = begun.or_else(|| (far <= nearest.len().max(name.len()).div_ceil(2)).then_some(&nearest));
    let hint = match meant {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("expected one of {}", known.join(", ")),
    };
    Error::misuse(format!("{what}: unknown option {name:?}, {hint}"))
}

/// Counts of which none is nothing.
const FROM_ONE: [&str; 8] = [
    "max_decoded_bytes",
    "max_in_flight",
    "max_listeners",
    "max_memory",
    "max_message_bytes",
    "max_nesting",
    "max_request_state_bytes",
    "page_size",
];

/// Words serde's message about a value, where its types mean something to the author of the option.
fn in_words(error: &serde_json::Error, name: &str, value: &Value) -> String {
    let text = error.to_string();
    let kind = text.rsplit_once("expected ").map_or("", |(_, kind)| kind);
    let least = usize::from(FROM_ONE.contains(&name));
    let got = shortened(&value.to_string(), 60).into_owned();
    match kind {
        "u16" => format!("expected a whole number from {least} to 65535, got {got}"),
        "usize" | "u64" | "u32" | "u8" if value.is_f64() => {
            format!("expected a whole number of at least {least}, got {got}")
        }
        "usize" | "u64" | "u32" | "u8" => format!("expected a number of at least {least}, got {got}"),
        "f64" | "f32" => format!("expected a number, got {got}"),
        "a boolean" => format!("expected a boolean, got {got}"),
        _ => text,
    }
}

/// The names of a struct's members, as serde asks for them.
fn members<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    /// Says nothing, and keeps what it was asked for.
    struct Asked<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("no struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut names: &'static [&'static str] = &[];
    let _ = T::deserialize(Asked(&mut names));
    names
}

/// A time from an option.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for what is no time.
pub(crate) fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Error::misuse(format!("option {name:?}: expected seconds of at least 0, got {value}")))
}

/// Functions that set an option each and give the options back, named as the members: `ClientOptions::new().name("demo")`.
macro_rules! setters {
    ($($name:ident: $($kind:ident)+;)*) => {
        $(
            #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
            #[must_use]
            pub fn $name(mut self, value: crate::options::setters!(@given $($kind)+)) -> Self {
                self.$name = crate::options::setters!(@kept value, $($kind)+);
                self
            }
        )*
    };
    (@given text) => { impl Into<String> };
    (@given some text) => { impl Into<String> };
    (@given some $type:ident) => { $type };
    (@given $type:ident) => { $type };
    (@kept $value:ident, text) => { $value.into() };
    (@kept $value:ident, some text) => { Some($value.into()) };
    (@kept $value:ident, some $type:ident) => { Some($value) };
    (@kept $value:ident, $type:ident) => { $value };
}
pub(crate) use setters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_was_nearly_said() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "of the names")]
        struct Options {
            #[serde(default)]
            name: String,
            #[serde(default)]
            page_size: usize,
        }
        for (given, hint) in [
            (r#"{"pagesize": 1}"#, "unknown option \"pagesize\", did you mean \"page_size\"?"),
            (r#"{"nmae": ""}"#, "did you mean \"name\"?"),
            (r#"{"page": 1}"#, "did you mean \"page_size\"?"),
            (r#"{"zzz": 1}"#, "unknown option \"zzz\", expected one of name, page_size"),
        ] {
            let error = read::<Options>("server", given).expect_err(given);
            assert!(error.message().contains(hint), "{error}");
        }
        for (given, words) in [
            (r#"{"page_size": -1}"#, "option \"page_size\": expected a number of at least 1, got -1"),
            (r#"{"page_size": "1"}"#, "expected a number of at least 1, got \"1\""),
            (r#"{"page_size": 1.5}"#, "expected a whole number of at least 1, got 1.5"),
        ] {
            assert!(read::<Options>("server", given).expect_err(given).message().ends_with(words), "{given}");
        }
    }
}
