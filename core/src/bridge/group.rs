use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::client::{Connection, State, opened};
use super::{Bridge, Client, Server, lock, server};
use crate::call::CallOptions;
use crate::client::{self, ClientOptions, Connect, GroupOptions, Handlers, Servers, Target};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::Kind;

/// A host's group of clients. Each server has an ordinary client object ([`client`](Self::client)), with a source,
/// handlers and roots of its own, through which the host makes its requests; the group connects them, lists what they
/// have together, and names the client that a public name belongs to ([`route`](Self::route)).
pub struct ClientGroup {
    bridge: Bridge,
    options: ClientOptions,
    group: client::ClientGroup,
    variables: BTreeMap<String, String>,
    seats: Seats,
}

type Seats = Arc<Mutex<HashMap<String, Seat>>>;

/// The parts of a server's client object.
#[derive(Clone)]
struct Seat {
    handlers: Arc<Mutex<Handlers>>,
    connection: Connection,
}

impl ClientGroup {
    /// A group of which nothing is connected yet. `servers` is JSON: the path of a configuration file or `{"file"}`,
    /// `{"mcpServers": {name: target}}`, or `[[name, target], …]`; `options` are a client's with `connect_timeout` and
    /// `prefix`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a file that cannot be read, an option that is unknown or wrong, more
    /// than 64 servers.
    pub fn new(bridge: &Bridge, servers: &str, options: &str) -> Result<Self> {
        let (variables, options) = super::client::variables(options)?;
        let options = super::client::given(bridge, &options, GroupOptions::parse, |own| &mut own.client)?;
        let (client, seats) = (options.client.clone(), Seats::default());
        let known = seats.clone();
        let group = client::ClientGroup::new(Servers::parse_with(servers, &variables)?, options, move |name: &str| {
            let seat = lock(&known).get(name).cloned();
            seat.map_or_else(Handlers::new, |seat| lock(&seat.handlers).clone())
        })?;
        Ok(Self { bridge: bridge.clone(), options: client, group, variables, seats })
    }

