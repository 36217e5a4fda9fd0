use super::*;
use crate::protocol::revision::Revision;

const FORM: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";

fn rules(name: &str) -> &'static Rules {
    Revision::parse(name).expect("known").rules()
}

fn shaped(revision: &str, method: &str, params: Value) -> Result<Value, String> {
    let raw = question(rules(revision), method, &RawJson::from_value(&params));
    raw.map(|raw| raw.to().expect("json")).map_err(|e| format!("{}: {}", e.kind().as_str(), e.message()))
}

fn answered(revision: &str, method: &str, result: Value) -> Result<Value, String> {
    let raw = answer(rules(revision), method, &RawJson::from_value(&result));
    raw.map(|raw| raw.to().expect("json")).map_err(|e| format!("{}: {}", e.kind().as_str(), e.message()))
}

#[test]
fn a_form_loses_what_an_older_revision_lacks() {
    let params = json!({"mode": "form", "message": "m", "requestedSchema": {"$schema": "s", "type": "object",
        "properties": {
            "a": {"type": "string", "title": "A", "minLength": 1, "default": "x"},
            "b": {"type": "boolean", "default": true},
            "c": {"type": "string", "oneOf": [{"const": "1", "title": "One"}, {"const": "2", "title": "Two"}], "default": "1"},
            "d": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
        }, "required": ["a"]}});
    for revision in ["2025-11-25", "2026-07-28"] {
        assert_eq!(shaped(revision, FORM, params.clone()), Ok(params.clone()));
    }
    let older = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
        "a": {"type": "string", "title": "A", "minLength": 1},
        "b": {"type": "boolean", "default": true},
        "c": {"type": "string", "enum": ["1", "2"], "enumNames": ["One", "Two"]},
        "d": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
    }, "required": ["a"]}});
    assert_eq!(shaped("2025-06-18", FORM, params), Ok(older));
    let several = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
        "s": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}}});
    assert_eq!(shaped("2025-11-25", FORM, several.clone()), Ok(several.clone()));
    let error = "unsupported: property \"s\": several choices: not in revision 2025-06-18, which the client speaks";
    assert_eq!(shaped("2025-06-18", FORM, several), Err(error.to_owned()));
    assert!(shaped("2025-11-25", FORM, json!({"mode": "voice"})).expect_err("unknown").contains("form or url"));
    let asked = |params: Value| {
        let error = prepared(rules("2025-11-25"), FORM, &RawJson::from_value(&params)).expect_err("wrong");
        format!("{}: {}", error.kind().as_str(), error.message())
    };
    for (params, why) in [
        (json!({"mode": "voice", "message": "m"}), "\"mode\": expected form or url, got \"voice\""),
        (json!({"mode": 1}), "\"mode\": expected form or url, got 1"),
        (json!({"mode": "url", "url": "https://h/"}), "\"message\": expected a string"),
        (json!({"mode": "url", "message": "m"}), "\"url\": expected an http or https URL, got null"),
        (json!({"mode": "url", "message": "m", "url": "javascript:1"}), "\"url\": expected an http"),
        (json!({"mode": "url", "message": "m", "url": "https://me:pw@h/"}), "\"url\": expected a URL without a user"),
        (json!({"mode": "url", "message": "m", "url": "HTTP://me@h"}), "\"url\": expected a URL without a user"),
    ] {
        assert!(asked(params).starts_with(&format!("misuse: {FORM}: {why}")), "{why}");
    }
    assert!(shaped("2025-11-25", FORM, json!([])).is_err());
}

#[test]
fn a_url_has_an_id_in_one_revision() {
    let with = json!({"mode": "url", "message": "m", "url": "https://h/", "elicitationId": "1"});
    let without = json!({"mode": "url", "message": "m", "url": "https://h/"});
    assert_eq!(shaped("2025-11-25", FORM, with.clone()), Ok(with.clone()));
    assert_eq!(shaped("2026-07-28", FORM, with.clone()), Ok(without.clone()));
    assert_eq!(shaped("2026-07-28", FORM, without.clone()), Ok(without.clone()));
    assert!(shaped("2025-11-25", FORM, without).expect_err("no id").starts_with("misuse: \"elicitationId\": missing"));
    assert!(shaped("2025-06-18", FORM, with).expect_err("no modes").starts_with("unsupported: mode \"url\""));
}

