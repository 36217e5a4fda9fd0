use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::listed::{Common, Entry, Kind, Listed};
use super::told::check_task;
use super::typed::untexted;
use crate::call::{Context, Failures, Handler, HiddenError, Reply, Shaper};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::mirror::{Mirror, mirrors};
use crate::model::schema::Schema;
use crate::model::{TaskSupport, Tool};
use crate::protocol::revision::shape::{self, Fit};
use crate::protocol::revision::{Revision, Rules, object};
use crate::protocol::{Payload, Structured};
use crate::report;

/// Returns true if a name is of the characters that the specification names (2025-11-25, *Tools*, "Tool Names").
fn is_portable(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && name.bytes().all(is_usual)
}

/// A registered tool.
pub(crate) struct ToolEntry {
    listed: Listed,
    input: Schema,
    output: Option<Schema>,
    /// Fate of the output schema in revisions that want an object.
    fit: Option<Fit>,
    /// True if the handler checks its arguments, and what it answers.
    judged: (bool, bool),
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "a mark that is wrong is refused all the same"))]
    mirrors: Arc<[Mirror]>,
    task_support: TaskSupport,
    /// The longest time of the handler; zero is any.
    timeout: Option<Duration>,
}

impl Entry for ToolEntry {
    fn listed(&self) -> &Listed {
        &self.listed
    }
}

impl ToolEntry {
    pub(super) fn new(mut tool: Tool, handler: Arc<dyn Handler>, common: &Arc<Common>) -> Result<Self> {
        let (scopes, judged, timeout) = (tool.take_scopes(), tool.is_judged(), tool.own_timeout());
        let name = tool.name().to_owned();
        if !is_portable(&name) {
            report::say(format_args!(
                "tool {:?}: some clients refuse this name: use 1 to 128 of A-Z, a-z, 0-9, \"_\", \"-\" and \".\"",
                shortened(&name, 200)
            ));
        }
        let schema =
            |key: &str| tool.members().get(key).map(|s| Schema::new(&format!("tool {name:?}: {key}"), s)).transpose();
        let input =
            schema("inputSchema")?.ok_or_else(|| Error::misuse(format!("tool {name:?}: inputSchema: missing")))?;
        let output = schema("outputSchema")?;
        let fit = tool.members().get("outputSchema").map(Fit::of);
        let mirrors = tool.members().get("inputSchema").map_or_else(|| Ok(Vec::new()), mirrors);
        let mirrors = mirrors.map_err(|why| Error::misuse(format!("tool {name:?}: inputSchema: {why}")))?;
        common.told.has_mirrors(&mirrors);
        let task_support = TaskSupport::of(tool.members())
            .map_err(|error| Error::misuse(format!("tool {name:?}: {}", error.message())))?;
        let listed = Listed::new(Kind::Tool, tool.into_members(), scopes, handler, common)?;
        Ok(Self { listed, input, output, fit, judged, mirrors: mirrors.into(), task_support, timeout })
    }

    /// One of the definition's schemas, for its validator.
    fn source(&self, key: &str) -> &Value {
        self.listed.members.get(key).unwrap_or(&Value::Null)
    }

    /// Checks a call's arguments. Some hosts write numbers, lists and objects as text: where the schema wants no text, what
    /// they stand for is returned.
    ///
    /// # Errors
    /// The text for the model.
    pub(crate) fn check_arguments(&self, arguments: &RawJson) -> Result<Option<RawJson>, String> {
        let source = self.source("inputSchema");
        if self.judged.0 {
            return Ok(untexted(source, arguments, true));
        }
        let check = |arguments: &RawJson| self.input.check_text(|| source, "argument", arguments.get());
        let Err(why) = check(arguments) else { return Ok(None) };
        match untexted(source, arguments, false) {
            Some(read) if check(&read).is_ok() => Ok(Some(read)),
            _ => Err(why),
        }
    }

    /// The arguments that HTTP headers mirror.
    #[cfg(feature = "http")]
    pub(super) fn mirrors(&self) -> Arc<[Mirror]> {
        self.mirrors.clone()
    }

    /// Returns the tool's support for being called as a task.
    pub(super) fn task_support(&self) -> TaskSupport {
        self.task_support
    }

    /// Checks whether it may be called in this way; `has_tasks`: its caller could ask for a task.
    ///
    /// # Errors
    /// −32601 (specification, tasks, "Tool-Level Negotiation").
    pub(super) fn check_task(&self, as_task: bool, has_tasks: impl FnOnce() -> bool) -> Result<()> {
        check_task(&|| self.subject(), self.task_support, as_task, has_tasks)
    }

