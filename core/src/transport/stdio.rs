//! Newline-delimited messages over pipes: the server's own standard streams, and a child's from the client's side.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, poll};

use crate::driver::{Peer, Sink, runtime};
use crate::error::{Error, Result};
use crate::protocol::{Connection, Outbound, Sent, Transport};
use crate::server::Server;

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
        let (input, output) = take_own()?;
        let transport = Arc::new(Transport::new("stdio"));
        let connection = Connection::new(self.facts(), transport);
        let sink = Arc::new(LineSink::new(output));
        let limits = self.limits();
        let peer = Peer::new(connection, limits, self.shared.router.clone(), |_| sink.clone());
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let (done, finished) = tokio::sync::oneshot::channel();
        let (handle, reader) = (runtime::handle(), peer.clone());
        std::thread::Builder::new()
            .name("tricorn-in".into())
            .spawn(move || {
                // Handlers are polled on this thread first; they may use the runtime.
                let _guard = handle.enter();
                let outcome = read_loop(input, &Arc::downgrade(&reader), limits.max_message_bytes);
                reader.wait_until_idle(DRAIN);
                reader.close("the input ended");
                sink.drain(DRAIN);
                let _ = done.send(outcome);
            })
            .map_err(|e| Error::new(crate::ErrorKind::Transport, format!("thread for stdin: {e}")))?;
        let outcome = tokio::select! {
            outcome = finished => outcome.unwrap_or(Ok(())),
            () = self.shared.stop.wait() => {
                peer.close("the server was closed");
                Ok(())
            }
        };
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        outcome
    }
}

/// A descriptor to write to without ever blocking the writer, and without changing what others see of it.
enum Out {
    /// A pipe, opened anew: its own file description may be non-blocking.
    Pipe(File),
    /// A socket, written to with a flag.
    Socket(File),
    /// A file or a terminal: writes do not wait for a peer.
    Plain(File),
}

