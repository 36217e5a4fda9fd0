//! Messages from the peer: requests are admitted, answers and notifications find their place.

use super::listening::LISTEN;
use super::*;

impl Connection {
    pub(super) fn way(&self, batch: Option<u64>) -> Way {
        Way { related: None, batch, route: self.arrival.as_ref().map(|a| a.route) }
    }

    pub(super) fn received(&mut self, now: Duration, message: Message, batch: Option<u64>, out: &mut Vec<Action>) {
        match message {
            Message::Request { id, method, params } => self.request(now, id, &method, params, batch, out),
            Message::Notification { method, params } => self.notification(now, method, params, out),
            // Our own ids are numbers, all of them.
            Message::Response { id, result } => {
                let id = id.counted();
                self.check_answered(&id, out);
                self.answered(now, &id, result, out);
            }
            Message::Error { id: Some(id), error } => {
                let id = id.counted();
                self.check_answered(&id, out);
                self.failed(now, &id, error.into(), out);
            }
            Message::Error { id: None, error } => self.failed_unnamed(now, error.into(), out),
        }
    }

    /// An error without an id. While the connection opens it is about the question that waits; else it may as well be
    /// about something that wants no answer.
    fn failed_unnamed(&mut self, now: Duration, error: Error, out: &mut Vec<Action>) {
        if self.facts.role == Role::Server {
            return;
        }
        if let Phase::Opening(negotiation) = &self.phase {
            let first = negotiation.asked_ids().find(|id| self.outgoing.has(id)).cloned();
            return first.into_iter().for_each(|id| self.failed(now, &id, error.clone(), out));
        }
        if !std::mem::replace(&mut self.said.unnamed, true) {
            let (told, code) = (shortened(error.message(), 200), error.code().unwrap_or_default());
            self.hinted(&format!("the server sent an error that names no request: {told} ({code})"), out);
        }
    }

