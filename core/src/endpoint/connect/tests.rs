use crate::endpoint::connect::*;

#[test]
fn a_server_is_known_by_its_address() {
    let key = |target: &str| Key::of(&Target::parse(target).expect(target));
    let plain = key(r#"{"url": "https://example.com/mcp"}"#);
    for same in [
        r#"{"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer 2"}}"#,
        r#"{"url": "https://user:password@EXAMPLE.com:443/mcp#here"}"#,
    ] {
        assert_eq!(key(same), plain, "{same}");
    }
    for other in ["http://example.com/mcp", "https://example.com/other", "https://example.com:8443/mcp"] {
        assert_ne!(key(&format!("{other:?}")), plain, "{other}");
    }
    let command = key(r#"{"command": "server", "args": ["x"], "env": {"TOKEN": "1"}, "stderr": "event"}"#);
    assert_eq!(command, key(r#""server x""#));
    assert_ne!(command, key(r#""server y""#));
}

#[test]
fn so_many_servers_are_known() {
    let mut verdicts = Verdicts(VecDeque::new());
    for n in 0..MAX_KNOWN as u64 + 1 {
        verdicts.set(Key(n), Some(LEGACY));
    }
    let modern = Verdict { era: Era::Modern, pair: false };
    verdicts.set(Key(1), Some(modern));
    assert_eq!(verdicts.0.len(), MAX_KNOWN);
    assert_eq!((verdicts.get(Key(0)), verdicts.get(Key(1))), (None, Some(modern)));
    verdicts.set(Key(1), None);
    assert_eq!(verdicts.get(Key(1)), None);
}
#[test]
fn what_a_client_can_do_tells_its_answers_from_those_of_others() {
    let url = Target::parse(r#"{"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer 1"}}"#);
    let url = url.expect("a target");
    let options = |capabilities: serde_json::Value, scope: Option<&str>| {
        let mut options = ClientOptions::new();
        options.capabilities = Some(crate::jsonrpc::RawJson::from_value(&capabilities));
        options.cache.scope = scope.map(str::to_owned);
        options
    };
    for scope in [None, Some("ada")] {
        let plain = place_of(&url, &options(serde_json::json!({}), scope));
        let same = place_of(&url, &options(serde_json::json!({}), scope));
        let asked = place_of(&url, &options(serde_json::json!({"elicitation": {}}), scope));
        assert_eq!((&same.target, &same.scope), (&plain.target, &plain.scope), "{scope:?}");
        assert_eq!(asked.target, plain.target, "{scope:?}");
        assert_ne!(asked.scope, plain.scope, "{scope:?}");
    }
}
