//! Spawning the process under test and reading what it costs: CPU clock of the whole process
//! tree (nanoseconds, `clock_getcpuclockid`), user/system ticks, RSS, peak RSS, context switches.

use std::fs;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub fn now_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// CPU time of the calling thread: the load generator is one thread (the spinners do not count).
pub fn self_cpu_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

fn pid_cpu_ns(pid: i32) -> u64 {
    let mut clk: libc::clockid_t = 0;
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe {
        if libc::clock_getcpuclockid(pid, &mut clk) != 0 {
            return 0;
        }
        if libc::clock_gettime(clk, &mut ts) != 0 {
            return 0;
        }
    }
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// `pid` and everything below it.
pub fn tree(pid: i32) -> Vec<i32> {
    let mut out = vec![pid];
    let mut i = 0;
    while i < out.len() {
        let p = out[i];
        i += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{p}/task")) else {
            continue;
        };
        for t in tasks.flatten() {
            if let Ok(s) = fs::read_to_string(t.path().join("children")) {
                out.extend(s.split_whitespace().filter_map(|x| x.parse::<i32>().ok()));
            }
        }
    }
    out
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    pub cpu_ns: u64,
    pub user_s: f64,
    pub sys_s: f64,
    pub rss_kb: u64,
    pub peak_kb: u64,
    pub threads: u64,
    pub ctxsw: u64,
    pub fds: u64,
}

fn field_kb(status: &str, key: &str) -> u64 {
    status
        .lines()
        .find_map(|l| l.strip_prefix(key))
        .and_then(|r| r.trim_start_matches(':').split_whitespace().next())
        .and_then(|v| v.parse().ok())
        .unwrap_or(0)
}

/// Only the cheap part: CPU clock of the tree.
pub fn cpu_ns(pid: i32, whole_tree: bool) -> u64 {
    if whole_tree { tree(pid).into_iter().map(pid_cpu_ns).sum() } else { pid_cpu_ns(pid) }
}

pub fn usage(pid: i32, whole_tree: bool) -> Usage {
    let tick = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let mut u = Usage::default();
    let pids = if whole_tree { tree(pid) } else { vec![pid] };
    for p in pids {
        u.cpu_ns += pid_cpu_ns(p);
        if let Ok(s) = fs::read_to_string(format!("/proc/{p}/stat")) {
            if let Some(i) = s.rfind(')') {
                let f: Vec<&str> = s[i + 2..].split(' ').collect();
                u.user_s += f.get(11).and_then(|x| x.parse::<f64>().ok()).unwrap_or(0.0) / tick;
                u.sys_s += f.get(12).and_then(|x| x.parse::<f64>().ok()).unwrap_or(0.0) / tick;
            }
        }
        if let Ok(s) = fs::read_to_string(format!("/proc/{p}/status")) {
            u.rss_kb += field_kb(&s, "VmRSS");
            u.peak_kb += field_kb(&s, "VmHWM");
            u.threads += field_kb(&s, "Threads");
        }
        if let Ok(tasks) = fs::read_dir(format!("/proc/{p}/task")) {
            for t in tasks.flatten() {
                if let Ok(s) = fs::read_to_string(t.path().join("status")) {
                    u.ctxsw += field_kb(&s, "voluntary_ctxt_switches");
                    u.ctxsw += field_kb(&s, "nonvoluntary_ctxt_switches");
                }
            }
        }
        if let Ok(d) = fs::read_dir(format!("/proc/{p}/fd")) {
            u.fds += d.count() as u64;
        }
    }
    u
}

/// (busy, total) jiffies of the whole machine.
pub fn machine() -> (f64, f64) {
    let s = fs::read_to_string("/proc/stat").unwrap_or_default();
    let v: Vec<f64> =
        s.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|x| x.parse().ok()).collect();
    let total: f64 = v.iter().take(8).sum();
    let idle = v.get(3).copied().unwrap_or(0.0) + v.get(4).copied().unwrap_or(0.0);
    (total - idle, total)
}

pub fn pin(pid: i32, cpu: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(pid, std::mem::size_of::<libc::cpu_set_t>(), &set);
    }
}

