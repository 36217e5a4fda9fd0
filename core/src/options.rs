//! Options that come as JSON from other languages: unknown names are refused, with the nearest known one.

use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::error::{Error, Result, UnknownOption, shortened};
use crate::idiom::{self, named};
use crate::jsonrpc::RawJson;
use crate::surface::{BY_NAME, FROM_ONE, PRIVATE, TIMES};

/// Reads options; those that exist are the members of `T`.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming the option, what is expected, and for an unknown one the nearest.
pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    let known = members::<T>();
    let text = if text.trim().is_empty() { "{}" } else { text };
    let value: Value = serde_json::from_str(text).map_err(|e| Error::misuse(format!("{what}: {e}")))?;
    let Value::Object(members) = &value else {
        return Err(Error::misuse(format!("{what}: expected an object, got {}", type_of(&value))));
    };
    for name in members.keys() {
        if !known.contains(&name.as_str()) {
            let option = UnknownOption { what: what.to_owned(), name: named(name).into_owned(), known };
            return Err(unknown(what, name, known).of_option(option));
        }
    }
    // `null` stands for the default.
    let given: serde_json::Map<String, Value> =
        members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    // The path tells a member that is wrong from one that is missing.
    let given = Value::Object(given);
    serde_path_to_error::deserialize(&given).map_err(|e| {
        let path: Vec<_> = e.path().iter().collect();
        let Some((Segment::Map { key: name }, within)) = path.split_first() else {
            return Error::misuse(format!("{what}: {}", e.inner()));
        };
        let why = fault(e.inner(), name, within, given.get(name).unwrap_or(&Value::Null), what);
        Error::misuse(format!("{what}: option {:?}: {why}", named(name)))
    })
}

/// Shortest text that counts as the beginning of a name.
const SHORTEST: usize = 4;

/// The refusal of an option that does not exist, with the nearest one that does, or else all of them.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    Error::misuse(format!("{what}: {}", unknown_in_words(name, known)))
}

/// The same without the place.
pub(crate) fn unknown_in_words(name: &str, known: &[&str]) -> String {
    unknown_as(&named(name), name, known)
}

/// The same for a name as the host's caller has written it: `page_siz`, `pageSiz`.
pub(crate) fn unknown_of_host(written: &str, known: &[&str]) -> String {
    unknown_as(written, &idiom::plain(written), known)
}

fn unknown_as(written: &str, name: &str, known: &[&str]) -> String {
    let hint = match meant(name, known).first() {
        Some(meant) => format!("did you mean {:?}?", named(meant)),
        None => format!("expected one of {}", idiom::all(known)),
    };
    format!("unknown option {written:?}, {hint}")
}

/// Known names that were probably meant by one that is not known, the likeliest first: those that begin with it, else those
/// that have half in common with it.
pub(crate) fn meant<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut names: Vec<_> = known.iter().map(|known| (known.to_lowercase(), *known)).collect();
    names.sort_by_cached_key(|(lower, known)| (strsim::osa_distance(lower, &name), *known));
    names.dedup();
    let begun = |lower: &str| name.len() >= SHORTEST && lower.starts_with(&name);
    if names.iter().any(|(lower, _)| begun(lower)) {
        names.retain(|(lower, _)| begun(lower));
        return names.into_iter().map(|(_, known)| known).collect();
    }
    // A name with less than half in common was not meant.
    let is_near = |lower: &str| {
        let (known, name) = without_common_end(lower, &name);
        let longest = known.len().max(name.len());
        let most = if longest < SHORTEST { longest / 2 } else { longest.div_ceil(2) };
        strsim::osa_distance(known, name) <= most
    };
    names.into_iter().take_while(|(lower, _)| is_near(lower)).map(|(_, known)| known).collect()
}

