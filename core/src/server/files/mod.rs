//! Files as resources: one file, or everything below a directory (specification, "Resources", security).
//!
//! **Invariant**: what a URI names is opened below the directory or not at all, whatever `..`, escapes, links and
//! directories that change meanwhile have to say. Everything here blocks; the caller chooses the thread.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;

use super::cache::restricted;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::CacheHints;

mod guarded;
mod mime;
#[cfg_attr(not(windows), allow(dead_code, reason = "of Windows; tested everywhere"))]
mod names;
mod walk;

pub(crate) use guarded::{Guarded, is_same};

/// The most bytes of a file that are read, unless asked otherwise: with base64 it fits into a message of 4 MiB.
const MAX_BYTES: u64 = 2 << 20;
/// The most files of a directory that are listed, unless asked otherwise.
const MAX_FILES: usize = 10_000;
/// The longest URI, in bytes.
const MAX_URI: usize = 8 << 10;
/// Characters that are percent-encoded in a URI's path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reason why a file was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file: the answer is −32002 with the URI in older revisions, −32602 in newer ones.
    NotFound,
    /// The URI is none that a file can have here: `..`, encoded slashes, a link that leads out of the directory.
    Refused(&'static str),
    /// The file is larger than may be read.
    TooLarge {
        /// The most bytes that may be read.
        limit: u64,
    },
    /// The operating system failed. Its text names no path.
    Failed(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Refused(why) => f.write_str(why),
            Self::TooLarge { limit } => write!(f, "larger than {limit} bytes"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Self::NotFound,
            // The library's own refusal; the operating system's has a number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                Self::Refused("leads out of the directory")
            }
            _ => Self::Failed(error),
        }
    }
}

/// One file in a listing: the schema's `Resource`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Entry {
    /// The base URI and the percent-encoded path.
    pub uri: String,
    /// The path below the directory, with `/` on every system.
    pub name: String,
    /// By the name's extension; absent when that says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// In bytes.
    pub size: u64,
}

/// A part of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilePage {
    /// The files, ordered by the parts of their paths.
    pub entries: Vec<Entry>,
    /// Cursor of the next page; absent on the last one.
    pub next: Option<String>,
    /// There are more files than may be listed; the rest is on no page.
    pub truncated: bool,
}

/// Contents of a file: the schema's `TextResourceContents` or `BlobResourceContents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Contents {
    /// As it was asked for.
    pub uri: String,
    /// By the name's extension, else `text/plain` or `application/octet-stream`.
    pub mime_type: String,
    /// The text of a file of a textual type that is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Everything else, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// Everything below a directory, under one base URI.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
/// use tricorn::server::files::Directory;
///
/// let notes = Directory::new("notes", "docs://notes")?.max_bytes(1 << 20).max_files(500);
/// let server = Server::new("notes").directory(notes);
///
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// println!("{} files", client.list_resources().await?.len());
/// println!("{}", client.read_resource("docs://notes/today.md").await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
    /// Ends with a slash.
    base: String,
    hidden: bool,
    max_files: usize,
    max_bytes: u64,
    hints: CacheHints,
    scopes: Vec<String>,
    /// That there are too many files was said.
    told: Arc<AtomicBool>,
}

impl Directory {
    /// Serves the directory `root` under `uri`, such as `file:///data` or `docs://`. Relative paths count from the
    /// present directory of the process.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when `root` is no directory or `uri` has no scheme, a query or a fragment.
    pub fn new(root: impl Into<PathBuf>, uri: &str) -> Result<Self> {
        let root = root.into();
        let wrong = |why: &dyn fmt::Display| Error::misuse(format!("directory {}: {why}", root.display()));
        let absolute = root.canonicalize().map_err(|e| wrong(&e))?;
        if !absolute.is_dir() {
            return Err(wrong(&"not a directory"));
        }
        check_uri(uri)?;
        let slash = if uri.ends_with('/') { "" } else { "/" };
        Ok(Self {
            root: absolute,
            base: format!("{uri}{slash}"),
            hidden: false,
            max_files: MAX_FILES,
            max_bytes: MAX_BYTES,
            hints: CacheHints::new(),
            scopes: Vec::new(),
            told: Arc::default(),
        })
    }

    /// Lists and reads names that start with a dot, too, or does not. They are left out by default.
    #[must_use]
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// The most files that are listed. Default 10,000.
    #[must_use]
    pub fn max_files(mut self, max_files: usize) -> Self {
        self.max_files = max_files;
        self
    }

