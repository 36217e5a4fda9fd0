//! A look at everything that passes between a client and its server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// Sees what passes between a client and its server, in the order in which it passes: for tools that show or keep it. Called
/// from any thread, some of which have locks: it must not block, and not ask the client for anything.
pub trait Tap: Send + Sync + 'static {
    /// A message as it was sent, or came: the bytes of a line, a body, the data of an event. What comes may be no message.
    /// `on` is the stream: `stdio`, `memory`, or the kind and number of an HTTP exchange, `post:3`, `get:4`.
    fn frame(&self, by_client: bool, on: &str, frame: &Bytes);
    /// Sees in its place what passes between a group of clients and its server of this name. `None`: it sees that as well.
    fn of_server(&self, _name: &str) -> Option<Arc<dyn Tap>> {
        None
    }
    /// An HTTP exchange was answered with this status.
    fn status(&self, _on: &str, _status: u16) {}
    /// An access token that the next exchanges are sent with: what is shown or kept should be without it.
    fn token(&self, _token: &str) {}
}

/// The option of it.
#[derive(Clone, Default)]
pub(crate) struct Tapped(pub(super) Option<Arc<dyn Tap>>);

impl fmt::Debug for Tapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tap(..)" } else { "Tap()" })
    }
}

/// The tap of one connection.
pub(crate) struct Tapping {
    pub(super) tap: Arc<dyn Tap>,
    pub(super) on: Option<&'static str>,
    /// Exchanges so far.
    pub(super) last: AtomicU64,
}

impl Tapping {
    /// A message passes on the one stream, if there is one.
    pub(crate) fn passes(&self, by_client: bool, frame: &Bytes) {
        if let Some(on) = self.on {
            self.tap.frame(by_client, on, frame);
        }
    }

    /// The name of another exchange.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has exchanges"))]
    pub(crate) fn exchange(&self, kind: &str) -> Arc<str> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}:{number}", kind.to_ascii_lowercase()).into()
    }

    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has exchanges"))]
    pub(crate) fn passes_on(&self, by_client: bool, on: &str, frame: &Bytes) {
        self.tap.frame(by_client, on, frame);
    }

    /// The next exchange is sent with this access token.
    #[cfg_attr(not(feature = "auth"), expect(dead_code, reason = "only logins have tokens"))]
    pub(crate) fn sends_token(&self, token: &str) {
        self.tap.token(token);
    }

    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has exchanges"))]
    pub(crate) fn answered(&self, on: &str, status: u16) {
        self.tap.status(on, status);
    }
}
