//! Cassettes: recorded, served, sent to a live server, compared.

use std::io::{BufRead, Read as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use tricorn::cassette::{Cassette, Difference, MAX_LINE, Player, Question, Recorder, Redaction, differences};
use tricorn::client::{CacheOptions, Client, Handlers, Tap, Target};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::revision::Revision;
use tricorn::{CallOptions, Context, Error, ErrorKind, Handler, Reply};

use super::run::serve;
use crate::arguments::{Diff, Record, Replay};
use crate::connection::{options, runtime};
use crate::failure::{FAILED, Failure, INTERRUPTED, Outcome, UNREACHABLE};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::logins::with_login;
use crate::opening::{Opening, revision_of};
use crate::output::{Screen, one_line};
use crate::targets::{self, Found, Kind, Reach, Way};

/// Methods whose questions a server may ask.
const QUESTIONS: [(&str, &str); 3] =
    [("elicitation", "elicitation/create"), ("sampling", "sampling/createMessage"), ("roots", "roots/list")];

/// Serves a target and records what passes between the bridge to it and itself.
pub(super) fn record(mut record: Record, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    if record.connection.record.is_some() {
        return Err(Failure::misuse("--record: here -o FILE says where the cassette goes"));
    }
    let found = targets::find(&record.target, &record.connection, &Way::Streams, launcher, screen)?;
    if let Reach::Many(_) = found.reach {
        return Err(Failure::misuse(format!("{0}: a cassette is of one server: say which, {0}#NAME", found.name)));
    }
    check_output(&record.output)?;
    screen.line(&screen.error_style().dim(&format!("recording to {}", record.output)));
    let output = record.output;
    let before = state_of(&output);
    record.connection.record = Some(output.clone());
    let status = serve::serve(found, record.http.as_deref(), options(&record.connection), 1, screen)?;
    if state_of(&output) == before {
        let why = "the client made no request after its introduction; let it make one, such as tools/list";
        screen.warn(&format!("nothing was recorded, and {output} was not written: {why}"));
    }
    Ok(status)
}

/// Time and length of a file, which are others once it is written to.
fn state_of(path: &str) -> Option<(std::time::SystemTime, u64)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// Says that a cassette cannot be written before a client is there that has nothing from it.
fn check_output(path: &str) -> Outcome<()> {
    let mut options = std::fs::OpenOptions::new();
    let is_there = std::fs::symlink_metadata(path).is_ok();
    let opened = options.append(true).create(!is_there).open(path);
    opened.map_err(|error| Failure::misuse(format!("-o {path}: cannot be written: {error}")))?;
    if !is_there {
        // It is made when there is something to record.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Plays a cassette as a server, or as a client.
pub(super) fn replay(replay: &Replay, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let cassette = read(&replay.file)?;
    if let Some(target) = &replay.against {
        let found = targets::find(target, &replay.connection, &Way::Streams, launcher, screen)?;
        return against(&cassette, found, replay, screen);
    }
    match &replay.http {
        None => on_streams(&cassette, replay, screen),
        Some(address) => bridged(&cassette, replay, Some(address), screen),
    }
}

/// Serves it by a bridge, which speaks other revisions than the recorded one, too.
fn bridged(cassette: &Cassette, replay: &Replay, http: Option<&str>, screen: &Screen) -> Outcome<u8> {
    let name = format!("replay:{}{}", replay.file, if replay.strict { "?strict" } else { "" });
    let reach = Reach::One(Target::from_text(&name).map_err(|error| Failure::misuse(error.message()))?);
    let found = Found { name, reach, kind: Kind::Url };
    let options = options(&replay.connection);
    if http.is_some() {
        return serve::serve(found, http, options, serve::SESSIONS, screen);
    }
    let played = Played(Arc::new(Mutex::new(Player::new(cassette, replay.strict))));
    let status = serve::serve(found, None, options.tap(played.clone()), 1, screen)?;
    let player = played.0.lock().unwrap_or_else(PoisonError::into_inner);
    // The bridge asks for all log messages, whatever its client asks for.
    let left = player.unplayed().into_iter().filter(|(_, request)| request != "logging/setLevel");
    if replay.strict { all_played(&left.collect::<Vec<_>>(), status, screen) } else { Ok(status) }
}

/// Shows the differences of two cassettes.
pub(super) fn diff(diff: &Diff, screen: &Screen) -> Outcome<u8> {
    let found = differences(&read(&diff.first)?, &read(&diff.second)?);
    tell(&found, diff.json, screen)
}

fn read(file: &str) -> Outcome<Cassette> {
    Cassette::read(file).map_err(|error| Failure::misuse(error.message()))
}

fn tell(found: &[Difference], as_json: bool, screen: &Screen) -> Outcome<u8> {
    if as_json {
        let one = |difference: &Difference| {
            json!({
                "request": difference.request,
                "lines": [difference.lines.0, difference.lines.1],
                "path": difference.path,
                "values": [difference.values.0, difference.values.1],
            })
        };
        screen.json(&found.iter().map(one).collect::<Vec<_>>());
    } else if found.is_empty() {
        screen.print("no differences");
    } else {
        let lines: Vec<_> = found.iter().map(|difference| one_line(&difference.to_string())).collect();
        screen.print(&lines.join("\n"));
    }
    if found.is_empty() { Ok(0) } else { Err(Failure::silent(FAILED)) }
}

/// Answers on the standard streams until the input ends: as it was recorded to a client that asks for the same, else by a
/// bridge.
fn on_streams(cassette: &Cassette, replay: &Replay, screen: &Screen) -> Outcome<u8> {
    let recorded = cassette.revision().and_then(|name| Revision::parse(&name));
    if let (Some(asked), Some(recorded)) = (&replay.connection.revision, recorded)
        && asked != recorded.as_str()
        && asked != recorded.era().as_str()
    {
        return bridged(cassette, replay, None, screen);
    }
    let opening = Opening::read().map_err(|error| serve::no_streams(&error))?;
    let mut player = Player::new(cassette, replay.strict);
    if let Some(opening) = opening {
        let asked = opening.revision().and_then(Revision::parse);
        if let (None, Some(asked), Some(recorded)) = (&replay.connection.revision, asked, recorded)
            && asked != recorded
            && !was_asked(cassette, &opening)
        {
            let file = &replay.file;
            if cfg!(not(unix)) {
                let hint = format!("--revision {asked} serves it to such clients");
                return Err(Failure::misuse(format!("{file}: recorded was {recorded}, asked is {asked}; {hint}")));
            }
            let adapted = "answers are adapted, without extensions and tasks";
            screen.line(&format!("{file}: recorded was {recorded}, asked is {asked}: {adapted}"));
            opening.put_back(|line| line).map_err(|error| serve::no_streams(&error))?;
            return bridged(cassette, replay, None, screen);
        }
        play(&mut player, opening.whole()).map_err(|error| serve::no_streams(&error))?;
    }
    if replay.strict { all_played(&player.unplayed(), 0, screen) } else { Ok(0) }
}

/// Says if the recorded client has opened its connection in the same way, whatever came of it.
fn was_asked(cassette: &Cassette, opening: &Opening) -> bool {
    cassette.requests().into_iter().any(|(_, method, params)| {
        let params: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
        method == opening.method() && revision_of(&params) == opening.revision()
    })
}

/// Answers each line.
fn play(player: &mut Player, mut input: impl BufRead) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    loop {
        let mut line = Vec::new();
        let length = (&mut input).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        if length > MAX_LINE {
            return Err(std::io::Error::other(format!("a line is longer than {} MiB", MAX_LINE >> 20)));
        }
        for message in player.hear(&Bytes::from(line)) {
            output.write_all(&message)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
}

/// Says which recorded requests nobody has made.
fn all_played(left: &[(usize, String)], status: u8, screen: &Screen) -> Outcome<u8> {
    for (line, request) in left {
        screen.line(&one_line(&format!("line {line}: {request} was not asked")));
    }
    if left.is_empty() {
        return Ok(status);
    }
    Err(Failure::new(FAILED, format!("{} recorded requests were not asked", left.len())))
}

/// Hears what is asked of a cassette behind a bridge.
#[derive(Clone)]
struct Played(Arc<Mutex<Player>>);

impl Tap for Played {
    fn frame(&self, by_client: bool, _on: &str, frame: &Bytes) {
        if by_client {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).hear(frame);
        }
    }
}

/// Sends the recorded requests to a live server, and shows the differences of its answers.
fn against(cassette: &Cassette, found: Found, replay: &Replay, screen: &Screen) -> Outcome<u8> {
    let Reach::One(target) = found.reach else {
        return Err(Failure::misuse(format!("{0}: a cassette is of one server: say which, {0}#NAME", found.name)));
    };
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let interrupts = Interrupts::with_termination();
        let asking = ask(cassette, &target, &found.name, replay, screen);
        interrupts.first(asking).await.unwrap_or_else(|| Err(Failure::silent(INTERRUPTED)))
    });
    runtime.shutdown_background();
    let live = outcome?;
    // A request that the cassette does not have was not made.
    let found: Vec<_> =
        differences(cassette, &live).into_iter().filter(|difference| difference.lines.0.is_some()).collect();
    tell(&found, replay.json, screen)
}

/// The recording of the same requests at a live server.
async fn ask(cassette: &Cassette, target: &Target, name: &str, replay: &Replay, screen: &Screen) -> Outcome<Cassette> {
    let tape = Tape::default();
    let mut head = Map::new();
    head.insert("target".into(), name.into());
    let headers = replay.connection.header.iter().map(|(_, value)| value.clone());
    let recorder = Recorder::new(tape.clone(), head, Redaction::new(headers));
    let recorder = recorder.map_err(|error| Failure::new(UNREACHABLE, error.to_string()))?;
    let mut options = options(&replay.connection).cache(CacheOptions::new().enabled(false)).tap(Taping(recorder));
    if let Some(revision) = cassette.revision().filter(|_| options.get_revision().is_none()) {
        options = options.revision(revision);
    }
    let options = with_login(options, target, screen).await;
    let client = Client::connect_with(target, &options, &handlers(cassette)).await;
    let client = client.map_err(|error| Failure::connecting(name, &error))?;
    for (_, method, params) in cassette.requests() {
        let mut params: Value = params.and_then(|params| params.to().ok()).unwrap_or_else(|| json!({}));
        // The client goes on with a question by itself, and says who it is.
        let is_round = params.get("requestState").is_some() || params.get("inputResponses").is_some();
        if is_round || ["initialize", "server/discover", "ping", "subscriptions/listen"].contains(&method.as_str()) {
            continue;
        }
        if let Value::Object(members) = &mut params {
            members.shift_remove("_meta");
        }
        // Its error is compared, too.
        let outcome = client.request(&method, Some(RawJson::from_value(&params)), &CallOptions::new()).await;
        if let Err(error) = outcome
            && matches!(error.kind(), ErrorKind::Closed | ErrorKind::Transport | ErrorKind::Auth)
        {
            client.close().await;
            return Err(Failure::requesting(&method, &error));
        }
    }
    client.close().await;
    let text = tape.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let text = String::from_utf8_lossy(&text);
    Cassette::parse(name, &text).map_err(|error| Failure::new(FAILED, error.message()))
}

/// Handlers that answer the server's questions as they were answered.
fn handlers(cassette: &Cassette) -> Handlers {
    let questions = Arc::new(Mutex::new(cassette.questions()));
    let declared = cassette.client_capabilities().unwrap_or_default();
    QUESTIONS.into_iter().fold(Handlers::new(), |handlers, (capability, method)| match declared.get(capability) {
        Some(value) => {
            let answers = Answers { method, questions: questions.clone() };
            handlers.answer(method, Arc::new(answers), value.clone())
        }
        None => handlers,
    })
}

struct Answers {
    method: &'static str,
    questions: Arc<Mutex<Vec<Question>>>,
}

impl Handler for Answers {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let params: Value = params.to().unwrap_or_default();
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let of_method = |question: &&Question| question.method == self.method;
        let message = |params: &Value| params.get("message").cloned();
        let known =
            questions.iter().filter(of_method).position(|question| message(&question.params) == message(&params));
        let at = questions.iter().enumerate().filter(|(_, question)| question.method == self.method);
        let at = at.map(|(at, _)| at).nth(known.unwrap_or(0));
        let Some(at) = at else {
            drop(questions);
            return reply.error(Error::rpc(-32601, "the cassette has no answer to this question"));
        };
        // The last one of its kind answers again.
        let is_last = questions.iter().filter(of_method).count() == 1;
        let answer = if is_last { questions[at].answer.clone() } else { questions.remove(at).answer };
        drop(questions);
        reply.result(answer);
    }
}

/// A cassette in memory.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Taping(Recorder);

impl Tap for Taping {
    fn frame(&self, by_client: bool, on: &str, frame: &Bytes) {
        // Beyond its bounds it has no more answers, which is a difference.
        let _ = self.0.message(by_client, on, frame);
    }

    fn token(&self, token: &str) {
        self.0.learn(token);
    }
}
