#[cfg(feature = "http")]
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::{Era, Revision};
use crate::error::shortened;
use crate::jsonrpc::RawJson;
use crate::model::TASKS_EXTENSION;
use crate::protocol::revision::object;

/// Sides that may send a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// Only the client.
    ClientToServer,
    /// Only the server.
    ServerToClient,
    /// Either side.
    Both,
}

/// One method of the protocol: who sends it, since when, until when, and what it needs.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Sides that may send it.
    pub direction: Direction,
    /// First revision that has it.
    pub since: Revision,
    /// Last revision that has it.
    pub until: Revision,
    /// It wants no answer.
    pub notification: bool,
    /// The capability its receiver must have declared (a server's for client→server), of a notification its sender; a
    /// dotted path.
    pub capability: Option<&'static str>,
    /// The member of `params` that says what the request is about; `Mcp-Name` mirrors it where there is that header.
    pub name_member: Option<&'static str>,
    /// Its modern result carries `ttlMs` and `cacheScope`.
    pub cacheable: bool,
    /// Its modern result may be `input_required`.
    pub input_required: bool,
    /// The capability, a dotted path, that its receiver declares to run it as a task.
    pub task: Option<&'static str>,
    /// To do it twice is to do it once, so that it may be repeated when nobody knows whether it was done.
    pub idempotent: bool,
    /// The extension that it belongs to: both sides have to declare that.
    pub extension: Option<&'static str>,
}

const fn request(name: &'static str, direction: Direction) -> Method {
    Method {
        name,
        direction,
        since: Revision::V2024_11_05,
        until: Revision::V2026_07_28,
        notification: false,
        capability: None,
        name_member: None,
        cacheable: false,
        input_required: false,
        task: None,
        idempotent: false,
        extension: None,
    }
}

const fn to_server(name: &'static str, capability: &'static str) -> Method {
    Method { capability: Some(capability), ..request(name, Direction::ClientToServer) }
}

const fn list(name: &'static str, capability: &'static str) -> Method {
    Method { cacheable: true, ..idempotent(to_server(name, capability)) }
}

const fn to_client(name: &'static str, capability: &'static str) -> Method {
    Method { capability: Some(capability), until: Revision::NEWEST_LEGACY, ..request(name, Direction::ServerToClient) }
}

const fn of_tasks(name: &'static str, capability: &'static str) -> Method {
    Method {
        since: Revision::V2025_11_25,
        until: Revision::V2025_11_25,
        capability: Some(capability),
        ..request(name, Direction::Both)
    }
}

const fn of_task_extension(name: &'static str) -> Method {
    Method {
        since: Revision::V2026_07_28,
        extension: Some(TASKS_EXTENSION),
        name_member: Some("taskId"),
        ..request(name, Direction::ClientToServer)
    }
}

const fn task(method: Method, capability: &'static str) -> Method {
    Method { task: Some(capability), ..method }
}

const fn notification(name: &'static str, direction: Direction) -> Method {
    Method { notification: true, ..request(name, direction) }
}

const fn idempotent(method: Method) -> Method {
    Method { idempotent: true, ..method }
}

const fn until_legacy(method: Method) -> Method {
    Method { until: Revision::NEWEST_LEGACY, ..method }
}

const fn since(revision: Revision, method: Method) -> Method {
    Method { since: revision, ..method }
}

use Direction::{Both, ClientToServer, ServerToClient};