#[test]
fn messages_have_one_block_before_tools_came() {
    let text = |text: &str| json!({"type": "text", "text": text, "_meta": {}});
    let params = json!({"maxTokens": 1, "includeContext": "thisServer", "messages": [
        {"role": "user", "content": [text("a")], "_meta": {}},
        {"role": "user", "content": [text("b"), text("c")]},
        {"role": "assistant", "content": text("d")},
    ]});
    for revision in ["2025-11-25", "2026-07-28"] {
        assert_eq!(shaped(revision, SAMPLE, params.clone()), Ok(params.clone()));
    }
    let one = |role: &str, block: Value| json!({"role": role, "content": block});
    let older = json!({"maxTokens": 1, "includeContext": "thisServer", "messages": [
        one("user", text("a")), one("user", text("b")), one("user", text("c")), one("assistant", text("d"))]});
    assert_eq!(shaped("2025-06-18", SAMPLE, params.clone()), Ok(older));
    let oldest = shaped("2024-11-05", SAMPLE, params).expect("shaped");
    assert_eq!(oldest["messages"][0], json!({"role": "user", "content": {"type": "text", "text": "a"}}));

    let audio =
        json!({"messages": [{"role": "user", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}]});
    assert_eq!(shaped("2025-03-26", SAMPLE, audio.clone()), Ok(audio.clone()));
    assert!(shaped("2024-11-05", SAMPLE, audio).expect_err("no audio").starts_with("unsupported: messages[0]: audio"));
    for (params, why) in [
        (json!({"messages": [], "tools": []}), "unsupported: \"tools\": not in revision 2025-06-18"),
        (json!({"messages": [], "toolChoice": {}}), "unsupported: \"toolChoice\""),
        (
            json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}),
            "unsupported: messages[0]: tool_use",
        ),
    ] {
        assert!(shaped("2025-06-18", SAMPLE, params).expect_err(why).starts_with(why));
    }
}

#[test]
fn a_clients_answer_is_what_the_revision_can_say() {
    let several = json!({"action": "accept", "content": {"s": ["a"]}});
    assert_eq!(answered("2025-11-25", FORM, several.clone()), Ok(several.clone()));
    assert!(
        answered("2025-06-18", FORM, several).expect_err("a list").starts_with("unsupported: answer \"s\": several")
    );
    let plain = json!({"action": "accept", "content": {"s": "a", "n": 1.5}});
    assert_eq!(answered("2025-06-18", FORM, plain.clone()), Ok(plain));

    let result = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
    let (a, b) = (json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"}));
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let two = result(json!([a, b]));
    assert_eq!(answered("2025-11-25", SAMPLE, two.clone()), Ok(two.clone()));
    assert_eq!(answered("2025-06-18", SAMPLE, two), Ok(result(json!({"type": "text", "text": "a\nb"}))));
    assert_eq!(answered("2025-06-18", SAMPLE, result(json!([image]))), Ok(result(image.clone())));
    assert_eq!(answered("2025-06-18", SAMPLE, result(a.clone())), Ok(result(a.clone())));
    for content in [json!([a, image]), json!([]), json!([{"type": "tool_use"}]), json!({"type": "tool_use"})] {
        assert!(
            answered("2025-06-18", SAMPLE, result(content)).expect_err("no").starts_with("unsupported: \"content\"")
        );
    }
}

#[test]
fn defaults_stand_for_answers_where_clients_are_not_told_of_them() {
    let asked = RawJson::from_value(&json!({"message": "m", "requestedSchema": {"type": "object",
        "properties": {"name": {"type": "string", "default": "x"}}}}));
    let given = json!({"action": "accept", "content": {}});
    let heard = |revision: &str| -> Value {
        let result = received(rules(revision), FORM, Some(&asked), RawJson::from_value(&given), false);
        result.expect("fits").to().expect("json")
    };
    assert_eq!(heard("2025-11-25"), given, "the client left it out");
    assert_eq!(heard("2025-06-18")["content"], json!({"name": "x"}));
}

#[test]
fn a_library_judges_the_answer_to_its_own_form() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let asked = RawJson::from_value(&json!({"message": "m", "requestedSchema": schema}));
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let heard = |given: Value, judged: bool| {
            received(rules(revision), FORM, Some(&asked), RawJson::from_value(&given), judged)
                .map(|it| it.to::<Value>())
        };
        for content in [json!({"n": "4"}), json!({})] {
            let given = json!({"action": "accept", "content": content});
            assert!(heard(given.clone(), false).is_err(), "{revision}");
            assert_eq!(heard(given.clone(), true).expect("not looked at").expect("JSON"), given, "{revision}");
        }
        assert!(heard(json!({"action": "shrug"}), true).is_err(), "{revision}");
    }
}

