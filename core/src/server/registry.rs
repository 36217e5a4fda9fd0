use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use super::listed::{Entry, Kind, Listed, Sizes, Table};
use super::paging::{self, page};
use super::prompts::PromptEntry;
use super::resources::{ResourceEntry, TemplateEntry};
use super::tools::ToolEntry;
use crate::call::Handler;
use crate::error::Result;
use crate::model::subscription::other_spelling;
use crate::protocol::revision::Revision;

/// The entry that was taken out, if there was one.
pub(crate) type Removed = Option<Arc<dyn Any + Send + Sync>>;

/// Source of everything that is not registered.
#[derive(Clone, Default)]
pub(crate) struct Source {
    /// Lists it.
    pub(crate) list: Option<Arc<dyn Handler>>,
    /// Calls, reads or gets it.
    pub(crate) get: Option<Arc<dyn Handler>>,
}

/// Key of the things that are shown and hidden.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// An entry by its name.
    Entry(Kind, String),
    /// A directory by its base URI, which may be a resource's URI, too.
    #[cfg(feature = "files")]
    Directory(String),
}

/// Features of a server, or those of one session alone.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) tools: Table<ToolEntry>,
    pub(crate) resources: Table<ResourceEntry>,
    pub(crate) templates: Table<TemplateEntry>,
    pub(crate) prompts: Table<PromptEntry>,
    /// Registered, but not to be seen.
    disabled: HashSet<Key>,
    /// By kind.
    sources: [Source; Kind::ALL.len()],
    /// Directories whose files are resources, in order of their base URIs.
    #[cfg(feature = "files")]
    pub(crate) directories: Vec<Arc<super::files::Directory>>,
    /// Completes what has no completion of its own.
    pub(crate) completion: Option<Arc<dyn Handler>>,
    /// Hears of subscriptions.
    pub(crate) subscription: Option<Arc<dyn Handler>>,
    /// Hears that a client's roots have changed.
    pub(crate) roots_changed: Option<Arc<dyn Handler>>,
    /// Answers the requests, and hears of the notifications, outside the protocol.
    pub(crate) fallback: Option<(Arc<dyn Handler>, Arc<dyn Handler>)>,
}

/// Differences between the view of one session and that of the others.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) own: Registry,
    shown: HashSet<Key>,
}

/// With so many entries shown or hidden in one session, those that are no more are forgotten.
const MANY: usize = 1024;

impl Changes {
    /// Shows or hides an entry, whatever the server says. Says whether the client sees something else now.
    pub(crate) fn set_enabled(&mut self, server: &Registry, kind: Kind, name: &str, yes: bool) -> bool {
        if !self.own.has(kind, name) && !server.has(kind, name) {
            return false;
        }
        if self.own.disabled.len() + self.shown.len() >= MANY {
            let own = &self.own;
            self.shown.retain(|key| own.holds(key) || server.holds(key));
            let mut disabled = std::mem::take(&mut self.own.disabled);
            disabled.retain(|key| self.own.holds(key) || server.holds(key));
            self.own.disabled = disabled;
        }
        let own = self.own.has(kind, name);
        let key = if own { Key::Entry(kind, name.to_owned()) } else { server.key(kind, name) };
        let before = server.shows(|| key.clone(), own, Some(self));
        if yes {
            self.own.disabled.remove(&key);
            self.shown.insert(key);
        } else {
            self.shown.remove(&key);
            self.own.disabled.insert(key);
        }
        before != yes
    }

    /// Takes one of the session's own entries out, and what was said of it.
    pub(crate) fn remove(&mut self, kind: Kind, name: &str) -> Removed {
        if !self.own.has(kind, name) {
            return None;
        }
        self.shown.remove(&Key::Entry(kind, name.to_owned()));
        self.own.remove(kind, name)
    }
}

