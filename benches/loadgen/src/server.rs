//! The server under test: started, found, greeted.

use crate::args::{Args, Proto, Transport};
use crate::procs::{self, Proc, Spawn, now_ns};
use crate::scenario::{self, Gen, INITIALIZED};
use crate::{http, stdio};
use std::net::SocketAddr;

/// Where the server under test is.
pub struct Server {
    pub proc_: Option<Proc>,
    pub pid: i32,
    pub ep: Option<http::Endpoint>,
}

pub fn spawn_server(a: &Args, cmd: &str, transport: Transport, pin: Option<usize>) -> Result<Server, String> {
    match transport {
        Transport::Stdio => {
            let cmd = &cmd.replace("{port}", "0");
            let p = procs::spawn(Spawn {
                cmd,
                cwd: a.cwd.as_deref(),
                env: &a.env,
                stderr: a.stderr.as_deref(),
                pipes: true,
                pin,
            })?;
            Ok(Server { pid: p.pid(), proc_: Some(p), ep: None })
        }
        Transport::Http => {
            if let Some(u) = &a.url {
                let rest = u.strip_prefix("http://").ok_or("--url must be http://")?;
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                return Ok(Server {
                    proc_: None,
                    pid: a.pid.unwrap_or(0),
                    ep: Some(http::Endpoint {
                        addr: http::resolve(host)?,
                        host: host.into(),
                        path: format!("/{path}"),
                    }),
                });
            }
            let port = procs::free_port();
            let cmd = cmd.replace("{port}", &port.to_string());
            let mut env = a.env.clone();
            env.push(("PORT".into(), port.to_string()));
            let p = procs::spawn(Spawn {
                cmd: &cmd,
                cwd: a.cwd.as_deref(),
                env: &env,
                stderr: a.stderr.as_deref(),
                pipes: false,
                pin,
            })?;
            let addr: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
            Ok(Server {
                pid: p.pid(),
                proc_: Some(p),
                ep: Some(http::Endpoint { addr, host: format!("127.0.0.1:{port}"), path: a.path.clone() }),
            })
        }
    }
}

impl Server {
    /// Waits until the port answers (http).
    pub fn wait_port(&mut self, secs: f64) -> Result<(), String> {
        let addr = self.ep.as_ref().unwrap().addr;
        let end = now_ns() + (secs * 1e9) as u64;
        loop {
            if http::try_connect(addr) {
                return Ok(());
            }
            if let Some(p) = &mut self.proc_ {
                if let Ok(Some(s)) = p.child.try_wait() {
                    return Err(format!("the server exited before listening: {s}"));
                }
            }
            if now_ns() > end {
                return Err("the server did not listen in time".into());
            }
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
    }
}

pub fn stdio_open(l: &mut stdio::Lines, gen: &Gen, a: &Args) -> Result<(), String> {
    if a.proto == Proto::Handshake {
        l.queue().extend_from_slice(gen.initialize().as_bytes());
        l.queue().push(b'\n');
        let m = l.await_id(0, a.boot_secs)?;
        if !m.contains("protocolVersion") {
            return Err(format!("initialize: {}", scenario::clip(&m)));
        }
        l.queue().extend_from_slice(INITIALIZED.as_bytes());
        l.queue().push(b'\n');
        l.flush()?;
    }
    Ok(())
}