static ROWS: [Method; 34] = [
    // lifecycle
    until_legacy(request("initialize", ClientToServer)),
    until_legacy(notification("notifications/initialized", ClientToServer)),
    since(Revision::V2026_07_28, Method { cacheable: true, ..idempotent(request("server/discover", ClientToServer)) }),
    until_legacy(idempotent(request("ping", Both))),
    // tools
    list("tools/list", "tools"),
    task(
        Method { name_member: Some("name"), input_required: true, ..to_server("tools/call", "tools") },
        "tasks.requests.tools.call",
    ),
    // resources
    list("resources/list", "resources"),
    list("resources/templates/list", "resources"),
    Method { name_member: Some("uri"), input_required: true, ..list("resources/read", "resources") },
    until_legacy(Method { name_member: Some("uri"), ..idempotent(to_server("resources/subscribe", "resources")) }),
    until_legacy(Method { name_member: Some("uri"), ..idempotent(to_server("resources/unsubscribe", "resources")) }),
    // prompts
    list("prompts/list", "prompts"),
    Method { name_member: Some("name"), input_required: true, ..idempotent(to_server("prompts/get", "prompts")) },
    // utilities
    idempotent(to_server("completion/complete", "completions")),
    until_legacy(idempotent(to_server("logging/setLevel", "logging"))),
    since(Revision::V2026_07_28, request("subscriptions/listen", ClientToServer)),
    // server to client; modern carries these inside `inputRequests`
    task(to_client("sampling/createMessage", "sampling"), "tasks.requests.sampling.createMessage"),
    to_client("roots/list", "roots"),
    task(
        since(Revision::V2025_06_18, to_client("elicitation/create", "elicitation")),
        "tasks.requests.elicitation.create",
    ),
    // tasks, experimental
    idempotent(of_tasks("tasks/get", "tasks")),
    idempotent(of_tasks("tasks/result", "tasks")),
    idempotent(of_tasks("tasks/list", "tasks.list")),
    of_tasks("tasks/cancel", "tasks.cancel"),
    // notifications
    notification("notifications/cancelled", Both),
    notification("notifications/progress", Both),
    notification("notifications/message", ServerToClient),
    notification("notifications/tools/list_changed", ServerToClient),
    notification("notifications/prompts/list_changed", ServerToClient),
    notification("notifications/resources/list_changed", ServerToClient),
    notification("notifications/resources/updated", ServerToClient),
    until_legacy(Method {
        capability: Some("roots.listChanged"),
        ..notification("notifications/roots/list_changed", ClientToServer)
    }),
    Method {
        since: Revision::V2025_11_25,
        until: Revision::V2025_11_25,
        ..notification("notifications/elicitation/complete", ServerToClient)
    },
    Method {
        since: Revision::V2025_11_25,
        until: Revision::V2025_11_25,
        ..notification("notifications/tasks/status", Both)
    },
    since(Revision::V2026_07_28, notification("notifications/subscriptions/acknowledged", ServerToClient)),
];

/// Methods of extensions; some have the names of methods of older revisions.
static EXTENSION_ROWS: [Method; 4] = [
    idempotent(of_task_extension("tasks/get")),
    idempotent(of_task_extension("tasks/update")),
    idempotent(of_task_extension("tasks/cancel")),
    Method {
        since: Revision::V2026_07_28,
        extension: Some(TASKS_EXTENSION),
        ..notification("notifications/tasks", ServerToClient)
    },
];

/// The most requests of extensions of one's own that a process may have: their rows stay for as long as it lives.
const MAX_DEFINED: usize = 1000;
/// The most methods that are none of the protocol's and that a process passes on. Their rows stay as well.
const MAX_FOREIGN: usize = 1000;
/// The longest name of one, in bytes.
const MAX_NAME: usize = 200;

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        let name = shortened(name, 60);
        return Err(format!("{name:?}: expected the name of a method, such as \"com.example/search\""));
    }
    if name.starts_with("rpc.") || ROWS.iter().chain(&EXTENSION_ROWS).any(|row| row.name == name) {
        return Err(format!("{name:?}: the name is the protocol's"));
    }
    Ok(())
}

