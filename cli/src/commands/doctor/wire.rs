//! Raw messages to and from a server, over either transport.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tricorn::http::Exchanges;

use super::process::{Line, Program};
use super::reading::{Events, Lines, text};
use super::report::Report;

pub(super) const NEWEST_LEGACY: &str = "2025-11-25";
pub(super) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST_LEGACY];
pub(super) const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Time for an ordinary answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Time for what should be answered at once.
pub(super) const SOON: Duration = Duration::from_secs(3);
/// Messages that are kept besides answers, and the longest text that is kept of one.
const KEPT: usize = 2000;
const LONGEST_KEPT: usize = 1000;
/// Messages that wait to be looked at.
const WAITING: usize = 256;
/// The largest body of an answer.
const LARGEST: usize = 16 << 20;
/// Bytes of messages that wait to be looked at.
const WAITING_BYTES: usize = 16 << 20;

/// Outcome of a request.
pub(super) enum Said {
    /// The whole message.
    Answer(Value),
    /// HTTP's own answer, without a message in it.
    Status(u16, String),
    Silent,
    /// The server or the connection has ended, and how.
    Ended(String),
}

impl Said {
    /// The result; of an answer with an error besides, if there is anything in it.
    pub(super) fn result(&self) -> Option<&Value> {
        let Self::Answer(answer) = self else { return None };
        let is_empty = |result: &&Value| result.as_object().is_none_or(serde_json::Map::is_empty);
        answer.get("result").filter(|result| answer.get("error").is_none() || !is_empty(result))
    }

    /// The error, unless there is a result besides.
    pub(super) fn error(&self) -> Option<&Value> {
        match self {
            Self::Answer(answer) if answer.get("result").is_none() => answer.get("error"),
            _ => None,
        }
    }

    /// The code of an error.
    pub(super) fn code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// A few words, as evidence.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Answer(answer) => match (self.error(), self.result()) {
                (Some(error), _) => format!("the error {error}"),
                (None, Some(result)) => format!("the result {result}"),
                (None, None) => answer.to_string(),
            },
            Self::Status(status, body) => format!("HTTP status {status} {body}"),
            Self::Silent => "no answer".to_owned(),
            Self::Ended(how) => format!("the end: {how}"),
        }
    }
}

enum Event {
    /// A message, and its share of what may wait.
    Message(Value, #[expect(dead_code, reason = "it gives its room back when it is dropped")] OwnedSemaphorePermit),
    /// HTTP has answered a request with this id, without a message.
    Status(Value, u16, String),
    /// HTTP has not answered it.
    Failed(Value, String),
    /// The stream of a request has ended without its answer.
    Over(Value),
}

/// The way of messages to who looks at them.
#[derive(Clone)]
struct Sender {
    events: mpsc::Sender<Event>,
    /// Bytes that may still wait.
    room: Arc<Semaphore>,
}

impl Sender {
    fn new() -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(WAITING);
        (Self { events, room: Arc::new(Semaphore::new(WAITING_BYTES)) }, receiver)
    }

    /// Sends what is no message. False: nobody looks any more.
    async fn send(&self, event: Event) -> bool {
        self.events.send(event).await.is_ok()
    }

    /// Sends a message of that many bytes, once there is room for it.
    async fn message(&self, message: Value, bytes: usize) -> bool {
        let bytes = u32::try_from(bytes.clamp(1, WAITING_BYTES)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room,
            () = self.events.closed() => return false,
        };
        match room {
            Ok(room) => self.send(Event::Message(message, room)).await,
            Err(_) => false,
        }
    }
}

enum Link {
    Stdio { program: Program },
    Http(Http),
}

/// The HTTP side of a wire.
struct Http {
    exchanges: Arc<Exchanges>,
    state: Arc<Mutex<Session>>,
    sender: Sender,
    running: Vec<(Value, JoinHandle<()>)>,
}

/// Facts of HTTP about a session.
#[derive(Default, Clone)]
struct Session {
    id: Option<String>,
    revision: Option<String>,
    token: Option<String>,
    is_modern: bool,
}

impl Drop for Http {
    fn drop(&mut self) {
        self.running.iter().for_each(|(_, task)| task.abort());
    }
}

pub(super) struct Wire {
    link: Link,
    events: mpsc::Receiver<Event>,
    pub(super) report: Report,
    /// True if requests carry the envelope of the newer revisions.
    pub(super) is_modern: bool,
    /// The revision that was agreed on.
    pub(super) revision: String,
    pub(super) capabilities: Map<String, Value>,
    next: i64,
    /// Messages that answer nothing that was waited for.
    pub(super) heard: VecDeque<(Instant, Value)>,
}

