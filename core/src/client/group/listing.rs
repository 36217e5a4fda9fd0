use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::joined::{Definitions, Joined};
use super::names::{Named, named};
use super::route::Route;
use super::{ClientGroup, MAX_SERVERS, all, lock};
use crate::call::{CacheMode, CallOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::options;
use crate::protocol::Kind;

/// Something that a server of a group lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupEntry {
    /// The server's name in the group.
    pub server: String,
    /// The public name, which nothing else of this kind in the group has.
    pub name: String,
    /// The definition as the server gave it, with its own name.
    pub definition: Map<String, Value>,
}

/// Lists of one kind from the servers of a group.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupListing {
    /// In the servers' order, then in each server's own.
    pub entries: Vec<GroupEntry>,
    /// Errors of the servers whose lists are missing.
    pub failures: BTreeMap<String, Error>,
}

/// Owners of the public names when they were listed, by kind: the servers' names.
#[derive(Default)]
pub(super) struct Owners([HashMap<String, Arc<str>>; Kind::ALL.len()]);

impl Owners {
    fn set(&mut self, kind: Kind, entries: &[GroupEntry]) {
        let mut servers: HashMap<&str, Arc<str>> = HashMap::new();
        let owned = entries.iter().map(|entry| {
            let server = servers.entry(&entry.server).or_insert_with(|| entry.server.as_str().into());
            (entry.name.clone(), server.clone())
        });
        self.0[kind as usize] = owned.collect();
    }

    /// Fails when a name was another server's.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) naming both.
    fn check(&self, kind: Kind, name: &str, server: &str) -> Result<()> {
        match self.0[kind as usize].get(name) {
            Some(before) if **before != *server => Err(Error::misuse(format!(
                "the {} {name:?} was one of server {before:?} when the group was listed, and is one of server {server:?} \
                 now: list it again",
                kind.word()
            ))),
            _ => Ok(()),
        }
    }
}

/// Lists of one kind at one moment, of the servers that have answered.
pub(super) struct Snapshot {
    kind: Kind,
    pub(super) servers: Vec<(String, Joined)>,
    lists: Vec<Definitions>,
    named: Vec<Named>,
}

impl Snapshot {
    /// Everything: the server, the public name, the definition.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&(String, Joined), &str, &Map<String, Value>)> {
        self.named.iter().map(|it| (&self.servers[it.server], it.name.as_str(), &self.lists[it.server][it.at]))
    }

    /// The server of this public name, and the definition's own name (of a resource the URI).
    pub(super) fn find(&self, name: &str) -> Option<(&(String, Joined), &str)> {
        let (server, _, definition) = self.iter().find(|(_, public, _)| *public == name)?;
        Some((server, definition.get(self.kind.key())?.as_str()?))
    }
}

impl ClientGroup {
    /// The tools of all servers.
    pub async fn tools(&self) -> GroupListing {
        self.list(Kind::Tool, &CallOptions::default()).await
    }

    /// The resources of all servers.
    pub async fn resources(&self) -> GroupListing {
        self.list(Kind::Resource, &CallOptions::default()).await
    }

    /// The resource templates of all servers.
    pub async fn resource_templates(&self) -> GroupListing {
        self.list(Kind::ResourceTemplate, &CallOptions::default()).await
    }

    /// The prompts of all servers.
    pub async fn prompts(&self) -> GroupListing {
        self.list(Kind::Prompt, &CallOptions::default()).await
    }

    /// Returns the lists of all servers that declare this kind, asked now and at the same time; the options hold for
    /// each page.
    ///
    /// A public name is the thing's own where no other server has one of that name, else (or with
    /// [`Prefix::Always`](super::Prefix::Always)) `server_name`: characters of the server's name outside
    /// `[A-Za-z0-9_-]` become `_`, and what is longer than 64 characters is cut and ends in a digest. The names depend
    /// on nothing but what is listed; of servers that fail or have gone, what they listed last counts.
    pub async fn list(&self, kind: Kind, options: &CallOptions) -> GroupListing {
        let failures = self.ask(kind, options).await;
        let snapshot = self.snapshot(kind);
        let entries: Vec<_> = snapshot
            .iter()
            .map(|((server, _), name, definition)| GroupEntry {
                server: server.clone(),
                name: name.to_owned(),
                definition: definition.clone(),
            })
            .collect();
        lock(&self.0.owners).set(kind, &entries);
        GroupListing { entries, failures }
    }

