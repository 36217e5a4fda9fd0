//! A task that is listened to, where its server tells of tasks: then it need not be looked at all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Client;
use crate::client::listening::{Change, Listening};
use crate::model::{Task, TaskStatus, TraceContext};

/// The most tasks that a client listens to at once while it follows them, because over HTTP each takes a connection. Others
/// are looked at.
const MAX_HEARD: usize = 16;

/// Hears of one task.
pub(super) enum Ears {
    /// Nobody has tried.
    Closed,
    /// The server has not said whether it will tell.
    Opening(Heard),
    Open(Heard),
    /// It does not tell, or no more.
    Deaf,
}

pub(super) struct Heard {
    listening: Listening,
    _place: Place,
}

/// One of those that are listened to.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn of(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let one_more = |count: usize| (count < MAX_HEARD).then_some(count + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Self(taken.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ears {
    /// Begins to listen, unless that was tried before or there is no room now.
    pub(super) fn open(&mut self, client: &Client, id: &str, trace: Option<&TraceContext>) {
        if matches!(self, Self::Closed)
            && let Some(place) = Place::of(&client.connected.known.extended.heard)
        {
            *self = Self::Opening(Heard { listening: client.listen_to_task(id, trace.cloned()), _place: place });
        }
    }

    /// Returns true if the server tells of the task.
    pub(super) fn hear(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Waits until there may be something new of a task that was so: the server tells of it, begins to, or ends that. A
    /// change before it began is found by the look that follows.
    pub(super) async fn news(&mut self, last: &Task) {
        loop {
            match self {
                Self::Opening(heard) => {
                    let is_open = heard.listening.settled().await.is_ok();
                    let is_told = is_open && heard.listening.honoured().task_ids.contains(&last.task_id);
                    match std::mem::replace(self, Self::Deaf) {
                        Self::Opening(heard) if is_told => {
                            *self = Self::Open(heard);
                            return;
                        }
                        _ => {}
                    }
                }
                Self::Open(heard) => match heard.listening.next().await {
                    Some(Ok(Change::Task { task, .. })) if is_as(&task, last) => {}
                    Some(Ok(_)) => return,
                    Some(Err(_)) | None => {
                        *self = Self::Deaf;
                        return;
                    }
                },
                Self::Closed | Self::Deaf => return std::future::pending().await,
            }
        }
    }
}

/// Returns true if nothing has changed; what a task asks is looked at.
fn is_as(task: &Task, last: &Task) -> bool {
    task.status == last.status
        && task.status != TaskStatus::InputRequired
        && task.status_message == last.status_message
        && task.last_updated_at == last.last_updated_at
}
