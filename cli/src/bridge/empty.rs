//! Lists without entries, for clients that ask for what was not declared.

use serde_json::{Value, json};
use tricorn::jsonrpc::RawJson;

use super::behind::Facts;

/// Lists, and the capabilities that they belong to.
const LISTS: [(&str, &str); 3] =
    [("resources/list", "resources"), ("resources/templates/list", "resources"), ("prompts/list", "prompts")];
/// Member of `_meta` by which a list is asked for in the place of another one.
const INSTEAD: &str = "tricorn/empty";

/// The list without entries that answers this method, if it lists something.
pub(super) fn list(method: &str) -> Option<RawJson> {
    let member = match method {
        "resources/templates/list" => "resourceTemplates",
        _ => method.strip_suffix("/list")?,
    };
    Some(RawJson::from_value(&json!({ member: [] })))
}

/// The list that [`Lists::changed`] has put another request in the place of, by the `_meta` of that.
pub(super) fn asked(meta: Option<&RawJson>) -> Option<RawJson> {
    let meta: Value = meta.filter(|meta| meta.get().contains(INSTEAD))?.to().ok()?;
    let mut result: Value = list(meta[INSTEAD].as_str()?)?.to().ok()?;
    // The request in its place lists tools.
    result["tools"] = json!([]);
    Some(RawJson::from_value(&result))
}

/// The lists that a server does not declare.
#[derive(Default)]
pub(crate) struct Lists(Vec<&'static str>);

impl Lists {
    pub(super) fn missing(facts: &Facts) -> Self {
        Self(LISTS.into_iter().filter(|(_, capability)| !(facts.has)(capability)).map(|(method, _)| method).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A line of the client. In the place of a request for one of the lists, which the server would refuse, stands one that
    /// it answers with an empty list.
    pub(crate) fn changed(&self, line: Vec<u8>) -> Vec<u8> {
        // Nearly all lines are of something else.
        if !line.windows(5).any(|part| part == b"/list") {
            return line;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(&line) else { return line };
        let Some(method) = message["method"].as_str().filter(|method| self.0.contains(method)) else { return line };
        let meta = json!({ INSTEAD: method });
        message["method"] = "tools/list".into();
        message["params"] = json!({ "_meta": meta });
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_not_declared_is_empty() {
        let lists = Lists(vec!["prompts/list"]);
        let changed = lists.changed(br#"{"jsonrpc":"2.0","id":4,"method":"prompts/list"}"#.to_vec());
        let changed: Value = serde_json::from_slice(&changed).expect("JSON");
        assert_eq!((&changed["id"], &changed["method"]), (&json!(4), &json!("tools/list")));
        let list = asked(Some(&RawJson::from_value(&changed["params"]["_meta"]))).expect("a list");
        assert_eq!(list.to::<Value>().expect("JSON"), json!({"prompts": [], "tools": []}));
        for other in [&b"{\"method\": \"tools/list\"}"[..], b"no JSON /list", b"[]"] {
            assert_eq!(lists.changed(other.to_vec()), other);
        }
    }
}
