//! Lines to a pipe, written without ever waiting for its reader, and the bound on what waits for that reader.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::driver::Sink;
use crate::protocol::{Outbound, Sent};
use crate::signal::Signal;
use crate::streams::Out;

/// With more bytes than this waiting for a peer that does not read, nothing is read from it either.
pub(crate) const MAX_BACKLOG: usize = 4 << 20;

/// A peer that takes nothing for so long while that much waits is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// With more bytes than this waiting, progress and log messages are dropped.
const MAX_WAITING: usize = 1 << 20;

/// A frame of this length is worth a second system call to save a copy.
const LARGE: usize = 32 << 10;

/// Number of bytes that wait for a peer that does not read. Outlives the sink, and does not keep its pipe open.
#[derive(Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    /// Nothing more will be written.
    over: AtomicBool,
    drained: Notify,
    stalled: Signal,
    ended: Signal,
    /// The error after which the pipe takes nothing more.
    failure: OnceLock<std::io::ErrorKind>,
}

impl Backlog {
    /// Returns true if nothing more should be read from the peer.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > MAX_BACKLOG && !self.over.load(Ordering::Acquire)
    }

    /// Waits until half of what may wait is written, or nothing more will be.
    pub(crate) async fn room(&self) {
        loop {
            let mut drained = pin!(self.drained.notified());
            drained.as_mut().enable();
            if self.over.load(Ordering::Acquire) || self.bytes.load(Ordering::Acquire) <= MAX_BACKLOG / 2 {
                return;
            }
            drained.await;
        }
    }

    /// Waits until the peer is given up.
    pub(crate) async fn stalled(&self) {
        self.stalled.wait().await;
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn remove(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        if before > MAX_BACKLOG / 2 && before - bytes <= MAX_BACKLOG / 2 {
            self.drained.notify_waiters();
        }
    }

    /// Waits until nothing more will be written.
    pub(crate) async fn ended(&self) {
        self.ended.wait().await;
    }

    /// Returns the error after which nothing more can be written, when this side does not want that.
    pub(crate) fn failure(&self) -> Option<std::io::ErrorKind> {
        self.failure.get().copied()
    }

    fn fail(&self, error: &std::io::Error) {
        let gone = crate::streams::is_hung_up(error).then_some(std::io::ErrorKind::BrokenPipe);
        let _ = self.failure.set(gone.unwrap_or_else(|| error.kind()));
        self.end();
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.drained.notify_waiters();
        self.ended.set();
    }
}

/// Writes lines to a pipe. Whoever has something to say writes it; only when the pipe is full does a thread take over.
pub(crate) struct LineSink {
    shared: Arc<Shared>,
}

struct Shared {
    out: Out,
    queue: Mutex<Queue>,
    backlog: Arc<Backlog>,
    max_notifications: usize,
    patience: Duration,
    /// The bytes that the pipe has taken.
    written: AtomicUsize,
    /// Signalled when the queue got empty or the pipe broke.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Bytes that the writer thread has not written yet. Empty while there is no thread.
    bytes: Vec<u8>,
    /// The progress and log messages that wait or are being written.
    notifications: usize,
    /// Those of them that no thread has taken yet.
    fresh: usize,
    thread: bool,
    broken: bool,
    closing: bool,
}

impl LineSink {
    /// `max_notifications`: the most progress and log messages that wait.
    pub(crate) fn new(out: Out, max_notifications: usize) -> Self {
        Self::with_patience(out, max_notifications, PATIENCE)
    }

