//! Standard handles, consoles, and files that are written to and read by threads: pipes that are not overlapped know no
//! other way not to wait ([ADR 0018](../../../docs/adr/0018-windows-by-its-own-functions.md)).
#![allow(unsafe_code, reason = "nothing safe has these functions; see ADR 0018")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_OPERATION_ABORTED, ERROR_SUCCESS, GetHandleInformation, HANDLE_FLAG_INHERIT,
    INVALID_HANDLE_VALUE, SetHandleInformation, SetLastError,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, GetFileType};
use windows_sys::Win32::System::Console::{
    GetConsoleMode, GetStdHandle, ReadConsoleW, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
    WriteConsoleW,
};
use windows_sys::Win32::System::IO::CancelSynchronousIo;
use windows_sys::Win32::System::Threading::{GetCurrentThreadId, OpenThread, THREAD_TERMINATE};

/// Number of bytes that wait for the thread that writes them, as many as in a pipe of Linux.
const CAPACITY: usize = 64 << 10;

/// A console takes and gives so many units of UTF-16 at once.
const CONSOLE_CHUNK: usize = 4096;

/// The system's number for what a console breaks off.
const BROKEN_OFF: i32 = ERROR_OPERATION_ABORTED.cast_signed();

/// The end of reading is asked for so often, a millisecond apart: the thread may be about to begin.
const CALLS_OFF: usize = 20;

/// A handle to write to without ever blocking the writer. Output to anything but a file on a disk is written by a
/// thread.
pub(crate) struct Out {
    way: Way,
    /// Others write through it, too, after this is dropped.
    is_shared: bool,
}

enum Way {
    Direct(File),
    Thread(Arc<Writer>),
}

/// Bytes that a thread writes, and their target.
struct Writer {
    state: Mutex<Waiting>,
    /// Signalled when there is something to write, and when something was written.
    changed: Condvar,
}

struct Waiting {
    bytes: Vec<u8>,
    /// The number of bytes that the thread is writing.
    under_way: usize,
    /// The target, until there is a thread.
    target: Option<Target>,
    /// The system's number of the error after which nothing more can be written.
    failed: Option<i32>,
    /// Nothing more will come.
    over: bool,
}

enum Target {
    File(File),
    /// A console, and the first bytes of a character that comes in several writes.
    Console(File, Vec<u8>),
}

impl Out {
    /// One that others may hold, too.
    pub(crate) fn new(file: impl Into<OwnedHandle>) -> Self {
        let file = File::from(file.into());
        // SAFETY: the handle is open as long as `file` is.
        let kind = unsafe { GetFileType(file.as_raw_handle()) };
        let way = if kind == FILE_TYPE_DISK { Way::Direct(file) } else { Way::Thread(Writer::new(file)) };
        Self { way, is_shared: false }
    }

    /// The writing end of a pipe of which nobody else holds this end.
    pub(crate) fn own(pipe: impl Into<OwnedHandle>) -> Self {
        Self { way: Way::Thread(Writer::new(File::from(pipe.into()))), is_shared: false }
    }

    /// Returns the stream at standard error as it is now. `None` in a program that has none.
    pub(crate) fn standard_error() -> Option<Self> {
        /// The handle that stood there last, and its writer.
        static LAST: Mutex<Option<(usize, Arc<Writer>)>> = Mutex::new(None);
        let now = Place::Error.now()?;
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match &*last {
            Some((place, writer)) if *place == now as usize && writer.lock().failed.is_none() => writer.clone(),
            _ => {
                let writer = Writer::new(Place::Error.duplicate()?);
                if let Some((_, before)) = last.replace((now as usize, writer.clone())) {
                    before.end();
                }
                writer
            }
        };
        Some(Self { way: Way::Thread(writer), is_shared: true })
    }

