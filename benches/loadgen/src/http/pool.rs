//! Many connections driven by one `epoll`, one request in flight on each. Where the server asks us, as many more, which
//! carry our answers.

use super::{Conn, St};
use crate::procs::now_ns;
use crate::scenario::{Envelope, Gen, clip};
use crate::stdio::Phase;
use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;

pub struct Pool {
    ep: i32,
    conns: Vec<Conn>,
    /// Connections that ask; those behind them answer.
    asking: usize,
    /// Answers that wait for the one before them to be taken.
    waiting: Vec<VecDeque<Vec<u8>>>,
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        unsafe { libc::close(self.ep) };
    }
}

impl Pool {
    pub fn new(addr: SocketAddr, conc: usize, heads: Vec<Vec<u8>>, gen: &Gen) -> Result<Pool, String> {
        let ep = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let mut conns = Vec::new();
        let all = if gen.kind.is_asked() { 2 * conc } else { conc };
        for i in 0..all {
            let mut c = Conn::open(addr)?;
            c.sess = i % conc % heads.len();
            conns.push(c);
        }
        let waiting = vec![VecDeque::new(); all - conc];
        let p = Pool { ep, conns, asking: conc, waiting, heads, body: Vec::new() };
        for i in 0..p.conns.len() {
            p.ctl(libc::EPOLL_CTL_ADD, i, libc::EPOLLIN as u32);
        }
        Ok(p)
    }

    fn ctl(&self, op: i32, i: usize, events: u32) {
        let mut ev = libc::epoll_event { events, u64: i as u64 };
        unsafe { libc::epoll_ctl(self.ep, op, self.conns[i].fd, &mut ev) };
    }

    fn start(&mut self, i: usize, gen: &Gen, id: u64, ph: &mut Phase) -> Result<(), String> {
        if self.conns[i].close_after {
            self.conns[i].reopen()?;
            ph.reconnects += 1;
            self.ctl(libc::EPOLL_CTL_ADD, i, libc::EPOLLIN as u32);
        }
        self.body.clear();
        gen.build(id, &mut self.body);
        let c = &mut self.conns[i];
        c.out.clear();
        c.out_pos = 0;
        c.out.extend_from_slice(&self.heads[c.sess]);
        let _ = write!(c.out, "{}\r\n\r\n", self.body.len());
        c.out.extend_from_slice(&self.body);
        c.begin();
        c.cur = id;
        c.retried = false;
        c.start_ns = now_ns();
        self.send(i)
    }

    fn send(&mut self, i: usize) -> Result<(), String> {
        self.conns[i].flush()?;
        if self.conns[i].pending_out() {
            self.ctl(libc::EPOLL_CTL_MOD, i, (libc::EPOLLIN | libc::EPOLLOUT) as u32);
        }
        Ok(())
    }

    /// Answers what the server has asked on connection `i`.
    fn answer(&mut self, i: usize, gen: &Gen) -> Result<(), String> {
        for (s, e) in std::mem::take(&mut self.conns[i].questions) {
            let mut body = Vec::new();
            let question = &self.conns[i].body[s..e];
            let env: Envelope = serde_json::from_slice(question).map_err(|er| format!("not JSON-RPC: {er}"))?;
            gen.answer(&env, &mut body)?;
            let to = self.asking + i;
            let queue = self.waiting.get_mut(i).ok_or("the server asks, and nothing was expected to")?;
            queue.push_back(body);
            if self.conns[to].st == St::Idle {
                self.say_next(to)?;
            }
        }
        Ok(())
    }

    /// Posts the next answer that waits for connection `i`.
    fn say_next(&mut self, i: usize) -> Result<(), String> {
        let Some(body) = self.waiting[i - self.asking].pop_front() else { return Ok(()) };
        if self.conns[i].close_after {
            self.conns[i].reopen()?;
            self.ctl(libc::EPOLL_CTL_ADD, i, libc::EPOLLIN as u32);
        }
        let c = &mut self.conns[i];
        c.out.clear();
        c.out_pos = 0;
        c.out.extend_from_slice(&self.heads[c.sess]);
        let _ = write!(c.out, "{}\r\n\r\n", body.len());
        c.out.extend_from_slice(&body);
        c.begin();
        self.send(i)
    }

    /// Something came on a connection that carries answers: 202, as a rule.
    fn said(&mut self, i: usize) -> Result<(), String> {
        let closed = matches!(self.conns[i].read(), Ok(Some(0)) | Err(_));
        let c = &mut self.conns[i];
        c.parse()?;
        if c.st == St::Done {
            if c.status / 100 != 2 {
                let body = String::from_utf8_lossy(&c.body);
                return Err(format!("our answer was refused: HTTP {}: {}", c.status, clip(&body)));
            }
            c.st = St::Idle;
            c.close_after |= closed;
            return self.say_next(i);
        }
        if closed && c.st != St::Idle {
            return Err("connection closed in the middle of an answer of ours".into());
        }
        if closed {
            c.close_after = true;
            self.ctl(libc::EPOLL_CTL_DEL, i, 0);
        }
        Ok(())
    }

