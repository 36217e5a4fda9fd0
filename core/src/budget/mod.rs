//! The budget of the process for memory that peers make it hold: bodies, calls that nobody waits for, events that are
//! kept.
//!
//! **Invariant**: what holds bytes of a peer that no message limit bounds on its own has a [`Charge`] for them, which ends
//! with them. One owner has at most as much as is left for others, so that somebody new always finds room.

mod trim;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

pub(crate) use trim::worked;

/// Charges are counted in steps of so many bytes.
pub(crate) const STEP: usize = 16 << 10;

/// The smallest budget that is set without being asked for.
const LEAST: usize = 64 << 20;

/// The budget where nobody says how much memory there is.
const UNKNOWN: usize = 1 << 30;

/// Time without further attempts to reclaim memory, after nobody could give anything up.
const PAUSE: Duration = Duration::from_millis(100);

/// Somebody whose bytes count together: a client of a server, or a server of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(u64);

impl Owner {
    /// One that is not known has no share: all of the budget is open to it.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// The owner that `key` tells from others.
    pub(crate) fn of(key: &impl Hash) -> Self {
        static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(STATE.hash_one(key).max(1))
    }

    /// Tells it from others.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The owner of this number, where there is one.
    pub(crate) fn numbered(number: Option<u64>) -> Self {
        number.map_or(Self::UNKNOWN, Self)
    }

