use super::*;
use crate::model::Tool;
use crate::protocol::revision::Revision;

fn call(revision: &str, payload: Payload) -> Value {
    let rules = Revision::parse(revision).expect("known").rules();
    let method = Method::find("tools/call").expect("known");
    let mut out = String::new();
    write_result(&mut out, rules, "{\"name\":\"s\",\"version\":\"1\"}", method, payload);
    serde_json::from_str(&out).expect("json")
}

#[test]
fn a_plain_value_is_wrapped_where_only_objects_may_be_structured() {
    let five = || Payload::Value { value: RawJson::trusted("5"), structured: Structured::Plain };
    let text = json!([{"type": "text", "text": "5"}]);
    assert_eq!(call("2025-03-26", five()), json!({"content": text}));
    assert_eq!(call("2025-11-25", five()), json!({"content": text, "structuredContent": {"result": 5}}));
    assert_eq!(
        call("2026-07-28", five()),
        json!({"content": text, "structuredContent": 5, "resultType": "complete",
               "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}})
    );
}

#[test]
fn a_whole_result_keeps_its_members_and_meta() {
    let object = || Payload::Object(RawJson::trusted(r#"{"content":[],"_meta":{"a":1},"x":1.0}"#));
    assert_eq!(call("2025-06-18", object()), json!({"content": [], "_meta": {"a": 1}, "x": 1.0}));
    assert_eq!(
        call("2026-07-28", object()),
        json!({"content": [], "x": 1.0, "resultType": "complete",
               "_meta": {"a": 1, "io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}})
    );
}

#[test]
fn blocks_that_a_revision_lacks_take_a_form_that_it_has() {
    let object = Payload::Object(RawJson::trusted(
        r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a://b","name":"n"}]}"#,
    ));
    let shaped = call("2024-11-05", object);
    assert_eq!(shaped["content"][0]["resource"]["blob"], "AA==");
    assert_eq!(shaped["content"][1], json!({"type": "text", "text": "n: a://b"}));
}

#[test]
fn an_output_schema_is_wrapped_with_its_definitions() {
    let schema = json!({"$defs": {"P": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/P"}});
    let definition = Tool::new("t", "").output_schema(schema).title("T").icons(json!([]));
    let shaped: Value =
        super::definition(Revision::parse("2025-06-18").expect("known").rules(), Kind::Tool, definition.members())
            .to()
            .expect("json");
    assert_eq!(
        shaped["outputSchema"],
        json!({"type": "object", "$defs": {"P": {"type": "integer"}}, "required": ["result"],
               "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/P"}}}})
    );
    assert_eq!(shaped.get("icons"), None);
    let oldest: Value =
        super::definition(Revision::parse("2024-11-05").expect("known").rules(), Kind::Tool, definition.members())
            .to()
            .expect("json");
    assert_eq!((oldest.get("title"), oldest.get("outputSchema")), (None, None));
}

#[test]
fn a_schema_that_refers_to_its_top_is_not_wrapped() {
    for schema in [
        json!({"$ref": "#/$defs/N", "$defs": {"N": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}),
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {"items": {"$recursiveRef": "#"}}}}),
        json!({"$id": "urn:x", "type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {}}}),
    ] {
        assert_eq!(Fit::of(&schema), Fit::Dropped, "{schema}");
    }
    assert_eq!(Fit::of(&json!({"type": "object", "items": {"$ref": "#"}})), Fit::Object);
    assert_eq!(Fit::of(&json!({"type": ["object", "null"]})), Fit::Wrapped);
}

#[test]
fn a_modern_result_that_is_passed_on_fits_a_legacy_client() {
    let object = RawJson::trusted(
        r#"{"content":[],"resultType":"complete","ttlMs":5,"_meta":{"io.modelcontextprotocol/serverInfo":{},"a":1}}"#,
    );
    let passed = call("2025-11-25", Payload::Object(object.clone()));
    assert_eq!(passed, json!({"content": [], "_meta": {"a": 1}}));
    assert_eq!(call("2026-07-28", Payload::Object(object))["ttlMs"], 5);
}

#[test]
fn the_server_names_itself_unless_the_result_does() {
    let meta = |text: &'static str| call("2026-07-28", Payload::Object(RawJson::trusted(text)))["_meta"].clone();
    let key = crate::model::meta::SERVER_INFO;
    assert_eq!(meta(r#"{"content":[],"_meta":{"a":"io.modelcontextprotocol/serverInfo"}}"#)[key]["name"], "s");
    let own = meta(r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}"#);
    assert_eq!(own, json!({key: {"name": "own"}}));
}

#[test]
fn members_of_annotations_and_links_are_those_of_the_revision() {
    let annotations = json!({"priority": 1, "lastModified": "2025-01-12T15:00:58Z"});
    let older = json!({"priority": 1});
    let link = json!({"type": "resource_link", "uri": "a://b", "name": "n", "icons": [], "annotations": annotations});
    let block = json!({"type": "text", "text": "t", "annotations": annotations});
    let result = RawJson::from_value(&json!({"content": [block, link]}));
    let members: Map<String, Value> =
        serde_json::from_value(json!({"uri": "a://b", "name": "n", "annotations": annotations})).expect("an object");
    for (revision, known, icons) in [
        ("2024-11-05", &older, false),
        ("2025-03-26", &older, false),
        ("2025-06-18", &annotations, false),
        ("2025-11-25", &annotations, true),
    ] {
        let content = call(revision, Payload::Object(result.clone()))["content"].clone();
        assert_eq!(&content[0]["annotations"], known, "{revision}");
        assert_eq!(content[1].get("icons").is_some(), icons, "{revision}");
        let rules = Revision::parse(revision).expect("known").rules();
        let listed: Value = definition(rules, Kind::Resource, &members).to().expect("json");
        assert_eq!(&listed["annotations"], known, "{revision}");
    }
}
