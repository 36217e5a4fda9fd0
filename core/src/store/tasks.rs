use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::jsonrpc::RawJson;
use crate::model::Task;

/// Owner of a task: nobody else finds it. The name of a session or a connection; one day that of a principal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(pub(crate) Arc<str>);

/// End of a task: the answer that its request would have got.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Result(RawJson),
    Error(Error),
}

impl Outcome {
    /// About how many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Result(result) => result.get().len(),
            Self::Error(error) => error.message().len() + error.data().map_or(0, |data| data.get().len()),
        }
    }
}

/// A task with what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) task: Task,
    /// There from the moment on that the task is finished, unless it was cancelled.
    pub(crate) outcome: Option<Outcome>,
}

/// Limits of the number of tasks, and of the bytes of their outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) tasks: usize,
    pub(crate) tasks_per_owner: usize,
    pub(crate) bytes: usize,
}

/// No task can make room for another: all are being worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are too many.
    All,
    /// Their owner has too many.
    Owner,
    /// The holder of their owner's sessions has as many as are left for others.
    Holder,
}

/// The number by which tasks count together, whatever sessions they are of: a principal, or where it comes from.
pub(crate) type Holder = u64;

/// Number of tasks that a holder may have in any case.
const ALWAYS: usize = 8;

/// Tasks and their outcomes. Called under the lock of the code that runs the tasks: must not wait, so a store that is
/// shared queues what it writes. Times are those of one clock, whichever; nothing is taken out because of them but by
/// [`expire`](Self::expire).
pub(crate) trait TaskStore: Send {
    /// Keeps a new task, at the cost of finished ones: first of the same owner, the longest finished first. One holder has
    /// at most as many as are left for others.
    ///
    /// # Errors
    /// When all existing tasks are being worked on.
    fn add(&mut self, owner: &Owner, holder: Option<Holder>, task: Task, expires: Duration) -> Result<(), Full>;
    /// A task as it is.
    fn get(&self, owner: &Owner, id: &str) -> Option<Kept>;
    /// The task is another now. Nothing happens when it is finished or gone; says whether it was there.
    fn update(&mut self, owner: &Owner, task: Task) -> bool;
    /// The task is finished. `false`: it was before, or is gone. An outcome costs the longest finished ones theirs,
    /// and their place.
    fn finish(&mut self, owner: &Owner, task: Task, outcome: Option<Outcome>) -> bool;
    /// Returns a page of an owner's tasks in order of creation, after the one with this place; and the place of the
    /// last, when more follow.
    fn page(&self, owner: &Owner, after: u64, most: usize) -> (Vec<Task>, Option<u64>);
    /// The place of the newest task, whosever.
    fn last(&self) -> u64;
    /// Forgets a task.
    fn remove(&mut self, owner: &Owner, id: &str);
    /// Forgets all of an owner's.
    fn remove_all(&mut self, owner: &Owner);
    /// Forgets what has expired, and says what that was.
    fn expire(&mut self, now: Duration) -> Vec<(Owner, String)>;
    /// Time of the next expiry.
    fn next_expiry(&self) -> Option<Duration>;
    /// Returns the ids of tasks that have made room for others since this was last asked.
    fn dropped(&mut self) -> Vec<String>;
    /// Number of tasks.
    fn len(&self) -> usize;
}

struct Record {
    owner: Owner,
    holder: Option<Holder>,
    kept: Kept,
    expires: Duration,
    /// Its turn to make room, once it is finished.
    finished: Option<u64>,
}

impl Record {
    fn bytes(&self) -> usize {
        self.kept.outcome.as_ref().map_or(0, Outcome::len)
    }
}

/// The tasks of one process.
pub(crate) struct MemoryTasks {
    room: Room,
    /// In order of creation.
    records: BTreeMap<u64, Record>,
    by_id: HashMap<String, u64>,
    by_expiry: BTreeSet<(Duration, u64)>,
    /// In order of their end.
    finished: BTreeMap<u64, u64>,
    bytes: usize,
    last: u64,
    last_finished: u64,
    /// Those that have made room for others.
    dropped: Vec<String>,
}

