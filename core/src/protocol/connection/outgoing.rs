//! Requests of ours: sent, answered, timed out, cancelled.

use super::*;

/// So many times the requests that may be awaited at once may wait to be sent.
const QUEUED: usize = 16;

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
            _ if self.waiting.len() >= max.saturating_mul(QUEUED) => {
                let waiting = max.saturating_mul(QUEUED);
                let message = format!(
                    "{max} requests wait for an answer (max_in_flight) and {waiting} more to be sent: the server does not keep up"
                );
                Error::new(ErrorKind::Transport, message)
            }
            _ => return self.waiting.push_back(Outgoing::new(invocation, now)),
        };
        out.push(Action::Resolve(invocation.call, Err(error)));
    }

    /// Sends what had to wait, as far as there is room.
    pub(super) fn send_waiting(&mut self, out: &mut Vec<Action>) {
        while matches!(self.phase, Phase::Legacy(_) | Phase::Modern(_))
            && self.outgoing.len() < self.facts.max_in_flight
            && let Some(next) = self.waiting.pop_front()
        {
            self.send_request(next, out);
        }
    }

    pub(super) fn send_request(&mut self, mut outgoing: Outgoing, out: &mut Vec<Action>) {
        let revision = self.revision().unwrap_or(Revision::NEWEST_LEGACY);
        if let Some(row) = Method::find(&outgoing.method)
            && !row.exists_in(revision)
        {
            let Some(other) = row.stand_in(revision) else {
                let error = unknown(&outgoing.method, revision);
                return out.push(Action::Resolve(outgoing.call, Err(error)));
            };
            outgoing.method = other.name.into();
            outgoing.stands_in = true;
        }
        let needed = Method::find(&outgoing.method).and_then(|row| row.capability);
        let needed = needed.filter(|c| *c != "completions" || revision.rules().completions_declared);
        if let Some(capability) = needed
            && !self.peer_declares(capability)
        {
            let other = if self.facts.role == Role::Client { "server" } else { "client" };
            let error = undeclared(&outgoing.method, other, capability);
            return out.push(Action::Resolve(outgoing.call, Err(error)));
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
                // What came back is compared with what was asked for.
                if let Some(outgoing) = self.outgoing.get_mut(&id) {
                    outgoing.params = neutral;
                }
            }
            Err(error) => out.push(Action::Resolve(outgoing.call, Err(error))),
        }
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
            _ => self.opening.as_ref().is_some_and(|opening| opening.peer.capabilities.declares(capability)),
        }
    }

    pub(super) fn transmit(&mut self, mut outgoing: Outgoing, revision: Revision, out: &mut Vec<Action>) -> Id {
        outgoing.session = self.restorable.session;
        let related = outgoing.related;
        let (method, params, progress) = (outgoing.method.clone(), outgoing.params.clone(), outgoing.wants_progress);
        let id = Id::Number(self.outgoing.insert(outgoing));
        let token = progress.then_some(&id);
        let params = match (revision.era(), token) {
            (Era::Modern, token) => {
                self.write_envelope(revision);
                Some(modern::with_envelope(params.as_ref(), &self.envelope, token))
            }
            (Era::Legacy, Some(token)) => Some(modern::with_progress_token(params.as_ref(), token)),
            (Era::Legacy, None) => params.map(modern::without_token),
        };
        let frame = jsonrpc::encode_request(&id, &method, params.as_ref());
        let route = related.and_then(|call| self.incoming.get_mut(call)).and_then(|i| i.route);
        out.push(Action::Send(Outbound {
            frame,
            related,
            route,
            sent: Sent::Request { id: id.clone(), method, revision, params },
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
            return;
        };
        let outcome = match &self.phase {
            Phase::Modern(_) => complete(result),
            _ => Ok(result),
        };
        let outcome = match (self.facts.role, self.revision()) {
            (Role::Server, Some(revision)) => outcome
                .and_then(|result| ask::received(revision.rules(), &outgoing.method, outgoing.params.as_ref(), result)),
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
            return;
        };
        self.settle(&outgoing, Err(error), out);
    }

    pub(super) fn cancel(&mut self, call: CallId, reason: Option<&str>, out: &mut Vec<Action>) {
        self.waiting.retain(|w| w.call != call);
        self.lasting.retain(|_, (lasting, _)| *lasting != call);
        if let Some((id, _)) = self.outgoing.remove_call(call) {
            self.tell_cancelled(id, reason, out);
        }
    }

    pub(super) fn tell_cancelled(&mut self, id: i64, reason: Option<&str>, out: &mut Vec<Action>) {
        let id = Id::Number(id);
        if !(self.transport.cancel_by_closing && matches!(self.phase, Phase::Modern(_))) {
            let mut params = String::from("{");
            shape::push_member(&mut params, "requestId", &serde_json::to_string(&id).unwrap_or_default());
            if let Some(reason) = reason {
                shape::push_member(&mut params, "reason", &serde_json::to_string(reason).unwrap_or_default());
            }
            params.push('}');
            self.notify("notifications/cancelled", &RawJson::written(params), None, out);
        }
        out.push(Action::Abandon(id));
    }

    pub(super) fn tick(&mut self, now: Duration, out: &mut Vec<Action>) {
        self.tell_news(now, out);
        self.ping_if_due(now, out);
        for (call, params) in self.incoming.ripe(now) {
            self.notify("notifications/progress", &params, Some(call), out);
        }
        // A server may take its time while it waits for an answer of ours.
        for id in self.outgoing.overdue(now, self.is_asked()) {
            let name = Id::Number(id);
            if let Phase::Opening(negotiation) = &mut self.phase
                && negotiation.owns(&name)
            {
                self.outgoing.remove(&name);
                let step = negotiation.timed_out(&self.facts, &name);
                self.step(now, step, out);
                continue;
            }
            let Some(outgoing) = self.outgoing.remove(&name) else {
                continue;
            };
            self.tell_cancelled(id, Some("timeout"), out);
            self.settle(&outgoing, Err(late(&outgoing)), out);
        }
        let (late, rest): (Vec<_>, _) =
            std::mem::take(&mut self.waiting).into_iter().partition(|w| w.due(false).is_some_and(|due| due <= now));
        self.waiting = rest.into();
        for outgoing in late {
            self.settle(&outgoing, Err(self::late(&outgoing)), out);
        }
    }
}

fn unknown(method: &str, revision: Revision) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{method:?} does not exist in revision {revision}"))
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
        None => (outgoing.timeout, "request_timeout"),
    };
    let seconds = time.unwrap_or_default().as_secs_f64();
    Error::new(ErrorKind::Timeout, format!("no answer to {:?} within {seconds} s ({option})", outgoing.method))
}

/// A modern result that is complete; one of another type is nothing this client asked for.
fn complete(result: RawJson) -> Result<RawJson> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a serde_json::value::RawValue>,
    }
    let head: Head<'_> = result.borrow().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result: {e}")))?;
    match head.result_type.map(serde_json::value::RawValue::get) {
        None | Some("\"complete\"") => Ok(result),
        Some("\"input_required\"") => Err(Error::new(
            ErrorKind::Unsupported,
            "the server asks for input that this client declared no capability for",
        )),
        Some(other) => {
            Err(Error::new(ErrorKind::PeerMisbehaved, format!("resultType: expected \"complete\", got {other}")))
        }
    }
}
