//! Limit of the sockets that the process may open.

/// Descriptors that are left to the program: its files, its children, its own connections.
#[cfg(unix)]
const LEFT: usize = 64;

/// Returns the number of sockets that can be had, of those wanted. The soft limit of open files is raised to the hard
/// one: a server has many, and the soft one is low for the sake of programs that call `select`.
#[cfg(unix)]
pub(super) fn most(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(u64::MAX);
    let mut current = limit.current.unwrap_or(u64::MAX);
    // macOS takes no more than OPEN_MAX where nothing is the limit.
    for raised in [maximum, maximum.min(10_240)] {
        if raised > current && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
            current = raised;
        }
    }
    let current = usize::try_from(current).unwrap_or(usize::MAX);
    wanted.min(current.saturating_sub(LEFT.max(current / 16).min(current / 2))).max(1)
}

#[cfg(not(unix))]
pub(super) fn most(wanted: usize) -> usize {
    wanted
}

/// Returns true if there are no descriptors left, in the process or in the system.
pub(super) fn are_used_up(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    {
        let code = error.raw_os_error();
        [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].iter().any(|used_up| code == Some(used_up.raw_os_error()))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_descriptors_is_left_to_the_program() {
        let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let before = limit();
        let most = most(usize::MAX);
        assert!(most >= 1 && limit().current >= before.current);
        assert!(limit().current.is_none_or(|current| (most as u64) < current));
        assert_eq!(super::most(1), 1);
    }

    #[test]
    fn the_error_is_known() {
        assert!(are_used_up(&std::io::Error::from_raw_os_error(24)));
        assert!(!are_used_up(&std::io::Error::from(std::io::ErrorKind::ConnectionAborted)));
    }
}
