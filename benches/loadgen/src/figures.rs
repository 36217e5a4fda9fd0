//! What is measured around and inside a phase.

use crate::procs::{self, Usage, now_ns};
use crate::stdio::Phase;
use serde_json::{Map, Value, json};

pub fn pct(sorted: &[u64], p: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let i = ((sorted.len() as f64 - 1.0) * p).round() as usize;
    sorted[i] as f64 / 1000.0
}

pub fn median(v: &mut [f64]) -> f64 {
    if v.is_empty() {
        return 0.0;
    }
    v.sort_by(|a, b| a.total_cmp(b));
    let m = v.len() / 2;
    if v.len() % 2 == 1 { v[m] } else { (v[m - 1] + v[m]) / 2.0 }
}

pub fn r(x: f64, digits: i32) -> f64 {
    let k = 10f64.powi(digits);
    (x * k).round() / k
}

pub struct Window {
    before: Usage,
    self0: u64,
    spin0: u64,
    mach0: (f64, f64),
    t0: u64,
}

impl Window {
    pub fn open(pid: i32, tree: bool) -> Window {
        Window {
            before: procs::usage(pid, tree),
            self0: procs::self_cpu_ns(),
            spin0: procs::spin_ns(),
            mach0: procs::machine(),
            t0: now_ns(),
        }
    }

    pub fn close(self, pid: i32, tree: bool, done: u64, out: &mut Map<String, Value>) {
        let wall = (now_ns() - self.t0) as f64 / 1e9;
        let after = procs::usage(pid, tree);
        let own = (procs::self_cpu_ns() - self.self0) as f64 / 1e9;
        let spin = (procs::spin_ns() - self.spin0) as f64 / 1e9;
        let m1 = procs::machine();
        let cpu = (after.cpu_ns.saturating_sub(self.before.cpu_ns)) as f64 / 1e9;
        let per = if done > 0 { 10_000.0 / done as f64 } else { 0.0 };
        let (du, ds) = (after.user_s - self.before.user_s, after.sys_s - self.before.sys_s);
        let busy = (m1.0 - self.mach0.0) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        out.insert("cpu_s".into(), json!(r(cpu, 6)));
        out.insert("cpu_s_per_10k".into(), json!(r(cpu * per, 5)));
        out.insert("user_share".into(), json!(if du + ds > 0.0 { r(du / (du + ds), 3) } else { 0.0 }));
        out.insert("cores_used".into(), json!(r(cpu / wall.max(1e-9), 3)));
        out.insert(
            "ctxsw_per_req".into(),
            json!(r((after.ctxsw.saturating_sub(self.before.ctxsw)) as f64 / done.max(1) as f64, 3)),
        );
        out.insert("rss_kb".into(), json!(after.rss_kb));
        out.insert("rss_start_kb".into(), json!(self.before.rss_kb));
        out.insert("peak_rss_kb".into(), json!(after.peak_kb));
        out.insert("threads".into(), json!(after.threads));
        out.insert("loadgen_cpu_s".into(), json!(r(own, 6)));
        out.insert("loadgen_cores".into(), json!(r(own / wall.max(1e-9), 3)));
        // what everybody else on the machine used while this ran: the noise
        out.insert("other_cores".into(), json!(r(((busy - cpu - own - spin) / wall.max(1e-9)).max(0.0), 3)));
    }
}

pub fn put_phase(ph: &mut Phase, out: &mut Map<String, Value>) {
    ph.lat_ns.sort_unstable();
    let wall = ph.wall_ns as f64 / 1e9;
    out.insert("n_done".into(), json!(ph.done));
    out.insert("n_failed".into(), json!(ph.failed));
    out.insert("wall_s".into(), json!(r(wall, 4)));
    out.insert("rps".into(), json!(r(ph.done as f64 / wall.max(1e-9), 1)));
    out.insert("p50_us".into(), json!(r(pct(&ph.lat_ns, 0.50), 1)));
    out.insert("p90_us".into(), json!(r(pct(&ph.lat_ns, 0.90), 1)));
    out.insert("p99_us".into(), json!(r(pct(&ph.lat_ns, 0.99), 1)));
    out.insert("max_us".into(), json!(r(pct(&ph.lat_ns, 1.0), 1)));
    out.insert("bytes_in_per_req".into(), json!(r(ph.bytes_in as f64 / ph.done.max(1) as f64, 0)));
    out.insert("bytes_out_per_req".into(), json!(r(ph.bytes_out as f64 / ph.done.max(1) as f64, 0)));
    out.insert("stray_messages".into(), json!(ph.stray));
    out.insert("reconnects".into(), json!(ph.reconnects));
    out.insert("sse_share".into(), json!(r(ph.sse as f64 / (ph.done + ph.failed).max(1) as f64, 3)));
    if let Some(e) = &ph.first_error {
        out.insert("error".into(), json!(e));
    }
}
