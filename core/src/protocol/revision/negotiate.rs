//! Negotiation of the revision by a client: probe with `server/discover`, fall back to `initialize`.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::legacy::{self, Answer};
use super::{Era, Revision, modern};
use crate::error::{Error, ErrorKind, Reason, shortened};
use crate::jsonrpc::{Id, RawJson, code};
use crate::model::{Capabilities, meta};
use crate::protocol::revision::object;
use crate::protocol::{Facts, PeerFacts};

/// The most versions that a server may name.
const MAX_VERSIONS: usize = 1000;

/// Next request to send, or the outcome.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send this request and feed its answer back.
    Ask { method: &'static str, revision: Revision, timeout: Option<Duration> },
    /// Negotiated.
    Opened(Answer),
    /// The two sides have no common ground.
    Failed(Error),
    /// Nothing to do: an answer that no longer matters.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Probe { revision: Revision, again: bool },
    Initialize,
}

/// The client's side of opening a connection, as a state machine.
#[derive(Debug)]
pub(crate) struct Negotiation {
    stage: Stage,
    /// Only this revision will do.
    pinned: Option<Revision>,
    probe_timeout: Duration,
    /// Era that an earlier connection has shown.
    known: Option<Era>,
    probe_id: Option<Id>,
    initialize_id: Option<Id>,
    /// `initialize` was refused, and the server asked for what it speaks instead.
    refused: bool,
    /// The reason for `initialize` may not hold the next time: silence, or a failure inside the server.
    doubtful: bool,
    /// Outcome of the probe, where that may be why `initialize` fails, too.
    before: Option<String>,
}

impl Negotiation {
    pub(crate) fn new(pinned: Option<Revision>, probe_timeout: Duration) -> Self {
        let stage = Stage::Probe { revision: pinned.unwrap_or(Revision::NEWEST), again: false };
        Self {
            stage,
            pinned,
            probe_timeout,
            known: None,
            probe_id: None,
            initialize_id: None,
            refused: false,
            doubtful: false,
            before: None,
        }
    }

    /// The first question. `known`: what an earlier connection has shown. A server known to be modern is not opened
    /// as a legacy one because it once says something that no modern server says.
    pub(crate) fn start(&mut self, facts: &Facts, known: Option<Era>) -> Step {
        self.known = known;
        let legacy = match self.pinned {
            Some(revision) => revision.era() == Era::Legacy,
            None => {
                let speaks = |era| facts.revisions.iter().any(|r| r.era() == era);
                !speaks(Era::Modern) || (known == Some(Era::Legacy) && speaks(Era::Legacy))
            }
        };
        if legacy { self.initialize(facts) } else { self.probe(self.pinned.unwrap_or(Revision::NEWEST), false) }
    }

    /// Remembers under which id the question went out.
    pub(crate) fn asked(&mut self, id: Id) {
        match self.stage {
            Stage::Probe { .. } => self.probe_id = Some(id),
            Stage::Initialize => self.initialize_id = Some(id),
        }
    }

    /// The questions in the order in which they were asked. An error that names none is about the first that waits.
    pub(crate) fn asked_ids(&self) -> impl Iterator<Item = &Id> {
        self.probe_id.iter().chain(&self.initialize_id)
    }

    /// Returns true if an answer with this id belongs here.
    pub(crate) fn owns(&self, id: &Id) -> bool {
        self.asked_ids().any(|asked| asked == id)
    }

    /// Returns true if what was found out holds for the server, and not just for this connection.
    pub(crate) fn is_certain(&self) -> bool {
        !self.doubtful
    }

