//! Everything a task needs, made once and kept under the target folder.

mod across;
mod actionlint;
mod chromium;
mod keyring;
mod nginx;
mod node;
mod platforms;
mod postgres;
mod proxies;
mod python;
mod rust;
mod suite;
mod swift;
mod valkey;
mod windows;

use crate::place::Lang;
use crate::{report, tool};
use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use across::{Zig, packer, zig};
pub(crate) use actionlint::{actionlint, shellcheck};
pub(crate) use chromium::chromium;
pub(crate) use keyring::keyring;
pub(crate) use nginx::nginx;
pub(crate) use node::{checkers, install as npm_packages, newest as newest_node};
pub(crate) use platforms::{PLATFORMS, Platform, check as check_for, platforms};
pub(crate) use postgres::postgres;
pub(crate) use proxies::{Proxies, proxies};
pub(crate) use python::of as python_of;
pub(crate) use suite::{Peers, conformance, peers, pinned, pip_packages_of, servers};
pub(crate) use swift::{build_of_tests as build_of_swift_tests, command as swift_command, tests as swift_tests};
pub(crate) use valkey::valkey;
pub(crate) use windows::{TARGET as WINDOWS, Windows, windows};

/// State of a language after its setup.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Ready,
    /// This machine cannot have it: the reason, and how to get it.
    Skipped(String),
    Failed(String),
}

/// The languages that were asked for, and what became of each.
pub(crate) struct Made(Vec<(Lang, State)>);

impl Made {
    pub(crate) fn add(&mut self, lang: Lang, state: State) {
        self.0.push((lang, state));
    }

    pub(crate) fn state(&self, lang: Lang) -> Option<&State> {
        self.0.iter().find(|(l, _)| *l == lang).map(|(_, state)| state)
    }

    /// Returns the reason why a language is not there; none when it is.
    pub(crate) fn why_not(&self, lang: Lang) -> Option<&str> {
        match self.state(lang) {
            Some(State::Ready) => None,
            Some(State::Skipped(why) | State::Failed(why)) => Some(why),
            None => Some("it was not asked for"),
        }
    }

    /// Fails unless every language is there.
    pub(crate) fn all_ready(&self) -> Result<()> {
        let bad: Vec<String> =
            self.0.iter().filter_map(|(l, _)| self.why_not(*l).map(|why| format!("{l}: {why}"))).collect();
        if !bad.is_empty() {
            bail!("{}", bad.join("\n"));
        }
        Ok(())
    }
}

static AS_BUILT: AtomicBool = AtomicBool::new(false);

/// From now on [`languages`] trusts what is there.
pub(crate) fn use_as_built(yes: bool) {
    AS_BUILT.store(yes, Ordering::Relaxed);
}

/// Builds the packages of these languages and the examples written in them.
pub(crate) fn languages(langs: &[Lang]) -> Made {
    let (mut made, rest) = begin(langs);
    made.0.extend(rest.end());
    made
}

/// All but Swift, which needs no more of cargo.
pub(crate) fn begin(langs: &[Lang]) -> (Made, Rest) {
    if AS_BUILT.load(Ordering::Relaxed) {
        return (Made(langs.iter().map(|l| (*l, State::Ready)).collect()), Rest(None));
    }
    // The Swift toolchain is a long download: it arrives while Rust compiles.
    let toolchain = langs.contains(&Lang::Swift).then(|| std::thread::spawn(swift::provision));
    let missing = tool::missing(langs);
    missing.iter().for_each(report::note);
    let packages = packages_of(langs);
    let mut made = Vec::new();
    for lang in [Lang::Rust, Lang::Python, Lang::Node] {
        if langs.contains(&lang) {
            let result = match lang {
                Lang::Rust => rust::make(),
                Lang::Python => python::make(),
                _ => node::make(),
            };
            made.push((lang, noted(lang, result.map(|()| State::Ready))));
        }
    }
    drop(packages.join());
    let rest = toolchain.map(|toolchain| match toolchain.join() {
        Ok(Ok(State::Ready)) => swift::library().map(|()| State::Ready),
        Ok(other) => other,
        Err(_) => Ok(State::Failed("the download panicked".into())),
    });
    (Made(made), Rest(rest))
}

/// Swift's package, of which the library is there.
pub(crate) struct Rest(Option<Result<State>>);

impl Rest {
    pub(crate) fn end(self) -> Option<(Lang, State)> {
        let result = match self.0? {
            Ok(State::Ready) => swift::make().map(|()| State::Ready),
            other => other,
        };
        Some((Lang::Swift, noted(Lang::Swift, result)))
    }
}

fn noted(lang: Lang, result: Result<State>) -> State {
    let state = result.unwrap_or_else(|error| State::Failed(format!("{error:#}")));
    match &state {
        State::Ready => {}
        State::Skipped(why) => report::note(format!("{lang}: skipped: {why}")),
        State::Failed(why) => report::note(format!("{lang}: failed: {why}")),
    }
    state
}

/// Gets the packages that these languages need, while Rust compiles. An error is no end: the language's own step tries
/// again, and says it.
fn packages_of(langs: &[Lang]) -> std::thread::JoinHandle<()> {
    let langs = langs.to_vec();
    std::thread::spawn(move || {
        if langs.contains(&Lang::Python) {
            drop(python::venv());
        }
        if langs.contains(&Lang::Node) {
            drop(node::modules());
        }
    })
}

/// The tools of the Python environment.
pub(crate) fn python_tools() -> Result<()> {
    python::venv()
}

/// The npm packages of the repository.
pub(crate) fn node_modules() -> Result<()> {
    node::modules().map(drop)
}

/// `cargo xtask setup`: all of it.
pub(crate) fn run(langs: &[Lang]) -> Result<()> {
    tool::need(langs)?;
    let made = languages(langs);
    nginx();
    keyring();
    valkey();
    postgres();
    let mut failed = Vec::new();
    for (what, result) in [
        ("checkers", checkers()),
        ("conformance suite", conformance().map(drop)),
        ("others' servers and SDKs", peers().map(drop)),
    ] {
        if let Err(error) = result {
            failed.push(format!("{what}: {error:#}"));
        }
    }
    for lang in langs {
        if let Some(State::Failed(why)) = made.state(*lang) {
            failed.push(format!("{lang}: {why}"));
        }
    }
    report::clear();
    for lang in langs {
        let what = match made.state(*lang) {
            Some(State::Ready) => "ready".to_owned(),
            Some(State::Skipped(why)) => format!("skipped: {why}"),
            _ => "failed".to_owned(),
        };
        report::line(format!("{lang:<7} {what}"));
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}
