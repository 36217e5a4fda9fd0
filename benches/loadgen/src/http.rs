//! Streamable HTTP by hand: HTTP/1.1 keep-alive, one thread, non-blocking sockets, `epoll`.
//! Accepts `application/json` and `text/event-stream` answers, content-length, chunked and
//! close-delimited bodies.

mod endpoint;
mod pool;

use crate::procs::now_ns;
use crate::scenario::{Envelope, clip};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, IntoRawFd};

pub use endpoint::{Endpoint, handshake, head_prefix};
pub use pool::Pool;

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum St {
    Idle,
    Head,
    Len(usize),
    Chunk,
    ToClose,
    Done,
}

pub struct Conn {
    fd: i32,
    addr: SocketAddr,
    out: Vec<u8>,
    out_pos: usize,
    inb: Vec<u8>,
    pos: usize,
    st: St,
    pub status: u16,
    pub is_sse: bool,
    pub session: Option<String>,
    close_after: bool,
    body: Vec<u8>,
    /// start of the SSE event being received, and how far it was searched for its end
    ev_start: usize,
    ev_scan: usize,
    got_bytes: bool,
    pub bytes_in: u64,
    pub bytes_out: u64,
    // current request
    cur: u64,
    start_ns: u64,
    answered: bool,
    answer: Option<(usize, usize)>,
    /// places in `body` of what the server asks us
    questions: Vec<(usize, usize)>,
    retried: bool,
    sess: usize,
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.fd >= 0 {
            unsafe { libc::close(self.fd) };
        }
    }
}

fn connect(addr: SocketAddr) -> Result<i32, String> {
    let s = TcpStream::connect(addr).map_err(|e| format!("connect {addr}: {e}"))?;
    s.set_nodelay(true).ok();
    s.set_nonblocking(true).ok();
    Ok(s.into_raw_fd())
}

impl Conn {
    pub fn open(addr: SocketAddr) -> Result<Conn, String> {
        Ok(Conn {
            fd: connect(addr)?,
            addr,
            out: Vec::new(),
            out_pos: 0,
            inb: Vec::new(),
            pos: 0,
            st: St::Idle,
            status: 0,
            is_sse: false,
            session: None,
            close_after: false,
            body: Vec::new(),
            ev_start: 0,
            ev_scan: 0,
            got_bytes: false,
            bytes_in: 0,
            bytes_out: 0,
            cur: u64::MAX,
            start_ns: 0,
            answered: false,
            answer: None,
            questions: Vec::new(),
            retried: false,
            sess: 0,
        })
    }

    fn reopen(&mut self) -> Result<(), String> {
        unsafe { libc::close(self.fd) };
        self.fd = -1;
        self.fd = connect(self.addr)?;
        self.inb.clear();
        self.pos = 0;
        self.out_pos = 0;
        self.body.clear();
        self.st = St::Idle;
        self.close_after = false;
        Ok(())
    }

    fn begin(&mut self) {
        self.st = St::Head;
        self.body.clear();
        self.ev_start = 0;
        self.ev_scan = 0;
        self.got_bytes = false;
        self.answered = false;
        self.answer = None;
        self.questions.clear();
        self.session = None;
    }

    fn flush(&mut self) -> Result<(), String> {
        while self.out_pos < self.out.len() {
            let b = &self.out[self.out_pos..];
            let r = unsafe { libc::send(self.fd, b.as_ptr() as *const _, b.len(), libc::MSG_NOSIGNAL) };
            if r >= 0 {
                self.out_pos += r as usize;
                self.bytes_out += r as u64;
            } else {
                let e = std::io::Error::last_os_error();
                match e.kind() {
                    std::io::ErrorKind::WouldBlock => return Ok(()),
                    std::io::ErrorKind::Interrupted => continue,
                    _ => return Err(format!("send: {e}")),
                }
            }
        }
        Ok(())
    }

    fn pending_out(&self) -> bool {
        self.out_pos < self.out.len()
    }

