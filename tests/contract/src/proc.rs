//! Resources that a process and everything it started hold right now, from `/proc`.

use crate::Outcome;
use std::fmt;
use std::fs;

/// Resident memory, threads and open descriptors of a process group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory in KiB.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub descriptors: u64,
}

impl fmt::Display for Footprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:.1} MiB, {} threads, {} descriptors",
            self.memory as f64 / 1024.0,
            self.threads,
            self.descriptors
        )
    }
}

/// Growth that is noise and no leak: this share of what was there, plus this much.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Per hundred.
    pub percent: u64,
    /// KiB on top: allocators and collectors give pages back when they like.
    pub memory: u64,
    /// Threads on top: a pool's idle worker may come or go.
    pub threads: u64,
    /// Descriptors on top: our own connection, and one in the act of closing.
    pub descriptors: u64,
}

impl Footprint {
    /// Measure the process group that `leader` leads.
    pub fn of_group(leader: u32) -> Outcome<Self> {
        let mut whole = Self::default();
        let mut members = 0;
        for entry in fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            if group(id) != Some(leader) {
                continue;
            }
            // A process may end while it is looked at: then it counts for nothing.
            let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else {
                continue;
            };
            members += 1;
            whole.memory += field(&status, "VmRSS:");
            whole.threads += field(&status, "Threads:");
            whole.descriptors += fs::read_dir(format!("/proc/{id}/fd")).map_or(0, |files| files.count() as u64);
        }
        if members == 0 { Err(format!("process group {leader} is gone")) } else { Ok(whole) }
    }

    /// Describes the growth beyond the tolerance.
    pub fn growth(self, before: Self, tolerance: Tolerance) -> Vec<String> {
        let rows = [
            ("resident memory (KiB)", before.memory, self.memory, tolerance.memory),
            ("threads", before.threads, self.threads, tolerance.threads),
            ("descriptors", before.descriptors, self.descriptors, tolerance.descriptors),
        ];
        rows.into_iter()
            .filter_map(|(what, before, after, slack)| {
                let limit = before + before * tolerance.percent / 100 + slack;
                (after > limit).then(|| format!("{what}: {before} before, {after} after, limit {limit}"))
            })
            .collect()
    }
}

/// Returns true if a process exists (a zombie does not count).
pub fn alive(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

fn group(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_more_than_noise() {
        let before = Footprint { memory: 1000, threads: 4, descriptors: 10 };
        let tolerance = Tolerance { percent: 5, memory: 100, threads: 1, descriptors: 2 };
        assert!(Footprint { memory: 1150, threads: 5, descriptors: 12 }.growth(before, tolerance).is_empty());
        assert_eq!(Footprint { memory: 1151, threads: 6, descriptors: 13 }.growth(before, tolerance).len(), 3);
    }

    #[test]
    fn our_own_process_can_be_seen() {
        assert!(alive(std::process::id()));
        let group = group(std::process::id()).expect("a group");
        assert!(Footprint::of_group(group).is_ok_and(|found| found.memory > 0 && found.descriptors > 0));
    }
}
