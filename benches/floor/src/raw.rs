//! Physical limit: one thread, system calls, nothing else.

use crate::core::{Act, Core};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::time::{Duration, Instant};

fn nonblock(fd: i32) {
    unsafe {
        let fl = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, fl | libc::O_NONBLOCK);
    }
}

fn timeout(h: &BinaryHeap<Reverse<(Instant, usize)>>) -> i32 {
    match h.peek() {
        None => -1,
        Some(Reverse((t, _))) => {
            let d = t.saturating_duration_since(Instant::now());
            (d.as_micros() as i64 + 999).div_euclid(1000) as i32
        }
    }
}

fn write_all(fd: i32, mut b: &[u8]) -> bool {
    while !b.is_empty() {
        let r = unsafe { libc::write(fd, b.as_ptr() as *const _, b.len()) };
        if r > 0 {
            b = &b[r as usize..];
        } else {
            let e = std::io::Error::last_os_error();
            match e.kind() {
                std::io::ErrorKind::Interrupted => {}
                std::io::ErrorKind::WouldBlock => {
                    let mut p = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                    unsafe { libc::poll(&mut p, 1, -1) };
                }
                _ => return false,
            }
        }
    }
    true
}

pub fn stdio(core: Core) {
    let mut inb: Vec<u8> = Vec::with_capacity(1 << 20);
    let (mut start, mut scan) = (0usize, 0usize);
    let mut out: Vec<u8> = Vec::with_capacity(1 << 16);
    let mut timers: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let mut slots: Vec<Vec<u8>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut eof = false;
    loop {
        if eof && timers.is_empty() {
            return;
        }
        if !timers.is_empty() {
            let mut p = libc::pollfd { fd: if eof { -1 } else { 0 }, events: libc::POLLIN, revents: 0 };
            unsafe { libc::poll(&mut p, 1, timeout(&timers)) };
            let now = Instant::now();
            while let Some(Reverse((t, s))) = timers.peek().copied() {
                if t > now {
                    break;
                }
                timers.pop();
                out.append(&mut slots[s]);
                free.push(s);
            }
            if p.revents == 0 {
                if !write_all(1, &out) {
                    return;
                }
                out.clear();
                continue;
            }
        }
        if start == inb.len() {
            inb.clear();
            start = 0;
            scan = 0;
        } else if start > (1 << 20) {
            inb.drain(..start);
            scan -= start;
            start = 0;
        }
        inb.reserve(1 << 16);
        let len = inb.len();
        let cap = inb.capacity() - len;
        let r = unsafe { libc::read(0, inb.as_mut_ptr().add(len) as *mut _, cap) };
        if r <= 0 {
            eof = true;
            if timers.is_empty() {
                return;
            }
            continue;
        }
        unsafe { inb.set_len(len + r as usize) };
        while let Some(i) = memchr::memchr(b'\n', &inb[scan..]) {
            let e = scan + i;
            if e > start {
                let mark = out.len();
                match core.handle(&inb[start..e], &mut out) {
                    Act::Silent => {}
                    Act::Reply => out.push(b'\n'),
                    Act::After(ms) => {
                        let s = free.pop().unwrap_or_else(|| {
                            slots.push(Vec::new());
                            slots.len() - 1
                        });
                        slots[s].extend_from_slice(&out[mark..]);
                        slots[s].push(b'\n');
                        out.truncate(mark);
                        timers.push(Reverse((Instant::now() + Duration::from_millis(ms), s)));
                    }
                }
            }
            start = e + 1;
            scan = e + 1;
        }
        scan = inb.len();
        if !out.is_empty() {
            if !write_all(1, &out) {
                return;
            }
            out.clear();
        }
    }
}

struct Conn {
    fd: i32,
    inb: Vec<u8>,
    out: Vec<u8>,
    pos: usize,
}

/// Puts a whole HTTP answer around `body`.
pub fn wrap(out: &mut Vec<u8>, body: &[u8], sse: bool) {
    if sse {
        let n = body.len() + "event: message\ndata: \n\n".len();
        let _ = write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n{n:x}\r\nevent: message\ndata: "
        );
        out.extend_from_slice(body);
        out.extend_from_slice(b"\n\n\r\n0\r\n\r\n");
    } else {
        let _ =
            write!(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        out.extend_from_slice(body);
    }
}

