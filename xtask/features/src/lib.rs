//! Nothing: the dependencies are what counts.
