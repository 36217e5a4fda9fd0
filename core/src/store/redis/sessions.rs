//! Legacy sessions, which every process of a server can serve: one hash for each, with what its client has told.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use redis::{Cmd, FromRedisValue, Pipeline, Value};
use sha2::{Digest, Sha256};

use super::health::Work;
use super::scripts::sessions::{CLOSE, END, LOOK, OPEN, PASS, TAKE_UP, TELL, TOUCH, UNUSED};
use super::{Redis, Trouble, bus, nodes};

const VERSION: u8 = 1;
/// Messages that wait for a session's stream, at most.
const WAITING: i64 = 64;
/// Attempts to find the process that has a stream.
const ATTEMPTS: usize = 4;
/// Begins the field of a subscription.
const SUBSCRIPTION: &str = "s:";
/// The version of a session that has ended.
const ENDED: &str = "0";
/// Time for which is known that a session has ended, in milliseconds: processes have heard of it by then, also one whose
/// connection has broken unseen, or that stood still for less than its number lives.
const REMEMBERED: u64 = 60_000;

/// Facts of a session that all processes know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SharedSession {
    /// The revision that was negotiated.
    pub(crate) revision: String,
    /// Parameters of `initialize`.
    pub(crate) params: String,
    /// Its owner: see [`owner`].
    pub(crate) owner: String,
    /// The level of log messages that its client has set.
    pub(crate) level: Option<String>,
    pub(crate) initialized: bool,
    pub(crate) subscriptions: BTreeSet<Box<str>>,
    /// Number of the process that sends what belongs to no request.
    pub(crate) holder: Option<u32>,
    /// Grows with every change.
    pub(crate) version: u64,
}

/// Answer about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is not there: it never was, was idle for too long, or was lost with everything.
    Unknown,
    Ended,
    /// It is as it was known.
    Same,
    Session(Box<SharedSession>),
}

/// A change of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    Set(String, String),
    Remove(String),
}

impl SharedSession {
    /// The edits that make another session of this one.
    pub(crate) fn edits(&self, other: &Self) -> Vec<Edit> {
        let (before, after) = (self.fields(), other.fields());
        let set = after.iter().filter(|field| !before.contains(field));
        let mut edits: Vec<_> = set.map(|(name, value)| Edit::Set(name.clone(), value.clone())).collect();
        let is_gone = |name: &String| after.iter().all(|(other, _)| other != name);
        edits.extend(before.into_iter().map(|(name, _)| name).filter(is_gone).map(Edit::Remove));
        edits
    }

    fn fields(&self) -> Vec<(String, String)> {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut all = vec![field("r", &self.revision), field("p", &self.params), field("o", &self.owner)];
        all.extend(self.level.iter().map(|level| field("l", level)));
        if self.initialized {
            all.push(field("i", "1"));
        }
        all.extend(self.subscriptions.iter().map(|uri| (format!("{SUBSCRIPTION}{uri}"), String::new())));
        all
    }

    fn read(fields: Vec<(String, String)>) -> Self {
        let mut session = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "r" => session.revision = value,
                "p" => session.params = value,
                "o" => session.owner = value,
                "l" => session.level = Some(value),
                "i" => session.initialized = true,
                "n" => session.holder = value.parse().ok(),
                "v" => session.version = value.parse().unwrap_or(0),
                name => {
                    if let Some(uri) = name.strip_prefix(SUBSCRIPTION) {
                        session.subscriptions.insert(uri.into());
                    }
                }
            }
        }
        session
    }
}

pub(super) fn hashed(text: &str) -> String {
    use base64::Engine;
    let hash = Sha256::new().chain_update("tricorn session\0").chain_update(text).finalize();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&hash[..24])
}

/// The name of a session in the store. Whoever reads it there cannot use it as a session id.
pub(crate) fn session_key(id: &str) -> String {
    hashed(id)
}

/// The owner of a session as the store has it.
pub(crate) fn owner(principal: Option<(Option<String>, String, bool)>) -> String {
    principal.map_or_else(String::new, |principal| hashed(&serde_json::to_string(&principal).unwrap_or_default()))
}

impl Redis {
    pub(super) fn session_of(&self, session: &str) -> String {
        // Before each request of a session.
        format!("{}:session:{session}:{VERSION}", self.prefix)
    }

    fn waiting_of(&self, session: &str) -> String {
        self.key(&format!("waiting:{session}"), VERSION)
    }

