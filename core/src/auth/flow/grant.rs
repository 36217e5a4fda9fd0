//! Choice of the request for a token, once the authorization server is known.

use super::{Flow, Request, State, Step};
use crate::auth::authorization::{Asked, Authorization, NoCode, scopes};
use crate::auth::client::{Grant, Wanted, check_redirect};
use crate::auth::exchange;
use crate::auth::fetch::Fetched;
use crate::auth::registration::{self, Choice, Client, KnownBy};
use crate::auth::session::Session;
use crate::auth::token::JWT_BEARER;
use crate::auth::url::is_same_issuer;
use crate::error::shown_url;
use crate::idiom::named;

/// A step of the trace.
const BROWSER: &str = "login in the browser";
/// The scope of OpenID Connect that makes refresh tokens outlive the user's presence.
const OFFLINE_ACCESS: &str = "offline_access";

impl Flow {
    /// The authorization server and what it can do are known.
    pub(super) fn known_server(&mut self) -> Step {
        let metadata = self.metadata.clone().unwrap_or_default();
        if metadata.token_endpoint.is_none() {
            let issuer = self.issuer.clone();
            return self.failed("the authorization server's metadata", Some(&issuer), "it lists no token_endpoint");
        }
        if let Some(stored) = self.given.stored.as_ref().filter(|stored| !is_same_issuer(&stored.issuer, &self.issuer))
        {
            let same = stored.client.known_by == KnownBy::Preregistration
                && self.given.auth.client_id.as_ref() == Some(&stored.client.client_id);
            if same && self.given.auth.issuer.is_none() {
                let option = named("client_id");
                let why = format!(
                    "the server has changed its authorization server from {} to {}, and {option} {:?} belongs to the \
                     former: give the {option} that the latter knows, and its issuer",
                    shown_url(&stored.issuer),
                    shown_url(&self.issuer),
                    stored.client.client_id
                );
                let issuer = self.issuer.clone();
                return self.failed("the client", Some(&issuer), &why);
            }
            let note = format!(
                "the server has changed its authorization server from {} to {}: what the former gave is not used there",
                shown_url(&stored.issuer),
                shown_url(&self.issuer)
            );
            self.trace.decided(&note);
            self.notes.push(note);
        }
        self.load()
    }

    /// Decides what is left to do, now that the stored session of the issuer is known, too.
    pub(super) fn decide(&mut self, session: Option<Session>, now: u64) -> Step {
        let is_own =
            |session: &Session| is_same_issuer(&session.issuer, &self.issuer) && session.is_of(&self.given.auth);
        let mut session = session.filter(is_own);
        // A session that could not be stored is newer than the stored one.
        let unsaved = self.given.stored.as_ref().filter(|own| own.unsaved && is_own(own));
        if let Some(own) = unsaved.filter(|own| session.as_ref().is_none_or(|kept| kept.since <= own.since)) {
            session = Some(own.clone());
        }
        if self.refused_refresh {
            // The stored session holds the refused token still.
            session.iter_mut().for_each(|session| session.token = None);
            // A server that does not know its own registration has forgotten it.
            session = session.filter(|own| !(self.refused_client && own.client.known_by == KnownBy::Registration));
        }
        self.trace.step("what is kept");
        let challenged = self.challenged("scope").unwrap_or_default().to_owned();
        let own = self.given.auth.scopes.join(" ");
        // Scopes that were asked for once are not asked for again because fewer were granted.
        let lacks_own = session.as_ref().is_some_and(|session| !session.has_asked(&own));
        let lacks = lacks_own || session.as_ref().is_some_and(|session| !session.has_asked(&challenged));
        self.widens = self.given.steps_up || lacks;
        self.scopes = self.wanted_scopes(session.as_ref());
        if let Some(session) = &session
            && let Some(token) = &session.token
            && !token.is_stale(now)
            && !lacks_own
            && self.given.used.as_ref() != Some(&token.access_token)
            && (!self.given.steps_up || session.has_scopes(&challenged))
        {
            self.trace.decided("there is a newer token already: it is used");
            self.took_over = true;
            return Step::Done(Box::new(session.clone()));
        }
        // A refresh brings no other scopes (RFC 6749 §6), and no better token than the one that it has just brought.
        let may_refresh = !self.widens
            && !self.given.useless
            && session.as_ref().is_some_and(|session| {
                let same = self.metadata.is_none() || session.resource == self.identifier;
                let refresh_token = session.refresh_token();
                let is_good = refresh_token.is_some() && refresh_token != self.given.spent.as_deref();
                same && is_good
            });
        self.session = session;
        let why = match &self.session {
            _ if may_refresh => "a refresh token: it is used",
            None => "nothing",
            Some(_) if lacks_own => "a login for which not all of the option \"scopes\" were asked for: a new one",
            Some(_) if self.widens => "a login without all the scopes that are wanted: a new one",
            Some(_) if self.given.useless => "a login whose token was refused as soon as it was refreshed: a new one",
            Some(_) => "no refresh token that could be used: a new login",
        };
        self.trace.decided(why);
        match may_refresh {
            true => self.refresh(now),
            false if self.metadata.is_none() => self.discover(),
            false => self.grant(now),
        }
    }

