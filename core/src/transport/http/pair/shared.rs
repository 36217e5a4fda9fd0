//! Streams of the oldest transport among several processes: a message that comes in at another one is passed on to the one
//! that has the stream. Its number begins the session's id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::super::endpoint::Inner;
use super::super::reply::Refusal;
use super::super::sender::Sender;
use super::super::sessions::millis;
use super::super::shared::{away, owner_of};
use super::Pair;
use crate::driver::Node;
use crate::jsonrpc::{self, Decoded};
use crate::model::Principal;
use crate::protocol::Input;
use crate::store::redis::nodes::Posted;
use crate::store::redis::sessions::session_key;

/// Between a process's number and what nobody can guess.
const MARK: char = '.';

/// Sessions by the names that all processes know.
#[derive(Default)]
pub(super) struct Shared(Mutex<HashMap<Arc<str>, Weak<Pair>>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<Pair>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, pair: &Arc<Pair>) {
        if let Some(key) = &pair.key {
            self.lock().insert(key.clone(), Arc::downgrade(pair));
        }
    }

    fn all(&self) -> Vec<Arc<Pair>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }
}

/// Returns the number of the process that has the stream of this session.
fn number_of(session: &str) -> Option<u32> {
    session.split_once(MARK)?.0.parse().ok().filter(|number| *number > 0)
}

impl Inner {
    /// A session is about to begin. Returns its id, and its name for other processes, if there are any.
    ///
    /// # Errors
    /// 503 when the store does not answer.
    pub(super) async fn shares_pair(
        self: &Arc<Self>,
        id: Arc<str>,
        principal: Option<&Arc<Principal>>,
    ) -> Result<(Arc<str>, Option<Arc<str>>), Refusal> {
        let Some(node) = self.node() else { return Ok((id, None)) };
        let number = node.number.get();
        if number == 0 {
            return Err(away());
        }
        let id: Arc<str> = format!("{number}{MARK}{id}").into();
        let key: Arc<str> = session_key(&id).into();
        let kept = node.store.keep_pairs(&[(key.clone(), owner_of(principal))], self.idle_millis()).await;
        kept.map(|()| (id, Some(key))).map_err(|_| away())
    }

    /// The streams here stay known to other processes.
    pub(in crate::transport::http) async fn keep_pairs(&self) {
        let pairs: Vec<_> = self.pairs.shared.all();
        let named = |pair: &Arc<Pair>| Some((pair.key.clone()?, owner_of(pair.principal.as_ref())));
        let pairs: Vec<_> = pairs.iter().filter_map(named).collect();
        if let Some(node) = Node::of(&self.server).filter(|_| !pairs.is_empty()) {
            // Otherwise the next round does it.
            let _ = node.store.keep_pairs(&pairs, self.idle_millis()).await;
        }
    }

    /// A stream has ended here.
    pub(super) fn leave_pair(&self, pair: &Pair) {
        let Some(key) = pair.key.clone() else { return };
        self.pairs.shared.lock().remove(&key);
        if let Some(store) = Node::of(&self.server).map(|node| node.store.clone()) {
            crate::driver::runtime::spawn(async move {
                // Otherwise it goes by itself.
                let _ = store.drop_pair(&key).await;
            });
        }
    }

    /// Passes a message on to the process that has the stream of its session. `None`: there is none.
    pub(super) async fn passes_to_pair(
        self: &Arc<Self>,
        session: &str,
        sender: &Sender,
        decoded: &Decoded,
    ) -> Option<Result<(), Refusal>> {
        let (number, node) = (number_of(session)?, self.node()?);
        if number == node.number.get() {
            return None;
        }
        let message = match decoded {
            Decoded::One(message) => message.encode().get().to_owned(),
            Decoded::Batch(parts) => {
                // What is no message has been told apart by then: there is nothing to answer it with elsewhere.
                let parts: Vec<_> = parts.iter().flatten().map(|part| part.encode().get().to_owned()).collect();
                format!("[{}]", parts.join(","))
            }
        };
        let patience = self.patience(sender).map_or_else(String::new, |patience| millis(patience).to_string());
        let text = Bytes::from(format!("{patience}\n{message}"));
        let owner = owner_of(sender.principal.as_ref());
        match node.store.post_to_pair(number, &session_key(session), &owner, &text).await {
            Ok(Posted::Sent) => Some(Ok(())),
            Ok(Posted::Nobody) => None,
            Ok(Posted::Full) => {
                let message = "too many messages wait for the process that has the stream: try again later";
                Some(Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)))
            }
            Err(_) => Some(Err(away())),
        }
    }

    /// A message for a stream here came in at another process.
    pub(in crate::transport::http) fn heard_for_pair(&self, key: &str, text: &Bytes) {
        let pair = self.pairs.shared.lock().get(key).and_then(Weak::upgrade);
        let end = text.iter().position(|byte| *byte == b'\n');
        let (Some(pair), Some(end)) = (pair, end) else { return };
        let patience = std::str::from_utf8(&text[..end]).ok().and_then(|patience| patience.parse().ok());
        pair.goes_on(patience.map(Duration::from_millis));
        match jsonrpc::decode(&text.slice(end + 1..), &self.limits) {
            Ok(Decoded::One(message)) => pair.peer.handle(Input::Received(message)),
            Ok(Decoded::Batch(parts)) => pair.peer.handle(Input::Batch(parts)),
            // It was read where it came in.
            Err(_) => {}
        }
    }
}
