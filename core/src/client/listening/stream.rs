//! Listen streams: opened, and opened again when they break off.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Change, Hub, Inbox};
use crate::call::{Answer, CallOptions, Link, Told, traced};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::{SubscriptionFilter, TraceContext};
use crate::signal::Signal;

pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The pause before a stream is opened again; twice as long each time.
const BACK_OFF: Duration = Duration::from_millis(100);
const MAX_BACK_OFF: Duration = Duration::from_secs(30);
/// After so many times in a row that a stream did not stay open, it is given up, or said once.
const MAX_FUTILE: u32 = 10;
/// One that lasted so long did.
const LASTING: Duration = Duration::from_secs(10);
/// One that was opened with another access token than the one before did if it lasted so long: streams end with their
/// tokens, and some tokens live for seconds.
const OF_A_TOKEN: Duration = Duration::from_secs(1);

/// Way of a listener to its server.
pub(super) struct Way {
    pub(super) link: Arc<dyn Link>,
    pub(super) timeout: Option<Duration>,
    /// Trace that its requests belong to.
    pub(super) trace: Option<TraceContext>,
}

/// Opens a stream. Dropping the answer ends it.
pub(super) fn open(link: &Arc<dyn Link>, timeout: Option<Duration>, filter: &SubscriptionFilter, told: Told) -> Answer {
    open_in(link, timeout, None, filter, told)
}

fn open_in(
    link: &Arc<dyn Link>,
    timeout: Option<Duration>,
    trace: Option<&TraceContext>,
    filter: &SubscriptionFilter,
    told: Told,
) -> Answer {
    let params = RawJson::from_value(&json!({"notifications": filter}));
    let params = match trace {
        Some(trace) => traced(Some(&params), trace),
        None => params,
    };
    let options = CallOptions { timeout, by_default: true, told: Some(told), ..CallOptions::default() };
    Answer::of(|done| {
        let done = Box::new(move |outcome: Result<RawJson>| done(outcome.map_err(Error::received)));
        link.clone().request("subscriptions/listen", Some(params), &options, None, done)
    })
}

/// Returns the filter that the server has agreed to, if this is an acknowledgement;
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) naming the member that cannot be read.
pub(super) fn honoured(method: &str, params: Option<&RawJson>) -> Option<Result<SubscriptionFilter>> {
    let wrong = |why: &str| Error::new(ErrorKind::PeerMisbehaved, format!("{ACKNOWLEDGED}: {why}"));
    let read = || {
        let params: Map<String, Value> = params.and_then(|params| params.to().ok()).unwrap_or_default();
        let Some(Value::Object(members)) = params.get("notifications") else {
            let got = params.get("notifications").map_or_else(|| "nothing".into(), Value::to_string);
            return Err(wrong(&format!("\"notifications\": expected an object, got {}", shortened(&got, 60))));
        };
        let named = |error: Error| wrong(error.message());
        let mut filter = SubscriptionFilter::read(members).map_err(named)?;
        filter.read_tasks(members).map_err(named)?;
        let others = members.iter().filter(|(member, _)| !SubscriptionFilter::is_own(member));
        filter.others.extend(others.map(|(member, value)| (member.clone(), value.clone())));
        Ok(filter)
    };
    (method == ACKNOWLEDGED).then(read)
}

/// Waits for so long, or until the connection has ended.
pub(super) async fn pause(hub: &Hub, link: &Arc<dyn Link>, time: Duration) {
    let done = Arc::<Signal>::default();
    let set = done.clone();
    let _timer = link.clock().later(
        time,
        Box::new(move || {
            set.set();
        }),
    );
    hub.over.unless(done.wait()).await;
}

/// Number of attempts to open a stream again, and the pauses between them.
#[derive(Default)]
pub(super) struct Tries {
    futile: u32,
    /// The way to a server may be long in coming back.
    persists: bool,
    /// The access token that the last stream was opened with.
    token: Option<u64>,
}

impl Tries {
    /// For a stream that is opened again for as long as there is a connection, if it is the way that fails.
    pub(super) fn as_long_as_connected() -> Self {
        Self { persists: true, ..Self::default() }
    }

    /// Returns true if it is time to say so.
    pub(super) fn are_futile(&self) -> bool {
        self.futile == MAX_FUTILE
    }

    /// A stream that was or was not acknowledged has broken off after this time: the pause before the next try. `None`:
    /// that is not worth it.
    pub(super) fn after(&mut self, error: &Error, was_open: bool, lasted: Duration) -> Option<Duration> {
        let is_lost = matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout) && !error.is_refused();
        let is_worth = match error.kind() {
            _ if is_lost => true,
            // A stream that was let go on before may be again.
            ErrorKind::Rpc | ErrorKind::PeerMisbehaved | ErrorKind::Transport => was_open,
            _ => false,
        };
        let is_renewed = error.token().is_some_and(|token| self.token.replace(token).is_some_and(|own| own != token));
        let enough = if is_renewed { OF_A_TOKEN } else { LASTING };
        self.futile = if was_open && lasted >= enough { 0 } else { self.futile.saturating_add(1) };
        if !is_worth || (self.futile >= MAX_FUTILE && !(self.persists && is_lost)) {
            return None;
        }
        let longest = BACK_OFF.saturating_mul(1 << self.futile.min(16)).min(MAX_BACK_OFF);
        // Not all clients of a server that was away at once.
        let part = RandomState::new().hash_one(()) % 1000;
        Some(longest.mul_f64(0.5 + part as f64 / 2000.0))
    }
}