/// (head length, content length, is POST)
fn head(b: &[u8]) -> Option<(usize, usize, bool)> {
    let end = memchr::memmem::find(b, b"\r\n\r\n")?;
    let mut len = 0;
    for l in b[..end].split(|&c| c == b'\n').skip(1) {
        if l.len() > 15 && l[..15].eq_ignore_ascii_case(b"content-length:") {
            len = std::str::from_utf8(l[15..].trim_ascii()).ok()?.parse().ok()?;
        }
    }
    Some((end + 4, len, b.starts_with(b"POST")))
}

pub fn http(core: Core, port: u16, sse: bool) {
    let l = std::net::TcpListener::bind(("127.0.0.1", port)).expect("bind");
    l.set_nonblocking(true).unwrap();
    let lfd = l.as_raw_fd();
    let ep = unsafe { libc::epoll_create1(0) };
    let ctl = |op: i32, fd: i32, ev: u32, key: u64| {
        let mut e = libc::epoll_event { events: ev, u64: key };
        unsafe { libc::epoll_ctl(ep, op, fd, &mut e) };
    };
    ctl(libc::EPOLL_CTL_ADD, lfd, libc::EPOLLIN as u32, u64::MAX);
    let mut conns: Vec<Option<Conn>> = Vec::new();
    let mut timers: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let mut slots: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut body: Vec<u8> = Vec::new();
    let mut evs = vec![libc::epoll_event { events: 0, u64: 0 }; 256];
    loop {
        let k = unsafe { libc::epoll_wait(ep, evs.as_mut_ptr(), 256, timeout(&timers)) };
        if !timers.is_empty() {
            let now = Instant::now();
            while let Some(Reverse((t, s))) = timers.peek().copied() {
                if t > now {
                    break;
                }
                timers.pop();
                let (ci, b) = std::mem::take(&mut slots[s]);
                free.push(s);
                if let Some(Some(c)) = conns.get_mut(ci) {
                    wrap(&mut c.out, &b, sse);
                    flush(c);
                }
            }
        }
        for e in evs.iter().take(k.max(0) as usize) {
            let key = e.u64;
            if key == u64::MAX {
                while let Ok((s, _)) = l.accept() {
                    s.set_nodelay(true).ok();
                    let fd = s.into_raw_fd();
                    nonblock(fd);
                    let i = conns.iter().position(|c| c.is_none()).unwrap_or_else(|| {
                        conns.push(None);
                        conns.len() - 1
                    });
                    conns[i] = Some(Conn { fd, inb: Vec::with_capacity(4096), out: Vec::new(), pos: 0 });
                    ctl(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, i as u64);
                }
                continue;
            }
            let i = key as usize;
            let Some(c) = conns[i].as_mut() else { continue };
            c.inb.reserve(1 << 16);
            let len = c.inb.len();
            let cap = c.inb.capacity() - len;
            let r = unsafe { libc::recv(c.fd, c.inb.as_mut_ptr().add(len) as *mut _, cap, 0) };
            if r <= 0 {
                let again = r < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock;
                if !again {
                    unsafe { libc::close(c.fd) };
                    conns[i] = None;
                }
                continue;
            }
            unsafe { c.inb.set_len(len + r as usize) };
            let mut used = 0;
            while let Some((h, n, post)) = head(&c.inb[used..]) {
                if c.inb.len() - used < h + n {
                    break;
                }
                let req = &c.inb[used + h..used + h + n];
                if !post {
                    c.out.extend_from_slice(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
                } else {
                    body.clear();
                    match core.handle(req, &mut body) {
                        Act::Silent => c.out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
                        Act::Reply => wrap(&mut c.out, &body, sse),
                        Act::After(ms) => {
                            let s = free.pop().unwrap_or_else(|| {
                                slots.push((0, Vec::new()));
                                slots.len() - 1
                            });
                            slots[s] = (i, body.clone());
                            timers.push(Reverse((Instant::now() + Duration::from_millis(ms), s)));
                        }
                    }
                }
                used += h + n;
            }
            if used == c.inb.len() {
                c.inb.clear();
            } else if used > 0 {
                c.inb.drain(..used);
            }
            flush(c);
        }
    }
}

fn flush(c: &mut Conn) {
    if c.pos < c.out.len() {
        write_all(c.fd, &c.out[c.pos..]);
    }
    c.out.clear();
    c.pos = 0;
}
