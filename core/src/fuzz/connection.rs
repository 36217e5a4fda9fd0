//! Whole connections, as cassettes: what comes from the peer, a frame on each line, and what this side does meanwhile,
//! on lines that begin with `!`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{SLOWEST, Target, alone, mutate, run, shown};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{self, Decoded, Id, Limits, Message, RawJson};
use crate::model::{CacheHints, Capabilities, SubscriptionFilter};
use crate::protocol::revision::Revision;
use crate::protocol::{
    self, Action, Announcement, Call, CallId, Connection, Counted, Facts, Input, Invocation, KeepAlive, Kind, Listen,
    Outbound, Payload, Role, Sent, Structured, Transport,
};

const MAX_IN_FLIGHT: usize = 4;
const MAX_LISTENERS: usize = 3;
/// The most lines of one cassette that are played.
const MAX_LINES: usize = 400;

const LINES: &[&str] = &[
    concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
        r#""capabilities":{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}},"#,
        r#""clientInfo":{"name":"c","version":"1"}}}"#,
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","#,
        r#""capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    ),
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#,
    concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","#,
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","#,
        r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true,"#,
        r#""resourceSubscriptions":["a:/b"]}}}"#,
    ),
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:/b"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#,
    concat!(
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","#,
        r#""params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{}}}"#,
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
        r#""capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}}}}"#,
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"#,
        r#""logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}"#,
    ),
    r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":5}"#,
    concat!(
        r#"[{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":6,"#,
        r#""method":"ping"}]"#,
    ),
    "[]",
    "{",
    "!answer text",
    "!answer error",
    r#"!answer {"tools":[]}"#,
    "!again 1",
    "!progress 1",
    "!tick 10",
    "!tick 1000",
    "!tick 61000",
    "!changed tool",
    "!updated a:/b",
    "!congested",
    r#"!notify {"level":"info","data":1}"#,
    "!tell {}",
    r#"!task {"taskId":"x"}"#,
    "!announce {}",
    "!visited v",
    "!ending",
    r#"!call tools/call {"name":"t"}"#,
    "!call tools/list",
    r#"!call resources/subscribe {"uri":"a:/b"}"#,
    r#"!call logging/setLevel {"level":"info"}"#,
    r#"!call subscriptions/listen {"notifications":{}}"#,
    "!call roots/list",
    r#"!call elicitation/create {"mode":"url","elicitationId":"v","url":"https://h/","message":"m"}"#,
    r#"!call sampling/createMessage {"messages":[],"maxTokens":1}"#,
    "!cancel 1",
    "!undelivered 2",
    "!session-lost 2",
    "!expired",
    "!lost",
    "!unheard",
    "!authorizing",
    "!authorized",
    "!unreadable x",
    "!closed",
];

#[test]
fn connections() {
    run(&Target { name: "connections", property: played, mutate: mutate::lines, words: LINES, slowest: SLOWEST });
}

/// A cassette is played to a server and to a client. No request is answered more often than it came, no call of ours
/// resolves twice or never, nothing goes on after the end, and what is kept stays within its limits.
fn played(input: &[u8]) -> u64 {
    alone(|| {
        let mut hasher = DefaultHasher::new();
        for role in [Role::Server, Role::Client] {
            let mut drive = Drive::new(role, input);
            for line in input.split(|byte| *byte == b'\n').take(MAX_LINES) {
                drive.line(line);
                drive.check();
            }
            drive.end().hash(&mut hasher);
        }
        hasher.finish()
    })
}

