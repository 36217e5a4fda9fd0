//! Many servers as one: connected at once, listed together, each thing under a name of its own.

mod calls;
mod joined;
mod listing;
mod members;
mod names;
mod route;
mod servers;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use listing::Owners;
use serde_json::{Map, Value};

use super::{Client, ClientOptions, Handlers};
use crate::error::{Error, Result};
use crate::idiom;
use crate::options::{seconds, setters};
use crate::protocol::LogLevel;
pub use listing::{GroupEntry, GroupListing};
use members::Members;
pub use servers::{Connect, Servers};

/// The most servers of a group.
const MAX_SERVERS: usize = 64;
/// Servers that are being connected at the same time.
const CONNECTING: usize = 8;

/// Naming of the things that a group lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prefix {
    /// The server's name comes before a name that several servers have.
    #[default]
    Clash,
    /// The server's name comes before every name.
    Always,
}

/// Options of a group. The same names in every language; times in seconds.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::client::{GroupOptions, Prefix};
/// use tricorn::prelude::*;
///
/// # let maps = Server::new("maps").tool("find", "Find a city", async || Ok("Rome"));
/// let options = GroupOptions::new()
///     .client(ClientOptions::new().name("notes-app").version("1.4.0"))
///     .prefix(Prefix::Always);
/// let group = ClientGroup::connect(Servers::new().server("maps", maps), options).await?;
/// assert_eq!(group.tools().await.entries[0].name, "maps_find");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GroupOptions {
    /// Options of every client.
    pub client: ClientOptions,
    /// Longest time that a server may take to connect; 0 for no limit. Default 30. The time that a user takes to log in
    /// does not count: that has `login_timeout`.
    pub connect_timeout: f64,
    /// Naming of things. Default [`Prefix::Clash`].
    pub prefix: Prefix,
}

impl Default for GroupOptions {
    fn default() -> Self {
        ClientOptions::default().into()
    }
}

impl From<ClientOptions> for GroupOptions {
    fn from(client: ClientOptions) -> Self {
        Self { client, connect_timeout: 30.0, prefix: Prefix::default() }
    }
}

impl GroupOptions {
    /// Every option at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        client: ClientOptions;
        connect_timeout: f64;
        prefix: Prefix;
    }

    /// Reads the options from JSON: those of a client with `connect_timeout` and `prefix` (`clash`, `always`).
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let mut members: Map<String, Value> =
            serde_json::from_str(text).map_err(|e| Error::misuse(format!("group options: {e}")))?;
        let mut own = |name: &str| members.shift_remove(name).filter(|value| !value.is_null());
        let (timeout, prefix) = (own("connect_timeout"), own("prefix"));
        let mut options = Self::from(ClientOptions::parse(&Value::Object(members).to_string())?);
        let wrong = |name: &str, expected: &str, got: &Value| {
            Error::misuse(format!("group options: option {:?}: expected {expected}, got {got}", idiom::named(name)))
        };
        if let Some(given) = timeout {
            options.connect_timeout = given.as_f64().ok_or_else(|| wrong("connect_timeout", idiom::unit(), &given))?;
        }
        if let Some(given) = prefix {
            options.prefix = match given.as_str() {
                Some("clash") => Prefix::Clash,
                Some("always") => Prefix::Always,
                _ => return Err(wrong("prefix", "\"clash\" or \"always\"", &given)),
            };
        }
        options.connect_within()?;
        Ok(options)
    }

    fn connect_within(&self) -> Result<Duration> {
        seconds("connect_timeout", self.connect_timeout)
    }
}

type ForServer = dyn Fn(&str) -> Handlers + Send + Sync;

/// Clients of many servers, by name. The servers' features are listed together, each under a public name by which it is
/// found again. A server that cannot be reached, or ends, is among the [`failures`](Self::failures) and does not
/// disturb the others. A clone is the same group; its connections end with [`close`](Self::close) or the last clone.
///
/// At most 64 servers, of which 8 are being connected at once.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::client::GroupOptions;
/// use tricorn::prelude::*;
///
/// # let (maps, files) = (Server::new("maps"), Server::new("files"));
/// # let maps = maps.tool("find", "Find a city", async || Ok("Rome"));
/// let servers = Servers::new().server("maps", maps).server("files", files);
/// let group = ClientGroup::connect(servers, GroupOptions::new()).await?;
/// for (name, error) in group.failures() {
///     eprintln!("{name}: {error}");
/// }
/// for tool in group.tools().await.entries {
///     println!("{} of {}", tool.name, tool.server);
/// }
/// let found = group.call_tool("find", json!({})).await?;
/// # assert_eq!(found.text(), "Rome");
/// group.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientGroup(Arc<Shared>);

struct Shared {
    options: GroupOptions,
    handlers: Box<ForServer>,
    members: Mutex<Members>,
    /// Log level of new connections.
    log_level: Mutex<Option<LogLevel>>,
    owners: Mutex<Owners>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientGroup {
    /// Connects to all of these servers. That some fail is no error: see [`failures`](Self::failures).
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for wrong options, more than 64 servers and names that come twice.
    pub async fn connect(servers: Servers, options: impl Into<GroupOptions>) -> Result<Self> {
        Self::connect_with(servers, options, |_| Handlers::new()).await
    }

    /// Connects to all of these servers; `handlers` gives what answers and hears the server of a name.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        servers: Servers,
        options: impl Into<GroupOptions>,
        handlers: impl Fn(&str) -> Handlers + Send + Sync + 'static,
    ) -> Result<Self> {
        let group = Self::new(servers, options.into(), handlers)?;
        group.connect_all().await;
        Ok(group)
    }

