//! Unix-domain sockets that HTTP is spoken over: `unix:///run/mcp.sock#/mcp`, as VS Code writes it, and
//! `http+unix://%2Frun%2Fmcp.sock/mcp`.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::error::{Error, Result, shown_url};

/// Said where a system has none.
#[cfg(not(unix))]
pub(super) const NONE: &str = "there are no Unix-domain sockets on this system: use http://127.0.0.1 and a port";

/// The endpoint's path where a URL names the socket alone.
const DEFAULT_PATH: &str = "/mcp";

/// An endpoint behind a socket of this machine.
pub(super) struct Local {
    pub(super) socket: PathBuf,
    /// Path and query.
    pub(super) path: String,
}

impl Local {
    /// The endpoint that a URL names, if it names a socket.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for one that names no file.
    pub(super) fn of(url: &str) -> Option<Result<Self>> {
        let (scheme, rest) = url.split_once(':')?;
        let (place, path) = match scheme.to_ascii_lowercase().as_str() {
            "unix" => {
                let (place, path) = rest.split_once('#').unwrap_or((rest, ""));
                (place.strip_prefix("//").unwrap_or(place), path)
            }
            "http+unix" => {
                let rest = rest.trim_start_matches('/').split('#').next().unwrap_or_default();
                rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()))
            }
            _ => return None,
        };
        #[cfg(not(unix))]
        if !cfg!(test) {
            return Some(Err(Error::misuse(format!("target \"url\": {}: {NONE}", shown_url(url)))));
        }
        Some(Self::at(place, path).ok_or_else(|| {
            let expected = "expected the path of a socket, as unix:///run/mcp.sock#/mcp";
            Error::misuse(format!("target \"url\": {expected}, got {}", shown_url(url)))
        }))
    }

    fn at(place: &str, path: &str) -> Option<Self> {
        let socket = percent_decode_str(place).decode_utf8().ok()?;
        if !socket.starts_with('/') || socket.ends_with('/') || socket.contains('\0') {
            return None;
        }
        let path = match path {
            "" => DEFAULT_PATH.to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        Some(Self { socket: PathBuf::from(&*socket), path })
    }
}

/// The socket that the option `host` names, as `unix:/run/mcp.sock`.
pub(super) fn named(host: &str) -> Option<&Path> {
    let (scheme, path) = host.split_once(':')?;
    let path = path.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(path);
    scheme.eq_ignore_ascii_case("unix").then_some(Path::new(path))
}

/// The URL that clients connect to.
pub(super) fn url(socket: &Path, path: &str) -> String {
    const SPECIAL: percent_encoding::AsciiSet =
        percent_encoding::CONTROLS.add(b' ').add(b'#').add(b'?').add(b'%').add(b'"').add(b'<').add(b'>');
    let socket = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    let shown = percent_encoding::percent_encode(socket.as_os_str().as_encoded_bytes(), &SPECIAL);
    // Others than ours have no default for the path.
    format!("unix://{shown}#{path}")
}

#[cfg(unix)]
pub(super) use self::listening::Listener;

#[cfg(unix)]
mod listening {
    use std::io;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use tokio::net::{UnixListener, UnixStream};

    /// Time for a program that listens there to take a connection.
    const PATIENCE: Duration = Duration::from_secs(1);
    /// Time between two looks at a socket that seems to be left: a program may be about to listen on it.
    const AGAIN: Duration = Duration::from_millis(50);

    /// A socket that is listened on. Dropped, its file goes.
    pub(in crate::endpoint::http) struct Listener {
        listener: UnixListener,
        path: PathBuf,
        /// Device and number of the file: one of another program may have taken its place.
        file: Option<(u64, u64)>,
    }

    impl Listener {
        /// Listens at `path`. A socket that nobody listens on any more is taken over.
        pub(in crate::endpoint::http) async fn bind(path: &Path) -> io::Result<Self> {
            let path = &std::path::absolute(path)?;
            let listener = match UnixListener::bind(path) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(path).await => {
                    std::fs::remove_file(path)?;
                    UnixListener::bind(path)?
                }
                other => other?,
            };
            Ok(Self { listener, path: path.to_owned(), file: file_at(path) })
        }

        pub(in crate::endpoint::http) async fn accept(&self) -> io::Result<UnixStream> {
            self.listener.accept().await.map(|(stream, _)| stream)
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            if self.file.is_some() && file_at(&self.path) == self.file {
                // Another program finds that nobody listens there.
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }

    fn file_at(path: &Path) -> Option<(u64, u64)> {
        let about = std::fs::symlink_metadata(path).ok()?;
        about.file_type().is_socket().then(|| (about.dev(), about.ino()))
    }

    /// Returns true if a file is the socket of a program that has ended.
    async fn is_left(path: &Path) -> bool {
        let file = file_at(path);
        if file.is_none() || !refuses(path).await {
            return false;
        }
        tokio::time::sleep(AGAIN).await;
        refuses(path).await && file_at(path) == file
    }

    async fn refuses(path: &Path) -> bool {
        let connecting = tokio::time::timeout(PATIENCE, UnixStream::connect(path)).await;
        matches!(connecting, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_socket_and_a_path() {
        for (url, socket, path) in [
            ("unix:///run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("unix:///run/mcp.sock#/a/b?c=1", "/run/mcp.sock", "/a/b?c=1"),
            ("UNIX:/run/my%20app.sock#x", "/run/my app.sock", "/x"),
            ("http+unix://%2Frun%2Fmcp.sock/mcp/?a=1#part", "/run/mcp.sock", "/mcp/?a=1"),
            ("http+unix://%2Frun%2Fmcp.sock", "/run/mcp.sock", "/mcp"),
        ] {
            let local = Local::of(url).expect(url).expect(url);
            assert_eq!((&*local.socket, &*local.path), (Path::new(socket), path), "{url}");
        }
        for bad in ["unix:", "unix://", "unix://mcp.sock", "unix:///run/", "http+unix://run/mcp", "unix:///a%00b"] {
            let error = Local::of(bad).expect(bad).err().expect(bad);
            assert!(error.message().contains("expected the path of a socket"), "{bad}: {error}");
        }
        assert!(Local::of("http://h/mcp").is_none() && Local::of("echo hello").is_none());
    }

    #[test]
    fn an_address_to_listen_on_names_a_socket() {
        for (host, path) in [
            ("unix:/run/mcp.sock", Some("/run/mcp.sock")),
            ("unix:///run/mcp.sock", Some("/run/mcp.sock")),
            ("unix:mcp.sock", Some("mcp.sock")),
            ("127.0.0.1", None),
            ("::1", None),
        ] {
            assert_eq!(named(host), path.map(Path::new), "{host}");
        }
        assert_eq!(url(Path::new("/run/my app#1.sock"), "/mcp"), "unix:///run/my%20app%231.sock#/mcp");
        assert_eq!(url(Path::new("/run/a.sock"), "/x"), "unix:///run/a.sock#/x");
    }
}