    /// Looks a session up, of which the version `known` is known, and lets it live on for `idle` milliseconds.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn session(self: &Arc<Self>, session: &str, known: u64, idle: u64) -> Result<Look, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let mut look = Cmd::with_capacity(6, LOOK.len() + 192);
        look.arg("EVAL").arg(LOOK).arg(1).arg(self.session_of(session)).arg(idle).arg(known);
        pipe.add_command(look);
        let outcome = match self.ask::<(Value,)>(&pipe).await {
            Ok((Value::Nil,)) => Ok(Look::Unknown),
            Ok((Value::BulkString(version),)) if version == ENDED.as_bytes() => Ok(Look::Ended),
            Ok((Value::BulkString(_),)) => Ok(Look::Same),
            Ok((fields,)) => Vec::<(String, String)>::from_redis_value(fields)
                .map(|fields| Look::Session(Box::new(SharedSession::read(fields))))
                .map_err(|e| Trouble::garbled(format!("a session cannot be read: {e}"))),
            Err(trouble) => Err(trouble),
        };
        self.done(Work::Sessions, outcome)
    }

    /// These sessions are in use: they live on for `idle` milliseconds.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn touch(self: &Arc<Self>, sessions: &[Arc<str>], idle: u64) -> Result<(), Trouble> {
        for some in sessions.chunks(256) {
            let mut pipe = Pipeline::with_capacity(1);
            let touch = pipe.cmd("EVAL").arg(TOUCH).arg(some.len());
            for session in some {
                touch.arg(self.session_of(session));
            }
            touch.arg(idle).ignore();
            let outcome = self.ask::<()>(&pipe).await;
            self.done(Work::Sessions, outcome)?;
        }
        Ok(())
    }

    /// Puts a session into the store, and returns its version, 0 if it has ended.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn begin_session(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        shared: &SharedSession,
        place: u64,
        idle: u64,
    ) -> Result<u64, Trouble> {
        let mut edits = SharedSession::default().edits(shared);
        edits.push(Edit::Set("at".into(), place.to_string()));
        self.edit(node, session, "new", &edits, idle).await
    }

    /// Changes a session, and tells the other processes. Returns its version, 0 if it has ended.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn edit_session(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        edits: &[Edit],
        idle: u64,
    ) -> Result<u64, Trouble> {
        self.edit(node, session, "", edits, idle).await
    }

    async fn edit(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        mode: &str,
        edits: &[Edit],
        idle: u64,
    ) -> Result<u64, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let tell = pipe.cmd("EVAL").arg(TELL).arg(2).arg(self.session_of(session)).arg(self.changes());
        tell.arg(idle).arg(node).arg(session).arg(mode).arg(bus::LENGTH);
        for edit in edits {
            match edit {
                Edit::Set(name, value) => tell.arg("+").arg(name).arg(value),
                Edit::Remove(name) => tell.arg("-").arg(name),
            };
        }
        let outcome = self.ask::<(u64,)>(&pipe).await;
        self.done(Work::Sessions, outcome).map(|(version,)| version)
    }

    /// Ends a session everywhere.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn end_session(self: &Arc<Self>, node: &str, session: &str) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let end = pipe.cmd("EVAL").arg(END).arg(4).arg(self.session_of(session)).arg(self.changes());
        end.arg(self.waiting_of(session)).arg(self.tasks_of(session)).arg(REMEMBERED).arg(node).arg(session);
        let (begins, ends) = self.around_tasks();
        end.arg(bus::LENGTH).arg(begins).arg(ends).ignore();
        let outcome = self.ask(&pipe).await;
        self.done(Work::Sessions, outcome)
    }

    /// The process with this number has the session's standalone stream now, and knows all changes up to `place`. Returns
    /// the place up to which the client knows them, the messages that wait for it, and the number of the stream.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn open_stream(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        number: u32,
        place: u64,
    ) -> Result<(Option<u64>, Vec<Bytes>, u64), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let open = pipe.cmd("EVAL").arg(OPEN).arg(3).arg(self.session_of(session)).arg(self.waiting_of(session));
        open.arg(self.changes()).arg(number).arg(place).arg(node).arg(session).arg(bus::LENGTH);
        let outcome = self.ask::<((String, Vec<Vec<u8>>, u64),)>(&pipe).await;
        let ((at, waiting, generation),) = self.done(Work::Sessions, outcome)?;
        Ok((at.parse().ok(), waiting.into_iter().map(Bytes::from).collect(), generation))
    }

    /// The stream with this number has ended. Nothing changes if there is a newer one. `place`: the client knows all changes up to there, if that is known.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn close_stream(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        generation: u64,
        place: Option<u64>,
    ) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let close = pipe.cmd("EVAL").arg(CLOSE).arg(2).arg(self.session_of(session)).arg(self.changes());
        close.arg(generation).arg(node).arg(session).arg(bus::LENGTH).arg(place).ignore();
        let outcome = self.ask(&pipe).await;
        self.done(Work::Sessions, outcome)
    }

    /// Ends a session that nobody has used for `age` milliseconds, of the `idle` that it lives.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn end_unused(
        self: &Arc<Self>,
        node: &str,
        session: &str,
        age: u64,
        idle: u64,
    ) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(UNUSED).arg(1).arg(self.session_of(session)).arg(age).arg(idle);
        let outcome = self.ask::<(bool,)>(&pipe).await;
        let (is_unused,) = self.done(Work::Sessions, outcome)?;
        if is_unused { self.end_session(node, session).await } else { Ok(()) }
    }

    /// Tells the process that has the session's stream a message for its client. Without one, it goes with `up` to the
    /// process that takes up what has none (`false`: this one), else with `waits` to the next stream. `own`: the number of
    /// this process, which has none.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn to_client(
        self: &Arc<Self>,
        session: &str,
        text: &Bytes,
        own: u32,
        idle: u64,
        (waits, up): (bool, bool),
    ) -> Result<bool, Trouble> {
        for _ in 0..ATTEMPTS {
            let mut pipe = Pipeline::with_capacity(1);
            pipe.cmd("HMGET").arg(self.session_of(session)).arg("n").arg("u");
            let ((holder, takes_up),): ((Option<u32>, Option<u32>),) = self.ask(&pipe).await?;
            let holder = holder.filter(|holder| *holder != own);
            let holder = holder.or_else(|| takes_up.filter(|_| up)).unwrap_or(0);
            let mut pipe = Pipeline::with_capacity(1);
            let pass = pipe.cmd("EVAL").arg(PASS).arg(4).arg(self.session_of(session)).arg(self.waiting_of(session));
            pass.arg(self.node(holder)).arg(self.inbox(holder)).arg(holder).arg(own).arg(nodes::room(text));
            pass.arg(nodes::INBOX_LIVES).arg(session).arg(&text[..]).arg(idle).arg(-WAITING);
            pass.arg(u8::from(waits)).arg(u8::from(up));
            let outcome = self.ask::<(u8,)>(&pipe).await;
            match self.done(Work::Sessions, outcome)? {
                (0,) => {}
                (1,) => return Ok(true),
                (3,) => return Ok(false),
                _ => return Err(Trouble::garbled("the inbox of a process is full")),
            }
        }
        Err(Trouble::garbled("a session's stream changes its place all the time"))
    }

    /// This process takes up what finds no stream from now on. Returns what waits.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn take_up(self: &Arc<Self>, session: &str, own: u32) -> Result<Vec<Bytes>, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let take = pipe.cmd("EVAL").arg(TAKE_UP).arg(2).arg(self.session_of(session)).arg(self.waiting_of(session));
        take.arg(own);
        let outcome = self.ask::<(Vec<Vec<u8>>,)>(&pipe).await;
        let (waiting,) = self.done(Work::Sessions, outcome)?;
        Ok(waiting.into_iter().map(Bytes::from).collect())
    }

    /// Tells all processes a message of the session's client.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn to_all(self: &Arc<Self>, node: &str, session: &str, text: &Bytes) -> Result<(), Trouble> {
        let key = self.changes();
        let mut pipe = Pipeline::with_capacity(2);
        let add = pipe.cmd("XADD").arg(&key).arg("MAXLEN").arg("~").arg(bus::LENGTH).arg("*");
        add.arg("n").arg(node).arg("session").arg(session).arg("from").arg(&text[..]).ignore();
        pipe.cmd("PEXPIRE").arg(&key).arg(bus::LIVES).ignore();
        let outcome = self.ask(&pipe).await;
        self.done(Work::Sessions, outcome)
    }

    fn changes(&self) -> String {
        self.key("changes", bus::VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SharedSession {
        SharedSession { revision: "2025-06-18".into(), params: "{}".into(), ..SharedSession::default() }
    }

    #[test]
    fn edits_are_the_difference() {
        let mut told = SharedSession { level: Some("error".into()), initialized: true, ..session() };
        told.subscriptions.insert("a:/1".into());
        let set = |name: &str, value: &str| Edit::Set(name.into(), value.into());
        assert_eq!(session().edits(&told), [set("l", "error"), set("i", "1"), set("s:a:/1", "")]);
        let other = SharedSession { subscriptions: ["a:/2".into()].into(), ..told.clone() };
        assert_eq!(told.edits(&other), [set("s:a:/2", ""), Edit::Remove("s:a:/1".into())]);
        assert_eq!(SharedSession::read(told.fields()), told);
    }

    #[test]
    fn the_store_shows_neither_ids_nor_owners() {
        let ada = owner(Some((Some("https://a.example.com".into()), "ada".into(), false)));
        assert!(!ada.contains("ada") && ada.len() == 32);
        assert_ne!(ada, owner(Some((None, "ada".into(), false))));
        assert_eq!(owner(None), "");
        assert_ne!(session_key("a"), session_key("b"));
    }
}
