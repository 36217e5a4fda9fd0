use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::call::{Failures, Handler};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::{CacheHints, check_definition};
use crate::options::check_scopes;
use crate::protocol::revision::{Revision, shape};

pub use crate::protocol::Kind;

/// State that all entries of a server share.
#[derive(Default)]
pub(crate) struct Common {
    serial: AtomicU64,
    pub(crate) failures: Failures,
    /// Number of clients that listen.
    pub(crate) listeners: Arc<AtomicUsize>,
    /// Facts of the tools that are not registered.
    pub(super) told: super::told::Told,
    /// The longest time of a tool's handler, in nanoseconds; 0 is any.
    tool_timeout: AtomicU64,
    /// Jobs that block.
    #[cfg(feature = "files")]
    pub(crate) jobs: Arc<super::jobs::Jobs>,
}

impl Common {
    fn next(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sets the longest time of the handlers of tools that have none of their own; zero is any.
    pub(super) fn set_tool_timeout(&self, time: Duration) {
        self.tool_timeout.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns that time.
    pub(super) fn tool_timeout(&self) -> Duration {
        Duration::from_nanos(self.tool_timeout.load(Ordering::Relaxed))
    }
}

/// Parts that every entry of a list has, of whatever kind.
pub(crate) struct Listed {
    pub(crate) kind: Kind,
    pub(crate) members: Map<String, Value>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) common: Arc<Common>,
    /// Lifetime and scope of its contents.
    pub(crate) hints: CacheHints,
    /// Scopes that its caller's access token needs.
    pub(crate) scopes: Vec<String>,
    /// The file that is listed, whose size is looked up each time.
    #[cfg(feature = "files")]
    pub(super) file: Option<Arc<super::files::File>>,
    /// Grows with every registration. An entry that replaces another takes its place, and so its number.
    serial: AtomicU64,
    /// The definition as each revision carries it, written on first use.
    texts: [OnceLock<RawJson>; Revision::ALL.len()],
}

impl Listed {
    pub(super) fn new(
        kind: Kind,
        members: Map<String, Value>,
        scopes: Vec<String>,
        handler: Arc<dyn Handler>,
        common: &Arc<Common>,
    ) -> Result<Self> {
        let listed = Self {
            kind,
            members,
            handler,
            common: common.clone(),
            hints: CacheHints::new(),
            scopes,
            #[cfg(feature = "files")]
            file: None,
            serial: AtomicU64::default(),
            texts: Default::default(),
        };
        for key in [kind.key(), "name"] {
            let given = listed.members.get(key).unwrap_or(&Value::Null);
            if given.as_str().is_none_or(str::is_empty) {
                let what = kind.word();
                return Err(Error::misuse(format!("{what} {key:?}: expected a string that is not empty, got {given}")));
            }
        }
        check_scopes(&format!("{}: option \"scopes\"", listed.subject()), &listed.scopes)?;
        check_definition(&listed.members, kind != Kind::Tool)
            .map_err(|why| Error::misuse(format!("{}: {why}", listed.subject())))?;
        Ok(listed)
    }

    /// Returns the name that tells it from others of its kind: a name, a URI, a URI template.
    pub(crate) fn name(&self) -> &str {
        self.members.get(self.kind.key()).and_then(Value::as_str).unwrap_or_default()
    }

    /// Names it for a message: `tool "add"`.
    pub(crate) fn subject(&self) -> String {
        format!("{} {:?}", self.kind.word(), self.name())
    }

    /// Goes to the end of the list. The caller holds the list, so that its serials grow.
    fn goes_last(&self) {
        self.serial.store(self.common.next(), Ordering::Relaxed);
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Relaxed)
    }

    pub(super) fn text(&self, revision: Revision) -> &RawJson {
        let place = Revision::ALL.iter().position(|r| *r == revision).unwrap_or_default();
        self.texts[place].get_or_init(|| shape::definition(revision.rules(), self.kind, &self.members))
    }
}

/// Places on a page for the sizes of files, which are looked up when the page is answered with.
#[derive(Default)]
pub(super) struct Sizes {
    #[cfg(feature = "files")]
    places: Vec<(usize, Arc<super::files::File>)>,
}

impl Sizes {
    /// The definition of this was appended.
    pub(super) fn note(&mut self, page: &str, listed: &Listed) {
        #[cfg(feature = "files")]
        self.places.extend(listed.file.iter().map(|file| (page.len() - 1, file.clone())));
    }

    #[cfg(feature = "files")]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Puts them in. May block.
    #[cfg(feature = "files")]
    pub(super) fn fill(&self, page: &mut String) {
        for (place, file) in self.places.iter().rev() {
            if let Some(size) = file.size() {
                page.insert_str(*place, &format!(",\"size\":{size}"));
            }
        }
    }
}

/// An entry of a list.
pub(crate) trait Entry {
    fn listed(&self) -> &Listed;
}

/// A list in order of registration.
pub(crate) struct Table<E> {
    entries: Vec<Arc<E>>,
    by_name: HashMap<String, Arc<E>>,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), by_name: HashMap::new() }
    }
}

impl<E: Entry> Table<E> {
    /// Adds an entry. It stays its caller's, too: what a handler holds must not be dropped under the lock of this.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the name is taken.
    pub(super) fn add(&mut self, entry: &Arc<E>) -> Result<()> {
        let name = entry.listed().name().to_owned();
        if self.by_name.contains_key(&name) {
            let subject = entry.listed().subject();
            return Err(Error::misuse(format!("{subject} is already registered: replace it, or remove it first")));
        }
        entry.listed().goes_last();
        self.entries.push(entry.clone());
        self.by_name.insert(name, entry.clone());
        Ok(())
    }

    /// Puts an entry in the place of the one with its name, or adds it. The caller drops what was there, after the lock of
    /// this.
    pub(super) fn replace(&mut self, entry: &Arc<E>) -> Option<Arc<E>> {
        let name = entry.listed().name().to_owned();
        let before = self.by_name.insert(name, entry.clone());
        let place = before.as_ref().and_then(|before| self.entries.iter().position(|e| Arc::ptr_eq(e, before)));
        match (place.and_then(|place| self.entries.get_mut(place)), &before) {
            (Some(place), Some(before)) => {
                entry.listed().serial.store(before.listed().serial(), Ordering::Relaxed);
                *place = entry.clone();
            }
            _ => {
                entry.listed().goes_last();
                self.entries.push(entry.clone());
            }
        }
        before
    }

    /// Takes an entry out. The caller drops it, after the lock of this.
    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<E>> {
        let entry = self.by_name.remove(name)?;
        self.entries.retain(|other| !Arc::ptr_eq(other, &entry));
        Some(entry)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<E>> {
        self.by_name.get(name)
    }

    pub(super) fn all(&self) -> &[Arc<E>] {
        &self.entries
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