    /// Checks what a handler answered against the output schema, and makes it the structured content that the tool's
    /// definition announces in this revision.
    pub(crate) fn checked(&self, payload: Payload, revision: Revision) -> Payload {
        let problem = match (&self.output, &payload) {
            (Some(_), Payload::Value { .. }) if self.judged.1 => Ok(()),
            (Some(schema), Payload::Value { value, .. }) => {
                schema.check_text(|| self.source("outputSchema"), "result", value.get())
            }
            (Some(schema), Payload::Object(result)) => {
                check_structured(schema, self.judged.1, || self.source("outputSchema"), result)
            }
            // Nothing returned is nothing to read.
            (None, Payload::Value { value, .. }) if value.get() == "null" => {
                return Payload::Object(RawJson::trusted(r#"{"content":[]}"#));
            }
            _ => Ok(()),
        };
        match problem {
            Ok(()) => self.structured(payload, revision.rules()),
            // The schema is one of successful results: the text of a failure stays, what does not fit goes.
            Err(_) if is_failed(&payload) => match payload {
                Payload::Object(result) => Payload::Object(shape::without(&result, &["structuredContent"])),
                payload => payload,
            },
            Err(text) => {
                let kind = "the result does not fit the outputSchema";
                let subject = self.subject();
                self.failures().report(self.name(), &subject, kind, &*Box::<HiddenError>::from(text));
                Payload::Failed(format!("{subject} failed: {kind}"))
            }
        }
    }

    fn structured(&self, payload: Payload, rules: &Rules) -> Payload {
        // Where any value may be structured content, an output schema stays as it is.
        let fit = if rules.any_structured { self.fit.map(|_| Fit::Object) } else { self.fit };
        match payload {
            Payload::Value { value, .. } => {
                let structured = match fit {
                    Some(Fit::Object) => Structured::Plain,
                    Some(Fit::Wrapped) => Structured::Wrapped,
                    // No schema is announced: objects are worth reading by a program, anything else is text.
                    Some(Fit::Dropped) | None if value.is_object() => Structured::Plain,
                    Some(Fit::Dropped) | None => Structured::No,
                };
                Payload::Value { value, structured }
            }
            Payload::Object(result) if fit == Some(Fit::Wrapped) => Payload::Object(shape::wrap_structured(&result)),
            payload => payload,
        }
    }
}

impl Shaper for ToolEntry {
    fn shape(&self, payload: Payload, revision: Revision) -> Result<Payload> {
        Ok(self.checked(payload, revision))
    }

    fn subject(&self) -> String {
        self.listed.subject()
    }

    fn name(&self) -> &str {
        self.listed.name()
    }

    fn failures(&self) -> &Failures {
        &self.listed.common.failures
    }

    fn timeout(&self) -> Duration {
        self.timeout.unwrap_or_else(|| self.listed.common.tool_timeout())
    }
}

/// Returns true if a whole result says that its tool failed.
fn is_failed(payload: &Payload) -> bool {
    let Payload::Object(result) = payload else { return false };
    object::members(result.get()).iter().any(|(key, value)| key == "isError" && value.get() == "true")
}

/// Checks that a whole result has structured content, and that it fits; `judged`: of successful results the host does that.
fn check_structured<'a>(
    schema: &Schema,
    judged: bool,
    source: impl FnOnce() -> &'a Value,
    result: &RawJson,
) -> Result<(), String> {
    let members = object::members(result.get());
    let is = |key: &str, value: &str| members.iter().any(|(k, v)| k == key && v.get() == value);
    match members.iter().find(|(k, _)| k == "structuredContent") {
        Some(_) if judged && !is("isError", "true") => Ok(()),
        Some((_, raw)) => schema.check_text(source, "result", raw.get()),
        None if is("isError", "true") || members.iter().any(|(k, _)| k == "resultType") => Ok(()),
        None => Err("structuredContent is missing".into()),
    }
}

/// Says what is wrong with the arguments.
pub(super) struct Fails(pub(super) String);

impl Handler for Fails {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.failed(self.0.clone());
    }
}

/// Makes a `CallToolResult` of what the handler of tools that are not registered answered.
pub(super) struct Unlisted {
    pub(super) common: Arc<Common>,
}

