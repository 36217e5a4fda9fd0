//! The one error type. Its kind says who is at fault; `code` is there only when a JSON-RPC error is meant.

use std::fmt;
use std::sync::Arc;

use crate::idiom;
pub(crate) use crate::idiom::{shortened, shown_url};
use crate::jsonrpc::{ErrorObject, RawJson, code};
use crate::report::Printable;
use std::time::Duration;

/// Kind of an error: the thing that went wrong, and the side at fault.
///
/// ```
/// use tricorn::prelude::*;
///
/// async fn connected(target: &str) -> tricorn::Result<Option<Client>> {
///     match connect(target).await {
///         Ok(client) => Ok(Some(client)),
///         // These may pass by themselves: the program tries again later.
///         Err(error) if matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout) => Ok(None),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A JSON-RPC error: sent by the peer, or to be sent to it by a handler.
    Rpc,
    /// The peer broke the protocol.
    PeerMisbehaved,
    /// The peer, or the negotiated revision, does not offer what was asked for.
    Unsupported,
    /// No answer in time.
    Timeout,
    /// Cancelled by the caller or by the peer.
    Cancelled,
    /// The connection is closed.
    Closed,
    /// Bytes could not be moved: process, socket, HTTP status.
    Transport,
    /// Authorization is missing or was refused.
    Auth,
    /// This library was called wrongly.
    Misuse,
    /// A run of a handler ends at a question that its client answers with the next round (revision 2026-07-28): the
    /// handler runs again. Let it pass.
    InputRequired,
}

impl ErrorKind {
    /// The kind's name, the same in every language: `rpc`, `peer_misbehaved`, …
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::PeerMisbehaved => "peer_misbehaved",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::Transport => "transport",
            Self::Auth => "auth",
            Self::Misuse => "misuse",
            Self::InputRequired => "input_required",
        }
    }
}

/// The protocol's code for a resource that there is not.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// The protocol's code for a request that has to wait for the user to visit URLs.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Everything that can go wrong, as one cheap-to-move value.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Day { day: u32 }
///
/// let days = ResourceTemplate::new("notes://{day}", "day");
/// let server = Server::new("notes").resource_template(days, async |Day { day }: Day| match day {
///     1..=31 => Ok(format!("Notes of day {day}")),
///     _ => Err(Error::resource_not_found(format!("notes://{day}")).into()), // the client gets this error
/// });
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let error = client.read_resource("notes://99").await.unwrap_err();
/// assert_eq!((error.kind(), error.code()), (ErrorKind::Rpc, Some(-32602)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    code: Option<i64>,
    data: Option<RawJson>,
    /// A client of ours got it: a handler that lets it pass does not mean it for its own peer.
    received: bool,
    /// The peer answered a question of the handler with it.
    answer: bool,
    /// The access token that the request was sent with, by its number on that connection.
    token: Option<u64>,
    /// The request may have been carried out: what is missing is its answer.
    lost: bool,
    /// The answering side would not do it, and trying again changes nothing.
    refused: bool,
    /// Something answered, and said that it failed: of the method that was asked for this may say nothing.
    failed_there: bool,
    /// Number of a question that was not sent, among all that this process refused.
    refusal: Option<u64>,
    reason: Option<Reason>,
    /// An option that does not exist, in a place that has others of the host's.
    unknown: Option<Arc<UnknownOption>>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Identity of an error that is told from others, whatever words it gets.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A configuration has not one server, and none was named.
    NoServerNamed,
    /// Nothing was heard of the server while the connection was opened.
    Silence,
    /// The method does not exist in the revision that is spoken.
    NotInRevision,
    /// The program of the server ended, with this status if it is known.
    Ended(Option<i32>),
}

