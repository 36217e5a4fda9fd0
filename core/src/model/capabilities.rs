use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::value::RawValue;

use crate::jsonrpc::RawJson;

/// A declared set of capabilities: the object as it came, so that unknown ones survive.
#[derive(Debug, Clone)]
pub struct Capabilities {
    object: RawJson,
    /// The names at its top, read when first asked for.
    names: OnceLock<Box<[Box<str>]>>,
}

impl PartialEq for Capabilities {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl Eq for Capabilities {}

impl Default for Capabilities {
    fn default() -> Self {
        Self::new(RawJson::empty_object())
    }
}

impl Capabilities {
    /// Takes the capabilities object.
    #[must_use]
    pub fn new(object: RawJson) -> Self {
        Self { object, names: OnceLock::new() }
    }

    /// The object's text.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.object
    }

    /// As [`has`](Self::has), quick for names at the top.
    pub(crate) fn declares(&self, name: &str) -> bool {
        if name.contains('.') {
            return self.has(name);
        }
        let names = self.names.get_or_init(|| {
            let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(self.object.get()).unwrap_or_default();
            members.into_keys().filter(|name| self.has(name)).map(Into::into).collect()
        });
        names.iter().any(|n| **n == *name)
    }

    /// Returns true if the extension of this id is declared: a member of `extensions` that is an object, its settings.
    #[must_use]
    pub fn has_extension(&self, id: &str) -> bool {
        self.extension(id).is_some()
    }

    /// The settings with which the extension of this id is declared.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<&RawValue> {
        #[derive(serde::Deserialize)]
        struct Top<'a> {
            #[serde(borrow, default)]
            extensions: BTreeMap<std::borrow::Cow<'a, str>, &'a RawValue>,
        }
        memchr::memmem::find(self.object.bytes(), b"\"extensions\"")?;
        let mut top: Top<'_> = serde_json::from_str(self.object.get()).ok()?;
        top.extensions.remove(id).filter(|settings| settings.get().starts_with('{'))
    }

    /// Returns true if the dotted path (`sampling`, `elicitation.url`, `resources.subscribe`) is declared: present and
    /// not `false` or `null`. `elicitation: {}` stands for `elicitation.form`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let mut at = self.object.get();
        for (depth, key) in path.split('.').enumerate() {
            let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(at) else {
                return false;
            };
            match members.get(key) {
                Some(value) => at = value.get(),
                None if depth == 1 && path == "elicitation.form" => return members.is_empty(),
                None => return false,
            }
        }
        !matches!(at, "false" | "null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_declared_when_it_is_there_and_not_false() {
        let c = |s: &str| Capabilities::new(RawJson::parse(s.to_owned()).expect("json"));
        assert!(c(r#"{"sampling":{}}"#).has("sampling"));
        assert!(!c(r#"{"sampling":{}}"#).has("sampling.tools"));
        assert!(c(r#"{"resources":{"subscribe":true}}"#).has("resources.subscribe"));
        assert!(!c(r#"{"resources":{"subscribe":false}}"#).has("resources.subscribe"));
        assert!(c(r#"{"elicitation":{}}"#).has("elicitation.form"));
        assert!(!c(r#"{"elicitation":{"url":{}}}"#).has("elicitation.form"));
        assert!(!c("{}").has("roots"));
    }

    #[test]
    fn extensions_are_known_by_their_whole_id() {
        let c = Capabilities::new(
            RawJson::parse(r#"{"extensions":{"com.example/a":{"x":[1]},"com.example/b":false},"com.example/c":{}}"#)
                .expect("JSON"),
        );
        assert_eq!(c.extension("com.example/a").map(RawValue::get), Some(r#"{"x":[1]}"#));
        assert!(!c.has_extension("com.example/b") && !c.has_extension("com.example/c") && !c.has_extension("com"));
        assert!(!Capabilities::default().has_extension("com.example/a"));
        for settings in ["5", "[]", "\"x\"", "true", "null"] {
            let c =
                Capabilities::new(RawJson::parse(format!(r#"{{"extensions":{{"a/b":{settings}}}}}"#)).expect("JSON"));
            assert!(!c.has_extension("a/b"), "{settings}");
        }
    }
}
