use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::envelope::{self, Seal, Unread};
use super::{MAX_BYTES, MemoryStore, Reservation, TokenKey, TokenStore, of_login, too_long};
use crate::auth::secret::Secret;
use crate::call::BoxFuture;
use crate::error::{Error, ErrorKind, Result, shown_url};
use crate::store::StoreOptions;
use crate::store::redis::texts::TURN_KEPT;
use crate::store::redis::{Redis, Trouble};

/// Part of the keys that is the server's name elsewhere: all texts of clients are in one slot of a cluster.
const NAME: &str = "clients";
/// Time between two attempts to take a turn, at first and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// Time for which a change is tried again while the store does not answer. Turns last longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps logins in a Redis or Valkey, which clients of other processes and machines share. They are sealed with the
/// `secret` of the options, which is the same for all.
///
/// A reservation is renewed every 8 s. A process that was killed, or that stood still for 30 s, has lost it, and saves
/// nothing after that. A login that nobody uses goes after 180 days.
#[derive(Clone)]
pub struct RedisStore {
    store: Arc<Redis>,
    seal: Seal,
    /// Part of all names: those who have another secret know nothing of each other.
    salt: Arc<[u8]>,
    /// Turns in this process.
    turns: MemoryStore,
}

impl RedisStore {
    /// The store with these options, of which `secret` is one.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) that names the member that is wrong or missing.
    pub fn new(options: impl Into<StoreOptions>) -> Result<Self> {
        const FROM: &str = "option \"auth\": \"store\"";
        let options = options.into();
        options.check_of_client(FROM, "TokenStore")?;
        let Some(secret) = &options.secret else {
            let why =
                "missing: logins in a shared store are sealed with a secret of at least 32 bytes, the same for all";
            return Err(Error::misuse(format!("{FROM}: \"secret\": {why}")));
        };
        let seal =
            Seal::new(Sha256::new().chain_update("tricorn login secret\0").chain_update(secret).finalize().into());
        let salt = Sha256::new().chain_update("tricorn login name\0").chain_update(secret).finalize();
        let salt = Arc::from(&salt[..]);
        Ok(Self { store: Arc::new(Redis::new(&options, NAME)?), seal, salt, turns: MemoryStore::new() })
    }

    /// The name of a server, an issuer or both, in the store.
    fn named(&self, text: &str) -> String {
        use base64::Engine;
        let hash = Sha256::new().chain_update(&self.salt).chain_update(text).finalize();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&hash[..24])
    }

    fn failed(&self, trouble: &Trouble) -> Error {
        Error::new(ErrorKind::Auth, self.store.said(trouble))
    }

    /// Reads a login. One that is damaged is none, and is said to be.
    fn read(&self, text: &[u8], server: &str) -> Result<Option<(TokenKey, Secret)>> {
        match envelope::read(text, Some(&self.seal)) {
            Ok(read) if read.0.server == server => Ok(Some(read)),
            Err(Unread::Newer) => {
                let server = shown_url(server);
                let message = format!("a newer version of this library has written the login at {server} in the store");
                Err(Error::new(ErrorKind::Auth, message))
            }
            _ => {
                let server = shown_url(server);
                crate::report::say(format_args!("the login at {server} in the store is damaged, and not used"));
                Ok(None)
            }
        }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisStore")
    }
}

impl TokenStore for RedisStore {
    fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
        let (this, key) = (self.clone(), key.clone());
        Box::pin(async move {
            let found = this.store.load_login(&this.named(&key.server), &this.named(&key.issuer)).await;
            let Some(text) = found.map_err(|trouble| this.failed(&trouble))? else { return Ok(None) };
            let read = this.read(&text, &key.server)?;
            Ok(read.filter(|(found, _)| *found == key).map(|(_, login)| login))
        })
    }

    fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>> {
        let (this, server) = (self.clone(), server.to_owned());
        Box::pin(async move {
            let found = this.store.find_logins(&this.named(&server)).await.map_err(|trouble| this.failed(&trouble))?;
            // One that cannot be read does not hide the others.
            let mut found: Vec<_> = found.iter().filter_map(|text| this.read(text, &server).ok().flatten()).collect();
            found.sort_by(|(one, _), (other, _)| one.issuer.cmp(&other.issuer));
            Ok(found)
        })
    }

    fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>> {
        let (this, key) = (self.clone(), key.clone());
        Box::pin(async move {
            let end = Instant::now() + wait;
            let own = this.turns.reserve(&key, wait).await?;
            let login = this.named(&format!("{}\0{}", key.issuer, key.server));
            let turn = Turn::new(this.store.clone(), login)?;
            let mut pause = LOOKS.0;
            while !this.store.take_turn(&turn.login, &turn.owner).await.map_err(|trouble| this.failed(&trouble))? {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let server = shown_url(&key.server);
                    let message = format!("the login at {server} is being changed elsewhere for more than {wait:?}");
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(LOOKS.1);
            }
            Ok(Box::new(Reserved { this, key, turn: turn.renewed(), _own: own }) as Box<dyn Reservation>)
        })
    }

    fn reserve_login(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Option<Box<dyn Reservation>>>> {
        let reserved = self.reserve(&of_login(key), wait);
        Box::pin(async move { reserved.await.map(Some) })
    }
}

