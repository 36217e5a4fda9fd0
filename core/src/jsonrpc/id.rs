use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A request id: an integer or a string, echoed with its own JSON type (digest: "id string/integer, never null").
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer within the range of `i64`.
    Number(i64),
    /// A string; one of a peer has at most 4,096 bytes.
    String(Arc<str>),
}

/// The longest string that is read as an id: it is repeated in everything that is said of its request.
pub(crate) const MAX_ID_BYTES: usize = 4096;

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::String(s) => write!(f, "{s:?}"),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::String(s) => f.write_str(s),
        }
    }
}

impl Id {
    /// Reads JSON text.
    pub(crate) fn read(json: &str) -> Option<Self> {
        // The ids of a client that counts.
        if matches!(json.as_bytes(), [b'1'..=b'9', rest @ ..] if rest.len() < 18 && rest.iter().all(u8::is_ascii_digit))
        {
            return json.parse().ok().map(Self::Number);
        }
        serde_json::from_str(json).ok()
    }
}

impl Id {
    /// Reads an integer that is written as a real number: `1.0`.
    pub(crate) fn real(json: &str) -> Option<Self> {
        const LARGEST: f64 = 9_007_199_254_740_991.0;
        let number: f64 = serde_json::from_str(json).ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(Self::Number(number as i64))
    }

    /// As whoever counts its requests has written it: many a peer sends a number back as text.
    pub(crate) fn counted(self) -> Self {
        match &self {
            Self::String(text) => match text.parse::<i64>() {
                Ok(number) if itoa::Buffer::new().format(number) == &**text => Self::Number(number),
                _ => self,
            },
            Self::Number(_) => self,
        }
    }
}

impl From<i64> for Id {
    fn from(n: i64) -> Self {
        Self::Number(n)
    }
}

impl From<&str> for Id {
    fn from(s: &str) -> Self {
        Self::String(s.into())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => serializer.serialize_i64(*n),
            Self::String(s) => serializer.serialize_str(s),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer")
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Id, E> {
                Ok(Id::Number(n))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Id, E> {
                i64::try_from(n).map(Id::Number).map_err(|_| E::custom("integer id out of range"))
            }
            fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Id, E> {
                if s.len() > MAX_ID_BYTES {
                    return Err(E::custom("a string that is too long"));
                }
                Ok(Id::String(s.into()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