    /// One read. Ok(None): nothing there. Ok(Some(0)): the peer closed.
    fn read(&mut self) -> Result<Option<usize>, String> {
        if self.pos > 0 && self.pos == self.inb.len() {
            self.inb.clear();
            self.pos = 0;
        }
        let want = 256 << 10;
        let len = self.inb.len();
        if self.inb.capacity() - len < want {
            if self.pos > 0 {
                self.inb.drain(..self.pos);
                self.pos = 0;
            }
            self.inb.reserve(want);
        }
        let len = self.inb.len().min(len);
        let r = unsafe { libc::recv(self.fd, self.inb.as_mut_ptr().add(len) as *mut _, want, 0) };
        if r >= 0 {
            unsafe { self.inb.set_len(len + r as usize) };
            self.bytes_in += r as u64;
            if r > 0 {
                self.got_bytes = true;
            }
            return Ok(Some(r as usize));
        }
        let e = std::io::Error::last_os_error();
        match e.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(None),
            _ => Err(format!("recv: {e}")),
        }
    }

    fn parse_head(&mut self) -> Result<bool, String> {
        let buf = &self.inb[self.pos..];
        let Some(end) = memchr::memmem::find(buf, b"\r\n\r\n") else {
            return Ok(false);
        };
        let head = &buf[..end];
        let mut lines = head.split(|&c| c == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
        let status_line = lines.next().unwrap_or(b"");
        let status: u16 = std::str::from_utf8(status_line)
            .ok()
            .and_then(|s| s.split(' ').nth(1))
            .and_then(|s| s.parse().ok())
            .ok_or_else(|| format!("bad status line {:?}", String::from_utf8_lossy(status_line)))?;
        let mut len: Option<usize> = None;
        let mut chunked = false;
        self.is_sse = false;
        self.close_after = status_line.starts_with(b"HTTP/1.0");
        for l in lines {
            let Some(c) = memchr::memchr(b':', l) else { continue };
            let (name, val) = (&l[..c], l[c + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                len = std::str::from_utf8(val).ok().and_then(|s| s.parse().ok());
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                chunked = val.eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"content-type") {
                self.is_sse = val.len() >= 17 && val[..17].eq_ignore_ascii_case(b"text/event-stream");
            } else if name.eq_ignore_ascii_case(b"connection") {
                if val.eq_ignore_ascii_case(b"close") {
                    self.close_after = true;
                }
            } else if name.eq_ignore_ascii_case(b"mcp-session-id") {
                self.session = Some(String::from_utf8_lossy(val).into_owned());
            }
        }
        self.pos += end + 4;
        if status == 100 {
            return self.parse_head();
        }
        self.status = status;
        self.st = if chunked {
            St::Chunk
        } else if let Some(n) = len {
            if n == 0 { St::Done } else { St::Len(n) }
        } else if status == 204 || status == 304 || status == 202 && !self.close_after {
            St::Done
        } else {
            self.close_after = true;
            St::ToClose
        };
        Ok(true)
    }

    /// Moves what was received into `body`. True when the state changed to Done.
    fn parse(&mut self) -> Result<(), String> {
        loop {
            match self.st {
                St::Idle | St::Done => return Ok(()),
                St::Head => {
                    if !self.parse_head()? {
                        return Ok(());
                    }
                }
                St::Len(n) => {
                    let have = (self.inb.len() - self.pos).min(n);
                    if have == 0 {
                        return Ok(());
                    }
                    self.body.extend_from_slice(&self.inb[self.pos..self.pos + have]);
                    self.pos += have;
                    self.st = if have == n { St::Done } else { St::Len(n - have) };
                }
                St::ToClose => {
                    self.body.extend_from_slice(&self.inb[self.pos..]);
                    self.pos = self.inb.len();
                    return Ok(());
                }
                St::Chunk => {
                    let buf = &self.inb[self.pos..];
                    let Some(nl) = memchr::memchr(b'\n', buf) else {
                        return Ok(());
                    };
                    let line = buf[..nl].trim_ascii();
                    let hex = line.split(|&c| c == b';').next().unwrap_or(b"");
                    let n = std::str::from_utf8(hex)
                        .ok()
                        .and_then(|s| usize::from_str_radix(s.trim(), 16).ok())
                        .ok_or_else(|| format!("bad chunk size {:?}", String::from_utf8_lossy(line)))?;
                    // whole chunk plus its CRLF must be here (chunks are read into one buffer)
                    if n == 0 {
                        if buf.len() < nl + 3 {
                            return Ok(());
                        }
                        self.pos += nl + 3;
                        self.st = St::Done;
                    } else {
                        if buf.len() < nl + 1 + n + 2 {
                            return Ok(());
                        }
                        let s = self.pos + nl + 1;
                        self.body.extend_from_slice(&self.inb[s..s + n]);
                        self.pos = s + n + 2;
                    }
                }
            }
        }
    }

    /// Looks for the response to request `id` in what was received. Returns the message's place
    /// in `body` (SSE data of several lines is joined in place at the end of `body`).
    fn find_answer(&mut self, id: Option<u64>, stray: &mut u64) -> Result<Option<(usize, usize)>, String> {
        if !self.is_sse {
            return Ok(if self.st == St::Done && !self.body.is_empty() { Some((0, self.body.len())) } else { None });
        }
        loop {
            // end of the event: blank line
            let mut from = self.ev_scan.max(self.ev_start);
            let end = loop {
                let Some(i) = memchr::memchr(b'\n', &self.body[from..]) else {
                    self.ev_scan = self.body.len();
                    break None;
                };
                let nl = from + i;
                let next = &self.body[nl + 1..];
                if next.is_empty() || (next == b"\r") {
                    self.ev_scan = nl;
                    break None;
                }
                if next[0] == b'\n' {
                    break Some((nl, nl + 2));
                }
                if next.starts_with(b"\r\n") {
                    break Some((nl, nl + 3));
                }
                from = nl + 1;
            };
            let Some((ev_end, next_start)) = end else {
                return Ok(None);
            };
            let (s, e) = (self.ev_start, ev_end);
            self.ev_start = next_start;
            self.ev_scan = next_start;
            let mut first: Option<(usize, usize)> = None;
            let mut multi = false;
            let mut p = s;
            while p < e {
                let le = memchr::memchr(b'\n', &self.body[p..e]).map(|i| p + i).unwrap_or(e);
                let mut re = le;
                if re > p && self.body[re - 1] == b'\r' {
                    re -= 1;
                }
                if self.body[p..re].starts_with(b"data:") {
                    let mut ds = p + 5;
                    if ds < re && self.body[ds] == b' ' {
                        ds += 1;
                    }
                    if first.is_some() {
                        multi = true;
                    } else {
                        first = Some((ds, re));
                    }
                }
                p = le + 1;
            }
            if multi {
                return Err("SSE data over several lines: not handled by this harness".into());
            }
            let Some((ds, de)) = first else { continue };
            if ds == de {
                continue; // priming event
            }
            let env: Envelope = serde_json::from_slice(&self.body[ds..de]).map_err(|er| {
                format!("SSE data is not JSON-RPC: {er}: {}", clip(&String::from_utf8_lossy(&self.body[ds..de])))
            })?;
            if env.is_response() && (id.is_none() || env.num_id() == id) {
                return Ok(Some((ds, de)));
            }
            if env.is_request() {
                self.questions.push((ds, de));
                continue;
            }
            *stray += 1;
        }
    }

    fn readable_wait(&self, ms: i32) {
        let mut p = libc::pollfd {
            fd: self.fd,
            events: if self.pending_out() { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN },
            revents: 0,
        };
        unsafe { libc::poll(&mut p, 1, ms) };
    }

    /// Sends one request and waits for the whole answer. Returns (status, message).
    pub fn roundtrip(&mut self, req: Vec<u8>, id: Option<u64>, timeout_s: f64) -> Result<(u16, String), String> {
        if self.close_after {
            self.reopen()?;
        }
        self.out = req;
        self.out_pos = 0;
        self.begin();
        let end = now_ns() + (timeout_s * 1e9) as u64;
        let mut stray = 0;
        let mut found: Option<String> = None;
        let mut retried = false;
        loop {
            let mut closed = false;
            if let Err(e) = self.flush() {
                if retried {
                    return Err(e);
                }
                closed = true;
            }
            if !closed {
                self.readable_wait(50);
                match self.read() {
                    Ok(Some(0)) => closed = true,
                    Ok(_) => {}
                    Err(e) if retried => return Err(e),
                    Err(_) => closed = true,
                }
            }
            self.parse()?;
            if closed && self.st == St::ToClose {
                self.st = St::Done;
            } else if closed && self.st != St::Done {
                if !self.got_bytes && !retried {
                    retried = true;
                    let out = std::mem::take(&mut self.out);
                    self.reopen()?;
                    self.out = out;
                    self.begin();
                    continue;
                }
                return Err(format!("connection closed in the middle of an answer (state {:?})", self.st));
            }
            if found.is_none() && id.is_some() && self.status / 100 == 2 {
                if let Some((s, e)) = self.find_answer(id, &mut stray)? {
                    found = Some(String::from_utf8_lossy(&self.body[s..e]).into_owned());
                }
            }
            if self.st == St::Done {
                let st = self.status;
                let msg = found.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
                self.st = St::Idle;
                if closed {
                    self.close_after = true;
                }
                return Ok((st, msg));
            }
            if now_ns() > end {
                return Err(format!(
                    "no complete answer within {timeout_s} s (state {:?}, {} body bytes)",
                    self.st,
                    self.body.len()
                ));
            }
        }
    }

    /// Sends a request and waits for the response head only (standalone GET stream).
    pub fn open_stream(&mut self, req: Vec<u8>, timeout_s: f64) -> Result<u16, String> {
        self.out = req;
        self.out_pos = 0;
        self.begin();
        let end = now_ns() + (timeout_s * 1e9) as u64;
        loop {
            self.flush()?;
            self.readable_wait(50);
            if let Some(0) = self.read()? {
                return Err("closed".into());
            }
            self.parse()?;
            if self.st != St::Head {
                return Ok(self.status);
            }
            if now_ns() > end {
                return Err("no response head to GET".into());
            }
        }
    }
}

pub fn resolve(url_host: &str) -> Result<SocketAddr, String> {
    use std::net::ToSocketAddrs;
    url_host.to_socket_addrs().map_err(|e| e.to_string())?.next().ok_or_else(|| "no address".into())
}

pub fn try_connect(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).map(|s| s.as_raw_fd()).is_ok()
}
