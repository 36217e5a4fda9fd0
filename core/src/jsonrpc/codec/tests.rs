use super::*;

fn take(text: &str) -> Result<Message, DecodeError> {
    match decode(&Bytes::copy_from_slice(text.as_bytes()), &Limits::default())? {
        Decoded::One(message) => Ok(message),
        Decoded::Batch(_) => panic!("a batch"),
    }
}

fn fails(text: &str) -> (Option<Id>, i64, String) {
    let e = take(text).expect_err(text);
    (e.id, e.code, e.message)
}

#[test]
fn round_trips_every_kind() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"z":1,"a":1.0}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":-9223372036854775808,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no","data":null}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad"}}"#,
    ] {
        let message = take(text).expect(text);
        // `"data": null` reads as absent: JSON-RPC gives the two the same meaning.
        assert_eq!(message.encode().get(), text.replace(r#","data":null"#, ""));
    }
}

#[test]
fn names_the_member_that_is_wrong() {
    let cases = [
        (r#"{"id":1,"method":"ping"}"#, Some(Id::Number(1)), code::INVALID_REQUEST, "\"jsonrpc\": missing"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(Id::Number(1)), code::INVALID_REQUEST, "got \"1.0\""),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, code::INVALID_REQUEST, "\"id\": expected"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, code::INVALID_REQUEST, "got 1.5"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, code::INVALID_REQUEST, "got {}"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            Some(Id::Number(1)),
            code::INVALID_REQUEST,
            "\"method\": expected a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
            Some(Id::Number(1)),
            code::INVALID_REQUEST,
            "\"params\": expected an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
            Some(Id::Number(1)),
            code::INVALID_REQUEST,
            "\"params\"",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":5}"#, None, code::INVALID_REQUEST, "\"result\": expected an object"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            None,
            code::INVALID_REQUEST,
            "\"result\" and \"error\"",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#, None, code::INVALID_REQUEST, "\"error\""),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, None, code::INVALID_REQUEST, "duplicate field `id`"),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(Id::Number(1)), code::INVALID_REQUEST, "no \"method\""),
        (r#"{"jsonrpc":"2.0","id":1,"method":"pi"#, None, code::PARSE_ERROR, "not JSON"),
        ("5", None, code::INVALID_REQUEST, "not an object"),
        ("", None, code::PARSE_ERROR, "empty"),
    ];
    for (text, id, code, part) in cases {
        let (got_id, got_code, message) = fails(text);
        assert_eq!((got_id, got_code), (id, code), "{text}: {message}");
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn a_malformed_response_says_what_it_was_to_answer() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#,
    ] {
        let error = decode(&Bytes::from_static(text.as_bytes()), &Limits::default()).expect_err(text);
        assert_eq!((error.id, error.answers), (None, Some(Id::Number(1))), "{text}");
    }
}

#[test]
fn caps_bytes_and_nesting() {
    let limits = Limits { max_message_bytes: 100, max_nesting: 5 };
    let long = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(100));
    let error = decode(&long.into(), &limits).expect_err("too long");
    assert_eq!(error.code, code::INVALID_REQUEST);
    let deep = |n: usize| {
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{}{}}}}}"#, "[".repeat(n), "]".repeat(n)))
    };
    assert!(decode(&deep(3), &limits).is_ok());
    assert_eq!(decode(&deep(4), &limits).expect_err("too deep").code, code::PARSE_ERROR);
    let brackets_in_a_string = r#"{"jsonrpc":"2.0","method":"[[[[[[[[\"[[["}"#;
    assert!(decode(&brackets_in_a_string.into(), &limits).is_ok());
}

#[test]
fn not_utf8_is_a_parse_error() {
    let error = decode(&Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"), &Limits::default())
        .expect_err("bytes");
    assert_eq!(error.code, code::PARSE_ERROR);
}

#[test]
fn a_batch_keeps_its_good_parts() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 5, {"jsonrpc":"2.0","method":"n"}]"#;
    let Ok(Decoded::Batch(parts)) = decode(&text.into(), &Limits::default()) else { panic!("no batch") };
    assert_eq!(parts.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(decode(&"[]".into(), &Limits::default()).expect_err("empty").code, code::INVALID_REQUEST);
}

#[test]
fn a_pretty_printed_message_becomes_one_line() {
    let text = "{\n \"jsonrpc\": \"2.0\",\r\n \"method\": \"m\", \"params\": {\n  \"a\": \"x\\ny\"\n }\n}\n";
    let Message::Notification { params: Some(params), .. } = take(text).expect("a notification") else { panic!() };
    assert!(!params.get().contains('\n'));
    assert_eq!(params.to::<serde_json::Value>().expect("json"), serde_json::json!({"a": "x\ny"}));
}

#[test]
fn a_line_break_inside_a_string_is_a_parse_error() {
    for text in [
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\",\"method\":\"ping\"}",
        "{\n\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\rng\"}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\n\"}}]",
    ] {
        let error = decode(&Bytes::from(text), &Limits::default()).expect_err(text);
        assert_eq!((error.id, error.code), (None, code::PARSE_ERROR), "{text}");
    }
}
