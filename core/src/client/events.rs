//! Events of a client: everything that it hears of its server besides answers.

use std::sync::Arc;

use crate::error::Error;
use crate::jsonrpc::RawJson;
use crate::protocol::Opening;
use crate::report;

/// Receiver of everything that a client hears besides its answers. Called from any thread; must not block.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::prelude::*;
/// use tricorn::Events;
///
/// struct Log;
///
/// impl Events for Log {
///     fn notification(&self, method: &str, params: Option<&RawJson>) {
///         println!("{method} {}", params.map_or("", RawJson::get));
///     }
///     fn closed(&self, reason: &Error) {
///         println!("closed: {reason}");
///     }
/// }
/// # let server = Server::new("demo");
/// let handlers = Handlers::new().events(Log);
/// let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # Ok(())
/// # }
/// ```
pub trait Events: Send + Sync + 'static {
    /// The server sent a notification.
    fn notification(&self, _method: &str, _params: Option<&RawJson>) {}
    /// The same, where it is known what in this process caused it.
    #[doc(hidden)]
    fn notification_within(&self, _origin: u64, method: &str, params: Option<&RawJson>) {
        self.notification(method, params);
    }
    /// A child process wrote a line to its standard error (`Stderr::Event`).
    fn stderr(&self, _line: &str) {}
    /// Something about the server is wrong that is no reason to fail, such as a tool that cannot be offered. Written
    /// to standard error unless this says otherwise.
    fn warning(&self, message: &str) {
        report::say(message);
    }
    /// The server was met anew, in a program that was started again or a session that was begun anew: what it says of
    /// itself now.
    fn reopened(&self, _opening: &Opening) {}
    /// The connection ended.
    fn closed(&self, _reason: &Error) {}
}

impl<E: Events + ?Sized> Events for Arc<E> {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        (**self).notification(method, params);
    }

    fn notification_within(&self, origin: u64, method: &str, params: Option<&RawJson>) {
        (**self).notification_within(origin, method, params);
    }

    fn stderr(&self, line: &str) {
        (**self).stderr(line);
    }

    fn warning(&self, message: &str) {
        (**self).warning(message);
    }

    fn reopened(&self, opening: &Opening) {
        (**self).reopened(opening);
    }

    fn closed(&self, reason: &Error) {
        (**self).closed(reason);
    }
}

/// No interest in events; warnings go to standard error.
#[derive(Debug, Clone, Copy)]
pub struct NoEvents;

impl Events for NoEvents {}
