use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::client::{Client, ClientOptions, Handlers, Target, config};
use crate::error::{Error, Result};

/// A server that a group can connect to, again if need be: a [`Target`], or a [`Server`](crate::Server) in this process.
pub trait Connect: Send + Sync + 'static {
    #[doc(hidden)]
    fn connect(
        &self,
        options: ClientOptions,
        handlers: Handlers,
        within: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Client>> + Send>>;
}

/// Way to reach one server, or the error in its configuration.
pub(super) type Way = Result<Arc<dyn Connect>>;

/// The servers of a group, by name, in their order.
///
/// ```
/// use tricorn::client::{Servers, Target};
///
/// let servers = Servers::new()
///     .server("time", Target::from_text("https://time.example/mcp")?)
///     .server("files", Target::command("file-server", ["."]));
/// # Ok::<(), tricorn::Error>(())
/// ```
#[derive(Default)]
pub struct Servers(pub(super) Vec<(String, Way)>);

impl Servers {
    /// No server.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether there is no server.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One server more.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, server: impl Connect) -> Self {
        self.0.push((name.into(), Ok(Arc::new(server))));
        self
    }

    /// All servers of a host's configuration file, `{"mcpServers": {name: target}}` (or `servers`), but for those with
    /// `"disabled": true`. A fault in one entry is a failure of that server alone.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the file cannot be read or holds no servers.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file_with(path, &BTreeMap::new())
    }

    /// As [`from_file`](Self::from_file), with what placeholders stand for, as in [`Target::from_file_with`].
    ///
    /// # Errors
    /// As there.
    pub fn from_file_with(path: impl AsRef<Path>, variables: &BTreeMap<String, String>) -> Result<Self> {
        config::read_all(path.as_ref(), None, variables).map(Self::of)
    }

    /// Reads servers from JSON: the path of such a file as a string or as `{"file"}`, or what such a file holds; both
    /// objects may say `"stderr"` for the entries that do not. Or an array of `[name, target]`, targets as in
    /// [`Target::parse`].
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &BTreeMap::new())
    }

    /// As [`parse`](Self::parse), with what placeholders stand for.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn parse_with(text: &str, variables: &BTreeMap<String, String>) -> Result<Self> {
        let expected = "servers: expected the path of a configuration file, {\"mcpServers\": {name: target}} or an array \
                        of [name, target]";
        match serde_json::from_str(text).map_err(|e| Error::misuse(format!("servers: {e}")))? {
            Value::String(path) => Self::from_file_with(path, variables),
            Value::Object(members) => {
                let stderr = members.get("stderr").and_then(Value::as_str);
                let own = members.get("variables").cloned().unwrap_or_else(|| Value::Object(Map::new()));
                let own: BTreeMap<String, String> =
                    serde_json::from_value(own).map_err(|e| Error::misuse(format!("servers: \"variables\": {e}")))?;
                let variables: BTreeMap<String, String> = variables.clone().into_iter().chain(own).collect();
                match members.get("file").and_then(Value::as_str) {
                    Some(path) => config::read_all(Path::new(path), stderr, &variables).map(Self::of),
                    None => {
                        config::all(&members, stderr, &variables).map(Self::of).ok_or_else(|| Error::misuse(expected))
                    }
                }
            }
            Value::Array(pairs) => {
                let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
                    Some([Value::String(name), target]) => {
                        Ok((name.clone(), Target::parse_with(&target.to_string(), variables)))
                    }
                    _ => Err(Error::misuse(expected)),
                };
                pairs.iter().map(pair).collect::<Result<_>>().map(Self::of)
            }
            _ => Err(Error::misuse(expected)),
        }
    }

    fn of(targets: Vec<(String, Result<Target>)>) -> Self {
        let way = |target: Result<Target>| target.map(|target| Arc::new(target) as Arc<dyn Connect>);
        Self(targets.into_iter().map(|(name, target)| (name, way(target))).collect())
    }
}

impl<N: Into<String>, S: Connect> FromIterator<(N, S)> for Servers {
    fn from_iter<I: IntoIterator<Item = (N, S)>>(servers: I) -> Self {
        servers.into_iter().fold(Self::new(), |all, (name, server)| all.server(name, server))
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
