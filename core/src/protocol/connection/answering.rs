//! Messages back to the peer: answers, alone or as a batch, progress, notifications.

use super::*;

impl Connection {
    pub(super) fn completed(&mut self, now: Duration, call: CallId, outcome: Result<Payload>, out: &mut Vec<Action>) {
        // Gone means cancelled: nothing more is sent for it.
        if let Some(last) = self.incoming.get_mut(call).and_then(|incoming| incoming.pace.rest()) {
            self.notify("notifications/progress", &last, Some(call), out);
        }
        let Some(incoming) = self.incoming.remove(call) else {
            return self.listener_completed(call, outcome, out);
        };
        if self.facts.role == Role::Client && self.incoming.len() == 0 {
            self.outgoing.restart_all(now);
            self.sooner = true;
        }
        let way = Way { related: Some(call), batch: incoming.batch, route: incoming.route };
        match outcome {
            Ok(payload) => {
                let rules = incoming.revision.rules();
                // Written once, straight into the frame: results may be large.
                let mut frame = jsonrpc::start_result(&incoming.id, shape::size_hint(&payload));
                shape::write_result(&mut frame, rules, self.facts.info.get(), incoming.method, payload);
                frame.push('}');
                self.answer(frame.into(), None, way, out);
            }
            Err(error) => {
                let object = incoming.revision.rules().told(error.to_object(), self.may_visit());
                if object.code == URL_ELICITATION_REQUIRED {
                    for id in visits::all(object.data.as_ref()) {
                        self.asked_to_visit(&id);
                    }
                }
                self.respond_error(Some(&incoming.id), &object, way, out);
            }
        }
    }

    /// Returns true if the client can be told to let its user visit a page first.
    fn may_visit(&self) -> bool {
        matches!(&self.phase, Phase::Legacy(session) if session.peer.capabilities.has("elicitation.url"))
    }

    pub(super) fn respond(&mut self, id: &Id, result: &RawJson, way: Way, out: &mut Vec<Action>) {
        self.answer(jsonrpc::encode_result(id, result), None, way, out);
    }

    pub(super) fn answer(&mut self, frame: Bytes, code: Option<i64>, way: Way, out: &mut Vec<Action>) {
        let Way { related, batch, route } = way;
        match batch {
            None => {
                out.push(Action::Send(Outbound { frame, related, route, sent: Sent::Response(code), origin: None }))
            }
            Some(batch) => self.batch_part(batch, Some(frame), out),
        }
    }

    pub(super) fn respond_error(&mut self, id: Option<&Id>, error: &ErrorObject, way: Way, out: &mut Vec<Action>) {
        // JSON-RPC says `"id": null` when it could not be read; newer revisions leave it out.
        let without = match self.revision() {
            Some(revision) => revision.rules().error_without_id,
            None => self.is_modern_only() || self.heard_modern,
        };
        self.answer(jsonrpc::encode_error(id, error, !without), Some(error.code), way, out);
    }

    /// One request of a batch is finished; the last one sends the answers as one array.
    pub(super) fn batch_part(&mut self, number: u64, frame: Option<Bytes>, out: &mut Vec<Action>) {
        let Some(batch) = self.batches.get_mut(&number) else {
            return;
        };
        batch.parts.extend(frame);
        batch.open = batch.open.saturating_sub(1);
        if batch.open > 0 {
            return;
        }
        let Some(batch) = self.batches.remove(&number) else {
            return;
        };
        let route = batch.route;
        if batch.parts.is_empty() {
            return out.extend(route.map(Action::Unanswered));
        }
        let mut frame = Vec::with_capacity(batch.parts.iter().map(|p| p.len() + 1).sum::<usize>() + 2);
        frame.push(b'[');
        for (n, part) in batch.parts.iter().enumerate() {
            if n > 0 {
                frame.push(b',');
            }
            frame.extend_from_slice(part);
        }
        frame.push(b']');
        out.push(Action::Send(Outbound {
            frame: frame.into(),
            related: None,
            route,
            sent: Sent::Response(None),
            origin: None,
        }));
    }

    pub(super) fn report(
        &mut self,
        now: Duration,
        call: CallId,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        let Some(incoming) = self.incoming.get_mut(call) else {
            return;
        };
        let Some(token) = &incoming.progress_token else { return };
        // JSON has no other numbers. The specification wants it to grow; a handler that repeats itself is not worth
        // an error.
        if !progress.is_finite() || total.is_some_and(|t| !t.is_finite()) || progress <= incoming.progress {
            return;
        }
        incoming.progress = progress;
        let message = message.filter(|_| incoming.revision.rules().progress_message);
        let params = shape::progress(token, progress, total, message);
        match incoming.pace.offer(now, params) {
            Some(params) => self.notify("notifications/progress", &params, Some(call), out),
            None => self.sooner = true,
        }
    }

    pub(super) fn notify(
        &mut self,
        method: &'static str,
        params: &RawJson,
        related: Option<CallId>,
        out: &mut Vec<Action>,
    ) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        let incoming = related.and_then(|call| self.incoming.get_mut(call));
        if related.is_some() && incoming.is_none() && !matches!(self.phase, Phase::Legacy(_)) {
            // It belongs to an answer that is already given, and modern knows no other place for it.
            return;
        }
        let (route, origin) = incoming.map_or((None, None), |i| (i.route, i.origin.clone()));
        let frame = jsonrpc::encode_notification(method, Some(params));
        out.push(Action::Send(Outbound { frame, related, route, sent: Sent::Notification, origin }));
    }
}
