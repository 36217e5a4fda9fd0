//! Tests of the conclusions from a server's first answers.

use super::*;

#[tokio::test]
async fn a_modern_server_is_known_by_its_first_answer() {
    let server = Server::new(|seen| match seen.method() {
        "tools/list" => result(seen, &tools(&["add"])),
        "tools/call" => result(seen, &text("5")),
        _ => modern(seen).unwrap_or_else(|| panic!("{seen:?}")),
    })
    .await;
    let options = ClientOptions::new().header("X-Own", "a, b");
    let client = connect_as(&server, &options).await.unwrap();
    assert_eq!(client.revision(), Revision::NEWEST);
    assert_eq!(names(&client).await.unwrap(), ["add"]);
    assert_eq!(call(&client, "größe", json!({})).await.unwrap(), "5");
    within("closing", client.close()).await;
    server.wait_for_connections(0).await;
    let seen = server.seen();
    let version = ("mcp-protocol-version", "2026-07-28");
    assert_eq!(seen[0].protocol_headers(), [("mcp-method", "server/discover"), version]);
    assert_eq!(seen[1].protocol_headers(), [("mcp-method", "tools/list"), version]);
    let name = ("mcp-name", "=?base64?Z3LDtsOfZQ==?=");
    assert_eq!(seen[2].protocol_headers(), [("mcp-method", "tools/call"), name, version]);
    assert_eq!(seen.len(), 3, "no GET, no DELETE: {seen:?}");
    for seen in &seen {
        assert_eq!((seen.verb.as_str(), seen.path.as_str()), ("POST", "/mcp"));
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
        assert_eq!(seen.header("x-own"), Some("a, b"));
        assert_eq!(seen.connection, 1, "one connection is enough");
        let sent = &seen.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(Some(sent.as_str().unwrap()), seen.header("mcp-protocol-version"));
    }
}

#[tokio::test]
async fn whatever_no_modern_server_says_leads_to_initialize() {
    type Say = fn(&Seen) -> Reply;
    let ways: [(&str, Say); 11] = [
        ("400, text", |_| raw("400 Bad Request", &[], "Bad Request: No valid session ID provided")),
        ("400, nothing", |_| raw("400 Bad Request", &[], "")),
        ("400, error without id", |_| error("400 Bad Request", &Value::Null, -32000, &Value::Null)),
        ("400, error with a made-up id", |_| error("400 Bad Request", &json!("server-error"), -32600, &Value::Null)),
        ("404, page", |_| raw("404 Not Found", &["content-type: text/html"], "<html>")),
        ("405", |_| raw("405 Method Not Allowed", &[], "")),
        ("406", |_| raw("406 Not Acceptable", &[], "")),
        ("200, method not found", |seen| error("200 OK", &seen.body["id"], -32601, &Value::Null)),
        ("200, other error as event", |seen| {
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32602, "message": "no"}});
            Reply::Write(vec![SSE_HEAD.into(), event(&error), SSE_END.into()])
        }),
        ("202", |_| raw("202 Accepted", &[], "")),
        ("200, page", |_| raw("200 OK", &["content-type: text/html"], "<html>")),
    ];
    for (what, say) in ways {
        let server = Server::new(move |seen| match seen.method() {
            "server/discover" => say(seen),
            "tools/list" => result(seen, &tools(&["add"])),
            _ => legacy(seen, "s-1").unwrap(),
        })
        .await;
        let client = connect(&server).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(client.revision().era(), Era::Legacy, "{what}");
        assert_eq!(names(&client).await.unwrap(), ["add"], "{what}");
        within("closing", client.close()).await;
        let find = |method: &str| server.seen().into_iter().find(|s| s.method() == method).unwrap();
        let session = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s-1")];
        assert_eq!(find("initialize").protocol_headers(), [], "{what}");
        assert_eq!(find("notifications/initialized").protocol_headers(), session, "{what}");
        assert_eq!(find("tools/list").protocol_headers(), session, "{what}");
        let end = server.wait_for("DELETE", |s| s.verb == "DELETE").await;
        assert_eq!(end.protocol_headers(), session, "{what}");
    }
}

#[tokio::test]
async fn a_modern_refusal_is_no_reason_to_initialize() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::new(move |seen| match count.fetch_add(1, Ordering::Relaxed) {
        0 => {
            let data = json!({"supported": ["2026-07-28"], "requested": "x"});
            error("400 Bad Request", &seen.body["id"], -32022, &data)
        }
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    assert_eq!(client.revision().era(), Era::Modern);
    assert_eq!(server.methods(), ["server/discover", "server/discover"]);
    drop(client);
    let (probe, both) = (&["server/discover"][..], &["server/discover", "initialize"][..]);
    for (status, code, kind, asked) in [
        ("400 Bad Request", Some(-32021), ErrorKind::Rpc, probe),
        ("400 Bad Request", Some(-32020), ErrorKind::Rpc, probe),
        ("401 Unauthorized", None, ErrorKind::Auth, probe),
        ("429 Too Many Requests", None, ErrorKind::Transport, probe),
        ("302 Found", None, ErrorKind::Transport, probe),
        // A failure may be about the method.
        ("403 Forbidden", Some(-32000), ErrorKind::Auth, both),
        ("500 Internal Server Error", None, ErrorKind::Transport, both),
        ("503 Service Unavailable", None, ErrorKind::Transport, both),
    ] {
        let server = Server::new(move |seen| match code {
            Some(code) => error(status, &seen.body["id"], code, &Value::Null),
            None => raw(status, &["location: http://elsewhere.example/"], "sorry"),
        })
        .await;
        let refused = connect(&server).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{status}: {refused}");
        assert_eq!(server.methods(), asked, "{status}");
        assert_eq!(refused.message().contains("\"revision\""), asked == both, "{refused}");
    }
}

#[tokio::test]
async fn nobody_there_is_a_transport_error_that_says_where() {
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let target = Target::from_text(&format!("http://{free}/mcp")).unwrap();
    let failed = within("failing", Client::connect(&target, &ClientOptions::default())).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Transport);
    assert!(failed.message().contains(&free.to_string()) && failed.message().contains("refused"), "{failed}");
}

#[tokio::test]
async fn localhost_is_found_whichever_address_the_server_listens_on() {
    let server = Server::new(|seen| modern(seen).unwrap()).await;
    let target = Target::from_text(&format!("http://localhost:{}", server.port)).unwrap();
    let client = within("connecting", Client::connect(&target, &ClientOptions::default())).await.unwrap();
    assert_eq!(server.seen()[0].path, "/");
    drop(client);
}