    /// Reports text of the server that is no message, and ends no request: once, with the text.
    pub(super) fn unreadable(&mut self, text: &str, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.said.unreadable, true) {
            self.hinted(text, out);
        }
    }

    /// An answer may be late, but to a number that was never given it is a mistake of the server's.
    fn check_answered(&mut self, id: &Id, out: &mut Vec<Action>) {
        if self.facts.role == Role::Client
            && !self.outgoing.has_given(id)
            && !std::mem::replace(&mut self.said.unknown, true)
        {
            let id = format!("{id:?}");
            self.hinted(
                &format!("the server sent an answer with the id {}, which no request has", shortened(&id, 100)),
                out,
            );
        }
    }

    fn hinted(&mut self, text: &str, out: &mut Vec<Action>) {
        out.push(Action::Warn(text.to_owned()));
        self.said.hint = Some(text.into());
    }

    /// Returns true if the revision spoken has batches.
    pub(crate) fn takes_batches(&self) -> bool {
        matches!(&self.phase, Phase::Legacy(session) if session.revision.rules().batches)
    }

    pub(super) fn batch(&mut self, now: Duration, parts: Vec<Result<Message, DecodeError>>, out: &mut Vec<Action>) {
        let allowed = self.takes_batches();
        let (count, max) = (parts.len(), self.facts.max_in_flight);
        let refused = if !allowed {
            Some(DecodeError::no_batches())
        } else {
            (count > max).then(|| DecodeError::long_batch(count, max))
        };
        if let Some(refused) = refused {
            // Nothing else will come for what is answered in it.
            for id in parts.iter().filter_map(answered_by) {
                let message = format!("the answer came in a JSON array: {}", refused.told());
                self.failed(now, &id.counted(), Error::new(ErrorKind::PeerMisbehaved, message), out);
            }
            return self.invalid(now, &refused, None, out);
        }
        let open = parts.iter().filter(|p| matches!(p, Ok(Message::Request { .. }) | Err(_))).count();
        self.last_call += 1;
        let number = self.last_call;
        let route = self.way(None).route;
        self.batches.insert(number, Batch { open, parts: Vec::new(), route });
        for part in parts {
            match part {
                Ok(message) => self.received(now, message, Some(number), out),
                Err(error) => self.invalid(now, &error, Some(number), out),
            }
        }
        if open == 0 {
            self.batches.remove(&number);
        }
    }

    /// Refuses input that is no message. A server refuses all of it; a client refuses only a request, because many a
    /// server's standard output has lines that were never meant for it.
    pub(super) fn invalid(&mut self, now: Duration, error: &DecodeError, batch: Option<u64>, out: &mut Vec<Action>) {
        for id in error.answers.iter().chain(&error.answers_too) {
            let why = format!("the answer is no message: {}", error.told());
            self.failed(now, &id.clone().counted(), Error::new(ErrorKind::PeerMisbehaved, why), out);
        }
        if self.facts.role == Role::Client && error.id.is_none() {
            if let Some(batch) = batch {
                self.batch_part(batch, None, out);
            }
            return;
        }
        if self.answers_nothing() {
            return out.push(unasked("a request that is no message"));
        }
        self.respond_error(error.id.as_ref(), &error.to_object(), self.way(batch), out);
    }

    /// Returns true if no revision with sessions is spoken.
    pub(super) fn is_modern_only(&self) -> bool {
        self.facts.revisions.iter().all(|revision| revision.era() == Era::Modern)
    }

    /// A client whose server is modern sends no responses.
    fn answers_nothing(&self) -> bool {
        self.facts.role == Role::Client && matches!(self.phase, Phase::Modern(_))
    }

    pub(super) fn request(
        &mut self,
        now: Duration,
        id: Id,
        method: &str,
        params: Option<RawJson>,
        batch: Option<u64>,
        out: &mut Vec<Action>,
    ) {
        if self.answers_nothing() {
            return out.push(unasked(&format!("the request {:?}", shortened(method, 100))));
        }
        if self.facts.role == Role::Client && matches!(self.phase, Phase::Opening(_)) && method == "ping" {
            return self.respond(&id, &RawJson::empty_object(), self.way(batch), out);
        }
        if self.incoming.has(&id) || self.is_listener(&id) {
            let shown = format!("{id:?}");
            let message = format!("\"id\": {} is already in use by a request in flight", shortened(&shown, 100));
            let error = Error::rpc(code::INVALID_REQUEST, message);
            return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out);
        }
        if self.is_full() {
            let max = self.facts.max_in_flight;
            let error = Error::rpc(code::INTERNAL_ERROR, format!("more than {max} requests in flight (max_in_flight)"));
            return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out);
        }
        let head = match self.head.take() {
            Some(head) => Ok(head),
            None => Head::read(params.as_ref()),
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
        };
        if self.facts.role == Role::Server && batch.is_some() && head.is_modern() {
            let why = "a request with an envelope is not part of a batch: send one message at a time";
            let error = Error::rpc(code::INVALID_REQUEST, why);
            return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out);
        }
        let unopened = self.facts.role == Role::Server && matches!(self.phase, Phase::Unopened);
        // To a server without sessions all but `initialize`, which it refuses, is a request without its envelope.
        if unopened && !head.is_modern() && (method == "initialize" || !self.is_modern_only()) {
            match self.first_request(&id, method, params.as_ref(), out) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
            }
        }
        // One pipe may serve several clients after each other, as behind a bridge.
        if self.facts.role == Role::Server
            && matches!(self.phase, Phase::Legacy(_))
            && method == "initialize"
            && !head.is_modern()
            && batch.is_none()
        {
            return match self.first_request(&id, method, params.as_ref(), out) {
                Ok(_) => {}
                Err(error) => self.respond_error(Some(&id), &error.to_object(), self.way(None), out),
            };
        }
        let session = match &mut self.phase {
            Phase::Legacy(session) => {
                // A client that asks is ready, whether it has said so or not.
                session.news.ready |= !head.is_modern() && method != "ping";
                Some(&**session)
            }
            _ => None,
        };
        let admitted = match exchange::admit(&self.facts, session, method, params.as_ref(), head) {
            Ok(admitted) => admitted,
            Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
        };
        self.heard_modern |= admitted.revision.era() == Era::Modern;
        self.last_call += 1;
        let call = CallId(self.last_call);
        let row = admitted.method;
        let origin = self.origin();
        self.incoming.insert(
            call,
            Incoming {
                id: id.clone(),
                method: row,
                revision: admitted.revision,
                batch,
                route: self.way(None).route,
                progress_token: admitted.progress_token.clone(),
                progress: f64::NEG_INFINITY,
                pace: Pace::new(),
                origin: origin.clone(),
            },
        );
        match row.name {
            "ping" => return self.completed(now, call, Ok(Payload::Object(RawJson::empty_object())), out),
            "initialize" => {
                let error = Error::rpc(code::INVALID_REQUEST, "\"initialize\" must not be part of a batch");
                return self.completed(now, call, Err(error), out);
            }
            "server/discover" => return self.completed(now, call, Ok(Payload::Object(self.discovery())), out),
            "logging/setLevel" => {
                let outcome = self.set_level(params.as_ref());
                return self.completed(now, call, outcome, out);
            }
            LISTEN if self.has_all_listeners() => {
                let error = self.too_many_listeners();
                return self.completed(now, call, Err(error), out);
            }
            _ => {}
        }
        let context = RequestContext {
            id,
            method: row.name,
            revision: admitted.revision,
            peer: admitted.peer,
            log_level: admitted.log_level,
            progress_token: admitted.progress_token,
            name: admitted.name.clone(),
            meta: admitted.meta,
            task_id: None,
            transport: self.arrival.as_ref().map_or(&self.transport, |a| &a.transport).clone(),
            states: States::default(),
            rounds: params
                .as_ref()
                .filter(|_| row.input_required && admitted.revision.era() == Era::Modern)
                .map(|params| Resumable::new(params.clone(), admitted.goes_on)),
            origin,
        };
        let (name, arguments, task) = (admitted.name, admitted.arguments, admitted.task);
        out.push(Action::Dispatch(Box::new(Call { id: call, method: row, params, name, arguments, task, context })));
    }

    /// A server's first requests. `Ok(true)`: answered.
    pub(super) fn first_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Option<&RawJson>,
        out: &mut Vec<Action>,
    ) -> Result<bool> {
        match method {
            "initialize" => {
                let (revision, peer, result) = legacy::answer(&self.facts, params)?;
                let before = match std::mem::replace(&mut self.phase, Phase::Unopened) {
                    Phase::Legacy(session) => Some(session.news),
                    _ => None,
                };
                let mut session = Session::new(revision, Arc::new(peer));
                if let Some(News { subscriptions, theirs, visits, .. }) = before {
                    // Subscriptions and visits that have begun go on.
                    session.news = News { subscriptions, theirs, visits, ..News::default() };
                }
                self.phase = Phase::Legacy(Box::new(session));
                self.told += 1;
                self.respond(id, &result, self.way(None), out);
                Ok(true)
            }
            "ping" => {
                self.respond(id, &RawJson::empty_object(), self.way(None), out);
                Ok(true)
            }
            "server/discover" => Ok(false),
            _ if Method::find(method).is_none_or(|m| m.notification) => {
                let method = shortened(method, 100);
                Err(Error::rpc(code::METHOD_NOT_FOUND, format!("method {method:?} is not served")))
            }
            _ => {
                let key = crate::model::meta::PROTOCOL_VERSION;
                Err(Error::rpc(
                    code::INVALID_REQUEST,
                    format!(
                        "{method:?} before \"initialize\": open the connection first, or send params._meta[\"{key}\"]"
                    ),
                ))
            }
        }
    }

    pub(super) fn discovery(&self) -> RawJson {
        let modern: Vec<_> = self.facts.revisions.iter().rev().filter(|r| r.era() == Era::Modern).collect();
        let mut out = String::from("{");
        object::push_member(&mut out, "supportedVersions", RawJson::from_value(&modern).get());
        object::push_member(
            &mut out,
            "capabilities",
            &shape::capabilities(Revision::NEWEST.rules(), self.facts.capabilities.raw()),
        );
        if let Some(instructions) = &self.facts.instructions {
            object::push_member(&mut out, "instructions", RawJson::from_value(instructions).get());
        }
        out.push_str(&self.facts.discovery.written());
        out.push('}');
        RawJson::written(out)
    }

    pub(super) fn set_level(&mut self, params: Option<&RawJson>) -> Result<Payload> {
        let level = level(params)?;
        if let Phase::Legacy(session) = &mut self.phase {
            session.log_level = Some(level);
            self.told += 1;
        }
        Ok(Payload::Object(RawJson::empty_object()))
    }

    /// The level below which log messages of a running legacy call are not wanted right now.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        match &self.phase {
            Phase::Legacy(session) => session.log_level,
            _ => None,
        }
    }

    pub(super) fn notification(
        &mut self,
        now: Duration,
        method: String,
        params: Option<RawJson>,
        out: &mut Vec<Action>,
    ) {
        match method.as_str() {
            "notifications/cancelled" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Params {
                    request_id: Option<Id>,
                    #[serde(default)]
                    reason: Option<String>,
                }
                let Some(Ok(params)) = params.map(|p| p.to::<Params>()) else {
                    return;
                };
                let Some(id) = params.request_id else { return };
                let found = self.incoming.remove_id(&id);
                if found.is_none() {
                    self.stream_cancelled(&id, params.reason.as_deref(), out);
                }
                if let Some((call, incoming)) = found {
                    if self.facts.role == Role::Client && self.incoming.len() == 0 {
                        self.outgoing.restart_all(now);
                        self.sooner = true;
                    }
                    out.push(Action::Abort(call, params.reason));
                    match (incoming.batch, incoming.route) {
                        (Some(batch), _) => self.batch_part(batch, None, out),
                        (None, Some(route)) => out.push(Action::Unanswered(route)),
                        (None, None) => {}
                    }
                }
            }
            "notifications/progress" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Params {
                    progress_token: Id,
                    #[serde(default)]
                    progress: serde_json::Value,
                }
                let Some(params) = params else { return };
                let Ok(mut read) = params.to::<Params>() else { return };
                if !read.progress.is_number() {
                    return;
                }
                read.progress_token = read.progress_token.counted();
                if let Some(outgoing) = self.outgoing.get_mut(&read.progress_token)
                    && outgoing.wants_progress
                {
                    outgoing.restart(now);
                    if outgoing.progress.grows(&read.progress) {
                        out.push(Action::Progress(outgoing.call, params));
                    }
                } else if let Id::Number(id) = &read.progress_token
                    && let Some((call, heard)) = self.lasting.get_mut(id)
                    && heard.grows(&read.progress)
                {
                    out.push(Action::Progress(*call, params));
                }
            }
            "notifications/initialized" => self.ready(now),
            "notifications/roots/list_changed" => self.roots_changed(out),
            _ if self.facts.role == Role::Server => self.pass_on(&method, params, out),
            _ => self.notified(method, params, out),
        }
    }
}

/// Reads the level of `logging/setLevel`.
pub(super) fn level(params: Option<&RawJson>) -> Result<LogLevel> {
    #[derive(serde::Deserialize)]
    struct Params {
        level: Option<RawJson>,
    }
    let missing = || Error::invalid_params("\"level\": missing");
    let params: Params = params.ok_or_else(missing)?.to().map_err(|_| missing())?;
    let level = params.level.ok_or_else(missing)?;
    let Ok(level) = level.to::<String>() else {
        let got = shortened(level.get(), 60);
        return Err(Error::invalid_params(format!("\"level\": expected a string, got {got}")));
    };
    level.parse()
}

/// The request of ours that this answers, or was meant to.
fn answered_by(part: &Result<Message, DecodeError>) -> Option<Id> {
    match part {
        Ok(Message::Response { id, .. } | Message::Error { id: Some(id), .. }) => Some(id.clone()),
        Ok(_) => None,
        Err(error) => error.answers.clone(),
    }
}

fn unasked(what: &str) -> Action {
    Action::Warn(format!("the server sent {what}, which this revision does not let it: ignored"))
}
