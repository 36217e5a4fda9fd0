//! One measurement of one MCP server (or client) implementation.
//!
//! Independent of every SDK: raw JSON-RPC lines, raw HTTP. Every answer is checked; one wrong
//! answer voids the figure (`valid: false`, exit status 1).

mod args;
mod client;
mod figures;
mod http;
mod procs;
mod scenario;
mod server;
mod stdio;

use args::{Args, Proto, Transport};
use figures::{Window, median, put_phase, r};
use procs::now_ns;
use scenario::{Gen, Kind};
use serde_json::{Map, Value, json};
use server::{spawn_server, stdio_open};
use std::io::Write;

const FIRST: u64 = 1_000;
const WARM_FIRST: u64 = 10;

/// call / echo / list / ... and soak.
fn load(a: &Args, kind: Kind, out: &mut Map<String, Value>) -> Result<bool, String> {
    let gen = Gen::new(kind, a.proto, a.tools);
    let soak = a.scenario == "soak";
    let mut srv = spawn_server(a, &a.cmd, a.transport, a.pin_server)?;
    let pid = srv.pid;
    let first = FIRST.max(WARM_FIRST + a.warmup);
    let mut samples: Vec<(u64, u64)> = Vec::new();
    let step = (a.n / 20).max(1);
    let mut sampler = |done: u64| {
        if soak && (done == 1000 || done % step == 0) {
            samples.push((done, procs::usage(pid, true).rss_kb));
        }
    };
    let mut ph;
    match a.transport {
        Transport::Stdio => {
            let mut l = stdio::Lines::new(srv.proc_.as_ref().unwrap());
            stdio_open(&mut l, &gen, a)?;
            let w = stdio::run(&mut l, &gen, WARM_FIRST, a.warmup.max(1), a.concurrency, a.warmup_secs, |_| {})?;
            if w.failed > 0 {
                return Err(format!("warm-up: {} failed: {}", w.failed, w.first_error.unwrap_or_default()));
            }
            let win = Window::open(pid, true);
            ph = stdio::run(&mut l, &gen, first, a.n, a.concurrency, a.max_secs, &mut sampler)?;
            win.close(pid, true, ph.done, out);
        }
        Transport::Http => {
            srv.wait_port(a.boot_secs)?;
            let ep = srv.ep.as_ref().unwrap();
            let mut heads = Vec::new();
            for _ in 0..a.sessions {
                let sess = if a.proto == Proto::Handshake {
                    let mut c = http::Conn::open(ep.addr)?;
                    http::handshake(ep, &gen, &mut c, a.boot_secs)?
                } else {
                    None
                };
                out.insert("session_id".into(), json!(sess.is_some()));
                heads.push(http::head_prefix(ep, &gen, sess.as_deref()));
            }
            let mut pool = http::Pool::new(ep.addr, a.concurrency, heads, &gen)?;
            let w = pool.run(&gen, WARM_FIRST, a.warmup.max(1), a.warmup_secs, |_| {})?;
            if w.failed > 0 {
                return Err(format!("warm-up: {} failed: {}", w.failed, w.first_error.unwrap_or_default()));
            }
            let win = Window::open(pid, true);
            ph = pool.run(&gen, first, a.n, a.max_secs, &mut sampler)?;
            win.close(pid, true, ph.done, out);
        }
    }
    put_phase(&mut ph, out);
    if soak {
        let at = |k: u64| samples.iter().find(|s| s.0 >= k).map(|s| s.1).unwrap_or(0);
        let (early, last) = (at((a.n / 10).max(1)), samples.last().map(|s| s.1).unwrap_or(0));
        out.insert("rss_after_1k_kb".into(), json!(at(1000)));
        out.insert("rss_after_10pct_kb".into(), json!(early));
        out.insert("rss_after_all_kb".into(), json!(last));
        out.insert("rss_growth_kb".into(), json!(last as i64 - early as i64));
        out.insert("rss_samples".into(), json!(samples));
    }
    Ok(ph.failed == 0 && ph.done > 0)
}

