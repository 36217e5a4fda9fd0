//! The one stream that a modern client keeps for its handlers: the changes of lists, and the resources that were
//! subscribed to. A new stream is acknowledged before the old one ends, so that nothing is lost in between.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::stream::{Tries, honoured, open, pause};
use super::{Change, Hub, SUBSCRIBE, shown};
use crate::call::{Answer, CallOptions, Done, Guard, Link, Told};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::SubscriptionFilter;
use crate::model::subscription::MAX_SUBSCRIPTIONS;
use crate::report;
use crate::signal::Signal;

/// Change of the filter: more to hear, or less.
pub(super) enum Wish {
    Lists(SubscriptionFilter),
    Subscribe(String),
    Unsubscribe(String),
}

impl Wish {
    pub(super) fn of(uri: String, begins: bool) -> Self {
        if begins { Self::Subscribe(uri) } else { Self::Unsubscribe(uri) }
    }

    /// Says whether that changes anything.
    fn add_to(&self, wanted: &mut SubscriptionFilter) -> bool {
        let before = wanted.clone();
        match self {
            Self::Lists(lists) => {
                wanted.tools_list_changed |= lists.tools_list_changed;
                wanted.prompts_list_changed |= lists.prompts_list_changed;
                wanted.resources_list_changed |= lists.resources_list_changed;
            }
            Self::Subscribe(uri) => drop(wanted.add(uri)),
            Self::Unsubscribe(uri) => wanted.resource_subscriptions.retain(|own| own != uri),
        }
        *wanted != before
    }
}

#[derive(Default)]
pub(super) struct Own(Mutex<State>);

#[derive(Default)]
struct State {
    wanted: SubscriptionFilter,
    /// Counts the changes of that.
    generation: u64,
    /// Set at the next one.
    changed: Arc<Signal>,
    /// Waiters, each for its change.
    waiting: Vec<Waits>,
    runs: bool,
    /// Something may have changed that nobody heard of: said with the next acknowledgement, whoever opens that stream.
    missed: bool,
}

struct Waits {
    generation: u64,
    wish: Wish,
    /// It is this wish that changed something.
    changes: bool,
    done: Done,
}

impl Own {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if handlers, or a subscription, have asked for it.
    pub(super) fn wants(&self, change: &Change) -> bool {
        change.is_in(&self.lock().wanted)
    }

    fn now(&self) -> (u64, SubscriptionFilter, Arc<Signal>) {
        let state = self.lock();
        (state.generation, state.wanted.clone(), state.changed.clone())
    }

    pub(super) fn missed(&self) {
        self.lock().missed = true;
    }

    /// Ends, unless more is wanted meanwhile.
    fn rest(&self, generation: u64) -> bool {
        let mut state = self.lock();
        let rests = state.generation == generation;
        state.runs = !rests;
        // Changes that nobody wants nobody misses.
        state.missed &= !state.wanted.is_empty();
        rests
    }

    /// Tells those who wait for this change or an earlier one.
    fn settle(&self, generation: u64, outcome: Result<&SubscriptionFilter, &Error>) {
        let mut state = self.lock();
        let (due, rest) = std::mem::take(&mut state.waiting).into_iter().partition(|own| own.generation <= generation);
        state.waiting = rest;
        let due: Vec<Waits> = due;
        let mut told = Vec::with_capacity(due.len());
        for Waits { wish, done, .. } in due {
            let outcome = match (outcome, &wish) {
                (Ok(honoured), Wish::Subscribe(uri)) if !honoured.has(uri) && state.wanted.has(uri) => {
                    let message = format!("the server does not tell of changes of {}", shown(uri));
                    Err(Error::new(ErrorKind::Unsupported, message))
                }
                (Ok(_), _) => Ok(RawJson::empty_object()),
                (Err(error), _) => Err(error.clone()),
            };
            if let (Err(_), Wish::Subscribe(uri)) = (&outcome, &wish) {
                state.wanted.resource_subscriptions.retain(|own| own != uri);
            }
            told.push((done, outcome));
        }
        drop(state);
        for (done, outcome) in told {
            report::guarded("a callback", || done(outcome));
        }
    }
}

impl Own {
    /// Takes back a subscription that is still waited for.
    fn take_back(&self, generation: u64) -> Option<Done> {
        let mut state = self.lock();
        let at = state.waiting.iter().position(|own| own.generation == generation)?;
        let Waits { wish, changes, done, .. } = state.waiting.remove(at);
        let Wish::Subscribe(uri) = wish else { return Some(done) };
        if !changes {
            return Some(done);
        }
        let same = |own: &&mut Waits| matches!(&own.wish, Wish::Subscribe(other) if *other == uri);
        if let Some(other) = state.waiting.iter_mut().find(same) {
            other.changes = true;
            return Some(done);
        }
        state.wanted.resource_subscriptions.retain(|own| *own != uri);
        state.generation += 1;
        let changed = std::mem::take(&mut state.changed);
        drop(state);
        changed.set();
        Some(done)
    }
}

