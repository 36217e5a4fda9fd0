//! A simulated store, and the wires to it: answers come late, or never, and so do questions.

#[cfg(unix)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use tokio::sync::{Notify, mpsc, oneshot};

use super::scripts::bus::PUBLISH;
use crate::error::{Error, ErrorKind as Kind};
use crate::simulated::{chance, random, unix};
use crate::store::documents::Boxed;
use crate::store::redis::documents::memory::Memory;
use crate::store::redis::documents::model::{Model, Said};
use crate::store::redis::documents::{entries_of, until_of, words};
use crate::store::{Document, DocumentStore, DocumentWrite, StoreOptions};

thread_local! {
    static STORE: RefCell<Option<Arc<Store>>> = const { RefCell::new(None) };
}

/// The store of the simulation on this thread.
#[derive(Default)]
pub(crate) struct Store {
    model: Mutex<Model>,
    changed: Notify,
    faults: Mutex<Faults>,
    /// Names of changes, with the times at which they were published last.
    published: Mutex<BTreeMap<String, u64>>,
    /// The documents, if it is a program's own.
    documents: Option<Arc<Memory>>,
}

/// Faults on the way to the store.
#[derive(Default)]
struct Faults {
    /// Questions in a hundred that get no answer, or one that comes too late.
    percent: u64,
    /// Questions and answers take their time.
    late: bool,
    /// Nobody reaches it.
    away: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Begins a store for this thread: one of documents, or a Redis.
    pub(crate) fn begin(percent: u64, late: bool, is_own: bool) -> Arc<Self> {
        let store = Arc::new(Self { documents: is_own.then(Arc::default), ..Self::default() });
        *lock(&store.faults) = Faults { percent, late, ..Faults::default() };
        STORE.set(Some(store.clone()));
        store
    }

    pub(crate) fn end() {
        STORE.set(None);
    }

    /// The store, as the process of this name is given it.
    pub(crate) fn options(self: &Arc<Self>, name: &str) -> StoreOptions {
        match &self.documents {
            Some(documents) => StoreOptions::documents(Own { store: self.clone(), documents: documents.clone() }),
            None => StoreOptions::new(format!("simulated://{name}")),
        }
    }

