//! Simulated clients: each has a session, asks whichever process it comes to, loses streams and comes back, and answers what
//! it is asked.

use crate::endpoint::http::server::simulation::*;
use crate::protocol::revision::Revision;
use crate::simulated::unix;

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Answer(Value),
    /// A status of HTTP, with its reason.
    Refused(u16, String),
    /// The connection broke before there was anything to come back for.
    Broken,
    /// Nobody said anything.
    Silence,
}

/// A change that a client has to hear of.
struct Untold {
    /// The process that took the subscription.
    subscribed: Option<Arc<Host>>,
    /// The process where it changed.
    changed: Option<Arc<Host>>,
    /// The time of that, in milliseconds since 1970.
    at: u64,
}

/// A client and its session.
struct Client {
    world: Arc<World>,
    owner: &'static str,
    revision: &'static str,
    id: String,
    last: AtomicUsize,
    /// Events that came, by their ids.
    events: Mutex<BTreeSet<String>>,
    /// Questions by their ids, and the times that they came.
    questions: Mutex<BTreeMap<String, String>>,
    /// Progress of each call.
    progress: Mutex<BTreeMap<String, Vec<u64>>>,
    /// Changes of resources that have not been told yet.
    untold: Mutex<BTreeMap<String, Untold>>,
    is_over: AtomicBool,
    /// The standalone stream is open.
    listens: AtomicBool,
}

/// Runs all clients of a seed.
pub(super) async fn all(world: &Arc<World>) {
    let mut running = Vec::new();
    for owner in ["ada", "eve"] {
        let world = world.clone();
        running.push(tokio::spawn(async move { Client::begin(world, owner).await }));
    }
    let mut clients = Vec::new();
    for one in running {
        clients.extend(one.await.ok().flatten());
    }
    if clients.len() < 2 {
        if world.faults < Faults::Store {
            world.violated("a session does not begin");
        }
        if clients.is_empty() {
            return;
        }
    }
    let harm = (world.faults >= Faults::Store).then(|| tokio::spawn(world.clone().harm()));
    let mut works = Vec::new();
    for client in &clients {
        tokio::spawn(client.clone().listens());
        works.push(tokio::spawn(client.clone().subscribes()));
        for _ in 0..1 + random(3) {
            works.push(tokio::spawn(client.clone().calls()));
        }
        if client.revision == Revision::NEWEST_LEGACY.as_str() && chance(70) {
            works.push(tokio::spawn(client.clone().has_a_task()));
        }
    }
    if let [one, other] = &clients[..] {
        works.push(tokio::spawn(other.clone().intrudes(one.id.clone())));
        works.push(tokio::spawn(one.clone().intrudes(other.id.clone())));
    }
    for work in works {
        if work.await.is_err() {
            world.violated("a client panics");
        }
    }
    if let Some(harm) = harm {
        let _ = harm.await;
    }
    world.calms().await;
    for client in &clients {
        client.settles().await;
    }
    for client in &clients {
        client.ends().await;
    }
}

impl Client {
    fn request(&self, verb: &str, body: Option<&Value>, more: &[(&str, &str)]) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::builder()
            .method(verb)
            .uri("/mcp")
            .header("Host", "localhost")
            .header("Authorization", format!("Bearer {}", self.owner));
        if !self.id.is_empty() {
            request = request.header("Mcp-Session-Id", &self.id).header("MCP-Protocol-Version", self.revision);
        }
        if body.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        if !more.iter().any(|(name, _)| *name == "Accept") {
            request = request.header("Accept", "application/json, text/event-stream");
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        request.body(Full::new(body)).expect("a request")
    }

    async fn send(
        &self,
        verb: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
        patience: u64,
    ) -> Result<Response, Broken> {
        let host = self.world.balanced().ok_or(Broken)?;
        self.world.send(host, self.request(verb, body, more), Duration::from_secs(patience)).await
    }

    /// Sends a short request until it is answered in order. `None`: it was not, for long.
    async fn insists(&self, verb: &str, body: Option<&Value>) -> Option<(u16, String, String)> {
        self.insists_at(verb, body).await.map(|(said, _)| said)
    }

