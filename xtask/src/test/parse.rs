//! Readers of each runner's output. A count that cannot be read is a failure, never a pass.

use crate::process::Done;
use crate::report::Counts;

/// Way of reading the output of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A check: its exit status is the whole answer.
    Status,
    /// `cargo test`.
    Cargo,
    /// `pytest -q -ra`.
    Pytest,
    /// `node --test --test-reporter=tap`.
    Tap,
    /// `swift test`.
    Swift,
    /// Our own programs: a last line `N passed, M failed[, K skipped]`.
    Own,
}

/// Result of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) counts: Counts,
    /// Reasons for skips, one line each.
    pub(crate) skips: Vec<String>,
    /// Failures, one line each.
    pub(crate) failures: Vec<String>,
}

impl Read {
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self { counts: Counts::of(false), failures: vec![why.into()], ..Self::default() }
    }

    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self { counts: Counts::new(0, 0, 1), skips: vec![why.into()], ..Self::default() }
    }
}

/// Reads a finished step.
pub(crate) fn read(reader: Reader, done: &Done) -> Read {
    let text = done.text();
    let mut read = match reader {
        Reader::Status => Read { counts: Counts::of(done.ok()), ..Read::default() },
        Reader::Cargo => cargo(&text),
        Reader::Pytest => pytest(&done.stdout),
        Reader::Tap => tap(&done.stdout),
        Reader::Swift => swift(&text),
        Reader::Own => own(&done.stdout),
    };
    // A crash, a timeout, a compile error, a runner that found nothing: none of them may look like success.
    if !done.ok() && read.counts.failed == 0 {
        read.counts.failed += 1;
    } else if done.ok() && read.counts.is_empty() {
        read.counts.failed += 1;
        read.failures.push("no test ran".to_owned());
    }
    if !done.ok() && read.failures.is_empty() {
        read.failures.push(done.why());
    }
    read
}

/// The number before a word: `12 passed`.
fn before(text: &str, word: &str) -> usize {
    let parts: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|p| !p.is_empty()).collect();
    let pair = parts.windows(2).find(|w| w[1] == word);
    pair.and_then(|w| w[0].parse().ok()).unwrap_or(0)
}

fn cargo(text: &str) -> Read {
    let mut read = Read::default();
    for line in text.lines().map(str::trim) {
        if let Some(sums) = line.strip_prefix("test result: ") {
            read.counts += Counts::new(before(sums, "passed"), before(sums, "failed"), before(sums, "ignored"));
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some((name, why)) = test.split_once(" ... ignored") {
                read.skips.push(format!("{name}: {}", reason(why.trim_start_matches(", "))));
            } else if let Some(name) = test.strip_suffix(" ... FAILED") {
                read.failures.push(name.to_owned());
            }
        }
    }
    read
}

fn reason(why: &str) -> &str {
    if why.trim().is_empty() { "no reason given" } else { why.trim() }
}

fn pytest(text: &str) -> Read {
    let mut read = Read::default();
    for line in text.lines() {
        let word = |w: &str| line.strip_prefix(w).map(|rest| rest.trim().to_owned());
        if let Some(rest) = word("FAILED ").or_else(|| word("ERROR ")) {
            read.failures.push(rest);
        } else if let Some(rest) = word("SKIPPED ").or_else(|| word("XFAIL ")) {
            read.skips.push(rest);
        }
    }
    let sums = |l: &&str| l.contains(" in ") && ["passed", "failed", "error", "skipped"].iter().any(|w| l.contains(w));
    if let Some(line) = text.lines().rev().find(sums) {
        let failed = before(line, "failed") + before(line, "error") + before(line, "errors") + before(line, "xpassed");
        let skipped = before(line, "skipped") + before(line, "xfailed");
        read.counts = Counts::new(before(line, "passed"), failed, skipped);
    }
    read
}