    fn of_thread() -> RedisResult<Arc<Self>> {
        STORE.with(|store| store.borrow().clone()).ok_or_else(gone)
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn heals(&self) {
        *lock(&self.faults) = Faults { late: true, ..Faults::default() };
    }

    /// Nobody reaches it, or everybody does.
    pub(crate) fn goes_away(&self, away: bool) {
        lock(&self.faults).away = away;
    }

    /// The names of all keys, and of those that never end.
    pub(crate) fn keys(&self) -> (Vec<String>, Vec<String>) {
        if let Some(documents) = &self.documents {
            let all = documents.texts();
            let until = |text: &String| until_of(text).unwrap_or(u64::MAX);
            let there = all.iter().filter(|(_, text)| until(text) > millis()).map(|(key, _)| key.clone());
            let endless = all.iter().filter(|(_, text)| until(text) == u64::MAX).map(|(key, _)| key.clone());
            return (there.collect(), endless.collect());
        }
        let mut model = lock(&self.model);
        model.at(millis());
        (model.names(), model.endless())
    }

    /// Takes less than so many milliseconds.
    async fn late(&self, most: u64) {
        if lock(&self.faults).late {
            tokio::time::sleep(Duration::from_millis(random(most))).await;
        }
    }

    fn is_reached(&self) -> bool {
        !lock(&self.faults).away
    }

    /// Shows a command and its answer, if `TRICORN_TRACE` is set; and remembers what it publishes.
    #[expect(clippy::print_stderr, reason = "the trace of one seed")]
    fn trace(&self, command: &[Vec<u8>], said: &Said) {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        if command.get(1).is_some_and(|script| script == PUBLISH.as_bytes())
            && matches!(said, Said::Value(Value::Int(1)))
        {
            let names = command.get(9..).unwrap_or_default().chunks(4).filter_map(|change| change.get(2));
            lock(&self.published).extend(names.map(|name| (text(name), millis())));
        }
        if std::env::var_os("TRICORN_TRACE").is_some() {
            let short = |text: String| text.lines().next().unwrap_or_default().chars().take(90).collect::<String>();
            let words: Vec<_> = command.iter().map(|word| short(text(word))).collect();
            let said = if let Said::Value(value) = said { format!("{value:?}") } else { "waits".to_owned() };
            let at = crate::simulated::now().unwrap_or_default().as_millis();
            eprintln!("{at:>7}   store: {} => {}", words.join(" "), said.chars().take(300).collect::<String>());
        }
    }

    /// The time, in milliseconds since 1970, at which a change of this name was published last.
    pub(crate) fn published(&self, name: &str) -> Option<u64> {
        lock(&self.published).get(name).copied()
    }

    /// Does what a pipeline says. A read that waits holds up what follows.
    async fn answer(&self, commands: &[Vec<Vec<u8>>]) -> Vec<Value> {
        let mut all = Vec::with_capacity(commands.len());
        for command in commands {
            let mut until: Option<u64> = None;
            let value = loop {
                let changed = self.changed.notified();
                let (before, said, after) = {
                    let mut model = lock(&self.model);
                    model.at(millis());
                    let before = model.changes;
                    let said = model.ask(command).expect("a command that the model of the store knows");
                    self.trace(command, &said);
                    (before, said, model.changes)
                };
                if after > before {
                    self.changed.notify_waiters();
                }
                match said {
                    Said::Value(value) => break value,
                    Said::Waits(time) => {
                        let until = *until.get_or_insert_with(|| millis() + time);
                        let left = Duration::from_millis(until.saturating_sub(millis()));
                        if left.is_zero() || tokio::time::timeout(left, changed).await.is_err() {
                            break Value::Nil;
                        }
                    }
                }
            };
            all.push(value);
        }
        all
    }
}

fn millis() -> u64 {
    unix().map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0))
}

fn gone() -> RedisError {
    (ErrorKind::Io, "the simulated wire is cut").into()
}

/// The store as a program's own, whose answers come late, or never.
struct Own {
    store: Arc<Store>,
    documents: Arc<Memory>,
}

fn out_of_reach() -> Error {
    Error::new(Kind::Transport, "the simulated store is out of reach")
}

impl Own {
    /// Asks, with what goes wrong on the way there and back.
    fn asks<T: std::fmt::Debug + Send + 'static>(
        &self,
        what: String,
        ask: impl FnOnce(&Arc<Memory>) -> Boxed<crate::Result<T>> + Send + 'static,
    ) -> Boxed<crate::Result<T>> {
        let (store, documents) = (self.store.clone(), self.documents.clone());
        Box::pin(async move {
            store.late(if random(20) == 0 { 30 } else { 3 }).await;
            if !store.is_reached() {
                tokio::time::sleep(Duration::from_millis(300 + random(3000))).await;
                return Err(out_of_reach());
            }
            let fate = if chance(lock(&store.faults).percent) { random(4) } else { u64::MAX };
            match fate {
                0 => return Err(out_of_reach()),
                1 => tokio::time::sleep(Duration::from_millis(200 + random(3000))).await,
                _ => {}
            }
            let answer = ask(&documents).await;
            store.trace(&[what.into_bytes()], &Said::Value(Value::SimpleString(format!("{answer:?}, {fate}"))));
            match fate {
                // It was done.
                2 => return Err(out_of_reach()),
                3 => std::future::pending().await,
                _ => store.late(3).await,
            }
            answer
        })
    }
}

impl DocumentStore for Own {
    fn get(&self, keys: Vec<String>) -> Boxed<crate::Result<Vec<Option<Document>>>> {
        self.asks(format!("get {keys:?}"), |documents| documents.get(keys))
    }