/// Fresh process per sample: spawn -> first answer -> tools/list.
fn cold(a: &Args, out: &mut Map<String, Value>) -> Result<bool, String> {
    let gen = Gen::new(Kind::List, a.proto, a.tools);
    let (mut t_first, mut t_list, mut cpu, mut rss) = (vec![], vec![], vec![], vec![]);
    let mach0 = procs::machine();
    let (mut own_cpu, wall0, self0, spin0) = (0.0, now_ns(), procs::self_cpu_ns(), procs::spin_ns());
    for i in 0..a.n.min(200) {
        let mut srv = spawn_server(a, &a.cmd, a.transport, a.pin_server)?;
        let t0 = srv.proc_.as_ref().map(|p| p.spawned_ns).unwrap_or_else(now_ns);
        let mut first = 0u64;
        let done;
        match a.transport {
            Transport::Stdio => {
                let mut l = stdio::Lines::new(srv.proc_.as_ref().unwrap());
                if a.proto == Proto::Handshake {
                    stdio_open(&mut l, &gen, a)?;
                    first = now_ns();
                }
                let mut b = Vec::new();
                gen.build(1, &mut b);
                b.push(b'\n');
                l.queue().extend_from_slice(&b);
                let m = l.await_id(1, a.boot_secs)?;
                done = now_ns();
                gen.validate(1, &serde_json::from_str(&m).map_err(|e| e.to_string())?)?;
            }
            Transport::Http => {
                srv.wait_port(a.boot_secs)?;
                let ep = srv.ep.as_ref().unwrap();
                let mut c = http::Conn::open(ep.addr)?;
                let mut sess = None;
                if a.proto == Proto::Handshake {
                    sess = http::handshake(ep, &gen, &mut c, a.boot_secs)?;
                    first = now_ns();
                }
                let mut b = Vec::new();
                gen.build(1, &mut b);
                let mut req = http::head_prefix(ep, &gen, sess.as_deref());
                let _ = write!(req, "{}\r\n\r\n", b.len());
                req.extend_from_slice(&b);
                let (st, m) = c.roundtrip(req, Some(1), a.boot_secs)?;
                done = now_ns();
                if st != 200 {
                    return Err(format!("tools/list: HTTP {st}: {}", scenario::clip(&m)));
                }
                gen.validate(1, &serde_json::from_str(&m).map_err(|e| e.to_string())?)?;
            }
        }
        let u = procs::usage(srv.pid, true);
        own_cpu += u.cpu_ns as f64 / 1e9;
        // the first sample warms the page cache
        if i > 0 || a.n == 1 {
            t_first.push(if first > 0 { (first - t0) as f64 / 1e6 } else { (done - t0) as f64 / 1e6 });
            t_list.push((done - t0) as f64 / 1e6);
            cpu.push(u.cpu_ns as f64 / 1e6);
            rss.push(u.rss_kb as f64);
        }
    }
    let wall = (now_ns() - wall0) as f64 / 1e9;
    let busy = (procs::machine().0 - mach0.0) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let own = (procs::self_cpu_ns() - self0 + procs::spin_ns() - spin0) as f64 / 1e9;
    out.insert("cold_first_ms".into(), json!(r(median(&mut t_first), 3)));
    out.insert("cold_list_ms".into(), json!(r(median(&mut t_list), 3)));
    out.insert("cold_list_min_ms".into(), json!(r(t_list.iter().cloned().fold(f64::MAX, f64::min), 3)));
    out.insert("cold_cpu_ms".into(), json!(r(median(&mut cpu), 3)));
    out.insert("cold_rss_kb".into(), json!(median(&mut rss)));
    out.insert("samples".into(), json!(cpu.len()));
    out.insert("other_cores".into(), json!(r(((busy - own_cpu - own) / wall).max(0.0), 3)));
    Ok(true)
}

