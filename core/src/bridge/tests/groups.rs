//! A host's group of clients.

use super::*;

/// Waits for the outcome of an operation.
async fn settled(it: &Fixture, op: u64) -> Value {
    loop {
        for delivery in it.next().await {
            match delivery {
                Delivery::Settle { op: known, outcome } if known == op => {
                    return match outcome {
                        Ok(result) => text(&result),
                        Err(error) => json!({"error": error.message()}),
                    };
                }
                Delivery::Call { key, .. } => assert!(it.bridge.complete(key, Answer::Text("called".into()))),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn a_group_gives_each_server_a_client() {
    let it = Fixture::new();
    let gone = json!({"mcpServers": {"gone": {"command": "/no/such/program"}, "wrong": {}, "off": {"disabled": true}}});
    let group = ClientGroup::new(&it.bridge, &gone.to_string(), r#"{"prefix": "always"}"#).expect("a group");
    assert_eq!(group.names(), ["gone", "wrong"]);
    assert!(group.client("gone", 10).is_some() && group.client("other", 11).is_none());
    let client = group.add_server("here", 12, &it.server).expect("added");
    group.connect(1);
    let connected = settled(&it, 1).await;
    assert_eq!(connected["servers"]["here"]["serverInfo"]["name"], "s", "{connected}");
    assert_eq!(connected["failures"]["gone"]["kind"], "transport", "{connected}");
    assert_eq!(connected["failures"]["wrong"]["kind"], "misuse", "{connected}");
    assert_eq!(text(&group.failures()), connected["failures"]);

    group.list(2, "tool", "");
    let listed = settled(&it, 2).await;
    assert_eq!(listed["entries"][0]["name"], "here_t", "{listed}");
    assert_eq!(
        (&listed["entries"][0]["server"], &listed["entries"][0]["definition"]["name"]),
        (&json!("here"), &json!("t"))
    );
    group.route(3, "tool", "here_t");
    assert_eq!(settled(&it, 3).await, json!({"server": "here", "name": "t"}));
    group.route(4, "tool", "t");
    assert!(settled(&it, 4).await["error"].as_str().is_some_and(|e| e.contains("did you mean \"here_t\"?")));
    client.request(5, "tools/call", Some(RawJson::trusted(r#"{"name": "t"}"#)), "");
    assert_eq!(settled(&it, 5).await["content"][0]["text"], "called");
    client.connect(6);
    assert!(settled(&it, 6).await["error"].as_str().is_some_and(|e| e.contains("connect")));

    group.reconnect(7, "here");
    assert_eq!(settled(&it, 7).await["transport"], "memory");
    client.request(8, "tools/list", None, "");
    assert_eq!(settled(&it, 8).await["tools"][0]["name"], "t");
    group.remove(9, "here");
    assert_eq!(settled(&it, 9).await, true);
    client.request(10, "tools/list", None, "");
    assert!(settled(&it, 10).await.get("error").is_some(), "its connection has ended");
    group.close(11);
    assert_eq!(settled(&it, 11).await, json!({}));
    assert!(group.names().is_empty());
}
