//! Newline-delimited messages over pipes: the server's own standard streams, and a child's from the client's side.

use std::fs::File;
use std::io::ErrorKind as IoKind;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::call::Link;
use crate::driver::{Peer, Use, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::idiom::named;
use crate::jsonrpc::{DecodeError, MARK};
use crate::protocol::{Connection, Input, Origin, Transport};
use crate::server::{Meter, Open, Server};
use crate::streams::{self, Out, is_hung_up};
use crate::transport::lines::{Line, Lines, Oversized};
use crate::transport::own::{self, InUse};
use crate::transport::sink::{Backlog, LineSink};

/// After the end of input, running calls have this long to be answered.
const DRAIN: Duration = Duration::from_millis(500);

impl Server {
    /// Serves on the process's standard streams until input ends. Calls that are running then have half a second to
    /// be answered; the rest is cancelled. So it is when nobody reads the output any more.
    ///
    /// Meanwhile the streams belong to the protocol: the program and what it starts find the end of input in place of
    /// the one, and what they print goes to stderr.
    ///
    /// # Errors
    /// A mistake in the server's definition, or standard streams that cannot be used.
    pub async fn serve_stdio(&self) -> Result<()> {
        self.serve_own(false, None).await
    }

    /// As [`serve_stdio`](Self::serve_stdio), with what caused it; `kept`: giving the streams back is left to the caller.
    pub(crate) async fn serve_own(&self, kept: bool, origin: Option<Origin>) -> Result<()> {
        self.serving_own(kept, origin).await
    }

    /// Boxed by a function that is not `async`: what those do is compiled again in each program that calls them.
    fn serving_own(&self, kept: bool, origin: Option<Origin>) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> {
        Box::pin(self.serve_streams(kept, origin))
    }

    async fn serve_streams(&self, kept: bool, origin: Option<Origin>) -> Result<()> {
        self.check()?;
        let in_use = InUse::begin()?;
        let uses = Use::begin(self).await?;
        let served = match own::take(&in_use) {
            Ok((input, output, taken)) => {
                // Not to be given back when this future is dropped either.
                let taken = if kept { own::keep(taken) } else { Some(taken) };
                let served = self.serve_pipes(input, output, origin).await;
                drop(taken);
                served
            }
            Err(error) => Err(error),
        };
        uses.end().await;
        served
    }

    /// Dropped before its end, it ends the connection.
    async fn serve_pipes(&self, input: File, output: File, origin: Option<Origin>) -> Result<()> {
        let transport = Transport { origin, ..Transport::new("stdio") };
        let connection = Connection::new(self.facts(), Arc::new(transport));
        let io = |e: std::io::Error| Error::new(ErrorKind::Transport, format!("standard streams: {e}")).caused_by(e);
        // Reading ends when serving does.
        let (pipes, _still) = streams::Input::new(input, &output).map_err(io)?;
        let sink = Arc::new(LineSink::new(Out::new(output), self.options().max_queued_notifications));
        let limits = self.limits();
        let peer = Peer::new(connection, limits, self.shared.router.clone(), |_| sink.clone());
        let serving = Serving::new(self, peer.clone());
        let meter: Arc<dyn Meter> = peer.clone();
        self.shared.add_meter(&meter);
        let link: Arc<dyn Link> = peer.clone();
        self.shared.join(&link);
        let backlog = sink.backlog();
        let (done, finished) = oneshot::channel();
        let reader = Reader { handle: runtime::handle(), peer: Arc::downgrade(&peer), backlog: backlog.clone() };
        let last = Arc::downgrade(&sink);
        let watched = Arc::downgrade(&peer);
        std::thread::Builder::new()
            .name("tricorn-in".into())
            .spawn(move || {
                // Handlers are polled on this thread first; they may use the runtime.
                let _guard = reader.handle.enter();
                let outcome = reader.read(pipes, limits.max_message_bytes);
                if let Some(peer) = reader.peer.upgrade() {
                    peer.wait_until_idle(DRAIN);
                    peer.close("the input ended");
                }
                if let Some(sink) = last.upgrade() {
                    sink.drain(DRAIN);
                }
                let _ = done.send(outcome);
            })
            .map_err(|e| Error::new(ErrorKind::Transport, format!("thread for stdin: {e}")).caused_by(e))?;
        tokio::select! {
            outcome = finished => outcome.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Transport, "the thread that reads the input ended with a panic"))
            }),
            () = self.shared.stop.wait() => {
                peer.end_streams();
                peer.close("the server was closed");
                drop(serving);
                // Messages that were answered before that are still written: the program may end with this.
                let drain = move || {
                    peer.wait_until_idle(DRAIN);
                    sink.drain(DRAIN);
                };
                let _ = runtime::handle().spawn_blocking(drain).await;
                Ok(())
            }
            outcome = lost(&backlog, &watched) => outcome,
            () = backlog.stalled() => {
                Err(Error::new(ErrorKind::Transport, "the client does not read what it asked for"))
            }
        }
    }
}

