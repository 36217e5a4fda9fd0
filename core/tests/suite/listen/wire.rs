//! Tests of the messages over HTTP, as they are.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tricorn::http::Body;

use super::{MODERN, within};

/// A way to a server that breaks when it is told to.
pub(crate) struct Wire(std::net::SocketAddr, Arc<Notify>);

impl Wire {
    pub(crate) async fn to(server: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, cut) = (listener.local_addr().unwrap(), Arc::new(Notify::new()));
        let cuts = cut.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let cut = cuts.clone();
                tokio::spawn(async move {
                    let cut = cut.notified();
                    let mut far = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        () = cut => {}
                    }
                });
            }
        });
        Self(address, cut)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.0)
    }

    pub(crate) fn cut(&self) {
        self.1.notify_waiters();
    }
}

/// A request to listen, as a correct client sends it.
pub(crate) fn request(id: Value, accept: &str, filter: Value) -> Request<Full<Bytes>> {
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"_meta": meta, "notifications": filter});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params});
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", accept)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "subscriptions/listen")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap()
}

/// The next message of a stream; `None` at its end.
pub(crate) async fn event(body: &mut Body) -> Option<Value> {
    loop {
        let frame = within("an event", body.frame()).await?.unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: ")) {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

pub(crate) const BOTH: &str = "application/json, text/event-stream";
