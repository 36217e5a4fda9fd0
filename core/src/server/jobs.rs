//! Blocking jobs, a few at a time: file systems may hang, and threads are not free.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::Context;
use crate::report;

/// Most jobs of a server that run at once; the others wait their turn.
const MAX_RUNNING: usize = 8;

struct Job {
    context: Context,
    work: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: VecDeque<Job>,
    /// With so many waiting, those that nobody wants any more are looked for.
    crowded: usize,
}

/// The jobs of one server. Each belongs to a request in flight, so there are no more of them than of these.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<State>);

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what blocks for a request, on a thread for that. When the request was cancelled before its turn, the work is
    /// dropped.
    pub(crate) fn run(self: &Arc<Self>, context: &Context, work: impl FnOnce() + Send + 'static) {
        let job = Job { context: context.clone(), work: Box::new(work) };
        let mut state = self.lock();
        if state.running < MAX_RUNNING {
            state.running += 1;
            drop(state);
            let mut turn = Turn(Some(self.clone()));
            return context.link().block(Box::new(move || turn.work(job)));
        }
        let mut gone = Vec::new();
        if state.waiting.len() >= state.crowded {
            let all = std::mem::take(&mut state.waiting);
            let (unwanted, wanted): (Vec<Job>, Vec<Job>) = all.into_iter().partition(|job| job.context.is_cancelled());
            state.crowded = wanted.len() * 2 + 64;
            state.waiting = wanted.into();
            gone = unwanted;
        }
        state.waiting.push_back(job);
        drop(state);
        // Replies answer as they are dropped, and not under the lock.
        drop(gone);
    }
}

/// One of the places to run at, given back when it is dropped.
struct Turn(Option<Arc<Jobs>>);

impl Turn {
    fn work(&mut self, first: Job) {
        let mut next = Some(first);
        while let Some(Job { context, work }) = next {
            if !context.is_cancelled() {
                report::guarded("reading files", work);
            }
            next = self.next();
        }
    }

    /// Takes the job that has waited longest. Without one the place is free, under the same lock, or a job that comes
    /// between would never run.
    fn next(&mut self) -> Option<Job> {
        let jobs = self.0.take()?;
        let mut state = jobs.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.running -= 1;
            state.waiting = VecDeque::new();
        }
        drop(state);
        if next.is_some() {
            self.0 = Some(jobs);
        }
        next
    }
}

impl Drop for Turn {
    /// Finds something only when the runtime ended before the job began.
    fn drop(&mut self) {
        if let Some(jobs) = self.0.take() {
            jobs.lock().running -= 1;
        }
    }
}
