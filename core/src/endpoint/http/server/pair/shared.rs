//! Streams of the oldest transport among several processes: a message that comes in at another one is passed on to the one
//! that has the stream. Its number begins the session's id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::budget;
use crate::driver::{Node, runtime};
use crate::endpoint::http::Body;
use crate::endpoint::http::server::endpoint::{Inner, asks};
use crate::endpoint::http::server::lanes::Asked;
use crate::endpoint::http::server::outlet::End;
use crate::endpoint::http::server::pair::{Pair, unknown};
use crate::endpoint::http::server::reply::{self, Refusal};
use crate::endpoint::http::server::sender::Sender;
use crate::endpoint::http::server::sessions::millis;
use crate::endpoint::http::server::shared::{MAX_FAILED, away, owner_of};
use crate::jsonrpc::{self, DecodeError, Decoded, ErrorObject, Message, code};
use crate::model::Principal;
use crate::protocol::{Arrival, Input, Route, Transport};
use crate::store::redis::Redis;
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

    /// Knows a session from now on, and gives it what other processes pass on.
    pub(super) fn add(&self, pair: &Arc<Pair>, coming: Option<Coming>) {
        let (Some(known), Some(coming)) = (&pair.shared, coming) else { return };
        self.lock().insert(known.named.key.clone(), Arc::downgrade(pair));
        // Not where the log of all processes is read: handlers begin here.
        runtime::spawn(coming.taken(Arc::downgrade(pair)));
    }

    fn all(&self) -> Vec<Arc<Pair>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }
}

/// The name of a session in the store, which forgets it with this.
pub(super) struct Named {
    key: Arc<str>,
    store: Arc<Redis>,
}

impl Named {
    pub(super) fn at(self, transport: Arc<Transport>, inner: &Arc<Inner>) -> (Known, Coming) {
        let (passed, texts) = mpsc::channel(inner.max_in_flight.max(16));
        (Known { named: self, passed }, Coming { texts, transport, inner: Arc::downgrade(inner) })
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let (key, store) = (self.key.clone(), self.store.clone());
        runtime::spawn(async move {
            // Otherwise it goes by itself.
            let _ = store.drop_pair(&key).await;
        });
    }
}

/// A session that other processes know.
pub(super) struct Known {
    named: Named,
    passed: mpsc::Sender<Bytes>,
}

/// Messages that other processes pass on.
pub(super) struct Coming {
    texts: mpsc::Receiver<Bytes>,
    /// The stream's.
    transport: Arc<Transport>,
    inner: Weak<Inner>,
}

impl Coming {
    async fn taken(mut self, pair: Weak<Pair>) {
        while let Some(text) = self.texts.recv().await {
            let (Some(pair), Some(inner)) = (pair.upgrade(), self.inner.upgrade()) else { return };
            inner.takes_passed(&pair, &text, &self.transport);
        }
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
    ) -> Result<(Arc<str>, Option<Named>), Refusal> {
        let Some(node) = self.node() else { return Ok((id, None)) };
        let number = node.number.get();
        if number == 0 {
            return Err(away());
        }
        let id: Arc<str> = format!("{number}{MARK}{id}").into();
        // Dropped from here on, it is forgotten.
        let named = Named { key: session_key(&id).into(), store: node.store.clone() };
        let kept = node.store.keep_pairs(&[(named.key.clone(), owner_of(principal))], self.idle_millis()).await;
        kept.map(|()| (id, Some(named))).map_err(|_| away())
    }

    /// The streams here stay known to other processes.
    pub(in crate::endpoint::http) async fn keep_pairs(&self) {
        let pairs: Vec<_> = self.pairs.shared.all();
        let named =
            |pair: &Arc<Pair>| Some((pair.shared.as_ref()?.named.key.clone(), owner_of(pair.principal.as_ref())));
        let pairs: Vec<_> = pairs.iter().filter_map(named).collect();
        if let Some(store) = Node::of(&self.server).map(|node| node.store.clone()).filter(|_| !pairs.is_empty()) {
            // Otherwise the next round does it.
            let _ = store.keep_pairs(&pairs, self.idle_millis()).await;
        }
    }

