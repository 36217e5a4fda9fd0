//! Loads that leave things behind if anything can: calls, cancelled calls, abandoned sessions, rounds of everything
//! else a session can do ([`mix`]), clients killed in the middle, listen streams and tasks that nobody comes back to. After a warm-up of the same mix the server's footprint is
//! measured, after the full load it has to come back to within the tolerance, or, for memory, after one more.

pub(crate) mod http;
mod mix;
mod pipe;
pub mod victim;

use crate::launch::{self, Listening};
use crate::options::Options;
use crate::proc::{Footprint, Tolerance};
use crate::report::Report;
use crate::script::Transport;
use crate::wire::stdio::Pipe;
use crate::{Failure, Outcome};
use std::time::{Duration, Instant};

/// 5 per cent, plus noise that does not grow with the load.
const TOLERANCE: Tolerance = Tolerance { percent: 5, memory: 1024, threads: 2, descriptors: 4 };

/// The warm-up has this part of the load's calls. Of sessions and killed clients it has all, because many of them are
/// there at the same time, those of the last seconds before they idle out: what a heap once needed it keeps.
const WARM_UP: usize = 4;

/// A heap keeps what it needed at its worst moment, and how bad that moment is depends on chance: how many sessions of
/// the last seconds are there at once. So memory that grew is put to the proof: the same load again, measured from where
/// the last one ended. A leak grows each time, a heap that found its size does not.
const LOADS: usize = 3;

/// Interval of the reports of growth that has not gone yet.
const TELL: Duration = Duration::from_secs(5);

/// Longest time for leftovers to disappear.
const SETTLE: Duration = Duration::from_secs(60);

/// Numbers of the calls, sessions and so on of a load.
#[derive(Clone, Copy, Debug)]
struct Load {
    calls: usize,
    cancels: usize,
    sessions: usize,
    rounds: usize,
    kills: usize,
    /// Listen streams that are opened and abandoned (HTTP).
    streams: usize,
    /// Tasks that are created and forgotten (HTTP).
    tasks: usize,
}

impl Load {
    fn read(options: &Options) -> Outcome<Self> {
        Ok(Self {
            calls: options.number("calls", 100_000)?,
            cancels: options.number("cancels", 10_000)?,
            sessions: options.number("sessions", 5_000)?,
            rounds: options.number("rounds", 600)?,
            kills: options.number("kills", 1_000)?,
            streams: options.number("streams", 10_000)?,
            tasks: options.number("tasks", 1_000)?,
        })
    }

    fn warm_up(self) -> Self {
        let part = |count: usize| count.div_ceil(WARM_UP);
        let (calls, cancels, rounds) = (part(self.calls), part(self.cancels), part(self.rounds));
        Self { calls, cancels, rounds, streams: part(self.streams), ..self }
    }
}

/// Run the loads on every transport.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let load = Load::read(options)?;
    let wants = |transport| options.transport.is_none_or(|only| only == transport);
    let language = if options.language.is_empty() { "server" } else { &options.language };
    if wants(Transport::Http) {
        let name = format!("{language} http leaks");
        report.record(&name, over_http(&name, &command, load, options));
    }
    if wants(Transport::Stdio) {
        let name = format!("{language} stdio leaks");
        report.record(&name, over_stdio(&name, &command, load, options));
        let orphans = options.number("orphans", 20)?;
        let name = format!("{language} stdio servers of {orphans} killed clients end");
        report.record(&name, victim::orphans(&command, orphans));
    }
    Ok(())
}

/// Tasks are on, and what nobody ends lives for two seconds.
fn tasks() -> (String, String) {
    ("EVERYTHING_TASKS".to_owned(), "2".to_owned())
}

fn over_http(name: &str, command: &[String], load: Load, options: &Options) -> Outcome {
    // Sessions that nobody ends have to end by themselves within the time we wait.
    let environment = [tasks(), ("EVERYTHING_SESSION_IDLE_TIMEOUT".to_owned(), "2".to_owned())];
    let server = Listening::start(command, &environment)?;
    let outcome = compare(
        name,
        server.id(),
        |load, tell| http::apply(&server, load, options.timeout, tell),
        || http::settled(&server, options.timeout),
        load,
    );
    outcome.map_err(|reason| with_log(reason, &server.log.lines(), options))
}

fn over_stdio(name: &str, command: &[String], load: Load, options: &Options) -> Outcome {
    let mut server = pipe::Client::open(Pipe::open(&launch::stdio(command, &[tasks()]))?, options.timeout)?;
    let (id, log) = (server.id(), server.log());
    let server = std::cell::RefCell::new(&mut server);
    let outcome = compare(
        name,
        id,
        |load, tell| pipe::apply(&mut server.borrow_mut(), load, tell),
        || pipe::settled(&mut server.borrow_mut()),
        load,
    );
    outcome.map_err(|reason| with_log(reason, &log.lines(), options))
}

