//! A message that is sent, and the faults of its exchange.

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;

use super::Shared;
use super::pool::Answer;
use crate::error::{Error, ErrorKind, shortened};
use crate::jsonrpc::{self, Decoded, ErrorObject, Id, Message, RawJson};
use crate::protocol::Input;
use crate::protocol::revision::{Era, Revision, modern};

/// A request on its way.
pub(super) struct Post {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) revision: Revision,
    pub(super) params: Option<RawJson>,
    /// It may be carried out twice.
    pub(super) idempotent: bool,
    pub(super) frame: Bytes,
    /// The session that it belongs to.
    pub(super) session: Option<HeaderValue>,
}

impl Post {
    pub(super) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    pub(super) fn is_probe(&self) -> bool {
        self.method == "server/discover"
    }

    pub(super) fn is_opening(&self) -> bool {
        self.is_initialize() || self.is_probe()
    }

    /// A connection that ended without a word is no reason to fail.
    pub(super) fn is_repeatable(&self) -> bool {
        self.is_initialize() || self.idempotent
    }

    pub(super) fn is_modern(&self, method: &str) -> bool {
        self.revision.era() == Era::Modern && self.method == method
    }

    pub(super) fn is_answered_by(&self, message: &Message) -> bool {
        match message {
            Message::Response { id, .. } | Message::Error { id: Some(id), .. } => *id == self.id,
            _ => false,
        }
    }
}

/// Reason why a request has no answer.
pub(super) enum Fault {
    /// HTTP refused it with a JSON-RPC error.
    Refused(ErrorObject),
    /// The server does not know the session. True if it had taken the request before.
    SessionLost {
        taken: bool,
    },
    /// As a server of the oldest transport would refuse it.
    Older(Box<Self>),
    Failed(Error),
}

impl Fault {
    /// Returns true if a refusal is that of a server which was started again, and knows no session: many say so with
    /// 400.
    pub(super) fn is_about_session(&self) -> bool {
        let said = match self {
            Self::Refused(error) => error.message.to_ascii_lowercase(),
            Self::Failed(error) => error.message().to_ascii_lowercase(),
            _ => return false,
        };
        let is_missing = || {
            const WORDS: [&str; 9] = [
                "no valid",
                "invalid",
                "not found",
                "unknown",
                "expired",
                "missing",
                "exist",
                "terminated",
                "required",
            ];
            WORDS.iter().any(|word| said.contains(word))
        };
        said.contains("not initialized") || (said.contains("session") && is_missing())
    }

