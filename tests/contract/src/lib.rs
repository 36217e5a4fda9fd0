//! The contract suite's machinery. It knows the wire and no Tricorn code, so that what it
//! proves about our servers it could prove about anybody's.
//!
//! Reading order: [`script`] (the transcript format) · [`pattern`] (what may vary) ·
//! [`wire`] (bytes to messages, stdio and HTTP) · [`replay`] (a script against a server) ·
//! [`peer`] (a script against a client) · [`proxy`] (connections that break) · [`bad`], [`launchers`], [`leaks`], [`cases`],
//! [`cassettes`], [`attacks`], [`logins`], [`guides`], [`stateless`], [`together`], [`coverage`] (the other subcommands).
#![allow(clippy::print_stdout, reason = "a command-line tool: its report is its standard output")]

pub mod attacks;
pub mod bad;
pub mod cases;
pub mod cassettes;
pub mod coverage;
pub mod guides;
pub mod launch;
pub mod launchers;
pub mod leaks;
pub mod logins;
pub mod options;
pub mod pattern;
pub mod peer;
pub mod proc;
pub mod proxy;
pub mod replay;
pub mod report;
pub mod script;
pub mod stateless;
pub mod together;
pub mod wire;

/// Description of a fault, in words for the report.
pub type Failure = String;

/// A step's outcome.
pub type Outcome<T = ()> = Result<T, Failure>;