fn facts(role: Role) -> Facts {
    let capabilities = match role {
        Role::Server => {
            r#"{"tools":{"listChanged":true},"prompts":{},"logging":{},"completions":{},
            "resources":{"subscribe":true,"listChanged":true},
            "tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},
            "extensions":{"io.modelcontextprotocol/tasks":{},"example.com/x":{}}}"#
        }
        Role::Client => {
            r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},
            "extensions":{"io.modelcontextprotocol/tasks":{},"example.com/x":{}}}"#
        }
    };
    Facts {
        role,
        info: RawJson::trusted(r#"{"name":"n","version":"1"}"#),
        capabilities: Capabilities::new(RawJson::parse(capabilities).expect("capabilities")),
        instructions: Some("Be kind.".into()),
        discovery: CacheHints::new(),
        revisions: Revision::ALL.to_vec(),
        methods: Vec::new(),
        passes_on: false,
        max_in_flight: MAX_IN_FLIGHT,
        max_listeners: MAX_LISTENERS,
        max_queued_notifications: 4,
        keep_alive: Some(KeepAlive { interval: Duration::from_secs(30), timeout: Duration::from_secs(20) }),
    }
}

/// A call of ours.
#[derive(Debug, Default)]
struct Own {
    resolved: usize,
    cancelled: bool,
}

/// A connection and what has happened to it.
struct Drive {
    connection: Connection,
    role: Role,
    now: Duration,
    /// Number of requests that came with this id.
    asked: HashMap<Id, usize>,
    /// Number of answers with this id.
    answered: HashMap<Id, usize>,
    /// All requests that were to be run.
    dispatched: HashSet<CallId>,
    /// Those that are running, the oldest first.
    running: Vec<Call>,
    /// Those that have become streams.
    listening: HashSet<CallId>,
    gauge: Arc<AtomicUsize>,
    own: BTreeMap<u64, Own>,
    /// Number of subscriptions that we have asked for: a new session is told so many things at most.
    subscribed: usize,
    closed: bool,
    /// A summary of the events.
    told: BTreeSet<String>,
}

impl Drive {
    fn new(role: Role, cassette: &[u8]) -> Self {
        let connection = Connection::new(Arc::new(facts(role)), Arc::new(Transport::new("stdio")));
        let mut drive = Self {
            connection,
            role,
            now: Duration::from_secs(1),
            asked: HashMap::new(),
            answered: HashMap::new(),
            dispatched: HashSet::new(),
            running: Vec::new(),
            listening: HashSet::new(),
            gauge: Arc::default(),
            own: BTreeMap::new(),
            subscribed: 0,
            closed: false,
            told: BTreeSet::new(),
        };
        if role == Role::Client {
            // The first line may say which revision alone will do.
            let first = cassette.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let pinned = String::from_utf8_lossy(first).strip_prefix("!pin ").and_then(Revision::parse);
            let (probe, timeout) = (Duration::from_secs(5), Some(Duration::from_secs(60)));
            let actions = drive.connection.open(drive.now, pinned, probe, timeout, None);
            drive.act(actions);
        }
        drive
    }

    fn line(&mut self, line: &[u8]) {
        match line.strip_prefix(b"!") {
            Some(order) => self.order(&String::from_utf8_lossy(order)),
            None => self.frame(line),
        }
    }

    /// The peer sends a frame.
    fn frame(&mut self, line: &[u8]) {
        let frame = Bytes::copy_from_slice(line);
        let mut limits = Limits::default();
        if line.trim_ascii_start().first() == Some(&b'[') && !self.connection.takes_batches() {
            limits.max_batch = 0;
        }
        let (input, head) = match protocol::decode(&frame, &limits) {
            Ok((Decoded::One(message), head)) => {
                self.came(Some(&message), None);
                (Input::Received(message), head)
            }
            Ok((Decoded::Batch(parts), _)) => {
                for part in &parts {
                    self.came(part.as_ref().ok(), part.as_ref().err().and_then(|error| error.id.as_ref()));
                }
                (Input::Batch(parts), None)
            }
            Err(error) => {
                self.came(None, error.id.as_ref());
                (Input::Invalid(error), None)
            }
        };
        self.connection.set_congested(false);
        let actions = self.connection.read(self.now, head, input);
        self.act(actions);
    }

    /// A message came, or what has this id and is none.
    fn came(&mut self, message: Option<&Message>, id: Option<&Id>) {
        let asked = match message {
            Some(Message::Request { id, .. }) => Some(id),
            _ => id,
        };
        if let Some(id) = asked {
            *self.asked.entry(id.clone()).or_default() += 1;
        }
    }

