use super::*;

fn every_kind() -> Value {
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {
        "name": {"type": "string", "title": "Name", "description": "Yours", "minLength": 2, "maxLength": 5, "default": "Ada"},
        "mail": {"type": "string", "format": "email"},
        "page": {"type": "string", "format": "uri"},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "score": {"type": "number", "minimum": 0.5, "default": 95.5},
        "sure": {"type": "boolean", "default": true},
        "plain": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "titled": {"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}], "default": "y"},
        "legacy": {"type": "string", "enum": ["1", "2"], "enumNames": ["One", "Two"]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "minItems": 1, "maxItems": 2, "default": ["r"]},
        "chosen": {"type": "array", "items": {"anyOf": [{"const": "p", "title": "P"}]}},
    }, "required": ["age"]})
}

#[test]
fn every_kind_of_field_is_a_form() {
    assert_eq!(check_form(&every_kind()), Ok(()));
    assert_eq!(check_form(&json!({"type": "object", "properties": {}})), Ok(()));
    let typed = json!({"type": "object", "title": "T", "additionalProperties": false,
                       "properties": {"n": {"type": "integer", "format": "int32", "x-mine": 1, "examples": [1]}}});
    assert_eq!(check_form(&typed), Ok(()));
}

#[test]
fn what_is_no_form_is_named_with_the_way_out() {
    for (property, why) in [
        (json!({"type": "object"}), "type \"object\" is not allowed in a form, use string"),
        (json!({"type": ["string", "null"]}), "type [\"string\",\"null\"] is not allowed in a form, name one type"),
        (json!({"type": "null"}), "type \"null\" is not allowed"),
        (json!({}), "\"type\" is missing"),
        (json!(true), "expected a schema object"),
        (json!({"$ref": "#/$defs/A", "type": "string"}), "\"$ref\" is not allowed for type \"string\" in a form"),
        (json!({"type": "string", "pattern": "a"}), "\"pattern\" is not allowed"),
        (
            json!({"type": "string", "format": "uuid"}),
            "format \"uuid\" is not allowed in a form, use one of email, uri",
        ),
        (json!({"type": "string", "minLength": -1}), "\"minLength\": expected a whole number, 0 or more, got -1"),
        (json!({"type": "string", "minLength": 3, "maxLength": 2}), "\"minLength\" is larger than \"maxLength\""),
        (json!({"type": "string", "minimum": 3}), "\"minimum\" is not allowed for type \"string\""),
        (json!({"type": "integer", "exclusiveMinimum": 3}), "\"exclusiveMinimum\" is not allowed"),
        (json!({"type": "integer", "minimum": "3"}), "\"minimum\": expected a number, got \"3\""),
        (json!({"type": "boolean", "enum": [true]}), "\"enum\" is not allowed for type \"boolean\""),
        (json!({"type": "string", "enum": []}), "\"enum\": expected a list of strings, one at least"),
        (json!({"type": "string", "enum": ["a", 1]}), "\"enum\": expected a list of strings"),
        (json!({"type": "string", "enum": ["a", "a"]}), "the choice \"a\" comes twice"),
        (json!({"type": "string", "enum": ["a"], "enumNames": []}), "\"enumNames\": expected one string for each"),
        (json!({"type": "string", "enumNames": ["A"]}), "\"enumNames\": expected one string for each"),
        (json!({"type": "string", "oneOf": [{"const": "a"}]}), "\"oneOf\": expected a list of {\"const\""),
        (json!({"type": "string", "enum": ["a"], "oneOf": []}), "both \"enum\" and \"oneOf\""),
        (json!({"type": "array", "items": {"type": "string"}}), "an array in a form is a choice of several"),
        (json!({"type": "array"}), "an array in a form is a choice of several"),
        (json!({"type": "array", "items": {"enum": ["a"]}}), "items: expected \"type\": \"string\""),
        (json!({"type": "array", "items": {"anyOf": [{"type": "string"}]}}), "\"anyOf\": expected a list of"),
    ] {
        let form = json!({"type": "object", "properties": {"p": property}});
        let error = check_form(&form).expect_err("no form");
        assert!(error.starts_with("property \"p\": ") && error.contains(why), "{form}: {error}");
    }
    for (form, why) in [
        (json!([]), "form: expected an object schema"),
        (json!({"type": "string"}), "form: expected \"type\": \"object\""),
        (json!({"type": "object"}), "form: expected \"properties\""),
        (json!({"type": "object", "properties": {}, "anyOf": []}), "form: \"anyOf\" is not allowed"),
        (json!({"type": "object", "properties": {}, "required": ["a"]}), "form: \"required\" names \"a\", which is no"),
        (json!({"type": "object", "properties": {}, "required": "a"}), "form: \"required\": expected a list"),
        (
            json!({"type": "object", "properties": {"p": {"type": "integer", "default": "x"}}}),
            "default \"p\": expected integer, got \"x\"",
        ),
        (
            json!({"type": "object", "properties": {"p": {"type": "string", "enum": ["a"], "default": "b"}}}),
            "default \"p\": expected one of [\"a\"], got \"b\"",
        ),
    ] {
        let error = check_form(&form).expect_err("no form");
        assert!(error.starts_with(why), "{form}: {error}");
    }
    let many: Map<String, Value> = (0..1001).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
    assert!(check_form(&json!({"type": "object", "properties": many})).expect_err("too many").contains("at most 1000"));
}

