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
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a server may take of a body that does not end; the rest is what lies in buffers on the way.
const MOST_TAKEN: u64 = 32 << 20;
/// How long it may take until the authorization server is asked again.
const AGAIN: Duration = Duration::from_secs(30);
/// How long a server has to end.
const END: Duration = Duration::from_secs(10);

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

/// Run every attack.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    for (name, file) in file::read_all(&launch::root()?.join("tests/cases/attacks"))? {
        for group in &file.groups {
            let title = format!("{language} {name} {}", group.name);
            if let Some(reason) = file.skip.get(language) {
                report.skip(&title, reason);
                continue;
            }
            let wanted: Vec<&Attack> =
                group.attacks.iter().filter(|attack| options.wants(&format!("{title}: {}", attack.name))).collect();
            if wanted.is_empty() {
                continue;
            }
            match Siege::start(&command, &file, group, options.timeout) {
                Ok(siege) => siege.run(&title, &wanted, options, report),
                Err(reason) => report.fail(&title, &reason),
            }
        }
    }
    Ok(())
}

/// One server, and those who are at it.
struct Siege<'a> {
    authority: Authority,
    server: Listening,
    group: &'a Group,
    captures: Captures,
    /// What must not be seen.
    secrets: Vec<String>,
    limit: Duration,
}

impl<'a> Siege<'a> {
    fn start(command: &[String], file: &File, group: &'a Group, limit: Duration) -> Outcome<Self> {
        let authority = Authority::start()?;
        authority.be(&group.authority);
        let mut captures = Captures::from([
            ("issuer".to_owned(), authority.issuer().into()),
            ("issuer_slashed".to_owned(), format!("{}/", authority.issuer()).into()),
            ("introspection".to_owned(), format!("{}/introspect", authority.issuer()).into()),
            ("evil".to_owned(), format!("{}/evil/keys", authority.origin()).into()),
            ("strange_key".to_owned(), authority.keys().strange.jwk()),
        ]);
        let auth = fill(&group.auth, &captures)?;
        let mut environment: Vec<(String, String)> =
            group.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        environment.push(("EVERYTHING_AUTH".into(), auth.to_string()));
        let server = Listening::start(command, &environment)?;
        let host = server.endpoint.authority.clone();
        let path = server.endpoint.path.clone();
        let metadata = format!("http://{host}/.well-known/oauth-protected-resource{path}");
        captures.extend([
            ("resource".to_owned(), auth.get("resource").unwrap_or(&Value::Null).clone()),
            ("metadata".to_owned(), metadata.into()),
            ("sse_metadata".to_owned(), format!("http://{host}/.well-known/oauth-protected-resource/sse").into()),
            ("origin".to_owned(), format!("http://{host}").into()),
            ("host".to_owned(), host.into()),
        ]);
        if captures["resource"].is_null() {
            captures.insert("resource".into(), server.url.clone().into());
        }
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
        Ok(Self { authority, server, group, captures, secrets, limit })
    }

    fn run(mut self, title: &str, attacks: &[&Attack], options: &Options, report: &mut Report) {
        for attack in attacks {
            let outcome = self.attempt(attack);
            if outcome.is_err() && options.verbose {
                self.server.log.lines().iter().for_each(|line| println!("    | {line}"));
            }
            report.record(&format!("{title}: {}", attack.name), outcome);
        }
        let limit = self.authority.sent();
        if limit > MOST_TAKEN {
            report.fail(title, &format!("it read {limit} bytes of a body that does not end"));
        }
        report.record(&format!("{title}: all is well afterwards"), self.end());
    }

    fn attempt(&mut self, attack: &Attack) -> Outcome {
        self.authority.asked();
        let mut attempt = Attempt::new(&self.server.endpoint, self.limit, self.captures.clone());
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

    /// When the authorization server is well, so is this one; and it ends, and has said nothing that it should not.
    fn end(mut self) -> Outcome {
        self.authority.be("up");
        let mut attempt = Attempt::new(&self.server.endpoint, self.limit, self.captures.clone());
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