    /// This side does something.
    fn order(&mut self, text: &str) {
        let (order, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        let number = rest.trim_end_matches('!').parse::<u64>().unwrap_or(1);
        let params =
            || RawJson::parse(rest.to_owned()).ok().filter(RawJson::is_object).unwrap_or_else(RawJson::empty_object);
        let first = self.running.first().map(|call| call.id);
        let input = match (order, self.role) {
            ("answer", _) => {
                if self.running.is_empty() {
                    return;
                }
                let call = self.running.remove(0);
                Input::Completed(call.id, outcome(&call, rest))
            }
            ("again", _) => {
                let call = CallId::new(number);
                self.running.retain(|running| running.id != call);
                Input::Completed(call, Ok(Payload::Object(RawJson::empty_object())))
            }
            ("progress", _) => {
                let Some(call) = first else { return };
                let progress = rest.parse().unwrap_or(1.0);
                Input::Progress { call, progress, total: Some(2.0), message: Some("m".to_owned()) }
            }
            ("tick", _) => {
                self.now += Duration::from_millis(number.min(3_600_000));
                return self.tick();
            }
            ("notify", _) => Input::Notify { method: "notifications/message", params: params(), related: first },
            ("tell", _) => {
                let Some(call) = first else { return };
                Input::Tell { call, method: "notifications/message", params: params() }
            }
            ("call", _) => match self.invocation(rest) {
                Some(invocation) => Input::Call(invocation),
                None => return,
            },
            ("cancel", _) => {
                let Some(own) = self.own.get_mut(&number) else { return };
                own.cancelled = true;
                Input::Cancel(CallId::new(number), Some("enough".to_owned()))
            }
            ("closed", _) => Input::Closed("the end".to_owned()),
            ("congested", Role::Server) => return self.connection.set_congested(true),
            ("changed", Role::Server) => {
                Input::Changed(Kind::ALL.into_iter().find(|kind| kind.as_str() == rest).unwrap_or(Kind::Tool))
            }
            ("updated", Role::Server) => Input::Updated(rest.to_owned()),
            ("task", Role::Server) => Input::Task { id: "x".into(), version: number, params: params() },
            ("announce", Role::Server) => Input::Announce(Box::new(Announcement {
                extension: "example.com/x".into(),
                member: "x".into(),
                method: "notifications/x".into(),
                key: Some("k".into()),
                params: params(),
            })),
            ("visited", Role::Server) => Input::Visited(rest.to_owned()),
            ("ending", Role::Server) => Input::Ending,
            ("undelivered", Role::Client) => {
                let number = i64::try_from(number).unwrap_or(1);
                Input::Undelivered(Id::from(number), Error::new(ErrorKind::Transport, "it broke off").answer_lost())
            }
            ("session-lost", Role::Client) if self.connection.revision().is_some() => {
                let id = Id::from(i64::try_from(number).unwrap_or(1));
                Input::SessionLost { id, taken: rest.ends_with('!') }
            }
            ("expired", Role::Client) => Input::SessionExpired,
            ("lost", Role::Client) => Input::Lost("the process has ended".to_owned()),
            ("unheard", Role::Client) => Input::Unheard("the process has ended".to_owned()),
            ("authorizing", Role::Client) => Input::Authorizing(true),
            ("authorized", Role::Client) => Input::Authorizing(false),
            ("unreadable", Role::Client) => Input::Unreadable(rest.to_owned()),
            _ => return,
        };
        self.handle(input);
    }

    fn handle(&mut self, input: Input) {
        let actions = self.connection.handle(self.now, input);
        self.act(actions);
    }

    fn invocation(&mut self, text: &str) -> Option<Invocation> {
        let (method, params) = text.split_once(' ').unwrap_or((text, ""));
        if method.is_empty() {
            return None;
        }
        let number = self.own.len() as u64 + 1;
        self.own.insert(number, Own::default());
        self.subscribed += usize::from(method == "resources/subscribe");
        let params = RawJson::parse(params.to_owned()).ok().filter(RawJson::is_object);
        let mut invocation = Invocation::new(CallId::new(number), method, params);
        invocation.timeout = Some(Duration::from_secs(60));
        invocation.max_timeout = Some(Duration::from_secs(600));
        invocation.progress = method.starts_with("tools/");
        invocation.lasting = method == "tools/call";
        invocation.listens = method == "subscriptions/listen";
        Some(invocation)
    }

    /// Time has passed. Nothing is due for ever.
    fn tick(&mut self) {
        for _ in 0..8 {
            self.handle(Input::Tick);
            if self.connection.next_tick().is_none_or(|due| due > self.now) {
                return;
            }
        }
        panic!("at {:?} there is still something due at {:?}", self.now, self.connection.next_tick());
    }

    fn act(&mut self, actions: Vec<Action>) {
        let mut left = VecDeque::from(actions);
        while let Some(action) = left.pop_front() {
            match action {
                Action::Send(outbound) => self.sent(&outbound),
                Action::Dispatch(call) => {
                    assert!(!self.closed, "{:?} is to be run after the end", call.method.name);
                    assert!(self.dispatched.insert(call.id), "{:?} twice", call.id);
                    self.told.insert(format!("run {}", call.method.name));
                    left.extend(self.begin(*call));
                }
                Action::Abort(call, _) => {
                    self.running.retain(|running| running.id != call);
                    self.listening.remove(&call);
                    self.told.insert("aborted".to_owned());
                }
                Action::Resolve(call, outcome) => {
                    let kind = outcome.as_ref().err().map_or("result", |error| error.kind().as_str());
                    self.told.insert(format!("resolved: {kind}"));
                    if let Some(own) = self.own.get_mut(&call.0) {
                        own.resolved += 1;
                        assert_eq!(own.resolved, 1, "{call:?} is resolved again: {outcome:?}");
                    }
                }
                Action::Restart => left.extend(self.connection.handle(self.now, Input::Restarted)),
                Action::Close { reason, relaunch } => {
                    assert!(!self.closed, "it ends twice: {reason}");
                    self.closed = true;
                    self.told.insert(format!("closed: {} {relaunch}", reason.kind().as_str()));
                }
                Action::Opened(opening) => {
                    self.told.insert(format!("opened: {}", opening.revision.as_str()));
                }
                Action::Warn(text) => {
                    self.told.insert(format!("warned: {}", text.chars().take(30).collect::<String>()));
                }
                Action::Notified(..) => {
                    self.told.insert("notified".to_owned());
                }
                Action::Told(..) => {
                    self.told.insert("told".to_owned());
                }
                Action::Progress(..) => {
                    self.told.insert("progress".to_owned());
                }
                Action::Unsubscribed(..) => {
                    self.told.insert("unsubscribed".to_owned());
                }
                Action::SessionLost => {
                    self.told.insert("session lost".to_owned());
                }
                Action::Abandon(_) | Action::Unanswered(_) | Action::RootsChanged(_) | Action::PassedOn(..) => {}
            }
        }
    }

    /// A request of the peer begins to run. Some are done at once.
    fn begin(&mut self, call: Call) -> Vec<Action> {
        let name = call.name.as_ref().and_then(|name| name.to::<String>().ok()).unwrap_or_default();
        let method = call.method.name;
        let outcome = match method {
            "subscriptions/listen" => {
                let members = call.params.as_ref().and_then(|params| params.to::<Map<String, Value>>().ok());
                let members = members.unwrap_or_default().get("notifications").and_then(Value::as_object).cloned();
                match SubscriptionFilter::read(&members.unwrap_or_default()) {
                    Ok(filter) => {
                        let Call { id, context, .. } = call;
                        self.listening.insert(id);
                        let listen = Listen::new(id, filter, context, Counted::new(&self.gauge));
                        return self.connection.handle(self.now, Input::Listen(Box::new(listen)));
                    }
                    Err(error) => Err(error),
                }
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let begins = method == "resources/subscribe";
                self.connection.subscribe(&name, begins).map(|()| Payload::Object(RawJson::empty_object()))
            }
            _ => {
                self.running.push(call);
                return Vec::new();
            }
        };
        self.connection.handle(self.now, Input::Completed(call.id, outcome))
    }

    /// A message of ours goes out.
    fn sent(&mut self, outbound: &Outbound) {
        let frame = &outbound.frame;
        assert!(memchr::memchr2(b'\n', b'\r', frame).is_none(), "more than one line: {}", shown(frame));
        let limits = Limits {
            max_message_bytes: usize::MAX,
            max_nesting: 10_000,
            max_decoded_bytes: usize::MAX,
            ..Limits::default()
        };
        let messages = match jsonrpc::decode(frame, &limits) {
            Ok(Decoded::One(message)) => vec![message],
            Ok(Decoded::Batch(parts)) => {
                parts.into_iter().map(|part| part.unwrap_or_else(|e| panic!("{e:?}: {}", shown(frame)))).collect()
            }
            Err(error) => panic!("{error:?}: {}", shown(frame)),
        };
        for message in messages {
            match (message, &outbound.sent) {
                (Message::Response { id, .. } | Message::Error { id: Some(id), .. }, Sent::Response(code)) => {
                    self.told.insert(format!("answered: {code:?}"));
                    let answered = self.answered.entry(id.clone()).or_default();
                    *answered += 1;
                    let asked = self.asked.get(&id).copied().unwrap_or_default();
                    assert!(*answered <= asked, "{answered} answers to {asked} requests: {}", shown(frame));
                }
                (Message::Error { id: None, .. }, Sent::Response(_)) => {}
                (Message::Request { id, method, .. }, Sent::Request { id: own, .. }) => {
                    assert_eq!(id, *own);
                    self.told.insert(format!("asked {}", method.chars().take(40).collect::<String>()));
                }
                (Message::Notification { method, .. }, Sent::Notification | Sent::Announcement) => {
                    self.told.insert(format!("said {}", method.chars().take(40).collect::<String>()));
                }
                (message, sent) => panic!("{sent:?} is {message:?}"),
            }
        }
    }

    /// Kept things stay within their limits.
    fn check(&self) {
        let connection = &self.connection;
        assert!(connection.in_flight() <= MAX_IN_FLIGHT, "{} in flight", connection.in_flight());
        assert_eq!(connection.in_flight(), self.running.len(), "requests in flight, and handlers");
        assert!(connection.listeners() <= MAX_LISTENERS, "{} listeners", connection.listeners());
        assert_eq!(connection.listeners(), self.listening.len(), "listeners");
        assert_eq!(connection.listeners(), self.gauge.load(Ordering::Relaxed), "listeners that are counted");
        let most = MAX_IN_FLIGHT * 18 + 8 + self.subscribed;
        assert!(connection.awaited() <= most, "{} awaited, at most {most}", connection.awaited());
    }

    /// The peer goes away. Says what has happened.
    fn end(mut self) -> BTreeSet<String> {
        self.handle(Input::Closed("the end".to_owned()));
        self.check();
        assert!(self.closed && self.running.is_empty() && self.listening.is_empty(), "something goes on");
        assert_eq!((self.connection.awaited(), self.connection.next_tick()), (0, None));
        for (number, own) in &self.own {
            assert!(own.cancelled || own.resolved == 1, "call {number} never ended: {own:?}");
        }
        self.told
    }
}

fn outcome(call: &Call, text: &str) -> Result<Payload> {
    let is_tool = call.method.name == "tools/call";
    match text {
        "error" => Err(Error::rpc(-32000, "no")),
        "misuse" => Err(Error::misuse("it was called wrongly")),
        "text" if is_tool => Ok(Payload::Text("x".to_owned())),
        "fail" if is_tool => Ok(Payload::Failed("no".to_owned())),
        "value" if is_tool => Ok(Payload::Value { value: RawJson::trusted("[1]"), structured: Structured::Plain }),
        _ => {
            let object = RawJson::parse(text.to_owned()).ok().filter(RawJson::is_object);
            Ok(Payload::Object(object.unwrap_or_else(RawJson::empty_object)))
        }
    }
}