    /// As `insists`, with the process that answered.
    async fn insists_at(&self, verb: &str, body: Option<&Value>) -> Option<((u16, String, String), Arc<Host>)> {
        for _ in 0..60 {
            if let Ok(response) = self.send(verb, body, &[], 10).await {
                let host = response.host.clone();
                let (status, id) = (response.status(), response.header("Mcp-Session-Id").to_owned());
                let text = timeout(Duration::from_secs(10), response.text()).await.unwrap_or_default();
                if status != 503 {
                    return Some(((status, id, text), host));
                }
                if self.world.faults < Faults::Store {
                    self.world.violated(format!("503 to {verb}: {text}"));
                }
            }
            sleep(Duration::from_millis(300) + millis(700)).await;
        }
        None
    }

    async fn begin(world: Arc<World>, owner: &'static str) -> Option<Arc<Self>> {
        let revision = Revision::ALL[2 + usize::try_from(random(2)).unwrap_or(0)].as_str();
        let mut client = Self {
            world,
            owner,
            revision,
            id: String::new(),
            last: AtomicUsize::new(10),
            events: Mutex::default(),
            questions: Mutex::default(),
            progress: Mutex::default(),
            untold: Mutex::default(),
            is_over: AtomicBool::new(false),
            listens: AtomicBool::new(false),
        };
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": owner, "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let (status, id, text) = client.insists("POST", Some(&body)).await?;
        if status != 200 || id.is_empty() {
            client.world.violated(format!("{owner} cannot begin: {status} {text}"));
            return None;
        }
        client.world.note(format!("{owner} has the session {id}, {revision}"));
        lock(&client.world.begun).push(id.clone());
        client.id = id;
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.insists("POST", Some(&body)).await;
        Some(Arc::new(client))
    }

    /// An event of a stream. Gives an answer back to whoever waits for it.
    fn takes(self: &Arc<Self>, event: &Event, has_stream: bool) -> Option<Value> {
        let message: Value = serde_json::from_str(&event.data).ok()?;
        let owner = self.owner;
        if let Some(id) = &event.id
            && !lock(&self.events).insert(id.clone())
        {
            self.world.violated(format!("{owner} gets the event {id} twice: {message}"));
        }
        match message["method"].as_str() {
            None => return Some(message),
            Some("elicitation/create") => {
                let (id, text) = (message["id"].to_string(), message["params"]["message"].as_str().unwrap_or_default());
                self.world.note(format!("{owner} is asked {text} ({id})"));
                match lock(&self.questions).insert(id.clone(), text.to_owned()) {
                    Some(before) if before == text => self.world.violated(format!("{owner} is asked {text} twice")),
                    Some(before) => self.world.violated(format!("{before} and {text} have the same id {id}")),
                    None => {}
                }
                if !text.starts_with(owner) {
                    self.world.violated(format!("{owner} is asked what is another's: {text}"));
                }
                tokio::spawn(self.clone().answers(message["id"].clone(), text.to_owned()));
            }
            Some("notifications/progress") => {
                let params = &message["params"];
                let (of, step) = (params["progressToken"].as_str().unwrap_or_default(), params["progress"].as_f64());
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
                lock(&self.progress).entry(of.to_owned()).or_default().push(step.unwrap_or_default() as u64);
            }
            Some("notifications/resources/updated") => {
                let uri = message["params"]["uri"].as_str().unwrap_or_default();
                self.world.note(format!("{owner} hears of {uri} ({has_stream})"));
                lock(&self.untold).remove(uri);
            }
            Some(_) => {}
        }
        None
    }

    async fn answers(self: Arc<Self>, id: Value, text: String) {
        sleep(millis(1500)).await;
        let result = json!({"action": "accept", "content": {"a": text}});
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        // Some do not hear that it was taken, and say it again.
        for _ in 0..1 + u64::from(chance(20)) {
            let said = self.insists("POST", Some(&body)).await;
            self.world.note(format!("{} answers {text}: {:?}", self.owner, said.map(|(status, ..)| status)));
        }
    }

    // ---- calls --------------------------------------------------------------------------------------------------

    async fn calls(self: Arc<Self>) {
        for _ in 0..1 + random(3) {
            sleep(millis(2500)).await;
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            let nonce = format!("{}-{number}", self.owner);
            let (questions, is_json) = (usize::try_from(random(3)).unwrap_or(0), chance(15));
            let work = json!({
                "nonce": nonce,
                "questions": questions,
                "pause": random(1200),
                "closes": chance(20) && !is_json,
            });
            let params = json!({"name": "work", "arguments": work, "_meta": {"progressToken": nonce}});
            let body = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
            let outcome = timeout(END, self.call(&body, is_json, &nonce)).await.unwrap_or(Outcome::Silence);
            self.world.note(format!("{nonce}: {outcome:?}"));
            self.judges(&nonce, questions, is_json, &outcome);
        }
    }

