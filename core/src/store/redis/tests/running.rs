//! A real store for one test: the machine's Valkey or Redis, or the one that `cargo xtask setup` gets, in a folder of its
//! own and on a socket or a port of its own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A store that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
    port: Option<u16>,
}

fn program() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/valkey/valkey-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = |name| std::env::split_paths(&path).map(move |folder| folder.join(name));
    let all = on_path("valkey-server").chain(on_path("redis-server")).chain([unpacked]);
    let mut there = all.filter(|program| program.is_file());
    there.next().expect("valkey-server or redis-server: install Debian's package, or run cargo xtask setup")
}

fn folder() -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tricorn-store-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

impl Running {
    /// A store on a Unix socket.
    pub(crate) fn on_socket() -> Self {
        let folder = folder();
        let socket = folder.join("s").to_string_lossy().into_owned();
        Self::start(folder, None, &["--port", "0", "--unixsocket", &socket])
    }

    /// A store on a port, with more of its options.
    pub(crate) fn on_port(options: &[&str]) -> Self {
        let port = free_port();
        let text = port.to_string();
        Self::start(folder(), Some(port), &[&["--port", &text, "--bind", "127.0.0.1"], options].concat())
    }

    /// A sentinel that watches the store on this port as `main`.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn sentinel(watched: u16) -> Self {
        let (folder, port) = (folder(), free_port());
        let file = folder.join("sentinel.conf");
        let text = format!("port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {watched} 1\n");
        std::fs::write(&file, text).expect("a file");
        let arguments = vec![file.to_string_lossy().into_owned(), "--sentinel".into()];
        Self::run(folder, Some(port), arguments)
    }

    fn start(folder: PathBuf, port: Option<u16>, options: &[&str]) -> Self {
        let own = ["--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"];
        let arguments = own.iter().chain(options).map(|text| (*text).to_owned()).collect();
        Self::run(folder, port, arguments)
    }

    fn run(folder: PathBuf, port: Option<u16>, arguments: Vec<String>) -> Self {
        let program = program();
        let child = spawn(&program, &folder, &arguments);
        let it = Self { child, folder, program, arguments, port };
        it.wait();
        it
    }

    fn wait(&self) {
        let begun = Instant::now();
        loop {
            let is_there = match self.port {
                Some(port) => TcpStream::connect(("127.0.0.1", port)).is_ok(),
                None => std::os::unix::net::UnixStream::connect(self.folder.join("s")).is_ok(),
            };
            if is_there {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{} does not start", self.program.display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The program that asks it by hand.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn client(&self) -> PathBuf {
        let name = self.program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        self.program.with_file_name(name.replace("-server", "-cli"))
    }

    pub(crate) fn url(&self) -> String {
        match self.port {
            Some(port) => format!("redis://127.0.0.1:{port}"),
            None => format!("unix://{}", self.folder.join("s").display()),
        }
    }

    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn port(&self) -> u16 {
        self.port.expect("a store on a port")
    }

    /// Sends it a signal.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Ends it at once.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, without what it kept.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn again(&mut self) {
        self.child = spawn(&self.program, &self.folder, &self.arguments);
        self.wait();
    }
}

fn spawn(program: &Path, folder: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a store")
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