    fn with_patience(out: Out, max_notifications: usize, patience: Duration) -> Self {
        let shared = Shared {
            out,
            queue: Mutex::default(),
            backlog: Arc::default(),
            max_notifications,
            patience,
            written: AtomicUsize::new(0),
            idle: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns true if the reader has taken nothing of what was written. Where the system does not tell of a pipe's
    /// writing end, it is thought to have.
    pub(crate) fn is_untouched(&self) -> bool {
        let written = self.shared.written.load(Ordering::Relaxed);
        written == 0 || self.shared.out.holds(written)
    }

    pub(crate) fn backlog(&self) -> Arc<Backlog> {
        self.shared.backlog.clone()
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
        drop(queue);
        self.shared.out.settle(end.saturating_duration_since(Instant::now()));
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
                Ok(n) => {
                    done += n;
                    self.written.fetch_add(n, Ordering::Relaxed);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(done),
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Writes the pieces that end at these places, each by itself, as much as the pipe takes at once.
    fn write_pieces(&self, bytes: &[u8], ends: &[usize]) -> std::io::Result<usize> {
        let mut done = 0;
        for &end in ends {
            done += self.write_ready(&bytes[done..end])?;
            if done < end {
                break;
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
            let (bytes, notifications) = {
                let mut queue = self.lock();
                if queue.bytes.is_empty() || queue.broken {
                    queue.thread = false;
                    self.idle.notify_all();
                    return;
                }
                (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.fresh))
            };
            let outcome = self.write_all(&bytes);
            let mut queue = self.lock();
            queue.notifications -= notifications;
            if let Err(error) = outcome {
                queue.broken = true;
                queue.bytes = Vec::new();
                self.backlog.fail(&error);
            }
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> std::io::Result<()> {
        loop {
            let done = self.write_ready(bytes)?;
            self.backlog.remove(done);
            bytes = &bytes[done..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Waits until the pipe takes more.
    fn wait(&self) -> std::io::Result<()> {
        let mut end = Instant::now() + self.patience;
        loop {
            if self.out.is_ready(Some(end.saturating_duration_since(Instant::now())))? {
                return Ok(());
            }
            if Instant::now() < end {
                continue;
            }
            if self.backlog.is_full() {
                self.backlog.stalled.set();
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            // Little waits: it may take its time.
            end = Instant::now() + self.patience;
        }
    }

    /// Leaves a batch to the writer thread, except for what `done` bytes of it are written already.
    fn enqueue(&self, queue: &mut Queue, batch: &[Outbound], done: usize) {
        let before = queue.bytes.len();
        for outbound in batch {
            if is_droppable(outbound) {
                if done == 0 && (queue.notifications >= self.max_notifications || queue.bytes.len() > MAX_WAITING) {
                    continue;
                }
                queue.notifications += 1;
                queue.fresh += 1;
            }
            append(&mut queue.bytes, outbound);
        }
        queue.bytes.drain(before..before + done);
        self.backlog.add(queue.bytes.len() - before);
    }
}

fn append(bytes: &mut Vec<u8>, outbound: &Outbound) {
    bytes.extend_from_slice(&outbound.frame);
    bytes.push(b'\n');
}

/// Returns true for a notification of a handler. Answers are bounded by the peer's own requests, these are not.
fn is_droppable(outbound: &Outbound) -> bool {
    outbound.related.is_some() && outbound.sent == Sent::Notification
}

impl Sink for LineSink {
    fn send(&self, batch: Vec<Outbound>) {
        let mut queue = self.shared.lock();
        if queue.broken || queue.closing {
            return;
        }
        if queue.thread {
            return self.shared.enqueue(&mut queue, &batch, 0);
        }
        drop(queue);
        // One caller at a time: the peer sends its batches in order.
        let (total, written) = if let [one] = &batch[..]
            && one.frame.len() >= LARGE
        {
            (one.frame.len() + 1, self.shared.write_frame(&one.frame))
        } else if let [one] = &batch[..] {
            let mut bytes = Vec::with_capacity(one.frame.len() + 1);
            append(&mut bytes, one);
            (bytes.len(), self.shared.write_ready(&bytes))
        } else {
            let mut bytes = Vec::with_capacity(batch.iter().map(|o| o.frame.len() + 1).sum());
            let (mut pieces, mut told) = (Vec::new(), false);
            for outbound in &batch {
                // A TypeScript client forgets who hears of progress when it reads the result, and it hears of what one
                // read has brought in that order.
                if told && matches!(outbound.sent, Sent::Response(_)) {
                    pieces.push(bytes.len());
                    told = false;
                }
                told |= is_droppable(outbound);
                append(&mut bytes, outbound);
            }
            pieces.push(bytes.len());
            (bytes.len(), self.shared.write_pieces(&bytes, &pieces))
        };
        match written {
            Ok(done) if done == total => {}
            Ok(done) => {
                let mut queue = self.shared.lock();
                self.shared.enqueue(&mut queue, &batch, done);
                queue.thread = true;
                drop(queue);
                let shared = self.shared.clone();
                let started =
                    std::thread::Builder::new().name("tricorn-out".into()).spawn(move || shared.write_queued());
                if started.is_err() {
                    self.shared.write_queued();
                }
            }
            Err(error) => {
                self.shared.lock().broken = true;
                self.shared.backlog.fail(&error);
            }
        }
    }

    fn has_room(&self) -> bool {
        !self.shared.lock().thread
    }

    fn close(&self) {
        self.shared.lock().closing = true;
        self.shared.backlog.end();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    #[cfg(unix)]
    use std::os::fd::OwnedFd as Handle;
    #[cfg(windows)]
    use std::os::windows::io::OwnedHandle as Handle;

    use super::*;
    use crate::protocol::CallId;

    fn message(text: &str, sent: Sent) -> Outbound {
        Outbound { frame: text.to_owned().into(), related: Some(CallId(1)), route: None, sent, origin: None }
    }

    fn pipe() -> (File, File) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        (Handle::from(reader).into(), Handle::from(writer).into())
    }

    /// More than any pipe holds.
    fn large() -> Outbound {
        message(&"x".repeat(MAX_BACKLOG + (2 << 20)), Sent::Response(None))
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_written_even_after_the_end() {
        let (mut reader, writer) = pipe();
        let sink = LineSink::new(Out::new(writer), 2);
        sink.send(vec![large()]);
        for n in 0..5 {
            sink.send(vec![message(&format!("note {n}"), Sent::Notification)]);
        }
        sink.send(vec![message("answer", Sent::Response(None))]);
        let backlog = sink.backlog();
        assert!(backlog.is_full());
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        backlog.room().await;
        assert!(!backlog.is_full());
        sink.close();
        sink.send(vec![message("too late", Sent::Response(None))]);
        sink.drain(Duration::from_secs(60));
        drop(sink);
        let text = read.join().expect("a thread").expect("text");
        let short: Vec<_> = text.lines().filter(|line| line.len() < 100).collect();
        assert!(short.last() == Some(&"answer") && short.len() <= 3, "{short:?}");
        assert_eq!(text.len(), MAX_BACKLOG + (2 << 20) + 1 + short.iter().map(|line| line.len() + 1).sum::<usize>());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_result_is_written_apart_from_the_progress_before_it() {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        // Keeps what is written apart.
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a pair");
        let sink = LineSink::new(Out::new(near), 100);
        let (note, answer) = (|| message("note", Sent::Notification), || message("answer", Sent::Response(None)));
        sink.send(vec![answer(), note(), note(), answer(), answer(), note(), answer()]);
        drop(sink);
        let mut reader = File::from(far);
        let mut read = || {
            let mut packet = [0; 100];
            let count = reader.read(&mut packet).expect("a packet");
            String::from_utf8_lossy(&packet[..count]).replace('\n', " ")
        };
        assert_eq!([read(), read(), read()], ["answer note note ", "answer answer note ", "answer "]);
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (reader, writer) = pipe();
        let sink = LineSink::with_patience(Out::new(writer), 2, Duration::ZERO);
        let backlog = sink.backlog();
        sink.send(vec![large()]);
        backlog.stalled().await;
        backlog.room().await;
        assert!(!backlog.is_full());
        drop(reader);
    }
}
