//! The standard handles, duplicated and replaced. The files at the C runtime's descriptors 0 and 1 are another matter:
//! hosts that print by it move these themselves.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::sync::mpsc;

use super::{DRAIN, InUse, PATIENCE, closed, failed, give_back, print};
use crate::error::{Error, ErrorKind, Result};
use crate::streams::{Place, Replaced, null};

/// The standard handles as they were; they are given back when this is dropped. Until then the program, and whatever it
/// starts, finds `NUL` at standard input and a way to standard error at standard output.
pub(crate) struct Taken {
    input: Option<Replaced>,
    printed: Option<Printed>,
}

/// Text that the program prints to stdout, on its way to stderr.
struct Printed {
    output: Replaced,
    done: mpsc::Receiver<()>,
}

/// Takes them for the protocol: what to read from, what to write to.
pub(crate) fn take(_: &InUse) -> Result<(File, File, Taken)> {
    give_back();
    let own_input = Place::Input.duplicate().ok_or_else(|| closed("input"))?;
    let own_output = Place::Output.duplicate().ok_or_else(|| closed("output"))?;
    let nothing = null().map_err(failed)?;
    let mut taken = Taken { input: Some(Replaced::put(Place::Input, nothing).map_err(failed)?), printed: None };
    // Dropped on the way, it gives back what was taken.
    taken.printed = Some(Printed::follow()?);
    Ok((own_input, own_output, taken))
}

impl Drop for Taken {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(printed) = self.printed.take() {
            printed.end();
        }
    }
}

impl Printed {
    /// Puts a pipe at standard output, and reads it.
    fn follow() -> Result<Self> {
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let (over, done) = mpsc::channel();
        // Before the program prints there: without the thread nobody would read it.
        std::thread::Builder::new()
            .name("tricorn-stdout".into())
            .spawn(move || pass_on(reader, &over))
            .map_err(|e| Error::new(ErrorKind::Transport, format!("thread for stdout: {e}")))?;
        let writer = std::os::windows::io::OwnedHandle::from(writer);
        let output = Replaced::put(Place::Output, writer.into()).map_err(failed)?;
        Ok(Self { output, done })
    }

    /// Waits until all that has been printed is passed on, but not for long: a child may still print there.
    fn end(self) {
        let _ = std::io::stdout().flush();
        drop(self.output);
        let _ = self.done.recv_timeout(DRAIN);
    }
}

/// Reads until nobody can print any more.
fn pass_on(mut reader: PipeReader, over: &mpsc::Sender<()>) {
    let (mut chunk, mut warned) = ([0u8; 4096], false);
    while let Ok(count @ 1..) = reader.read(&mut chunk) {
        print(&chunk[..count], &mut warned, PATIENCE);
    }
    let _ = over.send(());
}
