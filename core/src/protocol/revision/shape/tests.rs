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
fn properties_may_be_called_as_keywords_are() {
    let schema = |to: &str| {
        json!({"type": "array", "default": [{"$ref": "#"}], "items": {"properties": {
            "default": {"$ref": to}, "enum": {"$ref": to}, "$ref": {"$ref": to}, "properties": {"properties": {"const": {"$ref": to}}},
        }}})
    };
    let wrapped = wrapped_schema(&schema("#")).expect("a schema");
    assert_eq!(wrapped["properties"]["result"], schema("#/properties/result"));
}

#[test]
fn a_schema_with_a_base_of_its_own_is_not_wrapped() {
    for schema in [
        json!({"type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {"items": {"$recursiveRef": "#"}}}}),
        json!({"$id": "urn:x", "type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": {}}}),
    ] {
        assert_eq!(Fit::of(&schema), Fit::Dropped, "{schema}");
    }
    assert_eq!(Fit::of(&json!({"type": "object", "items": {"$ref": "#"}})), Fit::Object);
    assert_eq!(Fit::of(&json!({"type": "array", "items": {"$ref": "#"}})), Fit::Wrapped);
    assert_eq!(Fit::of(&json!({"$ref": "#/$defs/P", "$defs": {"P": {"type": "object"}}})), Fit::Object);
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

#[test]
fn the_meta_of_contents_and_blocks_goes_out_where_the_revision_has_it() {
    let shaped = |revision: &str, method: &str, result: &Value| -> Value {
        let (rules, method) = (Revision::parse(revision).expect("known").rules(), Method::find(method).expect("known"));
        let mut out = String::new();
        write_result(&mut out, rules, "{}", method, Payload::Object(RawJson::from_value(result)));
        serde_json::from_str(&out).expect("json")
    };
    for (revision, known) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)]
    {
        let with = |meta: bool, mut of: Value| {
            if meta {
                of["_meta"] = json!({"b": 1});
            }
            of
        };
        let blocks = |meta: bool| {
            let resource = with(meta, json!({"uri": "a://b", "text": "t"}));
            json!([
                with(meta, json!({"type": "text", "text": "\"_meta\""})),
                with(meta, json!({"type": "resource", "resource": resource})),
            ])
        };
        let called = |meta: bool| json!({"content": blocks(meta), "_meta": {"r": 1}});
        assert_eq!(shaped(revision, "tools/call", &called(true)), called(known), "{revision}");
        let got = |meta: bool| {
            let messages = blocks(meta).as_array().cloned().unwrap_or_default();
            let messages = messages.into_iter().map(|block| json!({"role": "user", "content": block}));
            json!({"messages": messages.collect::<Vec<_>>(), "_meta": {"r": 1}})
        };
        assert_eq!(shaped(revision, "prompts/get", &got(true)), got(known), "{revision}");
        let read = |meta: bool| {
            let contents = [json!({"uri": "a://b", "text": "t"}), json!({"uri": "a://c", "blob": "AA=="})];
            json!({"contents": contents.map(|one| with(meta, one)), "_meta": {"r": 1}})
        };
        assert_eq!(shaped(revision, "resources/read", &read(true)), read(known), "{revision}");
    }
}

/// A result of `resources/read`, as it goes out.
fn read(revision: &str, object: &'static str) -> Value {
    let rules = Revision::parse(revision).expect("known").rules();
    let method = Method::find("resources/read").expect("known");
    let mut out = String::new();
    write_result(&mut out, rules, "{\"name\":\"s\"}", method, Payload::Object(RawJson::trusted(object)));
    serde_json::from_str(&out).expect("json")
}

#[test]
fn how_long_a_result_keeps_is_said_once_and_only_to_those_who_know_it() {
    for (object, expected) in [
        (r#"{"contents":[]}"#, (json!(0), json!("private"))),
        (r#"{"contents":[],"ttlMs":5000,"cacheScope":"public"}"#, (json!(5000), json!("public"))),
        (r#"{"ttlMs":5000,"contents":[]}"#, (json!(5000), json!("private"))),
        (r#"{"cacheScope":"public","contents":[],"_meta":{}}"#, (json!(0), json!("public"))),
        (r#"{"contents":[],"ttlMs":1.5e3,"cacheScope":"private"}"#, (json!(1500), json!("private"))),
        (r#"{"contents":[],"ttlMs":-1,"cacheScope":"shared"}"#, (json!(0), json!("private"))),
        (r#"{"contents":[],"ttlMs":"9","cacheScope":7}"#, (json!(0), json!("private"))),
        (r#"{"ttlMs":1,"contents":[],"ttlMs":5000,"cacheScope":"public"}"#, (json!(5000), json!("public"))),
        (
            r#"{"contents":[{"text":"\"ttlMs\""}],"x":"a,\"ttlMs\":5,\"cacheScope\":\"public\""}"#,
            (json!(0), json!("private")),
        ),
    ] {
        let modern = read("2026-07-28", object);
        assert_eq!((modern["ttlMs"].clone(), modern["cacheScope"].clone()), expected, "{object}");
        assert_eq!((&modern["resultType"], modern["contents"].is_array()), (&json!("complete"), true), "{object}");
        let legacy = read("2025-11-25", object);
        assert_eq!((legacy.get("ttlMs"), legacy.get("cacheScope")), (None, None), "{object}");
        assert!(legacy["contents"].is_array(), "{object}");
    }
    let mut out = String::new();
    let (rules, method) = (Revision::NEWEST.rules(), Method::find("resources/read").expect("known"));
    let object = RawJson::trusted(r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#);
    write_result(&mut out, rules, "{}", method, Payload::Object(object));
    assert_eq!(out.matches("ttlMs").count(), 1, "{out}");
}

#[test]
fn what_asks_for_something_is_not_kept() {
    let object = r#"{"resultType":"input_required","requestState":"s","ttlMs":5000,"cacheScope":"public"}"#;
    let asked = read("2026-07-28", object);
    assert_eq!((asked.get("ttlMs"), asked.get("cacheScope")), (None, None), "{asked}");
}

#[test]
fn own_meta_joins_what_the_parameters_have() {
    let meta = RawJson::trusted(r#"{"a":1,"n":12345678901234567890123}"#);
    assert_eq!(with_meta(None, &meta).get(), r#"{"_meta":{"a":1,"n":12345678901234567890123}}"#);
    let params = RawJson::trusted(r#"{"name":"t","_meta":{"b":2,"a":0}}"#);
    let merged = r#"{"name":"t","_meta":{"b":2,"a":1,"n":12345678901234567890123}}"#;
    assert_eq!(with_meta(Some(&params), &meta).get(), merged);
}

#[test]
fn what_is_plainly_complete_need_not_be_read() {
    for complete in [
        "{}",
        r#"{"resultType":"complete","content":[]}"#,
        r#"{"content":[] , "resultType" : "complete"}"#,
        r#"{"a":{"resultType":"complete"}}"#,
    ] {
        assert!(is_plainly_complete(&RawJson::trusted(complete)), "{complete}");
    }
    for other in [
        "[]",
        "null",
        r#"{"resultType":"task"}"#,
        r#"{"resultType":"completed"}"#,
        r#"{"resultType":null}"#,
        r#"{"a":"\"resultType\":\"complete\"","resultType":"task"}"#,
        r#"{"a":{"resultType":"complete"},"resultType":"input_required"}"#,
        r#"{"resultType":"complete","\u0072esultType":"task"}"#,
    ] {
        assert!(!is_plainly_complete(&RawJson::trusted(other)), "{other}");
    }
}
