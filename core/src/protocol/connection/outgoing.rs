//! Requests of ours: sent, answered, timed out, cancelled.

use super::*;
use crate::model::TASKS_EXTENSION;

const SET_LEVEL: &str = "logging/setLevel";
/// Most requests that wait to be sent, as a multiple of those that may be awaited at once.
const QUEUED: usize = 16;
/// Most given-up calls of tools that are remembered until their late answers come.
const MAX_GIVEN_UP: usize = 64;

impl Connection {
    pub(super) fn call(&mut self, now: Duration, invocation: Invocation, out: &mut Vec<Action>) {
        let max = self.facts.max_in_flight;
        let error = match &self.phase {
            Phase::Unopened => match invocation.related.and_then(|call| self.incoming.get_mut(call)) {
                // Requests that need no session have nobody to answer questions.
                Some(incoming) => unknown(&invocation.method, incoming.revision),
                None => Error::misuse("the connection is not open yet"),
            },
            Phase::Closed => Error::closed("the connection is closed"),
            _ if self.sessionless => {
                let method = &invocation.method;
                let why =
                    format!("{method:?} was not sent: it needs a session, and this server keeps none (stateless)");
                Error::new(ErrorKind::Unsupported, why)
            }
            _ if self.waiting.len() >= max.saturating_mul(QUEUED) => {
                let waiting = max.saturating_mul(QUEUED);
                let option = named("max_in_flight");
                let message = format!(
                    "{max} requests wait for an answer ({option}) and {waiting} more to be sent: the server does not keep up"
                );
                Error::new(ErrorKind::Transport, message)
            }
            _ => {
                let outgoing = Outgoing::new(invocation, now);
                match self.refused_early(&outgoing) {
                    Ok(()) => {
                        self.about_to_ask(now);
                        return self.waiting.push_back(outgoing);
                    }
                    Err(error) => return out.push(Action::Resolve(outgoing.call, Err(error))),
                }
            }
        };
        out.push(Action::Resolve(invocation.call, Err(error)));
    }

