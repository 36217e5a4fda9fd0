//! A server whose process has ended: started again when it is needed, and met as at first. In modern revisions nothing
//! is lost with it but what it was doing.

use super::keep_alive::PING;
use super::*;

impl Connection {
    /// The server's process has ended unasked. Its requests are dealt with as any modern one whose answer is lost on
    /// its way; whoever listens is told, and listens again.
    pub(super) fn lost(&mut self, now: Duration, reason: &str, out: &mut Vec<Action>) {
        let revision = match (&self.phase, self.restarted) {
            (Phase::Modern(revision), _) => *revision,
            // The next one has ended, too, before it said what it is.
            (Phase::Opening(_), Some(revision)) => revision,
            (Phase::Lost { .. }, _) => return,
            _ => return self.closed(reason, out),
        };
        self.phase = Phase::Lost { revision, starting: false };
        self.restarted = Some(revision);
        out.push(Action::Warn(format!("{reason}; it is started again when it is needed")));
        for call in self.incoming.drain() {
            out.push(Action::Abort(call, Some(reason.to_owned())));
        }
        self.silence.forget();
        self.batches.clear();
        self.lasting.clear();
        self.given_up.clear();
        let error = Error::new(ErrorKind::Transport, reason).answer_lost();
        let streams: Vec<CallId> = self.forget_streams().collect();
        out.extend(streams.into_iter().map(|call| Action::Resolve(call, Err(error.clone()))));
        // A request that nobody waits for has no place in the next process.
        let is_wanted = |outgoing: &Outgoing| ![OPENING, NOBODY, PING].contains(&outgoing.call);
        self.waiting.retain(is_wanted);
        // The oldest comes to the front last.
        for outgoing in self.outgoing.drain().into_iter().rev().filter(is_wanted) {
            self.answer_lost(now, outgoing, error.clone(), out);
        }
    }

    /// Has a process started, once there is something to say to it.
    pub(super) fn restart_if_needed(&mut self, out: &mut Vec<Action>) {
        if let Phase::Lost { starting, .. } = &mut self.phase
            && !*starting
            && !self.waiting.is_empty()
        {
            *starting = true;
            out.push(Action::Restart);
        }
    }

    /// There is a new process. It has to speak what the one before spoke: whoever goes on has chosen by that.
    pub(super) fn begun_again(&mut self, now: Duration, out: &mut Vec<Action>) {
        let Phase::Lost { revision, .. } = self.phase else { return };
        self.exited = None;
        let mut negotiation = Negotiation::new(Some(revision), Duration::ZERO);
        let step = negotiation.start(&self.facts, Some(Era::Modern));
        self.phase = Phase::Opening(Box::new(negotiation));
        self.sooner = true;
        self.step(now, step, out);
    }

    /// A failure that may have come of what the server writes beside its messages.
    pub(super) fn with_hint(&self, error: Error) -> Error {
        match &self.said.hint {
            Some(text) if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Closed) => {
                let message = format!("{}; {text}", error.message());
                error.reworded(message)
            }
            _ => error,
        }
    }

    /// Returns the reason for not going on, with the error that led to it.
    pub(super) fn failed_to_open(&self, error: Error) -> Error {
        let error = self.with_hint(error);
        match self.restarted {
            Some(_) => {
                // An error that the server sent is not what a call that waits has asked for.
                let kind = if error.code().is_some() { ErrorKind::Transport } else { error.kind() };
                Error::new(kind, format!("the server was started again: {}", error.message()))
            }
            None => error,
        }
    }
}
