//! An internet without sockets: what it answers, and what was asked of it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::*;
use crate::auth::registration::KnownBy;
use crate::auth::token::{Token, TokenType};

pub(super) const SERVER: &str = "https://h/mcp";
pub(super) const CALLBACK: &str = "http://127.0.0.1:1/callback";
pub(super) const PRM: &str = "https://h/.well-known/oauth-protected-resource/mcp";
pub(super) const ROOT_PRM: &str = "https://h/.well-known/oauth-protected-resource";
pub(super) const AS: &str = "https://as/.well-known/oauth-authorization-server";

/// A status, headers, a body.
pub(super) type Scripted = (u16, Vec<(String, String)>, Value);

/// The world around a login, and the requests that it got.
pub(super) struct World {
    /// By URL: what is answered, one after the other; the last one stays.
    pub(super) answers: BTreeMap<String, VecDeque<Scripted>>,
    pub(super) asked: Vec<String>,
    /// Query of the browser's return, besides the state.
    pub(super) callback: String,
    pub(super) opened: Vec<String>,
    pub(super) kept: Option<Session>,
    pub(super) now: u64,
    /// The parameter that answers repeat, where they have `ECHO`.
    pub(super) echoed: &'static str,
}

impl World {
    pub(super) fn new() -> Self {
        let (answers, callback) = (BTreeMap::new(), "code=c".to_owned());
        Self { answers, asked: Vec::new(), callback, opened: Vec::new(), kept: None, now: 1000, echoed: "" }
    }

    /// A server and an authorization server as they should be.
    pub(super) fn usual() -> Self {
        Self::new()
            .with(PRM, 200, json!({"resource": SERVER, "authorization_servers": ["https://as"]}))
            .with(AS, 200, metadata("https://as"))
            .with("https://as/register", 201, json!({"client_id": "registered"}))
            .with("https://as/token", 200, json!({"access_token": "new", "expires_in": 3600, "refresh_token": "r2"}))
    }

    pub(super) fn with(mut self, url: &str, status: u16, body: Value) -> Self {
        self.answers.insert(url.into(), VecDeque::from([(status, Vec::new(), body)]));
        self
    }

    pub(super) fn then(mut self, url: &str, status: u16, headers: &[(&str, &str)], body: Value) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.answers.entry(url.into()).or_default().push_back((status, headers, body));
        self
    }

    pub(super) fn answer(&mut self, fetch: &Fetch) -> Result<Fetched, Unfetched> {
        let body = fetch.body.as_ref().map(|(_, body)| format!(" {body}")).unwrap_or_default();
        self.asked.push(format!("{} {}{body}", fetch.method(), fetch.url));
        let Some(answers) = self.answers.get_mut(&fetch.url) else {
            return Ok(Fetched { status: 404, headers: Vec::new(), body: Bytes::from_static(b"not here") });
        };
        let (status, headers, body) = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
            .unwrap_or((0, Vec::new(), Value::Null));
        match status {
            0 => Err("no connection".to_owned().into()),
            // An answer of somebody that is none.
            1 => Err(Unfetched::answered("a redirect that leads nowhere".into())),
            status => {
                // A text is a page.
                let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                let form = fetch.body.as_ref().map_or("", |(_, form)| form);
                let echo = form_urlencoded::parse(form.as_bytes()).find(|(name, _)| name == self.echoed);
                let body = body.replace("ECHO", &echo.map_or(String::new(), |(_, value)| value.into_owned()));
                Ok(Fetched { status, headers, body: Bytes::from(body) })
            }
        }
    }

    pub(super) fn run(&mut self, given: Given) -> (Result<Session, Error>, Flow) {
        let (mut flow, mut step) = Flow::start(given);
        for _ in 0..40 {
            step = match step {
                Step::Fetch(fetch) => {
                    let outcome = self.answer(&fetch);
                    flow.fetched(outcome, self.now)
                }
                Step::Load { issuer } => {
                    self.asked.push(format!("LOAD {issuer}"));
                    let kept = self.kept.clone().filter(|kept| kept.issuer == issuer);
                    flow.loaded(kept, self.now)
                }
                Step::Assert(wanted) => flow.asserted(Ok(format!("jwt for {}", wanted.issuer)), self.now),
                Step::Listen => flow.listening(Ok(CALLBACK.into()), self.now),
                Step::Open { url } => {
                    let state = form_urlencoded::parse(url.as_bytes()).find(|(name, _)| name == "state");
                    let state = state.map(|(_, state)| state.into_owned()).unwrap_or_default();
                    self.opened.push(url);
                    flow.called_back(Ok(format!("{}&state={state}", self.callback)), self.now)
                }
                Step::Done(session) => return (Ok(*session), flow),
                Step::Failed(error) => return (Err(error), flow),
            };
        }
        panic!("no end: {:?}", self.asked);
    }

    /// The parameter of the last page that was opened.
    pub(super) fn asked_for(&self, name: &str) -> Option<String> {
        let query = self.opened.last()?.split_once('?')?.1;
        form_urlencoded::parse(query.as_bytes()).find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    }

    pub(super) fn last(&self) -> &str {
        self.asked.last().map_or("", String::as_str)
    }
}

pub(super) fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
    })
}

pub(super) fn challenged(value: &str) -> Given {
    given(Auth::new(), &[value])
}

pub(super) fn given(auth: Auth, challenges: &[&str]) -> Given {
    Given {
        server_url: SERVER.into(),
        challenges: crate::auth::challenge::parse(challenges),
        refused: !challenges.is_empty(),
        used: None,
        spent: None,
        doubted: None,
        useless: false,
        steps_up: false,
        auth,
        stored: None,
        needs_metadata: false,
        protocol_version: Some("v".into()),
    }
}

pub(super) fn session(issuer: &str, refresh_token: Option<&str>) -> Session {
    Session {
        issuer: issuer.into(),
        resource: Some(SERVER.into()),
        resource_metadata: None,
        grant: None,
        user: None,
        unsaved: false,
        token_endpoint: format!("{issuer}/token"),
        methods: None,
        client: Client {
            client_id: "old".into(),
            client_secret: None,
            client_secret_expires_at: None,
            token_endpoint_auth_method: None,
            redirect_uri: Some(CALLBACK.into()),
            known_by: KnownBy::Registration,
        },
        scopes: vec!["a".into()],
        since: 0,
        token: Some(Token {
            access_token: "old-token".into(),
            token_type: TokenType::Bearer,
            expires_at: None,
            renew_at: None,
            refresh_token: refresh_token.map(str::to_owned),
            scope: None,
        }),
        dpop: None,
    }
}

pub(super) fn token_of(session: &Session) -> &str {
    &session.token.as_ref().expect("a token").access_token
}
