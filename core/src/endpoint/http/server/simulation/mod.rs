//! Several processes that are one server, their store and their clients, all simulated from a seed: what a seed shows once
//! it shows always. Everything of this crate from the HTTP exchange to the commands of the store is the real code; sockets,
//! the store, time and randomness are not.
//!
//! `TRICORN_SEEDS` is the number of seeds, `TRICORN_SEED` the one that is shown with its trace; with `TRICORN_TRACE`, also
//! with all questions to the store.

mod client;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::endpoint::Endpoint;
use super::options::HttpOptions;
use super::sessions::Session;
use crate::model::Principal;
use crate::prelude::*;
use crate::server::Auth;
use crate::simulated::{Machine, Process, chance, now, random};
use crate::store::redis::sessions::session_key;
use crate::store::redis::simulated::Store;

/// Resources that clients subscribe to.
const RESOURCES: usize = 4;
/// Time for which a question waits for its answer.
const PATIENCE: Duration = Duration::from_secs(40);
/// Time after which a call has come to its end, whatever goes wrong.
const END: Duration = Duration::from_secs(200);

/// Kinds of faults of a seed, each one more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Faults {
    /// Messages are late.
    Late,
    /// Clients lose streams, and come back.
    Streams,
    /// Some questions to the store, or their answers, are lost or late by seconds; it may be away for a while.
    Store,
    /// Processes stand still, for short or for longer than others wait for them, and are killed.
    Processes,
}

impl Faults {
    fn of(seed: u64) -> Self {
        [Self::Late, Self::Streams, Self::Store, Self::Processes, Self::Processes]
            [usize::try_from(seed % 5).unwrap_or(0)]
    }
}

/// A process of the server.
struct Host {
    process: Arc<Process>,
    server: Server,
    endpoint: Endpoint,
}

/// Everything of one seed.
struct World {
    faults: Faults,
    store: Arc<Store>,
    hosts: Mutex<Vec<Arc<Host>>>,
    /// Calls that have run, and how often.
    runs: Mutex<BTreeMap<String, usize>>,
    /// Answers that handlers got, and did not ask for.
    wrong: Mutex<Vec<String>>,
    trace: Mutex<Vec<String>>,
    violations: Mutex<Vec<String>>,
    /// Nothing goes wrong any more.
    is_calm: AtomicBool,
    /// A process was killed, stood still, or the store was away: calls may have been lost with it.
    harmed: AtomicBool,
    /// Copies of sessions, none of which is to stay.
    copies: Mutex<Vec<(String, Weak<Session>)>>,
    /// The ids of sessions that clients know.
    begun: Mutex<Vec<String>>,
    last: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(most: u64) -> Duration {
    Duration::from_millis(random(most))
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// Names the call.
    nonce: String,
    /// Questions to ask.
    questions: usize,
    /// Milliseconds between two steps.
    pause: u64,
    /// Lets the client come back for the rest.
    closes: bool,
}

/// Steps of a call, each with progress; with a question at every second.
fn progress_of(questions: usize) -> usize {
    2 * questions + 2
}

impl World {
    fn note(&self, text: impl Into<String>) {
        let at = now().unwrap_or_default().as_millis();
        lock(&self.trace).push(format!("{at:>7} {}", text.into()));
    }

    fn violated(&self, text: impl Into<String>) {
        let text = text.into();
        self.note(format!("VIOLATED: {text}"));
        lock(&self.violations).push(text);
    }

    /// Starts a process.
    fn start(self: &Arc<Self>) -> Arc<Host> {
        let name = format!("p{}", self.last.fetch_add(1, Ordering::Relaxed));
        self.note(format!("{name} starts"));
        let process = Process::new(&name);
        let (server, endpoint) = process.enter(|| {
            let server = self.server(&name);
            let options = HttpOptions { session_idle_timeout: 600.0, ..HttpOptions::default() };
            let endpoint = server.endpoint(options).expect("an endpoint");
            (server, endpoint)
        });
        let host = Arc::new(Host { process, server, endpoint });
        lock(&self.hosts).push(host.clone());
        host
    }

