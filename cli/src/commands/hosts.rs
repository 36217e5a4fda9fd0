use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tricorn::ErrorKind;
use tricorn::bridge::Reason;
use tricorn::client::{Client, ClientOptions, Events, Handlers, Stderr, Target};

use crate::connection::runtime;
use crate::failure::{Failure, Outcome};
use crate::hosts::{self, Entry, Kind, Places};
use crate::launcher::Launcher;
use crate::output::{Screen, shown};
use crate::targets::{self, Elsewhere, Found, Reach};

/// Longest time that a server has to start and to answer, and those that do so at the same time.
const ANSWER: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 8;
/// Time that the last line of a server that has ended may take.
const QUIET: Duration = Duration::from_millis(50);

/// Installs a server in a host, removes it there, or lists what hosts have.
pub(super) fn hosts(command: &hosts::Command, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let places = places(launcher)?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let check = |entries: &[Entry]| check(entries, screen);
    let status = hosts::run(command, &places, Some(&check), &mut out, &mut err);
    for line in String::from_utf8_lossy(&err).lines() {
        screen.line(&shown(line));
    }
    if !out.is_empty() {
        screen.print(screen.for_output(&String::from_utf8_lossy(&out)).trim_end_matches('\n'));
    }
    Ok(status)
}

/// The folders of this user, and the words that start this command.
pub(crate) fn places(launcher: &Launcher) -> Outcome<Places> {
    let own = match launcher.command.as_slice() {
        [] => std::env::current_exe().ok().map(|path| path.to_string_lossy().into_owned()).into_iter().collect(),
        words => words.to_vec(),
    };
    let mut places = Places::of_this_process(own).map_err(Failure::misuse)?;
    places.python = launcher.python.clone();
    Ok(places)
}

/// The target that an entry of a host's configuration is. Placeholders are filled from the environment, as far as they
/// name variables of it.
pub(crate) fn target(entry: &Entry) -> Target {
    match &entry.kind {
        Kind::Stdio { command, args, env, cwd } => Target::Command {
            command: filled(command),
            args: args.iter().map(|text| filled(text)).collect(),
            env: env.iter().map(|(name, value)| (name.clone(), Some(filled(value)))).collect(),
            cwd: cwd.as_deref().map(filled),
            stderr: Stderr::Event,
        },
        Kind::Http { url, headers } => Target::Url {
            url: filled(url),
            headers: headers.iter().map(|(name, value)| (name.clone(), filled(value))).collect(),
        },
    }
}

/// `${env:NAME}` and `${NAME}` with the values of this environment; other placeholders stay.
fn filled(text: &str) -> String {
    fill(text, |name| std::env::var_os(name))
}

fn fill(text: &str, variable: impl Fn(&str) -> Option<OsString>) -> String {
    let mut rest = text;
    let mut all = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        all.push_str(before);
        let Some((name, next)) = after.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match variable(name.strip_prefix("env:").unwrap_or(name)) {
            Some(value) => all.push_str(&value.to_string_lossy()),
            None => all.extend(["${", name, "}"]),
        }
        rest = next;
    }
    all.push_str(rest);
    all
}

/// Connects to each server, some at a time, and says what answered.
fn check(entries: &[Entry], screen: &Screen) -> Vec<Result<String, String>> {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return vec![Err(failure.message); entries.len()],
    };
    if screen.can_move() && !entries.is_empty() {
        screen.line(&screen.error_style().dim(&format!("starting {} servers; --no-check only lists", entries.len())));
    }
    let mut results = vec![Err("it was not started".to_owned()); entries.len()];
    runtime.block_on(async {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let mut starting = JoinSet::new();
        for (at, entry) in entries.iter().cloned().enumerate() {
            let turns = turns.clone();
            starting.spawn(async move {
                let _turn = turns.acquire().await;
                (at, answered(&entry).await)
            });
        }
        while let Some(Ok((at, result))) = starting.join_next().await {
            if let Some(place) = results.get_mut(at) {
                *place = result;
            }
        }
    });
    runtime.shutdown_background();
    results
}

/// Connects, and says what answered.
async fn answered(entry: &Entry) -> Result<String, String> {
    let target = target(entry);
    let options = ClientOptions::new().restart(false);
    let found = Found { name: entry.name.clone(), reach: Reach::One(target.clone()), kind: targets::Kind::Command };
    let said = Arc::<Said>::default();
    let handlers = Handlers::new().events(said.clone());
    let connected = tokio::select! {
        connected = tokio::time::timeout(ANSWER, Client::connect_with(&target, &options, &handlers)) => connected,
        failure = said.elsewhere.serves(&found) => return Err(failure.message),
    };
    let client = match connected {
        Ok(Ok(client)) => client,
        // It is there, and a login is its host's affair.
        Ok(Err(error)) if error.kind() == ErrorKind::Auth => return Ok("answers, and wants a login".to_owned()),
        Ok(Err(error)) => {
            let message = Failure::connecting(&entry.name, &error).message;
            return Err(if matches!(error.reason(), Some(Reason::Ended(_))) {
                said.after(message).await
            } else {
                message
            });
        }
        Err(_) => return Err(format!("no answer in {} s", ANSWER.as_secs())),
    };
    let info: Value = client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
    client.close().await;
    let name = ["name", "version"].map(|member| info[member].as_str().unwrap_or_default()).join(" ");
    Ok(if name.trim().is_empty() { "answers".to_owned() } else { name.trim().to_owned() })
}

/// Looks at what a program writes before it answers.
#[derive(Default)]
struct Said {
    elsewhere: Elsewhere,
    /// The last line of its standard error, which often says why it has ended.
    last: Mutex<String>,
}

impl Said {
    /// The message with that line, which may come a little later than the end.
    async fn after(&self, message: String) -> String {
        tokio::time::sleep(QUIET).await;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_empty() { message } else { format!("{message}: {last}") }
    }
}

impl Events for Said {
    fn stderr(&self, line: &str) {
        self.elsewhere.look(line);
        if !line.trim().is_empty() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = line.trim().to_owned();
        }
    }

    fn warning(&self, message: &str) {
        // Lines of its output that are no messages.
        self.elsewhere.look(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_as_far_as_they_are_known() {
        let known = |name: &str| (name == "KEY").then(|| OsString::from("k"));
        for (text, expected) in
            [("${env:KEY}/${KEY}", "k/k"), ("${input:key} ${KEY", "${input:key} ${KEY"), ("$KEY ${}", "$KEY ${}")]
        {
            assert_eq!(fill(text, known), expected, "{text}");
        }
    }
}
