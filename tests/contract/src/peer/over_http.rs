//! A scripted Streamable HTTP server. `<` takes the next POST, `= header` looks at it, `= CODE`
//! and `^` prepare its answer, `>` gives it.

mod socket;

use super::{LIMIT, at, bytes};
use crate::Outcome;
use crate::pattern::{self, Captures, Strictness, brief};
use crate::script::{Action, Script, Step};
use crate::wire;
use serde_json::Value;
use socket::{Arrival, Part};
use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A scripted server in a thread of its own.
#[derive(Debug)]
pub struct Serving {
    url: String,
    player: JoinHandle<Outcome>,
    stop: std::sync::mpsc::Sender<()>,
}

impl Serving {
    /// Listen and begin to play.
    pub fn start(script: Script, address: &str) -> Outcome<Self> {
        let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
        let url = format!("http://{}/mcp", listener.local_addr().map_err(|error| error.to_string())?);
        let (sender, arrivals) = channel();
        std::thread::spawn(move || socket::accept(&listener, &sender));
        let (stop, stopped) = channel();
        let player = std::thread::spawn(move || {
            let mut player = Player {
                arrivals,
                stopped,
                finished: false,
                backlog: VecDeque::new(),
                awaited: script
                    .steps
                    .iter()
                    .filter_map(|step| match &step.action {
                        Action::Await { method, .. } => Some(method.clone()),
                        _ => None,
                    })
                    .collect(),
                captures: Captures::new(),
                current: None,
                labelled: BTreeMap::new(),
                held: Vec::new(),
                stream: false,
                headers: Vec::new(),
            };
            player.play(&script.steps)
        });
        Ok(Self { url, player, stop })
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The client is done: whether it did what the script says.
    pub fn finish(self) -> Outcome {
        let _ = self.stop.send(());
        self.player.join().map_err(|_| "the peer panicked".to_owned())?
    }
}

/// A request that is not answered yet, or whose stream is open.
struct Open {
    arrival: Arrival,
    message: Option<Value>,
    status: Option<u16>,
    streaming: bool,
    answered: bool,
}

impl Open {
    fn new(arrival: Arrival, message: Option<Value>) -> Self {
        Self { arrival, message, status: None, streaming: false, answered: false }
    }

    fn asks(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.get("id").is_some() && message.get("method").is_some())
    }
}

struct Player {
    arrivals: Receiver<Arrival>,
    stopped: Receiver<()>,
    finished: bool,
    backlog: VecDeque<Arrival>,
    /// Methods other than POST that the script itself answers.
    awaited: Vec<String>,
    captures: Captures,
    current: Option<Open>,
    labelled: BTreeMap<String, Open>,
    /// Requests that were never answered: their clients wait.
    held: Vec<Open>,
    stream: bool,
    headers: Vec<(String, String)>,
}