    /// Returns true if the server has not said anything yet, so that its end may have been the probe's fault.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(self.stage, Stage::Probe { again: false, .. }) && self.may_fall_back()
    }

    fn may_fall_back(&self) -> bool {
        self.pinned.is_none() && self.known != Some(Era::Modern)
    }

    fn probe(&mut self, revision: Revision, again: bool) -> Step {
        self.stage = Stage::Probe { revision, again };
        let is_a_guess = !again && self.known != Some(Era::Modern);
        Step::Ask { method: "server/discover", revision, timeout: is_a_guess.then_some(self.probe_timeout) }
    }

    fn initialize(&mut self, facts: &Facts) -> Step {
        if self.refused {
            let message = "the server refuses \"initialize\", and does not say which revision it speaks";
            return Step::Failed(Error::new(ErrorKind::Unsupported, message));
        }
        if self.initialize_id.is_some() {
            // Asked already: the probe's answer came late.
            return Step::Wait;
        }
        let newest = facts.revisions.iter().rev().copied().find(|r| r.era() == Era::Legacy);
        match self.pinned.filter(|r| r.era() == Era::Legacy).or(newest) {
            Some(revision) => {
                self.stage = Stage::Initialize;
                Step::Ask { method: "initialize", revision, timeout: None }
            }
            None => Step::Failed(Error::new(ErrorKind::Unsupported, "the server is legacy and this client is not")),
        }
    }

    /// The probe is answered by something that no modern server says.
    fn fall_back(&mut self, facts: &Facts, why: &str) -> Step {
        match self.pinned {
            Some(revision) => Step::Failed(Error::new(
                ErrorKind::Unsupported,
                format!("the server does not speak revision {revision}: it answered server/discover with {why}"),
            )),
            None if !self.may_fall_back() => Step::Failed(Error::new(
                ErrorKind::Unsupported,
                format!("the server was a modern one before, and now it answered server/discover with {why}"),
            )),
            None => {
                self.before = (why != NOT_FOUND).then(|| why.to_owned());
                self.initialize(facts)
            }
        }
    }

    /// No way to open is left. The attempts before are named, too.
    fn failed(&self, error: Error) -> Step {
        Step::Failed(match &self.before {
            Some(before) => tried_both(&error, before),
            None => error,
        })
    }

    /// A result for one of our questions.
    pub(crate) fn answered(&mut self, facts: &Facts, id: &Id, result: &RawJson) -> Step {
        if self.probe_id.as_ref() == Some(id) {
            // Also when the probe's time was up and `initialize` is under way: a slow modern server stays modern.
            return self.discovered(facts, result);
        }
        match legacy::read_answer(facts, result) {
            Ok(answer) => match self.pinned.filter(|pinned| *pinned != answer.revision) {
                Some(pinned) => Step::Failed(Error::new(
                    ErrorKind::Unsupported,
                    format!("the server speaks revision {}, asked for was {pinned}", answer.revision),
                )),
                None => Step::Opened(answer),
            },
            Err(error) => Step::Failed(error),
        }
    }

    fn discovered(&mut self, facts: &Facts, result: &RawJson) -> Step {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct DiscoverResult<'a> {
            #[serde(borrow)]
            supported_versions: Vec<&'a RawValue>,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(default)]
            instructions: Option<String>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
            #[serde(borrow, default)]
            server_info: Option<&'a RawValue>,
            #[serde(borrow, default)]
            result_type: Option<&'a RawValue>,
        }
        let Ok(read) = result.borrow::<DiscoverResult<'_>>() else {
            return self.fall_back(facts, "no DiscoverResult");
        };
        if let Some(other) = read.result_type.map(RawValue::get).filter(|own| *own != "\"complete\"") {
            let message =
                format!("result of server/discover: resultType: expected \"complete\", got {}", shortened(other, 60));
            return Step::Failed(Error::new(ErrorKind::PeerMisbehaved, message));
        }
        let versions = read.supported_versions.len();
        if versions > MAX_VERSIONS {
            let message = format!("result of server/discover: {versions} supportedVersions, {MAX_VERSIONS} at most");
            return Step::Failed(Error::new(ErrorKind::PeerMisbehaved, message));
        }
        let offered = read.supported_versions.iter().map(|name| serde_json::from_str(name.get()));
        let Ok(offered) = offered.collect::<std::result::Result<Vec<String>, _>>() else {
            return self.fall_back(facts, "no DiscoverResult");
        };
        let in_meta = read
            .meta
            .and_then(|m| object::members(m.get()).into_iter().find(|(k, _)| k == meta::SERVER_INFO).map(|(_, v)| v));
        let info = in_meta.or(read.server_info).map(|raw| result.slice(raw));
        let capabilities =
            read.capabilities.map_or_else(Capabilities::default, |raw| Capabilities::new(result.slice(raw)));
        let peer = Arc::new(PeerFacts { info, capabilities });
        let (instructions, result) = (read.instructions.clone(), result.clone());
        let opened = |revision| Step::Opened(Answer { revision, peer, instructions, result });
        self.choose(facts, &offered, opened)
    }

    /// The newest modern revision that both sides speak, else `initialize` when a legacy one is mutual.
    fn choose(&mut self, facts: &Facts, offered: &[String], opened: impl FnOnce(Revision) -> Step) -> Step {
        let mutual = |era: Era| {
            facts.revisions.iter().rev().copied().find(|r| {
                r.era() == era
                    && self.pinned.is_none_or(|pinned| pinned == *r)
                    && offered.iter().any(|name| name == r.as_str())
            })
        };
        match (mutual(Era::Modern), mutual(Era::Legacy)) {
            (Some(revision), _) => opened(revision),
            (None, Some(_)) => self.initialize(facts),
            (None, None) => {
                let asked = self.pinned.map_or("any revision of ours", Revision::as_str);
                let message = match offered {
                    [] => "the server names no revision that it speaks".to_owned(),
                    offered => format!("the server speaks {}, not {asked}", shortened(&offered.join(", "), 1000)),
                };
                Step::Failed(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// An error response to one of our questions.
    pub(crate) fn refused(&mut self, facts: &Facts, id: &Id, error: Error) -> Step {
        if self.probe_id.as_ref() == Some(id) {
            let Stage::Probe { again, .. } = self.stage else {
                // Late, but a word on the era.
                self.doubtful &= error.code() != Some(code::METHOD_NOT_FOUND);
                return Step::Wait;
            };
            self.doubtful = is_internal(&error);
            return match error.code() {
                Some(modern::UNSUPPORTED_VERSION) if !again => self.offered(facts, &error),
                Some(modern::UNSUPPORTED_VERSION | modern::HEADER_MISMATCH | modern::MISSING_CLIENT_CAPABILITY) => {
                    Step::Failed(error)
                }
                // It may pass, and the server that was a modern one is still that.
                Some(_) if self.doubtful && self.known == Some(Era::Modern) => Step::Failed(error),
                Some(code::METHOD_NOT_FOUND) => self.fall_back(facts, NOT_FOUND),
                Some(code) => self.fall_back(facts, &format!("the error {code} ({})", shortened(error.message(), 200))),
                // No JSON-RPC error at all: HTTP said no, or nothing that a modern server says. Refused
                // authorization and a broken network say nothing about the era.
                None if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PeerMisbehaved) => {
                    self.fall_back(facts, error.message())
                }
                // Many a server fails at a method that it does not know. What may also pass is no word on the era.
                None if self.may_fall_back()
                    && (error.has_failed_there() || error.is_answer_lost())
                    && facts.revisions.iter().any(|r| r.era() == Era::Legacy) =>
                {
                    self.doubtful = true;
                    self.fall_back(facts, error.message())
                }
                None => Step::Failed(error),
            };
        }
        // A server that has no handshake at all says so.
        match error.code() {
            Some(modern::UNSUPPORTED_VERSION) => {
                self.refused = true;
                self.offered(facts, &error)
            }
            _ => self.failed(error),
        }
    }

    fn offered(&mut self, facts: &Facts, error: &Error) -> Step {
        #[derive(Deserialize)]
        struct Offer {
            supported: Vec<String>,
        }
        let Some(Ok(offer)) = error.data().map(RawJson::to::<Offer>) else {
            return Step::Failed(error.clone());
        };
        let pinned = self.pinned;
        let modern = facts.revisions.iter().rev().copied().find(|r| {
            r.era() == Era::Modern && pinned.is_none_or(|p| p == *r) && offer.supported.iter().any(|n| n == r.as_str())
        });
        match modern {
            Some(revision) => self.probe(revision, true),
            // `initialize` offered none of the server's revisions, and another one would not either.
            None if self.stage == Stage::Initialize && !offer.supported.is_empty() => Step::Failed(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the server speaks {}, and refuses \"initialize\"",
                    shortened(&offer.supported.join(", "), 1000)
                ),
            )),
            None => self.choose(facts, &offer.supported, |_| Step::Wait),
        }
    }

    /// The question's time is up.
    pub(crate) fn timed_out(&mut self, facts: &Facts, id: &Id) -> Step {
        match self.stage {
            Stage::Probe { again: false, .. }
                if self.probe_id.as_ref() == Some(id) && self.known != Some(Era::Modern) =>
            {
                self.doubtful = true;
                self.fall_back(facts, "silence")
            }
            _ => {
                let late = Error::new(ErrorKind::Timeout, "the server did not answer in time while connecting");
                self.failed(late.because(Reason::Silence))
            }
        }
    }
}

/// Returns the error of a failed `initialize`, with the outcome of the probe before.
pub(crate) fn tried_both(error: &Error, before: &str) -> Error {
    let (after, before) = (shortened(error.message(), MAX_REASON), shortened(before, MAX_REASON));
    let message = format!(
        "\"initialize\" failed: {after}. Before it, \"server/discover\" failed: {before}. A server that fails at one of them is \
         opened without it by the option \"revision\" (\"legacy\" or \"modern\")"
    );
    error.clone().reworded(message)
}

/// As a legacy server answers the probe by the book.
const NOT_FOUND: &str = "\"method not found\"";
/// Longest part of each of a server's reasons that a message shows.
const MAX_REASON: usize = 500;

/// Something failed inside the server, which says nothing about the methods that it has.
pub(crate) fn is_internal(error: &Error) -> bool {
    error.code() == Some(code::INTERNAL_ERROR)
}
