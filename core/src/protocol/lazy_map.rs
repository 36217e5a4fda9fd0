use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A map that most of its owners never put anything into: it has no memory until then, is one pointer wide, and costs
/// nothing to drop. A stateless request is a connection of its own, which has many such maps and lives for microseconds.
#[expect(clippy::box_collection, reason = "one pointer wide: what is moved about has many of them")]
pub(crate) struct LazyMap<K: 'static, V: 'static>(Option<Box<BTreeMap<K, V>>>);

impl<K, V> LazyMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }
}

impl<K, V> Default for LazyMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Deref for LazyMap<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        self.0.as_deref().unwrap_or(const { &BTreeMap::new() })
    }
}

/// Made the first time that something may be put in.
impl<K, V> DerefMut for LazyMap<K, V> {
    fn deref_mut(&mut self) -> &mut BTreeMap<K, V> {
        self.0.get_or_insert_default()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for LazyMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<K, V> IntoIterator for LazyMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Flatten<std::option::IntoIter<BTreeMap<K, V>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|map| *map).into_iter().flatten()
    }
}
