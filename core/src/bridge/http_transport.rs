//! A client's HTTP over a function of the host's: options as JSON, in which a number names it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Bridge;
use super::functions::{Function, Nothing};
use crate::call::BoxFuture;
use crate::client::{ClientOptions, HttpRequest, HttpResponse, HttpTransport};
use crate::driver::runtime;
use crate::error::{Error, ErrorKind, Result};

/// A stream may be silent for as long as its server likes; requests have timeouts of their own.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The host has that long to forget an exchange.
const CLOSING: Duration = Duration::from_secs(10);

const OPTION: &str = "http_transport";

/// A client's options, in which `http_transport` is `{"handler"}`. The handler gets
/// `{"op": "request", "exchange", "method", "url", "headers": [[name, value]], "body"?}` and gives `{"status", "headers":
/// [[name, value]]}`; then, one after the other, `{"op": "read", "exchange"}` and gives `{"text", "end"?: bool}`, the next
/// piece and if it is the last one, or `{}` after the end; or `{"op": "close", "exchange"}`, also of an exchange that is over
/// already, and gives `{}`. `parse` reads what is left.
///
/// # Errors
/// [`Misuse`](ErrorKind::Misuse) naming the option that is unknown or wrong.
pub(super) fn client_options<T>(
    bridge: &Bridge,
    options: &str,
    parse: impl FnOnce(&str) -> Result<T>,
    of: fn(&mut T) -> &mut ClientOptions,
) -> Result<T> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        handler: u32,
    }
    if !options.contains(OPTION) {
        return parse(options);
    }
    let wrong = |why: String| Error::misuse(format!("client options: {why}"));
    let mut members: Map<String, Value> = serde_json::from_str(options).map_err(|e| wrong(e.to_string()))?;
    let Some(given) = members.remove(OPTION).filter(|given| !given.is_null()) else { return parse(options) };
    let expected = |_| wrong(format!("option {OPTION:?}: expected an object with its handler"));
    let Given { handler } = serde_json::from_value(given).map_err(expected)?;
    let mut options = parse(&Value::Object(members).to_string())?;
    let own = of(&mut options);
    *own = std::mem::take(own).http_transport(HostTransport::new(Function::new(bridge, handler, "")));
    Ok(options)
}

struct HostTransport {
    function: Function,
    exchanges: AtomicU64,
}

impl HostTransport {
    fn new(function: Function) -> Self {
        Self { function, exchanges: AtomicU64::new(0) }
    }
}

#[derive(Deserialize)]
struct Head {
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    end: bool,
}

impl HttpTransport for HostTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>> {
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let HttpRequest { method, url, headers, body } = request;
        let mut asked = json!({"op": "request", "exchange": number, "method": method, "url": url, "headers": headers});
        if !body.is_empty() {
            asked["body"] = String::from_utf8_lossy(&body).into_owned().into();
        }
        let head = self.function.ask::<Head>(&asked, PATIENCE);
        let exchange = Exchange { function: self.function.clone(), number, is_open: true };
        Box::pin(async move {
            let Head { status, headers } = head.await.map_err(of_transport)?;
            let mut answer = HttpResponse::new(status).stream(Body { exchange, reading: None });
            answer.headers = headers;
            Ok(answer)
        })
    }
}

fn of_transport(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Misuse | ErrorKind::Cancelled => error,
        _ => Error::new(ErrorKind::Transport, error.message().to_owned()),
    }
}

/// One that the host knows; it hears when it is needed no more.
struct Exchange {
    function: Function,
    number: u64,
    is_open: bool,
}

impl Exchange {
    fn read(&self) -> BoxFuture<Result<Piece>> {
        Box::pin(self.function.ask(&json!({"op": "read", "exchange": self.number}), PATIENCE))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.is_open {
            let closing = self.function.ask::<Nothing>(&json!({"op": "close", "exchange": self.number}), CLOSING);
            runtime::spawn(async move {
                // Its answer changes nothing.
                let _ = closing.await;
            });
        }
    }
}

/// A body that is asked for piece by piece.
struct Body {
    exchange: Exchange,
    reading: Option<BoxFuture<Result<Piece>>>,
}

impl Stream for Body {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if !self.exchange.is_open {
                return Poll::Ready(None);
            }
            let mut asked = self.reading.take().unwrap_or_else(|| self.exchange.read());
            let Poll::Ready(piece) = asked.as_mut().poll(cx) else {
                self.reading = Some(asked);
                return Poll::Pending;
            };
            match piece {
                Ok(Piece { text: Some(text), end }) => {
                    self.exchange.is_open = !end;
                    if !text.is_empty() {
                        return Poll::Ready(Some(Ok(text.into())));
                    }
                }
                Ok(Piece { text: None, .. }) => self.exchange.is_open = false,
                Err(error) => {
                    self.exchange.is_open = false;
                    return Poll::Ready(Some(Err(of_transport(error))));
                }
            }
        }
    }
}
