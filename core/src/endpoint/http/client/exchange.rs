//! One request of ours: a POST, and what may come of it.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderMap;
use serde_json::json;

use super::fault::{Fault, Post, is_modern_code, refusal};
use super::head::Media;
use super::pool::Answer;
use super::stream::{self, Cursor, End};
use super::{headers, pair};
use crate::budget;
use crate::endpoint::http::client::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{self, DecodeError, Decoded, Id, Message, RawJson};
use crate::protocol::Input;
use crate::protocol::revision::{Era, modern, object};

/// The most pages of `tools/list` that a refused call is worth.
const MAX_PAGES: usize = 100;

/// Sends the request and feeds the peer until it is answered, or says why it is not.
pub(super) async fn run(shared: Arc<Shared>, post: Post) {
    if let Some(input) = answered(&shared, &post).await {
        shared.handle(input);
    }
    shared.finished(&post.id);
}

/// `None`: the answer was fed.
async fn answered(shared: &Arc<Shared>, post: &Post) -> Option<Input> {
    let mut may_learn = post.is_modern("tools/call");
    if post.is_initialize()
        && shared.begins_with_pair()
        && let Err(error) = Box::pin(pair::open(shared)).await
    {
        return Some(Input::Undelivered(post.id.clone(), error));
    }
    if shared.is_pair() {
        return Box::pin(pair::send(shared, post)).await;
    }
    loop {
        let learnt = shared.tools.learnt();
        // A call that was refused for its headers is not over yet.
        let mut mismatch = None;
        let mut on = |message: Decoded| match message {
            Decoded::One(Message::Error { id: Some(id), error })
                if may_learn && id == post.id && error.code == modern::HEADER_MISMATCH =>
            {
                mismatch = Some(error);
                true
            }
            message => feed(shared, post, message),
        };
        let mut fault = attempt(shared, post, &mut on).await.err();
        if let Some(Fault::Older(refusal)) = fault {
            match Box::pin(pair::open(shared)).await {
                Ok(()) => return Box::pin(pair::send(shared, post)).await,
                Err(error) if matches!(error.kind(), ErrorKind::Auth | ErrorKind::PeerMisbehaved) => {
                    fault = Some(error.into());
                }
                Err(_) => fault = Some(*refusal),
            }
        }
        let error = match (fault, mismatch) {
            (None, None) => return None,
            (None, Some(error)) | (Some(Fault::Refused(error)), _) => error,
            (Some(fault), _) => return Some(fault.into_input(post)),
        };
        if may_learn && error.code == modern::HEADER_MISMATCH && Box::pin(learn(shared, post, learnt)).await {
            may_learn = false;
            continue;
        }
        return Some(Input::Received(Message::Error { id: Some(post.id.clone()), error }));
    }
}

/// Gives messages to the peer. `true`: the request's answer was among them.
fn feed(shared: &Shared, post: &Post, decoded: Decoded) -> bool {
    let Some(peer) = shared.peer.upgrade() else { return true };
    match decoded {
        Decoded::One(message) => {
            let answered = post.is_answered_by(&message);
            let message = match message {
                Message::Response { id, result } if answered && post.is_modern("tools/list") => {
                    Message::Response { id, result: shared.learn(result) }
                }
                message => message,
            };
            peer.handle_with(&post.id, Input::Received(message));
            answered
        }
        Decoded::Batch(parts) => {
            let answered = parts.iter().flatten().any(|message| post.is_answered_by(message));
            peer.handle_with(&post.id, Input::Batch(parts));
            answered
        }
    }
}

/// Addresses a message that comes in answer to a request: many a server makes a text of a number, and an error that
/// names nothing is about this request.
fn addressed(post: &Post, mut decoded: Decoded) -> Decoded {
    match &mut decoded {
        Decoded::One(Message::Response { id, .. } | Message::Error { id: Some(id), .. })
            if *id != post.id && id.clone().counted() == post.id =>
        {
            *id = post.id.clone();
        }
        Decoded::One(Message::Error { id: none @ None, .. }) => *none = Some(post.id.clone()),
        _ => {}
    }
    decoded
}

