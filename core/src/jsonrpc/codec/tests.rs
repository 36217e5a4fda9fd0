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
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
            Some(Id::Number(1)),
            code::INVALID_REQUEST,
            "\"params\": expected an object",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":5}"#, None, code::INVALID_REQUEST, "\"result\": expected an object"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            None,
            code::INVALID_REQUEST,
            "\"result\" and \"error\"",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#, None, code::INVALID_REQUEST, "\"error\""),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            Some(Id::Number(2)),
            code::INVALID_REQUEST,
            "duplicate field `id`",
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(Id::Number(1)), code::INVALID_REQUEST, "no \"method\""),
        (r#"{"jsonrpc":"2.0","id":1,"method":"pi"#, Some(Id::Number(1)), code::PARSE_ERROR, "not JSON"),
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
fn a_null_is_nothing() {
    let request = Message::Request { id: 1.into(), method: "a".into(), params: None };
    let result = Message::Response { id: 1.into(), result: RawJson::empty_object() };
    for (text, message) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#, request.clone()),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null,"result":null,"error":null}"#, request),
        (r#"{"jsonrpc":"2.0","method":"a","params":null}"#, Message::Notification { method: "a".into(), params: None }),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, result),
    ] {
        assert_eq!(take(text), Ok(message), "{text}");
    }
    let error = take(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}"#);
    assert!(matches!(error, Ok(Message::Error { id: Some(_), .. })), "{error:?}");
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#,
    ] {
        assert!(take(text).is_err(), "{text}");
    }
}

#[test]
fn caps_bytes_and_nesting() {
    let limits = Limits { max_message_bytes: 100, max_nesting: 5, ..Limits::default() };
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
fn an_id_is_short() {
    let limits = Limits::default();
    let with = |length: usize| format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(length));
    assert!(decode(&with(MAX_ID_BYTES).into(), &limits).is_ok());
    let error = decode(&with(MAX_ID_BYTES + 1).into(), &limits).expect_err("too long");
    assert!(error.message.contains("\"id\": 4099 bytes, longer than 4096"), "{}", error.message);
}

#[test]
fn what_cannot_be_read_is_refused_by_its_own_id() {
    let limits = Limits { max_message_bytes: 200, max_nesting: 5, max_decoded_bytes: 6000, ..Limits::default() };
    let long = "x".repeat(200);
    for (params, part) in [
        (format!(r#"{{"a":"{long}"}}"#), "max_message_bytes"),
        ("{\"a\":[[[[[[]]]]]]}".to_owned(), "max_nesting"),
        (format!(r#"{{"a":[{}0]}}"#, "0,".repeat(60)), "max_decoded_bytes"),
        (r#"{"a":NaN}"#.to_owned(), "not JSON"),
        ("{\"a\":\"\u{1}\"}".to_owned(), "not JSON"),
    ] {
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}"#),
            format!(r#"{{"params":{params},"method":"m","jsonrpc":"2.0","id":7}}"#),
        ] {
            let error = decode(&text.clone().into(), &limits).expect_err(&text);
            assert!(error.message.contains(part), "{text}: {}", error.message);
            assert_eq!((error.id, error.answers), (Some(Id::Number(7)), None), "{text}");
            let answer = text.replace("\"method\":\"m\",", "").replace("\"params\"", "\"result\"");
            let error = decode(&answer.clone().into(), &limits).expect_err(&answer);
            assert_eq!((error.id, error.answers), (None, Some(Id::Number(7))), "{answer}");
        }
    }
    let broken = b"{\"jsonrpc\":\"2.0\",\"params\":{\"a\":\"\xff\"},\"method\":\"m\",\"id\":7}";
    let error = decode(&Bytes::from_static(broken), &limits).expect_err("no UTF-8");
    assert_eq!((error.id, error.code), (Some(Id::Number(7)), code::PARSE_ERROR));
}

#[test]
fn an_array_is_refused_before_its_elements_are_decoded() {
    let mut limits = Limits { max_batch: 2, ..Limits::default() };
    let array = |elements: &[&str]| Bytes::from(format!(" [{}]", elements.join(",")));
    let answer = r#"{"result":{"id":1},"id":7}"#;
    // No element of it is JSON.
    let error = decode(&array(&["?", answer, "?"]), &limits).expect_err("three");
    assert_eq!((error.id, error.code, &error.answers_too[..]), (None, code::INVALID_REQUEST, &[Id::Number(7)][..]));
    assert!(error.message.contains("batch of 3") && error.message.contains("2 (max_in_flight)"), "{}", error.message);
    assert!(matches!(decode(&array(&["1", "2"]), &limits), Ok(Decoded::Batch(parts)) if parts.len() == 2));
    limits.max_batch = 0;
    let error = decode(&array(&["?"]), &limits).expect_err("no batches");
    assert!(error.message.contains("not part of this revision"), "{}", error.message);
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
    for (text, id) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\",\"method\":\"ping\"}", None),
        ("{\n\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\rng\"}", Some(Id::Number(1))),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\n\"}}]", None),
    ] {
        let error = decode(&Bytes::from(text), &Limits::default()).expect_err(text);
        assert_eq!((error.id, error.code), (id, code::PARSE_ERROR), "{text}");
    }
}

#[test]
fn whole_numbers_and_empty_lists_of_other_languages_are_read() {
    for text in [
        r#"{"jsonrpc":"2.0","id":7.0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":0.7e1,"method":"ping","params":null}"#,
    ] {
        let Message::Request { id, params, .. } = take(text).expect(text) else { panic!("{text}") };
        assert_eq!((id, params.is_none()), (Id::Number(7), true), "{text}");
    }
    assert!(take(r#"{"jsonrpc":"2.0","id":7.5,"method":"ping"}"#).is_err());
}

#[test]
fn what_means_nothing_in_a_response_is_passed_over() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{"a":1},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":1e0,"result":{"a":1}}"#,
    ] {
        let Message::Response { id, result } = take(text).expect(text) else { panic!("{text}") };
        assert_eq!((id, result.get()), (Id::Number(1), r#"{"a":1}"#), "{text}");
    }
    let refused = take(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m"}}"#).expect("an error");
    assert!(matches!(refused, Message::Error { id: Some(Id::Number(1)), error } if error.code == 5));
    for (text, answers) in [
        (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, Some(Id::Number(1))),
        (r#"{"id":1,"error":{"code":5,"message":"m"}}"#, Some(Id::Number(1))),
        (r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#, Some(Id::Number(1))),
    ] {
        let error = take(text).expect_err(text);
        assert_eq!((error.id, error.answers), (None, answers), "{text}");
    }
}
