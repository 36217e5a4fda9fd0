//! The folders and files that a client lets its servers look at.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Value, json};

use crate::call::Link;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::Input;

/// The folders and files that a server may look at: what `roots/list` answers. A clone is the same list.
///
/// ```
/// # #[allow(deprecated)]
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("files");
/// let roots = Roots::new([json!("/srv/notes"), json!({"uri": "file:///srv/pictures", "name": "Pictures"})])?;
/// let handlers = Handlers::new().roots(&roots);
/// let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// roots.set([json!("/srv/music")])?; // the user has opened another folder
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Roots(Arc<Mutex<RootsState>>);

#[derive(Default)]
pub(super) struct RootsState {
    list: Vec<Value>,
    pub(super) links: Vec<Weak<dyn Link>>,
}

impl Roots {
    /// These roots: each a `file://` URI, a path, or `{"uri", "name"?, "_meta"?}`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no `file://` URI.
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn new(roots: impl IntoIterator<Item = Value>) -> Result<Self> {
        let all = Self::default();
        all.lock().list = checked(roots)?;
        Ok(all)
    }

    /// Has these roots from now on, and tells the servers.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no `file://` URI.
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn set(&self, roots: impl IntoIterator<Item = Value>) -> Result<()> {
        let roots = checked(roots)?;
        let mut state = self.lock();
        state.list = roots;
        let links: Vec<Arc<dyn Link>> = state.links.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for link in links {
            let (method, params) = ("notifications/roots/list_changed", RawJson::empty_object());
            link.input(Input::Notify { method, params, related: None });
        }
        Ok(())
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, RootsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn result(&self) -> RawJson {
        RawJson::from_value(&json!({"roots": self.lock().list}))
    }
}

impl std::fmt::Debug for Roots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Roots").field(&self.lock().list).finish()
    }
}

/// Roots as the schema has them.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for what is no `file://` URI.
pub(super) fn checked(roots: impl IntoIterator<Item = Value>) -> Result<Vec<Value>> {
    roots.into_iter().map(root).collect()
}

/// A root as the schema has it; only files can be roots (specification, roots: "This MUST be a file:// URI").
fn root(given: Value) -> Result<Value> {
    let root = match given {
        #[cfg(windows)]
        Value::String(path) if windows_uri(&path).is_some() => json!({"uri": windows_uri(&path)}),
        Value::String(path) if path.starts_with('/') => json!({"uri": file_uri(&path)}),
        Value::String(uri) => json!({"uri": uri}),
        other => other,
    };
    match root.get("uri").and_then(Value::as_str) {
        Some(uri) if uri.starts_with("file://") => Ok(root),
        _ => Err(Error::misuse(format!("root {root}: \"uri\": expected a file:// URI"))),
    }
}

/// The `file://` URI of an absolute path (RFC 8089).
fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    encode(&mut uri, path);
    uri
}

fn encode(uri: &mut String, path: &str) {
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// The same of a path with a drive or a host, as Windows has them: the prefixes that switch its rules off are no part of
/// the name. `None` for what is not absolute, and for what is no file's.
#[cfg(any(windows, test))]
fn windows_uri(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let (path, is_host) = match path.strip_prefix("//?/UNC/") {
        Some(rest) => (rest, true),
        None => match (path.strip_prefix("//?/"), path.strip_prefix("//")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => (&*path, false),
        },
    };
    let is_absolute = match path.as_bytes() {
        _ if is_host => {
            !path.starts_with(['/', '.', '?']) && path.split('/').nth(1).is_some_and(|share| !share.is_empty())
        }
        [drive, b':', b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    let mut uri = String::from(if is_host { "file://" } else { "file:///" });
    encode(&mut uri, path);
    is_absolute.then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(file_uri("/a b/ü"), "file:///a%20b/%C3%BC");
        for (path, uri) in [
            (r"C:\a b", Some("file:///C:/a%20b")),
            ("z:/x/#1", Some("file:///z:/x/%231")),
            (r"\\host\share\a", Some("file://host/share/a")),
            (r"\\?\C:\long", Some("file:///C:/long")),
            (r"\\?\UNC\host\share", Some("file://host/share")),
            (r"\\.\pipe\x", None),
            (r"\\host", None),
            (r"C:x", None),
            (r"\x", None),
            ("file:///x", None),
        ] {
            assert_eq!(windows_uri(path).as_deref(), uri, "{path}");
        }
    }
}
