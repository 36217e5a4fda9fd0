use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::cache::CacheStore;
use crate::error::{Error, Result, shortened};
use crate::idiom::named;
use crate::options::setters;
use crate::store::MemoryCache;

/// Cache of the server's answers, for as long as these allow (`ttlMs`, revision 2026-07-28): lists, contents of
/// resources, `server/discover`. A cached answer is dropped at once when the server tells that it has changed. Servers
/// that say nothing of the kind are asked each time.
///
/// A kept answer is like one that the server has just given; middleware sees it as any other. A call that asks for it
/// goes to the server all the same: [`CallOptions::cache`](crate::CallOptions::cache).
///
/// JSON: `true`, `false`, or `{"enabled"?, "max_entries"?, "max_bytes"?, "stale_on_error"?, "shared"?, "scope"?}`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::client::CacheOptions;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("shop").resource(Resource::new("shop://prices", "prices"), async || Ok("1 euro"));
/// let cache = CacheOptions::new().max_bytes(64 << 20).stale_on_error(true);
/// let client = Client::in_memory(&server, &ClientOptions::new().cache(cache)).await?;
/// let prices = client.read_resource("shop://prices").await?;
/// if prices.is_stale() {
///     println!("as of the last time that the server could be asked");
/// }
/// println!("{} hits", client.cache_usage().hits);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CacheOptions {
    /// True if anything is kept. Default: yes.
    pub enabled: bool,
    /// The most answers that are kept; those that were used longest ago make room. Default 1000.
    pub max_entries: usize,
    /// The most bytes of them. Default 16 MiB.
    pub max_bytes: usize,
    /// Gives the last answer although it is no longer fresh when the server cannot be asked (a transport's error, no
    /// answer in time, or it has gone), with the member `tricorn/stale` in its `_meta`; until the client is closed.
    /// Default: no.
    pub stale_on_error: bool,
    /// Keeps what is kept together with the other clients of this process that do so: of one HTTP server, and private
    /// answers only under the same authorization. The limits are then the default ones. Default: no.
    pub shared: bool,
    /// The authorization under which private answers are kept, where that is not what the HTTP headers, the address and
    /// the environment say: any text that is unlike others', such as a user's id. It is kept as a digest only.
    pub scope: Option<String>,
    pub(super) place: Where,
}

/// Place of the cached answers.
#[derive(Clone, Default)]
pub(super) enum Where {
    /// In the client's own memory, or in what is [`shared`](CacheOptions::shared).
    #[default]
    Own,
    Memory(Arc<MemoryCache>),
    Store(Arc<dyn CacheStore>),
}

impl fmt::Debug for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "Own",
            Self::Memory(_) => "Memory",
            Self::Store(_) => "Store",
        })
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            max_entries: 1000,
            max_bytes: 16 << 20,
            stale_on_error: false,
            shared: false,
            scope: None,
            place: Where::Own,
        }
    }
}

impl CacheOptions {
    /// Every option at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing is kept.
    #[must_use]
    pub fn off() -> Self {
        Self::default().enabled(false)
    }

    setters! {
        enabled: bool;
        max_entries: usize;
        max_bytes: usize;
        stale_on_error: bool;
        shared: bool;
        scope: some text;
    }

    /// Keeps answers in a store of one's own, which the clients of other processes may share: of HTTP servers, what is
    /// private only under the same authorization. Answers of other servers are kept in the client's own memory, and so
    /// is everything without a store.
    #[must_use]
    pub fn store(mut self, store: impl CacheStore) -> Self {
        self.place = Where::Store(Arc::new(store));
        self
    }

    /// Keeps answers in this memory, with the other clients that are given it, as [`shared`](Self::shared) does with all that
    /// say so. The limits are its own.
    #[must_use]
    pub fn memory(mut self, memory: Arc<MemoryCache>) -> Self {
        self.place = Where::Memory(memory);
        self
    }

    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong.
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("max_entries", self.max_entries), ("max_bytes", self.max_bytes)] {
            if value == 0 {
                let why = "expected an integer of at least 1, got 0";
                return Err(Error::misuse(format!("client options: option \"cache\": {:?}: {why}", named(name))));
            }
        }
        if self.shared && !matches!(self.place, Where::Own) {
            let why = "with a store of one's own they are shared already: give one of both";
            return Err(Error::misuse(format!("client option \"cache\": \"shared\": {why}")));
        }
        Ok(())
    }

    /// # Errors
    /// The fault, naming the member.
    fn parse(value: Value) -> Result<Self> {
        let members = match value {
            Value::Bool(enabled) => return Ok(Self::default().enabled(enabled)),
            Value::Object(members) => members,
            other => {
                let got = crate::options::type_of(&other);
                return Err(Error::misuse(format!("expected true, false or an object, got {got}")));
            }
        };
        Self::of(members)
    }

    fn of(members: Map<String, Value>) -> Result<Self> {
        const MEMBERS: [&str; 7] =
            ["enabled", "max_entries", "max_bytes", "stale_on_error", "shared", "scope", "store"];
        let mut options = Self::default();
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            let wrong = |expected: &str| {
                let got = shortened(&value.to_string(), 60).into_owned();
                Error::misuse(format!("{:?}: expected {expected}, got {got}", named(&name)))
            };
            let flag = || value.as_bool().ok_or_else(|| wrong("true or false"));
            let count = || {
                let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
                count.filter(|count| *count > 0).ok_or_else(|| wrong("an integer of at least 1"))
            };
            match name.as_str() {
                "enabled" => options.enabled = flag()?,
                "max_entries" => options.max_entries = count()?,
                "max_bytes" => options.max_bytes = count()?,
                "stale_on_error" => options.stale_on_error = flag()?,
                "shared" => options.shared = flag()?,
                "scope" => options.scope = Some(value.as_str().ok_or_else(|| wrong("a string"))?.to_owned()),
                _ => {
                    return Err(Error::misuse(crate::options::unknown_in_words(&name, &MEMBERS)));
                }
            }
        }
        Ok(options)
    }
}

impl<'de> Deserialize<'de> for CacheOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::parse(value).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClientOptions;

    #[test]
    fn options_are_read_and_what_is_wrong_is_named() {
        let cache = |text: &str| ClientOptions::parse(&format!("{{\"cache\": {text}}}")).map(|options| options.cache);
        assert!(!cache("false").expect("options").enabled && cache("true").expect("options").enabled);
        let options = cache(r#"{"max_entries": 5, "stale_on_error": true, "scope": "ada", "shared": null}"#);
        let options = options.expect("options");
        assert_eq!((options.max_entries, options.stale_on_error, options.shared), (5, true, false));
        assert_eq!(options.scope.as_deref(), Some("ada"));
        for (text, said) in [
            (r#"{"max_bytes": 0}"#, "\"cache\": \"max_bytes\": expected an integer of at least 1, got 0"),
            (r#"{"shared": "yes"}"#, "\"cache\": \"shared\": expected true or false, got \"yes\""),
            (r#"{"ttl": 5}"#, "\"cache\": unknown option \"ttl\", expected one of enabled"),
            ("7", "\"cache\": expected true, false or an object, got a number"),
        ] {
            let error = cache(text).expect_err("wrong");
            assert!(error.message().contains(said), "{error}");
        }
    }
}
