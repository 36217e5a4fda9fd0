//! Order of a recorded connection: of each message of the client, everything that the server said to it.

use serde_json::{Map, Value};

use super::Cassette;
use super::likeness::is_same;
use crate::jsonrpc::{Id, Message, RawJson};
use crate::model::meta::{PROGRESS_TOKEN, SUBSCRIPTION_ID};

/// Requests that open a connection.
pub(super) const OPENING: [&str; 2] = ["initialize", "server/discover"];
/// The request whose answer comes at the end of everything that the server tells.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// The first that the server says on such a stream.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Members of parameters that name what a request is about: an answer for another one is none.
const IDENTITY: [&str; 6] = ["name", "uri", "ref", "taskId", "cursor", "requestState"];

/// A message of the client, and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Track {
    pub(super) line: usize,
    pub(super) method: String,
    /// Its parameters without `_meta`.
    pub(super) params: Value,
    /// The id of a request; a notification has none.
    pub(super) id: Option<Id>,
    pub(super) token: Option<Value>,
    pub(super) steps: Vec<Step>,
    /// The client took it back.
    pub(super) is_cancelled: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The server says this.
    Say(Message),
    /// The client has answered the server's request of this id.
    Await(Id),
}

impl Track {
    /// The answer to the request, if it got one.
    pub(super) fn answer(&self) -> Option<&Message> {
        self.steps.iter().find_map(|step| match step {
            Step::Say(message @ (Message::Response { .. } | Message::Error { .. })) => Some(message),
            _ => None,
        })
    }

    /// Returns true if it is about the same thing as other parameters.
    pub(super) fn is_about(&self, params: &Value) -> bool {
        IDENTITY.iter().all(|name| match (self.params.get(name), params.get(name)) {
            (None, None) => true,
            (Some(a), Some(b)) => is_same(a, b),
            _ => false,
        })
    }

    pub(super) fn is_opening(&self) -> bool {
        OPENING.contains(&self.method.as_str())
    }

    /// A name of it for people: method, and the name or URI of what it is about.
    pub(super) fn title(&self) -> String {
        let about = ["name", "uri", "taskId"].iter().find_map(|name| self.params.get(name)?.as_str());
        match about {
            Some(about) => format!("{} {}", self.method, crate::error::shortened(about, 80)),
            None => self.method.clone(),
        }
    }
}

/// Parameters as they are compared. No arguments are the same as empty ones: clients of some languages send these.
pub(super) fn compared(params: Option<&RawJson>) -> Value {
    let mut value = params.and_then(|params| params.to().ok()).unwrap_or_else(|| Value::Object(Map::new()));
    if let Value::Object(members) = &mut value {
        members.shift_remove("_meta");
        if members.get("arguments").and_then(Value::as_object).is_some_and(Map::is_empty) {
            members.shift_remove("arguments");
        }
    }
    value
}

fn member(params: Option<&RawJson>, path: &[&str]) -> Option<Value> {
    let value: Value = params?.to().ok()?;
    path.iter().try_fold(&value, |value, name| value.get(name)).cloned()
}

/// The tracks of a cassette, in the order of the client's messages.
pub(super) fn tracks(cassette: &Cassette) -> Vec<Track> {
    let mut tracks: Vec<Track> = Vec::new();
    // Requests of the client without an answer so far, with their streams, and those of the server, with their tracks.
    let mut open: Vec<(Id, usize, String)> = Vec::new();
    let mut asked: Vec<(Id, usize)> = Vec::new();
    let mut last = None;
    for (line, by_client, on, message) in cassette.messages() {
        if by_client {
            let (method, params, id) = match message {
                Message::Request { id, method, params } => (method, params, Some(id)),
                Message::Notification { method, params } => (method, params, None),
                Message::Response { id, .. } | Message::Error { id: Some(id), .. } => {
                    if let Some(at) = asked.iter().position(|(known, _)| *known == id) {
                        let (id, track) = asked.swap_remove(at);
                        tracks[track].steps.push(Step::Await(id));
                        last = Some(track);
                    }
                    continue;
                }
                Message::Error { id: None, .. } => continue,
            };
            if method == "notifications/cancelled"
                && let Some(id) = member(params.as_ref(), &["requestId"]).and_then(|id| Id::read(&id.to_string()))
                && let Some(at) = open.iter().rposition(|(known, ..)| *known == id)
            {
                tracks[open.remove(at).1].is_cancelled = true;
            }
            if let Some(id) = &id {
                open.push((id.clone(), tracks.len(), on.to_owned()));
            }
            last = Some(tracks.len());
            let token = member(params.as_ref(), &["_meta", PROGRESS_TOKEN]);
            let params = compared(params.as_ref());
            tracks.push(Track { line, method, params, id, token, steps: Vec::new(), is_cancelled: false });
            continue;
        }
        let own = match &message {
            Message::Response { id, .. } | Message::Error { id: Some(id), .. } => {
                let Some(at) = open.iter().rposition(|(known, ..)| known == id) else { continue };
                Some(open.remove(at).1)
            }
            Message::Error { id: None, .. } => continue,
            Message::Request { .. } | Message::Notification { .. } => None,
        };
        let owner =
            own.or_else(|| of_token(&tracks, &message)).or_else(|| acknowledged(&open, &message)).or_else(|| {
                let mut working = open.iter().rev().filter(|(_, at, _)| tracks[*at].method != LISTEN);
                let is_stream = on.contains(':');
                let on_stream = working.clone().find(|(.., stream)| is_stream && stream == on);
                let (_, at, _) = on_stream.or_else(|| working.next())?;
                Some(*at)
            });
        let Some(owner) = owner.or(last) else { continue };
        if let Message::Request { id, .. } = &message {
            asked.push((id.clone(), owner));
        }
        tracks[owner].steps.push(Step::Say(message));
    }
    tracks
}

/// The track whose progress a notification tells.
fn of_token(tracks: &[Track], message: &Message) -> Option<usize> {
    let Message::Notification { params, .. } = message else { return None };
    let token = member(params.as_ref(), &[PROGRESS_TOKEN])?;
    tracks.iter().rposition(|track| track.token.as_ref() == Some(&token))
}

/// The track of the listen stream that a notification acknowledges: other requests may be sent before that comes.
fn acknowledged(open: &[(Id, usize, String)], message: &Message) -> Option<usize> {
    let Message::Notification { method, params } = message else { return None };
    let id = member(params.as_ref(), &["_meta", SUBSCRIPTION_ID]).filter(|_| method == ACKNOWLEDGED)?;
    let id = Id::read(&id.to_string())?;
    open.iter().find(|(known, ..)| *known == id).map(|(_, track, _)| *track)
}

/// The ids that the members of a notification name, by the place where they stand.
pub(super) const NAMED: [&[&str]; 2] = [&["requestId"], &["_meta", SUBSCRIPTION_ID]];
