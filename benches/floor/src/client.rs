//! The floor for clients: blocking pipe or poll()ed sockets, serde_json both ways, every answer
//! checked. Speaks the harness's READY / GO / DONE protocol (see README).

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

#[derive(Deserialize)]
struct Resp<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}
#[derive(Deserialize)]
struct Sum {
    sum: i64,
}
#[derive(Deserialize)]
struct Add {
    #[serde(rename = "structuredContent")]
    s: Sum,
}
#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}
#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    content: Vec<Text<'a>>,
}
#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

fn env(k: &str) -> String {
    std::env::var(k).unwrap_or_default()
}

const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"floor","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Job {
    scenario: String,
    text: String,
    modern: bool,
    tools: usize,
}

impl Job {
    fn build(&self, id: u64, out: &mut Vec<u8>) {
        let m = if self.modern { META } else { "" };
        if self.scenario == "list" {
            let m = m.strip_prefix(',').unwrap_or("");
            let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{m}}}}}"#);
        } else if self.text.is_empty() {
            let (a, b) = (id as i64, 7i64);
            let _ = write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"a":{a},"b":{b}}}{m}}}}}"#
            );
        } else {
            let _ = write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"#
            );
            let _ = serde_json::to_writer(&mut *out, &self.text);
            let _ = write!(out, "}}{m}}}}}");
        }
    }
    fn check(&self, b: &[u8]) -> bool {
        let Ok(r) = serde_json::from_slice::<Resp>(b) else {
            return false;
        };
        let Some(res) = r.result else { return false };
        if self.scenario == "list" {
            serde_json::from_str::<List>(res.get()).map(|l| l.tools.len() == self.tools).unwrap_or(false)
        } else if self.text.is_empty() {
            serde_json::from_str::<Add>(res.get()).map(|x| x.s.sum == r.id as i64 + 7).unwrap_or(false)
        } else {
            serde_json::from_str::<Echo>(res.get()).map(|x| x.content[0].text == self.text).unwrap_or(false)
        }
    }
    fn name(&self) -> &str {
        if self.text.is_empty() { "add" } else { "echo" }
    }
}

fn go() {
    println!("READY floor");
    let mut s = String::new();
    let _ = std::io::stdin().lock().read_line(&mut s);
}

/// Says DONE and stays until the harness has read the figures (end of stdin).
fn done(ok: u64, bad: u64) {
    println!("DONE {ok} {bad}");
    let mut s = String::new();
    while std::io::stdin().lock().read_line(&mut s).unwrap_or(0) > 0 {}
}

pub fn run() {
    let scenario = env("BENCH_SCENARIO");
    let n: u64 = env("BENCH_N").parse().unwrap_or(1000);
    let warm: u64 = env("BENCH_WARMUP").parse().unwrap_or(100).max(1);
    let conc: u64 = env("BENCH_CONCURRENCY").parse().unwrap_or(1);
    let len = match scenario.as_str() {
        "echo-1k" => 1 << 10,
        "echo-64k" => 1 << 16,
        "echo-1m" => 1 << 20,
        _ => 0,
    };
    let unit = "The quick brown fox jumps over the lazy dog; \"quoted\" text, caf\u{e9} cr\u{e8}me.\n";
    let mut text = String::new();
    while text.len() + unit.len() <= len {
        text.push_str(unit);
    }
    while text.len() < len {
        text.push('x');
    }
    let job = Job {
        scenario,
        text,
        modern: env("BENCH_PROTO") == "2026-07-28",
        tools: env("BENCH_TOOLS").parse().unwrap_or(100),
    };
    if env("BENCH_TRANSPORT") == "http" { http(job, n, warm, conc) } else { stdio(job, n, warm, conc) }
}