/// An option that does not exist, and those that do.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct UnknownOption {
    /// The place of the option.
    pub(crate) what: String,
    /// As the host's language writes it.
    pub(crate) name: String,
    pub(crate) known: &'static [&'static str],
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with a message for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::made(kind, message.into(), None, None)
    }

    fn made(kind: ErrorKind, message: String, code: Option<i64>, data: Option<RawJson>) -> Self {
        let (received, answer, lost, refused, failed_there) = (false, false, false, false, false);
        let (token, refusal, reason, unknown, source) = (None, None, None, None, None);
        Self(Box::new(Inner {
            kind,
            message,
            code,
            data,
            received,
            answer,
            token,
            lost,
            refused,
            failed_there,
            refusal,
            reason,
            unknown,
            source,
        }))
    }

    /// A JSON-RPC error object: `code` and `message` go on the wire as they are.
    pub fn rpc(code: i64, message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Rpc, message.into(), Some(code), None)
    }

    /// −32602 with `message`.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::rpc(code::INVALID_PARAMS, message)
    }

    /// There is no resource at `uri`: −32002 with the URI in `data`, −32602 in revisions that have given the other up.
    pub fn resource_not_found(uri: impl AsRef<str>) -> Self {
        let uri = uri.as_ref();
        let shown = shortened(uri, 200);
        Self::rpc(RESOURCE_NOT_FOUND, format!("there is no resource {shown:?}"))
            .with_data(RawJson::from_value(&serde_json::json!({"uri": uri})))
    }

    /// This library was called wrongly; say which argument and what to do instead.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// The connection is closed.
    pub fn closed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, message)
    }

    /// A request got no answer within a time, which this option sets.
    pub(crate) fn late(method: &str, within: Duration, option: &str) -> Self {
        let (time, option) = (idiom::time(within), idiom::named(option));
        Self::new(ErrorKind::Timeout, format!("no answer to {method:?} within {time} ({option})"))
    }

    /// The call was cancelled.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cancelled, message)
    }

    /// The run ends here; the handler runs again with the answer.
    pub(crate) fn input_required() -> Self {
        Self::new(ErrorKind::InputRequired, "the client is asked, and the handler runs again with its answer")
    }

    /// Adds the `data` member of the JSON-RPC error object.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.0.data = Some(data);
        self
    }

    /// Marks an error that a client of ours got, as opposed to one that a handler addresses to its own peer.
    #[must_use]
    pub(crate) fn received(mut self) -> Self {
        self.0.received = true;
        self
    }

    pub(crate) fn is_received(&self) -> bool {
        self.0.received
    }

    /// An error that answers a question of a handler, and not the request that the handler is for.
    #[must_use]
    pub(crate) fn of_answer(mut self) -> Self {
        self.0.answer = self.0.kind == ErrorKind::Rpc;
        self
    }

    /// Returns true if the peer answered a question of a handler with it: it says nothing of the request that the
    /// handler is for.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.0.answer
    }

    /// The text of a call that failed because of this answer to its question; `None` for all other errors.
    pub(crate) fn as_answer(&self) -> Option<String> {
        let code = self.0.code.filter(|_| self.0.answer)?;
        Some(format!("the question was answered with error {code}: {}", self.0.message))
    }

    /// Records the access token that a stream was opened with before it broke off.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn with_token(mut self, token: Option<u64>) -> Self {
        self.0.token = token;
        self
    }

    pub(crate) fn token(&self) -> Option<u64> {
        self.0.token
    }

    /// The way back broke off: the request may have been carried out.
    #[must_use]
    pub(crate) fn answer_lost(mut self) -> Self {
        self.0.lost = true;
        self
    }

    pub(crate) fn is_answer_lost(&self) -> bool {
        self.0.lost
    }

    /// Something was there that answered, and with no error of the protocol: it would not do it.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn was_refused(mut self) -> Self {
        self.0.refused = true;
        self
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.0.refused
    }

    /// Something was there that answered, and said that it failed or would not take the request.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn failed_there(mut self) -> Self {
        self.0.failed_there = true;
        self
    }

    pub(crate) fn has_failed_there(&self) -> bool {
        self.0.failed_there
    }

    /// Tells a refused question from all others, whatever words its error gets.
    #[must_use]
    pub fn with_refusal(mut self, number: Option<u64>) -> Self {
        self.0.refusal = number;
        self
    }

    /// The number of the refused question that this is about: what a host keeps to tell an error that it words anew.
    #[must_use]
    pub fn refusal(&self) -> Option<u64> {
        self.0.refusal
    }

    /// Tells this error from others of its kind.
    #[must_use]
    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// The reason that tells this error from others of its kind; `None` for most.
    #[doc(hidden)]
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Names the option that does not exist.
    #[must_use]
    pub(crate) fn of_option(mut self, unknown: UnknownOption) -> Self {
        self.0.unknown = Some(Arc::new(unknown));
        self
    }

    /// Keeps the error that led to this one, for [`source`](std::error::Error::source).
    #[must_use]
    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The same with another message.
    #[must_use]
    pub(crate) fn reworded(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Returns the kind of the error, which tells the side at fault.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The JSON-RPC error code, when this is a JSON-RPC error.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.0.code
    }

    /// The JSON-RPC error's `data`.
    #[must_use]
    pub fn data(&self) -> Option<&RawJson> {
        self.0.data.as_ref()
    }

    /// `{"kind","message","code"?,"data"?,"refusal"?,"answer"?,"unknown"?}`: how errors cross to other languages. `unknown`
    /// is `{"what","name","known"}`, an option that does not exist and those that do, in snake_case.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        #[derive(serde::Serialize)]
        struct Wire<'a> {
            kind: &'a str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a RawJson>,
            #[serde(skip_serializing_if = "Option::is_none")]
            refusal: Option<u64>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            answer: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            unknown: Option<&'a UnknownOption>,
        }
        RawJson::from_value(&Wire {
            kind: self.kind().as_str(),
            message: self.message(),
            code: self.code(),
            data: self.data(),
            refusal: self.refusal(),
            answer: self.is_answer(),
            unknown: self.0.unknown.as_deref(),
        })
    }

    /// The JSON-RPC error object the peer is shown. Everything but [`ErrorKind::Rpc`] is an internal error to it.
    #[must_use]
    pub(crate) fn to_object(&self) -> ErrorObject {
        ErrorObject {
            code: self.code().unwrap_or(code::INTERNAL_ERROR),
            message: self.0.message.clone(),
            data: self.0.data.clone(),
        }
    }
}

impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        Self::made(ErrorKind::Rpc, object.message, Some(object.code), object.data)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Transport, error.to_string()).caused_by(error)
    }
}

/// The kind and the message, or the message and the code. Control characters but line breaks and tabs are escaped, and what
/// is longer than 8,192 characters is cut: a peer may have written it.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code() {
            Some(code) => write!(f, "{} (JSON-RPC error {code})", Printable(self.message())),
            None => write!(f, "{}: {}", self.kind().as_str(), Printable(self.message())),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("code", &self.0.code)
            .field("data", &self.0.data)
            .finish()
    }
}

/// The source is the error of the system that led to this one, where there is one.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_error_is_the_source() {
        let error = Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).clone();
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
        assert!(std::error::Error::source(&Error::misuse("x")).is_none());
    }
}