    /// The most bytes of a file that are read. Default 2 MiB.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the lifetime and the scope of the files' contents. Default: those of the server for contents of resources.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = hints;
        self
    }

    /// The scopes that a caller's access token needs: over HTTP, for all that is read and listed of it. Default: none
    /// besides the server's.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    pub(crate) fn hints(&self) -> CacheHints {
        restricted(self.hints, &self.scopes)
    }

    pub(crate) fn needs(&self) -> &[String] {
        &self.scopes
    }

    /// The base URI, with a slash at its end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns true if `uri` is below the base URI, whether or not there is such a file.
    #[must_use]
    pub fn covers(&self, uri: &str) -> bool {
        uri.starts_with(&self.base)
    }

    /// The root, opened anew so that a directory that was replaced is served as it is now.
    fn open(&self) -> io::Result<Dir> {
        Dir::open_ambient_dir(&self.root, ambient_authority())
    }

    fn uri_of(&self, name: &str) -> String {
        let parts: Vec<_> = name.split('/').map(|part| utf8_percent_encode(part, ENCODED).to_string()).collect();
        format!("{}{}", self.base, parts.join("/"))
    }

    /// At most `limit` files after the cursor `after`, which is a page's [`next`](FilePage::next). Links to files are
    /// listed when they stay below the directory; links to directories are not followed, and names that are not UTF-8,
    /// directories that cannot be read and what is deeper than 32 levels are left out.
    ///
    /// # Errors
    /// That of the operating system, when the directory cannot be read.
    pub fn list(&self, after: Option<&str>, limit: usize) -> io::Result<FilePage> {
        self.list_unless(&|| false, &|_| false, after, limit)
    }

    /// Returns true if there are more files than are listed, the first time that this is asked.
    pub(crate) fn is_news(&self, page: &FilePage) -> bool {
        page.truncated && !self.told.swap(true, Ordering::Relaxed)
    }

    /// As [`list`](Self::list), without the URIs that `hides` names, until `stop` says so: then it is an error.
    pub(crate) fn list_unless(
        &self,
        stop: &dyn Fn() -> bool,
        hides: &dyn Fn(&str) -> bool,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<FilePage> {
        let root = self.open()?;
        let (names, truncated) = walk::names(&root, self.hidden, self.max_files, stop)?;
        let after: Option<Vec<&str>> = after.map(|name| name.split('/').collect());
        let is_later = |name: &str| after.as_deref().is_none_or(|after| name.split('/').gt(after.iter().copied()));
        let mut page = FilePage { truncated, ..FilePage::default() };
        let mut last = None;
        for name in names.into_iter().filter(|name| is_later(name)) {
            if page.entries.len() >= limit.max(1) {
                page.next = last;
                break;
            }
            if let Ok(metadata) = root.metadata(&name)
                && metadata.is_file()
            {
                let (uri, mime_type) = (self.uri_of(&name), mime::by_name(&name));
                if stop() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if hides(&uri) {
                    continue;
                }
                last = Some(name.clone());
                page.entries.push(Entry { uri, name, mime_type, size: metadata.len() });
            }
        }
        Ok(page)
    }

    /// Reads the file that `uri` names. The whole URI, not a part of it that was decoded already.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&self, uri: &str) -> std::result::Result<Contents, ReadError> {
        let name = self.name_of(uri)?;
        let mut options = OpenOptions::new();
        options.read(true);
        // Opening a pipe must not wait for its other end.
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, nonblocking());
        if cfg!(windows) && !self.hidden && self.is_alias_of_hidden(&name) {
            return Err(ReadError::NotFound);
        }
        let file = self.open()?.open_with(&name, &options)?.into_std();
        contents(file, uri, &name, self.max_bytes)
    }

    /// Returns true if a name is the short one (`GIT~1`) of something hidden.
    fn is_alias_of_hidden(&self, name: &str) -> bool {
        let real = || self.root.join(name).canonicalize().ok();
        let below = |real: &Path| real.strip_prefix(&self.root).map(Path::to_owned).ok();
        let is_hidden = |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        name.contains('~') && real().and_then(|real| below(&real)).is_some_and(|real| real.components().any(is_hidden))
    }

    /// The path below the directory: decoded once, and made of nothing but names.
    fn name_of(&self, uri: &str) -> std::result::Result<String, ReadError> {
        let rest = uri.strip_prefix(&self.base).filter(|_| uri.len() <= MAX_URI).ok_or(ReadError::NotFound)?;
        if rest.contains(['?', '#']) {
            return Err(ReadError::NotFound);
        }
        let mut name = String::with_capacity(rest.len());
        for part in rest.split('/') {
            let part = percent_decode_str(part).decode_utf8().map_err(|_| ReadError::NotFound)?;
            let why = match &*part {
                "" => return Err(ReadError::NotFound),
                "." | ".." => "\".\" and \"..\" are no names",
                part if part.contains(['/', '\\']) => "a name has no slashes",
                part if part.contains('\0') => "a name has no NUL",
                part if cfg!(windows) && !names::is_plain(part) => return Err(ReadError::NotFound),
                part if part.starts_with('.') && !self.hidden => return Err(ReadError::NotFound),
                part => {
                    if !name.is_empty() {
                        name.push('/');
                    }
                    name.push_str(part);
                    continue;
                }
            };
            return Err(ReadError::Refused(why));
        }
        Ok(name)
    }
}