/// The turn to change one login, among all processes; dropped, it is somebody else's.
struct Turn {
    store: Arc<Redis>,
    login: String,
    owner: String,
    runtime: tokio::runtime::Handle,
    renewing: Option<tokio::task::JoinHandle<()>>,
}

impl Turn {
    fn new(store: Arc<Redis>, login: String) -> Result<Self> {
        let (owner, runtime) = (crate::random::new_id()?.to_string(), tokio::runtime::Handle::current());
        Ok(Self { store, login, owner, runtime, renewing: None })
    }

    /// Keeps it until it is dropped.
    fn renewed(mut self) -> Self {
        let (store, login, owner) = (self.store.clone(), self.login.clone(), self.owner.clone());
        self.renewing = Some(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(TURN_KEPT).await;
                // One that was lost is somebody else's, or was.
                let _ = store.keep_turn(&login, &owner).await;
            }
        }));
        self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
        let (store, login, owner) = (self.store.clone(), self.login.clone(), self.owner.clone());
        self.runtime.spawn(async move {
            // Otherwise it ends by itself.
            let _ = store.end_turn(&login, &owner).await;
        });
    }
}

struct Reserved {
    this: RedisStore,
    key: TokenKey,
    turn: Turn,
    _own: Box<dyn Reservation>,
}

impl Reserved {
    fn lost(&self) -> Error {
        let server = shown_url(&self.key.server);
        let why = "another client may have taken over, because this one was not heard of for 30 s";
        Error::new(ErrorKind::Auth, format!("the login at {server} is not changed: {why}"))
    }

    /// A new refresh token is lost with a change that the store does not take: it is asked again for a while.
    fn change(&self, text: Option<String>) -> BoxFuture<Result<()>> {
        let this = self.this.clone();
        let (server, issuer) = (this.named(&self.key.server), this.named(&self.key.issuer));
        let (login, owner, lost) = (self.turn.login.clone(), self.turn.owner.clone(), self.lost());
        Box::pin(async move {
            let end = Instant::now() + PATIENCE;
            loop {
                match this.store.change_login((&server, &issuer), (&login, &owner), text.as_deref()).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => return Err(lost),
                    Err(trouble) if Instant::now() > end => return Err(this.failed(&trouble)),
                    Err(_) => tokio::time::sleep(this.store.pause().unwrap_or(LOOKS.1).max(LOOKS.1)).await,
                }
            }
        })
    }
}

impl Reservation for Reserved {
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>>> {
        self.this.load(&self.key)
    }

    fn save(&mut self, login: &Secret) -> BoxFuture<Result<()>> {
        if login.expose().len() > MAX_BYTES {
            return Box::pin(std::future::ready(Err(too_long(&self.key))));
        }
        match envelope::write(&self.key, login, Some(&self.this.seal)) {
            Ok(Some(text)) => self.change(Some(text)),
            Ok(None) => {
                let error = Error::new(ErrorKind::Auth, "a login cannot be sealed");
                Box::pin(std::future::ready(Err(error)))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// A store without room does not keep the turn either.
    fn make_room(&mut self) -> BoxFuture<Result<()>> {
        let (this, login, owner, lost) =
            (self.this.clone(), self.turn.login.clone(), self.turn.owner.clone(), self.lost());
        Box::pin(async move {
            let kept = this.store.keep_turn(&login, &owner).await.map_err(|trouble| this.failed(&trouble))?;
            if kept { Ok(()) } else { Err(lost) }
        })
    }

    fn remove(&mut self) -> BoxFuture<Result<()>> {
        self.change(None)
    }
}