/// Listens until that is over, for one listener.
pub(super) fn listen(hub: &Arc<Hub>, way: Way, inbox: &Arc<Inbox>, over: &Arc<Signal>) {
    let (hub, inbox, over, filter) = (hub.clone(), inbox.clone(), over.clone(), inbox.wanted());
    way.link.clone().spawn(Box::pin(async move {
        let Way { link, timeout, trace } = way;
        let (mut tries, mut before) = (Tries::default(), false);
        loop {
            let is_open = Arc::new(AtomicBool::new(false));
            let (hears, opens, known, ends) = (inbox.clone(), is_open.clone(), hub.clone(), over.clone());
            let wanted = filter.clone();
            let told: Told = Arc::new(move |method, params| {
                if let Some(honoured) = honoured(method, params.as_ref()) {
                    let filter = match honoured {
                        Ok(filter) => filter,
                        Err(error) => {
                            hears.end(Err(error));
                            ends.set();
                            return;
                        }
                    };
                    opens.store(true, Ordering::Release);
                    if before {
                        // Changes that were missed are not known either.
                        Change::all_of(&filter).for_each(|change| known.learn(change.method(), Some(&change.params())));
                    }
                    return hears.acknowledged(filter, before, params.as_ref());
                }
                let change = Change::of(method, params.as_ref());
                if change.as_ref().is_none_or(|change| change.is_in(&wanted)) {
                    known.learn(method, params.as_ref());
                }
                if let Some(change) = change {
                    hears.push(&change);
                }
            });
            let begun = link.clock().now();
            let Some(outcome) = over.unless(open_in(&link, timeout, trace.as_ref(), &filter, told)).await else {
                return;
            };
            let Err(error) = outcome else {
                let in_order = before || is_open.load(Ordering::Acquire);
                let message = "the server has ended the stream and never said what it tells of";
                return inbox.end(match in_order {
                    true => Ok(()),
                    false => Err(Error::new(ErrorKind::PeerMisbehaved, format!("subscriptions/listen: {message}"))),
                });
            };
            let was_open = is_open.load(Ordering::Acquire);
            before |= was_open;
            let lasted = link.clock().now().saturating_sub(begun);
            // Whoever asks for the first time is told at once.
            let Some(time) = tries.after(&error, was_open, lasted).filter(|_| before) else {
                return inbox.end(Err(error));
            };
            if over.unless(pause(&hub, &link, time)).await.is_none() {
                return;
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_is_read_or_named() {
        let read = |params: Option<Value>| honoured(ACKNOWLEDGED, params.as_ref().map(RawJson::from_value).as_ref());
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:"], "taskIds": ["t"], "x/y": ["k"]});
        let honoured_all = read(Some(json!({"notifications": filter}))).expect("one").expect("right");
        assert_eq!(serde_json::to_value(&honoured_all).expect("json"), filter);
        for (params, named) in [
            (None, "\"notifications\": expected an object, got nothing"),
            (Some(json!({"notifications": [1]})), "\"notifications\": expected an object, got [1]"),
            (Some(json!({"notifications": {"toolsListChanged": "yes"}})), "\"toolsListChanged\""),
            (Some(json!({"notifications": {"resourceSubscriptions": "a:"}})), "\"resourceSubscriptions\""),
            (Some(json!({"notifications": {"taskIds": [1]}})), "\"taskIds\""),
        ] {
            let error = read(params).expect("one").expect_err(named);
            assert!(error.kind() == ErrorKind::PeerMisbehaved && error.message().contains(named), "{error}");
        }
        assert!(honoured("notifications/message", None).is_none());
    }

    #[test]
    fn a_stream_is_opened_again_so_often() {
        let mut tries = Tries::default();
        let lost = Error::new(ErrorKind::Transport, "lost");
        let first = tries.after(&lost, true, Duration::ZERO).expect("again");
        assert!((BACK_OFF..=BACK_OFF * 2).contains(&first), "{first:?}");
        let count = std::iter::from_fn(|| tries.after(&lost, false, Duration::ZERO)).count();
        assert_eq!(count as u32, MAX_FUTILE - 2);
        assert!(tries.after(&lost, true, LASTING).is_some(), "it has stayed open");
        let mut persistent = Tries::as_long_as_connected();
        let count = (0..100).filter(|_| persistent.after(&lost, false, Duration::ZERO).is_some()).count();
        assert_eq!(count, 100);
        let later = persistent.after(&lost, false, Duration::ZERO).expect("again");
        assert!((MAX_BACK_OFF / 2..=MAX_BACK_OFF).contains(&later), "{later:?}");
        let refused = Error::rpc(-32601, "no");
        assert!(persistent.after(&refused, true, Duration::ZERO).is_none());
        assert!(tries.after(&refused, false, Duration::ZERO).is_none());
        assert!(tries.after(&refused, true, Duration::ZERO).is_some());
        assert!(tries.after(&Error::closed("gone"), true, LASTING).is_none());
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_stream_that_ends_with_its_token_is_no_futile_one() {
        let ended = |token| Error::new(ErrorKind::Transport, "lost").with_token(Some(token));
        let count = |tries: &mut Tries, lasted, token: fn(u64) -> u64| {
            (0..100).take_while(|n| tries.after(&ended(token(*n)), true, lasted).is_some()).count()
        };
        let mut tries = Tries::default();
        assert_eq!(count(&mut tries, OF_A_TOKEN, |n| n), 100);
        assert!(!tries.are_futile());
        // One token, or tokens that are no good.
        assert_eq!(count(&mut Tries::default(), OF_A_TOKEN, |_| 1), MAX_FUTILE as usize - 1);
        assert_eq!(count(&mut Tries::default(), Duration::ZERO, |n| n), MAX_FUTILE as usize - 1);
    }
}
