//! The end of servers whose client's process was killed: one small process that waits for ours to end, and then ends the
//! groups that are left.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;
use tokio::process::Command;

use crate::driver::runtime;
use crate::streams::Out;

/// Reads `+ GROUP` and `- GROUP` to the end of its input, which is that of this process, however that comes. Groups have two
/// seconds to leave, as they have seen the end of their input themselves, and two more after SIGTERM.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM PIPE
groups=
without() {
    rest=
    for one in $groups; do [ "$one" = "$1" ] || rest="$rest $one"; done
    groups=$rest
}
while read -r sign group; do
    case $sign in
    +) groups="$groups $group" ;;
    -) without "$group" ;;
    esac
done
some_left() {
    for each in $groups; do kill -s 0 -- "-$each" 2>/dev/null || without "$each"; done
    [ -n "$groups" ]
}
for signal in TERM KILL; do
    for pause in 1 1; do
        some_left || exit 0
        sleep $pause
    done
    for each in $groups; do kill -s $signal -- "-$each" 2>/dev/null; done
done
"#;

/// The guard of this process, as long as it has something to guard.
struct Guard {
    /// Of a process that was forked from this one, it is the parent's.
    owner: u32,
    /// Its end is the sign.
    line: Out,
    groups: BTreeSet<i32>,
}

static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Guard>> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// None where there is no shell: then nobody watches.
    fn start(owner: u32) -> Option<Self> {
        let (near, far) = UnixStream::pair().ok()?;
        let handle = runtime::handle();
        let _guard = handle.enter();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).current_dir("/").process_group(0);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(Stdio::null());
        // Dropped, it is waited for in the background.
        drop(command.spawn().ok()?);
        Some(Self { owner, line: Out::new(near), groups: BTreeSet::new() })
    }

    fn say(&self, sign: char, group: i32) -> bool {
        let line = format!("{sign} {group}\n");
        self.line.write_now(line.as_bytes()).is_ok_and(|written| written == line.len())
    }
}

/// From now on this group ends with this process.
pub(super) fn add(group: Pid) {
    let (group, owner) = (group.as_raw_nonzero().get(), std::process::id());
    let mut guard = lock();
    if guard.as_ref().is_none_or(|guard| guard.owner != owner) {
        *guard = Guard::start(owner);
    }
    let Some(this) = guard.as_mut() else { return };
    this.groups.insert(group);
    if !this.say('+', group) {
        // Somebody has ended it: the next one takes over what there is.
        let groups = std::mem::take(&mut this.groups);
        *guard = Guard::start(owner).filter(|next| groups.iter().all(|group| next.say('+', *group)));
        if let Some(next) = guard.as_mut() {
            next.groups = groups;
        }
    }
}

/// This group is empty, and its number may become another's.
pub(super) fn remove(group: Pid) {
    let group = group.as_raw_nonzero().get();
    let mut guard = lock();
    let Some(this) = guard.as_mut().filter(|guard| guard.owner == std::process::id()) else { return };
    this.groups.remove(&group);
    this.say('-', group);
    if this.groups.is_empty() {
        *guard = None;
    }
}