/// One SCHED_IDLE thread per CPU that spins: the CPUs never halt, so that waking a process costs
/// the same on a quiet and on a busy machine (on a virtual machine leaving the idle state costs
/// more than a small request). Any normal thread takes the CPU from them at once.
pub fn keep_awake() {
    let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as usize;
    for cpu in 0..n {
        std::thread::spawn(move || unsafe {
            let p = libc::sched_param { sched_priority: 0 };
            if libc::sched_setscheduler(0, libc::SCHED_IDLE, &p) != 0 {
                return;
            }
            pin(0, cpu);
            let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            loop {
                for _ in 0..20_000 {
                    std::hint::spin_loop();
                }
                libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts);
                SPIN_NS[cpu.min(255)]
                    .store(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64, std::sync::atomic::Ordering::Relaxed);
            }
        });
    }
}

static SPIN_NS: [std::sync::atomic::AtomicU64; 256] = [const { std::sync::atomic::AtomicU64::new(0) }; 256];

pub fn spin_ns() -> u64 {
    SPIN_NS.iter().map(|x| x.load(std::sync::atomic::Ordering::Relaxed)).sum()
}

pub struct Proc {
    pub child: Child,
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub spawned_ns: u64,
}

impl Proc {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Proc {
    /// Only ever signals the process group this harness created.
    fn drop(&mut self) {
        self.stdin.take();
        let pid = self.pid();
        let t0 = Instant::now();
        let mut termed = false;
        loop {
            if let Ok(Some(_)) = self.child.try_wait() {
                break;
            }
            let el = t0.elapsed();
            if !termed && el > Duration::from_millis(150) {
                unsafe { libc::kill(-pid, libc::SIGTERM) };
                termed = true;
            }
            if el > Duration::from_millis(2500) {
                unsafe { libc::kill(-pid, libc::SIGKILL) };
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // anything left in the group (a wrapper's children)
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

/// Splits like a shell for the simple cases: whitespace, '...' and "...".
pub fn split_cmd(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut cur = String::new();
    let mut quote: Option<char> = None;
    let mut any = false;
    for c in s.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => cur.push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                any = true;
            }
            None if c.is_whitespace() => {
                if any || !cur.is_empty() {
                    out.push(std::mem::take(&mut cur));
                    any = false;
                }
            }
            None => cur.push(c),
        }
    }
    if any || !cur.is_empty() {
        out.push(cur);
    }
    out
}

pub struct Spawn<'a> {
    pub cmd: &'a str,
    pub cwd: Option<&'a str>,
    pub env: &'a [(String, String)],
    pub stderr: Option<&'a str>,
    pub pipes: bool,
    pub pin: Option<usize>,
}

pub fn spawn(s: Spawn) -> Result<Proc, String> {
    let argv = split_cmd(s.cmd);
    if argv.is_empty() {
        return Err("empty --cmd".into());
    }
    let mut c = Command::new(&argv[0]);
    c.args(&argv[1..]);
    for (k, v) in s.env {
        c.env(k, v);
    }
    if let Some(d) = s.cwd {
        c.current_dir(d);
    }
    if s.pipes {
        c.stdin(Stdio::piped()).stdout(Stdio::piped());
    } else {
        c.stdin(Stdio::null()).stdout(Stdio::null());
    }
    match s.stderr {
        Some("inherit") => {
            c.stderr(Stdio::inherit());
        }
        Some(f) => {
            let f = fs::OpenOptions::new().create(true).append(true).open(f).map_err(|e| format!("{f}: {e}"))?;
            c.stderr(Stdio::from(f));
        }
        None => {
            c.stderr(Stdio::null());
        }
    }
    c.process_group(0);
    let pincpu = s.pin;
    unsafe {
        c.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if let Some(cpu) = pincpu {
                pin(0, cpu);
            }
            Ok(())
        });
    }
    let spawned_ns = now_ns();
    let mut child = c.spawn().map_err(|e| format!("{}: {e}", argv[0]))?;
    let stdin = child.stdin.take().map(|x| unsafe { OwnedFd::from_raw_fd(x.into_raw_fd()) });
    let stdout = child.stdout.take().map(|x| unsafe { OwnedFd::from_raw_fd(x.into_raw_fd()) });
    Ok(Proc { child, stdin, stdout, spawned_ns })
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map(|a| a.port()).expect("no free port")
}

pub fn set_nonblock(fd: i32) {
    unsafe {
        let fl = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, fl | libc::O_NONBLOCK);
    }
}
