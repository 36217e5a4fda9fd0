//! The client under test, against a fixed server.

use crate::args::{Args, Transport};
use crate::figures::{Window, r};
use crate::procs::{self, Proc, Spawn, now_ns};
use crate::server::spawn_server;
use serde_json::{Map, Value, json};
use std::os::fd::AsRawFd;

/// --cmd is a client. It connects, warms up, prints READY, waits for a line on its stdin, makes
/// n checked calls and prints `DONE <ok> <failed>`.
pub fn client(a: &Args, out: &mut Map<String, Value>) -> Result<bool, String> {
    let server_cmd = a.server_cmd.clone().ok_or("--mode client needs --server-cmd")?;
    let mut env = a.env.clone();
    let mut srv = None;
    let mut scmd = server_cmd.clone();
    if a.transport == Transport::Http {
        let mut s = spawn_server(a, &server_cmd, Transport::Http, a.pin_client)?;
        s.wait_port(a.boot_secs)?;
        let ep = s.ep.as_ref().unwrap();
        env.push(("BENCH_URL".into(), format!("http://{}{}", ep.host, ep.path)));
        srv = Some(s);
        scmd = String::new();
    }
    env.push(("BENCH_SERVER_CMD".into(), scmd));
    env.push(("BENCH_TRANSPORT".into(), if a.transport == Transport::Http { "http" } else { "stdio" }.into()));
    env.push(("BENCH_PROTO".into(), a.proto.version().into()));
    env.push(("BENCH_SCENARIO".into(), a.scenario.clone()));
    env.push(("BENCH_N".into(), a.n.to_string()));
    env.push(("BENCH_WARMUP".into(), a.warmup.to_string()));
    env.push(("BENCH_CONCURRENCY".into(), a.concurrency.to_string()));
    env.push(("BENCH_TOOLS".into(), a.tools.to_string()));
    let mut p = procs::spawn(Spawn {
        cmd: &a.cmd,
        cwd: a.cwd.as_deref(),
        env: &env,
        stderr: a.stderr.as_deref(),
        pipes: true,
        pin: a.pin_server,
    })?;
    let pid = p.pid();
    let t0 = p.spawned_ns;
    let rd = p.stdout.as_ref().unwrap().as_raw_fd();
    let mut buf: Vec<u8> = Vec::new();
    let mut read_line = |timeout_s: f64, p: &mut Proc| -> Result<String, String> {
        let end = now_ns() + (timeout_s * 1e9) as u64;
        loop {
            if let Some(i) = memchr::memchr(b'\n', &buf) {
                let l = String::from_utf8_lossy(&buf[..i]).trim().to_string();
                buf.drain(..=i);
                return Ok(l);
            }
            let mut pf = libc::pollfd { fd: rd, events: libc::POLLIN, revents: 0 };
            unsafe { libc::poll(&mut pf, 1, 100) };
            if pf.revents != 0 {
                let mut b = [0u8; 4096];
                let k = unsafe { libc::read(rd, b.as_mut_ptr() as *mut _, b.len()) };
                if k <= 0 {
                    let st = p.child.wait().map(|s| s.to_string()).unwrap_or_default();
                    return Err(format!("the client ended: {st}"));
                }
                buf.extend_from_slice(&b[..k as usize]);
            }
            if now_ns() > end {
                return Err("the client said nothing in time".into());
            }
        }
    };
    let ready = loop {
        let l = read_line(a.boot_secs + a.max_secs, &mut p)?;
        if l.starts_with("READY") {
            break l;
        }
    };
    let ready_ms = (now_ns() - t0) as f64 / 1e6;
    let win = Window::open(pid, false);
    let s0 = srv.as_ref().map(|s| procs::cpu_ns(s.pid, true)).unwrap_or(0);
    let tstart = now_ns();
    let wr = p.stdin.as_ref().unwrap().as_raw_fd();
    unsafe { libc::write(wr, b"GO\n".as_ptr() as *const _, 3) };
    let line = loop {
        let l = read_line(a.max_secs * 3.0 + 60.0, &mut p)?;
        if l.starts_with("DONE") {
            break l;
        }
    };
    let wall = (now_ns() - tstart) as f64 / 1e9;
    let f: Vec<u64> = line.split_whitespace().skip(1).filter_map(|x| x.parse().ok()).collect();
    let (ok, bad) = (f.first().copied().unwrap_or(0), f.get(1).copied().unwrap_or(u64::MAX));
    win.close(pid, false, ok, out);
    if let Some(s) = &srv {
        out.insert("server_cpu_s".into(), json!(r((procs::cpu_ns(s.pid, true) - s0) as f64 / 1e9, 5)));
    }
    out.insert("n_done".into(), json!(ok));
    out.insert("n_failed".into(), json!(bad));
    out.insert("wall_s".into(), json!(r(wall, 4)));
    out.insert("rps".into(), json!(r(ok as f64 / wall, 1)));
    out.insert("spawn_to_ready_ms".into(), json!(r(ready_ms, 1)));
    out.insert("client_says".into(), json!(ready));
    Ok(bad == 0 && ok > 0)
}
