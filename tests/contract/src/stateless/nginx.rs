//! nginx, with settings that a page shows: the page is held to what it says.

use super::front::ANSWERED_BY;
use crate::Outcome;
use crate::launch;
use crate::wire::http::Endpoint;
use crate::wire::stdio::{Launch, Tail, kill_group};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PAGE: &str = "docs/guides/many-machines.md";

/// Longest time until it listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Its ports are free ones that somebody else may take first.
const ATTEMPTS: usize = 3;

/// Returns the path and the version of nginx, or the reason why it is not there.
pub(crate) fn find() -> Outcome<(PathBuf, String)> {
    let ours = launch::root()?.join("target/nginx/usr/sbin/nginx");
    for program in [PathBuf::from("nginx"), PathBuf::from("/usr/sbin/nginx"), ours] {
        // It says its version on standard error: `nginx version: nginx/1.22.1`.
        if let Ok(output) = Command::new(&program).arg("-v").stdin(Stdio::null()).output()
            && output.status.success()
            && let Some((_, version)) = String::from_utf8_lossy(&output.stderr).trim().split_once(": ")
        {
            return Ok((program, version.to_owned()));
        }
    }
    Err("there is no nginx: apt-get install nginx. The suite's own proxy stands in".into())
}

/// A running nginx; killed when dropped.
pub(crate) struct Nginx {
    child: Child,
    folder: PathBuf,
    /// Its complaints.
    pub(crate) log: Tail,
}

impl Nginx {
    /// With so many addresses, at each of which the processes take turns on their own.
    pub(super) fn start(program: &Path, processes: &[&Endpoint; 2], count: usize) -> Outcome<(Self, Vec<SocketAddr>)> {
        let page = std::fs::read_to_string(launch::root()?.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
        Self::with(program, count, |addresses| {
            addresses.iter().enumerate().map(|(number, address)| site(&page, number, *address, processes)).collect()
        })
    }

    /// With so many addresses, and the settings that `sites` makes for them.
    pub(crate) fn with(
        program: &Path,
        count: usize,
        mut sites: impl FnMut(&[SocketAddr]) -> Outcome<Vec<String>>,
    ) -> Outcome<(Self, Vec<SocketAddr>)> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let number = STARTED.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("contract-nginx-{}-{number}", std::process::id()));
            let addresses = free(count)?;
            let sites = sites(&addresses)?;
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            std::fs::write(folder.join("nginx.conf"), settings(&folder, &sites)).map_err(|error| error.to_string())?;
            match Self::launch(program, folder, &addresses) {
                Ok(nginx) => return Ok((nginx, addresses)),
                Err(reason) => last = reason,
            }
        }
        Err(last)
    }

    fn launch(program: &Path, folder: PathBuf, addresses: &[SocketAddr]) -> Outcome<Self> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let words = [program, Path::new("-e"), Path::new("stderr"), Path::new("-p"), &folder, Path::new("-c")];
        let mut words: Vec<String> = words.map(text).into();
        words.push(text(&folder.join("nginx.conf")));
        let mut child = Launch { words, environment: Vec::new() }.spawn(Stdio::null(), Stdio::null())?;
        let log = Tail::follow(child.stderr.take().ok_or("no standard error")?);
        let mut nginx = Self { child, folder, log };
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let listens = addresses.iter().all(|address| TcpStream::connect(address).is_ok());
            // Whoever listens there is not nginx when nginx has ended.
            let ended = nginx.child.try_wait().map_err(|error| error.to_string())?.is_some();
            if ended || Instant::now() > deadline {
                return Err(format!("nginx does not listen: {}", nginx.log.lines().join("\n")));
            }
            if listens {
                return Ok(nginx);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        kill_group(&mut self.child);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Ports that were free a moment ago.
fn free(count: usize) -> Outcome<Vec<SocketAddr>> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    listeners.iter().map(|listener| listener.local_addr().map_err(|error| error.to_string())).collect()
}

/// Returns the settings that are not those of the page: nginx writes to a folder of its own, and stays one process in
/// front.
fn settings(folder: &Path, sites: &[String]) -> String {
    let folder = folder.display();
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = kinds.map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n")).concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nevents {{}}\nhttp {{\n    access_log off;\n{temporary}{}}}\n",
        sites.concat()
    )
}

/// The settings of the page, with other addresses.
fn site(page: &str, number: usize, address: SocketAddr, processes: &[&Endpoint; 2]) -> Outcome<String> {
    let block = page
        .split_once("```nginx\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .ok_or_else(|| format!("{PAGE} shows no settings of nginx"))?;
    let changes = [
        ("upstream shop ", format!("upstream shop{number} ")),
        ("http://shop;", format!("http://shop{number};")),
        ("10.0.0.1:8000", processes[0].authority.clone()),
        ("10.0.0.2:8000", processes[1].authority.clone()),
        ("listen 443 ssl;", format!("listen {address}; add_header {ANSWERED_BY} $upstream_addr always;")),
    ];
    let mut text = block.0.to_owned();
    for (shown, ours) in changes {
        if text.matches(shown).count() != 1 {
            return Err(format!("{PAGE}: expected {shown:?} once in the settings of nginx"));
        }
        text = text.replace(shown, &ours);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_page_are_used() {
        let page = include_str!("../../../../docs/guides/many-machines.md");
        let endpoint = |port: u16| Endpoint { authority: format!("127.0.0.1:{port}"), path: "/mcp".into() };
        let (one, other) = (endpoint(1), endpoint(2));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 3));
        let text = site(page, 7, address, &[&one, &other]).expect("settings");
        for part in ["upstream shop7 {", "server 127.0.0.1:1 ", "server 127.0.0.1:2 ", "listen 127.0.0.1:3;"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("10.0.0."), "{text}");
        assert!(site("nothing", 0, address, &[&one, &other]).is_err());
        assert!(site("```nginx\nupstream shop {}\n```", 0, address, &[&one, &other]).is_err());
    }
}
