//! Unix sockets, listened on and connected to.
#![cfg(unix)]

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tricorn::ErrorKind;
use tricorn::client::{Auth, Client, ClientOptions, Target};
use tricorn::http::HttpOptions;

use super::*;

/// A directory for sockets, which goes with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tricorn unix-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(socket: &Path) -> HttpOptions {
    HttpOptions::new().host(format!("unix:{}", socket.display()))
}

#[tokio::test]
async fn clients_call_over_a_socket() {
    let (it, dir) = (Fixture::new(), Dir::new("call"));
    let socket = dir.at("mcp.sock");
    let serving = within("listening", it.server.serve_http(options(&socket).path("/a/mcp"))).await.unwrap();
    let url = serving.url().to_owned();
    let end = format!("/tricorn%20unix-call-{}/mcp.sock#/a/mcp", std::process::id());
    assert!(url.starts_with("unix:///") && url.ends_with(&end), "{url}");
    assert_eq!(serving.local_addr(), None);
    let encoded = socket.to_str().unwrap().replace('/', "%2F").replace(' ', "%20");
    for url in [url, format!("http+unix://{encoded}/a/mcp")] {
        for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
            let options = ClientOptions::new().revision(revision);
            let target = Target::from_text(&url).unwrap();
            let client = within("connecting", Client::connect(&target, &options)).await.unwrap();
            for round in 0..3 {
                let added = client.call_tool("add", json!({"a": round, "b": 2})).await.unwrap();
                assert_eq!(added.text(), (round + 2).to_string(), "{revision}");
            }
            within("closing", client.close()).await;
        }
    }
    // A proxy passes on a name that is its own. Pages are refused as ever.
    let ask = |more: &str| {
        let body = modern(1, "tools/list", json!({})).to_string();
        format!(
            "POST /a/mcp HTTP/1.1\r\nHost: mcp.example.com\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nConnection: close\r\n\
             {more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for (more, status) in [("", "200"), ("Origin: https://evil.example.com\r\n", "403")] {
        let mut stream = within("connecting", UnixStream::connect(&socket)).await.unwrap();
        stream.write_all(ask(more).as_bytes()).await.unwrap();
        let mut answer = String::new();
        within("the answer", stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    serving.close();
    within("the end", serving.join()).await;
    assert!(!socket.exists(), "the file is left");
}

#[tokio::test]
async fn a_socket_that_nobody_listens_on_is_taken_over() {
    let (it, dir) = (Fixture::new(), Dir::new("left"));
    let socket = dir.at("mcp.sock");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.symlink_metadata().unwrap().file_type().is_socket());
    let first = within("listening", it.server.serve_http(options(&socket))).await.unwrap();

    let error = within("refusing", it.server.serve_http(options(&socket))).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.message().contains("cannot listen on unix:/") && error.message().contains("in use"), "{error}");
    // The file of another program that has taken its place stays.
    std::fs::remove_file(&socket).unwrap();
    let other = UnixListener::bind(&socket).unwrap();
    first.close();
    within("the end", first.join()).await;
    assert!(socket.exists());
    drop(other);

    let file = dir.at("file");
    std::fs::write(&file, "kept").unwrap();
    let error = within("refusing", it.server.serve_http(options(&file))).await.err().unwrap();
    assert!(error.message().contains("in use"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    let error = within("refusing", it.server.serve_http(options(&dir.at("none/mcp.sock")))).await.err().unwrap();
    assert!(error.message().contains("No such file"), "{error}");
}

#[tokio::test]
async fn what_is_no_socket_is_named() {
    let dir = Dir::new("none");
    let nobody = format!("unix:{}", dir.at("nobody.sock").to_str().unwrap().replace(' ', "%20"));
    let target = Target::from_text(&nobody).unwrap();
    let error = Client::connect(&target, &ClientOptions::new()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.message().contains("nobody.sock: cannot connect: No such file"), "{error}");
    let auth = ClientOptions::new().auth(Auth::new());
    let error = Client::connect(&target, &auth).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("\"auth\": a server on a Unix socket"), "{error}");
    for bad in ["unix://mcp.sock", "unix:///run/", "http+unix://run/mcp"] {
        let target = Target::from_text(bad).unwrap();
        let error = Client::connect(&target, &ClientOptions::new()).await.err().unwrap();
        assert!(error.message().contains("expected the path of a socket"), "{bad}: {error}");
    }
}
