//! Opening and end of a connection.

use super::*;

impl Connection {
    pub(super) fn step(&mut self, now: Duration, step: Step, out: &mut Vec<Action>) {
        match step {
            Step::Wait => {}
            Step::Ask { method, revision, timeout: own } => {
                let params = (method == "initialize").then(|| legacy::question(&self.facts, revision));
                // A probe without an answer costs its own time, `initialize` the caller's.
                let mut invocation = Invocation::new(OPENING, method, params);
                invocation.timeout_option = if own.is_some() { "probe_timeout" } else { "request_timeout" };
                invocation.timeout = own.or(self.opening_timeout);
                let outgoing = Outgoing::new(invocation, now);
                let era = if method == "initialize" { revision } else { Revision::NEWEST.max(revision) };
                self.envelope.clear();
                self.transmit(outgoing, era, out);
                self.envelope.clear();
                let asked = out.iter().rev().find_map(|action| match action {
                    Action::Send(Outbound { sent: Sent::Request { id, .. }, .. }) => Some(id.clone()),
                    _ => None,
                });
                if let (Phase::Opening(negotiation), Some(id)) = (&mut self.phase, asked) {
                    negotiation.asked(id);
                }
            }
            Step::Opened(answer) => {
                let modern = answer.revision.era() == Era::Modern;
                let certain = modern || !matches!(&self.phase, Phase::Opening(n) if !n.is_certain());
                if let Phase::Opening(negotiation) = &self.phase {
                    // The other question needs no answer any more, and must not time out: a client never cancels
                    // `initialize`.
                    let asked: Vec<Id> = negotiation.asked_ids().cloned().collect();
                    let open = asked.into_iter().filter(|id| self.outgoing.remove(id).is_some());
                    out.extend(open.map(Action::Abandon));
                }
                self.phase = if modern {
                    Phase::Modern(answer.revision)
                } else {
                    let peer = answer.peer.clone();
                    Phase::Legacy(Box::new(Session::new(answer.revision, peer)))
                };
                if !modern {
                    let frame = jsonrpc::encode_notification("notifications/initialized", None);
                    out.push(Action::Send(Outbound {
                        frame,
                        related: None,
                        route: None,
                        sent: Sent::Notification,
                        origin: None,
                    }));
                }
                let legacy::Answer { revision, peer, instructions, result } = answer;
                let opening = Opening { revision, peer, instructions, result, certain };
                self.restore(now);
                self.restarted = None;
                self.sooner = true;
                self.opened = Some(opening.peer.clone());
                out.push(Action::Opened(opening));
            }
            Step::Failed(error) => {
                let error = self.failed_to_open(error);
                self.end(&error, false, out);
            }
        }
    }

    pub(super) fn closed(&mut self, reason: &str, out: &mut Vec<Action>) {
        let relaunch = matches!(&self.phase, Phase::Opening(n) if n.is_probing());
        let error = match self.phase {
            Phase::Opening(_) => self.with_hint(self.over(reason)),
            _ => self.over(reason),
        };
        self.end(&error, relaunch, out);
    }

    /// The error of a connection that is over.
    fn over(&self, reason: &str) -> Error {
        let error = Error::closed(reason);
        match self.exited {
            Some(exited) => error.because(exited),
            None => error,
        }
    }

    /// A server that ends at its start is not started again for the sake of another first question.
    pub(super) fn unheard(&mut self, now: Duration, reason: &str, out: &mut Vec<Action>) {
        match self.phase {
            Phase::Opening(_) if self.restarted.is_none() => {
                let error = self.with_hint(self.over(reason));
                self.end(&error, false, out);
            }
            _ => self.lost(now, reason, out),
        }
    }

    pub(super) fn end(&mut self, error: &Error, relaunch: bool, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        self.unsubscribe_all(out);
        self.forget_listeners(error, out);
        self.phase = Phase::Closed;
        for call in self.incoming.drain() {
            out.push(Action::Abort(call, Some(error.message().to_owned())));
        }
        let mut awaited: Vec<CallId> = self.outgoing.drain().into_iter().map(|o| o.call).collect();
        awaited.extend(self.forget_streams());
        awaited.extend(std::mem::take(&mut self.waiting).into_iter().map(|w| w.call));
        for call in awaited.into_iter().filter(|call| *call != OPENING) {
            out.push(Action::Resolve(call, Err(error.clone())));
        }
        self.batches.clear();
        self.lasting.clear();
        out.push(Action::Close { reason: error.clone(), relaunch });
    }
}