impl MemoryTasks {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            records: BTreeMap::new(),
            by_id: HashMap::new(),
            by_expiry: BTreeSet::new(),
            finished: BTreeMap::new(),
            bytes: 0,
            last: 0,
            last_finished: 0,
            dropped: Vec::new(),
        }
    }

    fn place(&self, owner: &Owner, id: &str) -> Option<u64> {
        let place = *self.by_id.get(id)?;
        self.records.get(&place).filter(|record| record.owner == *owner).map(|_| place)
    }

    fn working(&mut self, owner: &Owner, id: &str) -> Option<(u64, &mut Record)> {
        let place = self.place(owner, id)?;
        self.records.get_mut(&place).filter(|record| record.finished.is_none()).map(|record| (place, record))
    }

    fn take(&mut self, place: u64) -> Option<Record> {
        let record = self.records.remove(&place)?;
        self.by_id.remove(&record.kept.task.task_id);
        self.by_expiry.remove(&(record.expires, place));
        if let Some(turn) = record.finished {
            self.finished.remove(&turn);
        }
        self.bytes -= record.bytes();
        if self.by_id.len() * 8 < self.by_id.capacity() {
            self.by_id.shrink_to(self.by_id.len() * 2);
        }
        Some(record)
    }

    /// Takes the longest finished one out that fits. `false`: there is none.
    fn drop_oldest(&mut self, fits: impl Fn(&Record) -> bool) -> bool {
        let oldest = self.finished.values().find(|place| self.records.get(place).is_some_and(&fits)).copied();
        let Some(record) = oldest.and_then(|place| self.take(place)) else { return false };
        self.dropped.push(record.kept.task.task_id);
        true
    }
}

impl TaskStore for MemoryTasks {
    fn add(&mut self, owner: &Owner, holder: Option<Holder>, task: Task, expires: Duration) -> Result<(), Full> {
        let of_owner = |record: &Record| record.owner == *owner;
        let of_holder = |record: &Record| holder.is_some() && record.holder == holder;
        let own = self.records.values().filter(|record| of_owner(record)).count();
        if own >= self.room.tasks_per_owner && !self.drop_oldest(of_owner) {
            return Err(Full::Owner);
        }
        let held = self.records.values().filter(|record| of_holder(record)).count();
        let left = self.room.tasks.saturating_sub(self.records.len());
        if held >= left.max(ALWAYS) && !self.drop_oldest(of_owner) && !self.drop_oldest(of_holder) {
            return Err(Full::Holder);
        }
        if self.records.len() >= self.room.tasks && !self.drop_oldest(of_owner) && !self.drop_oldest(|_| true) {
            return Err(Full::All);
        }
        self.last += 1;
        self.by_id.insert(task.task_id.clone(), self.last);
        self.by_expiry.insert((expires, self.last));
        let kept = Kept { task, outcome: None };
        self.records.insert(self.last, Record { owner: owner.clone(), holder, kept, expires, finished: None });
        Ok(())
    }

    fn get(&self, owner: &Owner, id: &str) -> Option<Kept> {
        let place = self.place(owner, id)?;
        self.records.get(&place).map(|record| record.kept.clone())
    }

    fn update(&mut self, owner: &Owner, task: Task) -> bool {
        let id = task.task_id.clone();
        self.working(owner, &id).map(|(_, record)| record.kept.task = task).is_some()
    }

    fn finish(&mut self, owner: &Owner, task: Task, outcome: Option<Outcome>) -> bool {
        let (room, size) = (self.room.bytes, outcome.as_ref().map_or(0, Outcome::len));
        let turn = self.last_finished + 1;
        let id = task.task_id.clone();
        let Some((place, record)) = self.working(owner, &id) else { return false };
        record.kept = Kept { task, outcome };
        record.finished = Some(turn);
        self.last_finished = turn;
        self.finished.insert(turn, place);
        self.bytes += size;
        while self.bytes > room && self.finished.len() > 1 && self.drop_oldest(|_| true) {}
        true
    }

