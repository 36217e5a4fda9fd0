//! One module for each command.

mod call;
mod cassettes;
mod complete;
pub(crate) mod doctor;
mod hosts;
mod inspect;
mod list;
mod listen;
mod login;
mod new;
mod pack;
mod ping;
mod prompt;
mod read;
mod run;
mod tasks;

use serde_json::{Map, Value};
use tricorn::CallOptions;
use tricorn::protocol::Kind;

use crate::arguments::{self, Command};
use crate::connection::{Hears, Session, run as connected};
use crate::failure::{Failure, Outcome};
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::schema::Given;

/// Does what the command line asks for, and gives the status.
pub(crate) fn run(command: Command, launcher: Launcher, screen: &Screen) -> Outcome<u8> {
    match command {
        Command::List(list) => {
            connected(&list.target, &list.connection, Hears::Nothing, &launcher, screen, async |session| {
                list::list(session, &list).await
            })
        }
        Command::Call(call) => {
            let (Some(target), Some(tool)) = (&call.target, &call.tool) else {
                arguments::print_help("call", &launcher, screen);
                return Ok(0);
            };
            let hears = if call.help { Hears::Nothing } else { Hears::All };
            // Standard input may be waited for, and files may be missing: before there is a connection.
            let given = if call.help { Given::default() } else { Given::read(&call.arguments)? };
            connected(target, &call.connection, hears, &launcher, screen, async |session| {
                call::call(session, tool, given, &call).await
            })
        }
        Command::Read(read) => {
            connected(&read.target, &read.connection, Hears::All, &launcher, screen, async |session| {
                read::read(session, &read).await
            })
        }
        Command::Prompt(prompt) => {
            let given = Given::read(&prompt.arguments)?.into_texts(&prompt.name)?;
            connected(&prompt.target, &prompt.connection, Hears::All, &launcher, screen, async |session| {
                prompt::prompt(session, given, &prompt).await
            })
        }
        Command::Complete(complete) => {
            connected(&complete.target, &complete.connection, Hears::Nothing, &launcher, screen, async |session| {
                complete::complete(session, &complete).await
            })
        }
        Command::Listen(listen) => {
            connected(&listen.target, &listen.connection, Hears::All, &launcher, screen, async |session| {
                listen::listen(session, &listen).await
            })
        }
        Command::Ping(ping) => {
            connected(&ping.target, &ping.connection, Hears::Nothing, &launcher, screen, async |session| {
                ping::ping(session, &ping).await
            })
        }
        Command::Tasks(tasks) => {
            connected(&tasks.target, &tasks.connection, Hears::All, &launcher, screen, async |session| {
                tasks::tasks(session, &tasks).await
            })
        }
        Command::Pack(pack) => pack::pack(&pack, &launcher, screen),
        Command::New(new) => new::new(&new, screen),
        Command::Login(login) => login::login(&login, &launcher, screen),
        Command::Logout(logins) => login::logins(login::Wish::LogOut, &logins, &launcher, screen),
        Command::Whoami(logins) => login::logins(login::Wish::Show, &logins, &launcher, screen),
        Command::Token(logins) => login::logins(login::Wish::Token, &logins, &launcher, screen),
        Command::Doctor(doctor) => doctor::doctor(&doctor, &launcher, screen),
        Command::Run(run) => run::run(&run, &launcher, screen),
        Command::Record(record) => cassettes::record(record, &launcher, screen),
        Command::Replay(replay) => cassettes::replay(&replay, &launcher, screen),
        Command::Diff(diff) => cassettes::diff(&diff, screen),
        Command::Inspect(inspect) => inspect::inspect(&inspect, &launcher, screen),
        Command::Hosts(command) => hosts::hosts(&command, &launcher, screen),
        Command::Completions(completions) => {
            let mut script = Vec::new();
            let mut definition = arguments::definition(&launcher);
            clap_complete::generate(completions.shell, &mut definition, launcher.name(), &mut script);
            screen.print(&String::from_utf8_lossy(&script));
            Ok(0)
        }
    }
}

pub(crate) use hosts::{places, target as target_of};

type Entry = Map<String, Value>;

/// Everything that the server lists of this kind; nothing where it says that it has none.
async fn listed(session: &Session, kind: Kind) -> Outcome<Vec<Entry>> {
    let (capability, what) = match kind {
        Kind::Tool => ("tools", "tools"),
        Kind::Resource => ("resources", "resources"),
        Kind::ResourceTemplate => ("resources", "resource templates"),
        Kind::Prompt => ("prompts", "prompts"),
        _ => return Ok(Vec::new()),
    };
    if !session.client.capabilities().has(capability) {
        return Ok(Vec::new());
    }
    let outcome = session.client.pages(kind, &CallOptions::new()).all().await;
    // Servers that have resources may know no templates.
    match outcome {
        Err(error) if kind == Kind::ResourceTemplate && error.code() == Some(-32601) => Ok(Vec::new()),
        outcome => outcome.map_err(|error| Failure::requesting(&format!("listing {what}"), &error)),
    }
}

/// A text of an entry.
fn text<'a>(entry: &'a Entry, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}
