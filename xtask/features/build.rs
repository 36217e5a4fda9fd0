//! Nothing: without it the build dependencies would not count.
fn main() {}
