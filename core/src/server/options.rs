use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::CacheOptions;
use crate::call::TaskOptions;
#[cfg(feature = "runtime")]
use crate::call::rounds::{SealOptions, Sealer};
use crate::error::{Error, Result, shortened};
use crate::idiom::named;
use crate::jsonrpc::{Limits, RawJson};
use crate::model::check_icons;
use crate::protocol::KeepAlive;
use crate::protocol::revision::spoken;
use crate::store::StoreOptions;

/// Identity and limits of a server. The same names in every language.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Programmatic name. Required.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Name for people.
    pub title: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Web page about it.
    pub website_url: Option<String>,
    /// The schema's `Icon` objects.
    pub icons: Option<RawJson>,
    /// A hint for the model on how to use the server.
    pub instructions: Option<String>,
    /// Capabilities that are declared to clients besides the existing ones: `completions`, `prompts`, `resources`
    /// though there is none of it yet, because a client never asks for a feature that it was not told of as it
    /// connected; and as members with an object, `experimental` or any other capability that this library knows nothing
    /// of. JSON: an array of names, or an object. Default: nothing.
    #[serde(deserialize_with = "names_or_members")]
    pub capabilities: Map<String, Value>,
    /// Only this revision is spoken, such as `2025-11-25`, or only those with handshakes (`legacy`) or without
    /// (`modern`). Default: all of them.
    pub revision: Option<String>,
    /// Entries on one page of a list. Default 250.
    pub page_size: usize,
    /// The longest message in bytes. Default 4 MiB.
    pub max_message_bytes: usize,
    /// The deepest nesting of a message. Default 128.
    pub max_nesting: usize,
    /// The most memory that a message's values may take once they are decoded, in bytes and by estimate: many small ones
    /// take a hundred times what their text does. Default 64 MiB.
    pub max_decoded_bytes: usize,
    /// The most that the whole process keeps for its peers at any time, in bytes: long bodies and what is in them,
    /// events for clients that lose a stream, notifications for slow readers. One client has at most as much as is left
    /// for others. Beyond it what is idle is given up, then new work is refused (503 over HTTP). All servers and
    /// clients of the process draw on it, and the last one to set it sets it for all. Default: a quarter of the memory
    /// that the machine or its control group has, and 64 MiB at least.
    pub max_memory: Option<usize>,
    /// Requests worked on at once per connection. Default 256.
    pub max_in_flight: usize,
    /// Notifications that may wait for a slow peer. Default 256.
    pub max_queued_notifications: usize,
    /// Listen streams (`subscriptions/listen`) that one connection may have open; over HTTP each is a request of its own.
    /// Default 64.
    pub max_listeners: usize,
    /// Seconds without a message of a legacy client after which it is asked for a sign of life, where it can be reached
    /// (over HTTP: through a standalone stream); 0 for never, the default.
    pub ping_interval: f64,
    /// Seconds after which a client that does not answer that is taken for lost, and its session ends. Default 20.
    pub ping_timeout: f64,
    /// Seconds after which a tool's handler is cancelled, and its caller answered with an error that the model can read; 0
    /// for never, the default. The time in which it waits for answers of the client counts. A tool may have a time of its
    /// own.
    pub tool_timeout: f64,
    /// Runs tool calls as tasks, where client and tool want that. Default: no tasks. In 2026-07-28 it is the extension
    /// `io.modelcontextprotocol/tasks`.
    pub tasks: Option<TaskOptions>,
    /// Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 has to remember between two rounds
    /// of questions (`requestState`). The first one seals, all of them open, so that they can be changed one after
    /// the other. Servers that answer the same clients need the same, and the same name. Default: a secret of this
    /// process alone.
    pub request_state_keys: Secrets,
    /// Seconds for which such a state holds: as long as a user may take to answer one round. A client that comes back in
    /// time gets a new one, which holds as long again. Whole seconds count, begun ones too. Default 600.
    pub request_state_ttl: f64,
    /// The longest such state, in bytes as it is sent: Base64, so that the answers and steps in it have three quarters
    /// of that. Default 16 KiB.
    pub max_request_state_bytes: usize,
    /// The store that makes one server of several processes: a URL such as `redis://host:6379`, or an object of `url`,
    /// `prefix` and `secret`. Default: the URL in the environment variable `TRICORN_STORE`; without one each process is
    /// a server of its own.
    pub store: Option<StoreOptions>,
    /// Lifetime and scope of the server's answers in clients' caches. Default: none is cached.
    pub cache: CacheOptions,
}

/// Capabilities that can be declared before there is any of them.
pub(super) const DECLARABLE: [&str; 4] = ["completions", "prompts", "resources", "tools"];
/// Capabilities that the engine declares by itself, each with its reason.
const OWN: [(&str, &str); 2] = [("logging", "it is always there"), ("tasks", "switch them on by the option \"tasks\"")];

