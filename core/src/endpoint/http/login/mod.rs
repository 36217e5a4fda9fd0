//! The login of a person: a browser is opened, and its answer comes to an address of this machine.

pub(crate) mod browser;
pub(crate) mod callback;
