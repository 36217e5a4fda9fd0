//! The budget of the process (`max_memory`), which no other test is to share.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::http::HttpOptions;
use tricorn::prelude::*;
use tricorn::server::memory_kept;

const MIB: usize = 1 << 20;

/// The longest anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// A connection from `127.0.0.<last>`.
async fn from(last: u8, port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket.connect(([127, 0, 0, 1], port).into()).await.unwrap()
}

/// A request of a tool with `bytes` of text.
fn call(port: u16, name: &str, bytes: usize) -> String {
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": name, "arguments": {"text": "x".repeat(bytes)}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}})
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The beginning of what comes.
async fn answer(socket: &mut TcpStream) -> String {
    let mut text = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, socket.read(&mut text)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&text[..read]).into_owned()
}

async fn until(what: &str, is: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is() {
        assert!(tokio::time::Instant::now() < end, "{what}: {} bytes are kept", memory_kept());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Bodies without an end, and calls whose clients have gone, are counted by whose they are; what they keep comes back.
#[tokio::test]
async fn one_client_leaves_as_much_as_it_has() {
    let server = Server::new("budget")
        .max_memory(16 * MIB)
        .max_message_bytes(4 * MIB)
        .tool("length", "", |given: Text| async move { Ok(given.text.len().to_string()) })
        .tool("wait", "", |_: Text| async { std::future::pending::<Result<String, HandlerError>>().await });
    let serving = server.serve_http(HttpOptions::new().port(0)).await.unwrap();
    let port = serving.local_addr().expect("a port").port();
    assert_eq!(memory_kept(), 0);

    // Six bodies of 3 MiB without their last bytes: 8 MiB of 16 are this client's.
    let (mut eves, mut refused) = (Vec::new(), 0);
    for _ in 0..6 {
        let mut socket = from(9, port).await;
        let request = call(port, "length", 3 * MIB);
        // The server does not read a refused body to the end.
        let sent = socket.write_all(&request.as_bytes()[..request.len() - 10]).await;
        let answered = tokio::time::timeout(Duration::from_millis(300), socket.readable()).await.is_ok();
        if sent.is_err() || answered {
            assert!(answer(&mut socket).await.starts_with("HTTP/1.1 503"));
            refused += 1;
        }
        eves.push(socket);
    }
    assert!((2..=4).contains(&refused), "{refused} were refused");
    assert!((4 * MIB..=8 * MIB + MIB).contains(&memory_kept()), "{}", memory_kept());

    // Somebody else is served meanwhile, and told what is the matter where there is no room.
    let mut ada = from(1, port).await;
    ada.write_all(call(port, "length", 2 * MIB).as_bytes()).await.unwrap();
    let told = answer(&mut ada).await;
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("2097152"), "{told}");
    let mut more = from(9, port).await;
    let request = call(port, "length", 3 * MIB);
    let _ = more.write_all(request.as_bytes()).await;
    let told = answer(&mut more).await.to_ascii_lowercase();
    assert!(told.starts_with("http/1.1 503") && told.contains("retry-after:"), "{told}");

    drop((eves, more));
    until("bodies without an end", || memory_kept() == 0).await;

    // A call whose client has hung up goes on in a session only; here it is cancelled.
    let mut waiting = from(9, port).await;
    waiting.write_all(call(port, "wait", MIB).as_bytes()).await.unwrap();
    until("a call", || memory_kept() > MIB).await;
    drop(waiting);
    until("the end of the call", || memory_kept() == 0).await;

    serving.close();
    serving.join().await;
    subscriptions_count().await;
    answers_to_a_client_count().await;
}

/// Subscriptions of many sessions of one client.
async fn subscriptions_count() {
    let template = ResourceTemplate::new("test://{+name}", "named");
    let server = Server::new("budget").max_memory(3 * MIB / 2).resource_template(template, || async { Ok("x") });
    let serving = server.serve_http(HttpOptions::new().port(0)).await.unwrap();
    let target = Target::from_text(serving.url()).unwrap();
    let options = ClientOptions::new().revision("2025-11-25");
    let (first, second) =
        (Client::connect(&target, &options).await.unwrap(), Client::connect(&target, &options).await.unwrap());
    let uri = |number: usize| format!("test://{number}{}", "x".repeat(7000));
    let mut refused = None;
    for number in 0..70 {
        for client in [&first, &second] {
            if let Err(error) = client.subscribe(&uri(number)).await {
                refused.get_or_insert((number, error));
            }
        }
    }
    let (number, error) = refused.expect("one client has all");
    assert!((40..65).contains(&number) && error.code() == Some(-32603), "{number}: {error}");
    assert!(error.message().contains("max_memory"), "{error}");
    assert!(memory_kept() <= MIB, "{}", memory_kept());
    for number in 0..70 {
        first.unsubscribe(&uri(number)).await.unwrap();
    }
    first.subscribe(&uri(100)).await.unwrap();
    first.close().await;
    second.close().await;
    serving.close();
    serving.join().await;
    until("subscriptions", || memory_kept() == 0).await;
}

/// Long answers while a client reads them.
async fn answers_to_a_client_count() {
    let server = Server::new("budget").tool("long", "", |_: Context| async { Ok("x".repeat(3 * MIB)) }).tool(
        "short",
        "",
        |_: Context| async { Ok("short") },
    );
    let serving = server.serve_http(HttpOptions::new().port(0)).await.unwrap();
    let target = Target::from_text(serving.url()).unwrap();
    for revision in ["2025-11-25", "2026-07-28"] {
        for (max, fits) in [(4 * MIB, false), (64 * MIB, true)] {
            let options = ClientOptions::new().revision(revision).max_memory(max);
            let client = Client::connect(&target, &options).await.unwrap();
            match client.call_tool("long", serde_json::json!({})).await {
                Ok(result) => assert!(fits && result.text().len() == 3 * MIB),
                Err(error) => {
                    assert!(!fits && error.message().contains("max_memory"), "{error}");
                    assert_eq!(error.kind(), tricorn::ErrorKind::PeerMisbehaved);
                }
            }
            assert_eq!(client.call_tool("short", serde_json::json!({})).await.unwrap().text(), "short");
            client.close().await;
        }
    }
    serving.close();
    serving.join().await;
    until("answers", || memory_kept() == 0).await;
}