impl Wire {
    pub(super) fn stdio(program: Program, lines: mpsc::Receiver<Line>, report: &Report) -> Self {
        let (sender, events) = Sender::new();
        tokio::spawn(take(lines, sender, report.clone()));
        Self::of(Link::Stdio { program }, events, report)
    }

    pub(super) fn http(exchanges: Arc<Exchanges>, token: Option<&str>, report: &Report) -> Self {
        let (sender, events) = Sender::new();
        let session = Session { token: token.map(str::to_owned), ..Session::default() };
        let http = Http { exchanges, state: Arc::new(Mutex::new(session)), sender, running: Vec::new() };
        Self::of(Link::Http(http), events, report)
    }

    fn of(link: Link, events: mpsc::Receiver<Event>, report: &Report) -> Self {
        Self {
            link,
            events,
            report: report.clone(),
            is_modern: false,
            revision: String::new(),
            capabilities: Map::new(),
            next: 0,
            heard: VecDeque::new(),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self.link, Link::Http(_))
    }

    /// The process, where messages go over its standard streams.
    pub(super) fn program(&mut self) -> Option<&mut Program> {
        match &mut self.link {
            Link::Stdio { program, .. } => Some(program),
            Link::Http(_) => None,
        }
    }

    pub(super) fn into_program(self) -> Option<Program> {
        match self.link {
            Link::Stdio { program, .. } => Some(program),
            Link::Http(_) => None,
        }
    }

    pub(super) fn session(&self) -> Option<String> {
        match &self.link {
            Link::Stdio { .. } => None,
            Link::Http(http) => http.state.lock().unwrap_or_else(PoisonError::into_inner).id.clone(),
        }
    }

    /// Becomes one of the newer revisions.
    pub(super) fn modern(mut self) -> Self {
        self.is_modern = true;
        self.revision = MODERN.to_owned();
        if let Link::Http(http) = &self.link {
            http.state.lock().unwrap_or_else(PoisonError::into_inner).is_modern = true;
        }
        self
    }

