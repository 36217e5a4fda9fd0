//! Command line. Hand-written: the harness keeps its dependency list to four crates.

use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Stdio,
    Http,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proto {
    /// `initialize` handshake, revision 2025-11-25 (session id if the server issues one).
    Handshake,
    /// Stateless revision 2026-07-28: `_meta` on every request, no handshake.
    Stateless,
}

impl Proto {
    pub fn version(self) -> &'static str {
        match self {
            Proto::Handshake => "2025-11-25",
            Proto::Stateless => "2026-07-28",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Args {
    pub target: String,
    pub cmd: String,
    pub cwd: Option<String>,
    pub env: Vec<(String, String)>,
    pub mode_client: bool,
    pub server_cmd: Option<String>,
    pub transport: Transport,
    pub proto: Proto,
    pub scenario: String,
    pub n: u64,
    pub warmup: u64,
    pub warmup_secs: f64,
    pub concurrency: usize,
    pub max_secs: f64,
    pub sessions: usize,
    pub get_stream: bool,
    pub tools: usize,
    pub path: String,
    pub url: Option<String>,
    pub pid: Option<i32>,
    pub pin_server: Option<usize>,
    pub pin_client: Option<usize>,
    pub stderr: Option<String>,
    pub json: Option<String>,
    pub boot_secs: f64,
    pub verbose: bool,
    pub keep_awake: bool,
}

pub const USAGE: &str = "\
loadgen --target NAME --cmd 'CMD ... {port}' --transport stdio|http --scenario S [options]

scenarios (server mode)
  call-add            tools/call add{a,b}, checks structuredContent.sum
  echo-1k echo-64k echo-1m   tools/call echo{text}, checks the text byte for byte
  sleep-N             tools/call sleep_ms{ms:N} (async tool), e.g. sleep-10
  list                tools/list, checks the number of tools (--tools)
  read                resources/read bench://hello
  read-template       resources/read bench://item/7, which a template serves
  prompt              prompts/get greet{name:Ada}
  sample              tools/call ask_model, which asks us for a message once (handshake revision only)
  elicit              tools/call ask_user, which asks us for a form once (handshake revision only)
  ping                ping (handshake revision only)
  cold                spawn -> first answer -> tools/list, one fresh process per sample (--n samples)
  soak                call-add --n times, RSS sampled along the way
  sessions            open --n idle sessions (handshake, http), RSS before/after/after DELETE
scenarios (client mode, --mode client): call-add echo-* list, run by the client under test

options
  --mode server|client     what --cmd is (default server)
  --server-cmd CMD         client mode: the fixed server it is pointed at
  --proto 2025-11-25|2026-07-28   (default 2025-11-25)
  --n N (20000)  --concurrency C (1)  --warmup W (min(n/10,2000))
  --max-secs S (20): stop measuring then   --warmup-secs S (1.5)
  --sessions K (1)         http handshake: spread the connections over K sessions
  --get-stream             scenario sessions: also hold the standalone GET SSE stream open
  --tools T (100)          number of tools the server registers
  --url U --pid P          attach to a running http server instead of spawning
  --path /mcp  --cwd DIR  --env K=V (repeatable)  --stderr FILE  --boot-secs S (30)
  --pin-server CPU --pin-client CPU
  --keep-awake             spin on every CPU at idle priority, so that wake-ups cost the same on a
                           quiet and on a busy machine (recommended on virtual machines)
  --json FILE              write the figures as one JSON object
";

pub fn parse() -> Result<Args, String> {
    let mut it = std::env::args().skip(1);
    let mut m: HashMap<String, String> = HashMap::new();
    let mut env = Vec::new();
    while let Some(a) = it.next() {
        let key = a.strip_prefix("--").ok_or_else(|| format!("unexpected argument {a}"))?.to_string();
        match key.as_str() {
            "help" => {
                print!("{USAGE}");
                std::process::exit(0);
            }
            "get-stream" | "verbose" | "keep-awake" => {
                m.insert(key, "1".into());
            }
            "env" => {
                let v = it.next().ok_or("--env needs K=V")?;
                let (k, v) = v.split_once('=').ok_or("--env needs K=V")?;
                env.push((k.to_string(), v.to_string()));
            }
            "target" | "cmd" | "cwd" | "mode" | "server-cmd" | "transport" | "proto" | "scenario" | "n" | "warmup"
            | "warmup-secs" | "concurrency" | "max-secs" | "sessions" | "tools" | "path" | "url" | "pid"
            | "pin-server" | "pin-client" | "stderr" | "json" | "boot-secs" => {
                let v = it.next().ok_or_else(|| format!("--{key} needs a value"))?;
                m.insert(key, v);
            }
            _ => return Err(format!("unknown option --{key}")),
        }
    }
    fn num<T: std::str::FromStr>(m: &HashMap<String, String>, k: &str, d: T) -> Result<T, String> {
        match m.get(k) {
            None => Ok(d),
            Some(v) => v.parse().map_err(|_| format!("--{k}: bad number {v}")),
        }
    }
    fn opt<T: std::str::FromStr>(m: &HashMap<String, String>, k: &str) -> Result<Option<T>, String> {
        match m.get(k) {
            None => Ok(None),
            Some(v) => v.parse().map(Some).map_err(|_| format!("--{k}: bad number {v}")),
        }
    }
    let n: u64 = num(&m, "n", 20000)?;
    let transport = match m.get("transport").map(String::as_str) {
        Some("stdio") => Transport::Stdio,
        Some("http") => Transport::Http,
        other => return Err(format!("--transport stdio|http, got {other:?}")),
    };
    let proto = match m.get("proto").map(String::as_str) {
        None | Some("2025-11-25") => Proto::Handshake,
        Some("2026-07-28") => Proto::Stateless,
        Some(o) => return Err(format!("--proto {o}: only 2025-11-25 and 2026-07-28")),
    };
    let mode_client = match m.get("mode").map(String::as_str) {
        None | Some("server") => false,
        Some("client") => true,
        Some(o) => return Err(format!("--mode {o}")),
    };
    let url = m.get("url").cloned();
    Ok(Args {
        target: m.get("target").cloned().unwrap_or_else(|| "unnamed".into()),
        cmd: match (m.get("cmd"), &url) {
            (Some(c), _) => c.clone(),
            (None, Some(_)) => String::new(),
            _ => return Err("--cmd is required".into()),
        },
        cwd: m.get("cwd").cloned(),
        env,
        mode_client,
        server_cmd: m.get("server-cmd").cloned(),
        transport,
        proto,
        scenario: m.get("scenario").cloned().ok_or("--scenario is required")?,
        n,
        warmup: num(&m, "warmup", (n / 10).min(2000))?,
        warmup_secs: num(&m, "warmup-secs", 1.5)?,
        concurrency: num(&m, "concurrency", 1usize)?.max(1),
        max_secs: num(&m, "max-secs", 20.0)?,
        sessions: num(&m, "sessions", 1usize)?.max(1),
        get_stream: m.contains_key("get-stream"),
        tools: num(&m, "tools", 100usize)?,
        path: m.get("path").cloned().unwrap_or_else(|| "/mcp".into()),
        url,
        pid: opt(&m, "pid")?,
        pin_server: opt(&m, "pin-server")?,
        pin_client: opt(&m, "pin-client")?,
        stderr: m.get("stderr").cloned(),
        json: m.get("json").cloned(),
        boot_secs: num(&m, "boot-secs", 30.0)?,
        verbose: m.contains_key("verbose"),
        keep_awake: m.contains_key("keep-awake"),
    })
}