fn open_get(ep: &http::Endpoint, session: &str) -> Result<http::Conn, String> {
    let mut g = http::Conn::open(ep.addr)?;
    let mut h = ep.head("GET", Some(Proto::Handshake), Some(session)).replace("application/json, ", "").into_bytes();
    h.extend_from_slice(b"\r\n");
    match g.open_stream(h, 10.0)? {
        200 => Ok(g),
        st => Err(format!("GET stream: HTTP {st}")),
    }
}

/// Opens --n sessions and leaves them idle.
fn sessions(a: &Args, out: &mut Map<String, Value>) -> Result<bool, String> {
    if a.transport != Transport::Http || a.proto != Proto::Handshake {
        return Err("scenario sessions: http and the handshake revision only".into());
    }
    let mut srv = spawn_server(a, &a.cmd, a.transport, a.pin_server)?;
    srv.wait_port(a.boot_secs)?;
    let pid = srv.pid;
    let ep = srv.ep.as_ref().unwrap();
    let gen = Gen::new(Kind::Add, a.proto, a.tools);
    let mut c = http::Conn::open(ep.addr)?;
    // 20 sessions first, so that one-time allocations are not counted
    let mut ids = Vec::new();
    let mut streams = Vec::new();
    let call = |c: &mut http::Conn, sess: &str, id: u64| -> Result<(), String> {
        let mut b = Vec::new();
        gen.build(id, &mut b);
        let mut req = http::head_prefix(ep, &gen, Some(sess));
        let _ = write!(req, "{}\r\n\r\n", b.len());
        req.extend_from_slice(&b);
        let (st, m) = c.roundtrip(req, Some(id), 10.0)?;
        if st != 200 {
            return Err(format!("call in session: HTTP {st}: {}", scenario::clip(&m)));
        }
        gen.validate(id, &serde_json::from_str(&m).map_err(|e| e.to_string())?)
    };
    let mut open = |c: &mut http::Conn, k: u64, ids: &mut Vec<String>| -> Result<(), String> {
        let s = http::handshake(ep, &gen, c, a.boot_secs)?.ok_or("the server issues no session id")?;
        call(c, &s, k + 1)?;
        if a.get_stream {
            streams.push(open_get(ep, &s)?);
        }
        ids.push(s);
        Ok(())
    };
    for k in 0..20 {
        open(&mut c, k, &mut ids)?;
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    let win = Window::open(pid, true);
    let rss0 = procs::usage(pid, true);
    let t0 = now_ns();
    for k in 0..a.n {
        open(&mut c, 100 + k, &mut ids)?;
    }
    let el = (now_ns() - t0) as f64 / 1e9;
    win.close(pid, true, a.n, out);
    std::thread::sleep(std::time::Duration::from_millis(1000));
    let rss1 = procs::usage(pid, true);
    // idle CPU: what 1,000 idle sessions cost per second
    let i0 = procs::cpu_ns(pid, true);
    std::thread::sleep(std::time::Duration::from_millis(2000));
    let idle = (procs::cpu_ns(pid, true) - i0) as f64 / 1e9 / 2.0;
    drop(open);
    // does a call still cost the same with the sessions there?
    let t1 = now_ns();
    let c0 = procs::cpu_ns(pid, true);
    for k in 0..200 {
        call(&mut c, &ids[0], 500_000 + k)?;
    }
    let call_us = (now_ns() - t1) as f64 / 200.0 / 1e3;
    let call_cpu_us = (procs::cpu_ns(pid, true) - c0) as f64 / 200.0 / 1e3;
    drop(streams);
    let mut deleted = 0;
    for s in &ids {
        let mut h = ep.head("DELETE", Some(Proto::Handshake), Some(s)).into_bytes();
        h.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        if let Ok((st, _)) = c.roundtrip(h, None, 10.0) {
            if st / 100 == 2 {
                deleted += 1;
            }
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(2000));
    let rss2 = procs::usage(pid, true);
    // memory kept after DELETE may be the allocator's; as many sessions again tell it from a leak
    let mut again = Vec::new();
    let mut streams2 = Vec::new();
    for k in 0..a.n {
        let s = http::handshake(ep, &gen, &mut c, a.boot_secs)?.ok_or("the server issues no session id")?;
        call(&mut c, &s, 700_000 + k)?;
        if a.get_stream {
            streams2.push(open_get(ep, &s)?);
        }
        again.push(s);
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    let rss3 = procs::usage(pid, true);
    out.insert(
        "second_round_kb_per_session".into(),
        json!(r((rss3.rss_kb as f64 - rss2.rss_kb as f64) / a.n as f64, 2)),
    );
    out.insert("n_done".into(), json!(a.n));
    out.insert("n_failed".into(), json!(0));
    out.insert("open_per_s".into(), json!(r(a.n as f64 / el, 1)));
    out.insert("rss_before_kb".into(), json!(rss0.rss_kb));
    out.insert("rss_with_sessions_kb".into(), json!(rss1.rss_kb));
    out.insert("rss_after_delete_kb".into(), json!(rss2.rss_kb));
    out.insert("kb_per_session".into(), json!(r((rss1.rss_kb as f64 - rss0.rss_kb as f64) / a.n as f64, 2)));
    out.insert(
        "kept_after_delete_kb_per_session".into(),
        json!(r((rss2.rss_kb as f64 - rss0.rss_kb as f64) / a.n as f64, 2)),
    );
    out.insert("deleted".into(), json!(deleted));
    out.insert("idle_cores".into(), json!(r(idle, 4)));
    out.insert("call_us_with_sessions".into(), json!(r(call_us, 1)));
    out.insert("call_cpu_us_with_sessions".into(), json!(r(call_cpu_us, 1)));
    out.insert("fds_with_sessions".into(), json!(rss1.fds));
    out.insert("threads_with_sessions".into(), json!(rss1.threads));
    Ok(true)
}

fn main() {
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let a = match args::parse() {
        Ok(a) => a,
        Err(e) => {
            eprintln!("loadgen: {e} (--help lists the options)");
            std::process::exit(2);
        }
    };
    if let (false, Some(c)) = (a.mode_client, a.pin_client) {
        procs::pin(0, c);
    }
    if a.keep_awake {
        procs::keep_awake();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut out = Map::new();
    out.insert("keep_awake".into(), json!(a.keep_awake));
    out.insert("target".into(), json!(a.target));
    out.insert("mode".into(), json!(if a.mode_client { "client" } else { "server" }));
    out.insert("transport".into(), json!(if a.transport == Transport::Http { "http" } else { "stdio" }));
    out.insert("proto".into(), json!(a.proto.version()));
    out.insert("scenario".into(), json!(a.scenario));
    out.insert("concurrency".into(), json!(a.concurrency));
    out.insert("n".into(), json!(a.n));
    let res = if a.mode_client {
        client::client(&a, &mut out)
    } else {
        match a.scenario.as_str() {
            "cold" => cold(&a, &mut out),
            "sessions" => sessions(&a, &mut out),
            s => match Kind::parse(s) {
                Some(k) => load(&a, k, &mut out),
                None => Err(format!("unknown scenario {s}")),
            },
        }
    };
    let valid = match res {
        Ok(v) => v,
        Err(e) => {
            out.insert("error".into(), json!(e));
            false
        }
    };
    out.insert("valid".into(), json!(valid));
    let v = Value::Object(out);
    let text = serde_json::to_string_pretty(&v).unwrap();
    if let Some(f) = &a.json {
        if let Err(e) = std::fs::write(f, format!("{text}\n")) {
            eprintln!("loadgen: {f}: {e}");
            std::process::exit(2);
        }
    }
    if a.json.is_none() || a.verbose {
        println!("{text}");
    }
    if !valid {
        if let Some(e) = v.get("error") {
            eprintln!("loadgen: {}: VOID: {e}", a.target);
        }
        std::process::exit(1);
    }
}