    /// One that is unlike all others: of a pipe.
    pub(crate) fn unlike_others() -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        Self::of(&("alone", LAST.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Something that can give up memory that somebody may do without.
pub(crate) trait Reclaim: Send + Sync {
    /// Gives up at least so many bytes, if it can: what is idle, of the owners that have most. Says how many.
    fn reclaim(&self, bytes: usize) -> usize;
}

/// A budget and its use.
struct Budget {
    max: AtomicUsize,
    /// As in the state, to be read without its lock.
    used: AtomicUsize,
    state: Mutex<State>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct State {
    used: usize,
    by_owner: HashMap<Owner, usize>,
}

#[derive(Default)]
struct Idle {
    all: Vec<Weak<dyn Reclaim>>,
    /// Time of the last attempt in which nobody could give up anything.
    in_vain: Option<Instant>,
}

static PROCESS: LazyLock<Budget> = LazyLock::new(|| Budget::new(0));

/// Sets the most that the process may hold for peers, in bytes.
pub(crate) fn set_max(bytes: usize) {
    PROCESS.max.store(bytes, Ordering::Relaxed);
}

/// Bytes that it holds.
pub(crate) fn used() -> usize {
    PROCESS.used.load(Ordering::Relaxed)
}

/// Returns true if this owner has so much that it gets no more work done, although what is idle was given up for it.
pub(crate) fn is_spent(owner: Owner) -> bool {
    PROCESS.is_spent(owner) && (!PROCESS.make_room(STEP) || PROCESS.is_spent(owner))
}

/// `idle` is asked for what can be done without, for as long as it lives.
pub(crate) fn reclaim_from(idle: &Arc<dyn Reclaim>) {
    let mut known = PROCESS.idle.lock().unwrap_or_else(PoisonError::into_inner);
    known.all.retain(|idle| idle.strong_count() > 0);
    known.all.push(Arc::downgrade(idle));
}

impl Budget {
    fn new(max: usize) -> Self {
        Self { max: AtomicUsize::new(max), used: AtomicUsize::new(0), state: Mutex::default(), idle: Mutex::default() }
    }

    fn max(&self) -> usize {
        match self.max.load(Ordering::Relaxed) {
            0 => {
                let max = memory().map_or(UNKNOWN, |bytes| bytes / 4).max(LEAST);
                // A value that was set meanwhile stays.
                let _ = self.max.compare_exchange(0, max, Ordering::Relaxed, Ordering::Relaxed);
                self.max.load(Ordering::Relaxed)
            }
            max => max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, owner: Owner, bytes: usize) -> bool {
        let max = self.max();
        let mut state = self.lock();
        let of_owner = state.by_owner.get(&owner).copied().unwrap_or_default();
        let left = max.saturating_sub(state.used);
        let fits = bytes <= left && (owner == Owner::UNKNOWN || of_owner + bytes <= left - bytes);
        if fits {
            state.used += bytes;
            self.used.store(state.used, Ordering::Relaxed);
            *state.by_owner.entry(owner).or_default() += bytes;
        }
        fits
    }

    /// Takes what is there already, whether it may or not.
    fn take_anyway(&self, owner: Owner, bytes: usize) {
        let mut state = self.lock();
        state.used += bytes;
        *state.by_owner.entry(owner).or_default() += bytes;
        self.used.store(state.used, Ordering::Relaxed);
    }

    /// Returns true if this owner has more than is left for others.
    fn is_spent(&self, owner: Owner) -> bool {
        let max = self.max();
        // Nobody has then more than is left.
        if self.used.load(Ordering::Relaxed) <= max / 2 {
            return false;
        }
        let state = self.lock();
        let left = max.saturating_sub(state.used);
        let of_owner = state.by_owner.get(&owner).copied().unwrap_or_default();
        left == 0 || (owner != Owner::UNKNOWN && of_owner > left)
    }

    fn give_back(&self, owner: Owner, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.lock();
        state.used -= bytes;
        self.used.store(state.used, Ordering::Relaxed);
        let left = state.by_owner.get_mut(&owner).map(|held| {
            *held -= bytes;
            *held
        });
        if left == Some(0) {
            state.by_owner.remove(&owner);
            if state.by_owner.len() * 8 < state.by_owner.capacity() {
                let most = state.by_owner.len() * 2;
                state.by_owner.shrink_to(most);
            }
        }
        drop(state);
        worked(bytes);
    }

    /// Asks for what can be done without.
    fn make_room(&self, bytes: usize) -> bool {
        let mut known = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.in_vain.is_some_and(|last| now.duration_since(last) < PAUSE) {
            return false;
        }
        let all: Vec<_> = known.all.iter().filter_map(Weak::upgrade).collect();
        // Enough for a while.
        let wanted = bytes.max(self.max() / 16);
        let mut freed = 0;
        for idle in all {
            if freed < wanted {
                freed += idle.reclaim(wanted - freed);
            }
        }
        known.in_vain = (freed == 0).then_some(now);
        freed > 0
    }
}

/// The part of the budget that something takes for as long as it lives.
pub(crate) struct Charge {
    budget: &'static Budget,
    owner: Owner,
    wanted: usize,
    held: usize,
}

impl Charge {
    /// Nothing yet.
    pub(crate) fn new(owner: Owner) -> Self {
        Self { budget: &PROCESS, owner, wanted: 0, held: 0 }
    }

    /// Takes so many bytes more. `false`, and nothing is taken: there are not so many left for this owner.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let wanted = self.wanted + bytes;
        if wanted > self.held {
            let more = (wanted - self.held).div_ceil(STEP) * STEP;
            if !self.budget.take(self.owner, more) {
                return false;
            }
            self.held += more;
        }
        self.wanted = wanted;
        true
    }

    /// As [`try_grow`](Self::try_grow), at the cost of what is idle. Called without a lock.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.try_grow(bytes) || (self.budget.make_room(bytes) && self.try_grow(bytes))
    }

    /// Takes so many bytes more, whether there are so many left or not: of something that is there already.
    pub(crate) fn force(&mut self, bytes: usize) {
        self.wanted += bytes;
        if self.wanted > self.held {
            let more = (self.wanted - self.held).div_ceil(STEP) * STEP;
            self.budget.take_anyway(self.owner, more);
            self.held += more;
        }
    }

    /// Takes or gives back what is missing to so many bytes. `false`: more cannot be had, and nothing has changed.
    pub(crate) fn fit(&mut self, bytes: usize) -> bool {
        if bytes <= self.wanted {
            self.shrink(self.wanted - bytes);
            return true;
        }
        self.try_grow(bytes - self.wanted)
    }

    /// Gives so many bytes back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.wanted -= bytes.min(self.wanted);
        let needed = self.wanted.div_ceil(STEP) * STEP;
        self.budget.give_back(self.owner, self.held - needed);
        self.held = needed;
    }

    /// The bytes that were asked for.
    pub(crate) fn bytes(&self) -> usize {
        self.wanted
    }

    /// The bytes that are taken, in whole steps.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// `text`, which the charge is for: it ends with the last part of it.
    pub(crate) fn of(self, text: Bytes) -> Bytes {
        struct Charged {
            text: Bytes,
            _charge: Charge,
        }
        impl AsRef<[u8]> for Charged {
            fn as_ref(&self) -> &[u8] {
                &self.text
            }
        }
        if self.held == 0 { text } else { Bytes::from_owner(Charged { text, _charge: self }) }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.owner, self.held);
    }
}

/// A charge of one thing among many, which changes while that lives: its first step is free.
pub(crate) struct Kept {
    charge: Charge,
    bytes: usize,
}

impl Kept {
    /// Nothing yet.
    pub(crate) fn new(owner: Owner) -> Self {
        Self { charge: Charge::new(owner), bytes: 0 }
    }

    fn wanted(bytes: usize) -> usize {
        if bytes > STEP { bytes } else { 0 }
    }

