//! Attacks on a server that protects itself, over HTTP: each has its status and its challenge, nothing of a token is
//! seen anywhere, and a good request is answered afterwards. The authorization server is one of our own, which fails in
//! every way that there is.

mod attempt;
mod authority;
mod file;
mod token;

use crate::Outcome;
use crate::cases::Named;
use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::{Captures, fill, shorten};
use crate::report::Report;
use attempt::Attempt;
use authority::Authority;
use file::{Attack, File, Group, Sent};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most that a server may take of a body that does not end; the rest lies in buffers on the way.
const MOST_TAKEN: u64 = 32 << 20;
/// Longest time until the authorization server is asked again.
const AGAIN: Duration = Duration::from_secs(30);
/// Longest time for a server to end.
const END: Duration = Duration::from_secs(10);
/// Address of a mounted server, as its clients write it.
const OUTSIDE: &str = "https://mcp.example.com";
/// Groups that are run at once: most of the time they wait for an authorization server that does not answer.
const AT_ONCE: usize = 8;

/// Every attack as `GROUP/NAME`, with the languages that leave it out and why.
pub(crate) fn names(folder: &Path) -> Outcome<Vec<Named>> {
    let mut names = Vec::new();
    for (_, file) in file::read_all(folder)? {
        let skips: Vec<_> = file.skip.into_iter().collect();
        for group in file.groups {
            let named = |attack: &Attack| (format!("{}/{}", group.name, attack.name), skips.clone());
            names.extend(group.attacks.iter().map(named));
        }
    }
    Ok(names)
}

/// Run every attack, on the server that listens itself and on each of the language's mounts.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    let files = file::read_all(&launch::root()?.join("tests/cases/attacks"))?;
    let mut sieges = Vec::new();
    for (name, file) in &files {
        let mounts = file.mounts.get(language).into_iter().flatten().map(|kind| Some(kind.as_str()));
        let places: Vec<_> = [None].into_iter().chain(mounts).filter(|place| is_wanted(options, *place)).collect();
        for (place, group) in places.iter().flat_map(|place| file.groups.iter().map(move |group| (*place, group))) {
            let place_name = place.map(|kind| format!(" via {kind}")).unwrap_or_default();
            let title = format!("{language} {name}{place_name} {}", group.name);
            if let Some(reason) = file.skip.get(language) {
                report.skip(&title, reason);
                continue;
            }
            let attacks: Vec<&Attack> =
                group.attacks.iter().filter(|attack| options.wants(&format!("{title}: {}", attack.name))).collect();
            if !attacks.is_empty() {
                sieges.push(Planned { title, file, group, place, attacks });
            }
        }
    }
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(sieges.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(planned) = sieges.get(number) else { return };
                    let found = planned.carry_out(&command, options.timeout);
                    findings.lock().unwrap_or_else(PoisonError::into_inner).insert(number, found);
                }
            });
        }
    });
    for finding in findings.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().flatten() {
        if options.verbose {
            finding.log.iter().for_each(|line| println!("    | {line}"));
        }
        report.record(&finding.name, finding.outcome);
    }
    Ok(())
}

/// Returns true if `--mount` lets it through: `none` is the server that listens itself.
fn is_wanted(options: &Options, place: Option<&str>) -> bool {
    options.get("mount").is_none_or(|only| only == place.unwrap_or("none"))
}

/// The attacks of a group that are wanted, and where.
struct Planned<'a> {
    title: String,
    file: &'a File,
    group: &'a Group,
    /// Mount of the server; none: it listens itself.
    place: Option<&'a str>,
    attacks: Vec<&'a Attack>,
}

impl Planned<'_> {
    fn carry_out(&self, command: &[String], limit: Duration) -> Vec<Finding> {
        match Siege::start(command, self.file, self.group, self.place, limit) {
            Ok(siege) => siege.run(&self.title, &self.attacks),
            Err(reason) => vec![Finding { name: self.title.clone(), outcome: Err(reason), log: Vec::new() }],
        }
    }
}

/// Outcome of an attack.
struct Finding {
    name: String,
    outcome: Outcome,
    /// Output of the server, for an attack that failed.
    log: Vec<String>,
}

/// One server, and those who are at it.
struct Siege<'a> {
    authority: Authority,
    server: Listening,
    group: &'a Group,
    mounted: bool,
    captures: Captures,
    /// Texts that must not be seen.
    secrets: Vec<String>,
    limit: Duration,
}

