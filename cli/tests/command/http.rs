//! Servers on ports.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::place::everything;
use crate::running::Running;

/// The fixture server on a port.
pub(crate) struct Http {
    /// A bridge ends its own programs when it is told to end.
    _child: Running,
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
        let mut child = Running::start(server.stdin(Stdio::null()).stderr(Stdio::piped()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        std::thread::spawn(move || lines.for_each(drop));
        Self { _child: child, url: url.expect("ready URL") }
    }
}