    fn commit(
        &self,
        expected: Vec<(String, Option<String>)>,
        writes: Vec<DocumentWrite>,
    ) -> Boxed<crate::Result<bool>> {
        let log = writes.iter().find(|write| write.key.contains(":changes:")).and_then(|write| write.document.clone());
        let (commits, store) = (
            self.asks(format!("commit {writes:?}"), move |documents| documents.commit(expected, writes)),
            self.store.clone(),
        );
        Box::pin(async move {
            let is_done = commits.await?;
            // One that is not known to be done is published with the next.
            if let Some(log) = log.filter(|_| is_done) {
                let fields = entries_of(&log.text).into_iter();
                let uris = fields.filter_map(|(at, fields)| Some((fields.get(3).cloned()?, at)));
                lock(&store.published).extend(uris);
            }
            Ok(is_done)
        })
    }

    fn wait(&self, seen: Vec<(String, Option<String>)>, timeout: Duration) -> Option<Boxed<crate::Result<()>>> {
        Some(self.asks(format!("wait {seen:?}"), move |documents| {
            documents.wait(seen, timeout).unwrap_or_else(|| Box::pin(async { Ok(()) }))
        }))
    }

    fn now(&self) -> Option<Boxed<crate::Result<SystemTime>>> {
        None
    }
}

type Question = (Vec<Vec<Vec<u8>>>, oneshot::Sender<Vec<Value>>);

/// A connection of one process. Its questions arrive in their order, also when nobody waits for their answers any more.
#[derive(Clone)]
pub(crate) struct Wire {
    /// Time in which an answer comes.
    patience: Duration,
    questions: mpsc::UnboundedSender<Question>,
}

impl Wire {
    pub(crate) async fn connect(patience: Duration) -> RedisResult<Self> {
        let store = Store::of_thread()?;
        store.late(3).await;
        if !store.is_reached() {
            return Err(gone());
        }
        let (questions, mut asked) = mpsc::unbounded_channel::<Question>();
        tokio::spawn(async move {
            while let Some((commands, answer)) = asked.recv().await {
                // On its way there.
                store.late(if random(20) == 0 { 30 } else { 3 }).await;
                let is_bad = chance(lock(&store.faults).percent);
                if !store.is_reached() {
                    // It waits in a buffer, and may arrive after all.
                    tokio::time::sleep(Duration::from_millis(300 + random(2000))).await;
                    if !store.is_reached() {
                        return;
                    }
                }
                let fate = if is_bad { random(4) } else { u64::MAX };
                match fate {
                    // The wire breaks before it has arrived.
                    0 => return,
                    // It stands still for long.
                    1 => tokio::time::sleep(Duration::from_millis(200 + random(1500))).await,
                    _ => {}
                }
                let values = store.answer(&commands).await;
                match fate {
                    // The wire breaks, and has done it.
                    2 => return,
                    // The answer is lost, and the wire is not known to be broken.
                    3 => std::mem::forget(answer),
                    _ => {
                        let store = store.clone();
                        tokio::spawn(async move {
                            store.late(3).await;
                            let _ = answer.send(values);
                        });
                    }
                }
            }
        });
        Ok(Self { patience, questions })
    }
}

async fn answer_of(patience: Duration, answered: oneshot::Receiver<Vec<Value>>) -> RedisResult<Vec<Value>> {
    tokio::time::timeout(patience, answered).await.map_err(|_| gone())?.map_err(|_| gone())
}

impl redis::aio::ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let (patience, (answer, answered)) = (self.patience, oneshot::channel());
        let sent = self.questions.send((vec![words(command)], answer));
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            answer_of(patience, answered).await?.into_iter().next().ok_or_else(gone)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        _: usize,
        _: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let (patience, (answer, answered)) = (self.patience, oneshot::channel());
        let sent = self.questions.send((pipeline.cmd_iter().map(words).collect(), answer));
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            answer_of(patience, answered).await
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}
