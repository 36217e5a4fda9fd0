//! Finding and starting the servers under test.

use crate::Outcome;
use crate::options::Options;
use crate::wire::http::Endpoint;
use crate::wire::stdio::{Launch, Tail, kill_group, terminate, wait_bounded};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time until a server says `ready`.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The repository: the nearest folder upwards that holds `tests/transcripts`.
pub fn root() -> Outcome<PathBuf> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    here.ancestors()
        .find(|folder| folder.join("tests/transcripts").is_dir())
        .map(PathBuf::from)
        .ok_or_else(|| "run this inside the repository".into())
}

/// The command line of the server under test, without its mode.
pub fn server(options: &Options) -> Outcome<Vec<String>> {
    if let Some(line) = &options.server {
        return Ok(line.split_whitespace().map(str::to_owned).collect());
    }
    fixture(&options.language)
}

/// The fixture server of a language.
pub fn fixture(language: &str) -> Outcome<Vec<String>> {
    if language.is_empty() {
        return Err("say --lang rust|python|node|swift, or --server COMMAND".into());
    }
    let program = root()?.join("examples/everything").join(language).join("run");
    if !program.exists() {
        return Err(format!("{} is not there: run cargo xtask setup", program.display()));
    }
    Ok(vec![program.to_string_lossy().into_owned()])
}

/// The case runner of a language.
pub fn runner(language: &str) -> Outcome<String> {
    Ok(root()?.join("tests/cases/runners").join(language).join("run").to_string_lossy().into_owned())
}

/// The launch for stdio.
pub fn stdio(command: &[String], environment: &[(String, String)]) -> Launch {
    let mut words = command.to_vec();
    words.push("--stdio".into());
    Launch { words, environment: environment.to_vec() }
}

/// A server that listens; killed with everything it started when dropped.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    /// The beginning of what came on its standard output.
    output: Option<JoinHandle<Vec<u8>>>,
    /// Its address.
    pub endpoint: Endpoint,
    /// The URL it announced.
    pub url: String,
    /// Standard error after `ready`.
    pub log: Tail,
}

impl Listening {
    /// Start with `--http` on a free port and wait for `ready <url>`.
    pub fn start(command: &[String], environment: &[(String, String)]) -> Outcome<Self> {
        let mut words = command.to_vec();
        words.extend(["--http".to_owned(), "127.0.0.1:0".to_owned()]);
        let launch = Launch { words, environment: environment.to_vec() };
        let mut child = launch.spawn(Stdio::null(), Stdio::piped())?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let output = Some(std::thread::spawn(move || read_all(output)));
        let stream = child.stderr.take().ok_or("no standard error")?;
        let (sender, receiver) = channel();
        let log = Tail::default();
        let kept = log.clone();
        std::thread::spawn(move || {
            let mut sender = Some(sender);
            for line in BufReader::new(stream).split(b'\n') {
                let Ok(line) = line else { return };
                let text = String::from_utf8_lossy(&line);
                if let Some(url) = text.trim().strip_prefix("ready ")
                    && let Some(sender) = sender.take()
                {
                    let _ = sender.send(url.trim().to_owned());
                }
                kept.push(&text);
            }
        });
        match receiver.recv_timeout(START_LIMIT) {
            Ok(url) => {
                let endpoint = Endpoint::parse(&url)?;
                Ok(Self { child, output, endpoint, url, log })
            }
            Err(_) => {
                kill_group(&mut child);
                Err(format!("the server did not say `ready <url>`: {}", log.lines().join("\n")))
            }
        }
    }

    /// The process id of the launcher (and of the server, when the launcher execs it).
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the process still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ask it to end with SIGTERM, and do not wait.
    pub fn ask_to_end(&self) -> Outcome {
        terminate(&self.child)
    }

    /// Ask it to end with SIGTERM; what it wrote on its standard output.
    pub fn terminate(self, limit: Duration) -> Outcome<String> {
        self.ask_to_end()?;
        self.ended(limit)
    }

    /// Wait for its end; what it wrote on its standard output.
    pub fn ended(mut self, limit: Duration) -> Outcome<String> {
        wait_bounded(&mut self.child, limit).map_err(|reason| format!("after SIGTERM: {reason}"))?;
        kill_group(&mut self.child);
        let said = self.output.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

/// Read to the end and keep the beginning, so that nobody blocks on writing.
fn read_all(mut stream: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let _ = stream.by_ref().take(4096).read_to_end(&mut kept);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    kept
}

impl Drop for Listening {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}