    /// 2026-07-28, scope selection and step-up.
    fn wanted_scopes(&self, session: Option<&Session>) -> Vec<String> {
        // Scopes that were granted once may not be known any more: they come along only where more is wanted.
        let session = session.filter(|_| self.widens);
        let mut before = session.map(|session| session.scopes.clone()).unwrap_or_default();
        before.extend(self.given.auth.scopes.iter().cloned());
        let listed = self.resource.as_ref().and_then(|resource| resource.scopes_supported.as_deref());
        let mut wanted = scopes(self.challenged("scope"), listed, &before);
        let Some(metadata) = &self.metadata else { return wanted };
        let own = self.given.auth.scopes.iter().any(|scope| scope == OFFLINE_ACCESS);
        let offline = metadata.has_scope(OFFLINE_ACCESS) && self.given.auth.granted() == Grant::AuthorizationCode;
        wanted.retain(|scope| scope != OFFLINE_ACCESS);
        // Alone it would stand for no other scope at all, instead of for the server's own choice.
        if own || (offline && !wanted.is_empty()) {
            wanted.push(OFFLINE_ACCESS.to_owned());
        }
        wanted
    }

    pub(super) fn grant(&mut self, now: u64) -> Step {
        let auth = &self.given.auth;
        match auth.granted() {
            Grant::AuthorizationCode if !self.given.refused => {
                self.trace.step(BROWSER);
                let why = "the server has not refused the token yet: nobody is asked for another";
                self.failed("the login in the browser", None, why)
            }
            Grant::AuthorizationCode => {
                let metadata = self.metadata.clone().unwrap_or_default();
                let problem = match &metadata.authorization_endpoint {
                    None => Err("lists no authorization_endpoint, which a login in the browser needs".to_owned()),
                    Some(_) => metadata.check_pkce(self.is_assumed),
                };
                if let Err(why) = problem {
                    self.trace.step(BROWSER);
                    let issuer = self.issuer.clone();
                    let why = format!("the authorization server at {} {why}", shown_url(&issuer));
                    return self.failed("the login in the browser", Some(&issuer), &why);
                }
                self.state = State::Listening;
                Step::Listen
            }
            Grant::ClientCredentials => {
                let (mut pairs, scope) = (vec![("grant_type", "client_credentials".to_owned())], self.scopes.join(" "));
                pairs.extend((!scope.is_empty()).then_some(("scope", scope)));
                self.as_itself(pairs, now)
            }
            Grant::JwtBearer => match (auth.assertion.clone(), auth.assertions.is_some()) {
                (Some(assertion), false) => self.with_assertion(assertion, now),
                _ => self.assert(),
            },
            Grant::IdJag => match auth.identity.as_ref().and_then(|identity| identity.token.clone()) {
                Some(token) if auth.assertions.is_none() => self.with_assertion(token, now),
                _ => self.assert(),
            },
        }
    }