    /// Turns it into the connection's input.
    pub(super) fn into_input(self, post: &Post) -> Input {
        let id = post.id.clone();
        match self {
            Self::Refused(error) => Input::Received(Message::Error { id: Some(id), error }),
            Self::SessionLost { taken } => Input::SessionLost { id, taken },
            Self::Older(refusal) => refusal.into_input(post),
            Self::Failed(error) => Input::Undelivered(id, error),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the consequence of a status other than success for the request.
/// `post`: none when a stream was asked for.
pub(super) async fn refusal(shared: &Shared, post: Option<&Post>, answer: Answer) -> Fault {
    let status = answer.head.status;
    let (challenge, location) = (text(answer.head.challenge()), text(answer.head.location()));
    let challenged = answer.head.challenge().is_some();
    let proxy = answer.proxy().map(str::to_owned);
    if let (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(proxy)) = (status, &proxy) {
        let why = format!("the proxy {proxy} wants a password, or another one (407): http://user:password@host:port");
        return Fault::Failed(Error::new(ErrorKind::Transport, why));
    }
    #[cfg(feature = "auth")]
    let shown = answer.shown.clone();
    let on_stream = answer.on.clone();
    let body = answer.collect(shared.limits.max_message_bytes).await.unwrap_or_default();
    if !body.is_empty() {
        shared.came(on_stream.as_deref(), &body);
    }
    let decoded = match jsonrpc::decode_leniently(&body, &shared.limits) {
        Ok(Decoded::One(Message::Error { id, error })) => Some((id, error)),
        _ => None,
    };
    let transient = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
        || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
    let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let Some((id, error)) = &decoded
        && !unauthorized
        // Whatever id it bears, the body of a refused request is about that request.
        && (!transient || post.is_some_and(|post| id.as_ref() == Some(&post.id) && !(post.is_probe() && may_pass(error))))
    {
        return Fault::Refused(error.clone());
    }
    #[cfg_attr(not(feature = "auth"), expect(unused_mut, reason = "of access tokens"))]
    let mut detail = match (decoded, challenge, location) {
        (Some((_, error)), _, _) => error.message,
        (None, Some(challenge), _) => challenge,
        (None, None, Some(location)) if status.is_redirection() => format!("redirect to {location} is not followed"),
        _ => String::from_utf8_lossy(&body).trim().chars().take(MAX_SHOWN).collect(),
    };
    #[cfg(feature = "auth")]
    if let Some(shown) = &shown {
        crate::auth::refusal::mask(&mut detail, &shown.token);
    }
    let detail = shortened(&detail, MAX_DETAIL);
    // A server that is protected against DNS rebinding means the name in the URL, and no login helps.
    let about_host = status == StatusCode::FORBIDDEN && !challenged && is_about_host(&detail);
    let kind = match () {
        () if about_host => ErrorKind::Transport,
        () if unauthorized => ErrorKind::Auth,
        () if transient || status.is_redirection() => ErrorKind::Transport,
        // While the connection opens, it means that nobody there knows this revision or this transport.
        () if post.is_none_or(Post::is_opening) => ErrorKind::Unsupported,
        () => ErrorKind::Transport,
    };
    let mut message = if detail.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {detail}") };
    if let Some(proxy) = &proxy
        && (unauthorized || status.is_server_error())
    {
        message.push_str(&format!(" (through the proxy {proxy})"));
    }
    if status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE {
        message.push_str(" (the request's headers are too long");
        if post.is_some_and(|post| post.is_modern("tools/call")) {
            message.push_str("; those that repeat its name and arguments are Mcp-Name and Mcp-Param-…");
        }
        message.push(')');
    }
    if about_host {
        message.push_str(" (it is about the host name or the origin, and not about authorization)");
    }
    let error = Error::new(kind, message);
    let error = if transient { error } else { error.was_refused() };
    // Asked something else, it may do better. Who is overloaded is not asked twice, and who wants a login says so.
    let failed_there = status.is_server_error() || (status == StatusCode::FORBIDDEN && !challenged && !about_host);
    if failed_there { error.failed_there() } else { error }.into()
}

/// Longest part of a server's text in place of an answer that is read.
pub(super) const MAX_DETAIL: usize = 1000;

/// Longest part of a body that is no message in an error message.
pub(super) const MAX_SHOWN: usize = 200;

/// Returns true if a refusal speaks of the name by which the server was asked.
pub(super) fn is_about_host(detail: &str) -> bool {
    let detail = detail.to_ascii_lowercase();
    ["host", "origin", "rebinding"].iter().any(|word| detail.contains(word))
}

/// Returns true for the error of a server that is overloaded or broken, in contrast to that of one that does not know a
/// method. With a status that passes it is no word on the era.
pub(super) fn may_pass(error: &ErrorObject) -> bool {
    use crate::jsonrpc::code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
    ![METHOD_NOT_FOUND, INVALID_PARAMS, INVALID_REQUEST].contains(&error.code) && !is_modern_code(error.code)
}

pub(super) fn text(value: Option<&HeaderValue>) -> Option<String> {
    value.and_then(|value| value.to_str().ok().map(str::to_owned))
}

pub(super) fn is_modern_code(code: i64) -> bool {
    [modern::HEADER_MISMATCH, modern::MISSING_CLIENT_CAPABILITY, modern::UNSUPPORTED_VERSION].contains(&code)
}
