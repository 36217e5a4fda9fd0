//! Reasons for a command to end with another status than 0.

use std::io;

use tricorn::bridge::{Reason, meant};
use tricorn::{Error, ErrorKind};

/// The tool failed, or the server answered with an error.
pub(crate) const FAILED: u8 = 1;
/// The command was called wrongly.
pub(crate) const MISUSE: u8 = 2;
/// The server could not be reached, or was lost.
pub(crate) const UNREACHABLE: u8 = 3;
/// The server wants a login.
pub(crate) const LOGIN: u8 = 4;
/// Ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// One line for people and the status of the process.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: u8,
    /// Empty when everything has been said.
    pub(crate) message: String,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(MISUSE, message)
    }

    /// Ends with this status; it was said why.
    pub(crate) fn silent(status: u8) -> Self {
        Self::new(status, "")
    }

    /// Makes a failure of why there is no connection to `target`.
    pub(crate) fn connecting(target: &str, error: &Error) -> Self {
        let message = &in_options(error.message());
        match error.kind() {
            ErrorKind::Misuse => Self::misuse(message),
            ErrorKind::Auth => Self::login(target, message),
            _ if error.reason() == Some(Reason::Silence) => Self::late(target),
            _ if let Some(why) = no_endpoint(target, message) => Self::new(UNREACHABLE, format!("{target}: {why}")),
            ErrorKind::Unsupported => Self::new(UNREACHABLE, format!("{target}: {}", without_page(message))),
            _ => {
                let hint = match () {
                    () if is_refused(error) => "; is the server running?",
                    () if message.contains("Exec format error") => {
                        "; it is not made for this machine, or a script without #! and its interpreter at the beginning"
                    }
                    () if message.contains("dns error") => "; check the name, or the network and its proxy",
                    () => "",
                };
                Self::new(
                    UNREACHABLE,
                    format!("cannot connect to {target}: {}{hint}", without_place(target, without_program(message))),
                )
            }
        }
    }

    /// Makes a failure of a server that does not answer at all.
    pub(crate) fn late(target: &str) -> Self {
        let hint = "--timeout SECONDS waits longer";
        Self::new(UNREACHABLE, format!("cannot connect to {target}: the server did not answer in time; {hint}"))
    }

    /// Makes a failure of a program that is no server; `why` says what shows it.
    pub(crate) fn no_server(target: &str, why: &str) -> Self {
        let hint = "name a server, or give it the arguments that make it one";
        Self::new(UNREACHABLE, format!("{target} does not speak MCP on its standard streams: {why}; {hint}"))
    }

    /// Makes a failure of an error that a request ended with; `what` names the request.
    pub(crate) fn requesting(what: &str, error: &Error) -> Self {
        let message = error.message();
        match error.kind() {
            ErrorKind::Rpc => match error.code() {
                Some(code) => Self::new(FAILED, format!("{what}: the server answered with error {code}: {message}")),
                None => Self::new(FAILED, format!("{what}: {message}")),
            },
            ErrorKind::Misuse => Self::misuse(format!("{what}: {message}")),
            ErrorKind::Auth => Self::login(what, message),
            ErrorKind::Closed | ErrorKind::Transport => {
                Self::new(UNREACHABLE, format!("{what}: the connection was lost: {message}"))
            }
            ErrorKind::Timeout => Self::new(FAILED, format!("{what}: {message}; --timeout SECONDS waits longer")),
            _ => Self::new(FAILED, format!("{what}: {message}")),
        }
    }

    fn login(what: &str, message: &str) -> Self {
        let hint = "tricorn login URL, or give a token with --header \"Authorization: Bearer TOKEN\"";
        Self::new(LOGIN, format!("{what}: a login is needed: {message}; {hint}"))
    }
}

/// Returns true if nobody listens where a connection was to be made.
fn is_refused(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// Names the options as the command line has them.
fn in_options(message: &str) -> String {
    // Commands have no option "auth".
    let message = message.strip_prefix("option \"auth\": ").unwrap_or(message);
    message.replace("by the option \"revision\" (\"legacy\" or \"modern\")", "by --revision legacy, or modern")
}

/// Takes a page that a web server has answered with out of a message: its status says it.
fn without_page(message: &str) -> String {
    let lower = message.to_ascii_lowercase();
    match [": <!doctype", ": <html"].iter().filter_map(|begin| lower.find(begin)).min() {
        Some(begin) => format!("{}, with a page: no server of the protocol; is the URL right?", &message[..begin]),
        None => message.to_owned(),
    }
}

/// Says that a web server answers at a URL, and no server of the protocol: it does not know the path or the method, or
/// gives something else than a message.
fn no_endpoint(target: &str, message: &str) -> Option<String> {
    let first = message.split(". Before it, ").next().unwrap_or(message);
    let said = first.split_once("\" failed: ").map_or(first, |(_, said)| said);
    let is_unknown = ["HTTP 404 ", "HTTP 405 ", "HTTP 410 "].iter().any(|begin| said.starts_with(begin));
    if said.contains("; the endpoint's path is ") {
        return Some(format!("no MCP endpoint is there: {said}"));
    }
    let is_other = said.starts_with("HTTP 2") && said.contains("with a body of type");
    if !is_unknown && !is_other && !said.starts_with("the answer is no message: ") {
        return None;
    }
    let page = said.find(": <").map_or_else(|| said.to_owned(), |begin| format!("{}, with a page", &said[..begin]));
    let path = target.split_once("://").and_then(|(_, rest)| Some(rest.split_once('/')?.1)).unwrap_or_default();
    let hint = match target.split_once("://") {
        Some((scheme, rest)) if !path.contains("mcp") && !path.contains("sse") => {
            let host = rest.split('/').next().unwrap_or_default();
            format!("most servers have it at /mcp: {scheme}://{host}/mcp")
        }
        _ => "check the path of the URL, which is /mcp at most servers".to_owned(),
    };
    Some(format!("no MCP endpoint is there ({page}); {hint}"))
}

/// Takes the command line out of a message: the caller has given it, or does not know it.
fn without_program(message: &str) -> &str {
    message.split_once("; it is \"").map_or(message, |(why, _)| why)
}

/// Takes the origin of a URL out of a message that names the whole of it.
fn without_place<'m>(target: &str, message: &'m str) -> &'m str {
    match message.split_once(": cannot connect: ") {
        Some((place, why)) if target.starts_with(place) => why,
        _ => message,
    }
}

/// Says which names there are, the nearest first: `; did you mean "add"?` or the list of them.
pub(crate) fn instead<'a>(given: &str, kind: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<_> = known.into_iter().collect();
    if let Some(near) = meant(given, &names).first() {
        return format!("; did you mean {near:?}?");
    }
    if names.is_empty() {
        return format!("; the server has no {kind}");
    }
    let shown: Vec<_> = names.iter().take(SHOWN).copied().collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("; there are: {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_system_cannot_run_has_a_remedy() {
        let error = Error::new(ErrorKind::Transport, "cannot start \"./junk\": Exec format error (os error 8)");
        let failure = Failure::connecting("./junk", &error);
        assert_eq!(failure.status, UNREACHABLE);
        assert!(failure.message.contains("not made for this machine"), "{}", failure.message);
    }
}
