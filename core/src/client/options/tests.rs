use super::*;

#[test]
#[expect(deprecated, reason = "it is one of them")]
fn targets_are_told_apart() {
    for url in ["https://a/mcp", "HTTPS://a/mcp", "Http://a/mcp.json"] {
        assert!(matches!(Target::from_text(url), Ok(Target::Url { .. })), "{url}");
        assert!(matches!(Target::parse(&format!(r#"{{"url":{url:?}}}"#)), Ok(Target::Url { .. })), "{url}");
    }
    for text in ["node \"a b.js\" --x", "node 'a b.js' --x"].into_iter().take(if cfg!(windows) { 1 } else { 2 }) {
        let Ok(Target::Command { command, args, .. }) = Target::from_text(text) else { panic!() };
        assert_eq!((command.as_str(), args), ("node", vec!["a b.js".to_owned(), "--x".to_owned()]));
    }
    let Ok(Target::Command { args, .. }) = Target::parse("\"node x --to ws://a\"") else { panic!() };
    assert_eq!(args, ["x", "--to", "ws://a"]);
    for (kind, sse) in [("sse", true), ("http", false), ("streamable-http", false), ("streamableHttp", false)] {
        let target = Target::parse(&format!(r#"{{"type":{kind:?},"url":"https://a/mcp"}}"#));
        assert_eq!(matches!(target, Ok(Target::Sse { .. })), sse, "{target:?}");
    }
    let text = r#"{"command":"x","args":["a b"],"env":{"A":"1","B":null},"stderr":"event"}"#;
    let Ok(Target::Command { env, stderr: Stderr::Event, .. }) = Target::parse(text) else { panic!() };
    assert_eq!(env["B"], None);
    for (bad, part) in [
        ("\"\"", "empty"),
        (r#""a \"b""#, "a quote is opened and not closed"),
        (r#"{"command":"a","ars":[]}"#, "did you mean \"args\"?"),
        (r#"{"url":"ftp://x"}"#, "http://"),
        ("\"htps://x\"", "the scheme is \"htps\""),
        ("\"ftp://x/mcp.json\"", "the scheme is \"ftp\""),
        (r#"{"text":"ws://x/mcp.json"}"#, "the scheme is \"ws\""),
        ("{}", "one of them"),
        (r#"{"type":"carrier-pigeon","url":"http://h"}"#, "\"type\": expected \"stdio\", \"http\""),
        (r#"{"type":1,"url":"http://h"}"#, "got 1"),
        (r#"{"type":"stdio","url":"http://h"}"#, "\"stdio\" has a \"command\""),
        (r#"{"type":"http","command":"x"}"#, "\"http\" has a \"url\""),
    ] {
        let message = Target::parse(bad).expect_err(bad).message().to_owned();
        assert!(message.contains(part), "{bad}: {message}");
    }
    for bad in [r#""wss://me:secret@h/x""#, r#"{"url":"wss://me:secret@h/x"}"#, r#"{"url":"me:secret@h/x"}"#] {
        let message = Target::parse(bad).expect_err(bad).message().to_owned();
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn options_are_checked_by_name() {
    let wrong = |text: &str| ClientOptions::parse(text).expect_err(text).message().to_owned();
    assert!(wrong(r#"{"request_timout":1}"#).contains("did you mean \"request_timeout\"?"));
    assert!(wrong(r#"{"request_timeout":"1"}"#).contains("\"request_timeout\""));
    assert!(wrong(r#"{"request_timeout":-1}"#).contains("at least 0"));
    assert!(wrong(r#"{"revision":"2020-01-01"}"#).contains("expected one of"));
    for name in ["max_message_bytes", "max_nesting", "max_in_flight"] {
        let message = wrong(&format!("{{{name:?}:0}}"));
        assert!(message.contains(name) && message.contains("at least 1"), "{message}");
    }
    assert!(ClientOptions::parse(r#"{"name":null}"#).is_ok_and(|o| o.name == "tricorn"));
}

#[test]
fn a_url_without_its_scheme_is_no_command() {
    for text in
        ["localhost:8000/mcp", "localhost:8000", "127.0.0.1:80/", "[::1]:8000/mcp", "mcp.example.com:443/mcp?x=1"]
    {
        let error = Target::from_text(text).expect_err("no URL");
        assert!(error.message().contains("did you mean \"http://"), "{text}: {}", error.message());
        assert!(!error.message().contains("x=1"));
    }
    for text in ["server", "server --port 8000", "./a:b", "a:b", "C:8"] {
        assert!(Target::from_text(text).is_ok(), "{text}");
    }
}

#[test]
fn a_client_takes_longer_messages_than_a_server() {
    let limits = ClientOptions::default().limits();
    assert_eq!(limits.max_message_bytes, 32 << 20);
    assert!(limits.max_decoded_bytes >= limits.max_message_bytes);
    assert_eq!(crate::jsonrpc::Limits::default().max_message_bytes, 4 << 20);
}
