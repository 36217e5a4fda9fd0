//! Cassettes: recorded connections, as files that are read, played again and compared.
//!
//! A cassette is JSON Lines. The first line describes it, each other one is a message or an event:
//!
//! ```json
//! {"cassette":1,"by":"tricorn 0.1.0","at":"2026-11-28T21:08:23.634Z","transport":"stdio","target":"server.py"}
//! {"t":5.951,"from":"client","on":"stdio","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}
//! {"t":6.204,"from":"server","on":"stdio","msg":{"jsonrpc":"2.0","id":1,"result":{}}}
//! {"t":7.1,"event":"stderr","text":"bye"}
//! ```
//!
//! **Invariant**: a cassette is data. Nothing in it is run, opened or connected to.

mod difference;
mod file;
mod likeness;
mod player;
mod recorder;
mod redaction;
mod tracks;

pub use difference::{Difference, differences};
pub use file::{Cassette, Entry, Question, What};
pub use player::Player;
pub use recorder::{Recorder, event_line, message_line};
pub use redaction::Redaction;

/// The format's number, which the first line of a cassette has as its member `cassette`.
pub const FORMAT: u64 = 1;
/// The longest cassette that is read or written, in bytes.
pub const MAX_BYTES: usize = 256 << 20;
/// The longest line of one, in bytes.
pub const MAX_LINE: usize = 64 << 20;
/// The most lines of one.
pub const MAX_LINES: usize = 100_000;