impl Registry {
    /// Takes an entry out. The caller drops it, after the lock of this.
    pub(crate) fn remove(&mut self, kind: Kind, name: &str) -> Removed {
        fn any<E: Send + Sync + 'static>(entry: Option<Arc<E>>) -> Removed {
            entry.map(|entry| -> Arc<dyn Any + Send + Sync> { entry })
        }
        self.disabled.remove(&Key::Entry(kind, name.to_owned()));
        match kind {
            Kind::Tool => any(self.tools.remove(name)),
            Kind::Resource => any(self.resources.remove(name)).or_else(|| self.remove_directory(name)),
            Kind::ResourceTemplate => any(self.templates.remove(name)),
            Kind::Prompt => any(self.prompts.remove(name)),
        }
    }

    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the base URI is taken.
    #[cfg(feature = "files")]
    pub(crate) fn add_directory(&mut self, directory: Arc<super::files::Directory>) -> Result<()> {
        let base = directory.base();
        if self.place_of_directory(base).is_some() {
            let why = "is already registered: remove it first";
            return Err(crate::error::Error::misuse(format!("directory {base:?} {why}")));
        }
        crate::options::check_scopes(&format!("directory {base:?}: option \"scopes\""), directory.needs())?;
        let at = self.directories.partition_point(|other| paging::key(other.base()) < paging::key(base));
        self.directories.insert(at, directory);
        Ok(())
    }

    /// By the base URI, with or without the slash at its end.
    #[cfg(feature = "files")]
    fn place_of_directory(&self, base: &str) -> Option<usize> {
        let named = |base_of: &str| base_of == base || base_of.strip_suffix('/') == Some(base);
        self.directories.iter().position(|directory| named(directory.base()))
    }

    /// Returns the key that a name stands for: of a resource and a directory of one URI, the resource's.
    fn key(&self, kind: Kind, name: &str) -> Key {
        #[cfg(feature = "files")]
        if kind == Kind::Resource
            && self.resources.get(name).is_none()
            && let Some(place) = self.place_of_directory(name)
        {
            return Key::Directory(self.directories[place].base().to_owned());
        }
        Key::Entry(kind, name.to_owned())
    }

    fn holds(&self, key: &Key) -> bool {
        match key {
            Key::Entry(kind, name) => self.has_entry(*kind, name),
            #[cfg(feature = "files")]
            Key::Directory(base) => self.has_directory(base),
        }
    }

    /// The directories that one session sees, in order of their base URIs, from this one on: each begins a page of its own.
    #[cfg(feature = "files")]
    pub(crate) fn directories_from<'a>(
        &'a self,
        from: &str,
        changes: Option<&'a Changes>,
    ) -> impl Iterator<Item = &'a Arc<super::files::Directory>> {
        let at = self.directories.partition_point(|other| *paging::key(other.base()) < *from);
        let from = self.directories[at..].iter();
        from.filter(move |directory| self.shows(|| Key::Directory(directory.base().to_owned()), false, changes))
    }

    #[cfg(feature = "files")]
    fn remove_directory(&mut self, base: &str) -> Removed {
        let place = self.place_of_directory(base)?;
        let directory = self.directories.remove(place);
        self.disabled.remove(&Key::Directory(directory.base().to_owned()));
        Some(directory)
    }

    #[cfg(not(feature = "files"))]
    fn remove_directory(&mut self, _: &str) -> Removed {
        None
    }

    /// The directories that a URI may be in, the innermost first.
    #[cfg(feature = "files")]
    pub(crate) fn directories_of(&self, uri: &str, changes: Option<&Changes>) -> Vec<Arc<super::files::Directory>> {
        let all = self.directories_from("", changes);
        let mut found: Vec<_> = all.filter(|directory| directory.covers(uri)).cloned().collect();
        found.sort_by_key(|directory| std::cmp::Reverse(directory.base().len()));
        found
    }

    /// The files and directories that need scopes, shown or hidden.
    #[cfg(feature = "files")]
    pub(crate) fn guarded(&self, changes: Option<&Changes>) -> Vec<super::files::Guarded> {
        use super::files::Guarded;

        let own = changes.map(|changes| changes.own.resources.all()).unwrap_or_default();
        let files = self.resources.all().iter().chain(own).filter_map(|entry| entry.listed().file.clone());
        let files = files.filter(|file| !file.needs().is_empty()).map(Guarded::file);
        let directories = self.directories.iter().cloned();
        let directories = directories.filter(|directory| !directory.needs().is_empty()).map(Guarded::directory);
        directories.chain(files).collect()
    }

    #[cfg(feature = "files")]
    fn has_restricted_directories(&self) -> bool {
        self.directories.iter().any(|directory| !directory.needs().is_empty())
    }

    #[cfg(not(feature = "files"))]
    #[expect(clippy::unused_self, reason = "of files")]
    fn has_restricted_directories(&self) -> bool {
        false
    }

    /// Returns true if there is such an entry or directory, enabled or not.
    pub(crate) fn has(&self, kind: Kind, name: &str) -> bool {
        self.has_entry(kind, name) || (kind == Kind::Resource && self.has_directory(name))
    }

    fn has_entry(&self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Tool => self.tools.get(name).is_some(),
            Kind::Resource => self.resources.get(name).is_some(),
            Kind::ResourceTemplate => self.templates.get(name).is_some(),
            Kind::Prompt => self.prompts.get(name).is_some(),
        }
    }

    #[cfg(feature = "files")]
    fn has_directory(&self, base: &str) -> bool {
        self.place_of_directory(base).is_some()
    }

    #[cfg(not(feature = "files"))]
    fn has_directory(&self, _: &str) -> bool {
        false
    }

    /// Enables or disables an entry. Says whether that changed anything.
    pub(crate) fn set_enabled(&mut self, kind: Kind, name: &str, yes: bool) -> bool {
        let key = self.key(kind, name);
        self.has(kind, name) && if yes { self.disabled.remove(&key) } else { self.disabled.insert(key) }
    }

    pub(crate) fn source(&self, kind: Kind) -> &Source {
        &self.sources[kind as usize]
    }

    /// Gives back the source there was.
    pub(crate) fn set_source(&mut self, kind: Kind, source: Source) -> Source {
        std::mem::replace(&mut self.sources[kind as usize], source)
    }

    /// Returns true if there is anything of this kind.
    pub(crate) fn offers(&self, kind: Kind) -> bool {
        let source = self.source(kind);
        self.has_own(kind) || source.list.is_some() || source.get.is_some()
    }

    /// Returns true if there is anything of this kind that is not a source's.
    pub(crate) fn has_own(&self, kind: Kind) -> bool {
        #[cfg(feature = "files")]
        if kind == Kind::Resource && !self.directories.is_empty() {
            return true;
        }
        match kind {
            Kind::Tool => !self.tools.is_empty(),
            Kind::Resource => !self.resources.is_empty(),
            Kind::ResourceTemplate => !self.templates.is_empty(),
            Kind::Prompt => !self.prompts.is_empty(),
        }
    }

    /// Returns true if a session sees an entry that there is, which is the session's own or the server's.
    fn sees(&self, kind: Kind, name: &str, own: bool, changes: Option<&Changes>) -> bool {
        self.shows(|| Key::Entry(kind, name.to_owned()), own, changes)
    }

    fn shows(&self, key: impl FnOnce() -> Key, own: bool, changes: Option<&Changes>) -> bool {
        if self.disabled.is_empty() && changes.is_none() {
            return true;
        }
        let key = key();
        match changes {
            Some(changes) if changes.own.disabled.contains(&key) => false,
            Some(changes) if own || changes.shown.contains(&key) => true,
            _ => !self.disabled.contains(&key),
        }
    }

    /// The entry called `name` of a table, as one session sees it.
    pub(crate) fn find<E: Entry>(
        &self,
        table: impl Fn(&Self) -> &Table<E>,
        name: &str,
        changes: Option<&Changes>,
    ) -> Option<Arc<E>> {
        let own = changes.and_then(|changes| table(&changes.own).get(name));
        let Some(entry) = own.or_else(|| table(self).get(name)) else {
            let other = other_spelling(name)?;
            let is_there = |registry| table(registry).get(&other).is_some();
            let found = is_there(self) || changes.is_some_and(|changes| is_there(&changes.own));
            return if found { self.find(table, &other, changes) } else { None };
        };
        self.sees(entry.listed().kind, name, own.is_some(), changes).then(|| entry.clone())
    }

    /// Returns true if anything of this kind is only for those who have scopes, so that not all see the same list.
    pub(crate) fn is_restricted(&self, kind: Kind, changes: Option<&Changes>) -> bool {
        fn any<E: Entry>(all: &[Arc<E>]) -> bool {
            all.iter().any(|entry| !entry.listed().scopes.is_empty())
        }
        let own = changes.map(|changes| &changes.own);
        [Some(self), own].into_iter().flatten().any(|registry| match kind {
            Kind::Tool => any(registry.tools.all()),
            Kind::Resource => any(registry.resources.all()) || registry.has_restricted_directories(),
            Kind::ResourceTemplate => any(registry.templates.all()),
            Kind::Prompt => any(registry.prompts.all()),
        })
    }

    /// The entries of a table that one session sees: its own first.
    pub(crate) fn visible<'a, E: Entry + 'a>(
        &'a self,
        table: impl Fn(&'a Self) -> &'a Table<E>,
        changes: Option<&'a Changes>,
    ) -> impl Iterator<Item = &'a Arc<E>> {
        let own = changes.map(|changes| table(&changes.own).all()).unwrap_or_default();
        let own = own.iter().map(|entry| (true, entry));
        let all = own.chain(table(self).all().iter().map(|entry| (false, entry)));
        all.filter(move |(own, entry)| self.sees(entry.listed().kind, entry.listed().name(), *own, changes))
            .map(|(_, entry)| entry)
    }

    /// One page of a list without its closing brace, whether it is the last, and the sizes to be put into it.
    ///
    /// # Errors
    /// −32602 for a cursor that was never given out.
    pub(super) fn list(
        &self,
        kind: Kind,
        revision: Revision,
        cursor: Option<&str>,
        page_size: usize,
        changes: Option<&Changes>,
        permitted: impl Fn(&Listed) -> bool,
    ) -> Result<(String, bool, Sizes)> {
        let nothing = Self::default();
        let own = changes.map_or(&nothing, |changes| &changes.own);
        let shown = |listed: &Listed, own: bool| permitted(listed) && self.sees(kind, listed.name(), own, changes);
        match kind {
            Kind::Tool => page(kind, [&self.tools, &own.tools], shown, revision, cursor, page_size),
            Kind::Resource => page(kind, [&self.resources, &own.resources], shown, revision, cursor, page_size),
            Kind::ResourceTemplate => page(kind, [&self.templates, &own.templates], shown, revision, cursor, page_size),
            Kind::Prompt => page(kind, [&self.prompts, &own.prompts], shown, revision, cursor, page_size),
        }
    }
}