    fn server(self: &Arc<Self>, name: &str) -> Server {
        let auth = Auth::verifier(|token| async move { Ok(Principal::new(token)) })
            .resource("https://mcp.example.com/mcp")
            .authorization_servers(["https://login.example.com"]);
        let (world, of) = (Arc::downgrade(self), name.to_owned());
        let work = move |work: Work, cx: Context| {
            let (world, of) = (world.clone(), of.clone());
            async move { run(world, of, work, cx).await }
        };
        let tool = |name: &str| Tool::new(name, "").task_support(TaskSupport::Optional);
        let mut server = Server::new("s")
            .auth(auth)
            .tasks(TaskOptions::default())
            .store(self.store.options(name))
            .tool_with(tool("work"), work);
        for n in 0..RESOURCES {
            server = server.resource(Resource::new(format!("a://{n}"), n.to_string()), || async { Ok("1") });
        }
        server
    }

    /// A process that has not been killed: clients do not know which stand still.
    fn balanced(&self) -> Option<Arc<Host>> {
        let hosts: Vec<_> = lock(&self.hosts).iter().filter(|host| !host.process.is_gone()).cloned().collect();
        hosts.get(usize::try_from(random(hosts.len() as u64)).unwrap_or(0)).cloned()
    }

    fn living(&self) -> Vec<Arc<Host>> {
        lock(&self.hosts).iter().filter(|host| !host.process.is_gone()).cloned().collect()
    }

    /// Remembers the copies of a session that processes have.
    fn remember(&self, id: &str) {
        for host in self.living() {
            if let Some(session) = host.endpoint.inner.sessions.peek(id) {
                lock(&self.copies).push((host.process.name.clone(), Arc::downgrade(&session)));
            }
        }
    }

    /// Processes stand still and are killed, and the store goes away.
    async fn harm(self: Arc<Self>) {
        for _ in 0..1 + random(3) {
            sleep(millis(6000)).await;
            if self.is_calm.load(Ordering::Relaxed) {
                return;
            }
            if self.faults == Faults::Store || chance(20) {
                let time = millis(if chance(80) { 1500 } else { 9000 });
                self.note(format!("the store is away for {} ms", time.as_millis()));
                self.harmed.store(true, Ordering::Relaxed);
                self.store.goes_away(true);
                sleep(time).await;
                self.store.goes_away(false);
                continue;
            }
            let Some(host) = self.balanced() else { return };
            let name = &host.process.name;
            self.harmed.store(true, Ordering::Relaxed);
            match random(3) {
                0 => {
                    self.note(format!("{name} is killed"));
                    host.process.kill();
                    if self.living().len() < 2 || chance(50) {
                        self.start();
                    }
                }
                long => {
                    let time = if long == 1 { millis(4000) } else { Duration::from_secs(31) + millis(15_000) };
                    self.note(format!("{name} stands still for {} ms", time.as_millis()));
                    host.process.stop();
                    let (world, host) = (self.clone(), host.clone());
                    tokio::spawn(async move {
                        sleep(time).await;
                        world.note(format!("{} goes on", host.process.name));
                        host.process.go_on();
                    });
                }
            }
        }
    }

    /// Nothing goes wrong from now on.
    async fn calms(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
        self.store.heals();
        while self.living().iter().any(|host| host.process.stands()) {
            sleep(Duration::from_millis(500)).await;
        }
        self.note("calm");
    }

    /// Something changes at one process, which is returned.
    fn touch(&self, uri: &str) -> Option<Arc<Host>> {
        let hosts: Vec<_> = self.living().into_iter().filter(|host| !host.process.stands()).collect();
        let host = hosts.get(usize::try_from(random(hosts.len() as u64)).unwrap_or(0))?;
        // One that is not among the others yet tells nobody but its own.
        if crate::driver::Node::of(&host.server).is_none_or(|node| node.number.get() == 0) {
            return None;
        }
        self.note(format!("{uri} changes at {}", host.process.name));
        host.process.enter(|| host.server.resource_updated(uri));
        Some(host.clone())
    }

