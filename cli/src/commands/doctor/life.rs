//! The life of a process: its end, its standard error, and what it leaves behind.

use std::time::{Duration, Instant};

use serde_json::json;

use super::process::{GRACE, Program};
use super::report::Report;
use super::system;
use super::wire::{SOON, Said, Wire};
use crate::output::one_line;

/// Calls that a server has to answer while nobody reads its standard error.
const CALLS: usize = 10;
/// Time in which the share of CPU is measured.
const MEASURED: Duration = Duration::from_secs(1);
const SPINS: f64 = 0.2;
/// Seconds of CPU that tell nothing.
const FEW: f64 = 0.03;
/// The smallest pipe of a system: a server that has written less to its standard error does not wait for a reader.
const PIPE: usize = 4096;
/// Time for what a server has started to end after it.
const LEAVES: Duration = Duration::from_millis(1500);

/// Says why a server has ended before its first answer.
pub(super) async fn early(program: &Program, report: &Report) {
    report.ran(&["no-start", "dies-early"]);
    let status = program.ended(Duration::from_secs(1)).await;
    let name =
        if status.is_some_and(|status| matches!(status.code(), Some(126 | 127))) { "no-start" } else { "dies-early" };
    report.find(name, super::wire::how_ended(program).await);
}

/// Ends the standard input, and sees whether the server ends.
pub(super) async fn end_of_input(mut program: Program, report: &Report) {
    if !program.is_running() {
        return;
    }
    report.ran(&["ignores-eof", "spins-after-eof"]);
    program.close();
    if program.ended(GRACE).await.is_some() {
        return;
    }
    let (began, before, waited) = (Instant::now(), system::cpu(program.pid), system::waited(program.pid, true));
    tokio::time::sleep(MEASURED).await;
    let used = before.zip(system::cpu(program.pid)).map_or(0.0, |(before, after)| after - before);
    let waited = system::waited(program.pid, true).saturating_sub(waited);
    let share = share(used, began.elapsed().saturating_sub(waited).as_secs_f64());
    if share > SPINS {
        report.find("spins-after-eof", format!("{:.0} % of a core in a second after the end of stdin", share * 100.0));
    } else if program.is_running() {
        report.find("ignores-eof", format!("alive {} s after the end of stdin", GRACE.as_secs()));
    }
    program.kill().await;
}

/// Share of CPU, of the seconds in which there was a core to have.
fn share(used: f64, had: f64) -> f64 {
    if used < FEW { 0.0 } else { used / had.max(used) }
}

/// Sends SIGTERM, and sees whether the server ends.
pub(super) async fn signal(mut program: Program, report: &Report) {
    if cfg!(unix) && program.is_running() {
        report.ran(&["ignores-term"]);
        if !program.terminate(GRACE).await {
            report.find("ignores-term", format!("alive {} s after SIGTERM", GRACE.as_secs()));
        }
    }
    program.kill().await;
}

/// Calls while nobody reads the standard error.
pub(super) async fn unread(wire: &mut Wire) {
    if !wire.has("tools") {
        return;
    }
    let report = wire.report.clone();
    report.ran(&["blocks-on-stderr"]);
    for count in 1..=CALLS {
        let id = wire.id();
        let params = json!({"name": "no-such-tool", "arguments": {}});
        if wire.begin(&id, "tools/call", params).await.is_some() {
            return;
        }
        match wire.answer(&id, SOON).await {
            Said::Silent => {
                // It is the standard error only if that was full, the answer comes once it is read, and others come at once
                // then.
                let Some(program) = wire.program() else { return };
                program.drain();
                if matches!(wire.answer(&id, SOON).await, Said::Silent | Said::Ended(_)) {
                    return;
                }
                if wire.program().is_none_or(|program| program.logged() < PIPE) {
                    return;
                }
                let params = json!({"name": "no-such-tool", "arguments": {}});
                let again = wire.request_within("tools/call", params, SOON).await;
                if !matches!(again, Said::Silent | Said::Ended(_)) {
                    report.find("blocks-on-stderr", format!("call {count} got no answer with stderr unread"));
                }
                return;
            }
            Said::Ended(_) => return,
            _ => {}
        }
    }
}

/// Looks for processes that were left behind, and ends them. `known` are children that are none of the server's.
pub(super) async fn left(report: &Report, known: &[u32]) {
    let until = tokio::time::Instant::now() + LEAVES;
    let left = loop {
        let Some(left) = system::left(known) else { return };
        if left.is_empty() || tokio::time::Instant::now() > until {
            break left;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    report.ran(&["orphan"]);
    for process in left {
        report.find("orphan", format!("process {}: {}", process.pid, one_line(&process.line)));
        system::kill(process.pid);
    }
    // Reaps them.
    tokio::time::sleep(Duration::from_millis(20)).await;
    system::left(known);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_hides_no_loop() {
        // A loop that had a tenth of a second, and waited for the rest; others that slept.
        assert!(share(0.1, 0.1) > SPINS);
        assert!(share(1.0, 1.0) > SPINS);
        assert!(share(4.0, 1.0) <= 1.0);
        assert!(share(0.1, 1.0) < SPINS);
        assert!(share(0.01, 0.01) < SPINS);
        assert!(share(0.0, 0.0) < SPINS);
    }
}
