//! One login from the server's challenge to its tokens, as a machine: it says what has to be fetched, opened or asked,
//! and is told what came of it. MCP's authorization, every revision: RFC 9728, then RFC 8414 or OpenID Connect Discovery
//! (2025-03-26: at the server's own origin), registration, the grant.
//!
//! **Invariant**: nothing here waits, and everything that is decided is written into the trace.

mod discovery;
mod grant;
mod redeem;
mod trace;

use std::collections::VecDeque;

use super::authorization::Authorization;
use super::challenge::Challenge;
use super::client::{Auth, Wanted};
use super::dpop::Proofs;
use super::fetch::{Fetch, Fetched, Unfetched};
use super::refusal::mask;
use super::registration::Client;
use super::resource_metadata::ResourceMetadata;
use super::server_metadata::ServerMetadata;
use super::session::Session;
use crate::error::{Error, ErrorKind, shortened, shown_url};

pub use trace::AuthStep;
use trace::Trace;

/// Input of a login.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) server_url: String,
    /// Challenges of the answer that made it necessary; none for a token that is renewed ahead of its end.
    pub(crate) challenges: Vec<Challenge>,
    /// The server has refused the token, whether it says why or not.
    pub(crate) refused: bool,
    /// The access token that will not do any more.
    pub(crate) used: Option<String>,
    /// The refresh token that was refused before.
    pub(crate) spent: Option<String>,
    /// The refresh token with which a refresh has failed for no reason that says that it is refused.
    pub(crate) doubted: Option<String>,
    /// The token was refused, and has just come by a refresh.
    pub(crate) useless: bool,
    /// The token is good, and its scopes are too few.
    pub(crate) steps_up: bool,
    pub(crate) auth: Auth,
    /// The session with this server until now, of whatever issuer.
    pub(crate) stored: Option<Session>,
    /// Only a revision will do in which servers have protected-resource metadata.
    pub(crate) needs_metadata: bool,
    /// Said to servers of 2025-03-26.
    pub(crate) protocol_version: Option<String>,
}

/// Next thing to do. Its outcome goes to the method that is named.
#[derive(Debug)]
pub(crate) enum Step {
    /// → [`Flow::fetched`]
    Fetch(Fetch),
    /// Loads the stored session of this issuer, which is going to change. → [`Flow::loaded`]
    Load {
        issuer: String,
    },
    /// → [`Flow::asserted`]
    Assert(Wanted),
    /// Wait for the browser. → [`Flow::listening`]
    Listen,
    /// → [`Flow::called_back`]
    Open {
        url: String,
    },
    /// There is a token in it.
    Done(Box<Session>),
    Failed(Error),
}

enum State {
    /// Possible addresses of the resource's metadata, and the one being asked.
    Resource {
        asked: String,
        left: VecDeque<String>,
    },
    /// The same of the authorization server's.
    Server {
        asked: String,
        left: VecDeque<String>,
    },
    /// At the MCP server's own origin.
    Origin {
        asked: String,
    },
    Loading,
    Refreshing,
    Listening,
    Registering {
        endpoint: String,
        redirect_uri: String,
    },
    Opened(Box<Authorization>),
    Asserting,
    Exchanging,
    Redeeming,
    Over,
}