    pub(super) fn set_revision(&mut self, revision: &str) {
        self.revision = revision.to_owned();
        if let Link::Http(http) = &self.link {
            http.state.lock().unwrap_or_else(PoisonError::into_inner).revision = Some(revision.to_owned());
        }
    }

    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    }

    /// An id of its own.
    pub(super) fn id(&mut self) -> Value {
        self.next += 1;
        Value::from(1000 + self.next)
    }

    /// Asks and waits for the answer.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Said {
        self.request_within(method, params, PATIENCE).await
    }

    /// The same in an open session, where a server that ends is a finding.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Said {
        self.report.ran(&["dies"]);
        let said = self.request(method, params).await;
        self.died(method, &said);
        said
    }

    /// Reports a server that has ended instead of answering this.
    pub(super) fn died(&self, what: &str, said: &Said) {
        // Lines after the end say nothing more.
        if let Said::Ended(how) = said
            && !self.report.has("dies")
        {
            self.report.find("dies", format!("{what}: {how}"));
        }
    }

    pub(super) async fn request_within(&mut self, method: &str, params: Value, limit: Duration) -> Said {
        let id = self.id();
        self.request_as(id, method, params, limit).await
    }

    pub(super) async fn request_as(&mut self, id: Value, method: &str, params: Value, limit: Duration) -> Said {
        if let Some(said) = self.begin(&id, method, params).await {
            return said;
        }
        self.answer(&id, limit).await
    }

    /// Asks without waiting. Gives what went wrong, if that is known already.
    pub(super) async fn begin(&mut self, id: &Value, method: &str, params: Value) -> Option<Said> {
        let mut params = params;
        if self.is_modern {
            let meta = params.get_mut("_meta").and_then(Value::as_object_mut).map(std::mem::take);
            let mut meta = meta.unwrap_or_default();
            meta.insert(VERSION.to_owned(), MODERN.into());
            meta.insert(CAPABILITIES.to_owned(), json!({}));
            meta.insert(CLIENT.to_owned(), client_info());
            params["_meta"] = Value::Object(meta);
        }
        self.begin_bare(id, method, params).await
    }

    /// The same with the parameters as they are.
    pub(super) async fn begin_bare(&mut self, id: &Value, method: &str, params: Value) -> Option<Said> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let how = self.send(Some(id), &message).await?;
        Some(Said::Ended(how))
    }

    /// Tells something. Gives how the connection has ended, if it has.
    pub(super) async fn tell(&mut self, method: &str, params: Value) -> Option<String> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(None, &message).await
    }

    async fn send(&mut self, id: Option<&Value>, message: &Value) -> Option<String> {
        self.send_raw(id, message, message.to_string().into_bytes()).await
    }

    /// Sends a line, or the body of a POST.
    pub(super) async fn send_raw(&mut self, id: Option<&Value>, message: &Value, bytes: Vec<u8>) -> Option<String> {
        match &mut self.link {
            Link::Stdio { program, .. } => {
                if program.write(&bytes).await {
                    return None;
                }
                Some(how_ended(program).await)
            }
            Link::Http(http) => {
                http.running.retain(|(_, task)| !task.is_finished());
                let task = post(http, id.cloned(), message, bytes, self.report.clone());
                match id {
                    Some(id) => http.running.push((id.clone(), task)),
                    // In order, as the next message may depend on it.
                    None => {
                        let _ = tokio::time::timeout(PATIENCE, task).await;
                    }
                }
                None
            }
        }
    }

    /// Waits for the answer to a request.
    pub(super) async fn answer(&mut self, id: &Value, limit: Duration) -> Said {
        let until = Instant::now() + limit;
        loop {
            let event = match tokio::time::timeout_at(until, self.events.recv()).await {
                Err(_) => return Said::Silent,
                Ok(None) => return Said::Ended(self.how_ended().await),
                Ok(Some(event)) => event,
            };
            match event {
                Event::Message(message, _) if is_answer(&message) && is_id(&message, id) => {
                    self.look(&message, Some(id));
                    return Said::Answer(message);
                }
                Event::Message(message, _) => self.hear(message).await,
                Event::Status(of, status, body) if of == *id => return Said::Status(status, body),
                Event::Failed(of, why) if of == *id => return Said::Ended(why),
                Event::Over(of) if of == *id => {
                    return Said::Status(200, "a stream that ends without the answer".to_owned());
                }
                Event::Status(..) | Event::Failed(..) | Event::Over(_) => {}
            }
        }
    }

    /// Hears what comes for a while; true if the connection has ended.
    pub(super) async fn listen(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            match tokio::time::timeout_at(until, self.events.recv()).await {
                Err(_) => return false,
                Ok(None) => return true,
                Ok(Some(Event::Message(message, _))) => self.hear(message).await,
                Ok(Some(_)) => {}
            }
        }
    }

    /// Keeps a message, and answers what it asks.
    async fn hear(&mut self, message: Value) {
        if let Value::Array(items) = message {
            // Several together, as one revision has them.
            for item in items.into_iter().take(KEPT) {
                self.keep(item);
            }
            return;
        }
        let asked = message.get("method").and_then(Value::as_str).zip(message.get("id"));
        if let Some((method, id)) = asked {
            if ["sampling/createMessage", "elicitation/create", "roots/list"].contains(&method) {
                self.report.find("asks-undeclared", format!("{method}, of a client that has declared nothing"));
            }
            let answer = match method {
                "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
            };
            let _ = Box::pin(self.send(None, &answer)).await;
        } else if is_answer(&message) {
            self.look(&message, None);
        }
        self.keep(message);
    }

    /// Keeps what is looked at later: progress, and ids of answers.
    fn keep(&mut self, message: Value) {
        let kept = if is_answer(&message) {
            let name = if message.get("result").is_some() { "result" } else { "error" };
            json!({"id": message["id"], name: null})
        } else if message["method"] == "notifications/progress" {
            let params = &message["params"];
            json!({"method": message["method"], "params": {
                "progressToken": params["progressToken"], "progress": params["progress"]}})
        } else {
            return;
        };
        if kept.to_string().len() > LONGEST_KEPT {
            return;
        }
        if self.heard.len() >= KEPT {
            self.heard.pop_front();
        }
        self.heard.push_back((Instant::now(), kept));
    }

    /// Looks at the form of an answer.
    fn look(&self, answer: &Value, asked: Option<&Value>) {
        let shown = || answer.to_string();
        if answer.get("result").is_some() == answer.get("error").is_some() {
            self.report.find("result-and-error", shown());
        }
        let id = &answer["id"];
        if let Some(asked) = asked.filter(|asked| *asked != id) {
            self.report.find("id-retyped", format!("sent {asked}, received {id}"));
        }
    }

    pub(super) async fn how_ended(&mut self) -> String {
        match &mut self.link {
            Link::Stdio { program } => how_ended(program).await,
            Link::Http(_) => "the connection was lost".to_owned(),
        }
    }

    /// Cancels a request.
    pub(super) async fn cancel(&mut self, id: &Value) {
        if self.is_modern
            && let Link::Http(http) = &mut self.link
        {
            // The end of its stream says so.
            http.running.iter().filter(|(of, _)| of == id).for_each(|(_, task)| task.abort());
            return;
        }
        let _ = self.tell("notifications/cancelled", json!({"requestId": id, "reason": "doctor"})).await;
    }

    /// Opens the stream on which a session is told things that no request of ours has asked for.
    pub(super) fn open_stream(&mut self) {
        let Link::Http(http) = &mut self.link else { return };
        let (exchanges, sender, report) = (http.exchanges.clone(), http.sender.clone(), self.report.clone());
        let session = http.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let task = tokio::spawn(async move {
            let mut headers = session.headers(None);
            headers.push(("accept".to_owned(), "text/event-stream".to_owned()));
            if let Ok(mut answer) = exchanges.send("GET", &borrowed(&headers), Vec::new().into()).await
                && answer.status == 200
            {
                read_stream(&mut answer, &sender, &report, None).await;
            }
        });
        http.running.push((Value::Null, task));
    }

    /// Sends an exchange of its own, with the session's headers and these.
    pub(super) async fn exchange(&self, method: &str, more: &[(&str, &str)], body: &Value) -> Option<Exchanged> {
        let Link::Http(http) = &self.link else { return None };
        let session = http.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut headers = session.headers(Some(body).filter(|body| !body.is_null()));
        headers.retain(|(name, _)| !more.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        let mut all = borrowed(&headers);
        all.extend_from_slice(more);
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        exchanged(&http.exchanges, method, &all, bytes).await
    }
}