    /// The group before anything is connected.
    pub(crate) fn new(
        servers: Servers,
        options: GroupOptions,
        handlers: impl Fn(&str) -> Handlers + Send + Sync + 'static,
    ) -> Result<Self> {
        options.client.check()?;
        if options.client.record.is_some() {
            let why = "a cassette is of one server: connect to that one with a client of its own";
            return Err(Error::misuse(format!("client option \"record\": {why}")));
        }
        options.connect_within()?;
        let mut members = Members::default();
        for (name, way) in servers.0 {
            members.add(&name, way)?;
        }
        let (handlers, members) = (Box::new(handlers), Mutex::new(members));
        Ok(Self(Arc::new(Shared { options, handlers, members, log_level: Mutex::default(), owners: Mutex::default() })))
    }

    /// Connects whatever was never connected, and waits for that.
    pub(crate) async fn connect_all(&self) {
        let waiting = lock(&self.0.members).waiting();
        let connecting = waiting.into_iter().map(|name| async move { self.reconnect(&name).await }).collect();
        all(connecting, CONNECTING).await;
    }

    /// The servers' names in the order in which they were given, those that failed included.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        lock(&self.0.members).names()
    }

    /// The connected client of this server, for everything that the group does not do itself.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Client> {
        lock(&self.0.members).client(name)
    }

    /// Returns the errors of the servers that are not connected: they could not be reached, or their connection ended.
    #[must_use]
    pub fn failures(&self) -> BTreeMap<String, Error> {
        lock(&self.0.members).failures()
    }

    /// Adds a server to the group and connects to it. One that fails stays in the group, as a failure.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when there is one of that name or there are 64; as [`Client::connect`].
    pub async fn add(&self, name: &str, server: impl Connect) -> Result<Client> {
        self.insert(name, Ok(Arc::new(server)))?;
        self.reconnect(name).await
    }

    /// Adds a server without connecting to it; what is wrong with what was said of it is a failure when that is tried.
    pub(crate) fn insert(&self, name: &str, server: Result<Arc<dyn Connect>>) -> Result<()> {
        lock(&self.0.members).add(name, server)
    }

    /// Takes a server out of the group and ends its connection. Says whether there was one.
    pub async fn remove(&self, name: &str) -> bool {
        let removed = lock(&self.0.members).remove(name);
        let there_was = removed.is_some();
        if let Some(client) = removed.flatten() {
            client.close().await;
        }
        there_was
    }

    /// Ends the server's connection, if it has one, and connects anew.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the group has no such server; as [`Client::connect`], and
    /// [`Timeout`](crate::ErrorKind::Timeout) after `connect_timeout`.
    pub async fn reconnect(&self, name: &str) -> Result<Client> {
        let (mut attempt, old) = members::begin(&self.0, name)?;
        if let Some(old) = old {
            old.close().await;
        }
        let outcome = attempt.run(&self.0).await;
        attempt.finish(outcome).await
    }

    /// Ends all connections and leaves the group empty.
    pub async fn close(&self) {
        let clients = lock(&self.0.members).take();
        let closing = clients.into_iter().map(|client| async move { client.close().await }).collect();
        all(closing, MAX_SERVERS).await;
    }
}

impl std::fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientGroup").field("names", &self.names()).finish_non_exhaustive()
    }
}

/// Runs these futures, so many at the same time. Their outcomes come in the futures' order.
async fn all<F: Future>(futures: Vec<F>, at_once: usize) -> Vec<F::Output> {
    let mut waiting = futures.into_iter().enumerate();
    let mut running: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut done: Vec<(usize, F::Output)> = Vec::new();
    std::future::poll_fn(|cx| {
        loop {
            while running.len() < at_once
                && let Some((at, future)) = waiting.next()
            {
                running.push((at, Box::pin(future)));
            }
            let before = running.len();
            running.retain_mut(|(at, future)| match future.as_mut().poll(cx) {
                Poll::Ready(outcome) => {
                    done.push((*at, outcome));
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() && before == 0 {
                return Poll::Ready(());
            }
            // A future that takes the place of a finished one has to be polled once.
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_run_at_once() {
        let (now, most) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let one = async |n: usize| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            for _ in 0..=n % 3 {
                tokio::task::yield_now().await;
            }
            now.set(now.get() - 1);
            n
        };
        assert_eq!(all((0..20).map(one).collect(), 8).await, (0..20).collect::<Vec<_>>());
        assert_eq!((now.get(), most.get()), (0, 8));
    }

    #[test]
    fn options_are_a_clients_and_two_more() {
        let options = GroupOptions::parse(r#"{"prefix": "always", "connect_timeout": 2, "request_timeout": 3}"#);
        let options = options.expect("options");
        assert_eq!(
            (options.prefix, options.connect_timeout, options.client.request_timeout),
            (Prefix::Always, 2.0, 3.0)
        );
        for (wrong, part) in [
            (r#"{"prefix": "never"}"#, "\"clash\" or \"always\""),
            (r#"{"connect_timeout": "1"}"#, "expected seconds"),
            (r#"{"connect_timeout": -1}"#, "at least 0"),
            (r#"{"request_timout": 1}"#, "did you mean \"request_timeout\"?"),
        ] {
            let error = GroupOptions::parse(wrong).expect_err(wrong);
            assert!(error.message().contains(part), "{error}");
        }
    }
}
