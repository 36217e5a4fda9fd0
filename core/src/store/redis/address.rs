//! Addresses of stores.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::cluster::ClusterClientBuilder;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, RedisResult, TlsMode};

use super::documents::{Documents, Wire};
use super::link::Link;
use crate::store::DocumentStore;

/// Time in which a connection is made: name, TCP, TLS, login.
pub(super) const CONNECTING: Duration = Duration::from_secs(2);
/// The most nodes that a URL may name.
const MAX_NODES: usize = 32;
/// Time in which a program's own store does what one question wants.
const OWN_DEADLINE: Duration = Duration::from_secs(2);
/// The forms of a URL, for messages.
const EXPECTED: &str = "expected redis://, rediss://, redis+cluster://, redis+sentinel:// or unix://, and an address such as \
                        redis://user:password@host:6379/0 with special characters of the password percent-encoded";

/// Address of a store. What is shown of it is its scheme and its hosts.
pub(crate) struct Address {
    place: Place,
    shown: String,
}

enum Place {
    Single(Box<Client>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel(Box<Sentinel>),
    Own(Arc<Documents>),
    #[cfg(test)]
    Simulated,
}

struct Sentinel {
    nodes: Vec<ConnectionInfo>,
    service: String,
    db: i64,
    user: Option<String>,
    password: Option<String>,
    is_tls: bool,
}

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// The reason, which shows nothing of the URL but its scheme.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let expected = || EXPECTED.to_owned();
        let (scheme, rest) = url.split_once("://").ok_or_else(expected)?;
        if matches!(scheme, "unix" | "redis+unix" | "valkey+unix") {
            let shown = format!("{scheme}://{}", rest.split(['?', '#']).next().unwrap_or_default());
            return Ok(Self { place: Place::Single(Box::new(Client::open(url).map_err(|_| expected())?)), shown });
        }
        #[cfg(test)]
        if scheme == "simulated" {
            return Ok(Self { place: Place::Simulated, shown: url.to_owned() });
        }
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if tail.contains('@') {
            return Err(expected());
        }
        let (login, hosts) = authority.rsplit_once('@').map_or(("", authority), |(login, hosts)| (login, hosts));
        let shown = format!("{scheme}://{hosts}");
        let (scheme, form) = scheme.split_once('+').unwrap_or((scheme, ""));
        if !matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys") {
            return Err(expected());
        }
        let place = match form {
            "" => Place::Single(Box::new(Client::open(url).map_err(|_| expected())?)),
            "cluster" => Place::Cluster(nodes(scheme, login, hosts).ok_or_else(expected)?),
            "sentinel" => Place::Sentinel(Box::new(sentinel(scheme, login, hosts, tail)?)),
            _ => return Err(expected()),
        };
        Ok(Self { place, shown })
    }

    /// A store of the program.
    pub(crate) fn own(store: Arc<dyn DocumentStore>) -> Self {
        Self { place: Place::Own(Arc::new(Documents::new(store))), shown: "(DocumentStore)".into() }
    }

    /// Time in which a question is answered, or fails.
    pub(super) fn deadline(&self) -> Duration {
        if matches!(self.place, Place::Own(_)) { OWN_DEADLINE } else { super::DEADLINE }
    }

    /// Makes a connection whose answers come in this time, if one is given.
    pub(super) async fn connect(&self, answers: Option<Duration>) -> RedisResult<Link> {
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECTING)).set_response_timeout(answers);
        #[cfg(test)]
        let simulated = answers.unwrap_or(super::DEADLINE);
        match &self.place {
            Place::Single(client) => {
                client.get_multiplexed_async_connection_with_config(&config).await.map(|link| Link::Single(link.into()))
            }
            Place::Own(documents) => Ok(Link::Own(Box::new(Wire::new(documents, answers.unwrap_or(OWN_DEADLINE))))),
            Place::Cluster(nodes) => {
                let client = ClusterClientBuilder::new(nodes.iter().cloned());
                let client = client.connection_timeout(CONNECTING).retries(2);
                let client = client.response_timeout(answers.unwrap_or(super::DEADLINE)).build()?;
                client.get_async_connection().await.map(|link| Link::Cluster(link.into()))
            }
            #[cfg(test)]
            Place::Simulated => {
                super::simulated::Wire::connect(simulated).await.map(|link| Link::Simulated(link.into()))
            }
            Place::Sentinel(sentinel) => {
                let mut client = sentinel.client()?;
                client.get_async_connection_with_config(&config).await.map(|link| Link::Single(link.into()))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The nodes that `hosts` names, with commas between them.
fn nodes(scheme: &str, login: &str, hosts: &str) -> Option<Vec<ConnectionInfo>> {
    let at = if login.is_empty() { "" } else { "@" };
    let of = |host| format!("{scheme}://{login}{at}{host}").into_connection_info().ok();
    let nodes: Vec<_> = hosts.split(',').take(MAX_NODES + 1).map(of).collect::<Option<_>>()?;
    (nodes.len() <= MAX_NODES).then_some(nodes)
}

fn sentinel(scheme: &str, login: &str, hosts: &str, tail: &str) -> Result<Sentinel, String> {
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let path = path.trim_matches('/');
    let (service, db) = path.split_once('/').unwrap_or((path, "0"));
    if service.is_empty() {
        return Err("expected the name of the service that the sentinels watch, as in \
                    redis+sentinel://host:26379,host:26379/service"
            .into());
    }
    let db = db.parse().map_err(|_| "expected the number of a database after the service's name".to_owned())?;
    let text = |text: &str| percent_decode_str(text).decode_utf8().map(String::from).map_err(|_| EXPECTED.to_owned());
    let is_tls = matches!(scheme, "rediss" | "valkeys");
    let mut nodes = nodes(scheme, "", hosts).ok_or_else(|| EXPECTED.to_owned())?;
    // The sentinels' usual port is another.
    for (node, host) in nodes.iter_mut().zip(hosts.split(',')) {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        if !has_port {
            *node = node.clone().set_addr(with_port(node.addr(), 26379));
        }
    }
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        for node in &mut nodes {
            let settings = node.redis_settings().clone();
            *node = node.clone().set_redis_settings(match name {
                "sentinel_user" => settings.set_username(text(value)?),
                "sentinel_password" => settings.set_password(text(value)?),
                _ => return Err("expected ?sentinel_user=…&sentinel_password=… and nothing else".into()),
            });
        }
    }
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let some = |part: &str| (!part.is_empty()).then(|| text(part)).transpose();
    Ok(Sentinel { nodes, service: text(service)?, db, user: some(user)?, password: some(password)?, is_tls })
}

fn with_port(address: &redis::ConnectionAddr, own: u16) -> redis::ConnectionAddr {
    match address.clone() {
        redis::ConnectionAddr::Tcp(host, _) => redis::ConnectionAddr::Tcp(host, own),
        redis::ConnectionAddr::TcpTls { host, insecure, tls_params, .. } => {
            redis::ConnectionAddr::TcpTls { host, port: own, insecure, tls_params }
        }
        other => other,
    }
}

impl Sentinel {
    fn client(&self) -> RedisResult<redis::sentinel::SentinelClient> {
        let nodes = self.nodes.iter().map(|node| node.addr().clone());
        let mut client = SentinelClientBuilder::new(nodes, &self.service, SentinelServerType::Master)?;
        client = client.set_client_to_redis_db(self.db);
        if let Some(user) = &self.user {
            client = client.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.password {
            client = client.set_client_to_redis_password(password);
        }
        let own = self.nodes.first().map(ConnectionInfo::redis_settings);
        if let Some(user) = own.and_then(|own| own.username()) {
            client = client.set_client_to_sentinel_username(user);
        }
        if let Some(password) = own.and_then(|own| own.password()) {
            client = client.set_client_to_sentinel_password(password);
        }
        if self.is_tls {
            client =
                client.set_client_to_redis_tls_mode(TlsMode::Secure).set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        client.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read_and_show_no_login() {
        for (url, shown) in [
            ("redis://h", "redis://h"),
            ("rediss://ann:hush@h:1/2", "rediss://h:1"),
            ("redis://:hush%40@h:1", "redis://h:1"),
            ("valkey://h:1/?protocol=resp3", "valkey://h:1"),
            ("redis+cluster://ann:hush@a:1,b:2,[::1]:3", "redis+cluster://a:1,b:2,[::1]:3"),
            ("rediss+cluster://a", "rediss+cluster://a"),
            (
                "redis+sentinel://ann:hush@a:1,b/main/3?sentinel_user=ann&sentinel_password=hush",
                "redis+sentinel://a:1,b",
            ),
            #[cfg(unix)]
            ("unix:///run/s.sock?db=1&pass=hush", "unix:///run/s.sock"),
        ] {
            let address = Address::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
            assert_eq!(address.to_string(), shown);
        }
        let Ok(Address { place: Place::Sentinel(it), .. }) =
            Address::parse("redis+sentinel://ann:hu%2Fsh@a:1,b/main/3?sentinel_user=bob&sentinel_password=x")
        else {
            panic!("sentinels")
        };
        let ports: Vec<_> = it.nodes.iter().map(|node| node.addr().to_string()).collect();
        assert_eq!(ports, ["a:1", "b:26379"]);
        assert_eq!((&*it.service, it.db, it.password.as_deref()), ("main", 3, Some("hu/sh")));
        assert!(it.client().is_ok());
    }

    #[test]
    fn bad_ones_are_refused_and_not_shown() {
        let many = format!("redis+cluster://hush@{}", vec!["h:1"; 33].join(","));
        for bad in [
            "hush",
            "http://hush@h",
            "redis://ann:hu/sh@h",
            "redis://ann:12?hush@h",
            "redis://h/hush",
            "redis+sentinel://ann:hush@h",
            "redis+sentinel://ann:hush@h/main/x",
            "redis+sentinel://h/main?hush=1",
            "redis+hush://h",
            "redis+cluster://ann:hush@",
            &many,
        ] {
            let why = Address::parse(bad).map(|address| address.to_string()).expect_err(bad);
            assert!(why.contains("expected") && !why.contains("hush"), "{bad}: {why}");
        }
    }
}