/// A request for a token, to be sent again with a nonce.
struct Request {
    endpoint: String,
    pairs: Vec<(&'static str, String)>,
    client: Client,
    scopes: Vec<String>,
}

/// A login on its way.
pub(crate) struct Flow {
    given: Given,
    state: State,
    /// Failures on the rungs so far.
    missed: Vec<String>,
    named_metadata: bool,
    resource: Option<ResourceMetadata>,
    /// Address where that was found.
    resource_metadata: Option<String>,
    /// The `resource` of requests (RFC 8707), byte by byte as the metadata has it.
    identifier: Option<String>,
    issuer: String,
    /// Those that the server lists besides.
    others: VecDeque<String>,
    metadata: Option<ServerMetadata>,
    /// There is no issuer but the MCP server's origin.
    at_origin: bool,
    /// Nobody has said where its endpoints are, nor what they can.
    is_assumed: bool,
    /// The stored session of this issuer.
    session: Option<Session>,
    scopes: Vec<String>,
    proofs: Option<Proofs>,
    nonce: Option<String>,
    nonce_tried: bool,
    /// The stored session has a refresh token that was refused.
    refused_refresh: bool,
    /// The refresh token that was refused.
    spent: Option<String>,
    /// See [`Given::doubted`].
    doubted: Option<String>,
    refused_client: bool,
    /// The client that was registered before, and is not known any more, or may not be.
    forgotten: Option<String>,
    /// There was a newer token already.
    took_over: bool,
    /// The token came by a refresh.
    has_refreshed: bool,
    /// More is wanted than was asked for before.
    widens: bool,
    request: Option<Request>,
    /// The assertion about the user that a function gave, and that the identity provider was shown.
    subject: Option<String>,
    /// Assertion with which the client has proved itself in the last request for a token.
    client_assertion: Option<String>,
    trace: Trace,
    notes: Vec<String>,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow")
            .field("server_url", &self.given.server_url)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl Flow {
    /// Begins: with the refresh token if that is enough, and by finding out where to log in otherwise.
    pub(crate) fn start(given: Given) -> (Self, Step) {
        let mut flow = Self {
            given,
            state: State::Over,
            missed: Vec::new(),
            named_metadata: false,
            resource: None,
            resource_metadata: None,
            identifier: None,
            issuer: String::new(),
            others: VecDeque::new(),
            metadata: None,
            at_origin: false,
            is_assumed: false,
            session: None,
            scopes: Vec::new(),
            proofs: None,
            nonce: None,
            nonce_tried: false,
            refused_refresh: false,
            spent: None,
            doubted: None,
            refused_client: false,
            forgotten: None,
            took_over: false,
            has_refreshed: false,
            widens: false,
            request: None,
            subject: None,
            client_assertion: None,
            trace: Trace::default(),
            notes: Vec::new(),
        };
        flow.note_challenge();
        let step = match &flow.given.stored {
            // Nobody has refused it yet, so its server is still the right one.
            Some(stored) if !flow.given.refused && stored.refresh_token().is_some() => {
                flow.issuer.clone_from(&stored.issuer);
                flow.load()
            }
            _ => flow.discover(),
        };
        (flow, step)
    }

    /// Records the server's refusal, which is the first step.
    fn note_challenge(&mut self) {
        if !self.given.refused {
            return;
        }
        self.trace.asked("challenge", &self.given.server_url);
        self.trace.answered(if self.given.steps_up { 403 } else { 401 });
        let said = |name: &'static str| Some((name, self.challenged(name)?.to_owned()));
        let said = ["error", "scope", "resource_metadata"].into_iter().filter_map(said).map(|(name, mut value)| {
            // A server may repeat what it was shown.
            self.given.used.iter().for_each(|token| mask(&mut value, token));
            match name {
                "resource_metadata" => format!("{name} {}", shown_url(value.split('?').next().unwrap_or_default())),
                _ => format!("{name} {:?}", shortened(&value, 200)),
            }
        });
        let said = said.collect::<Vec<_>>().join(", ");
        self.trace.decided(if said.is_empty() { "nothing that says more" } else { &said });
    }

    /// Takes the outcome of a [`Step::Fetch`]: the answer, or the reason why there is none.
    pub(crate) fn fetched(&mut self, outcome: Result<Fetched, Unfetched>, now: u64) -> Step {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Resource { asked, left } => self.resource_fetched(asked, left, outcome),
            State::Server { asked, left } => self.server_fetched(asked, left, outcome),
            State::Origin { asked } => self.origin_fetched(&asked, outcome),
            state => self.answered(state, outcome.map_err(|unfetched| unfetched.why), now),
        }
    }

    fn answered(&mut self, state: State, outcome: Result<Fetched, String>, now: u64) -> Step {
        match state {
            State::Refreshing => self.refreshed(outcome, now),
            State::Registering { endpoint, redirect_uri } => self.registered(&endpoint, &redirect_uri, outcome),
            State::Exchanging => self.exchanged(outcome, now),
            State::Redeeming => self.redeemed(outcome, now),
            state => self.unexpected(state),
        }
    }

