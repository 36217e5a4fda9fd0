//! Jobs, and named pipes that the reactor watches
//! ([ADR 0018](../../../../docs/adr/0018-windows-by-its-own-functions.md)).
#![allow(unsafe_code, reason = "nothing safe has these functions; see ADR 0018")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::net::windows::named_pipe::{NamedPipeServer, PipeMode, ServerOptions};
use tokio::process::{Child, Command};
use windows_sys::Win32::Foundation::{ERROR_BAD_EXE_FORMAT, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_SUSPENDED, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME,
};

use crate::client::programs::{Search, is_batch};
use crate::streams::Place;

/// The status of processes that are ended: as of those that Ctrl-C ends.
const ENDED: u32 = 0xC000_013A;

/// A job: the child, and what that has started. When the last handle of it is closed, as by the end of this process
/// however that comes, the system ends all of it.
#[derive(Clone)]
pub(super) struct Group(Arc<OwnedHandle>);

impl Group {
    fn new() -> io::Result<Self> {
        // SAFETY: it takes nothing; the handle, if it is one, is nobody else's.
        let job = unsafe {
            let job = CreateJobObjectW(std::ptr::null(), std::ptr::null());
            if job.is_null() {
                return Err(io::Error::last_os_error());
            }
            OwnedHandle::from_raw_handle(job)
        };
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: `limits` is of the type and length that it says.
        let set = unsafe {
            SetInformationJobObject(
                job.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                length_of(&limits),
            )
        };
        if set == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(Arc::new(job))) }
    }

    /// Has a process in it, and what that starts from now on.
    fn take(&self, process: RawHandle) -> io::Result<()> {
        // SAFETY: both handles are open.
        let taken = unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) };
        if taken == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns true if somebody is in it.
    pub(super) fn exists(&self) -> bool {
        let mut facts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        // SAFETY: `facts` is of the type and length that it says.
        let known = unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut facts).cast(),
                length_of(&facts),
                std::ptr::null_mut(),
            )
        };
        known != 0 && facts.ActiveProcesses > 0
    }

    /// Tells all of it to end: the end of its input has said so, and there is no other way. False: it need not be waited
    /// for.
    pub(super) fn ask_to_end(&self) -> bool {
        false
    }

    pub(super) fn kill(&self) {
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), ENDED) };
    }
}

fn length_of<T>(_: &T) -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or_default()
}

/// Nothing: the system itself ends a job whose owner is gone.
pub(super) struct Guard;

impl Guard {
    pub(super) fn new(_: &Group) -> Option<Self> {
        None
    }

    pub(super) fn stand_down(self) {}
}

/// The output of a child.
pub(in crate::endpoint) struct Receiver(NamedPipeServer);

impl Receiver {
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.try_read(buffer) {
            // The end, when the other one is closed.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            read => read,
        }
    }
}

/// A pipe to a child: its end, and ours.
pub(super) fn input() -> io::Result<(PipeReader, PipeWriter)> {
    io::pipe()
}

/// A pipe from a child: our end, and its. Pipes without names cannot be watched.
pub(super) fn output() -> io::Result<(Receiver, File)> {
    let name = name()?;
    let mut options = ServerOptions::new();
    // One that has the name already, or comes before the child's end, is an error.
    options.first_pipe_instance(true).max_instances(1).reject_remote_clients(true);
    let near = options.access_outbound(false).pipe_mode(PipeMode::Byte).create(&name)?;
    let far = OpenOptions::new().write(true).open(&name)?;
    let connected = pin!(near.connect()).poll(&mut Context::from_waker(Waker::noop()));
    match connected {
        Poll::Ready(outcome) => outcome?,
        Poll::Pending => return Err(io::ErrorKind::NotConnected.into()),
    }
    Ok((Receiver(near), far))
}

/// A name that nobody guesses.
fn name() -> io::Result<String> {
    let mut number = [0; 16];
    crate::random::fill(&mut number).map_err(io::Error::other)?;
    Ok(format!(r"\\.\pipe\tricorn-{:032x}", u128::from_ne_bytes(number)))
}

/// A duplicate.
pub(super) fn standard_error() -> Option<File> {
    Place::Error.duplicate()
}

/// The command that starts a program, without a window.
pub(super) fn command(program: &str, env: &BTreeMap<String, Option<String>>, cwd: Option<&str>) -> Command {
    // A command that is not found is left to the system, which looks in more places.
    let file = Search::new(env, cwd).find(program).unwrap_or_else(|| program.to_owned());
    let mut command = Command::new(file);
    // It does nothing before it is in its job: what it starts is in it, too.
    command.creation_flags(CREATE_NO_WINDOW | CREATE_SUSPENDED);
    command
}

/// Starts it, in a job of its own.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Option<Group>)> {
    let group = Group::new()?;
    let mut child = command.spawn()?;
    let started = match (child.raw_handle(), child.id()) {
        (Some(process), Some(id)) => group.take(process).and_then(|()| resume(id)),
        _ => Ok(()),
    };
    match started {
        Ok(()) => Ok((child, Some(group))),
        Err(error) => {
            let _ = child.start_kill();
            Err(error)
        }
    }
}

/// Lets a process go on that was started suspended: it has one thread.
fn resume(process: u32) -> io::Result<()> {
    // SAFETY: it takes numbers; the handle, if it is one, is nobody else's.
    let snapshot = unsafe {
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
        if snapshot == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        OwnedHandle::from_raw_handle(snapshot)
    };
    let mut entry = THREADENTRY32::default();
    entry.dwSize = length_of(&entry);
    // SAFETY: the handle is open, and `entry` says its length.
    let mut found = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) };
    while found != 0 {
        if entry.th32OwnerProcessID == process {
            // SAFETY: it takes numbers; the handle, if it is one, is nobody else's, and open in the second call.
            unsafe {
                let thread = OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID);
                if thread.is_null() {
                    return Err(io::Error::last_os_error());
                }
                let thread = OwnedHandle::from_raw_handle(thread);
                return match ResumeThread(thread.as_raw_handle()) {
                    u32::MAX => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                };
            }
        }
        // SAFETY: as above.
        found = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the process has no thread"))
}

/// Returns no error for a folder that exists and cannot be a working directory: the system's own error names the
/// reason.
pub(super) fn not_enterable(_: &str) -> Option<io::Error> {
    None
}

/// Reasons that the system leaves out of an error.
pub(super) fn reason(
    error: &io::Error,
    command: &str,
    env: &BTreeMap<String, Option<String>>,
    cwd: Option<&str>,
) -> Option<String> {
    let search = Search::new(env, cwd);
    match error.kind() {
        io::ErrorKind::NotFound => Some(search.described(command)),
        // The library's own refusal, which has no number.
        io::ErrorKind::InvalidInput
            if error.raw_os_error().is_none() && search.find(command).is_some_and(|file| is_batch(&file)) =>
        {
            Some(
                "it is a batch file, and cmd.exe would read an argument as a part of its own language; start the program \
                 that the file starts"
                    .to_owned(),
            )
        }
        _ if error.raw_os_error() == Some(ERROR_BAD_EXE_FORMAT.cast_signed()) => {
            Some("the file is no program for this system; a script is an argument of its interpreter".to_owned())
        }
        _ => None,
    }
}

/// Returns true if a command has a file, with the ending that it may be without.
pub(super) fn is_there(command: &str, env: &BTreeMap<String, Option<String>>, cwd: Option<&str>) -> bool {
    Search::new(env, cwd).find(command).is_some()
}
