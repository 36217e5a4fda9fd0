//! Report of the tests that passed, in the form every subcommand shares.

use crate::Outcome;
use std::process::ExitCode;

/// Counts, and the lines printed on the way.
#[derive(Debug, Default)]
pub struct Report {
    verbose: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    /// A report that prints passes only when `verbose`.
    pub fn new(verbose: bool) -> Self {
        Self { verbose, ..Self::default() }
    }

    /// One outcome.
    pub fn record(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Ok(()) => self.pass(name),
            Err(reason) => self.fail(name, &reason),
        }
    }

    /// It worked.
    pub fn pass(&mut self, name: &str) {
        self.passed += 1;
        if self.verbose {
            println!("ok {name}");
        }
    }

    /// It did not.
    pub fn fail(&mut self, name: &str, reason: &str) {
        self.failed += 1;
        println!("not ok {name} - {}", reason.replace('\n', "\n    "));
    }

    /// It was not tried.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        println!("skip {name} - {reason}");
    }

    /// Print the last line.
    pub fn finish(&self) -> ExitCode {
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        if self.failed == 0 && self.passed + self.skipped > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