    fn judges(&self, nonce: &str, questions: usize, is_json: bool, outcome: &Outcome) {
        let harmed = self.world.harmed.load(Ordering::Relaxed);
        let is_fine = match outcome {
            Outcome::Answer(answer) if answer["result"]["content"][0]["text"] == json!(format!("{nonce} done")) => {
                let progress = lock(&self.progress).get(nonce).cloned().unwrap_or_default();
                let expected: Vec<_> = (1..=progress_of(questions) as u64).collect();
                if !is_json && progress != expected {
                    self.world.violated(format!("{nonce} is answered, and its progress was {progress:?}"));
                }
                true
            }
            // A tool's own failure: its question was not answered in time.
            Outcome::Answer(answer) => {
                harmed && (answer["result"]["isError"] == true || answer["error"]["code"].is_i64())
            }
            Outcome::Refused(status, why) => harmed && matches!(status, 400 | 404 | 503) && !why.is_empty(),
            Outcome::Broken => harmed || self.world.faults >= Faults::Streams,
            Outcome::Silence => false,
        };
        if !is_fine {
            self.world.violated(format!("{nonce} ends as {outcome:?}"));
        }
    }

    async fn call(self: &Arc<Self>, body: &Value, is_json: bool, nonce: &str) -> Outcome {
        let accept = if is_json { "application/json" } else { "application/json, text/event-stream" };
        let Ok(response) = self.send("POST", Some(body), &[("Accept", accept)], 190).await else {
            return Outcome::Broken;
        };
        let mut last = None;
        let mut response = Some(response);
        loop {
            if let Some(response) = response.take() {
                let status = response.status();
                if status != 200 {
                    let text = response.text().await;
                    if status == 503 && last.is_some() || status == 409 {
                        sleep(Duration::from_millis(400) + millis(800)).await;
                    } else {
                        return Outcome::Refused(status, text);
                    }
                } else if response.header("Content-Type") == "application/json" {
                    let answer = serde_json::from_str(&response.text().await);
                    return answer.map_or(Outcome::Broken, Outcome::Answer);
                } else if let Some(answer) = self.reads(response, &mut last, true).await {
                    return Outcome::Answer(answer);
                }
            }
            let Some(id) = &last else { return Outcome::Broken };
            sleep(millis(1200)).await;
            self.world.note(format!("{nonce} comes back after {id}"));
            response = self.send("GET", None, &[("Accept", "text/event-stream"), ("Last-Event-ID", id)], 20).await.ok();
        }
    }

    /// Reads a stream to its end, or until it breaks. Gives the answer in it.
    async fn reads(
        self: &Arc<Self>,
        mut response: Response,
        last: &mut Option<String>,
        has_stream: bool,
    ) -> Option<Value> {
        let mut reader = Reader::default();
        let breaks = self.world.faults >= Faults::Streams && !self.world.is_calm.load(Ordering::Relaxed);
        let patience = if breaks && chance(60) { millis(2500) } else { Duration::from_secs(100_000) };
        let reading = async {
            while let Some(part) = response.next().await {
                for event in reader.read(&part) {
                    if let Some(id) = &event.id {
                        *last = Some(id.clone());
                    }
                    if let Some(answer) = self.takes(&event, has_stream) {
                        return Some(answer);
                    }
                }
            }
            None
        };
        timeout(patience, reading).await.unwrap_or_default()
    }

    // ---- the standalone stream ----------------------------------------------------------------------------------

    async fn listens(self: Arc<Self>) {
        let mut last: Option<String> = None;
        while !self.is_over.load(Ordering::Relaxed) {
            let mut more = vec![("Accept", "text/event-stream")];
            if let Some(id) = &last {
                more.push(("Last-Event-ID", id));
            }
            let sent = self.send("GET", None, &more, 20).await;
            match sent {
                Ok(response) if response.status() == 200 => {
                    self.world.note(format!("{} listens at {} after {last:?}", self.owner, response.host.process.name));
                    self.listens.store(true, Ordering::Relaxed);
                    self.reads(response, &mut last, false).await;
                    self.listens.store(false, Ordering::Relaxed);
                    self.world.note(format!("{} listens no more", self.owner));
                }
                Ok(response) if response.status() == 404 => {
                    if !self.is_over.load(Ordering::Relaxed) {
                        self.world.violated(format!("{} has no session any more", self.owner));
                    }
                    return;
                }
                Ok(response) => {
                    let status = response.status();
                    let text = response.text().await;
                    self.world.note(format!("{} does not listen: {status} {text}", self.owner));
                    if status == 400 {
                        last = None;
                    }
                }
                Err(Broken) => {}
            }
            sleep(millis(1500)).await;
        }
    }