    /// Asks all servers of this kind for their lists. Returns the errors of those that are missing, by server.
    async fn ask(&self, kind: Kind, options: &CallOptions) -> BTreeMap<String, Error> {
        let ask =
            |(name, server): (String, Joined)| async move { Some((name, server.list(kind, options).await.err()?)) };
        let asked = self.declaring(kind).into_iter().map(ask).collect();
        all(asked, MAX_SERVERS).await.into_iter().flatten().collect()
    }

    /// Returns the known lists, after asking the servers whose lists are out of date.
    pub(super) async fn known(&self, kind: Kind) -> Snapshot {
        let mut stale = self.declaring(kind);
        stale.retain(|(_, server)| !lock(&server.watch.lists).is_current(kind));
        let options = &CallOptions::default();
        let asked = stale.into_iter().map(|(_, server)| async move { server.list(kind, options).await }).collect();
        all(asked, MAX_SERVERS).await;
        self.snapshot(kind)
    }

    pub(super) fn declaring(&self, kind: Kind) -> Vec<(String, Joined)> {
        let mut joined = lock(&self.0.members).joined();
        joined.retain(|(_, server)| is_asked(server, kind));
        joined
    }

    fn snapshot(&self, kind: Kind) -> Snapshot {
        let (mut names, mut counted, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        let members = lock(&self.0.members).all();
        for (name, joined, last) in members {
            let list = match &joined {
                Some(joined) if !is_asked(joined, kind) => Definitions::default(),
                Some(joined) => match lock(&joined.watch.lists).known(kind) {
                    Some(known) => {
                        shown.push((names.len(), (name.clone(), joined.clone())));
                        known
                    }
                    None => last.of(kind),
                },
                None => last.of(kind),
            };
            names.push(name);
            counted.push(list);
        }
        let views: Vec<_> = names.iter().zip(&counted).map(|(name, list)| (name.as_str(), &list[..])).collect();
        let mut named = named(kind, &views, self.0.options.prefix);
        named.retain_mut(|it| match shown.iter().position(|(place, _)| *place == it.server) {
            Some(place) => {
                it.server = place;
                true
            }
            None => false,
        });
        let (places, servers): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
        let lists = places.into_iter().map(|place| counted[place].clone()).collect();
        Snapshot { kind, servers, lists, named }
    }

    /// The client that has what is publicly called `name` (of a resource or a template also its URI), the server's name
    /// and the thing's own name there. Asks the servers once when the name is not known.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) naming what is near, and the servers that are not connected; for a name that was
    /// another server's in the last listing.
    pub(crate) async fn route(&self, kind: Kind, name: &str) -> Result<Route> {
        let before = self.known(kind).await;
        let route = match Route::of(before.find(name)) {
            Some(found) => found,
            None => {
                // The cached lists do not have it.
                let failures = self.ask(kind, &CallOptions::default().cache(CacheMode::Refresh)).await;
                let now = self.snapshot(kind);
                Route::of(now.find(name)).ok_or_else(|| self.unknown(kind, name, &now, &failures))?
            }
        };
        lock(&self.0.owners).check(kind, name, &route.server)?;
        Ok(route)
    }

    fn unknown(&self, kind: Kind, name: &str, known: &Snapshot, unlisted: &BTreeMap<String, Error>) -> Error {
        let names: Vec<&str> = known.iter().map(|(_, public, _)| public).collect();
        // A prefix more or less is near.
        let mut near = names.clone();
        near.retain(|public| public.ends_with(name) || name.ends_with(public));
        if near.is_empty() {
            near = options::meant(name, &names);
        }
        let shown = |names: &[&str], most| names.iter().take(most).map(|name| format!("{name:?}")).collect::<Vec<_>>();
        let mut message = format!("no server of the group has a {} {name:?}", kind.word());
        match (near.as_slice(), names.as_slice()) {
            (_, []) => message.push_str(", or any other"),
            ([], all) => {
                message.push_str(&format!(", there are {}", shown(all, SHOWN).join(", ")));
                if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                    message.push_str(&format!(" and {more} more"));
                }
            }
            (near, _) => message.push_str(&format!(", did you mean {}?", shown(near, NEAR).join(" or "))),
        }
        for (server, error) in self.failures().iter().chain(unlisted) {
            message.push_str(&format!("; of server {server:?} nothing is known: {}", error.message()));
        }
        Error::new(ErrorKind::Misuse, message)
    }
}

/// Returns true if a server is asked for what it has of a kind. Many a server has tools and does not declare them.
fn is_asked(server: &Joined, kind: Kind) -> bool {
    kind == Kind::Tool || server.client.capabilities().declares(kind.capability())
}

/// The most names that are suggested.
const NEAR: usize = 3;
/// The most that are named when none is near.
const SHOWN: usize = 8;
