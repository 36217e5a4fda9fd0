//! Functions of the program that a login calls.

use std::fmt;
use std::sync::Arc;

use crate::call::BoxFuture;
use crate::error::Result;

/// Purpose of an assertion or a token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// The authorization server's issuer, which is the assertion's audience. Empty where no server is asked.
    pub issuer: String,
    /// The resource that it is to open, as the server names itself.
    pub resource: Option<String>,
}

/// Shows a page to the user. Called with https URLs, and http ones of this machine.
pub trait Browser: Send + Sync + 'static {
    /// Opens the page. The future need not wait for the user.
    ///
    /// # Errors
    /// The reason why it cannot be shown.
    fn open(&self, url: &str) -> BoxFuture<Result<()>>;
}

/// Receiver of the browser that comes back from a login.
pub trait Redirect: Send + Sync + 'static {
    /// Begins to wait, before the browser is opened.
    ///
    /// # Errors
    /// The reason why it cannot wait.
    fn listen(&self) -> BoxFuture<Result<Callback>>;
}

/// Somebody waits for the browser. Dropped, nobody does.
#[non_exhaustive]
pub struct Callback {
    /// The address that the browser is sent back to: https, or http on this machine.
    pub redirect_uri: String,
    /// The query that it comes back with, as it stands in the URL.
    pub query: BoxFuture<Result<String>>,
}

impl Callback {
    /// Waits at this address.
    pub fn new(redirect_uri: impl Into<String>, query: BoxFuture<Result<String>>) -> Self {
        Self { redirect_uri: redirect_uri.into(), query }
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// Gives a text that must not be known to others.
pub(crate) type Source = Arc<dyn Fn(Wanted) -> BoxFuture<Result<String>> + Send + Sync>;
