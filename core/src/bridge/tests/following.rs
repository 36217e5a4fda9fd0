//! A host that follows a task change by change.

use super::*;

const TOOL: &str = r#"{"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}"#;
const QUESTION: &str =
    r#"{"message": "who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}"#;

/// Deliveries in order: calls (`["call", handler, key]`) and settled operations (`[op, outcome]`).
struct Deliveries<'a> {
    it: &'a Fixture,
    left: Vec<Value>,
}

impl Deliveries<'_> {
    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                if let Some(place) = self.left.iter().position(&wanted) {
                    return self.left.remove(place);
                }
                self.left.extend(self.it.next().await.into_iter().filter_map(|delivery| match delivery {
                    Delivery::Call { key, handler, .. } => Some(json!(["call", handler, key])),
                    Delivery::Settle { op, outcome: Ok(result) } => Some(json!([op, text(&result)])),
                    Delivery::Settle { op, outcome: Err(error) } => Some(json!([op, format!("{:?}", error.kind())])),
                    _ => None,
                }));
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), looking).await.expect("a delivery in time")
    }

    async fn settled(&mut self, op: u64) -> Value {
        self.find(|delivery| delivery[0] == op).await[1].take()
    }

    async fn call(&mut self, handler: u32) -> u64 {
        self.find(|delivery| delivery[0] == "call" && delivery[1] == handler).await[2].as_u64().expect("a key")
    }
}

#[tokio::test]
async fn a_host_takes_one_change_of_a_task_after_the_other() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut it = Fixture::new();
        let options = r#"{"name": "s", "tasks": {"task_poll_interval": 0.01}}"#;
        it.server = Server::new(&it.bridge, 1, options).expect("a server");
        it.server.add("tool", TOOL, "", 7).expect("a tool");
        let mut deliveries = Deliveries { it: &it, left: Vec::new() };
        let options = json!({"revision": revision, "tasks": {}}).to_string();
        let client = Client::in_memory(&it.bridge, 2, &it.server, &options).expect("a client");
        client.set_handler("elicitation/create", r#"{"form": {}}"#, 9).expect("a handler");
        let nobodys = || Some(RawJson::from_value(&json!({"taskId": "nobody's"})));
        client.request(1, "tasks/get", nobodys(), r#"{"follow": 7}"#);
        assert_eq!(deliveries.settled(1).await, "Misuse", "not connected");
        client.connect(2);
        deliveries.settled(2).await;
        client.request(3, "tasks/get", None, r#"{"follow": 7}"#);
        assert_eq!(deliveries.settled(3).await, "Misuse", "which task?");
        client.request(4, "tasks/get", nobodys(), r#"{"follow": 7}"#);
        assert_eq!(deliveries.settled(4).await, "Rpc");

        let call = RawJson::from_value(&json!({"name": "slow", "task": {}}));
        client.request(5, "tools/call", Some(call), "");
        let created = deliveries.settled(5).await;
        let key = deliveries.call(7).await;
        let params = || Some(RawJson::from_value(&json!({"taskId": created["task"]["taskId"]})));
        let follow = |op| client.request(op, "tasks/get", params(), r#"{"follow": 8}"#);
        follow(6);
        assert_eq!(deliveries.settled(6).await["status"], "working", "{revision}");
        // Given up and taken up again, it begins with how the task is.
        follow(7);
        it.bridge.settle(7);
        follow(8);
        assert_eq!(deliveries.settled(8).await["status"], "working", "{revision}");
        follow(9);
        it.bridge.set_status(key, "at it");
        let change = deliveries.settled(9).await;
        assert_eq!(change["statusMessage"], "at it", "{revision}");

        follow(10);
        it.bridge.ask(key, 11, "elicitation/create", Some(RawJson::trusted(QUESTION)), "");
        assert_eq!(deliveries.settled(10).await["status"], "input_required", "{revision}");
        follow(12);
        let asked = deliveries.call(9).await;
        let answer = json!({"action": "accept", "content": {"n": "Ada"}});
        assert!(it.bridge.complete(asked, Answer::Value(RawJson::from_value(&answer))));
        assert_eq!(deliveries.settled(11).await["content"]["n"], "Ada", "{revision}");
        assert_eq!(deliveries.settled(12).await["status"], "working", "{revision}");
        follow(13);
        assert!(it.bridge.complete(key, Answer::Text("done".into())));
        assert_eq!(deliveries.settled(13).await["status"], "completed", "{revision}");
        // Each was asked once.
        it.settle().await;
        assert!(!deliveries.left.iter().any(|delivery| delivery[0] == "call"), "{:?}", deliveries.left);
        client.end_listening(8);
        client.close(14);
        deliveries.settled(14).await;
    }
}

#[tokio::test]
async fn a_host_waits_for_the_result_of_a_task() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut it = Fixture::new();
        let options = r#"{"name": "s", "tasks": {"task_poll_interval": 0.01}}"#;
        it.server = Server::new(&it.bridge, 1, options).expect("a server");
        it.server.add("tool", TOOL, "", 7).expect("a tool");
        let mut deliveries = Deliveries { it: &it, left: Vec::new() };
        let options = json!({"revision": revision, "tasks": {}}).to_string();
        let client = Client::in_memory(&it.bridge, 2, &it.server, &options).expect("a client");
        client.connect(1);
        deliveries.settled(1).await;
        client.request(2, "tasks/result", None, r#"{"wait": true}"#);
        assert_eq!(deliveries.settled(2).await, "Misuse", "which task?");
        let mut begin = async |op| {
            client.request(op, "tools/call", Some(RawJson::from_value(&json!({"name": "slow", "task": {}}))), "");
            let created = deliveries.settled(op).await;
            let key = deliveries.call(7).await;
            (key, json!({"taskId": created["task"]["taskId"]}))
        };
        let (key, first) = begin(3).await;
        let (_, second) = begin(4).await;
        let ask = |op, method: &str, task: &Value, options: &str| {
            client.request(op, method, Some(RawJson::from_value(task)), options);
        };
        // A limit is for all of it, and for none of the looks.
        ask(5, "tasks/result", &first, r#"{"wait": true, "timeout": 0.05}"#);
        assert_eq!(deliveries.settled(5).await, "Timeout", "{revision}");
        ask(6, "tasks/result", &first, r#"{"wait": true, "timeout": 0}"#);
        assert!(it.bridge.complete(key, Answer::Text("done".into())));
        assert_eq!(deliveries.settled(6).await["content"][0]["text"], "done", "{revision}");
        ask(7, "tasks/result", &second, r#"{"wait": true}"#);
        ask(8, "tasks/cancel", &second, "");
        deliveries.settled(8).await;
        assert_eq!(deliveries.settled(7).await, "Cancelled", "{revision}");
        client.close(9);
        deliveries.settled(9).await;
    }
}