    pub fn run(
        &mut self,
        gen: &Gen,
        first_id: u64,
        n: u64,
        max_secs: f64,
        mut on_done: impl FnMut(u64),
    ) -> Result<Phase, String> {
        let mut ph = Phase { lat_ns: Vec::with_capacity(n.min(1 << 20) as usize), ..Default::default() };
        let b0: (u64, u64) = self.conns.iter().fold((0, 0), |a, c| (a.0 + c.bytes_in, a.1 + c.bytes_out));
        let t0 = now_ns();
        let stop = t0 + (max_secs * 1e9) as u64;
        let hard = stop + 30_000_000_000;
        let mut issued = 0u64;
        let mut stopped = false;
        for i in 0..self.asking {
            if issued < n {
                self.start(i, gen, first_id + issued, &mut ph)?;
                issued += 1;
            }
        }
        let mut evs = vec![libc::epoll_event { events: 0, u64: 0 }; 256];
        while ph.done + ph.failed < issued {
            let k = unsafe { libc::epoll_wait(self.ep, evs.as_mut_ptr(), evs.len() as i32, 100) };
            for ev in evs.iter().take(k.max(0) as usize) {
                let i = ev.u64 as usize;
                let flags = ev.events;
                if flags & libc::EPOLLOUT as u32 != 0 {
                    self.conns[i].flush()?;
                    if !self.conns[i].pending_out() {
                        self.ctl(libc::EPOLL_CTL_MOD, i, libc::EPOLLIN as u32);
                    }
                }
                if flags & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) as u32 == 0 {
                    continue;
                }
                if i >= self.asking {
                    self.said(i)?;
                    continue;
                }
                let mut closed = false;
                match self.conns[i].read() {
                    Ok(None) => continue,
                    Ok(Some(0)) => closed = true,
                    Ok(Some(_)) => {}
                    Err(_) => closed = true,
                }
                let t = now_ns();
                let c = &mut self.conns[i];
                c.parse()?;
                if closed && c.st == St::ToClose {
                    c.st = St::Done;
                }
                if c.st == St::Idle {
                    // closed while nothing was asked
                    if closed {
                        c.close_after = true;
                        self.ctl(libc::EPOLL_CTL_DEL, i, 0);
                    }
                    continue;
                }
                if !c.answered && c.status / 100 == 2 && c.st != St::Head {
                    if let Some(x) = c.find_answer(Some(c.cur), &mut ph.stray)? {
                        c.answered = true;
                        c.answer = Some(x);
                        ph.lat_ns.push(t - c.start_ns);
                    }
                }
                if !c.questions.is_empty() {
                    self.answer(i, gen)?;
                }
                let c = &mut self.conns[i];
                if c.st != St::Done {
                    if closed {
                        if !c.got_bytes && !c.retried {
                            let out = std::mem::take(&mut c.out);
                            c.reopen()?;
                            c.out = out;
                            c.begin();
                            c.retried = true;
                            ph.reconnects += 1;
                            self.ctl(libc::EPOLL_CTL_ADD, i, libc::EPOLLIN as u32);
                            self.send(i)?;
                        } else {
                            ph.fail("connection closed in the middle of an answer".into());
                            c.close_after = true;
                            c.st = St::Idle;
                            if !stopped && issued < n {
                                self.start(i, gen, first_id + issued, &mut ph)?;
                                issued += 1;
                            }
                        }
                    }
                    continue;
                }
                // complete
                let id = c.cur;
                if c.is_sse {
                    ph.sse += 1;
                }
                match c.answer {
                    None => {
                        if !c.answered {
                            ph.lat_ns.push(t - c.start_ns);
                        }
                        ph.fail(format!(
                            "HTTP {} without an answer: {}",
                            c.status,
                            clip(&String::from_utf8_lossy(&c.body))
                        ));
                    }
                    Some((s, e)) => match serde_json::from_slice::<Envelope>(&c.body[s..e]) {
                        Err(er) => ph.fail(format!("not JSON-RPC: {er}")),
                        Ok(env) => {
                            if env.num_id() != Some(id) {
                                ph.fail(format!("answer has id {:?}, not {id}", env.id.map(|r| r.get())));
                            } else {
                                match gen.validate(id, &env) {
                                    Ok(()) => {
                                        ph.done += 1;
                                        on_done(ph.done);
                                    }
                                    Err(m) => ph.fail(m),
                                }
                            }
                        }
                    },
                }
                c.st = St::Idle;
                if closed {
                    c.close_after = true;
                }
                if !stopped && issued < n {
                    self.start(i, gen, first_id + issued, &mut ph)?;
                    issued += 1;
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
        let b1: (u64, u64) = self.conns.iter().fold((0, 0), |a, c| (a.0 + c.bytes_in, a.1 + c.bytes_out));
        ph.bytes_in = b1.0 - b0.0;
        ph.bytes_out = b1.1 - b0.1;
        Ok(ph)
    }
}