#[test]
fn roots_that_are_none_are_named() {
    let heard = |result: Value| {
        let result = received(rules("2025-11-25"), "roots/list", None, RawJson::from_value(&result), false);
        result.map(drop).map_err(|e| e.to_string())
    };
    heard(json!({"roots": [{"uri": "file:///a", "name": "A", "_meta": {}}, {"uri": "file:///b"}]})).expect("fits");
    for (result, why) in [
        (json!({}), "\"roots\": expected an array, got null"),
        (json!({"roots": ["file:///a"]}), "roots[0].uri: expected a file:// URI, got null"),
        (json!({"roots": [{"uri": "file:///a"}, {"uri": "https://a"}]}), "roots[1].uri: expected a file:// URI"),
        (json!({"roots": [{"uri": "file:///a", "name": 7}]}), "roots[0].name: expected a string, got 7"),
    ] {
        let said = heard(result).expect_err("none");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_question_names_the_capabilities_it_needs() {
    let needs = |revision: &str, method: &str, params: Value| needed(rules(revision), method, &params);
    assert_eq!(needs("2025-11-25", "roots/list", Value::Null), ["roots"]);
    assert_eq!(needs("2025-11-25", FORM, json!({})), ["elicitation.form"]);
    assert_eq!(needs("2026-07-28", FORM, json!({"mode": "form"})), ["elicitation.form"]);
    assert_eq!(needs("2026-07-28", FORM, json!({"mode": "url"})), ["elicitation.url"]);
    assert_eq!(needs("2025-06-18", FORM, json!({})), ["elicitation"]);
    assert_eq!(needs("2025-11-25", SAMPLE, json!({"includeContext": "none"})), ["sampling"]);
    assert_eq!(needs("2025-11-25", SAMPLE, json!({"tools": []})), ["sampling", "sampling.tools"]);
    let all = json!({"toolChoice": {}, "includeContext": "allServers"});
    assert_eq!(needs("2026-07-28", SAMPLE, all), ["sampling", "sampling.tools", "sampling.context"]);
    assert_eq!(needs("2025-06-18", SAMPLE, json!({"includeContext": "thisServer"})), ["sampling"]);
    assert!(needs("2025-11-25", "ping", json!({})).is_empty());
}

#[test]
fn a_types_own_meta_goes_out_where_the_revision_has_it() {
    let sampled = |content: Value| json!({"role": "assistant", "model": "m", "content": content, "_meta": {"r": 1}});
    let block = |meta: bool| {
        let mut block = json!({"type": "text", "text": "a", "annotations": {"priority": 1}});
        if meta {
            block["_meta"] = json!({"b": 1});
            block["annotations"]["lastModified"] = "2025-01-12T15:00:58Z".into();
        }
        block
    };
    let roots = json!({"roots": [{"uri": "file:///a", "name": "A", "_meta": {"b": 1}}], "_meta": {"r": 1}});
    let plain = json!({"roots": [{"uri": "file:///a", "name": "A"}], "_meta": {"r": 1}});
    for (revision, known) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)]
    {
        let expected = if known { &roots } else { &plain };
        assert_eq!(answered(revision, "roots/list", roots.clone()).as_ref(), Ok(expected), "{revision}");
        assert_eq!(answered(revision, SAMPLE, sampled(block(true))), Ok(sampled(block(known))), "{revision}");
        if !rules(revision).sampling_tools {
            let several = sampled(json!([block(true)]));
            assert_eq!(answered(revision, SAMPLE, several), Ok(sampled(block(known))), "{revision}");
        }
        let params = json!({"maxTokens": 1, "messages": [{"role": "user", "content": block(true)}]});
        let expected = json!({"maxTokens": 1, "messages": [{"role": "user", "content": block(known)}]});
        assert_eq!(shaped(revision, SAMPLE, params), Ok(expected), "{revision}");
    }
}