    /// Keeps so many bytes in all. `false`: there are not so many left for its owner, and nothing has changed. Called
    /// without a lock.
    pub(crate) fn fit(&mut self, bytes: usize) -> bool {
        let wanted = Self::wanted(bytes);
        let fits = self.charge.fit(wanted) || self.charge.grow(wanted - self.charge.bytes());
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Keeps so many bytes more, which are there already.
    pub(crate) fn force(&mut self, more: usize) {
        self.bytes += more;
        self.charge.force(Self::wanted(self.bytes).saturating_sub(self.charge.bytes()));
    }

    /// The bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The memory that this process may have, in bytes: that of the machine, or what its control group allows.
#[cfg(target_os = "linux")]
fn memory() -> Option<usize> {
    use std::fs::read_to_string;
    use std::path::Path;
    let number = |path: &Path| read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    });
    // A limit of a group holds for those in it, too.
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => ("", ""),
        };
        let path = Path::new(root).join(path.trim_start_matches('/'));
        let within: Vec<_> = path.ancestors().filter(|path| !root.is_empty() && path.starts_with(root)).collect();
        within.into_iter().filter_map(|path| number(&path.join(file))).collect::<Vec<_>>()
    });
    limits.chain(machine).min()
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(budget: &'static Budget, owner: Owner) -> Charge {
        Charge { budget, owner, wanted: 0, held: 0 }
    }

    fn of(steps: usize) -> &'static Budget {
        Box::leak(Box::new(Budget::new(steps * STEP)))
    }

    #[test]
    fn an_owner_leaves_as_much_as_it_has() {
        let budget = of(12);
        let owner = |name: &str| Owner::of(&name);
        let (mut eve, mut mallory, mut ada) =
            (charge(budget, owner("eve")), charge(budget, owner("mallory")), charge(budget, owner("ada")));
        while eve.try_grow(STEP) {}
        assert_eq!(eve.held(), 6 * STEP);
        while mallory.try_grow(STEP) {}
        assert_eq!(mallory.held(), 3 * STEP);
        assert!(ada.try_grow(1) && ada.held() == STEP, "somebody new finds room");
        let mut unknown = charge(budget, Owner::UNKNOWN);
        assert!(unknown.try_grow(2 * STEP) && !unknown.try_grow(1));
        eve.shrink(5 * STEP + 1);
        assert_eq!(eve.held(), STEP);
        assert!(unknown.try_grow(1));
        drop((eve, mallory, ada, unknown));
        let state = budget.lock();
        assert_eq!((state.used, state.by_owner.len()), (0, 0));
    }

    #[test]
    fn who_has_more_than_is_left_gets_nothing_done() {
        let budget = of(8);
        let (eve, ada) = (Owner::of(&"eve"), Owner::of(&"ada"));
        let mut answers = charge(budget, eve);
        answers.force(4 * STEP);
        assert!(!budget.is_spent(eve));
        answers.force(1);
        assert!(budget.is_spent(eve) && !budget.is_spent(ada) && !budget.is_spent(Owner::UNKNOWN));
        answers.force(8 * STEP);
        assert!(budget.is_spent(ada) && budget.is_spent(Owner::UNKNOWN));
        drop(answers);
        assert!(!budget.is_spent(eve));
    }

    #[test]
    fn a_text_is_charged_for_until_its_last_part_is_gone() {
        let budget = of(8);
        let mut charge = charge(budget, Owner::UNKNOWN);
        assert!(charge.try_grow(STEP + 1));
        let text = charge.of(Bytes::from(vec![b'x'; STEP + 1]));
        let part = text.slice(7..9);
        drop(text);
        assert_eq!(budget.lock().used, 2 * STEP);
        drop(part);
        assert_eq!(budget.lock().used, 0);
    }

    #[test]
    fn what_is_kept_costs_from_the_second_step_on() {
        let budget = of(4);
        let mut kept = Kept { charge: charge(budget, Owner::UNKNOWN), bytes: 0 };
        assert!(kept.fit(STEP) && budget.lock().used == 0);
        assert!(kept.fit(STEP + 1) && budget.lock().used == 2 * STEP);
        assert!(!kept.fit(5 * STEP) && kept.bytes() == STEP + 1);
        kept.force(4 * STEP);
        assert_eq!((kept.bytes(), budget.lock().used), (5 * STEP + 1, 6 * STEP));
        assert!(kept.fit(1) && budget.lock().used == 0);
    }

    #[test]
    fn what_is_idle_makes_room_and_nobody_is_asked_in_vain_for_long() {
        struct Kept(Mutex<Option<Charge>>, AtomicUsize);
        impl Reclaim for Kept {
            fn reclaim(&self, _: usize) -> usize {
                self.1.fetch_add(1, Ordering::Relaxed);
                self.0.lock().expect("a lock").take().map_or(0, |charge| charge.held())
            }
        }
        let budget = of(8);
        let mut old = charge(budget, Owner::UNKNOWN);
        assert!(old.grow(8 * STEP));
        let kept = Arc::new(Kept(Mutex::new(Some(old)), AtomicUsize::new(0)));
        let known: Arc<dyn Reclaim> = kept.clone();
        budget.idle.lock().expect("a lock").all.push(Arc::downgrade(&known));
        let mut new = charge(budget, Owner::UNKNOWN);
        assert!(!new.try_grow(1) && new.grow(8 * STEP));
        assert!(!new.grow(1) && !new.grow(1));
        assert_eq!(kept.1.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn there_is_a_budget_without_being_asked_for() {
        assert!(Budget::new(0).max() >= LEAST);
        assert_eq!(Budget::new(7).max(), 7);
    }
}