    /// A stream has ended here.
    pub(super) fn leave_pair(&self, pair: &Pair) {
        if let Some(known) = &pair.shared {
            self.pairs.shared.lock().remove(&known.named.key);
        }
    }

    /// Passes a message on to the process that has the stream of its session. `None`: that is this one, or there is none.
    pub(in crate::endpoint::http) async fn passes_to_pair(
        self: &Arc<Self>,
        session: &str,
        sender: &Sender,
        body: &Bytes,
        decoded: &Result<Decoded, DecodeError>,
    ) -> Option<Response<Body>> {
        let (number, node) = (number_of(session)?, self.node()?);
        if number == node.number.get() {
            return None;
        }
        if let Err(refusal) = self.permit(sender, || self.scopes_needed(None, decoded.as_ref().ok())) {
            return Some(refusal.into());
        }
        let patience = self.patience(sender).map(millis);
        let principal = sender.principal.as_ref().map(|principal| principal.to_shared());
        let head = json!({"patience": patience, "principal": principal}).to_string();
        let (key, owner) = (session_key(session), owner_of(sender.principal.as_ref()));
        let pass = async |message: &[u8]| {
            let text = Bytes::from([head.as_bytes(), b"\n", message].concat());
            match node.store.post_to_pair(number, &key, &owner, &text).await {
                Ok(Posted::Sent) => Ok(()),
                Ok(Posted::Nobody) => Err(unknown()),
                Ok(Posted::Full) => {
                    let message = "too many messages wait for the process that has the stream: try again later";
                    Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message))
                }
                Err(_) => Err(away()),
            }
        };
        let passed = match decoded {
            Ok(_) => pass(body).await,
            // Was it meant to answer a question, nothing else will come for that.
            Err(error) => {
                let mut refusal = Refusal::undecodable(error, None);
                for id in error.answers.iter().chain(&error.answers_too).take(MAX_FAILED) {
                    let message = format!("the answer is no message: {}", error.message);
                    let object = ErrorObject { code: code::INVALID_REQUEST, message, data: None };
                    let text = Message::Error { id: Some(id.clone()), error: object }.encode();
                    if let Err(other) = pass(text.get().as_bytes()).await {
                        refusal = other;
                        break;
                    }
                }
                Err(refusal)
            }
        };
        Some(passed.map_or_else(Into::into, |()| reply::empty(StatusCode::ACCEPTED)))
    }

    /// A message for a stream here came in at another process.
    pub(in crate::endpoint::http) fn heard_for_pair(&self, key: &str, text: &Bytes) {
        let pair = self.pairs.shared.lock().get(key).and_then(Weak::upgrade);
        let Some(pair) = pair else { return };
        let is_taken = pair.shared.as_ref().is_some_and(|known| known.passed.try_send(text.clone()).is_ok());
        if !is_taken {
            pair.outlet.end(End::TooSlow);
        }
    }

    /// Takes a message that came in at another process, as if it had come in here.
    fn takes_passed(&self, pair: &Arc<Pair>, text: &Bytes, transport: &Arc<Transport>) {
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return };
        let Ok(head) = serde_json::from_slice::<Value>(&text[..end]) else { return };
        let principal = Principal::from_shared(&head["principal"]).map(Arc::new);
        if principal.is_some() != pair.principal.is_some() {
            return;
        }
        pair.goes_on(head["patience"].as_u64().map(Duration::from_millis));
        // It was read where it came in.
        let Ok(decoded) = jsonrpc::decode(&text.slice(end + 1..), &self.limits) else { return };
        let is_full = pair.peer.is_full() || pair.outlet.len() >= self.max_in_flight;
        let room = self.rooms(pair.holder.clone(), Asked::of(&decoded).count());
        if asks(&decoded) && (is_full || room.is_none() || self.is_ending() || budget::is_spent(pair.holder.owner())) {
            // Its client has no other word of that: it comes back, also elsewhere.
            let end = if self.is_ending() { End::ServerClosed } else { End::TooSlow };
            return pair.outlet.end(end);
        }
        let transport = Arc::new(Transport { principal, room, ..(**transport).clone() });
        let input = match decoded {
            Decoded::One(message) => Input::Received(message),
            Decoded::Batch(parts) => Input::Batch(parts),
        };
        pair.peer.arrived(Arrival { route: Route(0), transport, head: None }, input);
    }
}
