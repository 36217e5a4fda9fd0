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

/// Identity and limits of a server, as they come from JSON. The same names in every language; times in seconds. In Rust a
/// [`Server`](crate::Server) is made by its functions of these names, which say what each option is.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerOptions {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) website_url: Option<String>,
    pub(crate) icons: Option<RawJson>,
    pub(crate) instructions: Option<String>,
    #[serde(deserialize_with = "names_or_members")]
    pub(crate) capabilities: Map<String, Value>,
    pub(crate) revision: Option<String>,
    pub(crate) page_size: usize,
    pub(crate) max_message_bytes: usize,
    pub(crate) max_nesting: usize,
    pub(crate) max_decoded_bytes: usize,
    pub(crate) max_memory: Option<usize>,
    pub(crate) max_in_flight: usize,
    pub(crate) max_queued_notifications: usize,
    pub(crate) max_listeners: usize,
    pub(crate) ping_interval: f64,
    pub(crate) ping_timeout: f64,
    pub(crate) tool_timeout: f64,
    pub(crate) tasks: Option<TaskOptions>,
    pub(crate) request_state_keys: Secrets,
    pub(crate) request_state_ttl: f64,
    pub(crate) max_request_state_bytes: usize,
    pub(crate) store: Option<StoreOptions>,
    pub(crate) cache: CacheOptions,
    /// `serverInfo` and further capabilities of another server, which this one stands before.
    #[serde(skip)]
    pub(crate) introduction: Option<(Option<RawJson>, Map<String, Value>)>,
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
            introduction: None,
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
pub(crate) struct Secrets(pub(crate) Option<Vec<String>>);

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