    /// The servers' names in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.group.names()
    }

    /// The client object of this server, the only one that the host should make of it: events arrive under `source`,
    /// handlers and roots are set before the group connects. `None` when the group has no such server.
    #[must_use]
    pub fn client(&self, name: &str, source: u32) -> Option<Client> {
        self.group.names().iter().any(|known| known == name).then(|| self.seat(name, source))
    }

    fn seat(&self, name: &str, source: u32) -> Client {
        let client = Client::of_group(&self.bridge, source, self.options.clone());
        let (handlers, connection) = client.parts();
        lock(&self.seats).insert(name.to_owned(), Seat { handlers, connection });
        client
    }

    /// Adds a server and gives its client object; [`connect`](Self::connect) or [`reconnect`](Self::reconnect) connects
    /// it. `target` is JSON; a wrong one is a failure of that server.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name that the group has, or the 65th server.
    pub fn add(&self, name: &str, source: u32, target: &str) -> Result<Client> {
        self.added(
            name,
            source,
            Target::parse_with(target, &self.variables).map(|target| Arc::new(target) as Arc<dyn Connect>),
        )
    }

    /// As [`add`](Self::add), a server in this process.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_server(&self, name: &str, source: u32, server: &Server) -> Result<Client> {
        self.added(name, source, Ok(Arc::new(server.server.clone())))
    }

    fn added(&self, name: &str, source: u32, server: Result<Arc<dyn Connect>>) -> Result<Client> {
        self.group.insert(name, server)?;
        Ok(self.seat(name, source))
    }

    /// Connects whatever was never connected; settles `{"servers": {name: what a client settles}, "failures": {name:
    /// error}}` of the whole group.
    pub fn connect(&self, op: u64) {
        let (group, seats) = (self.group.clone(), self.seats.clone());
        self.bridge.spawn_causing(op, |_| async move {
            group.connect_all().await;
            let mut servers = BTreeMap::new();
            for name in group.names() {
                if let Some(client) = group.get(&name) {
                    servers.insert(name.clone(), opened(&client));
                    seated(&seats, &name, client);
                }
            }
            Ok(RawJson::from_value(&json!({"servers": servers, "failures": failures(&group.failures())})))
        });
    }

    /// Connects this server anew, or for the first time; settles what a client settles.
    pub fn reconnect(&self, op: u64, name: &str) {
        let (group, seats, name) = (self.group.clone(), self.seats.clone(), name.to_owned());
        self.bridge.spawn_causing(op, |_| async move {
            let client = group.reconnect(&name).await?;
            let settled = opened(&client);
            seated(&seats, &name, client);
            Ok(settled)
        });
    }

    /// Takes a server out of the group and ends its connection; settles whether there was one.
    pub fn remove(&self, op: u64, name: &str) {
        let (group, name) = (self.group.clone(), name.to_owned());
        // Before the end is waited for: a server that is added meanwhile has a seat of its own.
        let seat = lock(&self.seats).remove(&name);
        self.bridge.spawn(op, async move {
            let there_was = group.remove(&name).await;
            drop(seat);
            Ok(RawJson::from_value(&there_was))
        });
    }

    /// Returns the reasons why servers are not connected: `{name: {"kind", "message", "code"?, "data"?}}`.
    #[must_use]
    pub fn failures(&self) -> RawJson {
        RawJson::from_value(&failures(&self.group.failures()))
    }

    /// Lists what all servers have of a kind (`tool`, `resource`, `resource_template`, `prompt`); settles `{"entries":
    /// [{"server", "name", "definition"}], "failures": {server: error}}`. `options` are a request's, or "".
    pub fn list(&self, op: u64, kind: &str, options: &str) {
        let prepared = server::kind_of(kind).and_then(|kind| Ok((kind, CallOptions::parse(options)?.0)));
        let group = self.group.clone();
        self.bridge.spawn_causing(op, |origin| async move {
            let (kind, mut options) = prepared?;
            options.origin = Some(origin);
            let listing = group.list(kind, &options).await;
            let failures = failures(&listing.failures);
            Ok(RawJson::from_value(&json!({"entries": listing.entries, "failures": failures})))
        });
    }

    /// Finds the thing of this public name; settles `{"server", "name"}`: the server that is to be asked, and the name
    /// there. Of a resource the name is its URI, of a resource template its URI template or its public name.
    pub fn route(&self, op: u64, kind: &str, name: &str) {
        let (kind, group, name) = (server::kind_of(kind), self.group.clone(), name.to_owned());
        self.bridge.spawn(op, async move {
            let route = match kind? {
                Kind::Resource => group.route_uri(&name).await?,
                Kind::ResourceTemplate => group.route_template(&name).await?,
                kind => group.route(kind, &name).await?,
            };
            Ok(RawJson::from_value(&json!({"server": route.server, "name": route.name})))
        });
    }

    /// Asks all servers that log, now and later, for messages of at least this level; settles `{"failures": {name:
    /// error}}`.
    #[expect(deprecated, reason = "hosts mark it in their languages")]
    pub fn set_log_level(&self, op: u64, level: &str) {
        let (level, group) = (level.parse(), self.group.clone());
        self.bridge.spawn(op, async move {
            let failed = group.set_log_level(level?).await;
            Ok(RawJson::from_value(&json!({"failures": failures(&failed)})))
        });
    }

    /// Ends all connections; settles `{}`.
    pub fn close(&self, op: u64) {
        let (group, seats) = (self.group.clone(), std::mem::take(&mut *lock(&self.seats)));
        self.bridge.spawn(op, async move {
            group.close().await;
            drop(seats);
            Ok(RawJson::empty_object())
        });
    }
}

/// The host's client object of this server is connected.
fn seated(seats: &Seats, name: &str, client: client::Client) {
    let seat = lock(seats).get(name).cloned();
    if let Some(seat) = seat {
        let before = std::mem::replace(&mut *lock(&seat.connection), State::Connected(client));
        drop(before);
    }
}

fn failures(of: &BTreeMap<String, Error>) -> Map<String, Value> {
    of.iter().map(|(name, error)| (name.clone(), error.to_json().to().unwrap_or_default())).collect()
}
