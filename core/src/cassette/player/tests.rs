use super::*;

/// A cassette of messages, `>` by the client and `<` by the server.
fn cassette(messages: &[&str]) -> Cassette {
    let mut text = "{\"cassette\":1}\n".to_owned();
    for message in messages {
        let (from, message) = message.split_at(1);
        let from = if from == ">" { "client" } else { "server" };
        let message = message.trim().replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
        text.push_str(&format!("{{\"t\":1,\"from\":\"{from}\",\"on\":\"stdio\",\"msg\":{message}}}\n"));
    }
    Cassette::parse("a.jsonl", &text).expect("a cassette")
}

fn heard(player: &mut Player, message: &str) -> Vec<String> {
    let message = message.replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
    let said = player.hear(&Bytes::from(message));
    said.iter().map(|bytes| String::from_utf8_lossy(bytes).replace("\"jsonrpc\":\"2.0\",", "")).collect()
}

const CALLS: [&str; 8] = [
    r#">{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
    r#"<{"id":1,"result":{"protocolVersion":"2025-11-25"}}"#,
    r#">{"id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"progressToken":2}}}"#,
    r#">{"id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":3,"b":4}}}"#,
    r#"<{"method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#,
    r#"<{"id":3,"result":{"n":7.50}}"#,
    r#"<{"id":2,"result":{"n":3}}"#,
    r#">{"id":4,"method":"tools/call","params":{"name":"slow"}}"#,
];

