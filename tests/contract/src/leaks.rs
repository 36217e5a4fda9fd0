//! Stub.
use crate::{Outcome, options::Options, report::Report};
/// Stub.
pub fn run(_: &Options, _: &mut Report) -> Outcome {
    Err("stub".into())
}
/// Stub.
pub fn victim(_: impl Iterator<Item = String>) -> Outcome<std::process::ExitCode> {
    Err("stub".into())
}
