//! Targets of a client.

use std::collections::BTreeMap;

use super::Stderr;
use crate::error::{Error, Result, shortened};

/// Server that a client connects to.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
///
/// let remote: Target = "https://example.com/mcp".parse()?;
/// let local = Target::command("notes-server", ["--read-only"]);
/// let of_a_host = Target::from_file("mcp.json", Some("notes"))?;
/// for target in [remote, local, of_a_host] {
///     let client = Client::connect(&target, &ClientOptions::new()).await?;
///     println!("{}: {}", client.transport(), client.list_tools().await?.len());
///     client.close().await;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A Streamable HTTP endpoint.
    Url {
        /// `http://…` or `https://…`, or the socket of a server on this machine and the endpoint's path:
        /// `unix:///run/mcp.sock#/mcp`, `http+unix://%2Frun%2Fmcp.sock/mcp`. Without a path it is `/mcp`.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// An endpoint of the oldest HTTP transport, HTTP+SSE, without asking for a newer one first. A
    /// [`Url`](Self::Url) finds out by itself.
    #[deprecated(note = "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")]
    Sse {
        /// Address of the event stream, `http://…` or `https://…`.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// A recorded server: a cassette, see [`cassette`](crate::cassette). Nothing in the file is run or connected to.
    Replay {
        /// The file.
        file: String,
        /// Each answer is given once, and only to the request that was recorded. Otherwise an answer may come again, and
        /// the best match answers a request that was not recorded.
        strict: bool,
    },
    /// A program that speaks over its standard streams.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Merged into this program's environment; `None` removes.
        env: BTreeMap<String, Option<String>>,
        /// Its working directory.
        cwd: Option<String>,
        /// Destination of its standard error.
        stderr: Stderr,
    },
}

/// Returns true if it is a URL that can be connected to.
pub(super) fn is_url(text: &str) -> bool {
    let of_socket = || text.split_once(":/").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("unix"));
    text.split_once("://").is_some_and(|(scheme, _)| is_known(scheme)) || of_socket()
}

/// Schemes have no case.
pub(super) fn is_known(scheme: &str) -> bool {
    ["http", "https", "unix", "http+unix"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Refuses what begins like a URL, and is neither http nor https: no program is called like that. One letter is a drive.
pub(super) fn check_scheme(text: &str) -> Result<()> {
    let Some((scheme, _)) = text.split_once("://") else { return Ok(()) };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    match is_scheme && !is_known(scheme) {
        // The rest may hold a password.
        true => Err(Error::misuse(format!(
            "target: the scheme is {:?}, expected http://, https:// or unix:",
            shortened(scheme, 30)
        ))),
        false => Ok(()),
    }
}
