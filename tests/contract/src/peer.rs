//! Stub.
use crate::Outcome;
/// Stub.
pub fn main(_: impl Iterator<Item = String>) -> Outcome<std::process::ExitCode> {
    Err("stub".into())
}