    /// Takes the stored session of the issuer.
    pub(crate) fn loaded(&mut self, session: Option<Session>, now: u64) -> Step {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Loading => self.decide(session, now),
            state => self.unexpected(state),
        }
    }

    /// The assertion that was asked for.
    pub(crate) fn asserted(&mut self, assertion: Result<String, Error>, now: u64) -> Step {
        match (std::mem::replace(&mut self.state, State::Over), assertion) {
            (State::Asserting, Ok(assertion)) => self.with_assertion(assertion, now),
            (State::Asserting, Err(error)) => self.failed("the assertion", None, error.message()),
            (state, _) => self.unexpected(state),
        }
    }

    /// Takes the address that the browser will come back to.
    pub(crate) fn listening(&mut self, redirect_uri: Result<String, Error>, now: u64) -> Step {
        match (std::mem::replace(&mut self.state, State::Over), redirect_uri) {
            (State::Listening, Ok(redirect_uri)) => self.with_redirect(redirect_uri, now),
            (State::Listening, Err(error)) => self.failed("waiting for the browser", None, error.message()),
            (state, _) => self.unexpected(state),
        }
    }

    /// The query that the browser has come back with.
    pub(crate) fn called_back(&mut self, query: Result<String, Error>, now: u64) -> Step {
        match (std::mem::replace(&mut self.state, State::Over), query) {
            (State::Opened(authorization), Ok(query)) => self.with_answer(&authorization, &query, now),
            (State::Opened(_), Err(error)) => {
                // The server may have shown a page that says that it knows no such client.
                let client = self.request.take().map(|request| request.client);
                if let Some(client) = client.filter(|client| error.kind() == ErrorKind::Auth && self.is_kept(client)) {
                    self.forgotten = Some(client.client_id);
                }
                self.failed("the login in the browser", None, error.message())
            }
            (state, _) => self.unexpected(state),
        }
    }

    /// Returns the issuer of the login.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Takes out the steps so far, with nothing secret in them.
    pub(crate) fn take_trace(&mut self) -> Vec<AuthStep> {
        self.trace.take()
    }

    /// The refresh token that was refused meanwhile.
    pub(crate) fn take_spent(&mut self) -> Option<String> {
        self.spent.take()
    }

    /// The refresh token with which the refresh has failed for no reason that says that it is refused.
    pub(crate) fn take_doubted(&mut self) -> Option<String> {
        self.doubted.take()
    }

    /// The client that was registered before, and should be registered anew for the next login.
    pub(crate) fn take_forgotten(&mut self) -> Option<String> {
        self.forgotten.take()
    }

    /// Returns true if the token is one that somebody else has got meanwhile.
    pub(crate) fn took_over(&self) -> bool {
        self.took_over
    }

    /// Returns true if the token has come by a refresh.
    pub(crate) fn has_refreshed(&self) -> bool {
        self.has_refreshed
    }

    /// Takes out the notes for the user: of a login that was lost, and why.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn fetch(&mut self, step: &'static str, fetch: Fetch, state: State) -> Step {
        self.trace.asked(step, &fetch.url);
        self.state = state;
        Step::Fetch(fetch)
    }

    fn load(&mut self) -> Step {
        self.state = State::Loading;
        Step::Load { issuer: self.issuer.clone() }
    }

    /// The end: which step, at which URL, and why.
    fn failed(&mut self, step: &str, url: Option<&str>, why: &str) -> Step {
        self.state = State::Over;
        self.trace.decided(&format!("given up: {why}"));
        let place = url.map(|url| format!(" at {}", shown_url(url))).unwrap_or_default();
        Step::Failed(Error::new(ErrorKind::Auth, format!("authorization: {step}{place}: {why}")))
    }

    fn unexpected(&mut self, state: State) -> Step {
        let name = match state {
            State::Over => "it is over",
            _ => "something else is waited for",
        };
        self.failed("the login was told something that it did not ask for", None, name)
    }
}

#[cfg(test)]
mod tests;
