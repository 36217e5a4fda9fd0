//! Medians, ratios and the table.

use super::plan::{self, Kind, Point};
use crate::place;
use crate::report::Table;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The name of what everything is compared with.
pub(super) const FLOOR: &str = "floor";
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// One measurement.
pub(super) struct Run {
    pub(super) target: String,
    pub(super) revision: String,
    round: usize,
    pub(super) figures: Value,
}

impl Run {
    pub(super) fn new(target: &str, revision: &str, round: usize, mut figures: Value, point: &Point) -> Self {
        if let Some(all) = figures.as_object_mut() {
            all.insert("target".to_owned(), json!(target));
            all.insert("round".to_owned(), json!(round));
            all.insert("point".to_owned(), json!(point.to_string()));
            let figure = |name: &str| all.get(name).and_then(Value::as_f64);
            if let Some((grown, warm)) = figure("rss_growth_kb").zip(figure("rss_after_10pct_kb")) {
                all.insert("rss_growth_percent".to_owned(), json!(100.0 * grown / warm.max(1.0)));
            }
        }
        Self { target: target.to_owned(), revision: revision.to_owned(), round, figures }
    }

    pub(super) fn valid(&self) -> bool {
        self.figures["valid"] == true
    }

    pub(super) fn error(&self) -> String {
        self.figures["error"].as_str().unwrap_or("no figures").to_owned()
    }

    fn figure(&self, name: &str) -> Option<f64> {
        self.valid().then(|| self.figures[name].as_f64()).flatten()
    }
}

/// `benches/targets.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// The most that a modern call's CPU may be to a legacy one's.
    modern: BTreeMap<String, f64>,
    target: Vec<Target>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    kind: String,
    scenario: String,
    transport: Option<String>,
    concurrency: Option<usize>,
    /// Another figure than the one the point is about; only with `value`.
    figure: Option<String>,
    ratio: Option<BTreeMap<String, f64>>,
    value: Option<BTreeMap<String, f64>>,
}

/// The most a cell may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Ratio(f64),
    Value(f64),
}

