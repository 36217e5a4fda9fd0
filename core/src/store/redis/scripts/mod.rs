//! Scripts that a store runs, each as one step. `documents/model.rs` does the same for stores that run none.

pub(super) mod bus;
pub(super) mod keys;
pub(super) mod limits;
pub(super) mod nodes;
pub(super) mod sessions;
pub(super) mod tasks;