    /// Nothing is left of what was there.
    async fn check_the_end(&self) {
        sleep(Duration::from_secs(130)).await;
        for (nonce, runs) in &*lock(&self.runs) {
            if *runs != 1 {
                self.violated(format!("{nonce} ran {runs} times"));
            }
        }
        for wrong in &*lock(&self.wrong) {
            self.violated(format!("an answer that belongs to another question: {wrong}"));
        }
        for host in self.living() {
            let inner = &host.endpoint.inner;
            let left = [
                ("sessions", inner.sessions.len()),
                ("requests", inner.sessions.in_flight()),
                ("streams", inner.streams.len()),
                ("streams for other processes", inner.writers.load(Ordering::Relaxed)),
            ];
            for (what, count) in left.iter().filter(|(_, count)| *count > 0) {
                self.violated(format!("{} has {count} {what} when all is over", host.process.name));
            }
            if let Some(tasks) = host.server.shared.router.tasks() {
                let left = tasks.left();
                if left != [0; 5] {
                    self.violated(format!(
                        "{} has tasks, running ones, names, news or waiters: {left:?}",
                        host.process.name
                    ));
                }
            }
        }
        let gone: BTreeSet<_> = lock(&self.hosts)
            .iter()
            .filter(|host| host.process.is_gone())
            .map(|host| host.process.name.clone())
            .collect();
        for (host, copy) in &*lock(&self.copies) {
            if !gone.contains(host) && copy.strong_count() > 0 {
                self.violated(format!("{host} keeps a session that is over, {} times", copy.strong_count()));
            }
        }
        let (all, endless) = self.store.keys();
        let kinds = [":session:", ":waiting:", ":tasks:", ":task:"];
        // One that could not begin is there for as long as it may be idle: its client does not know it.
        let begun: Vec<_> = lock(&self.begun).iter().map(|id| session_key(id)).collect();
        let is_known = |key: &String| key.contains(":task:") || begun.iter().any(|session| key.contains(session));
        for key in all.iter().filter(|key| kinds.iter().any(|kind| key.contains(kind)) && is_known(key)) {
            self.violated(format!("the store keeps {key}"));
        }
        for key in endless {
            self.violated(format!("the store keeps {key} for ever"));
        }
    }
}

/// A tool that asks its client, and tells how far it is.
async fn run(world: Weak<World>, host: String, work: Work, cx: Context) -> Result<String, HandlerError> {
    let world = world.upgrade().ok_or_else(|| HandlerError::new("over"))?;
    let nonce = &work.nonce;
    *lock(&world.runs).entry(nonce.clone()).or_default() += 1;
    world.note(format!("{nonce} runs at {host}"));
    let mut step = 0_u32;
    let mut tell = || {
        step += 1;
        cx.progress(f64::from(step), None, None);
    };
    let form = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    tell();
    for n in 0..work.questions {
        sleep(Duration::from_millis(work.pause)).await;
        tell();
        if work.closes {
            cx.close_stream();
        }
        let question = format!("{nonce}/{n}");
        world.note(format!("{question} is asked"));
        let options = CallOptions::default().timeout(PATIENCE);
        let answer = cx.elicit_with(&question, &form, &options).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                world.note(format!("{question} fails: {error}"));
                return Err(error.into());
            }
        };
        if answer.content.get("a") != Some(&json!(question)) {
            lock(&world.wrong).push(format!("{question}: {:?}", answer.content));
        }
        tell();
    }
    sleep(Duration::from_millis(work.pause)).await;
    tell();
    world.note(format!("{nonce} is done"));
    Ok(format!("{nonce} done"))
}

