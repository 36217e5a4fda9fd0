//! Serving the way the command line says.

use std::future::Future;
use std::process::ExitCode;

#[cfg(feature = "http")]
use super::http::HttpOptions;
use crate::driver::runtime;
use crate::error::{Error, Result};
#[cfg(feature = "http")]
use crate::report;
use crate::server::Server;

/// Address of HTTP on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Address {
    host: Option<String>,
    port: Option<u16>,
}

impl Server {
    /// Serves until the client or the user ends it: over standard streams, or over HTTP (path `/mcp`) when the program
    /// was started with `--http [HOST:PORT|unix:PATH]`. Of the first either part may be missing, `127.0.0.1:8000` else;
    /// the second is a Unix socket. `ready <url>` on standard error then says where.
    ///
    /// Gives the status to end `main` with. SIGTERM, on Windows Ctrl-Break (0), [drains](Self::drain) the server: over HTTP,
    /// running calls have `drain_timeout` (5 s) to be answered. Ctrl-C (130) and SIGHUP (129), on Windows Ctrl-C (130) and
    /// the end of the console or the session (129), [close](Self::close) it: running calls are cancelled, what is answered
    /// has a second to get out. The second signal is not waited for. SIGHUP stays ignored where the program was started so
    /// (`nohup`).
    ///
    /// # Errors
    /// A mistake in the server's definition, a bad address, one that is taken.
    pub async fn run(self) -> Result<ExitCode> {
        let server = self.clone();
        self.until_told(async move {
            match asked(arguments())? {
                None => server.stdio().await,
                #[cfg(feature = "http")]
                Some(address) => server.http(address, HttpOptions::default()).await,
                #[cfg(not(feature = "http"))]
                Some(_) => Err(Error::misuse("this build has no HTTP: enable the feature \"http\"")),
            }
        })
        .await
    }

    /// As [`run`](Self::run), with these options when HTTP is asked for; the command line's address counts.
    ///
    /// # Errors
    /// As [`run`](Self::run), and a mistake in the options.
    #[cfg(feature = "http")]
    pub async fn run_with(self, options: HttpOptions) -> Result<ExitCode> {
        let server = self.clone();
        self.until_told(async move {
            match asked(arguments())? {
                None => server.stdio().await,
                Some(address) => server.http(address, options).await,
            }
        })
        .await
    }

    async fn until_told(self, serving: impl Future<Output = Result<()>>) -> Result<ExitCode> {
        let mut signals = Signals::new()?;
        let mut serving = std::pin::pin!(serving);
        let status = tokio::select! {
            outcome = serving.as_mut() => return outcome.map(|()| ExitCode::SUCCESS),
            status = signals.next() => status,
        };
        match status {
            #[cfg(feature = "http")]
            Told::Terminate => drop(self.drain()),
            Told::Interrupt | Told::HangUp => self.close(),
            #[cfg(not(feature = "http"))]
            Told::Terminate => self.close(),
        }
        tokio::select! {
            outcome = serving => outcome?,
            // As it would have ended by that signal itself.
            second = signals.next() => return Ok(match second {
                Told::Terminate => ExitCode::from(143),
                told => told.into(),
            }),
        }
        Ok(status.into())
    }

    #[cfg(feature = "stdio")]
    async fn stdio(&self) -> Result<()> {
        self.serve_stdio().await
    }

    #[cfg(not(feature = "stdio"))]
    async fn stdio(&self) -> Result<()> {
        Err(Error::misuse("this build has no standard streams: enable the feature \"stdio\""))
    }

    #[cfg(feature = "http")]
    async fn http(&self, address: Address, mut options: HttpOptions) -> Result<()> {
        options.host = address.host.unwrap_or(options.host);
        options.port = address.port.unwrap_or(options.port);
        let serving = self.serve_http(options).await?;
        report::line(format_args!("ready {}", serving.url()));
        serving.join().await;
        Ok(())
    }
}

fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned())
}

/// The signal that ends a server.
#[derive(Clone, Copy)]
enum Told {
    Interrupt,
    /// Asks for an end in order.
    Terminate,
    HangUp,
}

impl From<Told> for ExitCode {
    fn from(told: Told) -> Self {
        match told {
            Told::Interrupt => Self::from(130),
            Told::Terminate => Self::SUCCESS,
            Told::HangUp => Self::from(129),
        }
    }
}