    fn assert(&mut self) -> Step {
        self.trace.step("assertion");
        self.state = State::Asserting;
        Step::Assert(Wanted { issuer: self.recorded_issuer(), resource: self.identifier.clone() })
    }

    /// The issuer as the authorization server writes it: at an origin it may have a slash at its end.
    pub(super) fn recorded_issuer(&self) -> String {
        let own = self.metadata.as_ref().map(|metadata| &metadata.issuer);
        own.filter(|own| own.trim_end_matches('/') == self.issuer.trim_end_matches('/')).unwrap_or(&self.issuer).clone()
    }

    pub(super) fn with_assertion(&mut self, assertion: String, now: u64) -> Step {
        let scope = self.scopes.join(" ");
        if let (Grant::IdJag, Some(identity)) = (self.given.auth.granted(), &self.given.auth.identity) {
            let audience = self.recorded_issuer();
            let fetch = exchange::request(identity, &assertion, &audience, self.identifier.as_deref(), &scope);
            self.subject = Some(assertion);
            return self.fetch("token exchange", fetch, State::Exchanging);
        }
        let mut pairs = vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)];
        pairs.extend((!scope.is_empty()).then_some(("scope", scope)));
        self.as_itself(pairs, now)
    }

    pub(super) fn exchanged(&mut self, outcome: Result<Fetched, String>, now: u64) -> Step {
        let endpoint = self.given.auth.identity.as_ref().map(|identity| identity.token_endpoint.clone());
        let answer = outcome.and_then(|fetched| {
            self.trace.answered(fetched.status);
            let identity = self.given.auth.identity.as_ref();
            let secret = identity.and_then(|identity| identity.client_secret.as_deref());
            let shown = secret.into_iter().chain(self.subject.as_deref());
            exchange::answer(&fetched).map_err(|refusal| refusal.without(shown).to_string())
        });
        match answer {
            Ok(assertion) => {
                self.trace.decided("an assertion for the authorization server");
                self.as_itself(vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)], now)
            }
            Err(why) => self.failed("the token exchange", endpoint.as_deref(), &why),
        }
    }

    /// A grant without a user, for which nobody is registered on the way.
    fn as_itself(&mut self, pairs: Vec<(&'static str, String)>, now: u64) -> Step {
        let metadata = self.metadata.clone().unwrap_or_default();
        self.warn_of_secret();
        match registration::choose(&self.given.auth, &metadata, &self.issuer) {
            Ok(Choice::Known(client)) => self.redeem(pairs, client, now),
            Ok(Choice::Register(_)) => self.no_client(&format!("this grant needs a {}", named("client_id"))),
            Err(why) => self.no_client(&why),
        }
    }

    fn no_client(&mut self, why: &str) -> Step {
        self.trace.step("client");
        self.failed("the client", None, why)
    }

    /// Warns that a secret that the program was given is shown, for the first time, to the authorization server that
    /// the server names.
    fn warn_of_secret(&mut self) {
        let auth = &self.given.auth;
        let is_new = self.session.is_none() && self.given.stored.is_none();
        if is_new && auth.client_secret.is_some() && auth.issuer.is_none() {
            let note = format!(
                "{} is shown to {}, which the server at {} has named: give the option \"issuer\", so that no other can \
                 be named",
                named("client_secret"),
                shown_url(&self.issuer),
                shown_url(&self.given.server_url)
            );
            self.trace.decided(&note);
            self.notes.push(note);
        }
    }

    pub(super) fn with_redirect(&mut self, redirect_uri: String, now: u64) -> Step {
        if let Err(error) = check_redirect(&redirect_uri) {
            return Step::Failed(error);
        }
        let metadata = self.metadata.clone().unwrap_or_default();
        match registration::choose(&self.given.auth, &metadata, &self.issuer) {
            Ok(Choice::Known(client)) => {
                self.warn_of_secret();
                self.open(client, redirect_uri)
            }
            Ok(Choice::Register(endpoint)) => {
                let kept = self.session.as_ref().map(|session| &session.client);
                let kept = kept.filter(|client| client.known_by == KnownBy::Registration);
                let known = |client: &&Client| self.forgotten.as_ref() != Some(&client.client_id);
                if let Some(client) =
                    kept.filter(known).filter(|client| client.is_usable(now, Some(&redirect_uri))).cloned()
                {
                    return self.open(client, redirect_uri);
                }
                let fetch = registration::request(&endpoint, &self.given.auth, &metadata, &redirect_uri);
                self.fetch("registration", fetch, State::Registering { endpoint, redirect_uri })
            }
            Err(why) => self.no_client(&why),
        }
    }

    pub(super) fn registered(&mut self, endpoint: &str, redirect_uri: &str, outcome: Result<Fetched, String>) -> Step {
        let answer = outcome.and_then(|fetched| {
            self.trace.answered(fetched.status);
            registration::answer(&fetched, redirect_uri)
        });
        match answer {
            Ok(client) => {
                self.trace.decided("registered");
                self.open(client, redirect_uri.to_owned())
            }
            Err(why) => self.failed("the registration", Some(endpoint), &why),
        }
    }

    fn open(&mut self, client: Client, redirect_uri: String) -> Step {
        let metadata = self.metadata.clone().unwrap_or_default();
        let begun = Authorization::begin(Asked {
            endpoint: metadata.authorization_endpoint.as_deref().unwrap_or_default(),
            issuer: &self.recorded_issuer(),
            names_itself: metadata.authorization_response_iss_parameter_supported == Some(true),
            client_id: &client.client_id,
            redirect_uri: &redirect_uri,
            resource: self.identifier.as_deref(),
            scopes: self.scopes.clone(),
        });
        match begun {
            Ok((authorization, url)) => {
                self.trace.asked(BROWSER, &url);
                let known = match client.known_by {
                    KnownBy::Preregistration => format!("the {} that was given", named("client_id")),
                    KnownBy::MetadataDocument => named("client_metadata_url").into_owned(),
                    KnownBy::Registration => "registration".to_owned(),
                };
                self.trace.decided(&format!("known by {known}, scopes {:?}", self.scopes.join(" ")));
                let scopes = authorization.scopes.clone();
                self.request = Some(Request { endpoint: String::new(), pairs: Vec::new(), client, scopes });
                self.state = State::Opened(Box::new(authorization));
                Step::Open { url }
            }
            Err(error) => Step::Failed(error),
        }
    }

    /// Returns true if the client was registered for an earlier login.
    pub(super) fn is_kept(&self, client: &Client) -> bool {
        let kept = self.session.as_ref().map(|session| &session.client.client_id);
        client.known_by == KnownBy::Registration
            && kept == Some(&client.client_id)
            && self.forgotten.as_ref() != Some(&client.client_id)
    }

    /// Begins the login once more, with a client that is registered now: servers forget their clients.
    pub(super) fn register_again(&mut self, client: Client, why: &str, now: u64) -> Step {
        self.trace.decided(&format!("the client is not known any more ({why}): it is registered again"));
        self.forgotten = Some(client.client_id);
        self.request = None;
        self.nonce_tried = false;
        self.grant(now)
    }

    pub(super) fn with_answer(&mut self, authorization: &Authorization, query: &str, now: u64) -> Step {
        let client = self.request.take().map(|request| request.client);
        match (authorization.finish(query), client) {
            (Ok(code), Some(client)) => {
                self.trace.decided("a code");
                let pairs = vec![
                    ("grant_type", "authorization_code".to_owned()),
                    ("code", code),
                    ("redirect_uri", authorization.redirect_uri.clone()),
                    ("code_verifier", authorization.pkce.verifier().to_owned()),
                ];
                self.redeem(pairs, client, now)
            }
            (Err(NoCode { why, error }), Some(client))
                if error.as_deref() == Some("unauthorized_client") && self.is_kept(&client) =>
            {
                self.register_again(client, &why, now)
            }
            (Err(NoCode { why, .. }), _) => {
                let endpoint = self.metadata.as_ref().and_then(|metadata| metadata.authorization_endpoint.clone());
                self.failed("the answer of the authorization server", endpoint.as_deref(), &why)
            }
            (Ok(_), None) => self.failed("the answer of the authorization server", None, "nobody waits for it"),
        }
    }
}
