//! The points that can be measured.

use anyhow::{Result, bail};
use std::fmt;

/// Seconds of CPU for 10,000 requests.
pub(super) const CPU: &str = "cpu_s_per_10k";

/// Every name that `cargo xtask bench` takes.
const SCENARIOS: [&str; 13] = [
    "call-add",
    "echo-1k",
    "echo-64k",
    "echo-1m",
    "list",
    "async",
    "features",
    "cold",
    "memory",
    "soak",
    "sessions",
    "clients",
    "clients-payload",
];
const FEATURES: [&str; 5] = ["read", "read-template", "prompt", "sample", "elicit"];
const USUAL: [&str; 5] = ["call-add", "cold", "memory", "sessions", "clients"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Client,
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) kind: Kind,
    /// Our name for it.
    pub(super) scenario: &'static str,
    /// The load generator's name for it.
    pub(super) loadgen: &'static str,
    /// Scenario of the floor meanwhile.
    pub(super) floor: &'static str,
    pub(super) transport: &'static str,
    pub(super) concurrency: usize,
    /// At most this many requests, processes or sessions.
    pub(super) n: u64,
    /// The figure that is compared; more is worse.
    pub(super) metric: &'static str,
}

impl Point {
    /// Returns true if the point exists at this revision.
    pub(super) fn has(&self, revision: &str) -> bool {
        !matches!(self.scenario, "sessions" | "sample" | "elicit") || revision < "2026"
    }

    /// Compilers and pools must be warm, but a slow target must not spend its time on it.
    pub(super) fn warmup(&self) -> u64 {
        let most = match self.loadgen {
            "call-add" | "read" | "read-template" | "prompt" | "sample" | "elicit" => 1000,
            "soak" => 500,
            "echo-1k" => 300,
            _ => 30,
        };
        most.min((self.n / 4).max(5))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind == Kind::Client { "client " } else { "" };
        write!(f, "{kind}{} {} {} in flight", self.scenario, self.transport, self.concurrency)
    }
}

/// The points of these scenarios; of the usual ones when none is named.
pub(super) fn points(names: &[String]) -> Result<Vec<Point>> {
    let mut all = Vec::new();
    let usual = USUAL.map(str::to_owned);
    for name in if names.is_empty() { &usual[..] } else { names } {
        let Some(name) = SCENARIOS.into_iter().find(|s| s == name) else {
            bail!("no scenario {name:?}: {}", SCENARIOS.join(", "));
        };
        all.extend(of(name));
    }
    Ok(all)
}

fn of(name: &'static str) -> Vec<Point> {
    let point = |kind, loadgen, transport, concurrency, n, metric| Point {
        kind,
        scenario: if ["clients", "clients-payload", "features"].contains(&name) { loadgen } else { name },
        loadgen,
        floor: if name == "features" { "call-add" } else { loadgen },
        transport,
        concurrency,
        n,
        metric,
    };
    let both = |loadgen, concurrencies: &[usize], n, metric| {
        let cells = ["stdio", "http"].into_iter().flat_map(|t| concurrencies.iter().map(move |c| (t, *c)));
        cells.map(|(t, c)| point(Kind::Server, loadgen, t, c, n, metric)).collect::<Vec<_>>()
    };
    let client = |loadgen, concurrencies: &[usize], n| {
        let cells = ["stdio", "http"].into_iter().flat_map(|t| concurrencies.iter().map(move |c| (t, *c)));
        cells.map(|(t, c)| point(Kind::Client, loadgen, t, c, n, CPU)).collect::<Vec<_>>()
    };
    match name {
        "call-add" => both("call-add", &[1, 16], 20_000, CPU),
        "echo-1k" => both("echo-1k", &[1], 20_000, CPU),
        "echo-64k" => both("echo-64k", &[1], 5_000, CPU),
        "echo-1m" => both("echo-1m", &[1], 400, CPU),
        "list" => both("list", &[4], 20_000, CPU),
        // Each beside the floor's calls of `add`: what the features cost in calls of a tool.
        "features" => FEATURES.into_iter().flat_map(|loadgen| both(loadgen, &[4], 20_000, CPU)).collect(),
        "async" => both("sleep-10", &[128], 20_000, CPU),
        "cold" => both("cold", &[1], 8, "cold_list_ms"),
        "memory" => both("call-add", &[16], 20_000, "rss_kb"),
        "soak" => both("soak", &[16], 100_000, "rss_growth_percent"),
        "sessions" => vec![point(Kind::Server, "sessions", "http", 1, 1_000, "kb_per_session")],
        // With 64 in flight the floor needs a microsecond for each: fewer are too short to measure.
        "clients" => [client("call-add", &[1], 5_000), client("call-add", &[64], 50_000)].concat(),
        _ => [client("echo-64k", &[1], 500), client("echo-1m", &[1], 60), client("list", &[1], 300)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_points() {
        for name in SCENARIOS {
            let points = points(&[name.to_owned()]).expect("a known name");
            assert!(!points.is_empty(), "{name}");
            assert!(points.iter().all(|p| p.warmup() < p.n));
        }
        assert!(points(&["nonsense".to_owned()]).is_err());
        assert_eq!(points(&[]).expect("the usual ones").len(), 4 + 2 + 2 + 1 + 4);
    }

    #[test]
    fn features_stand_beside_the_floors_calls_and_questions_are_legacy_only() {
        let points = points(&["features".to_owned()]).expect("a known name");
        assert_eq!(points.len(), 5 * 2);
        assert!(points.iter().all(|p| p.floor == "call-add"));
        let modern = points.iter().filter(|p| p.has("2026-07-28")).count();
        assert_eq!(modern, 3 * 2);
    }

    #[test]
    fn sessions_are_legacy_only() {
        let point = &points(&["sessions".to_owned()]).expect("a known name")[0];
        assert!(point.has("2025-11-25") && !point.has("2026-07-28"));
    }
}