impl Player {
    fn play(&mut self, steps: &[Step]) -> Outcome {
        for step in steps {
            self.step(&step.action).map_err(|reason| at(step, reason))?;
        }
        self.settle();
        // Whatever comes until the client is done was not in the script.
        loop {
            match self.arrivals.recv_timeout(Duration::from_millis(10)) {
                Ok(arrival) if arrival.method == "POST" => {
                    let body = String::from_utf8_lossy(&arrival.body).into_owned();
                    arrival.refuse(500);
                    return Err(format!("after the script: POST {}", pattern::shorten(&body)));
                }
                Ok(arrival) => arrival.refuse(405),
                Err(RecvTimeoutError::Timeout) if self.finished || self.stopped.try_recv().is_ok() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Finish what the script left open: a notification is accepted, a question stays open.
    fn settle(&mut self) {
        let Some(mut open) = self.current.take() else {
            return;
        };
        if open.answered {
            return;
        }
        if open.streaming || (open.asks() && open.status.is_none()) {
            self.held.push(open);
            return;
        }
        let status = open.status.take().unwrap_or(202);
        open.arrival.answer(status, std::mem::take(&mut self.headers), None, Vec::new());
    }

    fn arrival(&mut self, wanted: &str) -> Outcome<Arrival> {
        let mut deadline = Instant::now() + LIMIT;
        if let Some(place) = self.backlog.iter().position(|arrival| arrival.method == wanted) {
            return self.backlog.remove(place).ok_or_else(String::new);
        }
        loop {
            match self.arrivals.recv_timeout(Duration::from_millis(20)) {
                Ok(arrival) if arrival.method == wanted => return Ok(arrival),
                Ok(arrival) if arrival.method == "POST" || self.awaited.contains(&arrival.method) => {
                    self.backlog.push_back(arrival);
                }
                Ok(arrival) => arrival.refuse(405),
                Err(_) if Instant::now() > deadline => return Err(format!("no {wanted} from the client")),
                Err(_) => {
                    // What a client sent before it was done may still be on its way, but not for long.
                    if !self.finished && self.stopped.try_recv().is_ok() {
                        self.finished = true;
                        deadline = deadline.min(Instant::now() + Duration::from_secs(1));
                    }
                }
            }
        }
    }

    fn take(&mut self) -> Outcome<Open> {
        let arrival = self.arrival("POST")?;
        let message = wire::messages(&arrival.body)?.into_iter().next().ok_or("an empty batch")?;
        Ok(Open::new(arrival, Some(message)))
    }

    fn keep(&mut self, open: Open, label: Option<&String>) {
        match label {
            Some(label) => {
                self.labelled.insert(label.clone(), open);
            }
            None => self.current = Some(open),
        }
    }

    fn open(&mut self, label: Option<&String>) -> Outcome<&mut Open> {
        match label {
            Some(label) => self.labelled.get_mut(label),
            None => self.current.as_mut(),
        }
        .ok_or_else(|| "no such request".into())
    }

    fn step(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Expect { pattern, how, label } => {
                self.settle();
                let open = self.take()?;
                let message = open.message.clone().unwrap_or_default();
                self.keep(open, label.as_ref());
                pattern::check(pattern, &message, *how, &mut self.captures)?;
            }
            Action::Group { patterns, .. } => {
                self.settle();
                for _ in patterns {
                    let open = self.take()?;
                    let message = open.message.clone().unwrap_or_default();
                    let fits = patterns
                        .iter()
                        .any(|(pattern, how)| pattern::check(pattern, &message, *how, &mut self.captures).is_ok());
                    if !fits {
                        return Err(format!("{} fits nothing in the group", brief(&message)));
                    }
                    self.keep(open, None);
                    self.settle();
                }
            }
            Action::Await { method, label } => {
                self.settle();
                let open = Open::new(self.arrival(method)?, None);
                self.keep(open, label.as_ref());
            }
            Action::ResponseHeader { name, pattern, label } => {
                let got = self.open(label.as_ref())?.arrival.header(name);
                match (got, pattern.as_str()) {
                    (None, Some("$absent")) => {}
                    (None, _) => return Err(format!("header {name}: missing")),
                    (Some(value), _) => {
                        pattern::check(pattern, &value.into(), Strictness::Exact, &mut self.captures)
                            .map_err(|reason| format!("header {name}: {reason}"))?;
                    }
                }
            }
            Action::Status { codes, label } => self.open(label.as_ref())?.status = codes.first().copied(),
            Action::Header { name, value } => {
                let value = pattern::fill_text(value.as_deref().unwrap_or_default(), &self.captures)?;
                self.headers.push((name.clone(), value));
            }
            Action::Send { payload, label } => {
                let (body, message) = bytes(payload, &self.captures)?;
                let stream = self.stream;
                let headers = std::mem::take(&mut self.headers);
                let open = self.open(label.as_ref())?;
                if stream {
                    if !open.streaming {
                        open.arrival.send(Part::Stream(headers));
                        open.streaming = true;
                    }
                    open.arrival.send(Part::Event(body));
                    let last =
                        message.is_some_and(|message| message.get("id").is_some() && message.get("method").is_none());
                    if last {
                        open.arrival.send(Part::End);
                        open.answered = true;
                    }
                } else {
                    let status = open.status.take().unwrap_or(200);
                    open.arrival.answer(status, headers, Some("application/json"), body);
                    open.answered = true;
                }
            }
            Action::Stream(on) => self.stream = *on,
            Action::Close { label } => {
                let open = self.labelled.remove(label).ok_or("no such request")?;
                open.arrival.send(Part::Cut);
            }
            Action::End { label } => {
                let open = self.labelled.remove(label).ok_or("no such request")?;
                let deadline = Instant::now() + LIMIT;
                while !open.arrival.gone() {
                    if Instant::now() > deadline {
                        return Err(format!("the client did not hang up on {label}"));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => return Err("this line is not for an HTTP peer".into()),
        }
        Ok(())
    }
}