impl Targets {
    pub(super) fn read() -> Result<Self> {
        let path = place::root().join("benches/targets.toml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| place::short(&path))
    }

    fn of(&self, point: &Point) -> impl Iterator<Item = &Target> {
        let kind = if point.kind == Kind::Client { "client" } else { "server" };
        self.target.iter().filter(move |t| {
            t.kind == kind
                && t.scenario == point.scenario
                && t.transport.as_ref().is_none_or(|x| x == point.transport)
                && t.concurrency.is_none_or(|c| c == point.concurrency)
        })
    }

    fn limit(&self, point: &Point, target: &str) -> Option<Limit> {
        let found = self.of(point).find(|t| t.figure.is_none())?;
        let of = |all: &Option<BTreeMap<String, f64>>| all.as_ref().and_then(|m| m.get(target)).copied();
        of(&found.ratio).map(Limit::Ratio).or_else(|| of(&found.value).map(Limit::Value))
    }

    /// The most that a modern call may cost to a legacy one, where that is what the point is about.
    fn dearer(&self, point: &Point, target: &str) -> Option<f64> {
        self.modern.get(target).copied().filter(|_| point.metric == plan::CPU)
    }

    /// The most that further figures of the point may be.
    fn others(&self, point: &Point, target: &str) -> Vec<(&str, f64)> {
        let further = self.of(point).filter_map(|t| Some((t.figure.as_deref()?, *t.value.as_ref()?.get(target)?)));
        further.collect()
    }
}

/// One row per target; cells over their limit are added to `missed`.
pub(super) fn table(point: &Point, runs: &[Run], targets: &Targets, missed: &mut Vec<String>) -> Table {
    let metric = point.metric;
    let head = [
        "target",
        "× floor",
        "modern × floor",
        "modern / legacy",
        metric,
        "1/s",
        "p50 µs",
        "p99 µs",
        "RSS MB",
        "limit",
    ];
    let mut table = Table::new(&head);
    let mut names: Vec<&str> = Vec::new();
    for run in runs.iter().filter(|r| r.round == 0) {
        if !names.contains(&run.target.as_str()) {
            names.push(&run.target);
        }
    }
    for name in names {
        let of = |revision: &str, figure: &str| {
            let values = runs.iter().filter(|r| r.target == name && r.revision == revision);
            median(values.filter_map(|r| r.figure(figure)).collect())
        };
        let legacy = ratio(runs, (name, LEGACY), (FLOOR, LEGACY), metric);
        let modern = ratio(runs, (name, MODERN), (FLOOR, MODERN), metric);
        let dearer = ratio(runs, (name, MODERN), (name, LEGACY), metric);
        let value = of(LEGACY, metric).or_else(|| of(MODERN, metric));
        let most = targets.limit(point, name);
        let eras = match most {
            Some(Limit::Ratio(_)) => [(LEGACY, legacy), (MODERN, modern)],
            _ => [LEGACY, MODERN].map(|revision| (revision, of(revision, metric))),
        };
        let mut over = |what: &str, reached: Option<f64>, most: Option<f64>| {
            let over = most.zip(reached).is_some_and(|(most, reached)| reached > most);
            if over {
                missed.push(format!("{point} {name} {what}: {}, at most {}", number(reached), number(most)));
            }
            over
        };
        let most = most.map(|(Limit::Ratio(most) | Limit::Value(most))| most);
        // Both are looked at, so that both are told.
        let too_much = eras.map(|(revision, reached)| over(revision, reached, most)).contains(&true);
        let too_dear = over("modern / legacy", dearer, targets.dearer(point, name));
        for (figure, most) in targets.others(point, name) {
            for revision in [LEGACY, MODERN] {
                over(&format!("{revision} {figure}"), of(revision, figure), Some(most));
            }
        }
        let either = |figure: &str| of(LEGACY, figure).or_else(|| of(MODERN, figure));
        table.flat(&[
            name.to_owned(),
            number(legacy),
            number(modern),
            marked(dearer, too_dear),
            number(value),
            number(either("rps")),
            number(either("p50_us")),
            number(either("p99_us")),
            number(either("peak_rss_kb").or_else(|| either("cold_rss_kb")).map(|kb| kb / 1024.0)),
            marked(most, too_much),
        ]);
    }
    table
}

/// The median over the rounds of what one costs against another in the same round.
fn ratio(runs: &[Run], of: (&str, &str), to: (&str, &str), metric: &str) -> Option<f64> {
    let value = |(target, revision): (&str, &str), round: usize| {
        let same = |r: &&Run| r.target == target && r.revision == revision && r.round == round;
        runs.iter().find(same).and_then(|r| r.figure(metric))
    };
    let rounds = runs.iter().map(|r| r.round).max().map_or(0, |last| last + 1);
    let ratios = (0..rounds).filter_map(|round| {
        let (of, to) = (value(of, round)?, value(to, round)?);
        (to > 0.0).then_some(of / to)
    });
    median(ratios.collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

fn marked(value: Option<f64>, over: bool) -> String {
    format!("{}{}", number(value), if over { " OVER" } else { "" })
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) if v.abs() >= 1.0 => format!("{v:.2}"),
        Some(v) => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(point: &Point) -> Vec<Run> {
        let run = |target, revision, round, cpu: f64, valid| {
            Run::new(target, revision, round, json!({ "valid": valid, "cpu_s_per_10k": cpu }), point)
        };
        vec![
            run(FLOOR, LEGACY, 0, 0.1, true),
            run("rust", LEGACY, 0, 0.2, true),
            run("rust", MODERN, 0, 0.22, true),
            run(FLOOR, LEGACY, 1, 0.2, true),
            run("rust", LEGACY, 1, 0.3, true),
            run("rust", LEGACY, 2, 9.0, false),
        ]
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let point = plan::points(&["call-add".to_owned()]).expect("known").remove(0);
        let runs = runs(&point);
        assert_eq!(ratio(&runs, ("rust", LEGACY), (FLOOR, LEGACY), "cpu_s_per_10k"), Some(1.75));
        let dearer = ratio(&runs, ("rust", MODERN), ("rust", LEGACY), "cpu_s_per_10k").expect("one round");
        assert!((dearer - 1.1).abs() < 1e-9);
        assert_eq!(ratio(&runs, ("node", LEGACY), (FLOOR, LEGACY), "cpu_s_per_10k"), None);
    }

    #[test]
    fn the_limits_are_found_and_a_cell_over_its_limit_is_told() {
        let targets = Targets::read().expect("the list is there");
        let points = plan::points(&["call-add".to_owned()]).expect("known");
        assert_eq!(targets.limit(&points[0], "rust"), Some(Limit::Ratio(1.8)));
        let cold = plan::points(&["cold".to_owned()]).expect("known");
        assert_eq!(targets.limit(&cold[1], "swift"), Some(Limit::Value(30.0)));
        let mut missed = Vec::new();
        table(&points[0], &runs(&points[0]), &targets, &mut missed);
        assert!(missed.is_empty(), "1.75 is within 1.8: {missed:?}");
        let dear = Run::new("rust", LEGACY, 0, json!({ "valid": true, "cpu_s_per_10k": 5.0 }), &points[0]);
        let mut all = runs(&points[0]);
        all.retain(|r| r.target == FLOOR);
        all.push(dear);
        table(&points[0], &all, &targets, &mut missed);
        assert_eq!(missed.len(), 1);
    }

    #[test]
    fn modern_cells_have_their_limits_however_legacy_does() {
        let targets = Targets::read().expect("the list is there");
        let point = plan::points(&["call-add".to_owned()]).expect("known").remove(0);
        let told = |revision_costs: &[(&str, &str, f64)]| {
            let run = |(target, revision, cpu): &(&str, &str, f64)| {
                Run::new(target, revision, 0, json!({ "valid": true, "cpu_s_per_10k": cpu }), &point)
            };
            let runs: Vec<Run> = revision_costs.iter().map(run).collect();
            let mut missed = Vec::new();
            let text = table(&point, &runs, &targets, &mut missed).to_string();
            assert_eq!(text.matches("OVER").count(), missed.len());
            missed
        };
        // A floor that pays for modern calls, too: what is dear is the server.
        let floor = [(FLOOR, LEGACY, 0.1), (FLOOR, MODERN, 0.2)];
        let with = |more: &[(&'static str, &'static str, f64)]| told(&[&floor[..], more].concat());
        assert!(with(&[("rust", LEGACY, 0.17), ("rust", MODERN, 0.18)]).is_empty());
        let over = "call-add stdio 1 in flight rust 2026-07-28: 2.00, at most 1.80";
        assert_eq!(told(&[(FLOOR, MODERN, 0.1), ("rust", MODERN, 0.2)]), [over]);
        let dear = "call-add stdio 1 in flight rust modern / legacy: 1.20, at most 1.10";
        assert_eq!(with(&[("rust", LEGACY, 0.15), ("rust", MODERN, 0.18)]), [dear]);
        let flat = [(FLOOR, LEGACY, 0.1), (FLOOR, MODERN, 0.1), ("rust", LEGACY, 0.175), ("rust", MODERN, 0.19)];
        assert_eq!(told(&flat), ["call-add stdio 1 in flight rust 2026-07-28: 1.90, at most 1.80"]);
    }

    #[test]
    fn growth_and_what_sessions_leave_have_their_limits() {
        let targets = Targets::read().expect("the list is there");
        let one = |name: &str, figures| {
            let point = plan::points(&[name.to_owned()]).expect("known").remove(0);
            let mut missed = Vec::new();
            table(&point, &[Run::new("rust", LEGACY, 0, figures, &point)], &targets, &mut missed);
            missed.len()
        };
        let soak = |grown| json!({ "valid": true, "rss_growth_kb": grown, "rss_after_10pct_kb": 10_000 });
        assert_eq!((one("soak", soak(400)), one("soak", soak(600))), (0, 1));
        let kept = |kb| json!({ "valid": true, "kb_per_session": 1.0, "kept_after_delete_kb_per_session": kb });
        assert_eq!((one("sessions", kept(0.1)), one("sessions", kept(0.3))), (0, 1));
    }
}
