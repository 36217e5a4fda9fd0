//! Servers on ports.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::place::everything;

/// The fixture server on a port.
pub(crate) struct Http {
    child: Child,
    pub(crate) url: String,
}

impl Http {
    /// Starts the fixture server with this environment.
    pub(crate) fn start(env: &[(&str, &str)]) -> Self {
        let mut server = Command::new(everything());
        server.args(["--http", "127.0.0.1:0"]).envs(env.iter().copied());
        Self::of(server)
    }

    /// Starts what says `ready URL` on standard error.
    pub(crate) fn of(mut server: Command) -> Self {
        let mut child = server.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("ready URL") }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // A bridge ends its own programs when it is told to end.
        #[cfg(unix)]
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        #[cfg(not(unix))]
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