    /// Refuses a request that the client cannot take, without waiting until it says that it is initialized.
    fn refused_early(&self, outgoing: &Outgoing) -> Result<()> {
        match self.revision() {
            Some(revision) if self.is_early() => {
                self.admitted(outgoing, revision)?;
                self.asking(outgoing, revision).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Sends what had to wait, as far as there is room.
    pub(super) fn send_waiting(&mut self, out: &mut Vec<Action>) {
        while matches!(self.phase, Phase::Legacy(_) | Phase::Modern(_))
            && self.outgoing.len() < self.facts.max_in_flight
            && let Some(next) = self.next_waiting()
        {
            self.send_request(next, out);
        }
    }

    /// Takes out what is to be sent next. A client that is not initialized is asked for a sign of life at most.
    fn next_waiting(&mut self) -> Option<Outgoing> {
        match self.is_early() {
            false => self.waiting.pop_front(),
            true => {
                let ping = self.waiting.iter().position(|waiting| waiting.method == "ping")?;
                self.waiting.remove(ping)
            }
        }
    }

    /// Returns the method that it goes out as when not as itself.
    ///
    /// # Errors
    /// The revision does not have it, or the peer does not declare that it can take it.
    fn admitted(&self, outgoing: &Outgoing, revision: Revision) -> Result<Option<&'static Method>> {
        let here = Method::find_in(revision, &outgoing.method);
        let Some(own) = here.or_else(|| Method::find(&outgoing.method)) else { return Ok(None) };
        let other = match own.exists_in(revision) {
            true => None,
            false => Some(own.stand_in(revision).ok_or_else(|| unknown(&outgoing.method, revision))?),
        };
        let row = other.unwrap_or(own);
        let needed = row.capability.filter(|c| *c != "completions" || revision.rules().completions_declared);
        if let Some(capability) = needed
            && !self.peer_declares(capability)
            && !self.is_asked_anyway(capability)
        {
            let peer = if self.facts.role == Role::Client { "server" } else { "client" };
            return Err(undeclared(row.name, peer, capability));
        }
        if let Some(id) = row.extension {
            let missing = match self.facts.capabilities.has_extension(id) {
                true => (!self.peer_has_extension(id)).then_some("server"),
                false => Some("client"),
            };
            if let Some(side) = missing {
                let message = format!("{:?} was not sent: the {side} does not declare the extension {id:?}", row.name);
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(other)
    }

    /// Many a server has tools and declares nothing, or `null`: whoever asks for them hears from the server.
    fn is_asked_anyway(&self, capability: &str) -> bool {
        self.facts.role == Role::Client && capability == "tools"
    }

    /// The capability that the server does not declare, and without which it was asked.
    fn undeclared_for(&self, method: &str) -> Option<&'static str> {
        let capability = Method::find(method)?.capability?;
        (self.is_asked_anyway(capability) && !self.peer_declares(capability)).then_some(capability)
    }

    pub(super) fn send_request(&mut self, mut outgoing: Outgoing, out: &mut Vec<Action>) {
        let revision = self.revision().unwrap_or(Revision::NEWEST_LEGACY);
        if outgoing.method == SET_LEVEL && matches!(self.phase, Phase::Modern(_)) {
            let outcome = self.want_level(outgoing.params.as_ref());
            return out.push(Action::Resolve(outgoing.call, outcome));
        }
        match self.admitted(&outgoing, revision) {
            Ok(None) => {}
            Ok(Some(other)) => {
                outgoing.method = other.name.into();
                outgoing.stands_in = true;
            }
            Err(error) => return out.push(Action::Resolve(outgoing.call, Err(error))),
        }
        if self.facts.role == Role::Client
            && outgoing.method == "completion/complete"
            && let Some(params) = &outgoing.params
            && let Some(shaped) = shape::completion(revision.rules(), params)
        {
            outgoing.params = Some(shaped);
        }
        match self.asking(&outgoing, revision) {
            Ok(None) => {
                self.transmit(outgoing, revision, out);
            }
            Ok(Some(shaped)) => {
                let neutral = outgoing.params.replace(shaped);
                if let Some(id) = neutral.as_ref().and_then(visits::one) {
                    self.asked_to_visit(&id);
                }
                let id = self.transmit(outgoing, revision, out);
                // The result is compared with the request.
                if let Some(outgoing) = self.outgoing.get_mut(&id) {
                    outgoing.params = neutral;
                }
            }
            Err(error) => out.push(Action::Resolve(outgoing.call, Err(error))),
        }
    }

    /// Keeps a level for all requests that follow, in revisions where each request names the log messages that it
    /// wants.
    fn want_level(&mut self, params: Option<&RawJson>) -> Result<RawJson> {
        if !self.peer_declares("logging") {
            return Err(undeclared(SET_LEVEL, "server", "logging"));
        }
        self.wanted_level = Some(incoming::level(params)?);
        Ok(RawJson::empty_object())
    }

    /// A server's question as the client's revision has it; none when there is nothing to change.
    fn asking(&self, outgoing: &Outgoing, revision: Revision) -> Result<Option<RawJson>> {
        let (Role::Server, Some(params)) = (self.facts.role, &outgoing.params) else { return Ok(None) };
        if !matches!(outgoing.method.as_str(), "elicitation/create" | "sampling/createMessage") {
            return Ok(None);
        }
        let (shaped, needed) = ask::prepared(revision.rules(), &outgoing.method, params)?;
        let declared = match &self.phase {
            Phase::Legacy(session) => &session.peer.capabilities,
            _ => return Ok(None),
        };
        match needed.into_iter().find(|capability| !declared.has(capability)) {
            Some(missing) => Err(undeclared(&outgoing.method, "client", missing)),
            None => Ok(Some(shaped)),
        }
    }

    fn peer_declares(&self, capability: &str) -> bool {
        match &self.phase {
            Phase::Legacy(session) => session.peer.capabilities.declares(capability),
            _ => self.opened.as_ref().is_some_and(|peer| peer.capabilities.declares(capability)),
        }
    }

    fn peer_has_extension(&self, id: &str) -> bool {
        match &self.phase {
            Phase::Legacy(session) => session.peer.capabilities.has_extension(id),
            _ => self.opened.as_ref().is_some_and(|peer| peer.capabilities.has_extension(id)),
        }
    }

    pub(super) fn transmit(&mut self, mut outgoing: Outgoing, revision: Revision, out: &mut Vec<Action>) -> Id {
        outgoing.session = self.restorable.session;
        let (related, idempotent) = (outgoing.related, outgoing.idempotent);
        let (method, params, progress) = (outgoing.method.clone(), outgoing.params.clone(), outgoing.wants_progress);
        let origin = outgoing.origin.clone();
        // On a stream of changes nothing is logged.
        let level = self.wanted_level.filter(|_| !outgoing.listens);
        let id = Id::Number(self.outgoing.insert(outgoing));
        let token = progress.then_some(&id);
        let params = match (revision.era(), token) {
            (Era::Modern, token) => {
                self.write_envelope(revision);
                Some(modern::with_envelope(params.as_ref(), &self.envelope, level, token))
            }
            (Era::Legacy, Some(token)) => Some(modern::with_progress_token(params.as_ref(), token)),
            (Era::Legacy, None) => params.map(modern::without_envelope),
        };
        let frame = jsonrpc::encode_request(&id, &method, params.as_ref());
        let incoming = related.and_then(|call| self.incoming.get(call));
        let route = incoming.and_then(|i| i.route);
        let origin = incoming.and_then(|i| i.origin.clone()).or(origin);
        out.push(Action::Send(Outbound {
            frame,
            related,
            route,
            sent: Sent::Request { id: id.clone(), method, revision, params, idempotent },
            origin,
        }));
        id
    }

    pub(super) fn write_envelope(&mut self, revision: Revision) {
        use crate::model::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};
        if !self.envelope.is_empty() {
            return;
        }
        let info = self.facts.info.get();
        let capabilities = shape::capabilities(revision.rules(), self.facts.capabilities.raw());
        self.envelope = format!(
            "\"{PROTOCOL_VERSION}\":\"{revision}\",\"{CLIENT_INFO}\":{info},\"{CLIENT_CAPABILITIES}\":{capabilities}"
        );
    }

    pub(super) fn answered(&mut self, now: Duration, id: &Id, result: RawJson, out: &mut Vec<Action>) {
        if let Phase::Opening(negotiation) = &mut self.phase
            && negotiation.owns(id)
        {
            self.outgoing.remove(id);
            let step = negotiation.answered(&self.facts, id, &result);
            return self.step(now, step, out);
        }
        // Nobody asked, or nobody waits any more.
        let Some(outgoing) = self.outgoing.remove(id) else {
            self.end_late_task(now, id, &result, out);
            return self.stream_ended(id, Ok(result), out);
        };
        let outcome = match &self.phase {
            Phase::Modern(_) => complete(&self.facts, &outgoing, result),
            _ if self.facts.role == Role::Client && outgoing.method.ends_with("/list") => Ok(legacy::page(result)),
            _ => Ok(result),
        };
        let outcome = match (self.facts.role, self.revision()) {
            (Role::Server, Some(revision)) => outcome.and_then(|result| {
                let Outgoing { method, params, judged, .. } = &outgoing;
                ask::received(revision.rules(), method, params.as_ref(), result, *judged)
            }),
            _ => outcome,
        };
        if let (Id::Number(id), true, Ok(_)) = (id, outgoing.lasting, &outcome) {
            self.lasting.insert(*id, (outgoing.call, outgoing.progress));
        }
        let outcome = if outgoing.stands_in { outcome.map(|_| RawJson::empty_object()) } else { outcome };
        self.settle(&outgoing, outcome, out);
    }

    pub(super) fn failed(&mut self, now: Duration, id: &Id, error: Error, out: &mut Vec<Action>) {
        if let Phase::Opening(negotiation) = &mut self.phase
            && negotiation.owns(id)
        {
            self.outgoing.remove(id);
            let step = negotiation.refused(&self.facts, id, error);
            return self.step(now, step, out);
        }
        let Some(outgoing) = self.outgoing.remove(id) else {
            return self.stream_ended(id, Err(error), out);
        };
        let error = match self.undeclared_for(&outgoing.method) {
            Some(capability) if error.code() == Some(code::METHOD_NOT_FOUND) => {
                let method = &outgoing.method;
                let message =
                    format!("the server knows no {method:?}, and does not declare the capability {capability:?}");
                Error::new(ErrorKind::Unsupported, message)
            }
            _ => error,
        };
        match matches!(self.phase, Phase::Modern(_)) && error.is_answer_lost() {
            true => self.answer_lost(now, outgoing, error, out),
            false => self.settle(&outgoing, Err(error), out),
        }
    }

    /// No stream can be taken up again in modern: what may be carried out twice is sent once more, as another request.
    pub(super) fn answer_lost(&mut self, now: Duration, mut outgoing: Outgoing, error: Error, out: &mut Vec<Action>) {
        if outgoing.listens || outgoing.resent {
            return self.settle(&outgoing, Err(error), out);
        }
        if !outgoing.idempotent {
            let message = format!(
                "{}; {:?} was not repeated, because it may have been carried out (idempotent)",
                error.message(),
                outgoing.method
            );
            return self.settle(&outgoing, Err(Error::new(error.kind(), message)), out);
        }
        outgoing.restart(now);
        (outgoing.resent, outgoing.progress) = (true, Heard::default());
        self.waiting.push_front(outgoing);
    }

    pub(super) fn cancel(&mut self, call: CallId, reason: Option<&str>, out: &mut Vec<Action>) {
        self.waiting.retain(|w| w.call != call);
        self.lasting.retain(|_, (lasting, _)| *lasting != call);
        let stream = self.no_longer_listens(call);
        let removed = if stream.is_none() { self.outgoing.remove_call(call) } else { None };
        if let Some((id, outgoing)) = &removed {
            self.giving_up(*id, &outgoing.method);
        }
        if let Some(id) = stream.or_else(|| removed.map(|(id, _)| id)) {
            self.tell_cancelled(id, reason, out);
        }
    }

    /// A call of a tool may be a task already, which only `tasks/cancel` ends.
    fn giving_up(&mut self, id: i64, method: &str) {
        if method == "tools/call" && self.facts.capabilities.has_extension(TASKS_EXTENSION) {
            if self.given_up.len() >= MAX_GIVEN_UP {
                self.given_up.pop_front();
            }
            self.given_up.push_back(id);
        }
    }

    /// Ends the task of a given-up call, of which its caller does not hear any more.
    fn end_late_task(&mut self, now: Duration, id: &Id, result: &RawJson, out: &mut Vec<Action>) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            result_type: String,
            task_id: String,
        }
        let Id::Number(number) = id else { return };
        let Some(place) = self.given_up.iter().position(|own| own == number) else { return };
        self.given_up.remove(place);
        if let Ok(Created { result_type, task_id }) = result.to()
            && result_type == "task"
        {
            let params = RawJson::from_value(&serde_json::json!({"taskId": task_id}));
            self.call(now, Invocation::new(NOBODY, "tasks/cancel", Some(params)), out);
        }
    }

