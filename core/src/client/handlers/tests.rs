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
