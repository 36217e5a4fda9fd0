//! Streams that belong to the whole process: one to write to without ever waiting, one to read from until nobody wants
//! that any more, and what stands at the places of standard input, output and error.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;
