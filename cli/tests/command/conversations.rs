//! Conversations that take more than one call of the command.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use crate::http::Http;
use crate::place::{command, everything};
use crate::running::Running;

fn made(args: &[&str]) -> Command {
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).args(args).stdin(Stdio::null());
    program
}

fn run(args: &[&str]) -> Output {
    made(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_task_is_started_followed_and_cancelled() {
    let http = Http::start(&[("EVERYTHING_TASKS", "60")]);
    let id = stdout(&["call", &http.url, "slow", "ms=300", "--task"]);
    assert_eq!(stdout(&["tasks", &http.url, &id, "--result"]), "slept 300 ms");
    assert_eq!(stdout(&["tasks", &http.url, &id]), format!("task {id} completed: done"));
    let id = stdout(&["call", &http.url, "slow", "ms=60000", "--task"]);
    run(&["tasks", &http.url, &id, "--cancel"]);
    assert!(stdout(&["tasks", &http.url, &id]).starts_with(&format!("task {id} cancelled")));
    let none = run(&["tasks", &http.url, "nothing"]);
    assert_eq!(none.status.code(), Some(1));
}

/// Listens until one change has come, which `change` causes.
fn heard(url: &str, change: impl FnOnce()) -> String {
    let args = ["listen", url, "--uri", "test://watched-resource", "--count", "1"];
    let mut listening = Running::start(made(&args).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(listening.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("listening to")));
    change();
    let mut text = String::new();
    listening.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(listening.wait().unwrap().success());
    text
}

#[test]
fn changes_are_heard() {
    let http = Http::start(&[]);
    let touch = || drop(stdout(&["call", &http.url, "touch", "uri=test://watched-resource"]));
    assert_eq!(heard(&http.url, touch), "test://watched-resource has changed\n");
}

#[test]
fn changes_are_heard_through_a_bridge() {
    let http = Http::start(&[]);
    let bridge = Http::of(made(&["run", &http.url, "--http", "127.0.0.1:0"]));
    let touch = || drop(stdout(&["call", &bridge.url, "touch", "uri=test://watched-resource"]));
    assert_eq!(heard(&bridge.url, touch), "test://watched-resource has changed\n");
}

#[test]
fn a_program_is_served_over_http() {
    let everything = everything();
    let bridge = Http::of(made(&["run", "--http", "127.0.0.1:0", "--", &everything, "--stdio"]));
    assert_eq!(stdout(&["call", &bridge.url, "add", "a=1", "b=2"]), "3");
    let log = run(&["call", &bridge.url, "test_tool_with_logging"]);
    assert!(String::from_utf8_lossy(&log.stderr).contains("[info] Tool processing data"), "{log:?}");
    let asked = stdout(&["call", &bridge.url, "test_sampling", "prompt=hi", "--sampler", "echo hello"]);
    assert_eq!(asked, "LLM response: hello");
    let failed = run(&["call", &bridge.url, "fail", "kind=protocol"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("error 4242: custom refusal"), "{failed:?}");
}

#[cfg(unix)]
#[test]
fn a_program_behind_a_bridge_ends_with_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let ended = dir.path().join("ended");
    let script = format!("{} --stdio; echo ended >> '{}'", everything(), ended.display());
    let bridge = Http::of(made(&["run", "--http", "127.0.0.1:0", "--", "sh", "-c", &script]));
    let lines = || std::fs::read_to_string(&ended).unwrap_or_default().lines().count();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // The one that was asked what it is has ended before.
    for count in 2..4 {
        assert_eq!(stdout(&["call", &bridge.url, "add", "a=1", "b=2", "--revision", "legacy"]), "3");
        while lines() < count {
            assert!(std::time::Instant::now() < end, "{} have ended, not {count}", lines());
            std::thread::yield_now();
        }
    }
}

#[test]
fn each_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(stdout(&["completions", shell]).contains("complete"), "{shell}");
    }
}
