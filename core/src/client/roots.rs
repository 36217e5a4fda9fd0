//! The folders and files that a client lets its servers look at.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Value, json};

use crate::call::Link;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::Input;

/// The folders and files that a server may look at: what `roots/list` answers. A clone is the same list.
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
        Value::String(text) => json!({"uri": file_uri(&text, cfg!(windows)).unwrap_or(text)}),
        other => other,
    };
    match root.get("uri").and_then(Value::as_str) {
        Some(uri) if uri.starts_with("file://") => Ok(root),
        _ => Err(Error::misuse(format!("root {root}: \"uri\": expected a file:// URI"))),
    }
}

/// The `file://` URI of an absolute path (RFC 8089); `None` for what is none. On Windows it begins with a drive, or with a
/// host and a share.
fn file_uri(path: &str, on_windows: bool) -> Option<String> {
    let path = match on_windows {
        true => path.replace('\\', "/"),
        false => path.to_owned(),
    };
    let drive = |path: &str| path.starts_with(|c: char| c.is_ascii_alphabetic()) && path[1..].starts_with(":/");
    // What has no bound on its length, with which some programs write all of theirs.
    let path = match path.strip_prefix("//?/").filter(|_| on_windows) {
        Some(long) => long.strip_prefix("UNC/").map_or_else(|| long.to_owned(), |share| format!("//{share}")),
        None => path,
    };
    let mut uri = match on_windows {
        true if drive(&path) => String::from("file:///"),
        true if path.starts_with("//") => String::from("file:"),
        false if path.starts_with('/') => String::from("file://"),
        _ => return None,
    };
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_uris() {
        for (path, uri) in [("/a b/ä", Some("file:///a%20b/%C3%A4")), ("a", None), ("file:///a", None), (r"C:\a", None)]
        {
            assert_eq!(file_uri(path, false).as_deref(), uri, "{path}");
        }
        for (path, uri) in [
            (r"C:\a b\c", Some("file:///C:/a%20b/c")),
            ("z:/a", Some("file:///z:/a")),
            (r"\\host\share\a", Some("file://host/share/a")),
            (r"\\?\C:\a", Some("file:///C:/a")),
            (r"\\?\UNC\host\share", Some("file://host/share")),
            (r"C:a", None),
            (r"\a", None),
            ("file:///C:/a", None),
            ("é:/a", None),
            ("", None),
        ] {
            assert_eq!(file_uri(path, true).as_deref(), uri, "{path}");
        }
    }
}