/// Resolves when the connection has ended because nobody reads the output, or the client was silent for too long.
async fn lost(backlog: &Backlog, peer: &Weak<Peer>) -> Result<()> {
    backlog.ended().await;
    match backlog.failure() {
        // As the end of input.
        Some(IoKind::BrokenPipe | IoKind::ConnectionReset | IoKind::NotConnected) => Ok(()),
        Some(kind) if kind != IoKind::TimedOut => {
            Err(Error::new(ErrorKind::Transport, format!("standard output cannot be written to: {kind}")))
        }
        None if peer.upgrade().is_some_and(|peer| peer.is_lost()) => Err(Error::new(
            ErrorKind::Transport,
            format!("the client did not answer a ping ({})", named("ping_timeout")),
        )),
        _ => std::future::pending().await,
    }
}

/// A connection that ends when nobody serves it any more.
struct Serving {
    peer: Arc<Peer>,
    _open: Open,
}

impl Serving {
    fn new(server: &Server, peer: Arc<Peer>) -> Self {
        Self { peer, _open: Open::new(server) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.peer.close("serving was given up");
    }
}

/// The line without the byte order mark that some writers begin a stream with.
fn unmarked(line: bytes::Bytes, is_first: &mut bool) -> bytes::Bytes {
    if std::mem::take(is_first) && line.starts_with(MARK) { line.slice(MARK.len()..) } else { line }
}

/// Reads a pipe to its end and feeds the peer. Does not keep it alive: a read cannot be called off.
struct Reader {
    handle: Handle,
    peer: Weak<Peer>,
    backlog: Arc<Backlog>,
}

impl Reader {
    /// Blocks; meant for a thread of its own.
    fn read(&self, mut from: streams::Input, limit: usize) -> Result<()> {
        let mut lines = Lines::new(limit);
        let mut is_first = true;
        while let Some(read) = from.read(|from| lines.fill(from)) {
            let read = match read {
                Err(error) if matches!(error.kind(), IoKind::WouldBlock | IoKind::Interrupted) => continue,
                Err(error) if is_hung_up(&error) => 0,
                read => read?,
            };
            let Some(peer) = self.peer.upgrade() else { return Ok(()) };
            // The answers to all the lines of one read go out together.
            peer.cork();
            while let Some(line) = lines.next() {
                match line {
                    Line::Frame(frame) => peer.receive(&unmarked(frame, &mut is_first)),
                    Line::TooLong(line) => peer.handle(Input::Invalid(too_long(&line, limit))),
                }
                // Back-pressure: the rest stays in the pipe.
                if peer.is_full() {
                    peer.uncork();
                    peer.wait_for_room();
                    peer.cork();
                }
                if self.backlog.is_full() {
                    peer.uncork();
                    self.handle.block_on(self.backlog.room());
                    peer.cork();
                }
            }
            match if read == 0 { lines.rest() } else { None } {
                Some(Line::Frame(frame)) => peer.receive(&unmarked(frame, &mut is_first)),
                Some(Line::TooLong(line)) => peer.handle(Input::Invalid(too_long(&line, limit))),
                None => {}
            }
            peer.uncork();
            if read == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn too_long(line: &Oversized, limit: usize) -> DecodeError {
    let bytes = line.bytes;
    if line.is_over_budget {
        let message =
            format!("message of {bytes} bytes is more than this process may still keep (max_memory): try again later");
        return DecodeError::of(&line.outline, message).beyond("max_memory");
    }
    let message = format!("message of {bytes} bytes is longer than the limit of {limit} (max_message_bytes)");
    DecodeError::of(&line.outline, message).beyond("max_message_bytes")
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io::{Read, Write};
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use super::*;

    fn pipe() -> (File, File) {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        (reader.into(), writer.into())
    }

    #[tokio::test]
    async fn a_connection_ends_with_its_future() {
        let server = Server::new("s");
        let ((input, _near), (mut answers, output)) = (pipe(), pipe());
        {
            let mut serving = pin!(server.serve_pipes(input, output, None));
            assert!(serving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(server.usage().connections, 1);
        }
        assert_eq!(server.usage().connections, 0);
        // Nobody holds the output any more, although the input can still be read.
        let mut rest = Vec::new();
        answers.read_to_end(&mut rest).expect("the end");
        assert!(rest.is_empty());
    }

    #[tokio::test]
    async fn what_is_answered_is_written_before_serving_ends() {
        let server = Server::new("s");
        let ((input, mut near), (mut answers, output)) = (pipe(), pipe());
        for id in 0..1000 {
            writeln!(near, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).expect("written");
        }
        let own = server.clone();
        let serving = tokio::spawn(async move { own.serve_pipes(input, output, None).await });
        let mut first = [0; 1];
        let (mut answers, first) =
            tokio::task::spawn_blocking(move || answers.read_exact(&mut first).map(|()| (answers, first)))
                .await
                .expect("a thread")
                .expect("an answer");
        server.close();
        serving.await.expect("a task").expect("the end");
        drop(near);
        let mut text = String::new();
        answers.read_to_string(&mut text).expect("text");
        assert!(first == *b"{" && text.ends_with("}\n"), "whole answers");
    }

    /// Never answers, and cannot bear to be cancelled.
    struct Fragile;

    impl crate::Handler for Fragile {
        fn call(&self, _: crate::Context, _: crate::jsonrpc::RawJson, reply: crate::Reply) {
            std::mem::forget(reply);
        }

        fn cancel(&self, _: &crate::Context, _: Option<&str>) {
            panic!("in cancel");
        }
    }

    #[tokio::test]
    async fn a_panic_where_input_is_read_ends_nothing() {
        let server = Server::new("s");
        server.add_tool(crate::model::Tool::new("t", ""), Arc::new(Fragile)).expect("added");
        let ((input, mut near), (mut answers, output)) = (pipe(), pipe());
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        ] {
            writeln!(near, "{line}").expect("written");
        }
        drop(near);
        server.serve_pipes(input, output, None).await.expect("the end");
        let mut said = [0; 4096];
        let count = answers.read(&mut said).expect("answers");
        assert!(String::from_utf8_lossy(&said[..count]).contains(r#""id":3"#), "the next request is answered");
    }

    #[tokio::test]
    async fn calls_are_counted() {
        let server = Server::new("s");
        let (started, starts) = tokio::sync::oneshot::channel();
        server.add_tool(crate::model::Tool::new("t", ""), Arc::new(Waits(Mutex::new(Some(started))))).expect("added");
        let ((input, mut near), (_answers, output)) = (pipe(), pipe());
        let own = server.clone();
        let serving = tokio::spawn(async move { own.serve_pipes(input, output, None).await });
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        writeln!(near, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","_meta":{meta}}}}}"#)
            .expect("written");
        let reply = starts.await.expect("a call");
        assert_eq!(server.usage().in_flight, 1);
        reply.text("done");
        assert_eq!(server.usage().in_flight, 0);
        drop(near);
        serving.await.expect("a task").expect("the end");
    }

    /// Leaves its answer to the test.
    struct Waits(Mutex<Option<tokio::sync::oneshot::Sender<crate::Reply>>>);

    impl crate::Handler for Waits {
        fn call(&self, _: crate::Context, _: crate::jsonrpc::RawJson, reply: crate::Reply) {
            let test = self.0.lock().expect("unpoisoned").take();
            drop(test.map(|test| test.send(reply)));
        }
    }
}