impl Method {
    /// The row of a request of an extension of one's own, in every revision. The same one again is the one that is there.
    ///
    /// # Errors
    /// The reason why it cannot be called so.
    pub(crate) fn define(extension: &str, name: &str, idempotent: bool) -> Result<&'static Self, String> {
        static DEFINED: Mutex<Vec<&'static Method>> = Mutex::new(Vec::new());
        check_name(name)?;
        if name.starts_with("notifications/") {
            return Err(format!("{name:?}: that is the name of a notification, expected one of a request"));
        }
        let mut defined = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |row: &&&Self| {
            row.name == name && row.idempotent == idempotent && row.extension.is_some_and(|id| id == extension)
        };
        if let Some(row) = defined.iter().find(same) {
            return Ok(row);
        }
        if defined.len() >= MAX_DEFINED {
            return Err(format!("{name:?}: there are {MAX_DEFINED} requests of extensions already"));
        }
        let (name, extension): (&'static str, &'static str) = (name.to_owned().leak(), extension.to_owned().leak());
        let row = Self { extension: Some(extension), idempotent, ..request(name, ClientToServer) };
        let row: &'static Self = Box::leak(Box::new(row));
        defined.push(row);
        Ok(row)
    }

    /// The row of a method outside the protocol, for callers that pass it on: in every revision, from either side.
    /// `None`: the protocol has it, it is no name, or the process has passed on as many others as it may.
    pub(crate) fn foreign(name: &str) -> Option<&'static Self> {
        static FOREIGN: Mutex<Vec<&'static Method>> = Mutex::new(Vec::new());
        check_name(name).ok()?;
        let mut foreign = FOREIGN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = foreign.iter().find(|row| row.name == name) {
            return Some(row);
        }
        if foreign.len() >= MAX_FOREIGN {
            return None;
        }
        let row: &'static Self = Box::leak(Box::new(request(name.to_owned().leak(), Both)));
        foreign.push(row);
        Some(row)
    }

    /// Checks that a notification of an extension may be called so.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(crate) fn check_notification(name: &str) -> Result<(), String> {
        check_name(name)?;
        if !name.starts_with("notifications/") {
            return Err(format!(
                "{name:?}: expected the name of a notification, such as \"notifications/com.example/found\""
            ));
        }
        Ok(())
    }

    /// The row of `name`, whatever the revision.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        ROWS.iter().chain(&EXTENSION_ROWS).find(|m| m.name == name)
    }

    /// The row that `name` has in this revision.
    #[must_use]
    pub fn find_in(revision: Revision, name: &str) -> Option<&'static Self> {
        ROWS.iter().chain(&EXTENSION_ROWS).find(|m| m.name == name && m.exists_in(revision))
    }

    /// Returns true if this is what servers ask of clients: by requests, or inside of results.
    #[must_use]
    pub fn is_question(&self) -> bool {
        matches!(self.direction, ServerToClient) && !self.notification
    }

    /// Every method of every revision, those of extensions left out.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &ROWS
    }

    /// Returns true if `revision` has this method.
    #[must_use]
    pub fn exists_in(&self, revision: Revision) -> bool {
        (self.since..=self.until).contains(&revision)
    }

    /// Returns the name or URI that a request with these parameters is about.
    #[cfg(feature = "http")]
    pub(crate) fn named_in<'a>(
        &self,
        name: Option<&'a RawJson>,
        uri: Option<&'a RawJson>,
        params: Option<&RawJson>,
    ) -> Option<Cow<'a, RawJson>> {
        match self.name_member? {
            "uri" => uri.map(Cow::Borrowed),
            "name" => name.map(Cow::Borrowed),
            _ => self.name_of(None, None, params).map(Cow::Owned),
        }
    }

    /// Reads the name or URI that a request is about. `name` and `uri` are known already.
    pub(crate) fn name_of(
        &self,
        name: Option<RawJson>,
        uri: Option<RawJson>,
        params: Option<&RawJson>,
    ) -> Option<RawJson> {
        match self.name_member? {
            "uri" => uri,
            "name" => name,
            other => {
                let members = object::members(params?.get());
                members
                    .into_iter()
                    .find(|(member, _)| member == other)
                    .map(|(_, value)| params.map(|p| p.slice(value)))?
            }
        }
    }

    /// Returns the method that replaces this one in a revision that has dropped it, because any answer to it says as
    /// much.
    #[must_use]
    pub fn stand_in(&self, revision: Revision) -> Option<&'static Self> {
        let other = if self.name == "ping" { Self::find("server/discover")? } else { return None };
        other.exists_in(revision).then_some(other)
    }

    /// The member of `params` that `Mcp-Name` mirrors.
    #[must_use]
    pub fn header_member(&self) -> Option<&'static str> {
        self.name_member.filter(|_| self.until.era() == Era::Modern)
    }

    /// Returns true if a client may send it.
    #[must_use]
    pub fn from_client(&self) -> bool {
        matches!(self.direction, ClientToServer | Both)
    }

    /// Returns true if a client may notify it. In modern that is one thing, and over HTTP, where a stream is closed
    /// instead, none.
    pub(crate) fn is_told_by_client(&self, revision: Revision, transport: &str) -> bool {
        let told = match revision.era() {
            Era::Legacy => self.from_client(),
            Era::Modern => self.name == "notifications/cancelled" && transport != "http",
        };
        told && self.notification && self.exists_in(revision)
    }

    /// Returns true if a server may send it.
    #[must_use]
    pub fn from_server(&self) -> bool {
        matches!(self.direction, ServerToClient | Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_modern_revisions_notify_one_thing() {
        let told = |revision: Revision, transport| {
            let all = ROWS.iter().chain(&EXTENSION_ROWS).filter(|row| row.is_told_by_client(revision, transport));
            all.map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(told(Revision::NEWEST, "stdio"), ["notifications/cancelled"]);
        assert!(told(Revision::NEWEST, "http").is_empty());
        let legacy = told(Revision::V2025_06_18, "http");
        let all = ["initialized", "cancelled", "progress", "roots/list_changed"];
        assert_eq!(legacy, all.map(|name| format!("notifications/{name}")));
    }
}
