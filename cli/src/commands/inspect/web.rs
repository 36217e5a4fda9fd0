//! The page's server: HTTP on the loopback address, for one user.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::apps::Apps;
use super::assets;
use super::gate::{Gate, Refusal};
use super::hub::Hub;
use super::questions::{Answer, Questions};
use super::session::{Ask, Session};
use crate::output::Screen;

/// Connections at once. A browser opens six.
const CONNECTIONS: usize = 64;
/// Pages that hear of what happens; browsers have six connections for all pages of one server, and calls need some.
const PAGES: usize = 4;
/// The longest body in bytes.
const LONGEST: usize = 16 << 20;
/// Time for a request's head, and between signs of life on a stream.
const HEAD: Duration = Duration::from_secs(10);
const ALIVE: Duration = Duration::from_secs(15);

/// Everything that a request may need.
pub(super) struct Site {
    pub(super) gate: Gate,
    pub(super) hub: Arc<Hub>,
    pub(super) session: Arc<Session>,
    pub(super) questions: Arc<Questions>,
    pub(super) apps: Arc<Apps>,
    pub(super) screen: Screen,
    pages: Mutex<VecDeque<Arc<Notify>>>,
}

impl Site {
    pub(super) fn new(
        gate: Gate,
        hub: Arc<Hub>,
        session: Arc<Session>,
        questions: Arc<Questions>,
        apps: Arc<Apps>,
        screen: Screen,
    ) -> Self {
        Self { gate, hub, session, questions, apps, screen, pages: Mutex::default() }
    }