/// Reads capabilities: each of a list of names is one without details.
fn names_or_members<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Map<String, Value>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected names of capabilities, or an object (given otherwise)")]
    enum Given {
        Names(Vec<String>),
        Members(Map<String, Value>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::Names(names) => names.into_iter().map(|name| (name, json!({}))).collect(),
        Given::Members(members) => members,
    })
}

/// Checks that a server may declare this.
fn check_capability(name: &str, value: &Value) -> Result<()> {
    let wrong = |why: String| Err(Error::misuse(format!("server option \"capabilities\": {name:?}: {why}")));
    let Some(members) = value.as_object() else {
        return wrong(format!("expected an object, got {}", shortened(&value.to_string(), 60)));
    };
    if let Some((_, why)) = OWN.iter().find(|(own, _)| *own == name) {
        return wrong((*why).to_owned());
    }
    let known = DECLARABLE.contains(&name);
    if known && !members.is_empty() {
        return wrong("what it says is the engine's, expected {}".to_owned());
    }
    // A name that is nobody's and says nothing is a slip of the pen.
    if !known && members.is_empty() && !matches!(name, "experimental" | "extensions") {
        let expected = DECLARABLE.join(", ");
        return wrong(format!("expected {expected}, or an object of what it offers"));
    }
    Ok(())
}

impl Default for ServerOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            name: String::new(),
            version: "0.0.0".into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
            instructions: None,
            capabilities: Map::new(),
            revision: None,
            page_size: 250,
            max_message_bytes: limits.max_message_bytes,
            max_nesting: limits.max_nesting,
            max_decoded_bytes: limits.max_decoded_bytes,
            max_memory: None,
            max_in_flight: 256,
            max_queued_notifications: 256,
            max_listeners: 64,
            ping_interval: 0.0,
            ping_timeout: 20.0,
            tool_timeout: 0.0,
            tasks: None,
            request_state_keys: Secrets::default(),
            request_state_ttl: 600.0,
            max_request_state_bytes: 16 * 1024,
            store: None,
            cache: CacheOptions::default(),
        }
    }
}

impl ServerOptions {
    /// Reads the options from JSON.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let options: Self = crate::options::read("server options", text)?;
        options.check()?;
        Ok(options)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::misuse("server option \"name\": missing, expected the server's name"));
        }
        KeepAlive::of(self.ping_interval, self.ping_timeout)?;
        if let Some(icons) = &self.icons {
            let icons = icons.to().unwrap_or_default();
            check_icons(&icons).map_err(|why| Error::misuse(format!("server option {why}")))?;
        }
        self.capabilities.iter().try_for_each(|(name, value)| check_capability(name, value))?;
        for (name, value) in [
            ("page_size", self.page_size),
            ("max_message_bytes", self.max_message_bytes),
            ("max_nesting", self.max_nesting),
            ("max_decoded_bytes", self.max_decoded_bytes),
            ("max_in_flight", self.max_in_flight),
            ("max_listeners", self.max_listeners),
            ("max_request_state_bytes", self.max_request_state_bytes),
        ] {
            if value == 0 {
                return Err(Error::misuse(format!("server option {:?}: expected at least 1, got 0", named(name))));
            }
        }
        if self.max_memory == Some(0) {
            return Err(Error::misuse(format!("server option {:?}: expected at least 1, got 0", named("max_memory"))));
        }
        spoken("server", self.revision.as_deref())?;
        crate::options::seconds("request_state_ttl", self.request_state_ttl)?;
        crate::options::seconds("tool_timeout", self.tool_timeout)?;
        #[cfg(feature = "runtime")]
        self.sealer()?;
        self.store.as_ref().map_or(Ok(()), |store| store.check(&StoreOptions::option()))?;
        self.tasks.as_ref().map_or(Ok(()), TaskOptions::check)
    }

    /// Returns the sealer of the states of questions.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong.
    #[cfg(feature = "runtime")]
    pub(super) fn sealer(&self) -> Result<Sealer> {
        Sealer::new(&SealOptions {
            server: &self.name,
            keys: self.request_state_keys.0.as_deref(),
            ttl: crate::options::seconds("request_state_ttl", self.request_state_ttl)?,
            max_bytes: self.max_request_state_bytes,
        })
    }
}

/// Texts that are never shown.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secrets(pub(crate) Option<Vec<String>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets", self.0.as_ref().map_or(0, Vec::len))
    }
}

impl<S: Into<String>> FromIterator<S> for Secrets {
    fn from_iter<I: IntoIterator<Item = S>>(secrets: I) -> Self {
        Self(Some(secrets.into_iter().map(Into::into).collect()))
    }
}
