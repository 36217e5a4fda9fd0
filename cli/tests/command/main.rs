//! The command from outside: the cases of `tests/cli`, and what it does in a terminal.
//!
//! `TRICORN_COMMAND` names another command than this crate's binary, such as the script of the Python package, with
//! arguments that come before the others; `TRICORN_EVERYTHING` the fixture server, which else is looked for beside the
//! binary and in the release folder; `TRICORN_PYTHON` a Python that has our package; `TRICORN_NODE_MODULES` a folder with
//! our package for Node.js and zod; `TRICORN_NODE` the folder of a Node.js; `TRICORN_PROVIDER` the program of
//! `tests/auth/provider`; `TRICORN_MCPB` the program of npm's `@anthropic-ai/mcpb`. With `TRICORN_BLESS` the cases are
//! written anew with what the command prints.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bridges;
mod cases;
mod cassettes;
mod conversations;
mod groups;
mod http;
mod logins;
mod place;
mod projects;
mod reload;
mod reports;
mod running;
mod terminal;
