//! Descriptors that belong to the whole process: one to write to without ever waiting, and what stands at 0, 1 and 2.

use std::fs::File;
use std::io::{IsTerminal, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};

/// A pipe that says it is ready takes so much at once (POSIX, `PIPE_BUF`).
const AT_ONCE: usize = 512;

/// A descriptor to write to without ever blocking the writer, and without changing what others see of it.
pub(crate) struct Out {
    held: Held,
    way: Way,
}

enum Held {
    Own(OwnedFd),
    Shared(BorrowedFd<'static>),
}

#[derive(Clone, Copy)]
enum Way {
    /// Its own file description is non-blocking, or it is a file, which waits for no peer.
    Direct,
    /// A socket, written to with a flag.
    Socket,
    /// Asked before each write, of which it takes little at once.
    Polled,
}

impl AsFd for Out {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.held {
            Held::Own(fd) => fd.as_fd(),
            Held::Shared(fd) => *fd,
        }
    }
}

impl Out {
    /// One that others may hold, too.
    pub(crate) fn new(file: impl Into<OwnedFd>) -> Self {
        Self::of(Held::Own(file.into()))
    }

    /// The writing end of a pipe of which nobody else holds this end.
    pub(crate) fn own(pipe: impl Into<OwnedFd>) -> Self {
        let pipe = pipe.into();
        let way = if rustix::io::ioctl_fionbio(&pipe, true).is_ok() { Way::Direct } else { Way::Polled };
        Self { held: Held::Own(pipe), way }
    }

    /// Returns the stream at descriptor 2 as it is now.
    pub(crate) fn standard_error() -> Option<Self> {
        Some(Self::of(Held::Shared(rustix::stdio::stderr())))
    }

    fn of(held: Held) -> Self {
        let this = Self { held, way: Way::Direct };
        let kind = rustix::fs::fstat(&this).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let way = match kind {
            Ok(FileType::Socket) => Way::Socket,
            Ok(FileType::Fifo) => Way::Polled,
            Ok(FileType::CharacterDevice) if this.as_fd().is_terminal() => Way::Polled,
            _ => Way::Direct,
        };
        match way {
            Way::Polled => match reopened(this.as_fd()) {
                Some(own) => Self { held: Held::Own(own), way: Way::Direct },
                None => Self { way, ..this },
            },
            _ => Self { way, ..this },
        }
    }

    /// Writes what can be written at once.
    pub(crate) fn write_now(&self, bytes: &[u8]) -> std::io::Result<usize> {
        use rustix::net::{SendFlags, send};
        #[cfg(target_vendor = "apple")]
        const FLAGS: SendFlags = SendFlags::DONTWAIT;
        #[cfg(not(target_vendor = "apple"))]
        const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
        Ok(match self.way {
            Way::Socket => send(self, bytes, FLAGS)?,
            Way::Direct => rustix::io::write(self, bytes)?,
            Way::Polled if !self.is_ready(Some(Duration::ZERO))? => return Err(std::io::ErrorKind::WouldBlock.into()),
            Way::Polled => rustix::io::write(self, &bytes[..bytes.len().min(AT_ONCE)])?,
        })
    }

