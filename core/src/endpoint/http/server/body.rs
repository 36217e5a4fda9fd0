use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::exchange::Exchange;
use super::outlet::{End, Next};
use crate::driver::runtime;
use crate::transport::sse;

/// The body of a response: one JSON text, or a stream of events. Dropped before its end, the client has gone away.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    Events(Box<Events>),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    pub(in crate::endpoint::http) fn full(text: impl Into<Bytes>) -> Self {
        Self(Kind::Full(text.into()))
    }

    pub(super) fn events(events: Events) -> Self {
        Self(Kind::Events(Box::new(events)))
    }

    /// Returns true if it is a stream that answers nobody and waits for news.
    pub(super) fn waits(&self) -> bool {
        matches!(&self.0, Kind::Events(events) if events.exchange.waits())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Kind::Full(text) if text.is_empty() => None,
            Kind::Full(text) => Some(std::mem::take(text)),
            Kind::Events(events) => std::task::ready!(events.poll(cx)),
        };
        Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(text) => text.is_empty(),
            Kind::Events(events) => events.done && events.ready.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Full(_) => "Body(full)",
            Kind::Events(_) => "Body(events)",
        })
    }
}

/// An exchange's messages as events.
pub(super) struct Events {
    exchange: Exchange,
    ready: VecDeque<Bytes>,
    done: bool,
    quiet: Quiet,
    /// Runs out with the access token that opened the stream.
    until: Option<Quiet>,
}

impl Events {
    /// Starts with what was read already.
    pub(super) fn new(exchange: Exchange, first: Option<Next>, keep_alive: Duration) -> Self {
        let until = exchange.until.map(Quiet::new);
        let mut events = Self { exchange, ready: VecDeque::new(), done: false, quiet: Quiet::new(keep_alive), until };
        // Where nothing comes there is nothing to come back for.
        if !matches!(&first, Some(Next::End(end)) if *end != End::Paused) {
            events.ready.extend(events.exchange.first());
        }
        match first {
            Some(next) => events.push(next),
            // Something has to be written, or else the head may wait for it.
            None if events.ready.is_empty() => events.ready.push_back(sse::KEEP_ALIVE),
            None => {}
        }
        events
    }

    fn push(&mut self, next: Next) {
        #[cfg(feature = "redis")]
        if let Next::Message(message) = &next {
            self.exchange.took(message.text.len());
        }
        match next {
            Next::Message(message) => self.ready.extend(sse::event(message.id, message.text)),
            Next::Answer(answer) => {
                self.ready.extend(sse::event(answer.id, answer.text));
                self.done = true;
            }
            Next::End(end) => {
                let why = match end {
                    End::TooSlow => Some("closed: the reader is too slow (max_queued_notifications)"),
                    End::ServerClosed => Some("closed: the server was closed"),
                    End::SessionEnded => Some("closed: the session has ended"),
                    End::MadeRoom => Some("closed: it made room for another (max_connections)"),
                    #[cfg(feature = "redis")]
                    End::Unheard => Some("closed: the process that answers is not heard of; come again for the rest"),
                    End::Answered | End::Cancelled | End::Paused | End::Moved => None,
                };
                self.ready.extend(why.map(sse::comment));
                self.done = true;
            }
        }
        if self.done {
            self.exchange.finish();
        }
        self.quiet.restart();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Poll::Ready(Some(chunk));
            }
            if self.done {
                return Poll::Ready(None);
            }
            if self.until.as_mut().is_some_and(|until| until.poll(cx).is_ready()) {
                if let Some(left) = self.exchange.still_lasts() {
                    self.until = Some(Quiet::new(left));
                    continue;
                }
                // No answer and no end in order: whoever listens comes again, with another token.
                self.ready.push_back(sse::comment("closed: the access token has expired"));
                self.done = true;
                continue;
            }
            match self.exchange.outlet().poll(cx) {
                Poll::Ready(next) => self.push(next),
                Poll::Pending => {
                    std::task::ready!(self.quiet.poll(cx));
                    self.ready.push_back(sse::KEEP_ALIVE);
                    self.quiet.restart();
                }
            }
        }
    }
}

/// A timer that runs while nothing happens. Costs nothing until it is asked.
pub(super) struct Quiet {
    time: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    stale: bool,
}

impl Quiet {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, timer: None, stale: false }
    }

    /// Something happened.
    pub(super) fn restart(&mut self) {
        self.stale = true;
    }

    /// Resolves when nothing has happened for the whole time.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stale = std::mem::take(&mut self.stale);
        let timer = match &mut self.timer {
            Some(timer) => {
                if stale {
                    timer.as_mut().reset(Instant::now() + self.time);
                }
                timer
            }
            None => {
                // The endpoint may be driven by something that is not tokio.
                let _guard = runtime::handle().enter();
                self.timer.insert(Box::pin(tokio::time::sleep(self.time)))
            }
        };
        timer.as_mut().poll(cx)
    }
}