fn tap(text: &str) -> Read {
    let mut read = Read::default();
    let sum = |name: &str| {
        let line = text.lines().rev().find_map(|l| l.strip_prefix("# ")?.strip_prefix(name)?.trim().parse().ok());
        line.unwrap_or(0)
    };
    read.counts = Counts::new(sum("pass"), sum("fail") + sum("cancelled"), sum("skipped") + sum("todo"));
    for line in text.lines().map(str::trim) {
        if let Some((name, why)) = line.split_once(" # SKIP").or_else(|| line.split_once(concat!(" # TO", "DO"))) {
            read.skips.push(format!("{}: {}", title(name), reason(why)));
        } else if line.starts_with("not ok ") {
            read.failures.push(title(line).to_owned());
        }
    }
    read
}

/// `ok 3 - adds numbers` without the number.
fn title(line: &str) -> &str {
    line.split_once(" - ").map_or(line, |(_, name)| name)
}

fn swift(text: &str) -> Read {
    let mut read = Read::default();
    let mut xctest = Counts::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after_mark = line.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        if let Some(sums) = after_mark.strip_prefix("Test run with ") {
            // Swift Testing names no sum of failed tests: they are counted by their own lines.
            let all = before(sums, "tests") + before(sums, "test");
            read.counts.passed = all;
        } else if after_mark.starts_with("Test ") && line.contains(" failed after ") {
            read.counts.failed += 1;
            read.failures.push(after_mark.split(" failed after ").next().unwrap_or_default().to_owned());
        } else if after_mark.starts_with("Test ") && line.contains(" skipped") {
            read.counts.skipped += 1;
            let (name, why) = after_mark.split_once(" skipped").unwrap_or((after_mark, ""));
            read.skips.push(format!("{name}: {}", reason(why.trim_start_matches([':', '.']))));
        } else if words.first() == Some(&"Executed") {
            // One per suite and one for all of them; the last is the whole:
            // `Executed 5 tests, with 1 test skipped and 2 failures (0 unexpected) in …`
            let number =
                |text: &str| -> usize { text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0) };
            let skips = line.split_once(" skipped ").and_then(|(l, _)| l.split_once("with "));
            let skipped = skips.map_or(0, |(_, rest)| number(rest));
            let failed = before(line, "failures") + before(line, "failure");
            let all = words.get(1).map_or(0, |n| number(n));
            xctest = Counts::new(all.saturating_sub(failed + skipped), failed, skipped);
        } else if line.starts_with("Test Case ") && line.contains(" failed (") {
            read.failures.push(line.to_owned());
        }
    }
    read.counts.passed = read.counts.passed.saturating_sub(read.counts.failed + read.counts.skipped);
    read.counts += xctest;
    read
}

