//! The option `record`: what passes between a client and its server, kept as a cassette.
#![expect(deprecated, reason = "targets may be of the oldest transport")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::cassette::{Recorder, Redaction};
use crate::client::{ClientOptions, Events, Handlers, Tap, Target};
use crate::error::{Error, Result, shortened};

/// The other side of the client.
pub(super) enum To<'a> {
    Target(&'a Target),
    Memory,
}

/// The options with the recorder that they ask for. The file is made now.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) when the file cannot be written, or is the cassette that is played.
pub(super) fn recording(options: &ClientOptions, to: To<'_>, handlers: &Handlers) -> Result<ClientOptions> {
    let mut options = options.clone();
    let Some(file) = options.record.take() else { return Ok(options) };
    if let To::Target(Target::Replay { file: played, .. }) = &to
        && is_same_file(&file, played)
    {
        let why = "is the cassette that is played: record to another file";
        return Err(Error::misuse(format!("client option \"record\": {file:?} {why}")));
    }
    let redaction = if options.redact { Redaction::new(secrets(&options, &to)) } else { Redaction::off() };
    let recorder = Recorder::create(&file, head(&to), redaction)?;
    let (next, events) = (options.taps(), handlers.heard().clone());
    Ok(options.tap(Recording { recorder, next, events }))
}

fn is_same_file(a: &str, b: &str) -> bool {
    match (Path::new(a).canonicalize(), Path::new(b).canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

fn head(to: &To<'_>) -> Map<String, Value> {
    let (transport, target) = match to {
        To::Target(Target::Url { url, .. } | Target::Sse { url, .. }) => {
            let bare = url.split(['?', '#']).next().unwrap_or_default();
            let (scheme, rest) = bare.split_once("://").unwrap_or(("", bare));
            let authority = rest.split('/').next().unwrap_or_default();
            // Users and passwords stand before the host.
            let rest = authority.rfind('@').map_or(rest, |at| &rest[at + 1..]);
            let separator = if scheme.is_empty() { "" } else { "://" };
            ("http", format!("{scheme}{separator}{rest}"))
        }
        To::Target(Target::Command { command, args, .. }) => {
            let program = Path::new(command).file_name().map_or_else(|| command.into(), |name| name.to_string_lossy());
            // Further arguments may hold secrets, and programs of an interpreter are long.
            let secrets = Redaction::secrets_among(args);
            let is_name =
                |arg: &&String| !arg.starts_with('-') && !arg.contains(char::is_whitespace) && !secrets.contains(arg);
            let what = args.iter().find(is_name).map(|arg| format!(" {}", shortened(arg, 80))).unwrap_or_default();
            ("stdio", format!("{program}{what}"))
        }
        To::Target(Target::Replay { file, .. }) => ("memory", format!("replay:{file}")),
        To::Memory => ("memory", String::new()),
    };
    let mut head = Map::new();
    head.insert("transport".into(), transport.into());
    if !target.is_empty() {
        head.insert("target".into(), target.into());
    }
    head
}

/// Values of the options and of the target that nobody else may see.
fn secrets(options: &ClientOptions, to: &To<'_>) -> Vec<String> {
    let mut secrets: Vec<String> = options.headers.values().cloned().collect();
    secrets.extend(options.proxy.iter().flat_map(|proxy| Redaction::secrets_of(proxy)));
    match to {
        To::Target(Target::Url { url, headers } | Target::Sse { url, headers }) => {
            secrets.extend(headers.values().cloned());
            secrets.extend(Redaction::secrets_of(url));
        }
        To::Target(Target::Command { args, env, .. }) => {
            secrets.extend(env.values().flatten().cloned());
            secrets.extend(Redaction::secrets_among(args));
        }
        _ => {}
    }
    #[cfg(feature = "auth")]
    if let Some(auth) = &options.auth {
        let identity = auth.identity.as_ref();
        let own = [&auth.client_secret, &auth.private_key, &auth.assertion, &auth.token].into_iter();
        let theirs = identity.into_iter().flat_map(|identity| [&identity.client_secret, &identity.token]);
        secrets.extend(own.chain(theirs).flatten().cloned());
    }
    secrets
}

/// Writes what passes, and shows it to the tap that there was.
struct Recording {
    recorder: Recorder,
    next: Option<Arc<dyn Tap>>,
    events: Arc<dyn Events>,
}

impl Recording {
    fn told(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.events.warning(error.message());
        }
    }
}

impl Tap for Recording {
    fn frame(&self, by_client: bool, on: &str, frame: &Bytes) {
        self.told(self.recorder.message(by_client, on, frame));
        if let Some(next) = &self.next {
            next.frame(by_client, on, frame);
        }
    }

    fn status(&self, on: &str, status: u16) {
        if !(200..300).contains(&status) {
            self.told(self.recorder.event("http", &format!("{status} on {on}")));
        }
        if let Some(next) = &self.next {
            next.status(on, status);
        }
    }

    fn token(&self, token: &str) {
        self.recorder.learn(token);
        if let Some(next) = &self.next {
            next.token(token);
        }
    }
}
