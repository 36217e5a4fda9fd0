use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tricorn::client::{Client, ClientOptions, Events, Handlers, Stderr, Target};

use crate::connection::runtime;
use crate::failure::{Failure, Outcome};
use crate::hosts::{self, Entry, Kind, Places};
use crate::launcher::Launcher;
use crate::output::{Screen, shown};
use crate::targets::{self, Elsewhere, Found, Reach};

/// Longest time that a server has to start and to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Installs a server in a host, removes it there, or lists what hosts have.
pub(super) fn hosts(command: &hosts::Command, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let places = places(launcher)?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
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

/// Connects, and says what answered.
fn check(entry: &Entry) -> Result<String, String> {
    let target = target(entry);
    let options = ClientOptions::new().restart(false);
    let runtime = runtime().map_err(|failure| failure.message)?;
    let found = Found { name: entry.name.clone(), reach: Reach::One(target), kind: targets::Kind::Command };
    let Reach::One(target) = &found.reach else { return Err(format!("{}: no target", entry.name)) };
    let outcome = runtime.block_on(async {
        let said = Arc::<Said>::default();
        let handlers = Handlers::new().events(said.clone());
        let connecting = async {
            let client = Client::connect_with(target, &options, &handlers).await?;
            let info: Value = client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
            client.close().await;
            let texts = ["name", "version"].map(|member| info[member].as_str().unwrap_or_default());
            Ok::<_, tricorn::Error>(texts.join(" ").trim().to_owned())
        };
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(ANSWER, connecting) => outcome,
            failure = said.0.serves(&found) => return Err(failure.message),
        };
        match outcome {
            Ok(Ok(name)) if name.is_empty() => Ok("answers".to_owned()),
            Ok(Ok(name)) => Ok(name),
            Ok(Err(error)) => Err(Failure::connecting(&entry.name, &error).message),
            Err(_) => Err(format!("no answer in {} s", ANSWER.as_secs())),
        }
    });
    runtime.shutdown_background();
    outcome
}

/// Looks at what a program writes before it answers.
#[derive(Default)]
struct Said(Elsewhere);

impl Events for Said {
    fn stderr(&self, line: &str) {
        self.0.look(line);
    }

    fn warning(&self, message: &str) {
        // Lines of its output that are no messages.
        self.0.look(message);
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
