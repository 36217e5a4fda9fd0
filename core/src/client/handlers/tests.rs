use super::*;

struct Idle;

impl Handler for Idle {
    fn call(&self, _cx: Context, _params: RawJson, _reply: Reply) {}
}

#[test]
fn a_user_is_led_to_pages_only() {
    let handlers = Handlers::new().elicitation_with_url(Arc::new(Idle));
    let rules = Revision::NEWEST_LEGACY.rules();
    let asked = |url: Value| {
        let params = json!({"mode": "url", "message": "m", "url": url, "elicitationId": "e"});
        handlers.acceptable(rules, ELICITATION, &RawJson::from_value(&params))
    };
    assert!(asked(json!("https://example.com/in")).is_ok());
    for url in [json!("javascript:alert(1)"), json!("file:///etc/passwd"), json!("example.com"), Value::Null] {
        let refused = asked(url).expect_err("no page");
        assert_eq!(refused.code(), Some(code::INVALID_PARAMS));
        assert!(refused.message().contains("\"url\": expected an http or https URL"), "{refused}");
    }
}

#[test]
fn a_form_may_have_a_field_called_action() {
    let content = |field: &str, given: Value, whole: bool| {
        let form = json!({"type": "object", "properties": {(field): {"type": "string"}}});
        let asked = RawJson::from_value(&json!({"message": "m", "requestedSchema": form}));
        let answered = Answered { method: ELICITATION, asked, failures: Arc::default() };
        let result = answered.elicited(given, whole).expect("it fits");
        (result["action"].as_str().unwrap_or_default().to_owned(), result["content"].clone())
    };
    let decline = || json!({"action": "decline"});
    let accept = || json!({"action": "accept", "content": {"action": "buy"}});
    assert_eq!(content("why", decline(), false), ("decline".into(), Value::Null));
    // No server makes consent of a refusal by the names of its fields, or a client by what else it says.
    assert_eq!(content("action", decline(), false), ("decline".into(), Value::Null));
    let reasons = json!({"action": "cancel", "reason": "busy"});
    assert_eq!(content("why", reasons.clone(), false), ("cancel".into(), Value::Null));
    assert_eq!(content("action", reasons, false), ("cancel".into(), Value::Null));
    let bare = json!({"action": "accept"});
    assert_eq!(content("action", bare.clone(), false), ("accept".into(), bare));
    assert_eq!(content("action", json!({"action": "buy"}), false), ("accept".into(), json!({"action": "buy"})));
    assert_eq!(content("action", decline(), true), ("decline".into(), Value::Null));
    assert_eq!(content("action", accept(), false), ("accept".into(), json!({"action": "buy"})));
    assert_eq!(content("action", json!("decline"), false), ("decline".into(), Value::Null));
}

#[test]
fn what_is_no_consent_is_none() {
    let answered = |params: Value| {
        let asked = RawJson::from_value(&params);
        Answered { method: ELICITATION, asked, failures: Arc::default() }
    };
    let page = answered(json!({"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "e"}));
    for given in [json!({}), json!({"foo": 1}), json!({"action": "sure"}), json!({"action": 1})] {
        for whole in [true, false] {
            let error = page.elicited(given.clone(), whole).expect_err("no consent");
            assert!(error.message().contains("as \"action\""), "{error}");
        }
    }
    for (given, action) in [(json!(true), "accept"), (json!({"action": "decline", "why": "no"}), "decline")] {
        assert_eq!(page.elicited(given, false).expect("an answer")["action"], action);
    }
    let form = json!({"type": "object", "properties": {"why": {"type": "string"}}});
    let form = answered(json!({"message": "m", "requestedSchema": form}));
    assert!(form.elicited(json!({"action": "sure"}), false).is_err());
    assert_eq!(form.elicited(json!({"why": "x"}), false).expect("answers")["content"], json!({"why": "x"}));
}
