//! A crowd: many processes and many sessions on one store, and what each thing that they do costs it.
//!
//! `TRICORN_NODES` and `TRICORN_SESSIONS` make it larger; with `--nocapture` it shows the table of the guide.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, Weak};

use tokio::task::JoinHandle;

use super::*;
use crate::jsonrpc::RawJson;
use crate::model::{Task, TaskStatus};
use crate::store::redis::nodes::BEAT;
use crate::store::redis::sessions::session_key;
use crate::store::redis::tasks::{Failed, Put, Written, task_name};
use crate::store::{Outcome, SharedTask};

/// Time that a session lives, in milliseconds.
const IDLE: u64 = 1_800_000;
/// Operations of one process that are on their way at once.
const LANES: usize = 2;
/// Entries that are in the log before all have read them: it keeps 1,024.
const WINDOW: usize = 256;
/// Bytes in the store for an idle session, at most.
const SESSION: u64 = 1536;
/// The part of a usual client's `initialize` that is kept.
const PARAMS: &str = concat!(
    r#"{"protocolVersion":"","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"#,
    r#""clientInfo":{"name":"example-client","title":"Example Client","version":"1.0.0"}}"#
);
/// Counts the keys of each kind; and those that hold more than the end of a session, that stay, or that are in another
/// slot than all others.
const LEFT: &str = "local kinds, stay = {}, 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = string.match(key, '}:([a-z-]+)')
  kinds[kind] = (kinds[kind] or 0) + 1
  local left = redis.call('PTTL', key)
  if left < 0 or (kind ~= 'changes' and left > 60000) then stay = stay + 1 end
  if kind == 'session' and redis.call('HLEN', key) > 1 then stay = stay + 1 end
  if string.find(key, 'tricorn:{shop}:', 1, true) ~= 1 then stay = stay + 1 end