impl<'a> Siege<'a> {
    fn start(command: &[String], file: &File, group: &'a Group, place: Option<&str>, limit: Duration) -> Outcome<Self> {
        let authority = Authority::start()?;
        authority.be(&group.authority);
        let mut captures = Captures::from([
            ("issuer".to_owned(), authority.issuer().into()),
            ("issuer_slashed".to_owned(), format!("{}/", authority.issuer()).into()),
            ("introspection".to_owned(), format!("{}/introspect", authority.issuer()).into()),
            ("evil".to_owned(), format!("{}/evil/keys", authority.origin()).into()),
            ("strange_key".to_owned(), authority.keys().strange.jwk()),
        ]);
        let mut auth = fill(&group.auth, &captures)?;
        let mut environment: Vec<(String, String)> =
            group.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(kind) = place {
            environment.push(("EVERYTHING_MOUNT".into(), kind.to_owned()));
            // It cannot know its own URL.
            auth["resource"] = format!("{OUTSIDE}/mcp").into();
        }
        environment.push(("EVERYTHING_AUTH".into(), auth.to_string()));
        let server = Listening::start(command, &environment)?;
        let host = server.endpoint.authority.clone();
        let path = server.endpoint.path.clone();
        let origin = if place.is_some() { OUTSIDE.to_owned() } else { format!("http://{host}") };
        let metadata = format!("{origin}/.well-known/oauth-protected-resource");
        // Mounted, the oldest transport is at the same URL.
        let (sse, messages) = if place.is_some() { (&*path, &*path) } else { ("/sse", "/messages") };
        captures.extend([
            ("resource".to_owned(), format!("{origin}{path}").into()),
            ("metadata".to_owned(), format!("{metadata}{path}").into()),
            ("sse_metadata".to_owned(), format!("{metadata}{sse}").into()),
            ("sse".to_owned(), sse.into()),
            ("messages".to_owned(), messages.into()),
            ("origin".to_owned(), origin.into()),
            ("host".to_owned(), host.into()),
        ]);
        let mut secrets = group.secrets.clone();
        for (name, recipe) in &file.tokens {
            let token = authority.keys().token(recipe, &captures)?;
            if let Some(known) = recipe.get("known") {
                authority.know(token.clone(), fill(known, &captures)?);
            }
            // The head of a token is no secret, and is in all of them.
            secrets.extend(token.split('.').skip(usize::from(token.contains('.'))).map(str::to_owned));
            captures.insert(name.clone(), token.into());
        }
        secrets.retain(|secret| secret.len() >= 12);
        Ok(Self { authority, server, group, mounted: place.is_some(), captures, secrets, limit })
    }

    fn run(mut self, title: &str, attacks: &[&Attack]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for attack in attacks {
            let outcome = self.attempt(attack);
            let log = if outcome.is_err() { self.server.log.lines() } else { Vec::new() };
            findings.push(Finding { name: format!("{title}: {}", attack.name), outcome, log });
        }
        let sent = self.authority.sent();
        let taken =
            if sent > MOST_TAKEN { Err(format!("it read {sent} bytes of a body that does not end")) } else { Ok(()) };
        let outcome = taken.and_then(|()| self.end());
        findings.push(Finding { name: format!("{title}: all is well afterwards"), outcome, log: Vec::new() });
        findings
    }

    fn attempt(&mut self, attack: &Attack) -> Outcome {
        self.authority.asked();
        let mut attempt = Attempt::new(&self.server.endpoint, self.mounted, self.limit, self.captures.clone());
        let mut outcome = Ok(());
        for (number, sent) in attack.requests.iter().enumerate() {
            if let Some(mode) = &sent.authority {
                self.authority.be(mode);
            }
            outcome = attempt.send(sent).and_then(|answer| self.nothing_seen("the answer", &answer.text));
            if let Err(reason) = &mut outcome {
                *reason = format!("request {}: {reason}", number + 1);
                break;
            }
        }
        // Keys that are known do while the authorization server is away: the good request is sent before it comes back.
        let good = if self.group.authority == "up" { self.good(&mut attempt) } else { Ok(()) };
        self.authority.be(&self.group.authority);
        outcome?;
        good?;
        let asked = self.authority.asked();
        if let Some(path) = attack.never_asked.iter().find(|path| asked.contains(path)) {
            return Err(format!("{path} was asked for"));
        }
        self.nothing_seen("standard error", &self.server.log.lines().join("\n"))
    }

    /// A good request is answered.
    fn good(&self, attempt: &mut Attempt<'_>) -> Outcome {
        let sent = json!({"token": self.group.good, "method": "tools/call", "status": 200,
            "params": {"name": "whoami", "arguments": {}}, "answer": {"result": {"structuredContent": {"subject": "$string"}}}});
        let sent: Sent = serde_json::from_value(sent).map_err(|error| error.to_string())?;
        let answer = attempt.send(&sent).map_err(|reason| format!("a good request afterwards: {reason}"))?;
        self.nothing_seen("the answer to a good request", &answer.text)
    }

    /// Checks that this server is well when the authorization server is; and that it ends, and has said nothing that it
    /// should not.
    fn end(mut self) -> Outcome {
        self.authority.be("up");
        let mut attempt = Attempt::new(&self.server.endpoint, self.mounted, self.limit, self.captures.clone());
        let until = Instant::now() + AGAIN;
        loop {
            match self.good(&mut attempt) {
                Ok(()) => break,
                Err(reason) if Instant::now() > until => return Err(reason),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        if !self.server.alive() {
            return Err("the server has ended".into());
        }
        let (log, secrets) = (self.server.log.clone(), std::mem::take(&mut self.secrets));
        let said = self.server.terminate(END)?;
        nothing_seen(&secrets, "standard output", &said)?;
        nothing_seen(&secrets, "standard error", &log.lines().join("\n"))?;
        if said.is_empty() { Ok(()) } else { Err(format!("on standard output: {}", shorten(&said))) }
    }

    fn nothing_seen(&self, place: &str, text: &str) -> Outcome {
        nothing_seen(&self.secrets, place, text)
    }
}

fn nothing_seen(secrets: &[String], place: &str, text: &str) -> Outcome {
    match secrets.iter().find(|secret| text.contains(secret.as_str())) {
        Some(secret) => Err(format!("a secret is in {place}: {}", shorten(secret))),
        None => Ok(()),
    }
}
