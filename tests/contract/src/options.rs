//! The command line: `contract <subcommand> --name value …`, the same few options everywhere.

use crate::Outcome;
use crate::script::Transport;
use std::time::Duration;

/// The four languages, in the order of every table.
pub const LANGUAGES: [&str; 4] = ["rust", "python", "node", "swift"];

/// Options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Words that are not options.
    pub words: Vec<String>,
    /// `--lang`: one of [`LANGUAGES`]; empty means `--server` says it all.
    pub language: String,
    /// `--server`: a command line instead of the language's fixture server.
    pub server: Option<String>,
    /// `--transport`: limit to one.
    pub transport: Option<Transport>,
    /// `--only`: a glob on names.
    pub only: Option<String>,
    /// `--timeout`: seconds any single wait may take.
    pub timeout: Duration,
    /// `--verbose`: print what passes, too, and the server's log of what fails.
    pub verbose: bool,
    /// Everything else, as name and value.
    rest: Vec<(String, String)>,
}

impl Options {
    /// Read the arguments after the subcommand. `known` names the subcommand's own options.
    pub fn parse(arguments: impl Iterator<Item = String>, known: &[&str]) -> Outcome<Self> {
        let mut options = Self {
            words: Vec::new(),
            language: String::new(),
            server: None,
            transport: None,
            only: None,
            timeout: Duration::from_secs(10),
            verbose: false,
            rest: Vec::new(),
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let Some(name) = argument.strip_prefix("--") else {
                options.words.push(argument);
                continue;
            };
            if name == "verbose" {
                options.verbose = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("--{name} needs a value"))?;
            match name {
                "lang" if LANGUAGES.contains(&value.as_str()) => options.language = value,
                "lang" => return Err(format!("--lang is one of {}", LANGUAGES.join(", "))),
                "server" => options.server = Some(value),
                "only" => options.only = Some(value),
                "transport" => {
                    options.transport = Some(match value.as_str() {
                        "stdio" => Transport::Stdio,
                        "http" => Transport::Http,
                        _ => return Err("--transport is stdio or http".into()),
                    });
                }
                "timeout" => {
                    let seconds = value.parse().map_err(|_| "--timeout is a number of seconds")?;
                    options.timeout = Duration::from_secs(seconds);
                }
                _ if known.contains(&name) => options.rest.push((name.to_owned(), value)),
                _ => return Err(format!("unknown option --{name}")),
            }
        }
        Ok(options)
    }

    /// A subcommand's own option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.rest.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A subcommand's own number.
    pub fn number(&self, name: &str, otherwise: usize) -> Outcome<usize> {
        self.get(name)
            .map_or(Ok(otherwise), |value| value.parse().map_err(|_| format!("--{name} is a number, not {value:?}")))
    }

    /// Returns true if `--only` lets this name through.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|glob| crate::pattern::like(glob, name))
    }
}
