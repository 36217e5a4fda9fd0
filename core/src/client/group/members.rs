use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::joined::{Joined, Last, Lists, Watch};
use super::servers::Way;
use super::{MAX_SERVERS, Shared, lock};
use crate::call::CallOptions;
use crate::client::{Client, Events};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::{Kind, Opening};

/// The servers of a group, in their order.
#[derive(Default)]
pub(super) struct Members {
    list: Vec<Member>,
    last_attempt: u64,
}

struct Member {
    name: String,
    way: Way,
    state: State,
    last: Arc<Last>,
}

enum State {
    /// Never connected.
    Waiting,
    /// This attempt is at it.
    Connecting(u64),
    Connected(Joined),
    Failed(Error),
}

impl Member {
    fn joined(&self) -> Option<&Joined> {
        match &self.state {
            State::Connected(joined) if joined.watch.ended.get().is_none() => Some(joined),
            _ => None,
        }
    }

    /// The connection, ended or not.
    fn client(self) -> Option<Client> {
        match self.state {
            State::Connected(joined) => Some(joined.client),
            _ => None,
        }
    }

    fn failure(&self) -> Option<&Error> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Connected(joined) => joined.watch.ended.get(),
            State::Waiting | State::Connecting(_) => None,
        }
    }
}

impl Members {
    pub(super) fn add(&mut self, name: &str, way: Way) -> Result<()> {
        // An entry of a file without a name is a failure of its own.
        if name.is_empty() && way.is_ok() {
            return Err(Error::misuse("a server of a group needs a name"));
        }
        if self.list.iter().any(|member| member.name == name) {
            return Err(Error::misuse(format!("the group has a server {name:?} already")));
        }
        if self.list.len() >= MAX_SERVERS {
            return Err(Error::misuse(format!("a group has at most {MAX_SERVERS} servers")));
        }
        self.list.push(Member { name: name.to_owned(), way, state: State::Waiting, last: Arc::default() });
        Ok(())
    }

