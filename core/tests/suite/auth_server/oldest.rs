//! HTTP+SSE of a protected server: where its clients log in, and how long a stream lasts.

use http_body_util::BodyExt;

use super::*;

#[tokio::test]
async fn who_comes_by_the_streams_url_is_led_to_a_login_for_it() {
    let authority = Authority::new(Mode::Up);
    let server = Server::new("local").auth(authority.fetched_by(Auth::issuer(ISSUER).required_scopes(["base"])));
    let options = HttpOptions::parse(r#"{"port": 0, "sse": true}"#).unwrap();
    let serving = server.serve_http(options).await.unwrap();
    let address = serving.local_addr().unwrap();
    let exchange = async |head: &str, token: Option<&str>| {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!("{head} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{token}");
        let head = format!("{head}Content-Type: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut text = Vec::new();
        // A stream goes on.
        while socket.read_buf(&mut text).await.unwrap() > 0 && !text.ends_with(b"\n\n\r\n") {}
        String::from_utf8(text).unwrap()
    };
    let well_known = "/.well-known/oauth-protected-resource";
    for (path, name) in [("/mcp", "/mcp"), ("/sse", "/sse")] {
        let text = exchange(&format!("GET {well_known}{path}"), None).await;
        assert!(text.contains(&format!("\"resource\":\"http://{address}{name}\"")), "{text}");
    }
    let text = exchange(&format!("GET {well_known}"), None).await;
    assert!(text.contains(&format!("\"resource\":\"http://{address}/mcp\"")), "{text}");
    let few = |aud: &str| authority.key().token(&json!({"aud": format!("http://{address}{aud}"), "scope": "mail"}));
    for (head, name) in [
        ("GET /sse", "/sse"),
        ("POST /sse", "/sse"),
        ("POST /messages?session_id=x", "/sse"),
        ("DELETE /mcp", "/mcp"),
        ("POST /mcp", "/mcp"),
    ] {
        let named = format!("resource_metadata=\"http://{address}{well_known}{name}\"");
        let text = exchange(head, None).await;
        assert!(text.starts_with("HTTP/1.1 401 ") && text.contains(&named), "{head}: {text}");
        if !head.starts_with("POST") {
            let text = exchange(head, Some(&few(name))).await;
            assert!(text.starts_with("HTTP/1.1 403 ") && text.contains(&named), "{head}: {text}");
        }
    }
    for (head, audience, status) in [
        ("GET /sse", "/sse", 200),
        ("GET /sse", "/mcp", 200),
        ("GET /sse", "/other", 401),
        ("POST /messages?session_id=x", "/sse", 404),
        ("DELETE /mcp", "/mcp", 400),
        ("DELETE /mcp", "/sse", 401),
    ] {
        let token = authority.key().token(&json!({"aud": format!("http://{address}{audience}")}));
        let text = exchange(head, Some(&token)).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{head} {audience}: {text}");
    }
    server.close();
    serving.join().await;
}

#[tokio::test]
async fn a_stream_ends_with_the_newest_token_of_its_client() {
    let it = Fixture::new();
    // Clocks may differ by 60 s, of which this one has three left.
    let short = format!("Bearer {}", it.token(&json!({"exp": now() - 57})));
    let open = async || {
        let headers = [("accept", "text/event-stream"), ("authorization", short.as_str())];
        let mut stream = it.start("GET", "/mcp", &headers, String::new()).await.into_body();
        let first = String::from_utf8(stream.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
        let (_, session) = first.trim().split_once('?').unwrap();
        (format!("/mcp?{session}"), stream)
    };
    let post = async |target: &str, bearer: &str| {
        let headers = [("content-type", "application/json"), ("authorization", bearer)];
        it.send("POST", target, &headers, initialize("2024-11-05").to_string()).await.status
    };
    let (renewed, mut stream) = open().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(frame)) = stream.frame().await {
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            let _ = text.contains("protocolVersion").then(|| tell.send(()));
        }
    });
    let long = format!("Bearer {}", it.token(&json!({})));
    assert_eq!(post(&renewed, &long).await, 202);
    told.recv().await.expect("an answer");
    let (_, left) = open().await;
    let ended = tokio::time::timeout(Duration::from_secs(30), left.collect());
    let text = String::from_utf8(ended.await.expect("an end").unwrap().to_bytes().to_vec()).unwrap();
    assert!(text.ends_with(": closed: the access token has expired\n\n"), "{text}");
    // The other one's first token has expired as long ago.
    let ping = legacy("ping", &json!({})).to_string();
    let headers = [("content-type", "application/json"), ("authorization", long.as_str())];
    assert_eq!(it.send("POST", &renewed, &headers, ping).await.status, 202);
}
