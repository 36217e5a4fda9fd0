//! Newline-delimited messages over pipes: the server's own standard streams, and a child's from the client's side.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::lines::{Line, Lines};
use super::sink::{Backlog, LineSink};
use crate::call::Link;
use crate::driver::{Peer, Use, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{Connection, Transport};
use crate::report;
use crate::server::{Meter, Open, Server};

/// After the end of input, running calls have this long to be answered.
const DRAIN: Duration = Duration::from_millis(500);

impl Server {
    /// Serves on the process's standard streams until input ends. Calls that are running then have half a second to
    /// be answered; the rest is cancelled. What the program prints to stdout meanwhile goes to stderr.
    ///
    /// # Errors
    /// A mistake in the server's definition, or standard streams that cannot be used.
    pub async fn serve_stdio(&self) -> Result<()> {
        self.check()?;
        let uses = Use::begin(self).await?;
        let served = match take_own() {
            Ok((input, output)) => self.serve_pipes(input, output).await,
            Err(error) => Err(error),
        };
        uses.end().await;
        served
    }

    /// Dropped before its end, it ends the connection.
    async fn serve_pipes(&self, input: File, output: File) -> Result<()> {
        let connection = Connection::new(self.facts(), Arc::new(Transport::new("stdio")));
        let sink = Arc::new(LineSink::new(output, self.options().max_queued_notifications));
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
                let outcome = reader.read(input, limits.max_message_bytes);
                if let Some(peer) = reader.peer.upgrade() {
                    peer.wait_until_idle(DRAIN);
                    peer.close("the input ended");
                }
                if let Some(sink) = last.upgrade() {
                    sink.drain(DRAIN);
                }
                let _ = done.send(outcome);
            })
            .map_err(|e| Error::new(ErrorKind::Transport, format!("thread for stdin: {e}")))?;
        tokio::select! {
            outcome = finished => outcome.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Transport, "the thread that reads the input ended with a panic"))
            }),
            () = self.shared.stop.wait() => {
                peer.end_streams();
                peer.close("the server was closed");
                drop(serving);
                // What was answered before that is still written: the program may end with this.
                let drain = move || {
                    peer.wait_until_idle(DRAIN);
                    sink.drain(DRAIN);
                };
                let _ = runtime::handle().spawn_blocking(drain).await;
                Ok(())
            }
            () = lost(&backlog, &watched) => {
                Err(Error::new(ErrorKind::Transport, "the client did not answer a ping (ping_timeout)"))
            }
            () = backlog.stalled() => {
                Err(Error::new(ErrorKind::Transport, "the client does not read what it asked for"))
            }
        }
    }
}

/// Resolves when the connection has ended because the client was silent for too long.
async fn lost(backlog: &Backlog, peer: &Weak<Peer>) {
    backlog.ended().await;
    if !peer.upgrade().is_some_and(|peer| peer.is_lost()) {
        std::future::pending().await
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

/// Reads a pipe to its end and feeds the peer. Does not keep it alive: a read cannot be called off.
struct Reader {
    handle: Handle,
    peer: Weak<Peer>,
    backlog: Arc<Backlog>,
}

impl Reader {
    /// Blocks; meant for a thread of its own.
    fn read(&self, mut from: File, limit: usize) -> Result<()> {
        let mut lines = Lines::new(limit);
        loop {
            let read = lines.fill(&mut from)?;
            let Some(peer) = self.peer.upgrade() else { return Ok(()) };
            // The answers to all the lines of one read go out together.
            peer.cork();
            while let Some(line) = lines.next() {
                match line {
                    Line::Frame(frame) => peer.receive(&frame),
                    Line::TooLong(_) => peer.handle(crate::protocol::Input::Invalid(too_long(limit))),
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
            if read == 0
                && let Some(frame) = lines.rest()
            {
                peer.receive(&frame);
            }
            peer.uncork();
            if read == 0 {
                return Ok(());
            }
        }
    }
}

fn too_long(limit: usize) -> crate::jsonrpc::DecodeError {
    let message = format!("message is longer than the limit of {limit} bytes (max_message_bytes)");
    crate::jsonrpc::DecodeError::invalid(None, message)
}

/// The process's own standard streams, taken for the protocol. What the program prints to stdout from now on goes to
/// stderr, with one warning.
pub(crate) fn take_own() -> Result<(File, File)> {
    let input = rustix::io::dup(std::io::stdin().as_fd()).map_err(std::io::Error::from)?;
    let output = rustix::io::dup(std::io::stdout().as_fd()).map_err(std::io::Error::from)?;
    for fd in [&input, &output] {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    }
    redirect_stdout()?;
    Ok((File::from(input), File::from(output)))
}

fn redirect_stdout() -> Result<()> {
    let (reader, writer): (OwnedFd, OwnedFd) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
    rustix::stdio::dup2_stdout(&writer).map_err(std::io::Error::from)?;
    drop(writer);
    let mut reader = File::from(reader);
    std::thread::Builder::new()
        .name("tricorn-stdout".into())
        .spawn(move || {
            let (mut chunk, mut warned) = ([0u8; 4096], false);
            while let Ok(n) = reader.read(&mut chunk) {
                if n == 0 {
                    return;
                }
                if !std::mem::replace(&mut warned, true) {
                    report::say("stdout belongs to the protocol; what this program prints there goes to stderr");
                }
                let _ = std::io::stderr().write_all(&chunk[..n]);
            }
        })
        .map_err(|e| Error::new(crate::ErrorKind::Transport, format!("thread for stdout: {e}")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
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
            let mut serving = pin!(server.serve_pipes(input, output));
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
        let serving = tokio::spawn(async move { own.serve_pipes(input, output).await });
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
        server.serve_pipes(input, output).await.expect("the end");
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
        let serving = tokio::spawn(async move { own.serve_pipes(input, output).await });
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
