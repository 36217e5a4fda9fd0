//! Stub.
use crate::{Outcome, options::Options, report::Report};
/// Stub.
pub fn run(_: &Options, _: &mut Report) -> Outcome {
    Err("stub".into())
}