/// A whole answer of HTTP.
pub(super) struct Exchanged {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The message, or the first of a stream that answers something.
    pub(super) message: Option<Value>,
    /// The beginning of a body that is no message.
    pub(super) body: String,
}

impl Exchanged {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// True if a request was served.
    pub(super) fn is_served(&self) -> bool {
        (200..300).contains(&self.status)
            && self.message.as_ref().is_some_and(|message| message.get("result").is_some())
    }
}

/// One exchange; of a stream the first answer in it.
pub(super) async fn exchanged(
    exchanges: &Exchanges,
    method: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Option<Exchanged> {
    let work = async {
        let mut answer = exchanges.send(method, headers, body.into()).await.ok()?;
        let is_stream = is_stream(&answer.headers);
        let (mut whole, mut events, mut message, mut count) = (Vec::new(), Events::default(), None, 0);
        while let Ok(Some(piece)) = answer.piece().await {
            count += piece.len();
            if count > LARGEST {
                break;
            }
            if is_stream {
                let found = events.take(&piece)?;
                let found = found.iter().filter_map(|data| serde_json::from_slice::<Value>(data).ok());
                message = found.into_iter().find(is_answer);
                if message.is_some() {
                    break;
                }
            } else {
                whole.extend_from_slice(&piece);
            }
        }
        let message = message.or_else(|| serde_json::from_slice(&whole).ok());
        let body = String::from_utf8_lossy(&whole[..whole.len().min(80)]).into_owned();
        Some(Exchanged { status: answer.status, headers: std::mem::take(&mut answer.headers), message, body })
    };
    tokio::time::timeout(PATIENCE, work).await.ok().flatten()
}

pub(super) fn client_info() -> Value {
    json!({"name": "tricorn-doctor", "version": tricorn::VERSION})
}

fn borrowed(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn is_stream(headers: &[(String, String)]) -> bool {
    headers
        .iter()
        .any(|(name, value)| name == "content-type" && value.to_ascii_lowercase().contains("text/event-stream"))
}

impl Session {
    /// The headers of a message of this session.
    fn headers(&self, message: Option<&Value>) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut put = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        if let Some(token) = &self.token {
            put("authorization", &format!("Bearer {token}"));
        }
        if let Some(id) = &self.id {
            put("mcp-session-id", id);
        }
        if self.is_modern {
            put("mcp-protocol-version", MODERN);
            let method = message.and_then(|message| message["method"].as_str()).unwrap_or_default();
            if !method.is_empty() {
                put("mcp-method", method);
            }
            let named = match method {
                "tools/call" | "prompts/get" => "name",
                "resources/read" => "uri",
                _ => "",
            };
            if let Some(name) = message.and_then(|message| message["params"][named].as_str()) {
                put("mcp-name", &in_header(name));
            }
        } else if let Some(revision) = self.revision.as_ref().filter(|revision| revision.as_str() >= "2025-06-18") {
            put("mcp-protocol-version", revision);
        }
        headers
    }
}

/// A name as a header carries it.
fn in_header(name: &str) -> String {
    use base64::Engine;
    let is_plain =
        name.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && name.trim() == name && !name.starts_with("=?base64?");
    if is_plain {
        return name.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(name))
}

fn post(http: &Http, id: Option<Value>, message: &Value, body: Vec<u8>, report: Report) -> JoinHandle<()> {
    let (exchanges, sender, state) = (http.exchanges.clone(), http.sender.clone(), http.state.clone());
    let opens = message["method"] == "initialize";
    let session = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let headers = session.headers(Some(message));
    tokio::spawn(async move {
        let id = id.unwrap_or_default();
        let mut answer = match exchanges.send("POST", &borrowed(&headers), body.into()).await {
            Ok(answer) => answer,
            Err(error) => {
                sender.send(Event::Failed(id, error.message().to_owned())).await;
                return;
            }
        };
        if opens {
            let given = answer.headers.iter().find(|(name, _)| name == "mcp-session-id");
            state.lock().unwrap_or_else(PoisonError::into_inner).id = given.map(|(_, value)| value.clone());
        }
        if is_stream(&answer.headers) {
            read_stream(&mut answer, &sender, &report, Some(&id)).await;
            return;
        }
        let mut whole = Vec::new();
        loop {
            match answer.piece().await {
                Ok(Some(piece)) if whole.len() + piece.len() <= LARGEST => whole.extend_from_slice(&piece),
                Ok(None) => break,
                Ok(Some(_)) => {
                    sender.send(Event::Failed(id, format!("a body of more than {LARGEST} bytes"))).await;
                    return;
                }
                Err(error) => {
                    sender.send(Event::Failed(id, error.message().to_owned())).await;
                    return;
                }
            }
        }
        let body = text(&report, &whole);
        match serde_json::from_str::<Value>(&body) {
            Ok(message) if is_answer(&message) && (is_id(&message, &id) || answer.status < 300) => {
                sender.message(message, whole.len()).await;
                sender.send(Event::Over(id)).await;
            }
            _ => {
                let body: String = body.chars().take(200).collect();
                sender.send(Event::Status(id, answer.status, body)).await;
            }
        }
    })
}

async fn read_stream(answer: &mut tricorn::http::Exchanged, sender: &Sender, report: &Report, id: Option<&Value>) {
    let mut events = Events::default();
    while let Ok(Some(piece)) = answer.piece().await {
        let Some(found) = events.take(&piece) else { break };
        for data in found {
            if let Ok(message) = serde_json::from_str(&text(report, &data))
                && !sender.message(message, data.len()).await
            {
                return;
            }
        }
    }
    if let Some(id) = id {
        sender.send(Event::Over(id.clone())).await;
    }
}

async fn take(mut lines: mpsc::Receiver<Line>, sender: Sender, report: Report) {
    let mut open = Lines::default();
    while let Some(line) = lines.recv().await {
        let bytes = match &line {
            Line::Whole(line) | Line::Cut(line) => line.len(),
        };
        if let Some(message) = open.take(&report, line)
            && !sender.message(message, bytes).await
        {
            return;
        }
    }
    open.give_up(&report);
}

fn is_answer(message: &Value) -> bool {
    message.is_object() && message.get("method").is_none() && message.get("id").is_some()
}

/// True if an answer has this id, or one that was meant to be it.
fn is_id(answer: &Value, id: &Value) -> bool {
    let bare = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    answer["id"] == *id || (!answer["id"].is_null() && bare(&answer["id"]) == bare(id))
}

/// Says how a program has ended.
pub(super) async fn how_ended(program: &Program) -> String {
    let status = program.ended(Duration::from_secs(1)).await;
    let how = status.map_or_else(|| "its standard output is closed".to_owned(), |status| status.to_string());
    match program.last_words().await {
        Some(line) => format!("{how}; {line}"),
        None => how,
    }
}
