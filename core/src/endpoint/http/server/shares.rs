//! Shares in something of which there is only so much: the number that each holder has, and the one that makes room.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::holder::Holder;
use super::sessions::millis;
use crate::driver::now;
use crate::report;

/// Use of a thing: the lesser one is lost first when room is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Nothing is asked or told.
    Idle,
    /// A request is on its way, and may be so for long.
    Arriving,
    /// A stream that waits for news. Its client opens it again.
    Waiting,
    /// A request is being answered.
    Answering,
}

/// Something that can be made to end.
pub(super) trait Yielding: Send + Sync {
    /// Returns its use, and the time since when.
    fn used(&self) -> (Use, u64);

    /// Ends it; called without a lock.
    fn make_room(&self);
}

/// Everything of one kind that there is, each with its holder.
pub(super) struct Shares<T> {
    table: Mutex<Table<T>>,
    most: usize,
    /// Warning when it is full for the first time in a while.
    full: &'static str,
    said: Said,
}

struct Table<T> {
    all: HashMap<u64, (Holder, Arc<T>)>,
    held: HashMap<Holder, BTreeSet<u64>>,
    last: u64,
    /// Holders that push out their own since then (milliseconds), and how many.
    pushing: (u64, HashMap<Holder, u32>),
}

/// Most of its own things that one holder may push out within a tenth of a second; others are refused at once. Making
/// room costs more than that, and the holder with the most gains nothing by it.
const PUSHED: (u32, u64) = (64, 100);

/// Most things that are looked at to find the one that makes room. In a crowd they are a part of one holder's, another
/// one each time: a holder that opens thousands must not make everybody wait for a look at all of them.
const LOOKED_AT: usize = 256;

impl<T> Table<T> {
    fn held(&self, holder: &Holder) -> usize {
        self.held.get(holder).map_or(0, BTreeSet::len)
    }

    fn take(&mut self, key: u64) -> Option<Arc<T>> {
        let (holder, thing) = self.all.remove(&key)?;
        self.leaves(&holder, key);
        if self.all.len() * 8 < self.all.capacity() {
            // Room for a crowd that has left.
            self.all.shrink_to(self.all.len() * 2);
            self.held.shrink_to(self.held.len() * 2);
        }
        Some(thing)
    }

    fn leaves(&mut self, holder: &Holder, key: u64) {
        if let Some(keys) = self.held.get_mut(holder) {
            keys.remove(&key);
            if keys.is_empty() {
                self.held.remove(holder);
            }
        }
    }
}

impl<T: Yielding> Table<T> {
    /// Returns true if this holder has just pushed out so many of its own that one more is refused.
    fn pushes(&self, holder: &Holder) -> bool {
        let (since, counts) = &self.pushing;
        counts.get(holder).is_some_and(|count| *count >= PUSHED.0) && millis(now()) < since + PUSHED.1
    }

    /// Counts what makes room for another of the same holder.
    fn pushed(&mut self, holder: &Holder) {
        let now = millis(now());
        let (since, counts) = &mut self.pushing;
        if now >= *since + PUSHED.1 {
            counts.clear();
            *since = now;
        }
        *counts.entry(holder.clone()).or_default() += 1;
    }

    /// Makes room for one more of this holder's, if there is any.
    fn make_room(&mut self, holder: &Holder) -> Option<Arc<T>> {
        if self.pushes(holder) {
            return None;
        }
        let key = self.yields(holder)?;
        if self.all.get(&key).is_some_and(|(from, _)| from == holder) {
            self.pushed(holder);
        }
        self.take(key)
    }

    /// Returns the thing that makes room for one more of this holder's: one of the holder with the most, if that has
    /// more than this one, else one of its own. The least used, then the one that is so for longest. A thing that
    /// answers somebody goes only where its holder has at least two more.
    fn yields(&self, holder: &Holder) -> Option<u64> {
        let own = self.held(holder);
        let fit = |key: &u64| {
            let (from, thing) = self.all.get(key)?;
            let held = self.held(from);
            let (used, since) = thing.used();
            let may = if used == Use::Answering { held > own + 1 } else { held > own || from == holder };
            may.then_some((Reverse(held), used, since, *key))
        };
        let some = self.some().and_then(|keys| keys.filter_map(fit).min());
        let fits = some.or_else(|| self.all.keys().filter_map(fit).min());
        fits.map(|(_, _, _, key)| key)
    }