    fn page(&self, owner: &Owner, after: u64, most: usize) -> (Vec<Task>, Option<u64>) {
        let mut own = self.records.range(after + 1..).filter(|(_, record)| record.owner == *owner);
        let page: Vec<_> = own.by_ref().take(most).collect();
        let more = own.next().is_some();
        let next = page.last().filter(|_| more).map(|(place, _)| **place);
        (page.into_iter().map(|(_, record)| record.kept.task.clone()).collect(), next)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn remove(&mut self, owner: &Owner, id: &str) {
        if let Some(place) = self.place(owner, id) {
            self.take(place);
        }
    }

    fn remove_all(&mut self, owner: &Owner) {
        let own = self.records.iter().filter(|(_, record)| record.owner == *owner).map(|(place, _)| *place);
        for place in own.collect::<Vec<_>>() {
            self.take(place);
        }
    }

    fn expire(&mut self, now: Duration) -> Vec<(Owner, String)> {
        let mut gone = Vec::new();
        while let Some((expires, place)) = self.by_expiry.first().copied().filter(|(expires, _)| *expires <= now) {
            match self.take(place) {
                Some(record) => gone.push((record.owner, record.kept.task.task_id)),
                None => drop(self.by_expiry.remove(&(expires, place))),
            }
        }
        gone
    }

    fn next_expiry(&self) -> Option<Duration> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    fn dropped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dropped)
    }

    fn len(&self) -> usize {
        self.records.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TaskStatus;

    const ROOM: Room = Room { tasks: 4, tasks_per_owner: 3, bytes: 100 };

    fn owner(name: &str) -> Owner {
        Owner(name.into())
    }

    fn task(id: &str, status: TaskStatus) -> Task {
        Task { status, ..Task::working(id, "") }
    }

    fn add(store: &mut MemoryTasks, owner: &Owner, id: &str, expires: u64) -> Result<(), Full> {
        store.add(owner, None, task(id, TaskStatus::Working), Duration::from_secs(expires))
    }

    fn finish(store: &mut MemoryTasks, owner: &Owner, id: &str, bytes: usize) -> bool {
        let outcome = Outcome::Result(RawJson::written("x".repeat(bytes)));
        store.finish(owner, task(id, TaskStatus::Completed), Some(outcome))
    }

    fn ids(store: &MemoryTasks, owner: &Owner) -> Vec<String> {
        store.page(owner, 0, 100).0.into_iter().map(|task| task.task_id).collect()
    }

    #[test]
    fn finished_ones_make_room_for_new_ones_the_owners_first() {
        let (mut store, a, b) = (MemoryTasks::new(ROOM), owner("a"), owner("b"));
        for id in ["a1", "a2", "a3"] {
            assert_eq!(add(&mut store, &a, id, 9), Ok(()));
        }
        assert_eq!(add(&mut store, &a, "a4", 9), Err(Full::Owner));
        assert_eq!(add(&mut store, &b, "b1", 9), Ok(()));
        assert_eq!(add(&mut store, &b, "b2", 9), Err(Full::All));
        assert!(finish(&mut store, &a, "a3", 1) && finish(&mut store, &a, "a1", 1));
        assert_eq!(add(&mut store, &b, "b2", 9), Ok(()), "another owner's, when there is no own");
        assert_eq!(
            (ids(&store, &a), ids(&store, &b)),
            (vec!["a1".into(), "a2".into()], vec!["b1".into(), "b2".into()])
        );
        assert!(finish(&mut store, &b, "b2", 1));
        assert_eq!(add(&mut store, &b, "b3", 9), Ok(()));
        assert_eq!((ids(&store, &a).len(), ids(&store, &b)), (2, vec!["b1".into(), "b3".into()]));
    }

    #[test]
    fn a_holder_of_many_sessions_leaves_as_many_as_it_has() {
        let mut store = MemoryTasks::new(Room { tasks: 100, tasks_per_owner: 20, bytes: 100 });
        let mut add = |session: usize, holder: u64, n: usize| {
            let task = task(&format!("{holder}-{session}-{n}"), TaskStatus::Working);
            store.add(&owner(&session.to_string()), Some(holder), task, Duration::from_secs(9))
        };
        let taken = (0..100).filter(|n| add(n % 10, 9, *n).is_ok()).count();
        assert_eq!((taken, add(11, 9, 0)), (50, Err(Full::Holder)));
        let others = (0..100).filter(|n| add(100 + n % 10, 1, *n).is_ok()).count();
        assert_eq!((others, (0..8).all(|n| add(200, 2, n).is_ok())), (25, true));
        let of_nobody = store.add(&owner("x"), None, task("x", TaskStatus::Working), Duration::from_secs(9));
        assert_eq!(of_nobody, Ok(()));
        assert!(finish(&mut store, &owner("3"), "9-3-3", 1));
        let again = store.add(&owner("300"), Some(9), task("new", TaskStatus::Working), Duration::from_secs(9));
        assert_eq!(again, Ok(()), "what it has finished makes room");
    }

    #[test]
    fn outcomes_cost_the_longest_finished_their_place() {
        let (mut store, a) = (MemoryTasks::new(ROOM), owner("a"));
        for id in ["1", "2", "3"] {
            assert_eq!(add(&mut store, &a, id, 9), Ok(()));
        }
        assert!(finish(&mut store, &a, "2", 60) && finish(&mut store, &a, "1", 30));
        assert_eq!(store.bytes, 90);
        assert!(finish(&mut store, &a, "3", 50));
        assert_eq!((ids(&store, &a), store.bytes), (vec!["1".into(), "3".into()], 80));
        store.remove_all(&a);
        assert_eq!((store.len(), store.bytes, store.by_id.len(), store.finished.len()), (0, 0, 0, 0));
    }

    #[test]
    fn what_is_finished_stays_as_it_is() {
        let (mut store, a) = (MemoryTasks::new(ROOM), owner("a"));
        assert_eq!(add(&mut store, &a, "1", 9), Ok(()));
        assert!(store.update(&a, task("1", TaskStatus::InputRequired)));
        assert!(store.finish(&a, task("1", TaskStatus::Cancelled), None));
        assert!(!finish(&mut store, &a, "1", 5) && !store.update(&a, task("1", TaskStatus::Working)));
        let kept = store.get(&a, "1").expect("there");
        assert!(kept.task.status == TaskStatus::Cancelled && kept.outcome.is_none() && store.bytes == 0);
    }

    #[test]
    fn each_expires_in_its_time_whatever_its_status() {
        let (mut store, a) = (MemoryTasks::new(ROOM), owner("a"));
        assert!(add(&mut store, &a, "late", 20).is_ok() && add(&mut store, &a, "soon", 10).is_ok());
        assert!(finish(&mut store, &a, "late", 7));
        assert_eq!(store.next_expiry(), Some(Duration::from_secs(10)));
        assert!(store.expire(Duration::from_millis(9_999)).is_empty());
        assert_eq!(store.expire(Duration::from_secs(10)), [(a.clone(), "soon".to_owned())]);
        assert!(store.get(&a, "soon").is_none() && store.get(&a, "late").is_some());
        assert_eq!(store.expire(Duration::from_secs(99)).len(), 1);
        assert_eq!((store.next_expiry(), store.len(), store.bytes), (None, 0, 0));
    }

    #[test]
    fn nobody_sees_what_is_anothers() {
        let (mut store, a, b) = (MemoryTasks::new(ROOM), owner("a"), owner("b"));
        assert_eq!(add(&mut store, &a, "1", 9), Ok(()));
        assert!(store.get(&b, "1").is_none() && !store.update(&b, task("1", TaskStatus::InputRequired)));
        assert!(!store.finish(&b, task("1", TaskStatus::Cancelled), None));
        store.remove(&b, "1");
        store.remove_all(&b);
        assert_eq!((ids(&store, &b).len(), ids(&store, &a).len()), (0, 1));
    }

    #[test]
    fn pages_go_on_after_what_was_seen_although_it_is_gone() {
        let (mut store, a) = (MemoryTasks::new(ROOM), owner("a"));
        for id in ["1", "2", "3"] {
            assert_eq!(add(&mut store, &a, id, 9), Ok(()));
        }
        let (page, next) = store.page(&a, 0, 2);
        assert_eq!((page.len(), next), (2, Some(2)));
        store.remove(&a, "2");
        let (page, next) = store.page(&a, 2, 2);
        assert_eq!((page[0].task_id.as_str(), page.len(), next), ("3", 1, None));
    }
}