/// Names without the words that both end with: `request_timeout` is no `drain_timeout`.
fn without_common_end<'a>(mut one: &'a str, mut other: &'a str) -> (&'a str, &'a str) {
    while let (Some((first, word)), Some((second, same))) = (one.rsplit_once('_'), other.rsplit_once('_'))
        && word == same
    {
        (one, other) = (first, second);
    }
    (one, other)
}

/// Words serde's message about a value, where its types mean something to the author of the option.
fn fault(error: &serde_json::Error, name: &str, within: &[&Segment], value: &Value, what: &str) -> String {
    let text = error.to_string();
    let (mut place, mut value, mut innermost) = (String::new(), value, name);
    if let Some((unknown, known)) = unknown_member(&text) {
        return unknown_in_words(unknown, &known);
    }
    for segment in within {
        let inner = match segment {
            Segment::Map { key } => {
                innermost = key;
                let said = if BY_NAME.contains(&name) { key.into() } else { named(key) };
                place.push_str(&format!("{said:?}: "));
                value.get(key)
            }
            Segment::Seq { index } => {
                place.push_str(&format!("[{index}]: "));
                value.get(index)
            }
            _ => None,
        };
        value = inner.unwrap_or(&Value::Null);
    }
    if let Some(missing) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("{place}{:?}: missing", named(missing));
    }
    let is_private = PRIVATE.contains(&name) || what.contains("\"auth\"");
    let is_variant = text.starts_with("unknown variant");
    let got = if is_private && !is_variant { type_of(value).to_owned() } else { shown(value, innermost) };
    let least = usize::from(FROM_ONE.contains(&innermost));
    let expected = match text.rsplit_once("expected ").map_or("", |(_, kind)| kind) {
        // Our own words, which say it all.
        _ if !text.starts_with("invalid ") && !is_variant => {
            return match text.strip_suffix(EXPECTED_ONLY) {
                Some(text) => format!("{place}{text}, got {got}"),
                None => format!("{place}{text}"),
            };
        }
        kind if is_variant => kind.replace('`', ""),
        "u16" => format!("a whole number from {least} to 65535"),
        "usize" | "u64" | "u32" | "u8" | "a nonzero u32" if value.is_f64() => {
            format!("a whole number of at least {least}")
        }
        "usize" | "u64" | "u32" | "u8" | "a nonzero u32" => format!("a number of at least {least}"),
        "f64" | "f32" if TIMES.contains(&innermost) => format!("a number of {}", idiom::unit()),
        "f64" | "f32" => "a number".into(),
        "a sequence" => "a list of strings".into(),
        "a map" => "an object".into(),
        "struct TaskOptions" => "true, false or an object".into(),
        kind if kind.starts_with("struct ") => "an object".into(),
        kind => kind.into(),
    };
    format!("{place}expected {expected}, got {got}")
}

/// The end of a text of our own that says what is expected, and leaves the value to [`fault`]. For `serde(expecting)`.
const EXPECTED_ONLY: &str = " (given otherwise)";

/// Reads serde's message about a member that a struct has not.
fn unknown_member(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, known) = text.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

/// A value for a message: not at any length, and a time in the host's unit.
fn shown(value: &Value, option: &str) -> String {
    match value.as_f64().filter(|_| TIMES.contains(&option)) {
        Some(seconds) => idiom::number(seconds).to_string(),
        None => shortened(&value.to_string(), 60).into_owned(),
    }
}

/// The type of a value, for a message that must not show it.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Checks that this is a JSON object.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) with the name of its place.
pub(crate) fn check_object(what: impl fmt::Display, given: &RawJson) -> Result<()> {
    if given.is_object() {
        return Ok(());
    }
    let got = type_of(&given.to().unwrap_or_default());
    Err(Error::misuse(format!("{what}: expected an object, such as {{\"name\": \"value\"}}, got {got}")))
}