    pub(super) fn tell_cancelled(&mut self, id: i64, reason: Option<&str>, out: &mut Vec<Action>) {
        let id = Id::Number(id);
        if !(self.transport.cancel_by_closing && matches!(self.phase, Phase::Modern(_))) {
            let mut params = String::from("{");
            object::push_member(&mut params, "requestId", &serde_json::to_string(&id).unwrap_or_default());
            if let Some(reason) = reason {
                object::push_member(&mut params, "reason", &serde_json::to_string(reason).unwrap_or_default());
            }
            params.push('}');
            self.notify("notifications/cancelled", &RawJson::written(params), None, out);
        }
        out.push(Action::Abandon(id));
    }

    pub(super) fn tick(&mut self, now: Duration, out: &mut Vec<Action>) {
        self.lose_patience(now);
        self.tell_news(now, out);
        self.tell_listeners(now, out);
        self.ping_if_due(now, out);
        for (call, params) in self.incoming.ripe(now) {
            self.notify("notifications/progress", &params, Some(call), out);
        }
        // A server may take its time while it waits for an answer of ours, and the user while logging in.
        let patient = self.is_patient();
        for id in self.outgoing.overdue(now, patient) {
            let name = Id::Number(id);
            if let Phase::Opening(negotiation) = &mut self.phase
                && negotiation.owns(&name)
            {
                self.outgoing.remove(&name);
                let step = negotiation.timed_out(&self.facts, &name);
                self.step(now, step, out);
                continue;
            }
            if self.outgoing.get_mut(&name).is_some_and(|o| o.orphaned.is_some_and(|until| until <= now)) {
                self.orphaned(now, id, out);
                continue;
            }
            let Some(outgoing) = self.outgoing.remove(&name) else {
                continue;
            };
            self.giving_up(id, &outgoing.method);
            self.tell_cancelled(id, Some("timeout"), out);
            let late = self.with_hint(late(&outgoing));
            self.settle(&outgoing, Err(late), out);
        }
        let (late, rest): (Vec<_>, _) =
            std::mem::take(&mut self.waiting).into_iter().partition(|w| w.due(patient).is_some_and(|due| due <= now));
        self.waiting = rest.into();
        for outgoing in late {
            self.settle(&outgoing, Err(self::late(&outgoing)), out);
        }
    }
}

