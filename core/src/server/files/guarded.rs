//! Resources inside of a directory that need scopes of their own. The directory around them gives them to nobody who
//! lacks these, however their URIs are spelt and whatever links and names lead to them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use percent_encoding::percent_decode_str;

use super::{Directory, File};

/// Identity of a file, the same whatever its name is: names differ by links, and on some systems by case alone.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(windows)]
type Identity = same_file::Handle;
#[cfg(not(any(unix, windows)))]
type Identity = String;

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(windows)]
fn identity(path: &Path) -> Option<Identity> {
    // Open as long as it is compared: else its number may become another's.
    Identity::from_path(path).ok()
}

#[cfg(not(any(unix, windows)))]
fn identity(path: &Path) -> Option<Identity> {
    path.canonicalize().ok().map(|path| path.to_string_lossy().to_lowercase())
}

/// Returns true if two URIs are the same but for what is escaped in them.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    percent_decode_str(one).eq(percent_decode_str(other))
}

enum What {
    File(Arc<File>),
    Directory(Arc<Directory>),
}

/// A file or a directory that needs scopes, as one request looks at it.
pub(crate) struct Guarded {
    what: What,
    identity: OnceLock<Option<Identity>>,
}

impl Guarded {
    pub(crate) fn file(file: Arc<File>) -> Self {
        Self { what: What::File(file), identity: OnceLock::new() }
    }

    pub(crate) fn directory(directory: Arc<Directory>) -> Self {
        Self { what: What::Directory(directory), identity: OnceLock::new() }
    }

    pub(crate) fn needs(&self) -> &[String] {
        match &self.what {
            What::File(file) => file.needs(),
            What::Directory(directory) => directory.needs(),
        }
    }

    fn path(&self) -> &Path {
        match &self.what {
            What::File(file) => &file.real,
            What::Directory(directory) => &directory.root,
        }
    }

    /// May block.
    fn identity(&self) -> Option<&Identity> {
        self.identity.get_or_init(|| identity(self.path())).as_ref()
    }
}

impl Directory {
    /// The URI of the same file as it is spelt in the list, if it may be one.
    pub(crate) fn as_listed(&self, uri: &str) -> Option<String> {
        self.name_of(uri).ok().map(|name| self.uri_of(&name))
    }

    /// Returns those of `guarded` that lie in this directory and have the file, as far as the names of both say so.
    pub(crate) fn inside<'a>(&self, uri: &str, guarded: &'a [Guarded]) -> Vec<&'a Guarded> {
        let path = self.path_of(uri);
        guarded.iter().filter(|one| self.is_inside(one, uri, path.as_deref())).collect()
    }

    /// The same as the file system has it. May block.
    pub(crate) fn really_inside<'a>(&self, uri: &str, guarded: &'a [Guarded]) -> Vec<&'a Guarded> {
        let path = self.path_of(uri);
        let Some(path) = path.as_deref().filter(|_| !guarded.is_empty()) else { return Vec::new() };
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        // Where a file is not, nobody is told that who may not know where it is.
        let real = path.ancestors().find_map(|path| path.canonicalize().ok());
        let real = real.filter(|real| real.starts_with(&root));
        let way = real.iter().flat_map(|real| real.ancestors().take_while(|path| *path != root));
        let way: Vec<Identity> = way.filter_map(identity).collect();
        let leads = |one: &&Guarded| {
            self.is_inside(one, uri, Some(path)) || one.identity().is_some_and(|own| way.contains(own))
        };
        guarded.iter().filter(leads).collect()
    }

    fn path_of(&self, uri: &str) -> Option<PathBuf> {
        self.name_of(uri).ok().map(|name| self.root.join(name))
    }

    fn is_inside(&self, one: &Guarded, uri: &str, path: Option<&Path>) -> bool {
        let is_named = match &one.what {
            What::File(file) => is_same(&file.uri, uri),
            What::Directory(other) => {
                let length = |base: &str| percent_decode_str(base).count();
                let mut uri = percent_decode_str(uri);
                percent_decode_str(&other.base).all(|byte| uri.next() == Some(byte))
                    && length(&other.base) > length(&self.base)
            }
        };
        let own = one.path();
        is_named || path.is_some_and(|path| own != self.root && own.starts_with(&self.root) && path.starts_with(own))
    }
}