    /// Writes what can be written at once.
    pub(crate) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.way {
            Way::Direct(file) => (&mut &*file).write(bytes),
            Way::Thread(writer) => writer.push(bytes),
        }
    }

    /// Waits until it takes more, or writing would fail; `false`: it has not within `patience`.
    pub(crate) fn is_ready(&self, patience: Option<Duration>) -> io::Result<bool> {
        match &self.way {
            Way::Direct(_) => Ok(true),
            Way::Thread(writer) => Ok(writer.wait(patience, |state| state.room() > 0)),
        }
    }

    /// Waits until all that was taken has left this process, or cannot; `false`: it has not within `patience`.
    pub(crate) fn settle(&self, patience: Duration) -> bool {
        match &self.way {
            Way::Direct(_) => true,
            Way::Thread(writer) => writer.wait(Some(patience), |state| state.room() == CAPACITY),
        }
    }

    /// Returns true if the reader has taken none of so many bytes. The system does not tell of a pipe's writing end.
    pub(crate) fn holds(&self, _written: usize) -> bool {
        false
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Way::Thread(writer) = &self.way
            && !self.is_shared
        {
            writer.end();
        }
    }
}

impl Waiting {
    fn room(&self) -> usize {
        CAPACITY - self.bytes.len() - self.under_way
    }
}