fn unknown(method: &str, revision: Revision) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{method:?} does not exist in revision {revision}"))
        .because(Reason::NotInRevision)
}

fn undeclared(method: &str, other: &str, capability: &str) -> Error {
    let message = format!("{method:?} was not sent: the {other} does not declare the capability {capability:?}");
    Error::new(ErrorKind::Unsupported, message)
}

fn late(outgoing: &Outgoing) -> Error {
    // Which of the two it was: the one that is due first.
    let hard = outgoing.due(true).filter(|hard| outgoing.due(false).is_none_or(|due| due >= *hard));
    let (time, option) = match hard {
        Some(_) => (outgoing.max_timeout, "max_timeout"),
        None => (outgoing.timeout, outgoing.timeout_option),
    };
    let (time, option) = (crate::idiom::time(time.unwrap_or_default()), named(option));
    Error::new(ErrorKind::Timeout, format!("no answer to {:?} within {time} ({option})", outgoing.method))
}

/// A modern result that is complete, or asks for something where that may be; one of another type is nothing this client
/// asked for.
fn complete(facts: &Facts, outgoing: &Outgoing, result: RawJson) -> Result<RawJson> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a serde_json::value::RawValue>,
    }
    if shape::is_plainly_complete(&result) {
        return Ok(result);
    }
    let head: Head<'_> = result.borrow().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result: {e}")))?;
    let method = outgoing.method.as_str();
    match head.result_type.map(serde_json::value::RawValue::get) {
        None | Some("\"complete\"") => Ok(result),
        // The extension says "complete" of `tasks/get` in its words and "task" in its examples.
        Some("\"task\"")
            if matches!(method, "tools/call" | "tasks/get") && facts.capabilities.has_extension(TASKS_EXTENSION) =>
        {
            Ok(result)
        }
        Some("\"input_required\"") if Method::find(method).is_some_and(|row| row.input_required) => Ok(result),
        Some(other) if outgoing.any_result && other.starts_with('"') => Ok(result),
        Some(other) => {
            Err(Error::new(ErrorKind::PeerMisbehaved, format!("resultType: expected \"complete\", got {other}")))
        }
    }
}
