//! The end of a server whose client's process was killed: a small process beside it, which waits for ours to end and then
//! ends the server's group.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use tokio::process::Command;

use super::unix::Group;
use crate::driver::runtime;
use crate::streams::Out;

/// A line says that the group is empty. The end of the input without one is that of this process, however that came. The
/// group has two seconds to leave, as it has seen the end of its own input, and two more after SIGTERM.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM PIPE
cd /
read -r over && exit
for signal in TERM KILL; do
    for pause in 1 1; do
        kill -s 0 -- "-$1" 2>/dev/null || exit 0
        sleep $pause
    done
    kill -s $signal -- "-$1" 2>/dev/null
done
"#;

/// Watches over one group. To drop it while this process lives ends the group, as the end of the process does.
pub(super) struct Guard(Out);

impl Guard {
    /// None where there is no shell: then nobody watches. To be called in a runtime.
    pub(super) fn new(group: &Group) -> Option<Self> {
        let (near, far) = UnixStream::pair().ok()?;
        let handle = runtime::handle();
        let _guard = handle.enter();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).arg(group.0.as_raw_nonzero().to_string()).process_group(0);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(Stdio::null());
        // Dropped, it is waited for in the background.
        drop(command.spawn().ok()?);
        Some(Self(Out::new(near)))
    }

    /// The group is empty, and its number may become another's.
    pub(super) fn stand_down(self) {
        // There is room for it: nothing else was ever written.
        let _ = self.0.write_now(b"over\n");
    }
}