    /// Serves until it is dropped.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // No more descriptors, as a rule: those that are in use come back.
                    self.screen.warn(&format!("the page's server: {error}"));
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            };
            let site = self.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let site = site.clone();
                    async move { Ok::<_, Infallible>(site.answer(request).await) }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(HEAD);
                // A browser that goes away in the middle is no news.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
                drop(permit);
            });
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Content> {
        let path = request.uri().path().to_owned();
        let headers = request.headers();
        if let Err(refusal) = self.gate.host(headers) {
            return refused(refusal);
        }
        let Some(path) = path.strip_prefix(&self.gate.base) else { return plain(StatusCode::NOT_FOUND, "not found") };
        let changes = request.method() != Method::GET;
        if let (false, "", Some(token)) = (changes, path, token(request.uri().query())) {
            return self.open(&request, token);
        }
        if let Err(refusal) = self.gate.page(headers, changes) {
            return refused(refusal);
        }
        match (request.method(), path) {
            (&Method::GET, "events") => self.events(&request),
            (&Method::GET, "cassette") => self.cassette().await,
            (&Method::GET, path) => match path.strip_prefix("app/") {
                Some(number) => self.app(number, request.uri().query()),
                None => asset(path),
            },
            (&Method::POST, path) => {
                let path = path.to_owned();
                self.post(&path, request).await
            }
            _ => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and POST only");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
                response
            }
        }
    }

    /// Exchanges the link's token for a cookie. The way on is a link of the page itself: the browser would keep the cookie
    /// back on a redirect, if the link was followed from elsewhere.
    fn open(&self, request: &Request<Incoming>, token: &str) -> Response<Content> {
        match self.gate.open(request.headers(), token) {
            Ok(()) => {
                let mut response = made(StatusCode::OK, "text/html; charset=utf-8", assets::OPENED);
                if let Ok(cookie) = HeaderValue::from_str(&self.gate.set_cookie()) {
                    response.headers_mut().insert(SET_COOKIE, cookie);
                }
                response
            }
            // Opened before in this browser: by its history, or by another click.
            Err(_) if self.gate.page(request.headers(), false).is_ok() => {
                made(StatusCode::OK, "text/html; charset=utf-8", assets::OPENED)
            }
            Err((refusal, is_last)) => {
                if is_last {
                    self.screen.line("the link was opened again, elsewhere; if that was you, a new one:");
                    self.screen.line(&self.gate.link());
                }
                refused(refusal)
            }
        }
    }

    /// The stream of all that happens, from what the page has seen last.
    fn events(self: Arc<Self>, request: &Request<Incoming>) -> Response<Content> {
        let seen = request.headers().get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let replaced = self.another_page();
            tokio::select! {
                () = self.tell(&sender, seen) => {}
                () = replaced.notified() => drop(sender.send(Bytes::from_static(b"event: replaced\ndata: {}\n\n")).await),
            }
            self.pages().retain(|page| !Arc::ptr_eq(page, &replaced));
        });
        let mut response = made(StatusCode::OK, "text/event-stream", "");
        *response.body_mut() = Content::Stream(receiver);
        response
    }

    fn pages(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more page; the oldest one ends where there are too many.
    fn another_page(&self) -> Arc<Notify> {
        let page = Arc::new(Notify::new());
        let mut pages = self.pages();
        if pages.len() >= PAGES
            && let Some(oldest) = pages.pop_front()
        {
            oldest.notify_one();
        }
        pages.push_back(page.clone());
        page
    }

    /// Sends what happens, as fast as the page reads.
    async fn tell(&self, sender: &mpsc::Sender<Bytes>, seen: u64) {
        // A number of an earlier run of the command says nothing.
        let last = self.hub.last();
        let seen = if seen > last { 0 } else { seen };
        let (mut log, mut news) = (seen, last);
        let mut text = format!("retry: 500\nevent: begin\ndata: {{\"anew\":{}}}\n\n", seen == 0);
        for (event, data) in self.session.shown() {
            text.push_str(&format!("event: {event}\ndata: {data}\n\n"));
        }
        text.push_str(&format!("event: questions\ndata: {}\n\n", self.questions.shown()));
        if sender.send(text.into()).await.is_err() {
            return;
        }
        loop {
            let Some(batch) = self.hub.batch(log, news) else {
                let upto = log.max(news);
                let happened = tokio::select! {
                    () = self.hub.reaches(upto) => continue,
                    () = sender.closed() => return,
                    () = tokio::time::sleep(ALIVE) => sender.send(Bytes::from_static(b": alive\n\n")).await,
                };
                match happened {
                    Ok(()) => continue,
                    Err(_) => return,
                }
            };
            // The log up to where the news begin comes alone.
            (log, news) = (batch.upto.max(log), batch.upto.max(news));
            if sender.send(batch.text.into()).await.is_err() {
                return;
            }
        }
    }

    fn app(&self, number: &str, query: Option<&str>) -> Response<Content> {
        let Some(app) = number.parse().ok().and_then(|number| self.apps.get(number)) else {
            return plain(StatusCode::NOT_FOUND, "this user interface is no longer kept: open it again");
        };
        let mut response = made(StatusCode::OK, "text/html; charset=utf-8", app.html().to_owned());
        let policy = app.policy(&self.gate.origin(), query == Some("reaches"));
        let headers = response.headers_mut();
        match HeaderValue::from_str(&policy) {
            Ok(policy) => drop(headers.insert(CONTENT_SECURITY_POLICY, policy)),
            Err(_) => return plain(StatusCode::INTERNAL_SERVER_ERROR, "its origins cannot be written"),
        }
        headers.remove(X_FRAME_OPTIONS);
        headers.insert(
            "permissions-policy",
            HeaderValue::from_static("camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=()"),
        );
        response
    }

    async fn cassette(&self) -> Response<Content> {
        let session = self.session.clone();
        let Ok(text) = tokio::task::spawn_blocking(move || session.cassette()).await else {
            return plain(StatusCode::INTERNAL_SERVER_ERROR, "the export has failed");
        };
        let mut response = made(StatusCode::OK, "application/jsonl", text);
        let name = HeaderValue::from_static("attachment; filename=\"inspect.jsonl\"");
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
        response
    }

    async fn post(&self, path: &str, request: Request<Incoming>) -> Response<Content> {
        let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
        if !is_json {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected application/json");
        }
        let Ok(body) = Limited::new(request.into_body(), LONGEST).collect().await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, format!("expected {LONGEST} bytes at most"));
        };
        let body = body.to_bytes();
        let outcome = match path {
            "start" => read(&body).and_then(|ask: Ask| self.session.start(ask)),
            "cancel" => read(&body).map(|Named { call }| self.session.cancel(&call)),
            "answer" => read(&body).and_then(|answer: Answer| match self.questions.answer(answer) {
                true => Ok(()),
                false => Err("the question does not wait any more".to_owned()),
            }),
            "roots" => read(&body).and_then(|roots: Vec<Value>| self.session.set_roots(roots)),
            "reconnect" => {
                self.session.clone().reconnect();
                Ok(())
            }
            "clear" => {
                self.hub.clear();
                Ok(())
            }
            _ => return plain(StatusCode::NOT_FOUND, "not found"),
        };
        match outcome {
            Ok(()) => made(StatusCode::ACCEPTED, "application/json", "{}"),
            Err(why) => plain(StatusCode::BAD_REQUEST, why),
        }
    }
}

#[derive(Deserialize)]
struct Named {
    call: String,
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

fn token(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn asset(path: &str) -> Response<Content> {
    match assets::find(path) {
        Some((kind, text)) => made(StatusCode::OK, kind, text),
        None => plain(StatusCode::NOT_FOUND, "not found"),
    }
}

fn refused(refusal: Refusal) -> Response<Content> {
    plain(StatusCode::FORBIDDEN, refusal.text())
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Content> {
    made(status, "text/plain; charset=utf-8", text)
}

fn made(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Content> {
    let mut response = Response::new(Content::Whole(Some(text.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CONTENT_SECURITY_POLICY, assets::POLICY),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    response
}

/// The body of an answer.
pub(super) enum Content {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(receiver) => receiver.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
