//! `floor`: what the machine can do at all.
//!   floor --transport stdio|http [--impl raw|tokio|tokio-mt|tokio-stdin|tokio-inline] [--port P] [--tools N] [--sse]
//!   floor client          (reads BENCH_* like every client under test)

mod asy;
mod client;
mod core;
mod raw;

use std::os::fd::{FromRawFd, OwnedFd};
use tokio::net::unix::pipe;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("client") {
        return client::run();
    }
    let get = |k: &str| args.iter().position(|a| a == k).and_then(|i| args.get(i + 1)).cloned();
    let has = |k: &str| args.iter().any(|a| a == k);
    let transport = get("--transport").unwrap_or_else(|| "stdio".into());
    let imp = get("--impl").unwrap_or_else(|| "raw".into());
    let port: u16 = get("--port").and_then(|p| p.parse().ok()).unwrap_or(0);
    let tools: usize = get("--tools").and_then(|p| p.parse().ok()).unwrap_or(100);
    let sse = has("--sse");
    let c = core::Core::new(tools);
    let rt = |mt: bool| {
        let mut b = if mt {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        b.enable_all().build().unwrap()
    };
    match (transport.as_str(), imp.as_str()) {
        ("stdio", "raw") => raw::stdio(c),
        ("http", "raw") => raw::http(c, port, sse),
        ("stdio", "tokio-stdin") => rt(true).block_on(asy::stdio(c, tokio::io::stdin(), tokio::io::stdout(), true)),
        ("stdio", i @ ("tokio" | "tokio-mt" | "tokio-inline")) => rt(i == "tokio-mt").block_on(async {
            let (r, w) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
            let rd = pipe::Receiver::from_owned_fd(r).expect("stdin is not a pipe");
            let wr = pipe::Sender::from_owned_fd(w).expect("stdout is not a pipe");
            asy::stdio(c, rd, wr, i != "tokio-inline").await
        }),
        ("http", i) => rt(i == "tokio-mt").block_on(asy::http(c, port, sse)),
        (t, i) => {
            eprintln!("floor: no {t}/{i}");
            std::process::exit(2);
        }
    }
}
