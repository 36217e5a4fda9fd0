//! Says yes to values that are plainly valid, in one pass over their text. It never says no: whatever it does not
//! recognize goes to the library.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A schema made of everyday keywords only.
#[derive(Debug)]
pub(super) enum Quick {
    Any,
    Integer,
    Number,
    Text,
    Boolean,
    Array(Box<Self>),
    Object { members: Vec<(String, Self)>, required: u64, open: bool },
}

impl Quick {
    pub(super) fn new(schema: &Value) -> Option<Self> {
        let Value::Object(keywords) = schema else {
            return (*schema == Value::Bool(true)).then_some(Self::Any);
        };
        let only = |allowed: &[&str]| {
            let notes = ["type", "title", "description", "default", "examples", "$schema", "x-mcp-header"];
            keywords.keys().all(|k| notes.contains(&k.as_str()) || allowed.contains(&k.as_str()))
        };
        match keywords.get("type").and_then(Value::as_str) {
            None if !keywords.contains_key("type") && only(&[]) => Some(Self::Any),
            Some("integer") if only(&["format"]) => Some(Self::Integer),
            Some("number") if only(&["format"]) => Some(Self::Number),
            Some("string") if only(&[]) => Some(Self::Text),
            Some("boolean") if only(&[]) => Some(Self::Boolean),
            Some("array") if only(&["items"]) => {
                let items = keywords.get("items").map_or(Some(Self::Any), Self::new)?;
                Some(Self::Array(Box::new(items)))
            }
            Some("object") if only(&["properties", "required", "additionalProperties"]) => Self::object(keywords),
            _ => None,
        }
    }

    fn object(keywords: &Map<String, Value>) -> Option<Self> {
        let none = Map::new();
        let properties = keywords.get("properties").map_or(Some(&none), Value::as_object)?;
        if properties.len() > 64 {
            return None;
        }
        let members: Vec<(String, Self)> =
            properties.iter().map(|(name, schema)| Some((name.clone(), Self::new(schema)?))).collect::<Option<_>>()?;
        let mut required = 0;
        for name in keywords.get("required").map_or(Some(&Vec::new()), Value::as_array)? {
            required |= 1 << members.iter().position(|(n, _)| Some(n.as_str()) == name.as_str())?;
        }
        let open = match keywords.get("additionalProperties") {
            None | Some(Value::Bool(true)) => true,
            Some(Value::Bool(false)) => false,
            Some(_) => return None,
        };
        Some(Self::Object { members, required, open })
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        let mut reader = serde_json::Deserializer::from_str(text);
        self.deserialize(&mut reader).is_ok() && reader.end().is_ok()
    }
}

impl<'de> DeserializeSeed<'de> for &Quick {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            Quick::Any => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &Quick {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that plainly fits")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.is(matches!(self, Quick::Boolean))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.is(matches!(self, Quick::Integer | Quick::Number))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.is(matches!(self, Quick::Integer | Quick::Number))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.is(matches!(self, Quick::Number))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.is(matches!(self, Quick::Text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Quick::Array(items) = self else {
            return self.is(false);
        };
        while seq.next_element_seed(&**items)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Quick::Object { members, required, open } = self else {
            return self.is(false);
        };
        let mut missing = *required;
        while let Some(place) = map.next_key_seed(Place(members))? {
            match place {
                Some(place) => {
                    missing &= !(1 << place);
                    map.next_value_seed(&members[place].1)?;
                }
                None if *open => drop(map.next_value::<IgnoredAny>()?),
                None => return self.is(false),
            }
        }
        self.is(missing == 0)
    }
}

impl Quick {
    fn is<E: Error>(&self, fits: bool) -> Result<(), E> {
        if fits { Ok(()) } else { Err(E::custom("not plainly valid")) }
    }
}

/// Seed that finds a name among the known members.
struct Place<'a>(&'a [(String, Quick)]);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Place<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|(n, _)| n == name))
    }
}
