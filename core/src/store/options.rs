use std::fmt;
#[cfg(feature = "redis")]
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

#[cfg(feature = "redis")]
use super::DocumentStore;
#[cfg(feature = "redis")]
use super::redis::Address;
use crate::error::{Error, Result};
use crate::idiom::named;

/// The variable of the environment with the URL of a store, for servers whose options name none.
#[cfg(feature = "runtime")]
pub(crate) const VARIABLE: &str = "TRICORN_STORE";
/// The prefix of all keys, unless another is given.
const PREFIX: &str = "tricorn";
/// The longest prefix, in bytes.
const MAX_PREFIX: usize = 64;
/// The least length of a secret, in bytes.
const MIN_SECRET: usize = 32;

/// A store that several processes share: Redis 6.2 or later, or Valkey. It makes one server of them; clients share answers
/// and logins.
///
/// Nothing of it but the prefix is ever shown.
///
/// ```
/// use tricorn::prelude::*;
/// use tricorn::server::StoreOptions;
///
/// # let secret = "at least thirty-two bytes of randomness";
/// // Each process that says the same is a part of this server.
/// let store = StoreOptions::new("rediss://db.example.com:6379").prefix("shop").secret(secret);
/// Server::new("shop").store(store).tool("buy", "Buy fruit", async || Ok("bought"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    pub(crate) url: String,
    pub(crate) prefix: String,
    pub(crate) secret: Option<String>,
    /// The store of the program, in place of one at a URL.
    #[cfg(feature = "redis")]
    pub(crate) documents: Option<Own>,
}

/// A store of a program: equal to itself.
#[cfg(feature = "redis")]
#[derive(Clone)]
pub(crate) struct Own(pub(crate) Arc<dyn DocumentStore>);

#[cfg(feature = "redis")]
impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(feature = "redis")]
impl Eq for Own {}

impl StoreOptions {
    /// The store at this URL, with every other option at its default.
    ///
    /// The URL is `redis://` or with TLS `rediss://`, then `user:password@host:6379/0`, all but the host optional;
    /// `redis+cluster://host:6379,host:6379` of some nodes of a cluster;
    /// `redis+sentinel://host:26379,host:26379/service/0` of sentinels, whose own user and password are `?sentinel_user=…`
    /// and `&sentinel_password=…`; `rediss+cluster://` and `rediss+sentinel://` with TLS;
    /// `unix:///path?db=0&user=…&pass=…`. Special characters of a password are percent-encoded.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: PREFIX.into(),
            secret: None,
            #[cfg(feature = "redis")]
            documents: None,
        }
    }

    /// A store of the program's own, for a server; clients take a [`CacheStore`](crate::client::CacheStore) and a
    /// [`TokenStore`](crate::auth::TokenStore). The URL is empty.
    #[cfg(feature = "redis")]
    pub fn documents(store: impl DocumentStore) -> Self {
        Self { documents: Some(Own(Arc::new(store))), ..Self::new("") }
    }

    /// First part of every key, of letters, digits and `-_.:`, at most 64 bytes. Default `tricorn`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Secret of at least 32 bytes that seals a server's keys of request states, a client's answers, and logins, which
    /// need one, so that whoever reads the store does not read them. The same in all processes. Default: the others are
    /// not sealed.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// The store that the environment names, if it does.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a value that is no text.
    #[cfg(feature = "runtime")]
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        match std::env::var(VARIABLE) {
            Ok(url) if !url.is_empty() => Ok(Some(Self::new(url))),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(Error::misuse(format!("environment variable {VARIABLE}: expected a URL, got what is no text")))
            }
        }
    }

    /// Checks them. `from` says where they come from.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) that names the member that is wrong, and nothing of the URL or the secret.
    pub(crate) fn check(&self, from: &str) -> Result<()> {
        let wrong = |why: String| Err(Error::misuse(format!("{from}: {why}")));
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if self.prefix.is_empty() || self.prefix.len() > MAX_PREFIX || !self.prefix.bytes().all(allowed) {
            return wrong(format!("\"prefix\": expected 1 to {MAX_PREFIX} letters, digits or -_.:"));
        }
        if self.secret.as_ref().is_some_and(|secret| secret.len() < MIN_SECRET) {
            return wrong(format!("\"secret\": expected at least {MIN_SECRET} bytes"));
        }
        #[cfg(feature = "redis")]
        return self.address().map(drop).or_else(|why| wrong(format!("\"url\": {why}")));
        #[cfg(not(feature = "redis"))]
        wrong("this build knows no stores: enable the feature \"redis\" of the crate tricorn".into())
    }

    /// The place of the store.
    ///
    /// # Errors
    /// The reason, which shows nothing of the URL but its scheme.
    #[cfg(feature = "redis")]
    pub(crate) fn address(&self) -> std::result::Result<Address, String> {
        self.documents.as_ref().map_or_else(|| Address::parse(&self.url), |own| Ok(Address::own(own.0.clone())))
    }

    /// Checks those of a client.
    ///
    /// # Errors
    /// As [`check`](Self::check); for a store of a server.
    #[cfg(feature = "redis")]
    pub(crate) fn check_of_client(&self, from: &str, wanted: &str) -> Result<()> {
        if self.documents.is_some() {
            return Err(Error::misuse(format!("{from}: a DocumentStore is for a server: give a {wanted}")));
        }
        self.check(from)
    }

    /// Returns the words for where they come from, for messages.
    pub(crate) fn option() -> String {
        format!("server option {:?}", named("store"))
    }
}

impl From<&str> for StoreOptions {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<String> for StoreOptions {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for StoreOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            url: String,
            #[serde(default)]
            prefix: Option<String>,
            #[serde(default)]
            secret: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a URL such as redis://host:6379, or an object of \"url\", \"prefix\" and \"secret\" \
                         (given otherwise)"
        )]
        enum Given {
            Url(String),
            Members(Members),
        }
        Ok(match Given::deserialize(deserializer)? {
            Given::Url(url) => Self::new(url),
            Given::Members(Members { url, prefix, secret }) => {
                Self { prefix: prefix.unwrap_or_else(|| PREFIX.into()), secret, ..Self::new(url) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_or_an_object_is_read_and_never_shown() {
        let of = |text: &str| serde_json::from_str::<StoreOptions>(text);
        let url = of("\"redis://ann:hush@h/1\"").expect("a URL");
        assert_eq!((&*url.url, &*url.prefix, &url.secret), ("redis://ann:hush@h/1", "tricorn", &None));
        let all = of(r#"{"url": "redis://h", "prefix": "p", "secret": "hush"}"#).expect("an object");
        assert_eq!((&*all.prefix, all.secret.as_deref()), ("p", Some("hush")));
        for shown in [format!("{url:?}"), format!("{all:?}")] {
            assert!(!shown.contains("hush") && !shown.contains("//h"), "{shown}");
        }
        for bad in ["1", "{}", r#"{"url": "redis://h", "pre": "hush"}"#] {
            let error = of(bad).expect_err(bad).to_string();
            assert!(error.starts_with("expected a URL such as") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named_and_the_url_is_not() {
        let short = StoreOptions::new("redis://ann:hush@h").secret("short");
        let error = short.check("x").expect_err("short").to_string();
        assert!(error.contains("x: \"secret\": expected at least 32 bytes") && !error.contains("hush"), "{error}");
        let prefix = StoreOptions::new("redis://h").prefix("a b");
        assert!(prefix.check("x").expect_err("a space").message().contains("\"prefix\""));
    }
}