type OnMessage<'a> = &'a mut (dyn FnMut(Decoded) -> bool + Send);

/// One POST. `on` gets what comes back, and says when that was the answer.
async fn attempt(shared: &Arc<Shared>, post: &Post, on: OnMessage<'_>) -> Result<(), Fault> {
    let session = post.session.as_ref();
    let headers = |out: &mut HeaderMap| {
        let Post { method, params, revision, .. } = post;
        headers::put_request(out, *revision, session, method, params.as_ref(), |tool| shared.tools.of(tool));
    };
    let answer = shared.post(headers, &post.frame, post.is_repeatable()).await?;
    let status = answer.head.status;
    if status == StatusCode::NOT_FOUND && session.is_some() {
        // Read, so that the connection can be used again.
        let _ = answer.collect(shared.limits.max_message_bytes).await;
        return Err(Fault::SessionLost { taken: false });
    }
    if !status.is_success() {
        let fault = Box::pin(refusal(shared, Some(post), answer)).await;
        let older = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        if post.is_initialize() && older.contains(&status) && !is_modern(&fault) {
            return Err(Fault::Older(Box::new(fault)));
        }
        // 400, 401 and 503 are what others say of a session that they do not know. What failed inside may have run.
        let in_session = post.revision.era() == Era::Legacy && !post.is_opening();
        if in_session && fault.is_about_session() {
            let refused = status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE;
            if refused || post.is_repeatable() {
                return Err(Fault::SessionLost { taken: !refused });
            }
        }
        return Err(fault);
    }
    if post.is_initialize() {
        // Before the answer is fed: what it sets going belongs to the session already.
        shared.begin_session(answer.head.session());
    }
    let media = answer.head.media();
    if media == Media::Stream {
        return Box::pin(streamed(shared, post, answer, on)).await;
    }
    let on_stream = answer.on.clone();
    let body = answer.collect(shared.limits.max_message_bytes).await?;
    if !body.is_empty() {
        shared.came(on_stream.as_deref(), &body);
    }
    if body.is_empty() {
        return Err(no_answer(post, format!("HTTP {status} without an answer")));
    }
    if let Media::Other(media) = media {
        return Err(no_answer(post, format!("HTTP {status} with a body of type {media:?}, expected a message")));
    }
    let decoded = jsonrpc::decode_leniently(&body, &shared.limits).map_err(garbled)?;
    if on(addressed(post, decoded)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::PeerMisbehaved, format!("HTTP {status} with a message that is not the answer")).into())
}

/// The answer as a stream; a legacy one that breaks off is taken up again where the server says that it can be.
async fn streamed(shared: &Arc<Shared>, post: &Post, answer: Answer, on: OnMessage<'_>) -> Result<(), Fault> {
    let (mut bad, on_stream) = (None, answer.on.clone());
    let read = |on_stream: Option<&str>, data: &Bytes| {
        shared.came(on_stream, data);
        budget::worked(data.len());
        jsonrpc::decode_leniently(data, &shared.limits)
    };
    let mut on = |on_stream: Option<&str>, data: Bytes| match read(on_stream, &data) {
        Ok(decoded) => on(addressed(post, decoded)),
        Err(mut error) => {
            // One bad event is not the end, unless it was meant to be the answer.
            error.answers = error.answers.map(Id::counted);
            let answer = error.answers.as_ref() == Some(&post.id);
            bad = Some(error);
            answer
        }
    };
    let (mut cursor, token) = (Cursor::default(), answer.shown.as_ref().map(|shown| shown.number));
    let mut first = |data| on(on_stream.as_deref(), data);
    let ended = stream::read(answer, shared.limits.max_message_bytes, &mut cursor, &mut first).await;
    let outcome = match ended {
        End::Satisfied => Ok(()),
        End::Over { why: Some(why), .. } if why.kind() == ErrorKind::PeerMisbehaved => Err(why.into()),
        End::Over { .. } if cursor.is_resumable() && post.revision.era() == Era::Legacy => {
            let session = if post.is_initialize() { shared.session() } else { post.session.clone() };
            Box::pin(stream::resume(shared, post.revision, session.as_ref(), cursor, &mut on)).await
        }
        End::Over { why, .. } => {
            let why = why.map_or_else(String::new, |why| format!(" ({})", why.message()));
            let message = format!(
                "the stream ended before the answer, and names no event to resume from: the answer is lost{why}"
            );
            Err(Error::new(ErrorKind::Transport, message).with_token(token).answer_lost().into())
        }
    };
    match (outcome, bad) {
        (Ok(()), Some(error)) if error.answers.as_ref() == Some(&post.id) => Err(garbled(error)),
        (Err(lost @ Fault::SessionLost { .. }), _) => Err(lost),
        (Err(_), Some(error)) => Err(garbled(error)),
        (outcome, _) => outcome,
    }
}

