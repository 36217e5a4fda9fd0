//! Tasks that a host follows, change by change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::call::{CallOptions, Done, Guard};
use crate::client::{Client, TaskChanges};
use crate::jsonrpc::RawJson;

/// By the host's own numbers; without its changes while the next is waited for.
pub(super) type Following = Arc<Mutex<HashMap<u64, Option<TaskChanges>>>>;

/// Finishes with the next change of the task of these parameters of `tasks/get`. Dropping what is returned gives up.
pub(super) fn follow(
    client: &Client,
    all: &Following,
    number: u64,
    params: Option<&RawJson>,
    options: CallOptions,
    done: Done,
) -> Guard {
    let begun = lock(all).insert(number, None).flatten();
    let kept = all.clone();
    client.follow_task(
        begun,
        params,
        options,
        move |changes| {
            let mut all = lock(&kept);
            match changes {
                // Unless the host has ended it meanwhile.
                Some(changes) => {
                    let slot = all.get_mut(&number);
                    let left = match slot {
                        Some(slot) => slot.replace(changes),
                        None => Some(changes),
                    };
                    drop(all);
                    drop(left);
                }
                None => drop(all.remove(&number)),
            }
        },
        done,
    )
}
