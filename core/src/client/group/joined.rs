//! A server of a group that is connected.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::lock;
use crate::call::CallOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::Kind;

use crate::jsonrpc::code;

use std::sync::OnceLock;

use crate::client::Client;

/// One connection of a server.
#[derive(Clone)]
pub(super) struct Joined {
    pub(super) client: Client,
    pub(super) watch: Arc<Watch>,
}

impl Joined {
    /// Lists what this server has of a kind and keeps it.
    pub(super) async fn list(&self, kind: Kind, options: &CallOptions) -> Result<()> {
        let changes = lock(&self.watch.lists).begin(kind);
        let outcome = self.client.pages(kind, options).all().await;
        let listed = lock(&self.watch.lists).keep(kind, changes, outcome)?;
        self.watch.last.keep(kind, listed);
        Ok(())
    }
}

/// State of one connection, as its notifications tell it.
pub(super) struct Watch {
    pub(super) ended: OnceLock<Error>,
    pub(super) lists: Mutex<Lists>,
    pub(super) last: Arc<Last>,
}

/// Last lists of a server, by kind and over all of its connections: so that the names of others do not depend on
/// whether it answers.
#[derive(Default)]
pub(super) struct Last(Mutex<[Definitions; Kind::ALL.len()]>);

impl Last {
    pub(super) fn keep(&self, kind: Kind, listed: Definitions) {
        lock(&self.0)[kind as usize] = listed;
    }

    pub(super) fn of(&self, kind: Kind) -> Definitions {
        lock(&self.0)[kind as usize].clone()
    }
}

/// Lists of one connection's server, by kind.
#[derive(Default)]
pub(super) struct Lists([List; Kind::ALL.len()]);

impl Lists {
    pub(super) fn of(&mut self, kind: Kind) -> &mut List {
        &mut self.0[kind as usize]
    }

    pub(super) fn changed(&mut self, kind: Kind) {
        self.of(kind).changes += 1;
    }

    pub(super) fn begin(&mut self, kind: Kind) -> u64 {
        self.of(kind).changes
    }

    /// Keeps what was listed after so many changes, and gives it back.
    pub(super) fn keep(
        &mut self,
        kind: Kind,
        changes: u64,
        outcome: Result<Vec<Map<String, Value>>>,
    ) -> Result<Definitions> {
        let listed = match outcome {
            Ok(entries) => Ok(entries.into()),
            // Servers with resources need not have templates.
            Err(error) if error.code() == Some(code::METHOD_NOT_FOUND) || error.kind() == ErrorKind::Unsupported => {
                Ok(Definitions::default())
            }
            Err(error) => Err(error),
        };
        self.of(kind).known = Some((changes, listed.clone()));
        listed
    }

    pub(super) fn is_current(&mut self, kind: Kind) -> bool {
        let list = self.of(kind);
        list.known.as_ref().is_some_and(|(changes, _)| *changes == list.changes)
    }

    pub(super) fn known(&mut self, kind: Kind) -> Option<Definitions> {
        self.of(kind).known.as_ref()?.1.as_ref().ok().cloned()
    }
}

#[derive(Default)]
pub(super) struct List {
    /// Number of changes that the server has announced.
    pub(super) changes: u64,
    /// The last list, and the number of changes until then.
    pub(super) known: Option<(u64, Result<Definitions>)>,
}

pub(super) type Definitions = Arc<[Map<String, Value>]>;
