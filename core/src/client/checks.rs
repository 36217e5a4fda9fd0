//! Threads for what a peer's schema may have us do for long: few, one at a time for each client, and none while there is
//! nothing to do. The engine's own threads and those of the host never wait for it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The threads of a process.
const MAX_THREADS: usize = 2;
/// The room for calls on each.
const STACK: usize = 4 << 20;
/// Time that a thread waits for more work.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    /// A forked child has none of its parent's threads.
    process: u32,
    threads: usize,
    idle: usize,
    /// Waiting jobs of each client; the client that was served longest ago is first.
    waiting: VecDeque<(u64, VecDeque<Job>)>,
    /// Clients that are being served.
    served: Vec<u64>,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { process: 0, threads: 0, idle: 0, waiting: VecDeque::new(), served: Vec::new() });
static MORE: Condvar = Condvar::new();

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does this on one of the threads; `client` has one thing done at a time. The requests that wait for answers bound how
/// much there can be.
pub(super) fn run(client: u64, job: Job) {
    let mut all = queue();
    let process = std::process::id();
    if all.process != process {
        // Never dropped: what the parent's calls hold is not the child's to end.
        let own = Queue { process, threads: 0, idle: 0, waiting: VecDeque::new(), served: Vec::new() };
        std::mem::forget(std::mem::replace(&mut *all, own));
    }
    match all.waiting.iter_mut().find(|(of, _)| *of == client) {
        Some((_, jobs)) => jobs.push_back(job),
        None => all.waiting.push_back((client, VecDeque::from([job]))),
    }
    // A thread that was woken for one client has perhaps not yet taken what it was woken for.
    let ready = all.waiting.iter().filter(|(client, _)| !all.served.contains(client)).count();
    if ready <= all.idle || all.threads >= MAX_THREADS {
        drop(all);
        MORE.notify_one();
        return;
    }
    all.threads += 1;
    drop(all);
    let thread = std::thread::Builder::new().name("tricorn-checks".to_owned()).stack_size(STACK).spawn(work);
    if thread.is_err() {
        let mut all = queue();
        // Without a thread it is done here, with what comes meanwhile, before it is not done at all.
        while all.threads == 1
            && let Some((client, job)) = next(&mut all)
        {
            all = done(all, client, job);
        }
        all.threads -= 1;
    }
}

/// Does it without the lock.
fn done(all: MutexGuard<'static, Queue>, client: u64, job: Job) -> MutexGuard<'static, Queue> {
    drop(all);
    // The job calls a function at its end that may be the user's.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)));
    let mut all = queue();
    all.served.retain(|of| *of != client);
    all
}

fn next(all: &mut Queue) -> Option<(u64, Job)> {
    let at = all.waiting.iter().position(|(client, _)| !all.served.contains(client))?;
    let (client, mut jobs) = all.waiting.remove(at)?;
    let job = jobs.pop_front()?;
    if !jobs.is_empty() {
        all.waiting.push_back((client, jobs));
    }
    all.served.push(client);
    Some((client, job))
}

fn work() {
    let mut all = queue();
    loop {
        if let Some((client, job)) = next(&mut all) {
            all = done(all, client, job);
            continue;
        }
        all.idle += 1;
        let (back, waited) = MORE.wait_timeout(all, IDLE).unwrap_or_else(PoisonError::into_inner);
        all = back;
        all.idle -= 1;
        if waited.timed_out() && all.waiting.is_empty() {
            all.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn two_that_come_at_once_are_served_at_once() {
        let (tell, told) = mpsc::channel();
        let both = std::sync::Arc::new(std::sync::Barrier::new(2));
        for round in 0..20 {
            for client in [u64::MAX - 2, u64::MAX - 3] {
                let (both, tell) = (both.clone(), tell.clone());
                run(
                    client,
                    Box::new(move || {
                        both.wait();
                        tell.send(round).unwrap_or_default();
                    }),
                );
            }
            for _ in 0..2 {
                assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(round));
            }
        }
    }

    #[test]
    fn who_asks_for_much_holds_up_nobody_else() {
        let (hold, held) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let busy = tell.clone();
        run(u64::MAX, Box::new(move || held.recv().unwrap_or_default()));
        for _ in 0..100 {
            let busy = busy.clone();
            run(u64::MAX, Box::new(move || busy.send("busy").unwrap_or_default()));
        }
        run(u64::MAX - 1, Box::new(move || tell.send("other").unwrap_or_default()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("other"));
        drop(hold);
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("busy"));
    }
}
