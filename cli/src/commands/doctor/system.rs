//! Facts of the system about processes, and signals to them. Where it tells nothing, as elsewhere than on Linux, the
//! checks that ask are left out.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

/// The processes that are waited for elsewhere.
pub(super) static STARTED: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);

/// A process that was left behind.
pub(super) struct Left {
    pub(super) pid: u32,
    pub(super) line: String,
}

#[cfg(unix)]
fn group(pid: u32) -> Option<rustix::process::Pid> {
    i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
}

/// Tells all of a process group to end.
#[cfg(unix)]
pub(super) fn terminate(pid: u32) {
    if let Some(pid) = group(pid) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
    }
}

/// Ends all of a process group at once.
#[cfg(unix)]
pub(super) fn kill_group(pid: u32) {
    if let Some(pid) = group(pid) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn terminate(_: u32) {}

#[cfg(not(unix))]
pub(super) fn kill_group(_: u32) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::PathBuf;
    use std::sync::PoisonError;
    use std::time::Duration;

    use super::{Left, STARTED, group};

    /// Fields of `/proc/PID/stat`.
    struct Stat {
        parent: u32,
        group: u32,
        ticks: u64,
        is_dead: bool,
    }

    fn stat(pid: u32) -> Option<Stat> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may have blanks and parentheses in it.
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        Some(Stat {
            parent: u32::try_from(number(1)?).ok()?,
            group: u32::try_from(number(2)?).unwrap_or_default(),
            ticks: number(11)? + number(12)?,
            is_dead: fields.first().is_some_and(|state| matches!(*state, "Z" | "X")),
        })
    }

    fn all() -> impl Iterator<Item = (u32, Stat)> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, stat(pid)?))
        })
    }

    /// Has processes whose parents have ended become children of this one.
    pub(in super::super) fn adopt(adopts: bool) {
        let _ = rustix::process::set_child_subreaper(adopts.then(rustix::process::getpid));
    }

    /// The children of this process that it has not started itself; those of `known` are left out.
    pub(in super::super) fn left(known: &[u32]) -> Option<Vec<Left>> {
        let own = std::process::id();
        let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found = Vec::new();
        for (pid, stat) in all().filter(|(_, stat)| stat.parent == own) {
            if known.contains(&pid) || started.contains(&pid) {
                continue;
            }
            if stat.is_dead {
                let reaped = group(pid);
                let _ = rustix::process::waitpid(reaped, rustix::process::WaitOptions::NOHANG);
                continue;
            }
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
            found.push(Left { pid, line });
        }
        Some(found)
    }

    /// Seconds of CPU that a process group has had.
    pub(in super::super) fn cpu(pid: u32) -> Option<f64> {
        let ticks: u64 = all().filter(|(_, stat)| stat.group == pid).map(|(_, stat)| stat.ticks).sum();
        #[expect(clippy::cast_precision_loss, reason = "a share is told")]
        let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(seconds)
    }

    /// Time for which the processes of a group were ready to run and had no core, as others were busy: that of the first
    /// thread of each, or of all threads together.
    pub(in super::super) fn waited(pid: u32, all_threads: bool) -> Duration {
        let of = |file: PathBuf| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let nanos = text.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
            Duration::from_nanos(nanos.unwrap_or_default())
        };
        let mut waited = Duration::ZERO;
        for (member, _) in all().filter(|(_, stat)| stat.group == pid) {
            let folder = PathBuf::from(format!("/proc/{member}"));
            if all_threads {
                let threads = std::fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
                waited += threads.map(|thread| of(thread.path().join("schedstat"))).sum::<Duration>();
            } else {
                waited += of(folder.join("schedstat"));
            }
        }
        waited
    }

    /// Memory of a process, in KiB.
    pub(in super::super) fn memory(pid: u32) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{adopt, cpu, left, memory, waited};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::time::Duration;

    use super::Left;

    pub(in super::super) fn adopt(_: bool) {}

    pub(in super::super) fn left(_: &[u32]) -> Option<Vec<Left>> {
        None
    }

    pub(in super::super) fn cpu(_: u32) -> Option<f64> {
        None
    }

    pub(in super::super) fn waited(_: u32, _: bool) -> Duration {
        Duration::ZERO
    }

    pub(in super::super) fn memory(_: u32) -> Option<u64> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{adopt, cpu, left, memory, waited};

/// Ends a process that was left behind.
pub(super) fn kill(pid: u32) {
    #[cfg(unix)]
    if let Some(pid) = group(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = pid;
}