    async fn subscribes(self: Arc<Self>) {
        for n in 0..RESOURCES {
            let uri = format!("a://{n}");
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            let params = json!({"uri": uri});
            let body = json!({"jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": params});
            let said = self.insists_at("POST", Some(&body)).await;
            let (said, host) = said.unzip();
            let is_done = said.as_ref().is_some_and(|(status, _, text)| *status == 200 && text.contains("\"result\""));
            let at = host.as_ref().map(|host| &host.process.name);
            self.world.note(format!("{} subscribes to {uri} at {at:?}: {said:?}", self.owner));
            if !is_done {
                if !self.world.harmed.load(Ordering::Relaxed) {
                    self.world.violated(format!("{} cannot subscribe: {said:?}", self.owner));
                }
                continue;
            }
            sleep(millis(3000)).await;
            // Every process knows it by the time that it is answered.
            let at = unix().map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0));
            lock(&self.untold).insert(uri.clone(), Untold { subscribed: host, changed: None, at });
            match self.world.touch(&uri) {
                Some(host) => {
                    if let Some(untold) = lock(&self.untold).get_mut(&uri) {
                        untold.changed = Some(host);
                    }
                }
                None => drop(lock(&self.untold).remove(&uri)),
            }
        }
    }

    /// Hears of everything that has changed, once its stream is there to stay.
    async fn settles(self: &Arc<Self>) {
        for _ in 0..120 {
            if lock(&self.untold).is_empty() && self.listens.load(Ordering::Relaxed) {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
        for (uri, untold) in &*lock(&self.untold) {
            let is_gone = |host: &Option<Arc<Host>>| host.as_ref().is_some_and(|host| host.process.is_gone());
            // Words to a process that was killed before the store took them are lost with it, and so are its own.
            let is_published = self.world.store.published(uri).is_some_and(|last| last >= untold.at);
            if !is_gone(&untold.subscribed) && (is_published || !is_gone(&untold.changed)) {
                self.world.violated(format!("{} does not hear of {uri}", self.owner));
            }
        }
    }

    async fn ends(self: &Arc<Self>) {
        self.world.remember(&self.id);
        self.is_over.store(true, Ordering::Relaxed);
        match self.insists("DELETE", None).await {
            Some((204 | 404, ..)) => self.world.note(format!("{} has ended its session", self.owner)),
            other => self.world.violated(format!("{} cannot end its session: {other:?}", self.owner)),
        }
    }

    /// Tries to use another's session.
    async fn intrudes(self: Arc<Self>, id: String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        for verb in ["POST", "GET", "DELETE", "POST"] {
            sleep(millis(3000)).await;
            let Some(host) = self.world.balanced() else { return };
            let accept = if verb == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
            let mut request = self.request(verb, (verb == "POST").then_some(&body), &[("Accept", accept)]);
            let header = http::HeaderValue::from_str(&id).expect("an id");
            request.headers_mut().insert("Mcp-Session-Id", header);
            if let Ok(response) = self.world.send(host, request, Duration::from_secs(10)).await {
                let status = response.status();
                if status != 404 && (status != 503 || self.world.faults < Faults::Store) {
                    self.world.violated(format!("{} gets {status} in another's session", self.owner));
                }
            }
        }
    }

    // ---- tasks --------------------------------------------------------------------------------------------------

    /// Asks short requests. `None`: nobody answered.
    async fn asks(self: &Arc<Self>, method: &str, params: &Value) -> Option<Value> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
        let nonce = format!("{}-{number} {method}", self.owner);
        match timeout(END, self.call(&body, false, &nonce)).await {
            Ok(Outcome::Answer(answer)) => Some(answer),
            Ok(other) => {
                self.world.note(format!("{nonce}: {other:?}"));
                None
            }
            Err(_) => {
                self.world.violated(format!("{nonce} has no end"));
                None
            }
        }
    }

    async fn has_a_task(self: Arc<Self>) {
        sleep(millis(2000)).await;
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let nonce = format!("{}-{number}", self.owner);
        let work = json!({"nonce": nonce, "questions": random(2), "pause": random(3000), "closes": false});
        let params = json!({"name": "work", "arguments": work, "task": {"ttl": 600_000}});
        let Some(created) = self.asks("tools/call", &params).await else { return };
        let Some(id) = created["result"]["task"]["taskId"].as_str().map(str::to_owned) else {
            if !self.world.harmed.load(Ordering::Relaxed) {
                self.world.violated(format!("{nonce} becomes no task: {created}"));
            }
            return;
        };
        self.world.note(format!("{nonce} is the task {id}"));
        let readers: Vec<_> = (0..2).map(|_| tokio::spawn(self.clone().waits_for(id.clone(), nonce.clone()))).collect();
        if chance(30) {
            sleep(millis(5000)).await;
            let said = self.asks("tasks/cancel", &json!({"taskId": id})).await;
            self.world.note(format!("{nonce} is cancelled: {said:?}"));
        }
        let mut ends = BTreeSet::new();
        for reader in readers {
            ends.extend(reader.await.ok().flatten());
        }
        // Later, everyone reads the same.
        for _ in 0..3 {
            if let Some(answer) = self.asks("tasks/get", &json!({"taskId": id})).await {
                self.world.note(format!("{nonce} is {answer}"));
                ends.extend(end_of(&answer));
            }
            if let Some(answer) = self.asks("tasks/result", &json!({"taskId": id})).await {
                let text = answer["result"]["content"][0]["text"].as_str();
                self.world.note(format!("{nonce} has the result {answer}"));
                let is_unknown = self.world.faults >= Faults::Store && !answer["error"].is_null();
                let is_other = text != Some(&format!("{nonce} done")) && !is_unknown;
                if ends.contains("completed") && ends.len() == 1 && is_other {
                    self.world.violated(format!("{nonce} is completed, and its result is {answer}"));
                }
            }
            sleep(millis(4000)).await;
        }
        // An end is told by its own process, too, while the store does not answer: then a cancellation elsewhere may be first.
        let is_contended = ends.iter().all(|end| end != "failed") && self.world.faults >= Faults::Store;
        if ends.len() > 1 && !is_contended {
            self.world.violated(format!("{nonce} has ended as {ends:?}"));
        }
        if ends.is_empty() && !self.world.harmed.load(Ordering::Relaxed) {
            self.world.violated(format!("{nonce} has no end"));
        }
    }

    /// Looks at a task until it has ended.
    async fn waits_for(self: Arc<Self>, id: String, nonce: String) -> Option<String> {
        let begun = now().unwrap_or_default();
        loop {
            sleep(Duration::from_millis(200) + millis(1500)).await;
            let by_result = chance(30);
            let method = if by_result { "tasks/result" } else { "tasks/get" };
            let answer = self.asks(method, &json!({"taskId": id})).await;
            if let Some(end) = answer.as_ref().filter(|_| !by_result).and_then(end_of) {
                self.world.note(format!("{nonce} is seen to be {end}"));
                return Some(end);
            }
            if now().unwrap_or_default() - begun > END {
                self.world.violated(format!("{nonce} is not seen to end: {answer:?}"));
                return None;
            }
            // It may have been lost with its process before anybody else knew it.
            if answer.as_ref().is_some_and(|answer| answer["error"]["code"] == -32602) {
                if !self.world.harmed.load(Ordering::Relaxed) {
                    self.world.violated(format!("{nonce} is not known: {answer:?}"));
                }
                return None;
            }
        }
    }
}

/// The end of a task that an answer tells of.
fn end_of(answer: &Value) -> Option<String> {
    let status = answer["result"]["status"].as_str()?;
    matches!(status, "completed" | "failed" | "cancelled").then(|| status.to_owned())
}

/// One event of a stream.
struct Event {
    id: Option<String>,
    data: String,
}

/// Reads a stream of events.
#[derive(Default)]
struct Reader(String);

impl Reader {
    fn read(&mut self, part: &[u8]) -> Vec<Event> {
        self.0.push_str(&String::from_utf8_lossy(part));
        let mut all = Vec::new();
        while let Some(end) = self.0.find("\n\n") {
            let text: String = self.0.drain(..end + 2).collect();
            let mut event = Event { id: None, data: String::new() };
            for line in text.lines() {
                if let Some(id) = line.strip_prefix("id: ") {
                    event.id = Some(id.to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    event.data.push_str(data);
                }
            }
            all.push(event);
        }
        all
    }
}