/// Reads the arguments about HTTP from the command line.
fn asked(mut args: impl Iterator<Item = String>) -> Result<Option<Address>> {
    while let Some(arg) = args.next() {
        if let Some(given) = arg.strip_prefix("--http=") {
            return address(given).map(Some);
        }
        if arg == "--http" {
            let given = args.next().filter(|next| !next.starts_with('-')).unwrap_or_default();
            return address(&given).map(Some);
        }
    }
    Ok(None)
}

/// True for the path of a Unix socket.
fn is_socket(given: &str) -> bool {
    let is_path = |path: &str| path.contains('/') || (cfg!(windows) && path.contains('\\'));
    given.split_once(':').is_some_and(|(scheme, path)| scheme.eq_ignore_ascii_case("unix") && is_path(path))
}

/// `HOST:PORT`, `PORT`, `unix:PATH` or nothing.
fn address(given: &str) -> Result<Address> {
    if given.is_empty() {
        return Ok(Address::default());
    }
    if is_socket(given) {
        return Ok(Address { host: Some(given.to_owned()), port: None });
    }
    let (host, port) = given.rsplit_once(':').unwrap_or(("", given));
    let host = (!host.is_empty()).then(|| host.trim_matches(['[', ']']).to_owned());
    let port = port
        .parse()
        .map_err(|_| Error::misuse(format!("--http: expected HOST:PORT, PORT or unix:PATH, got {given:?}")))?;
    Ok(Address { host, port: Some(port) })
}

/// The signals that end a server.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Absent when the program was started to ignore it, as by `nohup`.
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let handle = runtime::handle();
        let _guard = handle.enter();
        let hang_up = SignalKind::hangup();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: (!is_ignored(hang_up.as_raw_value())).then(|| signal(hang_up)).transpose()?,
        })
    }

    async fn next(&mut self) -> Told {
        let hung_up = async {
            match &mut self.hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.terminate.recv() => Told::Terminate,
            () = hung_up => Told::HangUp,
        }
    }
}

/// Returns true if this process ignores a signal, or the system does not say.
#[cfg(unix)]
fn is_ignored(number: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (number - 1)) != 0
}

/// The signals that end a server: two keys, and the end of its console or of the session.
#[cfg(windows)]
struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    stop: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    log_off: tokio::signal::windows::CtrlLogoff,
    shut_down: tokio::signal::windows::CtrlShutdown,
}

#[cfg(windows)]
impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::windows;
        let handle = runtime::handle();
        let _guard = handle.enter();
        Ok(Self {
            interrupt: windows::ctrl_c()?,
            stop: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            log_off: windows::ctrl_logoff()?,
            shut_down: windows::ctrl_shutdown()?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.stop.recv() => Told::Terminate,
            _ = self.close.recv() => Told::HangUp,
            _ = self.log_off.recv() => Told::HangUp,
            _ = self.shut_down.recv() => Told::HangUp,
        }
    }
}

/// The signals that end a server: none are known.
#[cfg(not(any(unix, windows)))]
struct Signals;

#[cfg(not(any(unix, windows)))]
impl Signals {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Told {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_asked_for_in_the_same_ways_as_in_the_other_languages() {
        let asked = |line: &str| asked(line.split_whitespace().map(str::to_owned));
        for (line, expected) in [
            ("--stdio", None),
            ("--http", Some((None, None))),
            ("--http --verbose", Some((None, None))),
            ("--http=", Some((None, None))),
            ("-v --http 9000", Some((None, Some(9000)))),
            ("--http=9000", Some((None, Some(9000)))),
            ("--http :9000", Some((None, Some(9000)))),
            ("--http 0.0.0.0:0", Some((Some("0.0.0.0"), Some(0)))),
            ("--http [::1]:80", Some((Some("::1"), Some(80)))),
            ("--http unix:/run/mcp.sock", Some((Some("unix:/run/mcp.sock"), None))),
        ] {
            let found = asked(line).expect(line);
            assert_eq!(found.as_ref().map(|a| (a.host.as_deref(), a.port)), expected, "{line}");
        }
        for bad in ["--http here", "--http localhost:", "--http=h:99999"] {
            assert_eq!(asked(bad).err().map(|e| e.kind()), Some(crate::ErrorKind::Misuse), "{bad}");
        }
    }
}
