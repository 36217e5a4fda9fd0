//! A peer that has been silent for long is asked for a sign of life.

use super::*;
use crate::idiom;

/// Our own request for that.
pub(super) const PING: CallId = CallId(u64::MAX - 2);

/// Pause between two attempts after a ping was not delivered.
const RETRY: Duration = Duration::from_secs(1);

/// Silence of the peer, and the steps against it.
#[derive(Debug)]
pub(super) struct Silence {
    since: Duration,
    /// Time of the ping, while it is not answered.
    asked: Option<Duration>,
    /// Time of the first ping of several that were not delivered, and time of the next one.
    failing: Option<(Duration, Duration)>,
    /// Messages that belong to no request find their way to the peer at present.
    reachable: bool,
    /// It was silent for too long.
    lost: bool,
}

impl Default for Silence {
    fn default() -> Self {
        Self { since: Duration::ZERO, asked: None, failing: None, reachable: true, lost: false }
    }
}

impl Silence {
    /// Forgets the pings of a peer that is gone.
    pub(super) fn forget(&mut self) {
        (self.asked, self.failing) = (None, None);
    }
}

impl Connection {
    /// Sets whether messages that belong to no request find their way to the peer; where they do not, the peer's
    /// silence means nothing.
    pub(crate) fn set_reachable(&mut self, reachable: bool) {
        self.silence.reachable = reachable;
    }

    /// Returns true if the connection has ended because the peer was silent for too long.
    pub(crate) fn is_lost(&self) -> bool {
        self.silence.lost
    }

    pub(super) fn heard(&mut self, now: Duration) {
        self.silence.since = now;
        self.silence.failing = None;
    }

    /// Returns the time at which the peer is to be asked, if nothing comes from it.
    pub(super) fn ping_due(&self) -> Option<Duration> {
        let interval = self.facts.keep_alive?.interval;
        let pings = match self.phase {
            Phase::Legacy(_) => true,
            Phase::Modern(_) => self.facts.role == Role::Client,
            _ => false,
        };
        match self.silence.failing {
            _ if !pings || self.silence.asked.is_some() => None,
            Some((_, again)) => Some(again),
            None => self.silence.since.checked_add(interval),
        }
    }

    pub(super) fn ping_if_due(&mut self, now: Duration, out: &mut Vec<Action>) {
        let Some(keep_alive) = self.facts.keep_alive.filter(|_| self.ping_due().is_some_and(|due| due <= now)) else {
            return;
        };
        self.silence.since = now;
        // A server may wait for an answer of ours before it does anything else.
        if !self.silence.reachable || self.is_asked() {
            self.silence.failing = None;
            return;
        }
        self.silence.asked = Some(now);
        let first = self.silence.failing.map_or(now, |(first, _)| first);
        let mut invocation = Invocation::new(PING, "ping", None);
        invocation.timeout = Some(keep_alive.timeout.saturating_sub(now.saturating_sub(first)));
        invocation.idempotent = true;
        // Before whatever waits its turn.
        self.send_request(Outgoing::new(invocation, now), out);
    }

    /// The ping is answered, or will not be. Says whether the request was one.
    pub(super) fn pinged(&mut self, outgoing: &Outgoing, outcome: &Result<RawJson>, out: &mut Vec<Action>) -> bool {
        if outgoing.call != PING {
            return false;
        }
        let asked = self.silence.asked.take();
        let heard = asked.is_some_and(|asked| self.silence.since > asked);
        let failing = self.silence.failing.take();
        // An error of the peer's own is a sign of life as well.
        if let Err(error) = outcome
            && error.kind() != ErrorKind::Rpc
            && !heard
            && self.silence.reachable
        {
            // An intermediary may be busy, or the peer just restarting.
            if let (ErrorKind::Transport, Some(asked), Some(keep_alive)) = (error.kind(), asked, self.facts.keep_alive)
            {
                let first = failing.map_or(asked, |(first, _)| first);
                let again = asked.saturating_add(RETRY);
                if again < first.saturating_add(keep_alive.timeout) {
                    self.silence.failing = Some((first, again));
                    self.sooner = true;
                    return true;
                }
            }
            let peer = if self.facts.role == Role::Client { "server" } else { "client" };
            let error = match error.kind() {
                ErrorKind::Timeout => {
                    let time = idiom::time(self.facts.keep_alive.map_or(Duration::ZERO, |given| given.timeout));
                    let option = idiom::named("ping_timeout");
                    Error::closed(format!("the {peer} did not answer a ping for {time} ({option})"))
                }
                kind => Error::new(kind, format!("the {peer} did not answer a ping: {}", error.message())),
            };
            self.silence.lost = true;
            self.end(&error, false, out);
        }
        true
    }
}