    /// Waits until it takes more, or writing would fail; `false`: it has not within `patience`.
    pub(crate) fn is_ready(&self, patience: Option<Duration>) -> std::io::Result<bool> {
        let patience = patience.and_then(|time| Timespec::try_from(time).ok());
        loop {
            match poll(&mut [PollFd::new(self, PollFlags::OUT)], patience.as_ref()) {
                Ok(count) => return Ok(count > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until all that was taken has left this process: the system has taken it.
    pub(crate) fn settle(&self, _patience: Duration) -> bool {
        true
    }

    /// Returns true if the reader has taken none of so many bytes. Where the system does not tell of a pipe's writing
    /// end, it is thought to have.
    #[cfg(feature = "stdio")]
    pub(crate) fn holds(&self, written: usize) -> bool {
        rustix::io::ioctl_fionread(self).is_ok_and(|unread| unread >= written as u64)
    }
}

/// A stream that is read until it ends or is wanted no more.
#[cfg(feature = "stdio")]
pub(crate) struct Input {
    from: File,
    /// Ends when it is wanted no more.
    over: PipeReader,
    /// The stream for the answers, to learn that nobody reads them. None where that cannot be learnt.
    output: Option<File>,
}

/// Input is read as long as this lives.
#[cfg(feature = "stdio")]
pub(crate) struct Still(#[expect(dead_code, reason = "held for its end")] PipeWriter);

#[cfg(feature = "stdio")]
impl Input {
    /// A stream, and what ends reading it, as the end of the output's reader does.
    pub(crate) fn new(from: File, output: &File) -> std::io::Result<(Self, Still)> {
        let (over, still) = std::io::pipe()?;
        Ok((Self { from, over, output: Some(duplicate(output)?) }, Still(still)))
    }

    /// Reads when there is something, or the end. `None`: it is wanted no more.
    pub(crate) fn read<T>(&mut self, read: impl FnOnce(&mut File) -> std::io::Result<T>) -> Option<std::io::Result<T>> {
        self.wait().then(|| read(&mut self.from))
    }

    /// Waits for input or its end. `false`: it is wanted no more.
    fn wait(&mut self) -> bool {
        loop {
            let mut ends = [
                PollFd::new(&self.from, PollFlags::IN),
                PollFd::new(&self.over, PollFlags::empty()),
                PollFd::new(self.output.as_ref().unwrap_or(&self.from), PollFlags::empty()),
            ];
            if let Err(error) = poll(&mut ends, None) {
                if error == rustix::io::Errno::INTR {
                    continue;
                }
                // Reading says what is wrong.
                return true;
            }
            match ends.map(|end| end.revents()) {
                [_, over, _] if !over.is_empty() => return false,
                [input, ..] if !input.is_empty() => return true,
                [.., output] if output.intersects(PollFlags::ERR | PollFlags::HUP) => return false,
                _ => self.output = None,
            }
        }
    }
}

/// Returns true if a terminal is gone: until all of the kernel knows of it, that is an error, and the end of input
/// after that.
#[cfg(feature = "stdio")]
pub(crate) fn is_hung_up(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// The same pipe or terminal with a file description of its own, which may be non-blocking.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reopened(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok()
}

/// Elsewhere opening it anew gives the same description again.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reopened(_: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}

/// Those of 0, 1 and 2 that were closed when the engine looked first, as bits.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Puts `/dev/null` where 0, 1 or 2 is closed: what is opened next would be taken for a standard stream.
pub(crate) fn occupy() {
    while let Ok(null) = null(OFlags::RDWR) {
        match null.as_raw_fd() {
            place @ 0..=2 => {
                CLOSED.fetch_or(1 << place, Ordering::Relaxed);
                let _ = null.into_raw_fd();
            }
            _ => return,
        }
    }
}

/// Returns true if 0, 1 or 2 was closed, and nothing else has been put there since.
pub(crate) fn was_closed(fd: BorrowedFd<'_>) -> bool {
    let bit = u8::try_from(fd.as_raw_fd()).ok().and_then(|place| 1u8.checked_shl(place.into())).unwrap_or_default();
    CLOSED.load(Ordering::Relaxed) & bit != 0 && Identity::of(fd) == null(OFlags::RDONLY).ok().and_then(Identity::of)
}

/// `/dev/null`.
pub(crate) fn null(access: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open("/dev/null", access | OFlags::CLOEXEC, Mode::empty())
}

/// A duplicate that closes on `exec` and does not stand where a standard stream is looked for.
pub(crate) fn duplicate(fd: impl AsFd) -> std::io::Result<File> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?.into())
}

/// Identity of the file that a descriptor refers to.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "their types differ between platforms")]
    pub(crate) fn of(fd: impl AsFd) -> Option<Self> {
        rustix::fs::fstat(fd).ok().map(|stat| Self(stat.st_dev as u64, stat.st_ino as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        for out in [
            Out::new(writer.try_clone().expect("a copy")),
            Out { held: Held::Own(writer.try_clone().expect("a copy").into()), way: Way::Polled },
        ] {
            let mut sent = 0;
            let error = loop {
                match out.write_now(&[b'x'; 5000]) {
                    Ok(count) => sent += count,
                    Err(error) => break error,
                }
            };
            assert!(error.kind() == std::io::ErrorKind::WouldBlock && sent > 0, "{sent}: {error}");
            assert!(!out.is_ready(Some(Duration::ZERO)).expect("polled"));
            let mut read = vec![0; sent];
            reader.read_exact(&mut read).expect("all of it");
        }
    }
}