impl Out {
    fn new(file: File) -> Self {
        use rustix::fs::{FileType, Mode, OFlags};
        let Ok(stat) = rustix::fs::fstat(&file) else {
            return Self::Plain(file);
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => Self::Socket(file),
            FileType::Fifo => {
                let path = format!("/dev/fd/{}", file.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match rustix::fs::open(path, flags, Mode::empty()) {
                    Ok(own) => Self::Pipe(File::from(own)),
                    Err(_) => Self::Plain(file),
                }
            }
            _ => Self::Plain(file),
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Pipe(file) | Self::Socket(file) | Self::Plain(file) => file,
        }
    }

    fn write_now(&self, bytes: &[u8]) -> std::io::Result<usize> {
        use rustix::net::{SendFlags, send};
        match self {
            Self::Socket(file) => Ok(send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
            Self::Pipe(file) | Self::Plain(file) => (&*file).write(bytes),
        }
    }
}

/// Writes lines to a pipe. Whoever has something to say writes it; only when the pipe is full does a thread take over.
pub(crate) struct LineSink {
    shared: Arc<Shared>,
}

struct Shared {
    out: Out,
    queue: Mutex<Queue>,
    /// Signalled when the queue got empty or the pipe broke.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    /// What the writer thread has not written yet. Empty while there is no thread.
    bytes: Vec<u8>,
    thread: bool,
    broken: bool,
    closing: bool,
}

impl LineSink {
    pub(crate) fn new(file: File) -> Self {
        Self { shared: Arc::new(Shared { out: Out::new(file), queue: Mutex::default(), idle: Condvar::new() }) }
    }

    /// Waits until everything is written, the pipe broke or `patience` is over.
    pub(crate) fn drain(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut queue = self.shared.lock();
        while queue.thread && !queue.broken {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            queue = self.shared.idle.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what the pipe takes at once. Returns how much that was.
    fn write_ready(&self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.out.write_now(&bytes[done..]) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(done),
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Writes a frame and its line break, as much as the pipe takes at once.
    fn write_frame(&self, frame: &[u8]) -> std::io::Result<usize> {
        let done = self.write_ready(frame)?;
        if done < frame.len() {
            return Ok(done);
        }
        Ok(done + self.write_ready(b"\n")?)
    }

    /// The writer thread: lives from the first byte that did not fit to the last that was queued.
    fn write_queued(&self) {
        loop {
            let bytes = {
                let mut queue = self.lock();
                if queue.bytes.is_empty() || queue.broken {
                    queue.thread = false;
                    self.idle.notify_all();
                    return;
                }
                std::mem::take(&mut queue.bytes)
            };
            if self.write_all(&bytes).is_err() {
                let mut queue = self.lock();
                queue.broken = true;
                queue.bytes.clear();
            }
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> std::io::Result<()> {
        loop {
            bytes = &bytes[self.write_ready(bytes)?..];
            if bytes.is_empty() {
                return Ok(());
            }
            poll(&mut [PollFd::new(self.out.file(), PollFlags::OUT)], None)?;
        }
    }
}

/// With more bytes than this waiting for a peer that does not read, progress and log messages are dropped.
const MAX_WAITING: usize = 1 << 20;

/// A frame of this length is worth a second system call to save a copy.
const LARGE: usize = 32 << 10;

fn append(bytes: &mut Vec<u8>, batch: &[Outbound]) {
    for outbound in batch {
        bytes.extend_from_slice(&outbound.frame);
        bytes.push(b'\n');
    }
}

impl Sink for LineSink {
    fn send(&self, batch: Vec<Outbound>) {
        let mut queue = self.shared.lock();
        if queue.broken || queue.closing {
            return;
        }
        if queue.thread {
            // The peer does not read. Answers are bounded by its own requests; what handlers tell meanwhile is not.
            let full = queue.bytes.len() > MAX_WAITING;
            let kept = batch.into_iter().filter(|o| !(full && o.related.is_some() && o.sent == Sent::Notification));
            return append(&mut queue.bytes, &kept.collect::<Vec<_>>());
        }
        drop(queue);
        // One caller at a time: the peer sends its batches in order.
        let (total, written) = if let [one] = &batch[..]
            && one.frame.len() >= LARGE
        {
            (one.frame.len() + 1, self.shared.write_frame(&one.frame))
        } else {
            let mut bytes = Vec::with_capacity(batch.iter().map(|o| o.frame.len() + 1).sum());
            append(&mut bytes, &batch);
            (bytes.len(), self.shared.write_ready(&bytes))
        };
        match written {
            Ok(done) if done == total => {}
            Ok(done) => {
                let mut rest = Vec::with_capacity(total);
                append(&mut rest, &batch);
                let mut queue = self.shared.lock();
                queue.bytes.extend_from_slice(&rest[done..]);
                queue.thread = true;
                drop(queue);
                let shared = self.shared.clone();
                let started =
                    std::thread::Builder::new().name("tricorn-out".into()).spawn(move || shared.write_queued());
                if started.is_err() {
                    self.shared.write_queued();
                }
            }
            Err(_) => self.shared.lock().broken = true,
        }
    }

    fn close(&self) {
        self.shared.lock().closing = true;
    }
}

/// Splits a stream of bytes into lines, and refuses a line that is too long without losing its place.
pub(crate) struct Lines {
    /// What one read brings; copied on, so that no buffer has to be cleared for every read.
    chunk: Box<[u8]>,
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    /// Within a line that is too long: its rest is thrown away.
    skipping: bool,
}

/// What [`Lines::next`] found.
pub(crate) enum Line {
    Frame(Bytes),
    TooLong,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { chunk: vec![0; 64 << 10].into(), buffer: BytesMut::new(), scanned: 0, limit, skipping: false }
    }

    /// Reads once. `Ok(0)` is the end of the stream.
    pub(crate) fn fill(&mut self, mut from: impl Read) -> std::io::Result<usize> {
        loop {
            match from.read(&mut self.chunk) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.buffer.extend_from_slice(&self.chunk[..n]);
                    return Ok(n);
                }
            }
        }
    }

    /// The next whole line, without its line break. Empty lines are skipped.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            match memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                Some(found) => {
                    let mut line = self.buffer.split_to(self.scanned + found + 1);
                    self.scanned = 0;
                    line.truncate(line.len() - 1);
                    if line.last() == Some(&b'\r') {
                        line.truncate(line.len() - 1);
                    }
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    if line.len() > self.limit {
                        return Some(Line::TooLong);
                    }
                    if !line.is_empty() {
                        return Some(Line::Frame(line.freeze()));
                    }
                }
                None if self.skipping => {
                    self.buffer.clear();
                    self.scanned = 0;
                    return None;
                }
                None if self.buffer.len() > self.limit => {
                    self.buffer.clear();
                    self.scanned = 0;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                None => {
                    self.scanned = self.buffer.len();
                    return None;
                }
            }
        }
    }

    /// What is left at the end of the stream: a last line without line break.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let line = self.buffer.split().freeze();
        self.scanned = 0;
        let line = if line.last() == Some(&b'\r') { line.slice(..line.len() - 1) } else { line };
        (!self.skipping && !line.is_empty()).then_some(line)
    }
}

/// Reads a pipe to its end and feeds the peer. Blocks; meant for a thread of its own.
pub(crate) fn read_loop(mut from: File, peer: &Weak<Peer>, limit: usize) -> Result<()> {
    let mut lines = Lines::new(limit);
    loop {
        let read = lines.fill(&mut from)?;
        let Some(peer) = peer.upgrade() else { return Ok(()) };
        // The answers to all the lines of one read go out together.
        peer.cork();
        while let Some(line) = lines.next() {
            match line {
                Line::Frame(frame) => peer.receive(&frame),
                Line::TooLong => peer.handle(crate::protocol::Input::Invalid(too_long(limit))),
            }
            if peer.is_full() {
                // Back-pressure: the rest stays in the pipe.
                peer.uncork();
                peer.wait_for_room();
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
                    eprintln!("tricorn: stdout belongs to the protocol; what this program prints there goes to stderr");
                }
                let _ = std::io::stderr().write_all(&chunk[..n]);
            }
        })
        .map_err(|e| Error::new(crate::ErrorKind::Transport, format!("thread for stdout: {e}")))?;
    Ok(())
}