/// A subscription that is waited for. Dropped, it is taken back.
struct Waiting {
    hub: Arc<Hub>,
    generation: u64,
    _timer: Option<Guard>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.hub.own.take_back(self.generation));
    }
}

/// As [`change`], for a request to subscribe or unsubscribe.
pub(super) fn ask(
    hub: &Arc<Hub>,
    link: &Arc<dyn Link>,
    timeout: Option<Duration>,
    options: &CallOptions,
    wish: Wish,
    done: Done,
) -> Guard {
    let subscribes = matches!(wish, Wish::Subscribe(_));
    let Some(generation) = change(hub, link, timeout, wish, done).filter(|_| subscribes) else { return Box::new(()) };
    let own = [(options.timeout, "timeout"), (options.max_timeout, "max_timeout")];
    let own = own.into_iter().filter_map(|(time, option)| Some((time.filter(|time| !time.is_zero())?, option)));
    let timer = own.min().map(|(time, option)| {
        let hub = hub.clone();
        let late = move || {
            if let Some(done) = hub.own.take_back(generation) {
                done(Err(Error::late(SUBSCRIBE, time, option)));
            }
        };
        link.clock().later(time, Box::new(late))
    });
    Box::new(Waiting { hub: hub.clone(), generation, _timer: timer })
}

/// Has the client's handlers hear of more or less; `done` is told when they do, and which change it waits for, if it does.
pub(super) fn change(
    hub: &Arc<Hub>,
    link: &Arc<dyn Link>,
    timeout: Option<Duration>,
    wish: Wish,
    done: Done,
) -> Option<u64> {
    let mut state = hub.own.lock();
    if let Wish::Subscribe(uri) = &wish
        && state.wanted.resource_subscriptions.len() >= MAX_SUBSCRIPTIONS
        && !state.wanted.has(uri)
    {
        drop(state);
        done(Err(Error::misuse(format!("{MAX_SUBSCRIPTIONS} resources are subscribed to already"))));
        return None;
    }
    let changes = wish.add_to(&mut state.wanted);
    let nothing_to_wait_for = if state.runs { state.waiting.is_empty() } else { state.wanted.is_empty() };
    if !changes && nothing_to_wait_for {
        drop(state);
        done(Ok(RawJson::empty_object()));
        return None;
    }
    state.generation += 1;
    let generation = state.generation;
    state.waiting.push(Waits { generation, wish, changes, done });
    let changed = std::mem::take(&mut state.changed);
    let runs = std::mem::replace(&mut state.runs, true);
    drop(state);
    changed.set();
    if !runs {
        link.spawn(Box::pin(keep(hub.clone(), link.clone(), timeout)));
    }
    Some(generation)
}

/// End of waiting for a stream.
enum Heard {
    /// Something was set: it is acknowledged, or another is wanted.
    Set,
    Ended(Result<RawJson>),
}

async fn either(signal: &Signal, answer: &mut Answer) -> Heard {
    let mut signal = pin!(signal.wait());
    std::future::poll_fn(|cx| {
        if signal.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Heard::Set);
        }
        Pin::new(&mut *answer).poll(cx).map(Heard::Ended)
    })
    .await
}

/// One stream that is open or being opened.
struct Opened {
    answer: Answer,
    acknowledged: Arc<Signal>,
    honoured: Arc<Mutex<Result<SubscriptionFilter>>>,
    begun: Duration,
}

impl Opened {
    fn new(hub: &Arc<Hub>, link: &Arc<dyn Link>, timeout: Option<Duration>, filter: &SubscriptionFilter) -> Self {
        let (acknowledged, agreed) = (Arc::<Signal>::default(), Arc::new(Mutex::new(Ok(SubscriptionFilter::new()))));
        let (opens, notes, hears) = (acknowledged.clone(), agreed.clone(), hub.clone());
        let told: Told = Arc::new(move |method, params| {
            if let Some(honoured) = honoured(method, params.as_ref()) {
                *notes.lock().unwrap_or_else(PoisonError::into_inner) = honoured;
                opens.set();
                return;
            }
            let is_wanted = |change: Change| change.is_in(&hears.own.lock().wanted);
            if Change::of(method, params.as_ref()).is_none_or(is_wanted) {
                hears.told(method, params.as_ref());
            }
        });
        let answer = open(link, timeout, filter, told);
        Self { answer, acknowledged, honoured: agreed, begun: link.clock().now() }
    }