fn stdio(job: Job, n: u64, warm: u64, conc: u64) {
    let cmd = env("BENCH_SERVER_CMD");
    let argv: Vec<&str> = cmd.split_whitespace().collect();
    let mut ch =
        Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
    let mut w = ch.stdin.take().unwrap();
    let mut r = std::io::BufReader::with_capacity(1 << 16, ch.stdout.take().unwrap());
    let mut line = Vec::new();
    if !job.modern {
        w.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"floor\",\"version\":\"0\"}}}\n").unwrap();
        r.read_until(b'\n', &mut line).unwrap();
        w.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
    }
    let mut out = Vec::new();
    let mut phase = |first: u64, n: u64| -> (u64, u64) {
        let (mut ok, mut bad, mut issued) = (0, 0, 0);
        while ok + bad < n {
            out.clear();
            while issued < n && issued - ok - bad < conc && out.len() < 60_000 {
                job.build(first + issued, &mut out);
                out.push(b'\n');
                issued += 1;
            }
            // big payloads at concurrency > 1 would deadlock two blocking peers; the harness
            // runs those at concurrency 1
            if !out.is_empty() {
                w.write_all(&out).unwrap();
            }
            loop {
                line.clear();
                if r.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                    return (ok, n - ok);
                }
                if job.check(&line) {
                    ok += 1
                } else {
                    bad += 1
                }
                if r.buffer().is_empty() || ok + bad == n {
                    break;
                }
            }
        }
        (ok, bad)
    };
    phase(1, warm);
    go();
    let (ok, bad) = phase(1 + warm, n);
    done(ok, bad);
    drop(w);
    let _ = ch.wait();
}

struct C {
    s: std::net::TcpStream,
    inb: Vec<u8>,
    busy: bool,
}

fn http(job: Job, n: u64, warm: u64, conc: u64) {
    let url = env("BENCH_URL");
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMCP-Protocol-Version: {}\r\n",
        if job.modern { "2026-07-28" } else { "2025-11-25" }
    );
    if job.modern {
        if job.scenario == "list" {
            head.push_str("Mcp-Method: tools/list\r\n");
        } else {
            head.push_str(&format!("Mcp-Method: tools/call\r\nMcp-Name: {}\r\n", job.name()));
        }
    }
    let mut conns: Vec<C> = (0..conc)
        .map(|_| {
            let s = std::net::TcpStream::connect(host).unwrap();
            s.set_nodelay(true).unwrap();
            C { s, inb: Vec::with_capacity(1 << 16), busy: false }
        })
        .collect();
    let (mut body, mut req, mut tmp) = (Vec::new(), Vec::new(), vec![0u8; 1 << 18]);
    let mut phase = |first: u64, n: u64| -> (u64, u64) {
        let (mut ok, mut bad, mut issued) = (0, 0, 0);
        let mut pfs: Vec<libc::pollfd> =
            conns.iter().map(|c| libc::pollfd { fd: c.s.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
        loop {
            for c in conns.iter_mut().filter(|c| !c.busy) {
                if issued == n {
                    break;
                }
                body.clear();
                job.build(first + issued, &mut body);
                issued += 1;
                req.clear();
                req.extend_from_slice(head.as_bytes());
                let _ = write!(req, "Content-Length: {}\r\n\r\n", body.len());
                req.extend_from_slice(&body);
                c.s.write_all(&req).unwrap();
                c.busy = true;
            }
            if ok + bad == n {
                return (ok, bad);
            }
            if conc > 1 {
                unsafe { libc::poll(pfs.as_mut_ptr(), pfs.len() as _, -1) };
            } else {
                pfs[0].revents = libc::POLLIN;
            }
            for (i, p) in pfs.iter().enumerate() {
                if p.revents == 0 || !conns[i].busy {
                    continue;
                }
                let c = &mut conns[i];
                let k = c.s.read(&mut tmp).unwrap_or(0);
                if k == 0 {
                    return (ok, n - ok);
                }
                c.inb.extend_from_slice(&tmp[..k]);
                if let Some(e) = memchr::memmem::find(&c.inb, b"\r\n\r\n") {
                    let mut len = 0usize;
                    for l in c.inb[..e].split(|&x| x == b'\n') {
                        if l.len() > 15 && l[..15].eq_ignore_ascii_case(b"content-length:") {
                            len = std::str::from_utf8(l[15..].trim_ascii()).unwrap().parse().unwrap();
                        }
                    }
                    if c.inb.len() >= e + 4 + len {
                        if job.check(&c.inb[e + 4..e + 4 + len]) {
                            ok += 1
                        } else {
                            bad += 1
                        }
                        c.inb.clear();
                        c.busy = false;
                    }
                }
            }
        }
    };
    phase(1, warm);
    go();
    let (ok, bad) = phase(1 + warm, n);
    done(ok, bad);
}
