//! Descriptors 0 and 1, duplicated and replaced.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use super::{DRAIN, InUse, PATIENCE, closed, failed, give_back, print};
use crate::error::{Error, ErrorKind, Result};
use crate::streams::{Identity, duplicate, null, occupy, was_closed};

/// Descriptors 0 and 1 as they were; they are given back when this is dropped. Until then the program, and whatever it
/// starts, finds `/dev/null` at 0 and a way to standard error at 1.
pub(crate) struct Taken {
    input: Stream,
    output: Stream,
    printed: Printed,
}

/// One of the two.
struct Stream {
    original: File,
    flags: FdFlags,
    /// Identity of the file that stands there instead.
    instead: Option<Identity>,
}

/// Takes them for the protocol: what to read from, what to write to.
pub(crate) fn take(_: &InUse) -> Result<(File, File, Taken)> {
    give_back();
    occupy();
    let (input, output) = (check(stdin(), "input")?, check(stdout(), "output")?);
    let (own_input, own_output) = (copy(&input)?, copy(&output)?);
    let nothing = null(OFlags::RDONLY).map_err(failed)?;
    dup2_stdin(&nothing).map_err(failed)?;
    let mut taken = Taken { input, output, printed: Printed::default() };
    taken.input.instead = Identity::of(stdin());
    // Dropped on the way, it gives back what was taken.
    taken.printed = Printed::follow()?;
    taken.output.instead = Identity::of(stdout());
    Ok((own_input, own_output, taken))
}

fn copy(stream: &Stream) -> Result<File> {
    stream.original.try_clone().map_err(failed)
}

/// One that can be spoken on.
fn check(place: BorrowedFd<'static>, name: &str) -> Result<Stream> {
    let flags = fcntl_getfd(place).map_err(|_| closed(name))?;
    let kind = rustix::fs::fstat(place).map(|stat| FileType::from_raw_mode(stat.st_mode)).map_err(failed)?;
    // A descriptor that is no file at all (a counter, a timer) has only come to stand here.
    if was_closed(place) || matches!(kind, FileType::Unknown | FileType::Directory) {
        return Err(closed(name));
    }
    Ok(Stream { original: duplicate(place).map_err(failed)?, flags, instead: None })
}

impl Stream {
    /// Returns true if what stands there is still what was put there: the program may have put something else.
    fn is_taken(&self, place: BorrowedFd<'_>) -> bool {
        self.instead.is_some() && self.instead == Identity::of(place)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.input.is_taken(stdin()) && dup2_stdin(&self.input.original).is_ok() {
            let _ = fcntl_setfd(stdin(), self.input.flags);
        }
        if self.output.is_taken(stdout()) {
            let _ = std::io::stdout().flush();
            if dup2_stdout(&self.output.original).is_ok() {
                let _ = fcntl_setfd(stdout(), self.output.flags);
            }
        }
        self.printed.drain();
    }
}

/// Text that the program prints to stdout, on its way to stderr.
#[derive(Default)]
struct Printed(Option<(PipeWriter, mpsc::Receiver<()>)>);

impl Printed {
    /// Puts a pipe at descriptor 1, and reads it.
    fn follow() -> Result<Self> {
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let (over, stop) = std::io::pipe().map_err(failed)?;
        let (drained, done) = mpsc::channel();
        // Before the program prints there: without the thread nobody would read it.
        std::thread::Builder::new()
            .name("tricorn-stdout".into())
            .spawn(move || pass_on(reader, over, &drained))
            .map_err(|e| Error::new(ErrorKind::Transport, format!("thread for stdout: {e}")))?;
        dup2_stdout(&writer).map_err(failed)?;
        Ok(Self(Some((stop, done))))
    }

    /// Waits until all that has been printed is passed on. Output of children after that is, too, but not waited for.
    fn drain(&mut self) {
        if let Some((stop, done)) = self.0.take() {
            drop(stop);
            let _ = done.recv_timeout(DRAIN);
        }
    }
}

/// Reads until nobody can print any more. Says so once when, after the end of `over`, nothing is left to read.
fn pass_on(mut reader: PipeReader, over: PipeReader, drained: &mpsc::Sender<()>) {
    let (mut chunk, mut warned, mut over) = ([0u8; 4096], false, Some(over));
    loop {
        let mut ends = vec![PollFd::new(&reader, PollFlags::IN)];
        ends.extend(over.as_ref().map(|over| PollFd::new(over, PollFlags::empty())));
        match poll(&mut ends, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        if ends.first().is_some_and(|end| end.revents().is_empty()) {
            over = None;
            let _ = drained.send(());
            continue;
        }
        let last = over.is_none() || ends.get(1).is_some_and(|end| !end.revents().is_empty());
        drop(ends);
        let Ok(count @ 1..) = reader.read(&mut chunk) else { return };
        print(&chunk[..count], &mut warned, if last { Duration::ZERO } else { PATIENCE });
    }
}