    fn honoured(&self) -> Result<SubscriptionFilter> {
        self.honoured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Keeps a stream open for as long as something is wanted.
async fn keep(hub: Arc<Hub>, link: Arc<dyn Link>, timeout: Option<Duration>) {
    let (mut current, mut tries): (Option<Opened>, _) = (None, Tries::as_long_as_connected());
    let mut told = SubscriptionFilter::new();
    loop {
        let (generation, wanted, changed) = hub.own.now();
        if wanted.is_empty() {
            drop(current.take());
            hub.own.settle(generation, Ok(&wanted));
            match hub.own.rest(generation) {
                true => return,
                false => continue,
            }
        }
        let mut next = Opened::new(&hub, &link, timeout, &wanted);
        let acknowledged = next.acknowledged.clone();
        let honoured = match either(&acknowledged, &mut next.answer).await {
            Heard::Set => next.honoured(),
            Heard::Ended(Ok(_)) => Err(Error::new(ErrorKind::Transport, "the server ended the stream at once")),
            Heard::Ended(Err(error)) => Err(error),
        };
        match honoured {
            Err(error) => {
                hub.own.settle(generation, Err(&error));
                // A stream that was open before goes on; else it is tried again, if anything is wanted without those
                // who were told.
                if current.is_none() {
                    if hub.own.now().1.is_empty() {
                        continue;
                    }
                    hub.own.missed();
                    match tries.after(&error, false, Duration::ZERO) {
                        Some(time) => {
                            if tries.are_futile() {
                                unheard(&hub, &error);
                            }
                            let _ = changed.unless(pause(&hub, &link, time)).await;
                        }
                        None if hub.own.rest(generation) => return unheard(&hub, &error),
                        None => {}
                    }
                    continue;
                }
            }
            Ok(honoured) => {
                // Ends the one before.
                current = Some(next);
                hub.own.settle(generation, Ok(&honoured));
                if std::mem::take(&mut hub.own.lock().missed) {
                    report_all(&hub, &honoured);
                }
                no_longer_told(&hub, &std::mem::replace(&mut told, honoured.clone()), &wanted, &honoured);
            }
        }
        let Some(open) = &mut current else { continue };
        let begun = open.begun;
        let outcome = match either(&changed, &mut open.answer).await {
            Heard::Set => continue,
            Heard::Ended(outcome) => outcome,
        };
        current = None;
        hub.own.missed();
        // Ended in order, by a server that may be back soon.
        let error = outcome.err().unwrap_or_else(|| Error::new(ErrorKind::Transport, "the server ended the stream"));
        let lasted = link.clock().now().saturating_sub(begun);
        match tries.after(&error, true, lasted) {
            Some(time) => {
                if tries.are_futile() {
                    unheard(&hub, &error);
                }
                let _ = changed.unless(pause(&hub, &link, time)).await;
            }
            None => {
                let generation = hub.own.now().0;
                hub.own.settle(generation, Err(&error));
                if hub.own.rest(generation) {
                    return unheard(&hub, &error);
                }
            }
        }
    }
}

/// Something may have been missed.
fn report_all(hub: &Hub, honoured: &SubscriptionFilter) {
    for change in Change::all_of(honoured) {
        hub.told(change.method(), Some(&change.params()));
    }
}

/// Says what the server has told of before, and does not any more although it is wanted.
fn no_longer_told(hub: &Hub, before: &SubscriptionFilter, wanted: &SubscriptionFilter, honoured: &SubscriptionFilter) {
    const SHOWN: usize = 3;
    let gone = |change: &Change| change.is_in(wanted) && !change.is_in(honoured);
    let gone: Vec<_> = Change::all_of(before).filter(gone).collect();
    if gone.is_empty() {
        return;
    }
    let names = gone.iter().take(SHOWN).map(|change| shown(change.uri().unwrap_or_else(|| change.method())));
    let names = names.collect::<Vec<_>>().join(", ");
    let more = if gone.len() > SHOWN { format!(" and {} more", gone.len() - SHOWN) } else { String::new() };
    unheard(hub, &Error::new(ErrorKind::Unsupported, format!("the server no longer tells of {names}{more}")));
}

fn unheard(hub: &Hub, error: &Error) {
    if !matches!(error.kind(), ErrorKind::Closed) {
        let message = format!("the server's changes are not heard of: {}", error.message());
        report::guarded("what hears of warnings", || hub.events.warning(&message));
    }
}

#[cfg(test)]
mod tests;