fn compare(
    name: &str,
    leader: u32,
    mut apply: impl FnMut(Load, &dyn Fn(&str)) -> Outcome,
    mut settled: impl FnMut() -> Outcome<bool>,
    load: Load,
) -> Outcome {
    let started = Instant::now();
    let tell = |what: &str| println!("# {name}: {:3.0} s: {what}", started.elapsed().as_secs_f64());
    apply(load.warm_up(), &tell).map_err(|reason| format!("warm-up: {reason}"))?;
    tell("warm-up done");
    wait_until(&mut settled)?;
    let before = calm(leader)?;
    tell(&format!("after warm-up {before}"));
    let mut before = before;
    let mut loads = 1..=LOADS;
    loop {
        apply(load, &tell)?;
        tell("load done");
        wait_until(&mut settled)?;
        tell("nothing is held any more");
        loads.next();
        let settle = if loads.is_empty() { SETTLE } else { SETTLE / 6 };
        let (after, growth) = comes_back(leader, before, settle, &mut settled, &tell)?;
        tell(&format!("after the load {after}"));
        if growth.is_empty() {
            return Ok(());
        }
        if loads.is_empty() {
            return Err(growth.join("; "));
        }
        // Threads and descriptors have to be what they were at first.
        before.memory = after.memory;
    }
}

/// Returns the footprint that is left after at most `settle`, and the growth in it.
fn comes_back(
    leader: u32,
    before: Footprint,
    settle: Duration,
    settled: &mut impl FnMut() -> Outcome<bool>,
    tell: &dyn Fn(&str),
) -> Outcome<(Footprint, Vec<String>)> {
    let deadline = Instant::now() + settle;
    let mut told = Instant::now();
    loop {
        let after = Footprint::of_group(leader)?;
        let growth = after.growth(before, TOLERANCE);
        if growth.is_empty() || Instant::now() > deadline {
            return Ok((after, growth));
        }
        if told.elapsed() > TELL {
            tell(&growth.join("; "));
            told = Instant::now();
        }
        // Anything the server does may be what triggers its collector.
        settled()?;
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The smallest footprint of two seconds: what is there when nothing happens.
fn calm(leader: u32) -> Outcome<Footprint> {
    let mut least = Footprint::of_group(leader)?;
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(200));
        let now = Footprint::of_group(leader)?;
        least.memory = least.memory.min(now.memory);
        least.threads = least.threads.min(now.threads);
        least.descriptors = least.descriptors.min(now.descriptors);
    }
    Ok(least)
}

fn wait_until(settled: &mut impl FnMut() -> Outcome<bool>) -> Outcome {
    let deadline = Instant::now() + SETTLE;
    while !settled()? {
        if Instant::now() > deadline {
            return Err(format!("calls or sessions are still there {SETTLE:?} after the last one was left"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn with_log(reason: Failure, log: &[String], options: &Options) -> Failure {
    if options.verbose { format!("{reason}\n{}", log.join("\n")) } else { reason }
}

/// The gauges of `test_metrics`, and what of each the request that asks for them is itself.
const GAUGES: [(&str, u64); 6] = [
    ("/server/sessions", 0),
    ("/server/streams", 0),
    ("/server/listeners", 0),
    ("/server/tasks", 0),
    ("/server/in_flight", 1),
    ("/slow/running", 0),
];

/// Returns true if the answer of `test_metrics` says that nothing is left. A gauge that is not there shows nothing.
fn nothing_left(answer: &serde_json::Value) -> Outcome<bool> {
    let metrics = answer
        .pointer("/result/structuredContent")
        .ok_or_else(|| format!("test_metrics: no structuredContent in {}", crate::pattern::brief(answer)))?;
    let mut nothing = true;
    for (path, limit) in GAUGES {
        let gauge = metrics.pointer(path).and_then(serde_json::Value::as_u64);
        nothing &=
            gauge.ok_or_else(|| format!("test_metrics: no {path} in {}", crate::pattern::brief(metrics)))? <= limit;
    }
    Ok(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_gauge_that_is_missing_shows_nothing() {
        let metrics = |server, slow| json!({"result": {"structuredContent": {"server": server, "slow": slow}}});
        let server = json!({"sessions": 0, "streams": 0, "listeners": 0, "tasks": 0, "in_flight": 1, "connections": 4});
        let slow = json!({"running": 0});
        assert_eq!(nothing_left(&metrics(server.clone(), slow.clone())), Ok(true));
        for gauge in ["sessions", "streams", "listeners", "tasks", "in_flight"] {
            let mut other = server.clone();
            other[gauge] = 2.into();
            assert_eq!(nothing_left(&metrics(other.clone(), slow.clone())), Ok(false), "{gauge}");
            other.as_object_mut().expect("an object").remove(gauge);
            assert!(nothing_left(&metrics(other, slow.clone())).is_err(), "{gauge}");
        }
        assert_eq!(nothing_left(&metrics(server.clone(), json!({"running": 1}))), Ok(false));
        assert!(nothing_left(&metrics(server, json!({}))).is_err());
        assert!(nothing_left(&json!({"error": {"code": 1}})).is_err());
    }
}