impl Writer {
    fn new(file: File) -> Arc<Self> {
        let target = if is_console(&file) { Target::Console(file, Vec::new()) } else { Target::File(file) };
        let state = Waiting { bytes: Vec::new(), under_way: 0, target: Some(target), failed: None, over: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes as much as there is room for.
    fn push(self: &Arc<Self>, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if let Some(number) = state.failed {
            return Err(io::Error::from_raw_os_error(number));
        }
        let count = bytes.len().min(state.room());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(target) = state.target.take() {
            let writer = self.clone();
            // Without a thread the target is gone: nothing can be written any more.
            let thread = std::thread::Builder::new().name("tricorn-write".into()).spawn(move || writer.write(target));
            if let Err(error) = thread {
                state.failed = Some(error.raw_os_error().unwrap_or_default());
                return Err(error);
            }
        }
        state.bytes.extend_from_slice(&bytes[..count]);
        self.changed.notify_all();
        Ok(count)
    }

    /// Waits until something is so, or nothing more can be written.
    fn wait(&self, patience: Option<Duration>, is_so: impl Fn(&Waiting) -> bool) -> bool {
        let end = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut state = self.lock();
        while !is_so(&state) && state.failed.is_none() {
            let left = end.map_or(Duration::from_secs(60), |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// The thread: writes until nothing more comes, and closes the target then.
    fn write(&self, mut target: Target) {
        let mut bytes = Vec::new();
        loop {
            let mut state = self.lock();
            while state.bytes.is_empty() {
                if state.over {
                    // A holder that is left is told that nobody writes any more.
                    state.failed = Some(ERROR_BROKEN_PIPE.cast_signed());
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            bytes.clear();
            std::mem::swap(&mut bytes, &mut state.bytes);
            state.under_way = bytes.len();
            drop(state);
            let outcome = target.write(&bytes);
            let mut state = self.lock();
            state.under_way = 0;
            if let Err(error) = outcome {
                state.bytes = Vec::new();
                state.failed = Some(error.raw_os_error().unwrap_or_default());
                self.changed.notify_all();
                return;
            }
            self.changed.notify_all();
        }
    }
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Console(file, begun) => {
                begun.extend_from_slice(bytes);
                let whole = whole_characters(begun);
                let text: Vec<u16> = String::from_utf8_lossy(&begun[..whole]).encode_utf16().collect();
                begun.drain(..whole);
                text.chunks(CONSOLE_CHUNK).try_for_each(|chunk| write_console(file, chunk))
            }
        }
    }
}

/// The length of a text without the first bytes of a character that goes on later.
fn whole_characters(text: &[u8]) -> usize {
    match std::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Bytes that are no UTF-8 are shown as well as they can be.
        _ => text.len() - text.utf8_chunks().last().map_or(0, |last| begun_by(last.invalid())),
    }
}

/// Bytes at the end that begin a character.
fn begun_by(invalid: &[u8]) -> usize {
    let is_begun = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
    if is_begun { invalid.len() } else { 0 }
}

fn is_console(file: &File) -> bool {
    let mut mode = 0;
    // SAFETY: the handle is open as long as `file` is, and `mode` is written to at most.
    unsafe { GetConsoleMode(file.as_raw_handle(), &raw mut mode) != 0 }
}

fn write_console(file: &File, mut text: &[u16]) -> io::Result<()> {
    while !text.is_empty() {
        let (mut written, count) = (0, u32::try_from(text.len()).unwrap_or(u32::MAX));
        // SAFETY: `text` has `count` units, and the handle is open as long as `file` is.
        let done =
            unsafe { WriteConsoleW(file.as_raw_handle(), text.as_ptr(), count, &raw mut written, std::ptr::null()) };
        if done == 0 {
            return Err(io::Error::last_os_error());
        }
        text = text.get(written.max(1) as usize..).unwrap_or_default();
    }
    Ok(())
}

/// A stream that is read by a thread until it ends or is wanted no more.
pub(crate) struct Input {
    from: Source,
    gate: Arc<Gate>,
}

/// Input is read as long as this lives.
pub(crate) struct Still(Arc<Gate>);

/// The state of the thread: nothing is called off but its reading.
#[derive(Default)]
struct Gate(Mutex<Reading>);

#[derive(Default)]
struct Reading {
    /// The thread, while it reads.
    thread: Option<OwnedHandle>,
    over: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The source of the input.
pub(crate) enum Source {
    /// A pipe or a file.
    File(File),
    /// A console, whose characters are read as such: its bytes would be those of an old code page.
    Console {
        /// The console.
        file: File,
        /// Input that was read and not asked for yet, in UTF-8.
        rest: Vec<u8>,
        /// The first half of a character of two units.
        half: Option<u16>,
    },
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Console { file, rest, half } => {
                while rest.is_empty() {
                    let mut units = [0; CONSOLE_CHUNK];
                    let count = read_console(file, &mut units)?;
                    // Ctrl-C breaks off what is read without ending it.
                    if count == 0 && io::Error::last_os_error().raw_os_error() == Some(BROKEN_OFF) {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    // Ctrl-Z at the beginning of a line is the end.
                    if count == 0 || units.first() == Some(&0x1A) {
                        return Ok(0);
                    }
                    let mut text: Vec<u16> = half.take().into_iter().chain(units.into_iter().take(count)).collect();
                    *half = text.pop_if(|last| (0xD800..0xDC00).contains(last));
                    *rest = String::from_utf16_lossy(&text).into_bytes();
                }
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                rest.drain(..count);
                Ok(count)
            }
        }
    }
}

fn read_console(file: &File, units: &mut [u16]) -> io::Result<usize> {
    let (mut count, most) = (0, u32::try_from(units.len()).unwrap_or(u32::MAX));
    // SAFETY: no memory is involved. What was an error before is none of this call.
    unsafe { SetLastError(ERROR_SUCCESS) };
    // SAFETY: `units` has room for `most` units, and the handle is open as long as `file` is.
    let done = unsafe {
        ReadConsoleW(file.as_raw_handle(), units.as_mut_ptr().cast(), most, &raw mut count, std::ptr::null())
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
}

impl Input {
    /// A stream, and what ends reading it. That nobody reads the output is seen when it is written to.
    pub(crate) fn new(input: File, _output: &File) -> io::Result<(Self, Still)> {
        let from = match is_console(&input) {
            true => Source::Console { file: input, rest: Vec::new(), half: None },
            false => Source::File(input),
        };
        let gate = Arc::<Gate>::default();
        Ok((Self { from, gate: gate.clone() }, Still(gate)))
    }

    /// Reads when there is something, or the end. `None`: it is wanted no more.
    pub(crate) fn read<T>(&mut self, read: impl FnOnce(&mut Source) -> io::Result<T>) -> Option<io::Result<T>> {
        // SAFETY: no memory is involved.
        let thread = unsafe { OpenThread(THREAD_TERMINATE, 0, GetCurrentThreadId()) };
        {
            let mut reading = self.gate.lock();
            // SAFETY: the handle was just opened, and is nobody else's.
            reading.thread = (!thread.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(thread) });
            if reading.over {
                reading.thread = None;
                return None;
            }
        }
        let outcome = read(&mut self.from);
        let mut reading = self.gate.lock();
        reading.thread = None;
        (!reading.over).then_some(outcome)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.0.lock().over = true;
        for _ in 0..CALLS_OFF {
            {
                let reading = self.0.lock();
                let Some(thread) = &reading.thread else { return };
                // SAFETY: the handle is open, and as the gate is locked, the thread does nothing but read.
                unsafe { CancelSynchronousIo(thread.as_raw_handle()) };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // The thread is left behind: it ends with its input, or with the process.
    }
}

/// Returns true if a terminal is gone, which no error says here.
pub(crate) fn is_hung_up(_: &io::Error) -> bool {
    false
}

/// A place of a standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Input,
    Output,
    Error,
}

impl Place {
    fn number(self) -> u32 {
        match self {
            Self::Input => STD_INPUT_HANDLE,
            Self::Output => STD_OUTPUT_HANDLE,
            Self::Error => STD_ERROR_HANDLE,
        }
    }

    /// The handle that stands there.
    fn now(self) -> Option<RawHandle> {
        // SAFETY: no memory is involved.
        let handle = unsafe { GetStdHandle(self.number()) };
        (!handle.is_null() && handle != INVALID_HANDLE_VALUE).then_some(handle)
    }

    /// A duplicate of what stands there, which no child inherits; `None` where nothing does, or what was closed.
    pub(crate) fn duplicate(self) -> Option<File> {
        let handle = self.now()?;
        // SAFETY: the handle is borrowed for the call alone, which fails if it is none.
        unsafe { BorrowedHandle::borrow_raw(handle) }.try_clone_to_owned().ok().map(File::from)
    }
}

/// Something else stands at a place until this is dropped: children inherit that, and not what stood there before.
pub(crate) struct Replaced {
    place: Place,
    instead: File,
    before: RawHandle,
    was_inherited: bool,
}

// SAFETY: a handle is a number that means the same in all threads.
unsafe impl Send for Replaced {}

impl Replaced {
    /// Puts a file there.
    pub(crate) fn put(place: Place, instead: File) -> io::Result<Self> {
        let before = place.now().ok_or(io::ErrorKind::NotConnected)?;
        let was_inherited = inherits(before, false);
        inherits(instead.as_raw_handle(), true);
        // SAFETY: `instead` stays open as long as it stands there.
        if unsafe { SetStdHandle(place.number(), instead.as_raw_handle()) } == 0 {
            let error = io::Error::last_os_error();
            inherits(before, was_inherited);
            return Err(error);
        }
        Ok(Self { place, instead, before, was_inherited })
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        inherits(self.before, self.was_inherited);
        // The program may have put something else there.
        if self.place.now() == Some(self.instead.as_raw_handle()) {
            // SAFETY: what stood there before was not closed here.
            unsafe { SetStdHandle(self.place.number(), self.before) };
        }
    }
}

/// Says whether children inherit a handle from now on; gives what was so before.
fn inherits(handle: RawHandle, inherits: bool) -> bool {
    let mut flags = 0;
    // SAFETY: `flags` is written to at most; what is no handle is an error.
    unsafe {
        let known = GetHandleInformation(handle, &raw mut flags) != 0;
        SetHandleInformation(handle, HANDLE_FLAG_INHERIT, if inherits { HANDLE_FLAG_INHERIT } else { 0 });
        known && flags & HANDLE_FLAG_INHERIT != 0
    }
}

/// The device that has nothing and takes everything.
pub(crate) fn null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let out = Out::own(writer);
        let mut sent = 0;
        let error = loop {
            match out.write_now(&[b'x'; 5000]) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
        };
        assert!(error.kind() == io::ErrorKind::WouldBlock && sent >= CAPACITY, "{sent}: {error}");
        let mut read = vec![0; sent];
        reader.read_exact(&mut read).expect("all of it");
        assert!(out.settle(Duration::from_secs(10)));
        drop(out);
        assert_eq!(reader.read(&mut read).expect("the end"), 0);
    }

    #[test]
    fn a_broken_pipe_is_seen_by_the_next_write() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let out = Out::own(writer);
        drop(reader);
        let _ = out.write_now(b"x");
        assert!(out.settle(Duration::from_secs(10)));
        assert_eq!(out.write_now(b"x").expect_err("broken").kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn reading_is_called_off() {
        let (reader, _writer) = io::pipe().expect("a pipe");
        let (mut input, still) = Input::new(OwnedHandle::from(reader).into(), &null().expect("NUL")).expect("input");
        let thread = std::thread::spawn(move || input.read(|from| from.read(&mut [0])).is_none());
        std::thread::sleep(Duration::from_millis(50));
        drop(still);
        assert!(thread.join().expect("no panic"));
    }

    #[test]
    fn characters_are_kept_whole() {
        for (text, whole) in [(&b"abc"[..], 3), (b"a\xc3", 1), (b"a\xff\xe2\x82", 2), (b"\xff", 1), (b"", 0)] {
            assert_eq!(whole_characters(text), whole, "{text:?}");
        }
    }
}