fn garbled(error: DecodeError) -> Fault {
    Error::new(ErrorKind::PeerMisbehaved, format!("the answer is no message: {}", error.told())).into()
}

/// A success that answers nothing. To the first question it means that nobody there knows the method.
fn no_answer(post: &Post, message: String) -> Fault {
    let kind = if post.is_opening() { ErrorKind::Unsupported } else { ErrorKind::PeerMisbehaved };
    Error::new(kind, message).into()
}

/// Returns true if only a modern server refuses in this way.
pub(super) fn is_modern(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused(error) if is_modern_code(error.code))
}

/// Lists the tools until the refused call's is among them. `true`: the call is worth another attempt.
async fn learn(shared: &Arc<Shared>, call: &Post, learnt: u64) -> bool {
    let _turn = shared.tools.learning.lock().await;
    if shared.tools.learnt() != learnt {
        // Another call has listed them meanwhile.
        return true;
    }
    let Some(params) = &call.params else { return false };
    let Ok(head) = params.borrow::<crate::model::meta::ParamsHead<'_>>() else {
        return false;
    };
    let (Some(meta), Some(name)) = (head.meta, head.name.and_then(crate::model::meta::string)) else {
        return false;
    };
    let mut envelope = String::from("{");
    for (key, value) in object::members(meta.get()).into_iter().filter(|(key, _)| key != "progressToken") {
        object::push_member(&mut envelope, &key, value.get());
    }
    envelope.push('}');
    let (envelope, mut cursor) = (RawJson::trusted(envelope), None);
    let before = shared.tools.of(&name);
    // The cached list has led to the wrong headers.
    if let Some(peer) = shared.peer.upgrade() {
        peer.outdated("tools/list");
    }
    for page in 0..MAX_PAGES {
        let params = match cursor.take() {
            None => RawJson::from_value(&json!({"_meta": envelope})),
            Some(cursor) => RawJson::from_value(&json!({"_meta": envelope, "cursor": cursor})),
        };
        let id = Id::from(format!("{}/tools/{page}", call.id).as_str());
        let method = "tools/list".to_owned();
        let frame = jsonrpc::encode_request(&id, &method, Some(&params));
        let (revision, params) = (call.revision, Some(params));
        let post = Post { id, method, revision, params, idempotent: true, frame, session: None };
        let mut found = None;
        let mut on = |message: Decoded| match message {
            Decoded::One(Message::Response { id, result }) if id == post.id => {
                found = Some(result);
                true
            }
            Decoded::One(message) => post.is_answered_by(&message),
            Decoded::Batch(_) => false,
        };
        if attempt(shared, &post, &mut on).await.is_err() {
            return false;
        }
        let Some(result) = found.map(|result| shared.learn(result)) else {
            return false;
        };
        if lists(&result, &name) {
            // With other headers, or none any more.
            return before.is_some() || shared.tools.of(&name).is_some();
        }
        cursor = next_cursor(&result);
        if cursor.is_none() {
            return false;
        }
    }
    false
}

/// Returns true if a tool is on this page.
fn lists(result: &RawJson, name: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<Tool<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Tool<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
    }
    result.borrow::<Page<'_>>().is_ok_and(|page| page.tools.iter().any(|tool| tool.name == name))
}

fn next_cursor(result: &RawJson) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        #[serde(default)]
        next_cursor: Option<String>,
    }
    result.to::<Page>().ok()?.next_cursor
}