end
local out = {}
for kind, count in pairs(kinds) do out[#out + 1] = {kind, count} end
return {stay, out}";

/// Does something again that the store did not answer in time: a machine may be slow.
macro_rules! sure {
    ($member:expr, $ask:expr) => {
        loop {
            match $ask.await {
                Ok(answer) => break answer,
                Err(trouble) => $member.again(&trouble).await,
            }
        }
    };
}

/// A process, with what it does in the background.
struct Member {
    store: Arc<Redis>,
    id: Arc<str>,
    number: Arc<Number>,
    heard: Arc<Heap>,
    retries: Arc<AtomicUsize>,
}

/// News that a process has read.
#[derive(Default)]
struct Heap {
    entries: AtomicUsize,
    messages: AtomicUsize,
    missed: AtomicUsize,
    place: AtomicU64,
    /// Number of times that it has heard of each resource.
    changes: Mutex<BTreeMap<String, usize>>,
}

impl Heap {
    fn take(&self, at: u64, news: Heard) {
        match news {
            Heard::Change(Change::Resource(uri)) => *self.changes.lock().unwrap().entry(uri).or_default() += 1,
            Heard::FromClient { .. } => drop(self.messages.fetch_add(1, SeqCst)),
            Heard::Missed => drop(self.missed.fetch_add(1, SeqCst)),
            _ => {}
        }
        if at > 0 {
            self.place.store(at, SeqCst);
            self.entries.fetch_add(1, SeqCst);
        }
    }
}

impl Member {
    /// Starts a process, and reads its news from now on.
    async fn start(url: &str, at: usize, retries: &Arc<AtomicUsize>) -> (Arc<Self>, JoinHandle<()>) {
        let store = Arc::new(Redis::new(&StoreOptions::new(url), "shop").unwrap());
        // As long as a real one.
        let id: Arc<str> = format!("{at:0>32}").into();
        let member = Self { store, id, number: Arc::default(), heard: Arc::default(), retries: retries.clone() };
        sure!(member, member.store.keep_number(&member.id, &member.number));
        let mut follower = member.store.follow(member.id.clone(), member.number.clone(), Arc::default());
        sure!(member, follower.begin());
        let heard = member.heard.clone();
        let reads = tokio::spawn(async move {
            loop {
                match follower.next().await {
                    Ok(news) => news.into_iter().for_each(|(at, news)| heard.take(at, news)),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        let member = Arc::new(member);
        tokio::spawn(beats(Arc::downgrade(&member)));
        (member, reads)
    }

    async fn again(&self, trouble: &Trouble) {
        let retries = self.retries.fetch_add(1, SeqCst);
        assert!(retries < 10_000 && trouble.ill == Ill::Down, "{trouble:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    async fn edit(&self, session: &str, edit: Edit) {
        let edits = [edit];
        assert!(sure!(self, self.store.edit_session(&self.id, session, &edits, IDLE)) > 0);
    }

    async fn publish(&self, changes: &[(Change, bool)]) {
        let batch = self.store.next_batch();
        sure!(self, self.store.publish(&self.id, batch, changes));
    }

    async fn put(&self, n: usize, status: TaskStatus, version: u64) {
        let id = format!("{n:0>32}");
        let begun = Task::working(&id, "2025-11-25T00:00:00Z");
        let task = Task { status, ttl: Some(IDLE), poll_interval: Some(1000), ..begun };
        let text = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(160));
        let outcome = (status == TaskStatus::Completed).then(|| Outcome::Result(RawJson::written(text)));
        let (name, session) = (of_task(n), of_session(n));
        let task = &SharedTask { task, outcome, questions: None, version };
        let (name, session, node, number) = (&*name, Some(&*session), &*self.id, self.number.get());
        let put = Put { name, session, task, ttl: IDLE, creates: true, node, number };
        assert_eq!(sure!(self, self.store.put_task(&put)), Written::Done);
    }
}

/// Keeps the number of a process while that is there.
async fn beats(member: Weak<Member>) {
    loop {
        tokio::time::sleep(Duration::from_millis(BEAT)).await;
        let Some(member) = member.upgrade() else { return };
        if member.number.get() == 0 {
            return;
        }
        // Otherwise the next one does it.
        let _ = member.store.keep_number(&member.id, &member.number).await;
    }
}

/// The name of a session. Real ones are as long.
fn of_session(n: usize) -> String {
    format!("{n:0>32}")
}

fn of_task(n: usize) -> Arc<str> {
    task_name("principal ada", &n.to_string())
}

fn of_resource(n: usize) -> String {
    format!("shop://orders/{n:0>8}")
}

fn change(n: usize) -> (Change, bool) {
    (Change::Resource(of_resource(n)), true)
}

/// Figures of the store at one time.
struct Figures {
    at: Instant,
    /// Microseconds.
    cpu: u64,
    read: u64,
    written: u64,
    commands: u64,
    /// Microseconds in scripts: no thread but the main one can do that part.
    scripts: u64,
    /// Calls of each command, also those of scripts.
    calls: BTreeMap<String, u64>,
    memory: u64,
}

async fn ask<T: FromRedisValue>(url: &str, pipe: &Pipeline) -> T {
    let address = Address::parse(url).unwrap();
    address.connect(Some(Duration::from_secs(120))).await.unwrap().ask(pipe).await.unwrap()
}

async fn figures(url: &str) -> Figures {
    let mut pipe = Pipeline::new();
    pipe.cmd("INFO").arg("all");
    let (text,): (String,) = ask(url, &pipe).await;
    let fields: BTreeMap<_, _> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let number = |name: &str| fields[name].parse::<u64>().unwrap();
    let seconds = |name: &str| fields[name].parse::<f64>().unwrap();
    let count = |value: &str| value.strip_prefix("calls=")?.split(',').next()?.parse::<u64>().ok();
    let usec = |value: &str| value.split_once("usec=")?.1.split(',').next()?.parse::<u64>().ok();
    let calls = fields.iter().filter_map(|(name, value)| Some((name.strip_prefix("cmdstat_")?.into(), count(value)?)));
    Figures {
        at: Instant::now(),
        cpu: ((seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1e6) as u64,
        read: number("total_net_input_bytes"),
        written: number("total_net_output_bytes"),
        commands: number("total_commands_processed"),
        scripts: fields.get("cmdstat_eval").and_then(|value| usec(value)).unwrap_or(0),
        calls: calls.collect(),
        memory: number("used_memory"),
    }
}

/// Cost of a number of like operations for the store.
struct Cost {
    name: &'static str,
    operations: usize,
    before: Figures,
    after: Figures,
}

impl Cost {
    fn calls(&self, command: &str) -> u64 {
        let of = |figures: &Figures| figures.calls.get(command).copied().unwrap_or(0);
        of(&self.after) - of(&self.before)
    }

    /// Bytes of memory that each has taken.
    fn memory(&self) -> u64 {
        self.after.memory.saturating_sub(self.before.memory) / self.operations as u64
    }

    fn row(&self) -> String {
        let count = self.operations as f64;
        let each = |of: fn(&Figures) -> u64| (of(&self.after) - of(&self.before)) as f64 / count;
        let took = (self.after.at - self.before.at).as_secs_f64();
        format!(
            "{:44} {:9} {:9.0} {:9.1} {:9.1} {:9.0} {:9.0} {:9.1} {:9}",
            self.name,
            self.operations,
            count / took,
            each(|figures| figures.cpu),
            each(|figures| figures.scripts),
            each(|figures| figures.read),
            each(|figures| figures.written),
            each(|figures| figures.commands),
            self.memory(),
        )
    }
}

/// The processes, the sessions, and what was measured.
struct Crowd {
    url: String,
    members: Vec<Arc<Member>>,
    reads: Vec<JoinHandle<()>>,
    retries: Arc<AtomicUsize>,
    /// Operations that are on their way at once.
    lanes: usize,
    /// The version of each session that is known.
    versions: Arc<Vec<AtomicU64>>,
    costs: Vec<Cost>,
}

impl Crowd {
    async fn begin(url: String, login: &str, members: usize, sessions: usize) -> Self {
        let versions = Arc::new((0..sessions).map(|_| AtomicU64::new(0)).collect());
        let (retries, costs, before) = (Arc::default(), Vec::new(), figures(&url).await);
        let mut crowd =
            Self { url, members: Vec::new(), reads: Vec::new(), retries, lanes: LANES * members, versions, costs };
        for at in 0..members {
            let (member, reads) = Member::start(login, at, &crowd.retries).await;
            crowd.members.push(member);
            crowd.reads.push(reads);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        crowd.measured("a process starts", members, before).await;
        crowd
    }

    async fn measured(&mut self, name: &'static str, operations: usize, before: Figures) -> &Cost {
        let after = figures(&self.url).await;
        let cost = Cost { name, operations, before, after };
        eprintln!("{}", cost.row());
        self.costs.push(cost);
        self.costs.last().unwrap()
    }

    /// Lets all processes do these operations, and says what they cost.
    async fn all<F>(&mut self, name: &'static str, count: usize, work: impl Fn(Arc<Member>, usize) -> F) -> &Cost
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let before = figures(&self.url).await;
        self.some(0..count, &work).await;
        self.measured(name, count, before).await
    }

    async fn some<F>(&self, range: Range<usize>, work: &impl Fn(Arc<Member>, usize) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut running = tokio::task::JoinSet::new();
        for n in range {
            if running.len() >= self.lanes {
                running.join_next().await.unwrap().unwrap();
            }
            running.spawn(work(self.members[n % self.members.len()].clone(), n));
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
    }

    /// As `all`, of operations that write an entry each, which all processes read.
    async fn told<F>(&mut self, name: &'static str, count: usize, work: impl Fn(Arc<Member>, usize) -> F) -> &Cost
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let before = figures(&self.url).await;
        for first in (0..count).step_by(WINDOW) {
            let after = count.min(first + WINDOW);
            let known = self.entries();
            self.some(first..after, &work).await;
            self.heard(known + after - first).await;
        }
        self.measured(name, count, before).await
    }

    /// Entries that all have read.
    fn entries(&self) -> usize {
        self.members.iter().map(|member| member.heard.entries.load(SeqCst)).min().unwrap()
    }

    /// Waits until all have read so many.
    async fn heard(&self, entries: usize) {
        let begun = Instant::now();
        while self.entries() < entries {
            assert!(begun.elapsed() < Duration::from_secs(120), "{} of {entries}", self.entries());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Asserts the number of scripts that were run, each in one round trip.
    fn took(&self, round_trips: usize) {
        let (cost, retries) = (self.costs.last().unwrap(), self.retries.load(SeqCst));
        // Signs of life are scripts, too.
        let took = cost.after.at - cost.before.at;
        let beats = self.members.len() * (1 + took.as_millis() as usize / BEAT as usize);
        let calls = usize::try_from(cost.calls("eval")).unwrap();
        assert!(
            (round_trips..=round_trips + retries + beats).contains(&calls),
            "{}: {calls} of {round_trips}",
            cost.name
        );
    }

    /// Asserts that each process has heard of each change once.
    fn heard_once(&self, changes: usize) {
        for member in &self.members {
            let heard = member.heard.changes.lock().unwrap();
            assert!(heard.len() == changes && heard.values().all(|times| *times == 1), "{} of {changes}", heard.len());
            assert_eq!(member.heard.missed.load(SeqCst), 0);
        }
    }
}

async fn sessions(crowd: &mut Crowd, count: usize) {
    let versions = crowd.versions.clone();
    let opened = crowd.all("initialize", count, move |member, n| {
        let versions = versions.clone();
        async move {
            let (revision, params, owner) = ("2025-11-25".into(), PARAMS.into(), of_session(n));
            let shared = SharedSession { revision, params, owner, initialized: true, ..SharedSession::default() };
            let (session, place) = (of_session(n), member.heard.place.load(SeqCst));
            let version = sure!(member, member.store.begin_session(&member.id, &session, &shared, place, IDLE));
            versions[n].store(version, SeqCst);
        }
    });
    let memory = opened.await.memory();
    assert!(memory <= SESSION, "a session takes {memory} bytes");
    crowd.took(count);
    let versions = crowd.versions.clone();
    let asked = crowd.all("request in a session", count, move |member, n| {
        let (n, versions) = ((n + 1) % versions.len(), versions.clone());
        async move {
            let known = versions[n].load(SeqCst);
            assert_eq!(sure!(member, member.store.session(&of_session(n), known, IDLE)), Look::Same);
        }
    });
    asked.await;
    crowd.took(count);
    let few = count.min(20_000);
    let first = crowd.all("first request of a session in a process", few, |member, n| async move {
        let look = sure!(member, member.store.session(&of_session(n), 0, IDLE));
        assert!(matches!(look, Look::Session(shared) if shared.params == PARAMS && shared.initialized));
    });
    first.await;
    crowd.took(few);
    let slices = few.div_ceil(256);
    let kept = crowd.all("256 sessions with streams live on", slices, move |member, n| async move {
        let some: Vec<Arc<str>> = (n * 256..few.min((n + 1) * 256)).map(|n| of_session(n).into()).collect();
        sure!(member, member.store.touch(&some, IDLE));
    });
    assert!(kept.await.calls("pexpire") >= few as u64);
}

async fn messages(crowd: &mut Crowd, count: usize) {
    let numbers: Vec<_> = crowd.members.iter().map(|member| member.number.get()).collect();
    // A process that is not there, or not yet again.
    let absent = (1..).find(|number| !numbers.contains(number)).unwrap();
    let member = &crowd.members[0];
    assert_eq!(sure!(member, member.store.post(absent, "s", &"{}".into())), Posted::Sent);
    let sum = |crowd: &Crowd| crowd.members.iter().map(|member| member.heard.messages.load(SeqCst)).sum::<usize>();
    let before = figures(&crowd.url).await;
    for first in (0..count).step_by(WINDOW) {
        let after = count.min(first + WINDOW);
        let post = |member: Arc<Member>, n: usize| {
            let number = numbers[(n + 1) % numbers.len()];
            async move {
                let text = r#"{"jsonrpc":"2.0","id":123456789,"result":{"action":"accept","content":{"name":"Ann"}}}"#;
                let posted = sure!(member, member.store.post(number, &of_session(n), &text.into()));
                assert_eq!(posted, Posted::Sent);
            }
        };
        crowd.some(first..after, &post).await;
        let begun = Instant::now();
        while sum(crowd) < after {
            assert!(begun.elapsed() < Duration::from_secs(120), "{} of {after}", sum(crowd));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    crowd.measured("answer to another process, and its reading", count, before).await;
    crowd.took(count);
}

async fn tasks(crowd: &mut Crowd, count: usize) {
    let made = crowd.all("task begins", count, |member, n| async move {
        member.put(n, TaskStatus::Working, 1).await;
    });
    made.await;
    crowd.took(count);
    let ended = crowd.all("task ends, with 200 bytes", count, |member, n| async move {
        member.put(n, TaskStatus::Completed, 2).await;
    });
    ended.await;
    crowd.took(count);
    let looked = crowd.all("tasks/get at another process", count, move |member, n| async move {
        let (n, failed) = ((n + 1) % count, Failed { stamp: String::new(), message: "", outcome: String::new() });
        let looked = sure!(member, member.store.look_at_task(&of_task(n), "t", 0, &failed)).unwrap();
        assert_eq!(looked.task.task.status, TaskStatus::Completed);
    });
    looked.await;
    crowd.took(count);
}

/// Changes and news of sessions, which all processes read.
async fn news(crowd: &mut Crowd, alone: usize, batches: usize) {
    let told = crowd.told("session's news, and N readings", WINDOW * batches, |member, n| async move {
        member.edit(&of_session(n), Edit::Set(format!("s:{}", of_resource(n)), String::new())).await;
    });
    told.await;
    crowd.took(WINDOW * batches);
    let before = figures(&crowd.url).await;
    for n in 0..alone {
        let known = crowd.entries();
        crowd.members[n % crowd.members.len()].publish(&[change(n)]).await;
        crowd.heard(known + 1).await;
    }
    crowd.measured("change alone, and N readings", alone, before).await;
    crowd.took(alone);
    let before = figures(&crowd.url).await;
    for batch in 0..batches {
        let (known, first) = (crowd.entries(), alone + batch * AT_ONCE);
        let all: Vec<_> = (first..first + AT_ONCE).map(change).collect();
        crowd.members[batch % crowd.members.len()].publish(&all).await;
        crowd.heard(known + AT_ONCE).await;
    }
    crowd.measured("change of 128 at once, and N readings", batches * AT_ONCE, before).await;
    crowd.took(batches);
    crowd.heard_once(alone + batches * AT_ONCE);
}

/// Operations that write to the log, while nobody reads it.
async fn unread(crowd: &mut Crowd, count: usize) {
    crowd.reads.iter().for_each(JoinHandle::abort);
    for reads in crowd.reads.drain(..) {
        let _ = reads.await;
    }
    let edited = crowd.all("session's news, without the readings", count, |member, n| async move {
        member.edit(&of_session(n), Edit::Remove(format!("s:{}", of_resource(n)))).await;
    });
    edited.await;
    crowd.took(count);
    let published = crowd.all("change alone, without the readings", count, |member, n| async move {
        member.publish(&[change(n)]).await;
    });
    published.await;
    crowd.took(count);
    let (log, newest) = crowd.members[0].store.changes_after(0).await.unwrap();
    let oldest = log[0].0;
    let streams: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let (nothing, all) = ("GET stream begins, nothing missed", "GET stream begins, whole log missed");
    let lanes = crowd.lanes;
    for (name, count, place) in [(nothing, count, newest), (all, count / 10, oldest)] {
        let streams = streams.clone();
        // A process reads a whole log slower than the store tells it.
        crowd.lanes = if place == oldest { 1 } else { lanes };
        let opened = crowd.all(name, count, move |member, n| {
            let streams = streams.clone();
            async move {
                let (session, number) = (of_session(n), member.number.get());
                let (_, _, generation) = sure!(member, member.store.open_stream(&member.id, &session, number, newest));
                streams[n].store(generation, SeqCst);
                sure!(member, member.store.session(&session, 0, IDLE));
                sure!(member, member.store.changes_after(place));
            }
        });
        opened.await;
        crowd.took(2 * count);
    }
    crowd.lanes = lanes;
    let closed = crowd.all("GET stream ends, without the readings", count, move |member, n| {
        let streams = streams.clone();
        async move {
            let generation = streams[n].load(SeqCst);
            sure!(member, member.store.close_stream(&member.id, &of_session(n), generation, Some(newest)));
        }
    });
    closed.await;
    crowd.took(count);
}

async fn ends(crowd: &mut Crowd, count: usize) {
    let ended = crowd.all("session ends, without the readings", count, |member, n| async move {
        sure!(member, member.store.end_session(&member.id, &of_session(n)));
    });
    ended.await;
    crowd.took(count);
    // It is known for a minute.
    let few = count.min(10_000);
    let refused = crowd.all("request of a session that has ended", few, move |member, n| async move {
        assert_eq!(sure!(member, member.store.session(&of_session(count - few + n), 0, IDLE)), Look::Ended);
    });
    refused.await;
    for member in &crowd.members {
        member.store.leave_number(&member.id, &member.number).await;
    }
    let mut pipe = Pipeline::new();
    pipe.cmd("EVAL").arg(LEFT).arg(0);
    let ((stay, kinds),): ((usize, Vec<(String, usize)>),) = ask(&crowd.url, &pipe).await;
    let kinds: BTreeMap<_, _> = kinds.into_iter().collect();
    let others = ["task", "tasks", "waiting"].iter().filter(|kind| kinds.contains_key(**kind)).count();
    assert_eq!((stay, others), (0, 0), "{kinds:?}");
}

/// A store whose processes may do what the guide says that they need, and their URL.
fn restricted() -> (Running, String) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/many-machines.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let rights = guide.lines().find_map(|line| line.strip_prefix("user shop on >… ")).unwrap();
    let options = ["--user", "shop", "on", ">hush"].into_iter().chain(rights.split(' '));
    let running = Running::on_port(&options.collect::<Vec<_>>());
    let login = format!("redis://shop:hush@127.0.0.1:{}", running.port());
    (running, login)
}

fn size(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_crowd_costs_is_counted_and_nothing_of_it_stays() {
    assert_eq!(session_key("x").len(), of_session(1).len());
    let (nodes, count) = (size("TRICORN_NODES", 8), size("TRICORN_SESSIONS", 2000));
    let is_large = count >= 100_000;
    let (running, login) = restricted();
    let mut head = String::new();
    let titles = ["number", "1/s", "µs", "in script", "in", "out", "commands", "memory"];
    write!(head, "{:44}", format!("{nodes} processes, {count} sessions")).unwrap();
    titles.iter().for_each(|title| write!(head, " {title:>9}").unwrap());
    eprintln!("{head}");
    let mut crowd = Crowd::begin(running.url(), &login, nodes, count).await;
    sessions(&mut crowd, count).await;
    messages(&mut crowd, if is_large { 10_000 } else { 256 }).await;
    tasks(&mut crowd, if is_large { 50_000 } else { 200 }).await;
    let beats = nodes * if is_large { 50 } else { 5 };
    let kept = crowd.all("sign of life of a process", beats, |member, _| async move {
        sure!(member, member.store.keep_number(&member.id, &member.number));
    });
    kept.await;
    news(&mut crowd, if is_large { 500 } else { 20 }, if is_large { 16 } else { 2 }).await;
    unread(&mut crowd, if is_large { 2000 } else { 100 }).await;
    ends(&mut crowd, count).await;
}