fn own(text: &str) -> Read {
    let mut read = Read::default();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("not ok ") {
            read.failures.push(name.to_owned());
        } else if let Some(why) = line.strip_prefix("skip ") {
            read.skips.push(why.to_owned());
        }
    }
    if let Some(line) = text.lines().rev().find(|l| l.contains(" passed, ") && l.contains(" failed")) {
        read.counts = Counts::new(before(line, "passed"), before(line, "failed"), before(line, "skipped"));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(stdout: &str, code: i32) -> Done {
        Done { code: Some(code), stdout: stdout.to_owned(), ..Done::default() }
    }

    #[test]
    fn cargo_prints_a_result_per_program() {
        let text = "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored, needs a network\ntest e ... ignored\n\
                    test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.10s\n";
        let read = read(Reader::Cargo, &done(text, 101));
        assert_eq!(read.counts, Counts::new(13, 1, 2));
        assert_eq!(read.failures, ["c"]);
        assert_eq!(read.skips, ["d: needs a network", "e: no reason given"]);
    }

    #[test]
    fn a_build_that_fails_is_a_failure() {
        let broken = Done { code: Some(101), stderr: "error[E0308]: mismatched types\n".into(), ..Done::default() };
        let read = read(Reader::Cargo, &broken);
        assert_eq!(read.counts, Counts::new(0, 1, 0));
        assert_eq!(read.failures, ["exit status 101: error[E0308]: mismatched types"]);
    }

    #[test]
    fn a_runner_that_ran_nothing_is_a_failure() {
        for reader in [Reader::Cargo, Reader::Pytest, Reader::Tap, Reader::Swift, Reader::Own] {
            assert_eq!(read(reader, &done("", 0)).counts, Counts::new(0, 1, 0), "{reader:?}");
        }
        assert_eq!(read(Reader::Status, &done("", 0)).counts, Counts::of(true));
        assert_eq!(read(Reader::Own, &done("0 passed, 0 failed, 7 skipped\n", 0)).counts, Counts::new(0, 1, 7));
    }

    #[test]
    fn a_run_that_was_cut_off_fails_whatever_it_had_counted() {
        let cut = Done { timed_out: true, stdout: "3 passed, 0 failed, 0 skipped\n".into(), ..Done::default() };
        assert_eq!(read(Reader::Own, &cut).counts, Counts::new(3, 1, 0));
    }

    #[test]
    fn pytest_sums_up_in_its_last_line() {
        let text = "....s.F\nSKIPPED [1] tests/test_a.py:3: no uvloop\nFAILED tests/test_a.py::test_x - assert 1 == 2\n\
                    ERROR tests/test_b.py\n1 failed, 5 passed, 1 skipped, 2 warnings, 1 error in 0.52s\n";
        let read = read(Reader::Pytest, &done(text, 1));
        assert_eq!(read.counts, Counts::new(5, 2, 1));
        assert_eq!(read.failures.len(), 2);
        assert_eq!(read.skips, ["[1] tests/test_a.py:3: no uvloop"]);
        assert_eq!(super::read(Reader::Pytest, &done("12 passed in 1.2s\n", 0)).counts, Counts::new(12, 0, 0));
    }

    #[test]
    fn node_speaks_tap() {
        let text = "TAP version 13\n# Subtest: adds\nok 1 - adds\nnot ok 2 - subtracts\nok 3 - later # SKIP no socket\n\
                    1..3\n# tests 3\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n# duration_ms 9\n";
        let read = read(Reader::Tap, &done(text, 1));
        assert_eq!(read.counts, Counts::new(1, 1, 1));
        assert_eq!(read.failures, ["subtracts"]);
        assert_eq!(read.skips, ["later: no socket"]);
    }

    #[test]
    fn swift_has_two_libraries() {
        let good = "Test Suite 'All tests' passed at 2026-11-21.\n\t Executed 1 test, with 0 failures (0 unexpected) in 0.0 (0.0) seconds\n\
                    \u{25c7} Test run started.\n\u{2714} Test adds() passed after 0.001 seconds.\n\
                    \u{2714} Test run with 13 tests passed after 0.5 seconds.\n";
        assert_eq!(read(Reader::Swift, &done(good, 0)).counts, Counts::new(14, 0, 0));
        let bad = "\u{2718} Test adds() recorded an issue at a.swift:3:5\n\u{2718} Test adds() failed after 0.1 seconds with 1 issue.\n\
                   \u{279c} Test later() skipped: \"no socket\"\n\u{2718} Test run with 13 tests failed after 0.5 seconds with 1 issue.\n\
                   \t Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds\n";
        let read = read(Reader::Swift, &done(bad, 1));
        assert_eq!(read.counts, Counts::new(11, 1, 1));
        assert_eq!(read.failures, ["Test adds()"]);
        assert_eq!(read.skips, ["Test later(): \"no socket\""]);
    }

    #[test]
    fn xctest_skips_come_before_its_failures() {
        let text = "\t Executed 5 tests, with 1 test skipped and 2 failures (0 unexpected) in 0.1 (0.1) seconds\n";
        assert_eq!(read(Reader::Swift, &done(text, 1)).counts, Counts::new(2, 2, 1));
    }

    #[test]
    fn our_own_programs_end_with_their_counts() {
        let text = "not ok a - b\nskip c - d\n7 passed, 1 failed, 1 skipped\n";
        let read = read(Reader::Own, &done(text, 1));
        assert_eq!(
            (read.counts, read.failures, read.skips),
            (Counts::new(7, 1, 1), vec!["a - b".into()], vec!["c - d".into()])
        );
    }
}