#[test]
fn requests_get_their_answers_with_ids_and_tokens_of_now() {
    for is_strict in [false, true] {
        let mut player = Player::new(&cassette(&CALLS), is_strict);
        assert_eq!(
            heard(&mut player, r#"{"id":"x","method":"initialize","params":{"other":1}}"#),
            [r#"{"id":"x","result":{"protocolVersion":"2025-11-25"}}"#]
        );
        assert_eq!(
            heard(&mut player, r#"{"id":7,"method":"tools/call","params":{"arguments":{"b":4,"a":3},"name":"add"}}"#),
            [r#"{"id":7,"result":{"n":7.50}}"#]
        );
        let call = r#"{"id":8,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"progressToken":"t"}}}"#;
        assert_eq!(
            heard(&mut player, call),
            [
                r#"{"method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
                r#"{"id":8,"result":{"n":3}}"#
            ]
        );
        assert_eq!(player.unplayed(), [(9, "tools/call slow".to_owned())]);
        let slow = heard(&mut player, r#"{"id":9,"method":"tools/call","params":{"name":"slow"}}"#);
        assert!(slow[0].contains(r#"cassette \"a.jsonl\", line 9: tools/call slow was never answered"#), "{slow:?}");
        let again = heard(&mut player, call);
        assert_eq!(again.len(), if is_strict { 1 } else { 2 }, "{again:?}");
        assert_eq!(again[0].contains("recorded 1 times, at last on line 4"), is_strict, "{again:?}");
    }
}

#[test]
fn the_best_match_answers_unless_that_is_strict() {
    let call = |args: &str| format!(r#"{{"id":9,"method":"tools/call","params":{{"name":"add","arguments":{args}}}}}"#);
    let mut player = Player::new(&cassette(&CALLS), false);
    assert_eq!(heard(&mut player, &call(r#"{"a":3,"b":5}"#)), [r#"{"id":9,"result":{"n":7.50}}"#]);
    let other = heard(&mut player, r#"{"id":9,"method":"tools/call","params":{"name":"sub"}}"#);
    assert!(other[0].contains("-32602") && other[0].contains("the nearest is on line"), "{other:?}");
    let none = heard(&mut player, r#"{"id":9,"method":"prompts/list"}"#);
    assert!(none[0].contains("-32601") && none[0].contains("no answer to prompts/list"), "{none:?}");
    let mut player = Player::new(&cassette(&CALLS), true);
    let strict = heard(&mut player, &call(r#"{"a":3,"b":5}"#));
    assert!(strict[0].contains(r#"line 5, where \"arguments.b\" is 4; asked was 5"#), "{strict:?}");
}

#[test]
fn no_arguments_are_the_same_as_empty_ones() {
    let none = r#"{"id":2,"method":"prompts/get","params":{"name":"p"}}"#;
    let empty = r#"{"id":2,"method":"prompts/get","params":{"name":"p","arguments":{}}}"#;
    for (recorded, live) in [(none, empty), (empty, none)] {
        let recorded = format!(">{recorded}");
        let mut player = Player::new(&cassette(&[recorded.as_str(), r#"<{"id":2,"result":{"messages":[]}}"#]), true);
        assert_eq!(heard(&mut player, live), [r#"{"id":2,"result":{"messages":[]}}"#]);
    }
}

#[test]
fn answers_to_the_same_request_come_one_after_the_other() {
    let get = r#">{"id":1,"method":"tasks/get","params":{"taskId":"t"}}"#;
    let messages =
        [get, r#"<{"id":1,"result":{"status":"working"}}"#, get, r#"<{"id":1,"result":{"status":"completed"}}"#];
    let mut player = Player::new(&cassette(&messages), false);
    let said: Vec<_> = (0..3).map(|_| heard(&mut player, &get[1..]).remove(0)).collect();
    assert!(said[0].contains("working") && said[1].contains("completed") && said[2].contains("completed"), "{said:?}");
}

#[test]
fn polls_before_an_answer_are_past_with_it() {
    let mut player = Player::new(
        &cassette(&[
            r#">{"id":1,"method":"tasks/get","params":{"taskId":"t"}}"#,
            r#"<{"id":1,"result":{"status":"working"}}"#,
            r#">{"id":2,"method":"tasks/get","params":{"taskId":"t"}}"#,
            r#"<{"id":2,"result":{"status":"input_required"}}"#,
            r#">{"id":3,"method":"tasks/get","params":{"taskId":"t"}}"#,
            r#"<{"id":3,"result":{"status":"input_required"}}"#,
            r#">{"id":4,"method":"tasks/get","params":{"taskId":"u"}}"#,
            r#"<{"id":4,"result":{"status":"working"}}"#,
            r#">{"id":5,"method":"tasks/update","params":{"taskId":"t","inputResponses":{}}}"#,
            r#"<{"id":5,"result":{}}"#,
            r#">{"id":6,"method":"tasks/get","params":{"taskId":"t"}}"#,
            r#"<{"id":6,"result":{"status":"completed"}}"#,
        ]),
        true,
    );
    let mut get =
        |id: &str| heard(&mut player, &format!(r#"{{"id":9,"method":"tasks/get","params":{{"taskId":"{id}"}}}}"#));
    assert!(get("t")[0].contains("working"));
    assert!(get("t")[0].contains("input_required"));
    let update = r#"{"id":9,"method":"tasks/update","params":{"taskId":"t","inputResponses":{}}}"#;
    assert_eq!(heard(&mut player, update), [r#"{"id":9,"result":{}}"#]);
    let mut get =
        |id: &str| heard(&mut player, &format!(r#"{{"id":9,"method":"tasks/get","params":{{"taskId":"{id}"}}}}"#));
    assert!(get("t")[0].contains("completed"));
    assert!(get("u")[0].contains("working"), "the poll of another task");
}

#[test]
fn questions_wait_for_their_answers() {
    let messages = [
        r#">{"id":1,"method":"tools/call","params":{"name":"ask"}}"#,
        r#"<{"id":"q","method":"elicitation/create","params":{"message":"Really?"}}"#,
        r#">{"id":"q","result":{"action":"accept"}}"#,
        r#"<{"id":1,"result":{"said":"yes"}}"#,
        r#">{"method":"notifications/roots/list_changed"}"#,
        r#"<{"id":"r","method":"roots/list"}"#,
        r#">{"id":"r","result":{"roots":[]}}"#,
        r#"<{"method":"notifications/message","params":{"data":"read"}}"#,
    ];
    let mut player = Player::new(&cassette(&messages), true);
    assert_eq!(
        heard(&mut player, r#"{"id":5,"method":"tools/call","params":{"name":"ask"}}"#),
        [r#"{"id":1,"method":"elicitation/create","params":{"message":"Really?"}}"#]
    );
    assert_eq!(
        heard(&mut player, r#"{"id":1,"result":{"action":"decline"}}"#),
        [r#"{"id":5,"result":{"said":"yes"}}"#]
    );
    assert_eq!(
        heard(&mut player, r#"{"method":"notifications/roots/list_changed"}"#),
        [r#"{"id":2,"method":"roots/list"}"#]
    );
    assert_eq!(
        heard(&mut player, r#"{"id":2,"error":{"code":1,"message":"no"}}"#),
        [r#"{"method":"notifications/message","params":{"data":"read"}}"#]
    );
}

#[test]
fn a_change_that_is_listened_to_comes_after_what_made_it() {
    let messages = [
        r#">{"id":1,"method":"subscriptions/listen","params":{}}"#,
        r#"<{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#">{"id":2,"method":"tools/call","params":{"name":"grow"}}"#,
        r#"<{"id":2,"result":{}}"#,
        r#"<{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
    ];
    let mut player = Player::new(&cassette(&messages), true);
    let listens = heard(&mut player, r#"{"id":7,"method":"subscriptions/listen","params":{}}"#);
    assert_eq!(listens.len(), 1);
    assert!(listens[0].contains(r#""io.modelcontextprotocol/subscriptionId":7"#), "{listens:?}");
    let grown = heard(&mut player, r#"{"id":8,"method":"tools/call","params":{"name":"grow"}}"#);
    let again = heard(
        &mut player,
        r#"{"id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#,
    );
    assert!(again.len() == 1 && again[0].contains(r#""notifications":{"toolsListChanged":true}"#), "{again:?}");
    assert!(grown.len() == 2 && grown[1].contains(r#""io.modelcontextprotocol/subscriptionId":7"#), "{grown:?}");
}

#[test]
fn a_listen_stream_is_acknowledged_although_another_request_came_before_that() {
    let mut player = Player::new(
        &cassette(&[
            r#">{"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#,
            r#">{"id":2,"method":"tools/list"}"#,
            r#"<{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
            r#"<{"id":2,"result":{"tools":[]}}"#,
        ]),
        true,
    );
    let listen = r#"{"id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;
    let said = heard(&mut player, listen);
    assert!(said.len() == 1 && said[0].contains("subscriptionId\":7"), "{said:?}");
    assert_eq!(heard(&mut player, r#"{"id":8,"method":"tools/list"}"#), [r#"{"id":8,"result":{"tools":[]}}"#]);
}

#[test]
fn a_secret_that_was_taken_out_is_any_text() {
    let messages = [
        r#">{"id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"<secret-1>"}}}"#,
        r#"<{"id":1,"result":{"ok":true}}"#,
    ];
    let mut player = Player::new(&cassette(&messages), true);
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"hunter2"}}}"#;
    assert_eq!(heard(&mut player, call), [r#"{"id":1,"result":{"ok":true}}"#]);
}