    pub(super) fn waiting(&self) -> Vec<String> {
        let waiting = self.list.iter().filter(|member| matches!(member.state, State::Waiting));
        waiting.map(|member| member.name.clone()).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.list.iter().map(|member| member.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<&Member> {
        self.list.iter().find(|member| member.name == name)
    }

    fn find_mut(&mut self, name: &str) -> Option<&mut Member> {
        self.list.iter_mut().find(|member| member.name == name)
    }

    pub(super) fn client(&self, name: &str) -> Option<Client> {
        Some(self.find(name)?.joined()?.client.clone())
    }

    /// Those that are connected.
    pub(super) fn joined(&self) -> Vec<(String, Joined)> {
        let joined = |member: &Member| Some((member.name.clone(), member.joined()?.clone()));
        self.list.iter().filter_map(joined).collect()
    }

    /// All in their order, with their connections and what they listed last.
    pub(super) fn all(&self) -> Vec<(String, Option<Joined>, Arc<Last>)> {
        let all = self.list.iter().map(|member| (member.name.clone(), member.joined().cloned(), member.last.clone()));
        all.collect()
    }

    pub(super) fn failures(&self) -> BTreeMap<String, Error> {
        let failed = |member: &Member| Some((member.name.clone(), member.failure()?.clone()));
        self.list.iter().filter_map(failed).collect()
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Option<Client>> {
        let at = self.list.iter().position(|member| member.name == name)?;
        Some(self.list.remove(at).client())
    }

    pub(super) fn take(&mut self) -> Vec<Client> {
        std::mem::take(&mut self.list).into_iter().filter_map(Member::client).collect()
    }
}

/// One attempt to connect. Dropped unfinished, it has failed.
pub(super) struct Attempt {
    group: Weak<Shared>,
    name: String,
    number: u64,
    way: Way,
    watch: Arc<Watch>,
    finished: bool,
}

/// Begins to connect; gives the old connection, too. An attempt that is under way is superseded.
pub(super) fn begin(group: &Arc<Shared>, name: &str) -> Result<(Attempt, Option<Client>)> {
    let mut members = lock(&group.members);
    members.last_attempt += 1;
    let number = members.last_attempt;
    let known = members.names().join(", ");
    let member = members
        .find_mut(name)
        .ok_or_else(|| Error::misuse(format!("the group has no server {name:?}, only: {known}")))?;
    let before = std::mem::replace(&mut member.state, State::Connecting(number));
    let (way, last) = (member.way.clone(), member.last.clone());
    drop(members);
    let old = match before {
        State::Connected(joined) => Some(joined.client),
        _ => None,
    };
    let (group, name) = (Arc::downgrade(group), name.to_owned());
    let watch = Arc::new(Watch { ended: OnceLock::new(), lists: Mutex::default(), last });
    Ok((Attempt { group, name, number, way, watch, finished: false }, old))
}

impl Attempt {
    /// Connects, and tells the server what the others were told.
    pub(super) async fn run(&mut self, group: &Shared) -> Result<Client> {
        let way = self.way.clone()?;
        let handlers = (group.handlers)(&self.name);
        let heard = handlers.heard().clone();
        let handlers = handlers.events(Watching { watch: self.watch.clone(), heard: heard.clone() });
        let (within, begun) = (group.options.connect_within()?, Instant::now());
        let mut options = group.options.client.clone();
        options.tap_of_server(&self.name);
        let client = way.connect(options, handlers, within).await?;
        let level = *lock(&group.log_level);
        if let Some(level) = level
            && client.capabilities().has("logging")
            && let Err(error) = client.set_log_level_with(level, &left(&client, within, begun)).await
        {
            heard.warning(&format!("server {:?}: its log level could not be set: {error}", self.name));
        }
        Ok(client)
    }

    /// Keeps the outcome, unless the server has left the group or another attempt has begun.
    pub(super) async fn finish(mut self, outcome: Result<Client>) -> Result<Client> {
        self.finished = true;
        let state = match &outcome {
            Ok(client) => State::Connected(Joined { client: client.clone(), watch: self.watch.clone() }),
            Err(error) => State::Failed(error.clone()),
        };
        if self.keep(state) {
            return outcome;
        }
        outcome?.close().await;
        Err(Error::closed(format!("server {:?} was removed or connected anew meanwhile", self.name)))
    }

    fn keep(&self, state: State) -> bool {
        let Some(group) = self.group.upgrade() else { return false };
        let mut members = lock(&group.members);
        let member = members.find_mut(&self.name);
        match member.filter(|member| matches!(member.state, State::Connecting(number) if number == self.number)) {
            Some(member) => {
                member.state = state;
                true
            }
            None => false,
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.finished {
            self.keep(State::Failed(Error::cancelled("connecting was cancelled")));
        }
    }
}

/// Returns the options of a request within the time that is left to connect.
fn left(client: &Client, within: Duration, begun: Instant) -> CallOptions {
    if within.is_zero() {
        return CallOptions::new();
    }
    let left = within.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
    CallOptions::new().timeout(client.connected.timeout.map_or(left, |timeout| timeout.min(left)))
}

/// Hears what concerns the group, and passes everything on.
struct Watching {
    watch: Arc<Watch>,
    heard: Arc<dyn Events>,
}

impl Events for Watching {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let mut lists = lock(&self.watch.lists);
        for kind in Kind::ALL.into_iter().filter(|kind| kind.list_changed() == method) {
            lists.changed(kind);
        }
        drop(lists);
        self.heard.notification(method, params);
    }

    fn stderr(&self, line: &str) {
        self.heard.stderr(line);
    }

    fn warning(&self, message: &str) {
        self.heard.warning(message);
    }

    fn reopened(&self, opening: &Opening) {
        let mut lists = lock(&self.watch.lists);
        Kind::ALL.into_iter().for_each(|kind| lists.changed(kind));
        drop(lists);
        self.heard.reopened(opening);
    }

    fn closed(&self, reason: &Error) {
        let _ = self.watch.ended.set(reason.clone());
        // Nothing of an ended connection is kept but the reason, and what counts for names.
        *lock(&self.watch.lists) = Lists::default();
        self.heard.closed(reason);
    }
}
