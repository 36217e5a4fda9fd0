//! Stores for the results of logins: tokens, the registration, the key that tokens are bound to. All of it is one text,
//! whose meaning is the client's business.
//!
//! A login is changed by one at a time, whoever shares the store. A refresh token is used up by being used, so to
//! refresh is to change: **reserve → load → refresh → save**.
//!
//! 1. [`reserve`](TokenStore::reserve) keeps everybody else, in this process and in others, from changing the same login.
//!    It is the operating system's lock: it ends with the process, however that ends.
//! 2. [`load`](Reservation::load) again: whoever had the reservation before may have refreshed already. If the tokens are
//!    others than before, they are used, and nothing is refreshed.
//! 3. The refresh token goes to the authorization server. It stays in the store.
//! 4. [`save`](Reservation::save) puts the answer in its place, before anybody uses the new access token. It is on the
//!    disk when `save` returns.
//! 5. The reservation is dropped.
//!
//! A process that is killed before step 3 has changed nothing. One that is killed between 3 and 4 leaves the old refresh
//! token, and the next one sends that again. Authorization servers that do not rotate take it, as do those that forgive
//! a repetition (for a time, or until the new token is used, because answers get lost in networks, too). With one that
//! neither forgives nor lets a token be used twice that login is over, whatever a client does.

mod envelope;
mod file;
mod keychain;
mod keys;
mod memory;
mod place;
#[cfg(feature = "redis")]
mod redis;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secret::Secret;
use crate::call::BoxFuture;
use crate::error::{Error, ErrorKind, Result, shown_url};

pub use file::FileStore;
pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;

/// Key of a login: tokens of one issuer are never shown to another, nor those for one server to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TokenKey {
    /// The authorization server's issuer identifier, as its metadata spells it.
    pub issuer: String,
    /// The MCP server's URL, as the `resource` of its tokens.
    pub server: String,
}

impl TokenKey {
    /// Both are compared as texts.
    pub fn new(issuer: impl Into<String>, server: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), server: server.into() }
    }
}

/// The most that is kept of one login, in bytes.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// Returns the default store of logins: one for the process.
pub(crate) fn default_store() -> Arc<dyn TokenStore> {
    static PLACE: OnceLock<Arc<dyn TokenStore>> = OnceLock::new();
    let place = PLACE.get_or_init(|| match FileStore::by_default() {
        Ok(store) => Arc::new(store),
        Err(_) => {
            crate::report::say("this user has no home directory: logins are kept in memory, for this process only");
            Arc::new(MemoryStore::new())
        }
    });
    place.clone()
}

pub(crate) fn too_long(key: &TokenKey) -> Error {
    let server = shown_url(&key.server);
    Error::new(ErrorKind::Auth, format!("the login at {server} is longer than the 256 KiB that a token store keeps"))
}

/// Store of logins, each of which is one text. Called from any thread, and never under a lock.
///
/// Errors are of kind [`Auth`](crate::ErrorKind::Auth), and say what to do.
///
/// ```
/// use std::time::Duration;
/// use tricorn::auth::{MemoryStore, Reservation, Secret, TokenKey, TokenStore};
/// use tricorn::client::Auth;
/// use tricorn::{BoxFuture, Result};
///
/// /// A store that says when somebody asks for a login.
/// struct Watched(MemoryStore);
///
/// impl TokenStore for Watched {
///     fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
///         println!("a login at {} for {}", key.issuer, key.server);
///         self.0.load(key)
///     }
///     fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>> {
///         self.0.find(server)
///     }
///     fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>> {
///         self.0.reserve(key, wait)
///     }
/// }
///
/// let auth = Auth::new().store(Watched(MemoryStore::new()));
/// ```
pub trait TokenStore: Send + Sync + 'static {
    /// Loads the login under this key, without waiting for whoever changes it.
    fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>>;

    /// All that is kept for a server, whatever the issuer. A client asks for it before it knows the issuer.
    fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>>;

    /// Keeps everybody else from changing what is kept under this key, until the reservation is dropped. Waits for
    /// whoever has it, at most `wait`.
    fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>>;

    /// Keeps everybody else from asking a user to log in for this key, until the reservation is dropped. It is another than
    /// that of [`reserve`](Self::reserve): people take their time, and what is kept may be changed meanwhile. Waits for
    /// whoever has it, at most `wait`. `None`, the default: this store has no such thing, and each asks for itself.
    fn reserve_login(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Option<Box<dyn Reservation>>>> {
        let _ = (key, wait);
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// The key of the right to ask a user.
fn of_login(key: &TokenKey) -> TokenKey {
    TokenKey::new(format!("{}#login", key.issuer), key.server.clone())
}

/// The right to change what is kept under one key; dropped, it is somebody else's.
pub trait Reservation: Send + Sync {
    /// Loads the login as it is now.
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>>>;

    /// Keeps this in place of what was there, at most 256 KiB. When it returns, no crash undoes it; when it fails, what was there still is.
    fn save(&mut self, login: &Secret) -> BoxFuture<Result<()>>;

    /// Makes sure that there is room for what is going to be kept, before something is given up for it: a refresh token is
    /// spent by being used. Default: nothing to do.
    fn make_room(&mut self) -> BoxFuture<Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Keeps nothing any more.
    fn remove(&mut self) -> BoxFuture<Result<()>>;
}
