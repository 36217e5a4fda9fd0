//! Members of a JSON object as text.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order; empty when `text` is no object.
pub(crate) fn members(text: &str) -> Vec<(Cow<'_, str>, &RawValue)> {
    struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);
    impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> Visitor<'de> for Reader {
                type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut out = Vec::with_capacity(4);
                    while let Some(Key(key)) = map.next_key()? {
                        out.push((key, map.next_value()?));
                    }
                    Ok(out)
                }
            }
            deserializer.deserialize_map(Reader).map(Members)
        }
    }
    struct Key<'a>(Cow<'a, str>);
    impl<'de> Deserialize<'de> for Key<'de> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> Visitor<'de> for Reader {
                type Value = Cow<'de, str>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a member name")
                }
                fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                    Ok(Cow::Borrowed(s))
                }
                fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                    Ok(Cow::Owned(s.to_owned()))
                }
            }
            deserializer.deserialize_str(Reader).map(Key)
        }
    }
    serde_json::from_str::<Members<'_>>(text).map_or_else(|_| Vec::new(), |m| m.0)
}

/// Appends `,"key":value`, without the comma at the start of an object.
pub(crate) fn push_member(out: &mut String, key: &str, value: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    push_string(out, key);
    out.push(':');
    out.push_str(value);
}

pub(crate) fn push_string(out: &mut String, text: &str) {
    struct Text<'a>(&'a mut String);
    impl std::io::Write for Text<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // serde_json hands over whole characters.
            self.0.push_str(std::str::from_utf8(bytes).map_err(std::io::Error::other)?);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // Most texts, and all keys of ours, go as they are; looking at all of it first is quick.
    if text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
        out.reserve(text.len() + 2);
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    let _ = serde_json::to_writer(Text(out), text);
}

pub(crate) fn has(text: &str, key: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), key.as_bytes()).is_some()
}

/// Texts that are looked for in most messages: to prepare for one takes longer than most searches.
pub(crate) struct Sought(pub(super) LazyLock<Finder<'static>>);

impl Sought {
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.find(text.as_bytes()).is_some()
    }

    /// Returns the text after the only place where it is.
    pub(super) fn after_only<'a>(&self, text: &'a str) -> Option<&'a str> {
        let after = self.0.find(text.as_bytes())? + self.0.needle().len();
        text.get(after..).filter(|rest| !self.is_in(rest))
    }
}

pub(crate) static META: Sought = Sought(LazyLock::new(|| Finder::new("\"_meta\"")));

/// Any character of any text may be written that way.
pub(crate) static ESCAPE: Sought = Sought(LazyLock::new(|| Finder::new("\\u")));
