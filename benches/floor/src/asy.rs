//! The realistic limit for an async SDK: tokio, hyper for HTTP.

use crate::core::{Act, Core};
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// One reader, one writer task behind a channel, one task per call: the usual shape.
pub async fn stdio<R, W>(core: Core, rd: R, mut wr: W, spawn: bool)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let core = Arc::new(core);
    let (tx, mut rx) = mpsc::unbounded_channel::<Vec<u8>>();
    let writer = tokio::spawn(async move {
        let mut batch = Vec::new();
        while let Some(m) = rx.recv().await {
            batch.extend_from_slice(&m);
            while let Ok(m) = rx.try_recv() {
                batch.extend_from_slice(&m);
            }
            if wr.write_all(&batch).await.is_err() || wr.flush().await.is_err() {
                return;
            }
            batch.clear();
        }
    });
    let mut rd = BufReader::with_capacity(1 << 16, rd);
    let mut line = Vec::new();
    loop {
        line.clear();
        match rd.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        if line.len() <= 1 {
            continue;
        }
        if spawn {
            let (core, tx, msg) = (core.clone(), tx.clone(), std::mem::take(&mut line));
            tokio::spawn(async move {
                let mut out = Vec::with_capacity(256);
                match core.handle(&msg, &mut out) {
                    Act::Silent => return,
                    Act::Reply => {}
                    Act::After(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                }
                out.push(b'\n');
                let _ = tx.send(out);
            });
        } else {
            let mut out = Vec::with_capacity(256);
            match core.handle(&line, &mut out) {
                Act::Silent => {}
                Act::Reply => {
                    out.push(b'\n');
                    let _ = tx.send(out);
                }
                Act::After(ms) => {
                    let tx = tx.clone();
                    out.push(b'\n');
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        let _ = tx.send(out);
                    });
                }
            }
        }
    }
    drop(tx);
    let _ = writer.await;
}

async fn serve(
    core: Arc<Core>,
    sse: bool,
    req: Request<hyper::body::Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if req.method() != Method::POST {
        let mut r = Response::new(Full::new(Bytes::new()));
        *r.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return Ok(r);
    }
    let body = match req.into_body().collect().await {
        Ok(b) => b.to_bytes(),
        Err(_) => {
            let mut r = Response::new(Full::new(Bytes::new()));
            *r.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(r);
        }
    };
    let mut out = Vec::with_capacity(256);
    match core.handle(&body, &mut out) {
        Act::Silent => {
            let mut r = Response::new(Full::new(Bytes::new()));
            *r.status_mut() = StatusCode::ACCEPTED;
            return Ok(r);
        }
        Act::Reply => {}
        Act::After(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
    }
    if sse {
        let mut b = BytesMut::with_capacity(out.len() + 32);
        b.put_slice(b"event: message\ndata: ");
        b.put_slice(&out);
        b.put_slice(b"\n\n");
        let mut r = Response::new(Full::new(b.freeze()));
        r.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        r.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        return Ok(r);
    }
    let mut r = Response::new(Full::new(Bytes::from(out)));
    r.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(r)
}

pub async fn http(core: Core, port: u16, sse: bool) {
    let core = Arc::new(core);
    let l = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("bind");
    loop {
        let Ok((s, _)) = l.accept().await else { continue };
        s.set_nodelay(true).ok();
        let core = core.clone();
        tokio::spawn(async move {
            let svc = hyper::service::service_fn(move |r| serve(core.clone(), sse, r));
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(hyper_util::rt::TokioIo::new(s), svc).await;
        });
    }
}