impl Shaper for Unlisted {
    fn shape(&self, payload: Payload, _: Revision) -> Result<Payload> {
        Ok(match payload {
            Payload::Value { value, .. } if !value.is_object() => Payload::Value { value, structured: Structured::No },
            payload => payload,
        })
    }

    fn subject(&self) -> String {
        "the tool".into()
    }

    fn name(&self) -> &str {
        "tool"
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }

    fn timeout(&self) -> Duration {
        self.common.tool_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_every_client_takes() {
        let (long, longer) = ("a".repeat(128), "a".repeat(129));
        for name in ["add", "DATA_EXPORT_v2", "admin.tools.list", "a-b", long.as_str()] {
            assert!(is_portable(name), "{name}");
        }
        for name in ["", " a ", "a b", "a\nb", "a\0", "größe", "a/b", longer.as_str()] {
            assert!(!is_portable(name), "{name:?}");
        }
    }

    struct Idle;
    impl Handler for Idle {
        fn call(&self, _cx: Context, _params: RawJson, _reply: Reply) {}
    }

    /// Returns the announcement of a tool with this output schema, and its structured content for a value and a whole
    /// result.
    fn shaped(revision: &str, schema: Option<Value>, value: &Value) -> [Value; 3] {
        let revision = Revision::parse(revision).expect("known");
        let mut tool = Tool::new("t", "");
        if let Some(schema) = schema {
            tool = tool.output_schema(schema);
        }
        let entry = ToolEntry::new(tool, Arc::new(Idle), &Arc::default()).expect("a tool");
        let listed: Value = entry.listed().text(revision).to().expect("json");
        let method = crate::protocol::revision::Method::find("tools/call").expect("known");
        let write = |payload: Payload| {
            let mut out = String::new();
            let payload = entry.checked(payload, revision);
            shape::write_result(&mut out, revision.rules(), "{}", method, payload);
            let result: Value = serde_json::from_str(&out).expect("json");
            result.get("structuredContent").cloned().unwrap_or_else(|| json!("absent"))
        };
        let plain = write(Payload::Value { value: RawJson::from_value(value), structured: Structured::Plain });
        let whole = write(Payload::Object(RawJson::from_value(&json!({"content": [], "structuredContent": value}))));
        [listed["outputSchema"].clone(), plain, whole]
    }

    #[test]
    fn schema_and_value_are_wrapped_together_or_not_at_all() {
        let optional = json!({"$defs": {"P": {"type": "object"}}, "anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]});
        let any = json!({"type": ["object", "null"]});
        let tree = json!({"anyOf": [{"type": "object", "additionalProperties": {"$ref": "#"}}, {"type": ["integer", "null"]}]});
        for schema in [optional, tree, any] {
            for value in [json!({"x": 3}), json!({"result": {"y": 1}})] {
                for revision in ["2025-06-18", "2025-11-25"] {
                    let [listed, plain, whole] = shaped(revision, Some(schema.clone()), &value);
                    assert_eq!((&listed["type"], &listed["required"]), (&json!("object"), &json!(["result"])));
                    assert_eq!((plain, whole), (json!({"result": value}), json!({"result": value})), "{schema}");
                }
                let [listed, plain, whole] = shaped("2026-07-28", Some(schema.clone()), &value);
                assert_eq!((&listed, &plain, &whole), (&schema, &value, &value));
            }
        }
        let object = json!({"type": "object"});
        let value = json!({"x": 3});
        assert_eq!(shaped("2025-06-18", Some(object.clone()), &value), [object, value.clone(), value]);
    }

    #[test]
    fn what_the_handler_judges_is_listed_and_not_checked() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let revision = Revision::parse("2025-11-25").expect("known");
        let answer =
            |value: Value| Payload::Value { value: RawJson::from_value(&value), structured: Structured::Plain };
        for judged in [false, true] {
            let tool = Tool::new("t", "").input_schema(schema.clone()).output_schema(schema.clone());
            let entry = ToolEntry::new(tool.judged(judged, judged), Arc::new(Idle), &Arc::default()).expect("a tool");
            let listed: Value = entry.listed().text(revision).to().expect("json");
            assert_eq!((&listed["inputSchema"], &listed["outputSchema"]), (&schema, &schema));
            assert_eq!(entry.check_arguments(&RawJson::trusted(r#"{"n":"x"}"#)).is_ok(), judged);
            let read = entry.check_arguments(&RawJson::trusted(r#"{"n":"1"}"#)).expect("a number as text");
            assert_eq!(read.as_ref().map(RawJson::get), (!judged).then_some(r#"{"n":1}"#));
            let list = RawJson::trusted(r#"{"n":"[1]"}"#);
            let read = entry.check_arguments(&list).map(|read| read.unwrap_or_else(|| list.clone()).get().to_owned());
            let refused = r#"argument "n": expected integer, got "[1]""#;
            assert_eq!(read, if judged { Ok(list.get().to_owned()) } else { Err(refused.to_owned()) });
            let wrong = entry.checked(answer(json!({"n": "x"})), revision);
            assert_eq!(!matches!(wrong, Payload::Failed(_)), judged);
            // That there is something is the protocol's rule.
            let nothing = Payload::Object(RawJson::trusted(r#"{"content":[]}"#));
            assert!(matches!(entry.checked(nothing, revision), Payload::Failed(_)));
        }
    }

    #[test]
    fn a_failure_keeps_its_text_and_loses_content_that_does_not_fit() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let revision = Revision::parse("2025-11-25").expect("known");
        for judged in [false, true] {
            let tool = Tool::new("t", "").output_schema(schema.clone()).judged(judged, judged);
            let entry = ToolEntry::new(tool, Arc::new(Idle), &Arc::default()).expect("a tool");
            let failed = |content: Value| {
                let text = json!([{"type": "text", "text": "no room"}]);
                let result = json!({"content": text, "structuredContent": content, "isError": true});
                match entry.checked(Payload::Object(RawJson::from_value(&result)), revision) {
                    Payload::Object(result) => result.to::<Value>().expect("JSON"),
                    other => panic!("{other:?}"),
                }
            };
            let misfit = failed(json!({"why": "full"}));
            assert_eq!((&misfit["content"][0]["text"], &misfit["isError"]), (&json!("no room"), &json!(true)));
            assert_eq!(misfit.get("structuredContent"), None);
            assert_eq!(failed(json!({"n": 1}))["structuredContent"], json!({"n": 1}));
        }
    }

    #[test]
    fn a_list_that_refers_to_its_own_top_is_wrapped_and_the_reference_follows() {
        let schema = json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}});
        let value = json!([1, [2, []]]);
        let [listed, plain, _] = shaped("2025-06-18", Some(schema.clone()), &value);
        assert_eq!(listed["properties"]["result"]["items"]["anyOf"][1]["$ref"], "#/properties/result");
        assert_eq!(plain, json!({"result": value}));
        assert_eq!(shaped("2026-07-28", Some(schema), &value)[1], value);
    }

    #[test]
    fn a_top_that_is_only_a_reference_to_an_object_is_one() {
        let node =
            json!({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}});
        let schema = json!({"$defs": {"Node": node}, "$ref": "#/$defs/Node"});
        let value = json!({"next": {"next": null}});
        let [listed, plain, _] = shaped("2025-11-25", Some(schema.clone()), &value);
        assert_eq!((&listed["type"], &listed["properties"]), (&json!("object"), &node["properties"]));
        assert_eq!((&listed["$defs"]["Node"], plain), (&node, value.clone()));
        assert_eq!(shaped("2026-07-28", Some(schema.clone()), &value)[0], schema);
    }

    #[test]
    fn the_arguments_always_have_properties() {
        for schema in [json!({"type": "object"}), json!({"type": "object", "additionalProperties": {"type": "string"}})]
        {
            let entry = ToolEntry::new(Tool::new("t", "").input_schema(schema), Arc::new(Idle), &Arc::default());
            let listed: Value =
                entry.expect("a tool").listed().text(Revision::parse("2025-11-25").expect("known")).to().expect("JSON");
            assert_eq!(listed["inputSchema"]["properties"], json!({}));
        }
    }

    #[test]
    fn without_a_schema_only_objects_are_structured() {
        let itself = json!({"$id": "https://example.com/s", "anyOf": [{"type": "integer"}, {"type": "object"}]});
        for schema in [None, Some(itself)] {
            let [listed, plain, _] = shaped("2025-11-25", schema.clone(), &json!({"x": 3}));
            assert_eq!((listed, plain), (Value::Null, json!({"x": 3})));
            assert_eq!(shaped("2025-11-25", schema, &json!(5))[1], "absent");
        }
        assert_eq!(shaped("2026-07-28", None, &json!(5))[1], "absent");
    }
}