/// One file under one URI.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
/// use tricorn::server::files::File;
///
/// let server = Server::new("notes").file(File::new("README.md", "docs://readme")?.max_bytes(1 << 20));
///
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// println!("{}", client.read_resource("docs://readme").await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct File {
    path: PathBuf,
    /// In the directory that it is really in.
    real: PathBuf,
    uri: String,
    max_bytes: u64,
    hints: CacheHints,
    scopes: Vec<String>,
}

impl File {
    /// Serves the file at `path` as `uri`. It need not exist yet: until then it is listed without a size, and reading it
    /// finds nothing. A relative path counts from the present directory of the process.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the path, when `uri` has no scheme, a query or a fragment, or `path`
    /// is a directory.
    pub fn new(path: impl AsRef<Path>, uri: &str) -> Result<Self> {
        let path = path.as_ref();
        let wrong = |why: &dyn fmt::Display| Error::misuse(format!("file {}: {why}", path.display()));
        let absolute = std::path::absolute(path).map_err(|e| wrong(&e))?;
        if absolute.is_dir() || absolute.file_name().is_none() {
            return Err(wrong(&"a directory"));
        }
        check_uri(uri)?;
        let (uri, hints) = (uri.to_owned(), CacheHints::new());
        let place = absolute.parent().and_then(|parent| parent.canonicalize().ok());
        let real = place.zip(absolute.file_name()).map_or_else(|| absolute.clone(), |(place, name)| place.join(name));
        Ok(Self { path: absolute, real, uri, max_bytes: MAX_BYTES, hints, scopes: Vec::new() })
    }

    /// The most bytes that are read. Default 2 MiB.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the lifetime and the scope of its contents. Default: those of the server for contents of resources.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = hints;
        self
    }

    /// The scopes that a caller's access token needs: over HTTP, for all that is read and listed of it. Default: none
    /// besides the server's.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    pub(crate) fn hints(&self) -> CacheHints {
        self.hints
    }

    pub(crate) fn needs(&self) -> &[String] {
        &self.scopes
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file as it is listed, under its own name.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn entry(&self) -> std::result::Result<Entry, ReadError> {
        let metadata = std::fs::metadata(&self.path)?;
        if !metadata.is_file() {
            return Err(ReadError::NotFound);
        }
        let name = self.name();
        Ok(Entry { uri: self.uri.clone(), mime_type: mime::by_name(&name), name, size: metadata.len() })
    }

    /// The schema's `Resource` without the size, which changes.
    pub(crate) fn definition(&self) -> RawJson {
        let name = self.name();
        let mut definition = serde_json::json!({"uri": self.uri, "name": name});
        if let Some(mime_type) = mime::by_name(&name) {
            definition["mimeType"] = mime_type.into();
        }
        RawJson::from_value(&definition)
    }

    /// In bytes; none when there is no such file.
    pub(crate) fn size(&self) -> Option<u64> {
        self.entry().ok().map(|entry| entry.size)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&self) -> std::result::Result<Contents, ReadError> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nonblocking());
        contents(options.open(&self.path)?, &self.uri, &self.name(), self.max_bytes)
    }
}

#[cfg(unix)]
fn nonblocking() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

fn check_uri(uri: &str) -> Result<()> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.bytes().all(fits) {
        return Err(Error::misuse(format!("URI {uri:?}: starts with no scheme such as \"file://\"")));
    }
    if uri.contains(['?', '#', '{', '}', ' ']) || uri.len() > MAX_URI {
        return Err(Error::misuse(format!("URI {uri:?}: has a query, a fragment, braces or spaces, or is too long")));
    }
    Ok(())
}

fn contents(file: std::fs::File, uri: &str, name: &str, max_bytes: u64) -> std::result::Result<Contents, ReadError> {
    // Asked of what is open, which nobody can replace any more.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotFound);
    }
    let too_large = ReadError::TooLarge { limit: max_bytes };
    if metadata.len() > max_bytes {
        return Err(too_large);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large);
    }
    let known = mime::by_name(name);
    let uri = uri.to_owned();
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if known.as_deref().map_or_else(|| !text.contains('\0'), mime::is_textual) => {
            let mime_type = known.unwrap_or_else(|| "text/plain".to_owned());
            return Ok(Contents { uri, mime_type, text: Some(text), blob: None });
        }
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let mime_type = known.unwrap_or_else(|| "application/octet-stream".to_owned());
    let blob = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(Contents { uri, mime_type, text: None, blob: Some(blob) })
}

#[cfg(test)]
mod tests;
