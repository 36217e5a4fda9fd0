//! Programs that end with the test that has started them, also where that fails.

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// Time in which a command has to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time in which one that is told to end does so.
const GRACE: Duration = Duration::from_secs(5);

/// A program in a group of its own.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(program: &mut Command) -> Self {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(program, 0);
        Self(program.spawn().unwrap())
    }

    /// Waits for its end, and gives what it has written.
    pub(crate) fn output(mut self) -> Output {
        fn all(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
                bytes
            })
        }
        drop(self.stdin.take());
        let (stdout, stderr) = (all(self.stdout.take()), all(self.stderr.take()));
        let end = Instant::now() + PATIENCE;
        let status = self.ends(end).unwrap_or_else(|| panic!("it does not end in {PATIENCE:?}"));
        Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }

    fn ends(&mut self, by: Instant) -> Option<std::process::ExitStatus> {
        loop {
            match self.try_wait().unwrap() {
                None if Instant::now() < by => std::thread::sleep(Duration::from_millis(5)),
                ended => return ended,
            }
        }
    }

    /// Tells it to end, as a terminal does whose window is closed.
    #[cfg(unix)]
    fn signal(&self, name: &str) {
        // Its own programs are in groups of theirs, which it ends, or whoever watches over them.
        let group = format!("-{}", self.id());
        let _ = Command::new("kill").args(["-s", name, "--", &group]).stderr(std::process::Stdio::null()).status();
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.try_wait(), Ok(Some(_))) {
            return;
        }
        #[cfg(unix)]
        self.signal("TERM");
        #[cfg(not(unix))]
        let _ = self.kill();
        if self.ends(Instant::now() + GRACE).is_none() {
            #[cfg(unix)]
            self.signal("KILL");
            let _ = self.kill();
            let _ = self.wait();
        }
    }
}

#[cfg(unix)]
#[test]
fn a_test_that_fails_leaves_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let script = format!("trap '' TERM; sleep 600 & echo $$ $! > {}; wait", file.display());
    let failed = std::thread::spawn(move || {
        let _running = Running::start(Command::new("sh").args(["-c", &script]));
        let end = Instant::now() + PATIENCE;
        while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
            assert!(Instant::now() < end, "it does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::panic::resume_unwind(Box::new(std::fs::read_to_string(&file).unwrap()));
    });
    let ids = failed.join().unwrap_err();
    let ids = ids.downcast_ref::<String>().unwrap();
    for id in ids.split_whitespace() {
        let end = Instant::now() + PATIENCE;
        // Until somebody has taken note of its end it is there, but does nothing.
        while std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(Instant::now() < end, "{id} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
