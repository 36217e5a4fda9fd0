//! Output for people: one progress line on stderr, results on stdout, and the counts that end every task.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Tests counted: what ran well, what did not, what was left out on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn new(passed: usize, failed: usize, skipped: usize) -> Self {
        Self { passed, failed, skipped }
    }

    pub(crate) fn of(ok: bool) -> Self {
        Self::new(usize::from(ok), usize::from(!ok), 0)
    }

    /// Nothing ran at all: a runner that finds no test proves nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.passed + self.failed == 0
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

struct Console {
    start: Instant,
    tty: bool,
    width: usize,
    step: String,
}

fn console() -> MutexGuard<'static, Console> {
    static CONSOLE: OnceLock<Mutex<Console>> = OnceLock::new();
    CONSOLE
        .get_or_init(|| {
            let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(110);
            let tty = std::io::stderr().is_terminal();
            Mutex::new(Console { start: Instant::now(), tty, width, step: String::new() })
        })
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

impl Console {
    fn draw(&self, detail: &str) {
        let text = format!("[{:4} s] {}  {}", self.start.elapsed().as_secs(), self.step, detail.trim());
        let text: String = text.chars().filter(|c| !c.is_control()).take(self.width.saturating_sub(1)).collect();
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[2K{}", text.trim_end());
        let _ = err.flush();
    }

    fn clear(&self) {
        if self.tty {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K");
            let _ = err.flush();
        }
    }
}

/// Says what is being built or run now. On a terminal the line is overwritten by the next one.
pub(crate) fn step(what: impl Into<String>) {
    let mut c = console();
    c.step = what.into();
    if c.tty {
        c.draw("");
    } else {
        eprintln!("[{:4} s] {}", c.start.elapsed().as_secs(), c.step);
    }
}

/// The newest line of what the running step prints; seen on a terminal only.
pub(crate) fn detail(line: &str) {
    let c = console();
    if c.tty && !line.trim().is_empty() {
        c.draw(line);
    }
}

/// One line of result.
pub(crate) fn line(text: impl AsRef<str>) {
    let c = console();
    c.clear();
    println!("{}", text.as_ref());
}

/// One line of warning or reason.
pub(crate) fn note(text: impl AsRef<str>) {
    let c = console();
    c.clear();
    eprintln!("{}", text.as_ref());
}

/// Removes the progress line.
pub(crate) fn clear() {
    console().clear();
}

/// A table of cells that may hold several lines each.
pub(crate) struct Table {
    rows: Vec<Vec<Vec<String>>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|h| vec![(*h).to_owned()]).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<Vec<String>>) {
        self.rows.push(cells);
    }

    /// A row of cells of one line each.
    pub(crate) fn flat(&mut self, cells: &[String]) {
        self.row(cells.iter().map(|c| vec![c.clone()]).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(c));
            cells.flatten().map(|l| l.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let tall = self.rows.iter().skip(1).any(|r| r.iter().any(|c| c.len() > 1));
        let rule = |f: &mut fmt::Formatter<'_>| {
            let dashes: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
            writeln!(f, "|{}|", dashes.join("|"))
        };
        for (i, row) in self.rows.iter().enumerate() {
            if i == 1 || (i > 1 && tall) {
                rule(f)?;
            }
            let height = row.iter().map(Vec::len).max().unwrap_or(0);
            for h in 0..height {
                f.write_str("|")?;
                for (c, w) in widths.iter().enumerate() {
                    let text = row.get(c).and_then(|cell| cell.get(h)).map_or("", String::as_str);
                    write!(f, " {text:<w$} |")?;
                }
                f.write_str("\n")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let mut all = Counts::of(true);
        all += Counts::of(false);
        all += Counts::new(3, 0, 2);
        assert_eq!(all.to_string(), "4 passed, 1 failed, 2 skipped");
        assert!(Counts::new(0, 0, 7).is_empty());
    }

    #[test]
    fn a_table_of_tall_cells_keeps_its_columns() {
        let mut table = Table::new(&["server", "rust"]);
        table.row(vec![vec!["rust".into()], vec!["a".into(), "bbb".into()]]);
        table.row(vec![vec!["node".into()], vec!["é".into()]]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "| rust   | a    |");
        assert_eq!(lines[3], "|        | bbb  |");
        assert_eq!(lines[5], "| node   | é    |");
    }
}