#[test]
fn an_answer_is_held_against_its_form() {
    let form = every_kind();
    let good = json!({"name": "Bob", "mail": "a@b.example", "page": "https://a.example/x", "day": "2026-02-28",
                      "at": "2026-02-28T10:00:00Z", "age": 3, "score": 1.5, "sure": false, "plain": "b", "titled": "x",
                      "legacy": "2", "several": ["r", "g"], "chosen": ["p"], "more": "text"});
    assert_eq!(check_answer(&form, &good), Ok(()));
    for (name, value, why) in [
        ("age", json!("x"), "expected integer, got \"x\""),
        ("age", json!(1.5), "expected integer, got 1.5"),
        ("age", json!(200), "expected at most 150, got 200"),
        ("age", json!(null), "expected integer, got null"),
        ("name", json!("A"), "expected at least 2 characters, got \"A\""),
        ("name", json!("Abcdef"), "expected at most 5 characters, got \"Abcdef\""),
        ("mail", json!("nobody"), "expected the format email, got \"nobody\""),
        ("page", json!("/x"), "expected the format uri, got \"/x\""),
        ("day", json!("2026-02-30"), "expected the format date, got \"2026-02-30\""),
        ("at", json!("2026-02-28"), "expected the format date-time, got \"2026-02-28\""),
        ("sure", json!("yes"), "expected boolean, got \"yes\""),
        ("plain", json!("c"), "expected one of [\"a\",\"b\"], got \"c\""),
        ("titled", json!("X"), "expected one of [\"x\",\"y\"], got \"X\""),
        ("legacy", json!("One"), "expected one of [\"1\",\"2\"], got \"One\""),
        ("several", json!([]), "expected at least 1 items, got []"),
        ("several", json!("r"), "expected array, got \"r\""),
    ] {
        let mut answer = json!({"age": 1});
        answer[name] = value;
        assert_eq!(check_answer(&form, &answer), Err(format!("answer {name:?}: {why}")));
    }
    let one = |answer: Value| check_answer(&form, &answer).expect_err("no answer");
    assert_eq!(one(json!({})), "answer \"age\": missing (required)");
    assert_eq!(one(json!({"age": 1, "chosen": ["q"]})), "answer \"chosen[0]\": expected one of [\"p\"], got \"q\"");
    assert!(one(json!({"age": 1, "more": {"a": 1}})).starts_with("answer \"more\": expected"));
    assert_eq!(one(json!([])), "answers: expected object, got []");
}

#[test]
fn a_result_says_what_the_user_did() {
    let form = every_kind();
    let check = |result: Value| check_result(Some(&form), &result);
    assert_eq!(check(json!({"action": "accept", "content": {"age": 1}})), Ok(()));
    assert_eq!(check(json!({"action": "decline"})), Ok(()));
    assert_eq!(check(json!({"action": "cancel", "content": {}})), Ok(()));
    assert_eq!(check(json!({"action": "accept"})), Err("answer \"age\": missing (required)".to_owned()));
    assert!(
        check(json!({"action": "ok"})).expect_err("none").contains("expected accept, decline or cancel, got \"ok\"")
    );
    assert_eq!(check_result(None, &json!({"action": "accept"})), Ok(()));
}

#[test]
fn what_a_client_leaves_out_is_filled_in() {
    let form = every_kind();
    let filled = with_defaults(&form, json!({"age": 1, "name": "Bob"}));
    let expected =
        json!({"age": 1, "name": "Bob", "score": 95.5, "sure": true, "plain": "a", "titled": "y", "several": ["r"]});
    assert_eq!(filled, expected);
    assert_eq!(with_defaults(&form, Value::Null)["age"], 30);
    assert_eq!(with_defaults(&form, json!("x")), json!("x"));
}
