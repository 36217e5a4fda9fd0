//! A cassette as a server.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Cassette;
use super::file::decoded;
use super::likeness::{first_difference, is_same, score};
use super::tracks::{LISTEN, NAMED, OPENING, Step, Track, compared, tracks};
use crate::error::shortened;
use crate::jsonrpc::{ErrorObject, Id, Message, RawJson, code};
use crate::model::meta::{PROGRESS_TOKEN, SUBSCRIPTION_ID};

/// Answers the messages of a client with what the server of a cassette has answered, without waiting. One player is one
/// connection.
///
/// A request gets the answer that the same request got: the same method and parameters, `_meta` aside, in any order of
/// members. Several answers come one after the other, and the last one again. If there is none, the best match answers:
/// of the same method and about the same name, URI, task or page, the one with the most in common. A *strict* player gives each
/// answer once and has no best match. What the server asked and told meanwhile comes, too, in its place.
pub struct Player {
    name: Arc<str>,
    is_strict: bool,
    tracks: Vec<Track>,
    uses: Vec<usize>,
    playing: Vec<Playing>,
    /// Ids of the recorded requests as they are now.
    ids: HashMap<Id, Id>,
    /// Questions of the server so far.
    asked: i64,
}

/// A track that goes on.
struct Playing {
    track: usize,
    at: usize,
    /// The client's request; `None`: a notification, or a request that is answered or cancelled.
    live: Option<Id>,
    token: Option<Value>,
    /// Questions that were asked: the recorded id, that of now, and true if it was answered.
    asked: Vec<(Id, Id, bool)>,
}

impl Player {
    /// Plays a cassette from the beginning.
    #[must_use]
    pub fn new(cassette: &Cassette, is_strict: bool) -> Self {
        let tracks = tracks(cassette);
        let uses = vec![0; tracks.len()];
        let name = cassette.name().into();
        Self { name, is_strict, tracks, uses, playing: Vec::new(), ids: HashMap::new(), asked: 0 }
    }

    /// Takes a message of the client, or a batch, and returns the messages that the server sends next, a line each without
    /// the break. Text that is no message is not answered.
    pub fn hear(&mut self, frame: &Bytes) -> Vec<Bytes> {
        let mut out = Vec::new();
        for message in decoded(&RawJson::trusted(frame.clone())) {
            match message {
                Message::Request { id, method, params } => self.request(&id, &method, params.as_ref(), &mut out),
                Message::Notification { method, params } => self.notification(&method, params.as_ref(), &mut out),
                Message::Response { id, .. } | Message::Error { id: Some(id), .. } => self.answer(&id, &mut out),
                Message::Error { id: None, .. } => {}
            }
        }
        out
    }

    /// Requests that nobody has made, each as its line and a name for people: `tools/call add`. Those that open a connection
    /// or a listen stream, and `ping`, are not among them.
    #[must_use]
    pub fn unplayed(&self) -> Vec<(usize, String)> {
        let unused = self.tracks.iter().zip(&self.uses).filter(|(track, uses)| {
            **uses == 0
                && track.id.is_some()
                && !track.is_opening()
                && !track.is_cancelled
                && ![LISTEN, "ping"].contains(&track.method.as_str())
        });
        unused.map(|(track, _)| (track.line, track.title())).collect()
    }

