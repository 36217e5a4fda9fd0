//! A store of documents in memory, for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::error::{Error, ErrorKind, Result};
use crate::store::documents::Boxed;
use crate::store::{Document, DocumentStore, DocumentWrite};

/// See the module. The fault is one that the checks have to find.
#[derive(Default)]
pub(crate) struct Memory {
    documents: Mutex<BTreeMap<String, (Document, SystemTime)>>,
    changed: Notify,
    pub(crate) fault: Fault,
    commits: AtomicUsize,
}

/// A rule that a store breaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// It does not look at versions.
    Blind,
    /// It looks at the versions of what it writes, and at no others.
    HalfBlind,
    /// It writes what has the expected version, and leaves the rest.
    Torn,
    /// Letters of either case are one.
    Caseless,
    /// It returns what is there, in any order.
    Unordered,
    /// A second write does not change the time that is left.
    OldTime,
    /// It tells nobody that something has changed.
    Deaf,
    /// It looks first, and writes a little later.
    Racing,
    /// It removes nothing.
    Hoarding,
    /// It cuts what is long.
    Short,
    /// It cuts keys that are long.
    Narrow,
    /// It takes two of three commits for ones that somebody else hindered, which is no fault.
    Hesitant,
}

impl Memory {
    pub(crate) fn with(fault: Fault) -> Self {
        Self { fault, ..Self::default() }
    }

    fn named(&self, key: &str) -> String {
        match self.fault {
            Fault::Caseless => key.to_lowercase(),
            Fault::Narrow => key[..key.len().min(500)].to_owned(),
            _ => key.to_owned(),
        }
    }

    fn version(&self, key: &str) -> Option<String> {
        let all = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get(&self.named(key)).filter(|(_, until)| *until > now());
        found.map(|(document, _)| document.version.clone())
    }

    /// The texts of all documents, by their keys.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let all = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, (document, _))| (key.clone(), document.text.clone())).collect()
    }

    fn write(&self, write: DocumentWrite) {
        let key = self.named(&write.key);
        let mut all = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut document) = write.document else {
            if self.fault != Fault::Hoarding {
                all.remove(&key);
            }
            return;
        };
        if self.fault == Fault::Short {
            document.text.truncate(65_535);
        }
        let before = all.get(&key).map(|(_, until)| *until).filter(|_| self.fault == Fault::OldTime);
        all.insert(key, (document, before.unwrap_or_else(|| now() + write.ttl)));
    }
}

fn now() -> SystemTime {
    crate::simulated::unix().map_or_else(SystemTime::now, |time| UNIX_EPOCH + time)
}

impl DocumentStore for std::sync::Arc<Memory> {
    fn get(&self, keys: Vec<String>) -> Boxed<Result<Vec<Option<Document>>>> {
        let this = self.clone();
        Box::pin(async move {
            let all = this.documents.lock().unwrap_or_else(PoisonError::into_inner);
            let of = |key: &String| all.get(&this.named(key)).filter(|(_, until)| *until > now());
            let mut found: Vec<_> = keys.iter().map(|key| of(key).map(|(document, _)| document.clone())).collect();
            if this.fault == Fault::Unordered {
                found.sort_by_key(Option::is_none);
            }
            Ok(found)
        })
    }

    fn commit(&self, expected: Vec<(String, Option<String>)>, writes: Vec<DocumentWrite>) -> Boxed<Result<bool>> {
        let this = self.clone();
        Box::pin(async move {
            if this.fault == Fault::Hesitant && !this.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
                return Ok(false);
            }
            let is_written = |key: &String| writes.iter().any(|write| write.key == *key);
            let is_so = |(key, version): &(String, Option<String>)| match this.fault {
                Fault::Blind => true,
                Fault::HalfBlind if !is_written(key) => true,
                _ => this.version(key) == *version,
            };
            let fits: Vec<_> = expected.iter().map(|one| (one.0.clone(), is_so(one))).collect();
            let is_done = fits.iter().all(|(_, fits)| *fits);
            if this.fault == Fault::Racing {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let is_torn = this.fault == Fault::Torn;
            for write in writes {
                if is_done || (is_torn && fits.contains(&(write.key.clone(), true))) {
                    this.write(write);
                }
            }
            if this.fault != Fault::Deaf {
                this.changed.notify_waiters();
            }
            Ok(is_done)
        })
    }

    fn wait(&self, seen: Vec<(String, Option<String>)>, timeout: Duration) -> Option<Boxed<Result<()>>> {
        let this = self.clone();
        Some(Box::pin(async move {
            let changed = this.changed.notified();
            if seen.iter().all(|(key, version)| this.version(key) == *version) {
                let _ = tokio::time::timeout(timeout, changed).await;
            }
            Ok(())
        }))
    }

    fn now(&self) -> Option<Boxed<Result<SystemTime>>> {
        Some(Box::pin(async { Ok(now()) }))
    }
}

/// One that fails.
pub(crate) struct Failing;

impl DocumentStore for Failing {
    fn get(&self, _: Vec<String>) -> Boxed<Result<Vec<Option<Document>>>> {
        Box::pin(async { Err(Error::new(ErrorKind::Transport, "the table is locked")) })
    }

    fn commit(&self, _: Vec<(String, Option<String>)>, _: Vec<DocumentWrite>) -> Boxed<Result<bool>> {
        Box::pin(async { Err(Error::new(ErrorKind::Transport, "the table is locked")) })
    }
}

/// One that refuses long texts, as DynamoDB does.
pub(crate) struct OfItems(pub(crate) std::sync::Arc<Memory>);

impl OfItems {
    pub(crate) const MOST: usize = 400_000;
}

impl DocumentStore for OfItems {
    fn get(&self, keys: Vec<String>) -> Boxed<Result<Vec<Option<Document>>>> {
        self.0.get(keys)
    }

    fn commit(&self, expected: Vec<(String, Option<String>)>, writes: Vec<DocumentWrite>) -> Boxed<Result<bool>> {
        let is_long = |write: &DocumentWrite| write.document.as_ref().is_some_and(|it| it.text.len() > Self::MOST);
        if writes.iter().any(is_long) {
            return Box::pin(async { Err(Error::misuse("an item has 400,000 bytes at most")) });
        }
        self.0.commit(expected, writes)
    }
}