/// A response that is on its way.
struct Response {
    head: Parts,
    frames: mpsc::UnboundedReceiver<Bytes>,
    host: Arc<Host>,
    /// Dropped, the process learns that its client has gone.
    _there: oneshot::Sender<()>,
}

/// The connection broke before anything was known of the answer.
#[derive(Debug)]
struct Broken;

impl World {
    /// Sends a request to a process. `patience`: for the head of the response.
    async fn send(
        self: &Arc<Self>,
        host: Arc<Host>,
        request: http::Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Response, Broken> {
        sleep(millis(4)).await;
        let (heads, head) = oneshot::channel();
        let (sender, frames) = mpsc::unbounded_channel();
        let (there, mut gone) = oneshot::channel::<()>();
        let endpoint = host.endpoint.clone();
        let serving = async move {
            let response = tokio::select! {
                biased;
                _ = &mut gone => return,
                response = endpoint.handle(request) => response,
            };
            let (head, mut body) = response.into_parts();
            if heads.send(head).is_err() {
                return;
            }
            loop {
                let frame = tokio::select! {
                    biased;
                    _ = &mut gone => return,
                    frame = body.frame() => frame,
                };
                let Some(Ok(frame)) = frame else { return };
                if frame.into_data().is_ok_and(|data| sender.send(data).is_err()) {
                    return;
                }
            }
        };
        tokio::spawn(host.process.run(serving));
        let killed = host.process.killed.notified();
        if host.process.is_gone() {
            return Err(Broken);
        }
        let head = tokio::select! {
            biased;
            head = timeout(patience, head) => head.ok().and_then(Result::ok),
            () = killed => None,
        };
        sleep(millis(4)).await;
        Ok(Response { head: head.ok_or(Broken)?, frames, host, _there: there })
    }
}

impl Response {
    fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    fn header(&self, name: &str) -> &str {
        self.head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The next part of the body. `None`: its end, or the process's.
    async fn next(&mut self) -> Option<Bytes> {
        let killed = self.host.process.killed.notified();
        if self.host.process.is_gone() {
            return None;
        }
        tokio::select! {
            biased;
            frame = self.frames.recv() => frame,
            () = killed => None,
        }
    }

    async fn text(mut self) -> String {
        let mut text = Vec::new();
        while let Some(part) = self.next().await {
            text.extend_from_slice(&part);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Runs a seed, with a Redis or a program's own store. Gives its trace, and what was violated.
fn simulate(seed: u64, is_own: bool) -> (Vec<String>, Vec<String>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let world = runtime.block_on(async {
        let _machine = Machine::begin(seed);
        let faults = Faults::of(seed);
        let percent = if faults >= Faults::Store { random(4) } else { 0 };
        let world = Arc::new(World {
            faults,
            store: Store::begin(percent, true, is_own),
            hosts: Mutex::default(),
            runs: Mutex::default(),
            wrong: Mutex::default(),
            trace: Mutex::default(),
            violations: Mutex::default(),
            is_calm: AtomicBool::new(false),
            harmed: AtomicBool::new(false),
            copies: Mutex::default(),
            begun: Mutex::default(),
            last: AtomicUsize::new(0),
        });
        if percent > 0 {
            world.harmed.store(true, Ordering::Relaxed);
        }
        world.note(format!("seed {seed}: {faults:?}, {percent} of 100 questions to the store fail"));
        for _ in 0..2 + random(2) {
            world.start();
        }
        if timeout(Duration::from_secs(1500), client::all(&world)).await.is_err() {
            world.violated("the clients do not come to their end");
        }
        world.check_the_end().await;
        for host in &*lock(&world.hosts) {
            host.process.kill();
        }
        Store::end();
        world
    });
    drop(runtime);
    let trace = std::mem::take(&mut *lock(&world.trace));
    let violations = std::mem::take(&mut *lock(&world.violations));
    (trace, violations)
}
