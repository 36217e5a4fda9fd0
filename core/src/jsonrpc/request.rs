//! A request and the members of its parameters, read in one pass.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::Id;

/// Members of a text that is a request.
#[derive(Debug)]
pub(crate) struct Request<'a, P> {
    pub(crate) id: Id,
    pub(crate) method: &'a str,
    /// Range of its parameters in the text.
    pub(crate) params: Range<usize>,
    /// Their members.
    pub(crate) members: P,
}

/// Reads a request that has parameters. `None` for anything else, for a text that is not plainly well-formed, and for
/// names with escapes: [`decode`](super::decode) tells more.
pub(crate) fn request<'a, P: Deserialize<'a>>(text: &'a str) -> Option<Request<'a, P>> {
    let Members { version, id, method, params, rest } = serde_json::from_str::<Members<'a, P>>(text).ok()?;
    let (name, members) = params?;
    // The parameters begin after their name, and end before the next one or before the end.
    let start = place(text, name)? + name.len() + 1;
    let value = text.get(start..)?.trim_start_matches(SPACE).strip_prefix(':')?.trim_start_matches(SPACE);
    let before = match rest {
        Some(next) => text.get(..place(text, next)?.checked_sub(1)?)?.trim_end_matches(SPACE).strip_suffix(',')?,
        None => text.trim_end_matches(SPACE).strip_suffix('}')?,
    };
    let params = text.len() - value.len()..before.trim_end_matches(SPACE).len();
    let is_object = text.get(params.clone()).is_some_and(|params| params.starts_with('{') && params.ends_with('}'));
    (is_object && version? == "2.0").then_some(Request { id: id?, method: method?, params, members })
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Returns the place in a text where a part of it begins.
pub(crate) fn place(text: &str, part: &str) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize).filter(|start| *start <= text.len())
}

struct Members<'a, P> {
    version: Option<&'a str>,
    id: Option<Id>,
    method: Option<&'a str>,
    /// With their name, as it stands in the text.
    params: Option<(&'a str, P)>,
    /// The name of the member that comes after them.
    rest: Option<&'a str>,
}

impl<'de: 'a, 'a, P: Deserialize<'de>> Deserialize<'de> for Members<'a, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

struct Reader<'a, P>(PhantomData<fn() -> (&'a str, P)>);

impl<'de: 'a, 'a, P: Deserialize<'de>> Visitor<'de> for Reader<'a, P> {
    type Value = Members<'a, P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Members { version: None, id: None, method: None, params: None, rest: None };
        while let Some(name) = map.next_key::<&'de str>()? {
            if found.params.is_some() && found.rest.is_none() {
                found.rest = Some(name);
            }
            let twice = match name {
                "jsonrpc" => found.version.replace(map.next_value()?).is_some(),
                "id" => found.id.replace(map.next_value()?).is_some(),
                "method" => found.method.replace(map.next_value()?).is_some(),
                "params" => found.params.replace((name, map.next_value()?)).is_some(),
                _ => true,
            };
            if twice {
                return Err(A::Error::custom("no plain request"));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::value::RawValue;

    use super::super::{Decoded, Limits, Message, decode};
    use super::*;

    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
    }

    #[test]
    fn what_is_read_is_what_is_decoded() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"n"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#,
            "\t{ \"params\" : { \"name\" :\"n\" , \"x\":[{}] } , \"id\":\"\\u00e9\",\r\n\"jsonrpc\":\"2.0\",\"method\":\"m\" } ",
            r#"{"id":-5,"params":{"a":{"params":{"name":1}},"name":"}"},"method":"é","jsonrpc":"2.0"}"#,
        ] {
            let read = request::<Named<'_>>(text).expect(text);
            let spaced = text.replace(['\r', '\n'], " ");
            let decoded = decode(&Bytes::from(spaced.clone()), &Limits::default());
            let Ok(Decoded::One(Message::Request { id, method, params })) = decoded else { panic!("{text}") };
            assert_eq!((read.id, read.method), (id, &*method), "{text}");
            assert_eq!(params.as_ref().map(super::super::RawJson::get), spaced.get(read.params), "{text}");
            let name: Named<'_> = params.as_ref().expect("parameters").borrow().expect("an object");
            assert_eq!(read.members.name.map(RawValue::get), name.name.map(RawValue::get), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_request_is_left_to_others() {
        for text in [
            "",
            "7",
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":["n"]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"x":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":1,"name":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"\u006d","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","p\u0061rams":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"m","params":{}}"#,
        ] {
            assert!(request::<Named<'_>>(text).is_none(), "{text}");
        }
    }
}