    fn request(&mut self, id: &Id, method: &str, params: Option<&RawJson>, out: &mut Vec<Bytes>) {
        let live = compared(params);
        if method == LISTEN && self.listening().is_none() {
            // Another client of the same server may not have listened.
            let filter = live.get("notifications").cloned().unwrap_or_else(|| json!({}));
            let params = json!({"_meta": {SUBSCRIPTION_ID: id}, "notifications": filter});
            let acknowledged = "notifications/subscriptions/acknowledged";
            return out.push(crate::jsonrpc::encode_notification(acknowledged, Some(&RawJson::from_value(&params))));
        }
        match self.find(method, &live) {
            Ok(at) => {
                let token = params.and_then(|params| {
                    let params: Value = params.to().ok()?;
                    params.get("_meta")?.get(PROGRESS_TOKEN).cloned()
                });
                if let Some(recorded) = &self.tracks[at].id {
                    self.ids.insert(recorded.clone(), id.clone());
                }
                self.play(at, Some(id.clone()), token, out);
            }
            Err(error) => out.push(crate::jsonrpc::encode_error(Some(id), &error, false)),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawJson>, out: &mut Vec<Bytes>) {
        let live = compared(params);
        if method == "notifications/cancelled" {
            let id = live.get("requestId").and_then(|id| Id::read(&id.to_string()));
            self.playing.retain(|playing| id.is_none() || playing.live != id);
        }
        let unused = |at: &usize| self.uses[*at] == 0;
        let told = self.tracks.iter().enumerate().filter(|(_, track)| track.id.is_none() && track.method == method);
        let told: Vec<usize> = told.map(|(at, _)| at).filter(unused).collect();
        let same = told.iter().find(|at| is_same(&self.tracks[**at].params, &live));
        if let Some(at) = same.or_else(|| told.first()).copied() {
            self.play(at, None, None, out);
        }
    }

    /// The client has answered a question.
    fn answer(&mut self, id: &Id, out: &mut Vec<Bytes>) {
        let is_asked = |playing: &Playing| playing.asked.iter().any(|(_, live, _)| live == id);
        let Some(at) = self.playing.iter().position(is_asked) else { return };
        let mut playing = self.playing.swap_remove(at);
        playing.asked.iter_mut().filter(|(_, live, _)| live == id).for_each(|(.., is_answered)| *is_answered = true);
        self.go_on(playing, out);
    }

    fn play(&mut self, track: usize, live: Option<Id>, token: Option<Value>, out: &mut Vec<Bytes>) {
        self.uses[track] += 1;
        self.pass_polls(track);
        self.go_on(Playing { track, at: 0, live, token, asked: Vec::new() }, out);
    }

    /// A client that asks less often than the recorded one how its task is does not get what was said of it before its
    /// answer.
    fn pass_polls(&mut self, answered: usize) {
        let Track { method, params, .. } = &self.tracks[answered];
        if method != "tasks/update" && method != "tasks/cancel" {
            return;
        }
        for (track, uses) in self.tracks[..answered].iter().zip(&mut self.uses) {
            if track.method == "tasks/get" && track.params.get("taskId") == params.get("taskId") {
                *uses = (*uses).max(1);
            }
        }
    }

    fn go_on(&mut self, mut playing: Playing, out: &mut Vec<Bytes>) {
        while let Some(step) = self.tracks[playing.track].steps.get(playing.at) {
            match step {
                Step::Await(id) => {
                    let waits = playing.asked.iter().any(|(asked, _, is_answered)| asked == id && !is_answered);
                    if waits {
                        return self.playing.push(playing);
                    }
                }
                Step::Say(message) => match message.clone() {
                    Message::Request { id: recorded, method, params } => {
                        self.asked += 1;
                        // Those of a server count for themselves.
                        let live = Id::Number(self.asked);
                        out.push(crate::jsonrpc::encode_request(&live, &method, params.as_ref()));
                        playing.asked.push((recorded, live, false));
                    }
                    Message::Notification { method, params } => {
                        let params = params.map(|params| self.renamed(&params, &playing));
                        let Some(params) = params.map_or(Some(None), |params| params.map(Some)) else {
                            playing.at += 1;
                            continue;
                        };
                        out.push(crate::jsonrpc::encode_notification(&method, params.as_ref()));
                    }
                    Message::Response { result, .. } => {
                        if let Some(id) = playing.live.take() {
                            out.push(crate::jsonrpc::encode_result(&id, &self.of_listening(result)));
                        }
                    }
                    Message::Error { error, .. } => {
                        if let Some(id) = playing.live.take() {
                            out.push(crate::jsonrpc::encode_error(Some(&id), &error, false));
                        }
                    }
                },
            }
            playing.at += 1;
        }
        let track = &self.tracks[playing.track];
        if let Some(id) = playing.live.clone()
            && !track.is_cancelled
            && track.method != LISTEN
        {
            // A server that left the first question open knew only older ones.
            let code = if track.is_opening() { code::METHOD_NOT_FOUND } else { code::INTERNAL_ERROR };
            let (title, line) = (track.title(), track.line);
            let message = format!("cassette {:?}, line {line}: {title} was never answered", self.name);
            out.push(crate::jsonrpc::encode_error(Some(&id), &ErrorObject { code, message, data: None }, false));
            playing.live = None;
        }
        // Questions of a track that is over may still be answered, without consequences.
        if playing.live.is_some() {
            self.playing.push(playing);
        }
    }

    /// A notification's parameters with the ids and the token of now; `None` for a stream that this client has not opened.
    fn renamed(&self, params: &RawJson, playing: &Playing) -> Option<RawJson> {
        let Ok(mut value) = params.to::<Value>() else { return Some(params.clone()) };
        let stream = value.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION_ID));
        let stream = stream.and_then(|id| Id::read(&id.to_string()));
        if stream.is_some_and(|id| !self.ids.contains_key(&id)) {
            return None;
        }
        let mut is_other = false;
        if let (Some(place), Some(token)) = (value.get_mut(PROGRESS_TOKEN), &playing.token)
            && Some(&*place) == self.tracks[playing.track].token.as_ref()
            && *place != *token
        {
            *place = token.clone();
            is_other = true;
        }
        is_other |= self.rename_ids(&mut value);
        Some(if is_other { RawJson::from_value(&value) } else { params.clone() })
    }

    fn of_listening(&self, result: RawJson) -> RawJson {
        let Ok(mut value) = result.to::<Value>() else { return result };
        if self.rename_ids(&mut value) { RawJson::from_value(&value) } else { result }
    }

    fn rename_ids(&self, value: &mut Value) -> bool {
        let mut is_other = false;
        for path in NAMED {
            let place = path.iter().try_fold(&mut *value, |value, name| value.get_mut(name));
            let Some(place) = place else { continue };
            let known = Id::read(&place.to_string()).and_then(|id| self.ids.get(&id));
            if let Some(known) = known.map(|id| serde_json::to_value(id).unwrap_or_default())
                && known != *place
            {
                *place = known;
                is_other = true;
            }
        }
        is_other
    }

    /// The recorded listen stream that is next.
    fn listening(&self) -> Option<usize> {
        let mut all = self.tracks.iter().enumerate().filter(|(_, track)| track.method == LISTEN);
        all.find(|(at, _)| self.uses[*at] == 0).map(|(at, _)| at)
    }

    /// The track that answers a request.
    fn find(&self, method: &str, live: &Value) -> Result<usize, ErrorObject> {
        let of_method: Vec<usize> = (0..self.tracks.len())
            .filter(|at| self.tracks[*at].id.is_some() && self.tracks[*at].method == method)
            .collect();
        let is_unused = |at: &usize| self.uses[*at] == 0;
        if let Some(at) = self.listening().filter(|_| method == LISTEN) {
            return Ok(at);
        }
        // The opening of a connection says who the client is, and a ping says nothing.
        if OPENING.contains(&method) || method == "ping" {
            let found = of_method.iter().copied().find(is_unused).or_else(|| of_method.last().copied());
            return match found {
                Some(at) => Ok(at),
                None if method == "ping" => Err(self.missing(method, code::METHOD_NOT_FOUND, "it is not in it")),
                None => Err(self.missing(method, code::METHOD_NOT_FOUND, "it does not open with it")),
            };
        }
        let same: Vec<usize> = of_method.iter().copied().filter(|at| is_same(&self.tracks[*at].params, live)).collect();
        if let Some(at) = same.iter().copied().find(is_unused) {
            return Ok(at);
        }
        if of_method.is_empty() {
            return Err(self.missing(method, code::METHOD_NOT_FOUND, "no such request was recorded"));
        }
        if self.is_strict {
            let why = match same.last() {
                Some(at) => {
                    let line = self.tracks[*at].line;
                    format!("it was recorded {} times, at last on line {line}, and is asked once more", same.len())
                }
                None => self.nearest(&of_method, live),
            };
            return Err(self.missing(method, code::INVALID_PARAMS, &why));
        }
        if let Some(at) = same.last() {
            return Ok(*at);
        }
        let about = of_method.iter().copied().filter(|at| self.tracks[*at].is_about(live));
        // The first one of the best; unused ones before others.
        let best = about.max_by(|a, b| {
            let rank = |at: &usize| (share(&self.tracks[*at].params, live), is_unused(at), usize::MAX - at);
            rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        best.ok_or_else(|| self.missing(method, code::INVALID_PARAMS, &self.nearest(&of_method, live)))
    }

    fn nearest(&self, of_method: &[usize], live: &Value) -> String {
        let nearest = of_method.iter().max_by(|a, b| {
            let share = |at: &&usize| share(&self.tracks[**at].params, live);
            share(a).total_cmp(&share(b))
        });
        let Some(track) = nearest.map(|at| &self.tracks[*at]) else { return String::new() };
        let shown = |value: Option<&Value>| {
            value.map_or_else(|| "nothing".to_owned(), |v| shortened(&v.to_string(), 60).into_owned())
        };
        match first_difference(&track.params, live) {
            Some((path, recorded, asked)) => {
                let (line, recorded, asked) = (track.line, shown(recorded), shown(asked));
                format!("the nearest is on line {line}, where {path:?} is {recorded}; asked was {asked}")
            }
            None => format!("the nearest is on line {}", track.line),
        }
    }

    fn missing(&self, method: &str, code: i64, why: &str) -> ErrorObject {
        let message = format!("cassette {:?}: no answer to {method}: {why}; record it anew", self.name);
        ErrorObject { code, message, data: None }
    }
}

#[expect(clippy::cast_precision_loss, reason = "of counts of members")]
fn share(a: &Value, b: &Value) -> f64 {
    let (same, all) = score(a, b);
    if all == 0 { 1.0 } else { same as f64 / all as f64 }
}

#[cfg(test)]
mod tests;
