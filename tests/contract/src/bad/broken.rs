//! HTTP that is wrong: requests byte for byte, and what an honest server may answer.

use super::good_call;
use crate::wire::http::{Endpoint, Request};

/// One broken request.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
    pub(super) without_body: bool,
}

/// Consequence that has to follow.
pub(super) enum Then {
    /// One of these codes.
    Status(&'static [u16]),
    /// One of these codes, or the connection is closed without an answer.
    StatusOrClosed(&'static [u16]),
    /// This many good answers on the same connection.
    Answers(usize),
    /// Nothing: we hang up first.
    HangUp,
}

/// The table.
pub(super) fn cases(endpoint: &Endpoint) -> Vec<Case> {
    let host = endpoint.authority.as_str();
    let good = || good_call(&endpoint.path);
    let bytes = |request: &Request| request.bytes(host);
    let with = |name: &str, value: &str| {
        let mut request = good();
        request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    };
    let twice = |name: &str, value: &str| {
        let mut request = good();
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    };
    let text = |request: &Request| String::from_utf8_lossy(&bytes(request)).into_owned();
    let body = String::from_utf8_lossy(good().body.as_deref().unwrap_or_default()).into_owned();
    let chunked = |chunks: &str| {
        let mut request = with("Transfer-Encoding", "chunked");
        request.body = Some(chunks.as_bytes().to_vec());
        bytes(&request)
    };
    let mut bad_byte = bytes(&with("Mcp-Name", "XXXX"));
    if let Some(place) = bad_byte.windows(4).position(|window| window == b"XXXX") {
        bad_byte[place] = 0xff;
    }
    let mut half = bytes(&good());
    half.truncate(half.len() - 20);
    let two = [bytes(&good()), bytes(&good())].concat();
    let oversized = with("Content-Length", &(5 << 20).to_string());
    let case = |name, bytes: Vec<u8>, then| Case { name, bytes, then, without_body: false };
    vec![
        case("is no HTTP at all", b"hello there\r\n\r\n".to_vec(), Then::StatusOrClosed(&[400])),
        case("is JSON without HTTP", format!("{body}\r\n\r\n").into_bytes(), Then::StatusOrClosed(&[400])),
        case(
            "is a TLS greeting",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(),
            Then::StatusOrClosed(&[400]),
        ),
        case("is HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), Then::StatusOrClosed(&[400, 405, 505])),
        case(
            "has an unknown HTTP version",
            text(&good()).replace("HTTP/1.1", "HTTP/9.9").into_bytes(),
            Then::StatusOrClosed(&[400, 505]),
        ),
        case(
            "has a header without a colon",
            text(&good()).replace("Accept: ", "Accept ").into_bytes(),
            Then::StatusOrClosed(&[400]),
        ),
        case(
            "has a space before the colon",
            text(&good()).replace("Accept: ", "Accept : ").into_bytes(),
            Then::StatusOrClosed(&[400]),
        ),
        case(
            "has a folded header",
            text(&good()).replace("Accept: application/json,", "Accept: application/json,\r\n").into_bytes(),
            Then::StatusOrClosed(&[400]),
        ),
        case("has a NUL in a header", bytes(&with("Mcp-Name", "test_\0text")), Then::StatusOrClosed(&[400])),
        case("has a byte that is not ASCII in Mcp-Name", bad_byte, Then::Status(&[400])),
        case(
            "has no Host",
            text(&good()).replace(&format!("Host: {host}\r\n"), "").into_bytes(),
            Then::StatusOrClosed(&[200, 400, 403, 421]),
        ),
        case(
            "has a 256 KiB header",
            bytes(&with("X-Large", &"x".repeat(256 << 10))),
            Then::StatusOrClosed(&[400, 413, 431]),
        ),
        case(
            "has a 1 MiB target",
            text(&good()).replacen("/mcp", &format!("/mcp?{}", "x".repeat(1 << 20)), 1).into_bytes(),
            Then::StatusOrClosed(&[400, 404, 414, 431]),
        ),
        case(
            "has a thousand headers",
            bytes(&Request {
                headers: (0..1000).map(|n| (format!("X-{n}"), "x".into())).chain(good().headers).collect(),
                ..good()
            }),
            Then::StatusOrClosed(&[400, 431]),
        ),
        case("has a length that is no number", bytes(&with("Content-Length", "many")), Then::StatusOrClosed(&[400])),
        case("has a negative length", bytes(&with("Content-Length", "-1")), Then::StatusOrClosed(&[400])),
        case(
            "has two lengths that disagree",
            bytes(&Request {
                headers: good()
                    .headers
                    .into_iter()
                    .chain([("Content-Length".into(), "5".into()), ("Content-Length".into(), "7".into())])
                    .collect(),
                ..good()
            }),
            Then::StatusOrClosed(&[400]),
        ),
        case("has a length that is too short", bytes(&with("Content-Length", "10")), Then::StatusOrClosed(&[400])),
        case(
            "promises more than the limit and hangs up",
            {
                let mut bytes = bytes(&Request { body: None, ..oversized });
                bytes.extend_from_slice(b"{");
                bytes
            },
            Then::HangUp,
        ),
        case(
            "has length and chunks",
            {
                let mut request = with("Transfer-Encoding", "chunked");
                request.headers.push(("Content-Length".into(), "3".into()));
                request.body = Some(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes());
                bytes(&request)
            },
            Then::StatusOrClosed(&[200, 400]),
        ),
        case(
            "has an unknown transfer coding",
            bytes(&with("Transfer-Encoding", "gzip")),
            Then::StatusOrClosed(&[400, 411, 501]),
        ),
        case("has good chunks", chunked(&format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())), Then::Status(&[200])),
        case(
            "has a chunk size that is no number",
            chunked(&format!("zz\r\n{body}\r\n0\r\n\r\n")),
            Then::StatusOrClosed(&[400]),
        ),
        case(
            "has chunks beyond the limit",
            {
                let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
                chunked(&format!("{}0\r\n\r\n", chunk.repeat(5)))
            },
            Then::Status(&[413]),
        ),
        case(
            "is compressed",
            bytes(&Request {
                body: Some(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\x56\x4a".to_vec()),
                ..with("Content-Encoding", "gzip")
            }),
            Then::Status(&[400, 415]),
        ),
        case("stops in the middle of the head", b"POST /mcp HTTP/1.1\r\nHost: ".to_vec(), Then::HangUp),
        case("stops in the middle of the body", half, Then::HangUp),
        case("hangs up before the answer", bytes(&good()), Then::HangUp),
        case(
            "says HEAD",
            text(&good()).replacen("POST", "HEAD", 1).into_bytes(),
            Then::StatusOrClosed(&[400, 404, 405]),
        ),
        case("says BREW", text(&good()).replacen("POST", "BREW", 1).into_bytes(), Then::Status(&[405, 501])),
        case("goes to another path", text(&good()).replacen("/mcp", "/", 1).into_bytes(), Then::Status(&[404])),
        case(
            "goes to a path with dots",
            text(&good()).replacen("/mcp", "/x/../mcp", 1).into_bytes(),
            Then::Status(&[400, 404]),
        ),
        case("names two versions", bytes(&twice("MCP-Protocol-Version", "2025-11-25")), Then::Status(&[400])),
        case("names two methods", bytes(&twice("Mcp-Method", "tools/list")), Then::Status(&[400])),
        case("names two tools", bytes(&twice("Mcp-Name", "echo")), Then::Status(&[400])),
        case("names two hosts", bytes(&twice("Host", "evil.example.com")), Then::StatusOrClosed(&[400, 403, 421])),
        case(
            "has two origins",
            bytes(&Request {
                headers: good()
                    .headers
                    .into_iter()
                    .chain([
                        ("Origin".into(), format!("http://{host}")),
                        ("Origin".into(), "http://evil.example.com".into()),
                    ])
                    .collect(),
                ..good()
            }),
            Then::Status(&[400, 403]),
        ),
        case("is from our own origin", bytes(&with("Origin", &format!("http://{host}"))), Then::Status(&[200])),
        case("comes twice in one packet", two, Then::Answers(2)),
        case("waits for 100-continue", bytes(&with("Expect", "100-continue")), Then::Status(&[200])),
        case("has an empty body", bytes(&Request { body: Some(Vec::new()), ..good() }), Then::Status(&[400])),
        case("has no body", bytes(&Request { body: None, ..good() }), Then::StatusOrClosed(&[400, 411])),
        case(
            "has a session id that is not ASCII",
            bytes(&Request {
                headers: vec![
                    ("Content-Type".into(), "application/json".into()),
                    ("Accept".into(), "application/json, text/event-stream".into()),
                    ("Mcp-Session-Id".into(), "é\u{7f}".into()),
                ],
                body: Some(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec()),
                ..good()
            }),
            Then::StatusOrClosed(&[400, 404]),
        ),
        case(
            "has a session id of 64 KiB",
            bytes(&Request {
                headers: vec![
                    ("Content-Type".into(), "application/json".into()),
                    ("Accept".into(), "application/json, text/event-stream".into()),
                    ("Mcp-Session-Id".into(), "x".repeat(64 << 10)),
                ],
                body: Some(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec()),
                ..good()
            }),
            Then::StatusOrClosed(&[400, 404, 431]),
        ),
    ]
}