/// Checks that each of these is one scope.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) with the name of their place and the scope that is none.
pub(crate) fn check_scopes(what: &str, scopes: &[String]) -> Result<()> {
    let Some(scope) = scopes.iter().find(|scope| scope.split_whitespace().ne([scope.as_str()])) else { return Ok(()) };
    let fix = if scope.trim().is_empty() { "; leave it out" } else { ": split it" };
    let got = shortened(scope, 60);
    Err(Error::misuse(format!("{what}: expected one scope in each string, got {got:?}{fix}")))
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
    Duration::try_from_secs_f64(value).map_err(|_| {
        let (option, unit, value) = (named(name), idiom::unit(), idiom::number(value));
        Error::misuse(format!("option {option:?}: expected {unit} of at least 0, got {value}"))
    })
}

/// A century, which fits every clock: the longest time that a builder takes.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(3_155_760_000);

/// A time as options keep it: seconds, as they come from other languages.
pub(crate) fn kept(time: Duration) -> f64 {
    time.min(FOR_EVER).as_secs_f64()
}

/// Functions that set an option each and give the options back, named as the members: `ClientOptions::new().name("demo")`.
/// They are the public side of options, so they carry the words.
macro_rules! setters {
    ($($(#[$words:meta])+ $name:ident: $($kind:ident)+;)*) => {
        $(
            $(#[$words])+
            #[must_use]
            pub fn $name(mut self, value: crate::options::setters!(@given $($kind)+)) -> Self {
                self.$name = crate::options::setters!(@kept value, $($kind)+);
                self
            }
        )*
    };
    (@given text) => { impl Into<String> };
    (@given some text) => { impl Into<String> };
    (@given time) => { std::time::Duration };
    (@given some $type:ident) => { $type };
    (@given $type:ident) => { $type };
    (@kept $value:ident, text) => { $value.into() };
    (@kept $value:ident, some text) => { Some($value.into()) };
    (@kept $value:ident, time) => { crate::options::kept($value) };
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
        assert_eq!(meant("wether", &["weather", "x", "whether"]), ["weather", "whether"]);
        assert_eq!(meant("Add", &["add_all", "subtract", "add"]), ["add", "add_all"]);
        let words = unknown_of_host("pageSiz", &["name", "page_size"]);
        assert_eq!(words, "unknown option \"pageSiz\", did you mean \"page_size\"?");
        for (given, words) in [
            (r#"{"page_size": -1}"#, "option \"page_size\": expected a number of at least 1, got -1"),
            (r#"{"page_size": "1"}"#, "expected a number of at least 1, got \"1\""),
            (r#"{"page_size": 1.5}"#, "expected a whole number of at least 1, got 1.5"),
        ] {
            assert!(read::<Options>("server", given).expect_err(given).message().ends_with(words), "{given}");
        }
    }

    /// `surface/` tells users the defaults, the engine has them.
    #[cfg(all(feature = "http", feature = "auth"))]
    #[test]
    fn defaults_are_those_of_the_surface() {
        use crate::surface::DEFAULTS;

        let http = format!("{:?}", crate::http::HttpOptions::new());
        let engine = [
            ("client", format!("{:?}", crate::client::ClientOptions::new())),
            ("client_cache", format!("{:?}", crate::client::CacheOptions::new())),
            ("group", format!("{:?}", crate::client::GroupOptions::new())),
            ("listen", http.clone()),
            ("mount", http),
            ("server", format!("{:?}", crate::server::ServerOptions::default())),
            ("task", format!("{:?}", crate::call::TaskOptions::new())),
        ];
        let mut seen = 0;
        for (group, default) in DEFAULTS {
            let Some((_, shown)) = engine.iter().find(|(name, _)| *name == group) else { continue };
            let is_there = [",", " }"].iter().any(|end| shown.contains(&format!(" {default}{end}")));
            assert!(is_there, "surface/options/{group}.toml says {default}; the engine: {shown}");
            seen += 1;
        }
        assert!(seen > 30, "{seen}");
    }
}
