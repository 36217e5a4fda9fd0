//! The command `tricorn`.

pub mod hosts;
