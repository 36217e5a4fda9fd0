//! Logins in files that only their owner reads, shared by all processes that use the directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::envelope::Seal;
use super::keychain::{self, Keychain};
use super::keys::Keys;
use super::place::{Lock, Place};
use super::{Reservation, TokenKey, TokenStore, of_login};
use crate::auth::secret::Secret;
use crate::call::BoxFuture;
use crate::error::{Error, ErrorKind, Result, shown_url};

/// The disk, or a keychain that asks its user, is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pauses between two looks while waiting for a login: at first, and in the end.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Keeps each login in a file of its own, mode 0600. Processes may share the directory: one at a time changes a login,
/// a file is replaced as a whole, and is on the disk when [`save`](Reservation::save) returns. A lock ends with its
/// process. Clones share everything.
///
/// A file that is damaged is put aside under the same name with the end `.bad`; the error names both, and comes once.
///
/// ```
/// use tricorn::auth::FileStore;
/// use tricorn::client::Auth;
/// use tricorn::prelude::*;
///
/// // A service has no user with a home directory, nor a keychain.
/// let auth = Auth::new().store(FileStore::at("/var/lib/notes/logins"));
/// let options = ClientOptions::new().auth(auth);
/// ```
#[derive(Clone)]
pub struct FileStore {
    inner: Arc<Inner>,
}

struct Inner {
    place: Place,
    keys: Option<Box<dyn Keys>>,
    /// `None` when the keychain gave no key.
    seal: OnceLock<Option<Seal>>,
}

impl FileStore {
    /// In the user's own directory: `$XDG_DATA_HOME/tricorn/logins`, which is below `~/.local/share` if not set;
    /// `~/Library/Application Support/tricorn/logins` on macOS, `%LOCALAPPDATA%\tricorn\logins` on Windows.
    ///
    /// # Errors
    /// `Misuse` for a user without a home directory: use [`at`](Self::at).
    pub fn new() -> Result<Self> {
        Ok(Self::at(default_dir()?))
    }

    /// In this directory, which is made when it is needed, mode 0700. One that others can write in is refused then.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self::with(dir.into(), None)
    }

    /// As [`new`](Self::new), but what is secret in the files is sealed with a key from the operating system's
    /// keychain: Keychain Services, Credential Manager, Secret Service. Logins that others have left there unsealed are
    /// read, too. The first login that is kept makes the key, and may ask the user, who has 45 s. Where no keychain
    /// gives a key, files are kept as without it, which is said on standard error.
    ///
    /// It is the default of a client, which says nothing where there is no keychain at all.
    ///
    /// # Errors
    /// As of [`new`](Self::new); `Misuse` in a build for which there is none: on Linux it takes the feature `keychain`, which
    /// is on by default.
    pub fn with_keychain() -> Result<Self> {
        Self::with_keychain_at(default_dir()?)
    }

    /// As [`with_keychain`](Self::with_keychain), in this directory.
    ///
    /// # Errors
    /// `Misuse` in a build that knows no keychain.
    pub fn with_keychain_at(dir: impl Into<PathBuf>) -> Result<Self> {
        if !keychain::KNOWN {
            let why =
                "this build knows no keychain: on Linux it is the crate's feature \"keychain\"; files are \"file\"";
            return Err(Error::misuse(why));
        }
        Ok(Self::with(dir.into(), Some(Box::new(Keychain { is_wanted: true }))))
    }

    /// Sealed where there is a keychain.
    pub(super) fn by_default() -> Result<Self> {
        let keys = keychain::KNOWN.then(|| Box::new(Keychain { is_wanted: false }) as Box<dyn Keys>);
        Ok(Self::with(default_dir()?, keys))
    }

    fn with(dir: PathBuf, keys: Option<Box<dyn Keys>>) -> Self {
        Self { inner: Arc::new(Inner { place: Place::new(dir), keys, seal: OnceLock::new() }) }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.inner.place.dir()
    }

    /// Does work on the disk on a thread where waiting is allowed, and to its end, whoever still waits for that.
    fn run<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> BoxFuture<Result<T>> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let dir = inner.clone();
            let work = tokio::task::spawn_blocking(move || work(&inner));
            let place = || dir.place.dir().display();
            match tokio::time::timeout(PATIENCE, work).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(Error::new(ErrorKind::Auth, format!("the token store in {} broke off", place()))),
                Err(_) => {
                    let message = format!("the token store in {} has not answered for {PATIENCE:?}", place());
                    Err(Error::new(ErrorKind::Auth, message))
                }
            }
        })
    }
}

fn default_dir() -> Result<PathBuf> {
    let data = dirs::data_local_dir();
    data.map(|data| data.join("tricorn").join("logins"))
        .ok_or_else(|| Error::misuse("this user has no home directory: name a directory for the token store"))
}

impl Inner {
    /// Asked for when there is something to seal or to open, and once: a keychain that gave no key is not asked again.
    fn seal(&self) -> Option<&Seal> {
        let keys = self.keys.as_ref()?;
        let seal = self.seal.get_or_init(|| match keys.key(self.place.dir()) {
            Ok(key) => Some(Seal::new(key)),
            Err(why) => {
                let dir = self.place.dir().display();
                if let Some(why) = why {
                    let kept = format_args!("logins are kept in {dir}, which only you can read");
                    crate::report::say(format_args!("no keychain ({why}): {kept}"));
                }
                None
            }
        });
        seal.as_ref()
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.dir()).finish()
    }
}

impl TokenStore for FileStore {
    fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
        let key = key.clone();
        self.run(move |inner| inner.place.load(&key, None, &|| inner.seal()))
    }

    fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>> {
        let server = server.to_owned();
        self.run(move |inner| inner.place.find(&server, &|| inner.seal()))
    }

    fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(async move {
            let begun = tokio::time::Instant::now();
            let mut pause = LOOKS.0;
            loop {
                let wanted = key.clone();
                if let Some(lock) = store.run(move |inner| inner.place.try_lock(&wanted)).await? {
                    return Ok(Box::new(Reserved { store, key, lock: Arc::new(lock) }) as Box<dyn Reservation>);
                }
                let left = wait.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    let server = shown_url(&key.server);
                    let message = format!(
                        "the login at {server} is being changed by somebody else for more than {wait:?} (a lock in {})",
                        store.dir().display()
                    );
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(LOOKS.1);
            }
        })
    }

    fn reserve_login(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Option<Box<dyn Reservation>>>> {
        let reserved = self.reserve(&of_login(key), wait);
        Box::pin(async move { reserved.await.map(Some) })
    }
}

struct Reserved {
    store: FileStore,
    key: TokenKey,
    lock: Arc<Lock>,
}

impl Reservation for Reserved {
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>>> {
        let (key, lock) = (self.key.clone(), self.lock.clone());
        self.store.run(move |inner| inner.place.load(&key, Some(&lock), &|| inner.seal()))
    }

    fn save(&mut self, login: &Secret) -> BoxFuture<Result<()>> {
        let (key, lock, login) = (self.key.clone(), self.lock.clone(), login.clone());
        self.store.run(move |inner| inner.place.save(&key, &lock, &login, &|| inner.seal()))
    }

    fn make_room(&mut self) -> BoxFuture<Result<()>> {
        let lock = self.lock.clone();
        self.store.run(move |inner| inner.place.make_room(&lock))
    }

    fn remove(&mut self) -> BoxFuture<Result<()>> {
        let lock = self.lock.clone();
        self.store.run(move |inner| inner.place.remove(&lock))
    }
}

#[cfg(test)]
mod tests;
