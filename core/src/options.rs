//! Options that come as JSON from other languages: unknown names are refused, with the nearest known one.

use std::time::Duration;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::{Error, Result};

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
            let (far, nearest) = known.iter().map(|k| (strsim::levenshtein(k, name), *k)).min().unwrap_or_default();
            // What has less than half in common was not meant.
            let hint = match far <= nearest.len().max(name.len()).div_ceil(2) {
                true => format!("did you mean {nearest:?}?"),
                false => format!("expected one of {}", known.join(", ")),
            };
            return Err(Error::misuse(format!("{what}: unknown option {name:?}, {hint}")));
        }
    }
    // `null` stands for the default.
    let given: serde_json::Map<String, Value> =
        members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    given.iter().try_for_each(|(name, value)| {
        let one = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        match serde_json::from_value::<T>(Value::Object(one)) {
            Err(e) if !e.to_string().starts_with("missing field") => {
                Err(Error::misuse(format!("{what}: option {name:?}: {e}")))
            }
            _ => Ok(()),
        }
    })?;
    serde_json::from_value(Value::Object(given)).map_err(|e| Error::misuse(format!("{what}: {e}")))
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
            (r#"{"zzz": 1}"#, "unknown option \"zzz\", expected one of name, page_size"),
        ] {
            let error = read::<Options>("server", given).expect_err(given);
            assert!(error.message().contains(hint), "{error}");
        }
    }
}