    /// Returns some things of the holder with the most, in a crowd.
    fn some(&self) -> Option<impl Iterator<Item = &u64>> {
        let most = self.held.values().max_by_key(|keys| keys.len()).filter(|keys| keys.len() > LOOKED_AT)?;
        let (first, last) = (*most.first()?, *most.last()?);
        // Spread over all of them, by whatever number is at hand.
        let from = first + self.last.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (last - first + 1);
        Some(most.range(from..).chain(most.range(..from)).take(LOOKED_AT))
    }
}

impl<T: Yielding> Shares<T> {
    pub(super) fn new(most: usize, full: &'static str) -> Self {
        let table = Table { all: HashMap::new(), held: HashMap::new(), last: 0, pushing: Default::default() };
        Self { table: Mutex::new(table), most, full, said: Said::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// One more, which another makes room for when there are too many. Gives what names it. `None`: everything is in use
    /// by those who have no more than the newcomer.
    pub(super) fn add(&self, holder: Holder, thing: Arc<T>) -> Option<u64> {
        let mut table = self.lock();
        let is_full = table.all.len() >= self.most;
        let gone = is_full.then(|| table.make_room(&holder)).flatten();
        let key = (!is_full || gone.is_some()).then(|| {
            table.last += 1;
            let key = table.last;
            table.held.entry(holder.clone()).or_default().insert(key);
            table.all.insert(key, (holder, thing));
            key
        });
        drop(table);
        if is_full {
            self.said.say(self.full);
        }
        if let Some(gone) = gone {
            gone.make_room();
        }
        key
    }

    /// Ends the one that can best be done without. `false`: there is none.
    pub(super) fn shrink(&self) -> bool {
        let mut table = self.lock();
        let gone = table.yields(&Holder::Unknown).and_then(|key| table.take(key));
        drop(table);
        gone.inspect(|gone| gone.make_room()).is_some()
    }

    /// Returns true if this is so of any.
    pub(super) fn any(&self, of: impl Fn(&T) -> bool) -> bool {
        self.lock().all.values().any(|(_, thing)| of(thing))
    }

    /// Moves it to its holder, who is known better now.
    pub(super) fn belongs(&self, key: u64, to: &Holder) {
        let mut table = self.lock();
        let Some((holder, _)) = table.all.get_mut(&key).filter(|(holder, _)| holder != to) else { return };
        let before = std::mem::replace(holder, to.clone());
        table.leaves(&before, key);
        table.held.entry(to.clone()).or_default().insert(key);
    }

    /// It has ended.
    pub(super) fn remove(&self, key: u64) {
        self.lock().take(key);
    }

    /// Calls `each` with everything there is, without a lock.
    pub(super) fn each(&self, mut each: impl FnMut(&Arc<T>)) {
        let all: Vec<_> = self.lock().all.values().map(|(_, thing)| thing.clone()).collect();
        all.iter().for_each(&mut each);
    }

    pub(super) fn len(&self) -> usize {
        let table = self.lock();
        debug_assert_eq!(table.held.values().map(BTreeSet::len).sum::<usize>(), table.all.len());
        table.all.len()
    }
}

/// Number of things that a holder has without a share.
const ALWAYS: usize = 32;

/// Count of things that nobody can take away. One holder has at most as many as are left for others, and always a few.
pub(super) struct Counted {
    state: Mutex<(usize, HashMap<Holder, usize>)>,
    most: usize,
    /// The most that one holder has, however many are left.
    each: usize,
}

impl Counted {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), most, each: usize::MAX }
    }

    pub(super) fn with_each(self, each: usize) -> Self {
        Self { each, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, HashMap<Holder, usize>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more of this holder's, if it may have it.
    pub(super) fn take(&self, holder: &Holder) -> bool {
        let (all, held) = &mut *self.lock();
        let own = held.get(holder).copied().unwrap_or_default();
        let left = self.most - (*all).min(self.most);
        let share = left.max(ALWAYS).min(self.each);
        let fits = left > 0 && (own < share || *holder == Holder::Unknown);
        if fits {
            *all += 1;
            *held.entry(holder.clone()).or_default() += 1;
        }
        fits
    }

    /// One of this holder's is over.
    pub(super) fn give_back(&self, holder: &Holder) {
        let (all, held) = &mut *self.lock();
        *all -= 1;
        if let Some(own) = held.get_mut(holder) {
            *own -= 1;
            if *own == 0 {
                held.remove(holder);
            }
        }
        if held.len() * 8 < held.capacity() {
            held.shrink_to(held.len() * 2);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().0
    }
}

/// A limit that is hit is said once a minute.
#[derive(Debug, Default)]
pub(super) struct Said(AtomicU64);

const OFTEN: Duration = Duration::from_secs(60);

impl Said {
    pub(super) fn say(&self, what: &str) {
        let now = millis(now()).max(1);
        let last = self.0.load(Ordering::Relaxed);
        let is_due = last == 0 || last.saturating_add(millis(OFTEN)) <= now;
        if is_due && self.0.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            report::say(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::AtomicBool;

    use super::*;

    struct Thing {
        used: Use,
        since: u64,
        gone: AtomicBool,
    }

    impl Yielding for Thing {
        fn used(&self) -> (Use, u64) {
            (self.used, self.since)
        }

        fn make_room(&self) {
            assert!(!self.gone.swap(true, Ordering::Relaxed), "once");
        }
    }

    fn thing(used: Use, since: u64) -> Arc<Thing> {
        Arc::new(Thing { used, since, gone: AtomicBool::new(false) })
    }

    fn at(last: u8) -> Holder {
        Holder::of(None, Some(IpAddr::from([203, 0, 113, last])))
    }

    fn gone(things: &[Arc<Thing>]) -> Vec<u64> {
        things.iter().filter(|thing| thing.gone.load(Ordering::Relaxed)).map(|thing| thing.since).collect()
    }

    #[test]
    fn a_holder_leaves_as_many_as_it_has() {
        let (all, eve, ada) = (Counted::new(100), at(9), at(1));
        assert_eq!((0..100).filter(|_| all.take(&eve)).count(), 50);
        assert_eq!((0..100).filter(|_| all.take(&ada)).count(), 32, "a few are always there");
        assert_eq!((0..100).filter(|_| all.take(&Holder::Unknown)).count(), 18);
        assert!(!all.take(&ada) && all.len() == 100);
        (0..50).for_each(|_| all.give_back(&eve));
        assert!(all.take(&eve) && all.len() == 51);
        let few = Counted::new(2);
        assert!(few.take(&eve) && few.take(&eve) && !few.take(&ada));
    }

    #[test]
    fn a_newcomer_always_gets_in() {
        for used in [Use::Idle, Use::Waiting, Use::Answering] {
            let shares = Shares::new(4, "full");
            let eves: Vec<_> = (0..4).map(|since| thing(used, since)).collect();
            for eve in &eves {
                assert!(shares.add(at(9), eve.clone()).is_some());
            }
            let own = thing(Use::Answering, 9);
            assert!(shares.add(at(1), own.clone()).is_some(), "{used:?}");
            assert_eq!((gone(&eves), shares.len()), (vec![0], 4));
            // The holder with the most finds room at his own cost, unless all of it is in use.
            let more = shares.add(at(9), thing(used, 10)).is_some();
            assert_eq!((more, gone(&[own])), (used != Use::Answering, vec![]), "{used:?}");
            assert_eq!(shares.len(), 4);
        }
    }

    #[test]
    fn the_least_used_goes_first_and_of_those_the_one_that_is_so_for_longest() {
        let shares = Shares::new(4, "full");
        let all = [(Use::Answering, 1), (Use::Waiting, 2), (Use::Idle, 4), (Use::Idle, 3)];
        let all: Vec<_> = all.into_iter().map(|(used, since)| thing(used, since)).collect();
        for one in &all {
            assert!(shares.add(at(9), one.clone()).is_some());
        }
        for (last, expected) in [(1, vec![3]), (2, vec![4, 3]), (3, vec![2, 4, 3])] {
            assert!(shares.add(at(last), thing(Use::Answering, 100)).is_some());
            assert_eq!(gone(&all), expected);
        }
        // All have one that answers somebody: there is no room.
        assert!(shares.add(at(4), thing(Use::Answering, 100)).is_none());
        assert_eq!(gone(&all), [2, 4, 3]);
    }

    #[test]
    fn it_counts_for_whom_it_is_known_to_be() {
        let shares = Shares::new(3, "full");
        let all: Vec<_> = (0..3).map(|since| thing(Use::Waiting, since)).collect();
        let keys: Vec<_> = all.iter().map(|one| shares.add(at(9), one.clone()).expect("room")).collect();
        shares.belongs(keys[0], &at(1));
        shares.belongs(keys[0], &at(1));
        assert!(shares.add(at(2), thing(Use::Waiting, 9)).is_some());
        assert_eq!(gone(&all), [1], "the other one has but one");
        keys.iter().for_each(|key| shares.remove(*key));
        shares.remove(keys[0]);
        assert_eq!(shares.len(), 1);
        assert!(shares.shrink() && !shares.shrink());
    }
}
