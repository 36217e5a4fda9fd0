//! JSON-RPC lines over a child's pipes: one thread, non-blocking, `poll`.

use crate::procs::{Proc, now_ns, set_nonblock};
use crate::scenario::{Envelope, Gen};
use std::os::fd::AsRawFd;

pub struct Lines {
    rd: i32,
    wr: i32,
    out: Vec<u8>,
    out_pos: usize,
    inb: Vec<u8>,
    in_start: usize,
    scan: usize,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Lines {
    pub fn new(p: &Proc) -> Lines {
        let rd = p.stdout.as_ref().unwrap().as_raw_fd();
        let wr = p.stdin.as_ref().unwrap().as_raw_fd();
        set_nonblock(rd);
        set_nonblock(wr);
        Lines {
            rd,
            wr,
            out: Vec::new(),
            out_pos: 0,
            inb: Vec::with_capacity(1 << 20),
            in_start: 0,
            scan: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    pub fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    pub fn flush(&mut self) -> Result<(), String> {
        while self.out_pos < self.out.len() {
            let b = &self.out[self.out_pos..];
            let r = unsafe { libc::write(self.wr, b.as_ptr() as *const _, b.len()) };
            if r >= 0 {
                self.out_pos += r as usize;
                self.bytes_out += r as u64;
            } else {
                let e = std::io::Error::last_os_error();
                match e.kind() {
                    std::io::ErrorKind::WouldBlock => {
                        if self.out_pos > (16 << 20) {
                            self.out.drain(..self.out_pos);
                            self.out_pos = 0;
                        }
                        return Ok(());
                    }
                    std::io::ErrorKind::Interrupted => continue,
                    _ => return Err(format!("write to the server's stdin: {e}")),
                }
            }
        }
        self.out.clear();
        self.out_pos = 0;
        Ok(())
    }

    fn wait(&self, ms: i32) {
        let mut fds = [
            libc::pollfd { fd: self.rd, events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: self.wr, events: libc::POLLOUT, revents: 0 },
        ];
        let n = if self.out_pos < self.out.len() { 2 } else { 1 };
        unsafe { libc::poll(fds.as_mut_ptr(), n, ms) };
    }

    /// Reads what is there; true if anything came.
    fn fill(&mut self) -> Result<bool, String> {
        if self.in_start > 0 && (self.in_start == self.inb.len() || self.in_start > (1 << 20)) {
            self.inb.drain(..self.in_start);
            self.scan -= self.in_start;
            self.in_start = 0;
        }
        let want = 256 << 10;
        let len = self.inb.len();
        self.inb.reserve(want);
        let r = unsafe { libc::read(self.rd, self.inb.as_mut_ptr().add(len) as *mut _, want) };
        if r > 0 {
            unsafe { self.inb.set_len(len + r as usize) };
            self.bytes_in += r as u64;
            return Ok(true);
        }
        if r == 0 {
            return Err("the server closed its stdout".into());
        }
        let e = std::io::Error::last_os_error();
        match e.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(false),
            _ => Err(format!("read from the server's stdout: {e}")),
        }
    }

    /// Next complete line already received (without its end), as a range of the buffer.
    fn line(&mut self) -> Option<(usize, usize)> {
        match memchr::memchr(b'\n', &self.inb[self.scan..]) {
            Some(i) => {
                let (s, e) = (self.in_start, self.scan + i);
                self.in_start = e + 1;
                self.scan = e + 1;
                Some((s, e))
            }
            None => {
                self.scan = self.inb.len();
                None
            }
        }
    }

    /// Blocks until a response with this id has come; returns the whole message.
    pub fn await_id(&mut self, id: u64, timeout_s: f64) -> Result<String, String> {
        let end = now_ns() + (timeout_s * 1e9) as u64;
        loop {
            self.flush()?;
            while let Some((s, e)) = self.line() {
                if s == e {
                    continue;
                }
                let env: Envelope = match serde_json::from_slice(&self.inb[s..e]) {
                    Ok(v) => v,
                    Err(er) => {
                        return Err(format!(
                            "line is not JSON-RPC: {er}: {}",
                            String::from_utf8_lossy(&self.inb[s..e.min(s + 200)])
                        ));
                    }
                };
                if env.is_response() && env.num_id() == Some(id) {
                    return Ok(String::from_utf8_lossy(&self.inb[s..e]).into_owned());
                }
            }
            if now_ns() > end {
                return Err(format!("no answer to request {id} within {timeout_s} s"));
            }
            self.wait(50);
            self.fill()?;
        }
    }
}

#[derive(Default)]
pub struct Phase {
    pub done: u64,
    pub failed: u64,
    pub first_error: Option<String>,
    pub lat_ns: Vec<u64>,
    pub wall_ns: u64,
    pub stray: u64,
    pub reconnects: u64,
    pub sse: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Phase {
    pub fn fail(&mut self, e: String) {
        self.failed += 1;
        if self.first_error.is_none() {
            self.first_error = Some(e);
        }
    }
}

/// Keeps `conc` requests outstanding until `n` are answered or `max_secs` are over (then it
/// drains what is outstanding). `on_done` is called with the count of finished requests.
pub fn run(
    l: &mut Lines,
    gen: &Gen,
    first_id: u64,
    n: u64,
    conc: usize,
    max_secs: f64,
    mut on_done: impl FnMut(u64),
) -> Result<Phase, String> {
    let mut ph = Phase { lat_ns: Vec::with_capacity(n.min(1 << 20) as usize), ..Default::default() };
    let mut started: Vec<u64> = Vec::with_capacity(n.min(1 << 20) as usize);
    let (b_in, b_out) = (l.bytes_in, l.bytes_out);
    let t0 = now_ns();
    let stop = t0 + (max_secs * 1e9) as u64;
    let hard = stop + 30_000_000_000;
    let mut issued = 0u64;
    let mut stopped = false;
    loop {
        while !stopped && issued < n && issued - ph.done - ph.failed < conc as u64 {
            // bounded user-space queue: do not build more than ~8 MiB ahead of the pipe
            if l.out.len() - l.out_pos > (8 << 20) {
                break;
            }
            let id = first_id + issued;
            gen.build(id, l.queue());
            l.queue().push(b'\n');
            started.push(now_ns());
            issued += 1;
        }
        l.flush()?;
        let settled = ph.done + ph.failed;
        if settled >= n || (stopped && settled >= issued) {
            break;
        }
        l.wait(100);
        if l.fill()? {
            let t = now_ns();
            while let Some((s, e)) = l.line() {
                if s == e {
                    continue;
                }
                let env: Envelope = match serde_json::from_slice(&l.inb[s..e]) {
                    Ok(v) => v,
                    Err(er) => {
                        return Err(format!(
                            "line is not JSON-RPC: {er}: {}",
                            String::from_utf8_lossy(&l.inb[s..e.min(s + 200)])
                        ));
                    }
                };
                if env.is_request() {
                    match gen.answer(&env, &mut l.out) {
                        Ok(()) => l.out.push(b'\n'),
                        Err(m) => return Err(m),
                    }
                    continue;
                }
                if !env.is_response() {
                    ph.stray += 1;
                    continue;
                }
                match env.num_id() {
                    Some(id) if id >= first_id && id < first_id + issued => {
                        let slot = &mut started[(id - first_id) as usize];
                        if *slot == 0 {
                            ph.fail(format!("second answer to request {id}"));
                            continue;
                        }
                        ph.lat_ns.push(t - *slot);
                        *slot = 0;
                        match gen.validate(id, &env) {
                            Ok(()) => {
                                ph.done += 1;
                                on_done(ph.done);
                            }
                            Err(m) => ph.fail(m),
                        }
                    }
                    _ => ph.fail(format!("answer with an id nobody asked for: {:?}", env.id.map(|r| r.get()))),
                }
            }
        }
        let t = now_ns();
        if t > stop {
            stopped = true;
        }
        if t > hard {
            return Err(format!("stuck: {} of {} answered", ph.done + ph.failed, issued));
        }
    }
    ph.wall_ns = now_ns() - t0;
    ph.bytes_in = l.bytes_in - b_in;
    ph.bytes_out = l.bytes_out - b_out;
    Ok(ph)
}
