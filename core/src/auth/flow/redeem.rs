//! The token endpoint, at the end of every grant and at each refresh.

use super::{Flow, Request, State, Step};
use crate::auth::assertion::client_assertion;
use crate::auth::client::Grant;
use crate::auth::dpop::{ALGORITHM, Proofs};
use crate::auth::fetch::{Fetch, Fetched};
use crate::auth::jose::{Algorithm, SigningKey};
use crate::auth::refusal::Refusal;
use crate::auth::registration::{Client, KnownBy};
use crate::auth::session::Session;
use crate::auth::token::{self, Method, Token, TokenType};
use crate::auth::url::is_same_issuer;
use crate::error::{Error, ErrorKind, Result, shown_url};
use crate::idiom::named;

/// Nobody has said that it is of no use.
const KEPT: &str = "the refresh token is kept";
/// The same where there is no telling, with what to do.
const LATER: &str = "the refresh token is kept: try again later, or remove the kept login, and a new one follows";

impl Flow {
    pub(super) fn refresh(&mut self, now: u64) -> Step {
        let Some(session) = &self.session else { return self.discover() };
        let refresh_token = session.refresh_token().unwrap_or_default().to_owned();
        let pairs = vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", refresh_token)];
        let endpoint = self.metadata.as_ref().and_then(|metadata| metadata.token_endpoint.clone());
        let mut client = session.client.clone();
        if client.known_by == KnownBy::Preregistration {
            // It may be another one by now.
            client.client_secret.clone_from(&self.given.auth.client_secret);
        }
        let request = Request {
            endpoint: endpoint.unwrap_or_else(|| session.token_endpoint.clone()),
            pairs,
            client,
            scopes: session.scopes.clone(),
        };
        if self.metadata.is_none() {
            self.identifier.clone_from(&session.resource);
        }
        if let Some(kept) = &session.dpop {
            match Proofs::restore(kept) {
                Ok(proofs) => self.proofs = Some(proofs),
                Err(error) => {
                    self.notes.push(error.message().to_owned());
                    // Without its key the token is of no use, wherever it is kept.
                    self.refused_refresh = true;
                    return self.decide_again(now);
                }
            }
        }
        self.request = Some(request);
        self.nonce_tried = false;
        self.ask("refresh", State::Refreshing, now)
    }

    /// Asks for the token at the end of a grant.
    pub(super) fn redeem(&mut self, pairs: Vec<(&'static str, String)>, client: Client, now: u64) -> Step {
        let endpoint = self.metadata.as_ref().and_then(|metadata| metadata.token_endpoint.clone()).unwrap_or_default();
        if self.wants_dpop() {
            match Proofs::new() {
                Ok(proofs) => self.proofs = Some(proofs),
                Err(error) => return Step::Failed(error),
            }
        } else {
            self.proofs = None;
        }
        self.request = Some(Request { endpoint, pairs, client, scopes: self.scopes.clone() });
        self.nonce_tried = false;
        self.ask("token", State::Redeeming, now)
    }

    fn wants_dpop(&self) -> bool {
        let listed = self.metadata.as_ref().and_then(|metadata| metadata.dpop_signing_alg_values_supported.as_deref());
        let can = listed.is_some_and(|listed| listed.iter().any(|alg| alg == ALGORITHM.as_str()));
        match self.given.auth.dpop {
            Some(wanted) => wanted && can,
            None => {
                let before = self.session.as_ref().is_some_and(|session| session.dpop.is_some());
                let challenged = self.given.challenges.iter().any(|challenge| challenge.is("DPoP"));
                can && (before || challenged || self.needs_dpop())
            }
        }
    }

    /// The resource takes nothing else.
    fn needs_dpop(&self) -> bool {
        self.resource.as_ref().is_some_and(|resource| resource.dpop_bound_access_tokens_required == Some(true))
    }

    fn ask(&mut self, step: &'static str, state: State, now: u64) -> Step {
        match self.token_request(now) {
            Ok((fetch, assertion)) => {
                self.client_assertion = assertion;
                self.fetch(step, fetch, state)
            }
            Err(why) => {
                let endpoint = self.request.as_ref().map(|request| request.endpoint.clone());
                self.failed("the token endpoint", endpoint.as_deref(), &why)
            }
        }
    }

    /// With the client's assertion, if it has one.
    fn token_request(&self, now: u64) -> Result<(Fetch, Option<String>), String> {
        let Some(Request { endpoint, pairs, client, .. }) = &self.request else { return Err("nothing to ask".into()) };
        let said = |error: Error| error.message().to_owned();
        let auth = &self.given.auth;
        let listed = match &self.metadata {
            Some(metadata) => metadata.token_endpoint_auth_methods_supported.as_deref(),
            None => self.session.as_ref().and_then(|session| session.methods.as_deref()),
        };
        let has_key = auth.private_key.is_some() && client.known_by != KnownBy::Registration;
        let method = Method::choose(client, has_key, listed)?;
        let assertion = match (&auth.private_key, method) {
            (Some(pem), Method::PrivateKeyJwt) => {
                let name = auth.signing_algorithm.as_deref().unwrap_or("ES256");
                let unknown = || format!("{} {name:?} is not known", named("signing_algorithm"));
                let algorithm = Algorithm::parse(name).ok_or_else(unknown)?;
                let key = SigningKey::from_pem(pem, algorithm).map_err(said)?.with_kid(auth.key_id.as_deref());
                let jti = crate::random::new_id().map_err(said)?;
                Some(client_assertion(&key, &client.client_id, &self.recorded_issuer(), now, &jti).map_err(said)?)
            }
            _ => None,
        };
        let proof = match &self.proofs {
            Some(proofs) => {
                let jti = crate::random::new_id().map_err(said)?;
                Some(proofs.proof("POST", endpoint, None, self.nonce.as_deref(), now, &jti).map_err(said)?)
            }
            None => None,
        };
        let mut all: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(self.identifier.as_deref().map(|resource| ("resource", resource)));
        Ok((token::request(endpoint, all, client, method, assertion.as_deref(), proof), assertion))
    }

    /// The token that came, or `None` when it has to be asked for again with the server's nonce (RFC 9449 §8).
    fn token_of(&mut self, fetched: &Fetched, now: u64) -> Option<Result<Token, Refusal>> {
        self.trace.answered(fetched.status);
        self.nonce = fetched.header("dpop-nonce").map(str::to_owned).or_else(|| self.nonce.take());
        let answer = token::answer(fetched, now);
        let again = answer.as_ref().err().is_some_and(|refusal| refusal.is("use_dpop_nonce"));
        if again && self.proofs.is_some() && self.nonce.is_some() && !std::mem::replace(&mut self.nonce_tried, true) {
            self.trace.decided("once more, with the server's nonce");
            return None;
        }
        Some(answer.map_err(|refusal| refusal.without(self.sent())))
    }

    /// Returns the secrets in the request.
    fn sent(&self) -> Vec<&str> {
        const SECRET: [&str; 4] = ["refresh_token", "code", "code_verifier", "assertion"];
        let Some(request) = &self.request else { return Vec::new() };
        let pairs = request.pairs.iter().filter(|(name, _)| SECRET.contains(name)).map(|(_, value)| value.as_str());
        pairs.chain(request.client.client_secret.as_deref()).chain(self.client_assertion.as_deref()).collect()
    }

    pub(super) fn redeemed(&mut self, outcome: Result<Fetched, String>, now: u64) -> Step {
        let endpoint = self.request.as_ref().map(|request| request.endpoint.clone());
        let answer = match outcome {
            Ok(fetched) => match self.token_of(&fetched, now) {
                Some(answer) => answer,
                None => return self.ask("token", State::Redeeming, now),
            },
            Err(why) => return self.failed("the token endpoint", endpoint.as_deref(), &why),
        };
        let kept = self.request.as_ref().map(|request| request.client.clone()).filter(|client| self.is_kept(client));
        let answer = match (answer, kept) {
            (Err(refusal), Some(client)) if refusal.is_of_client() => {
                return self.register_again(client, &refusal.to_string(), now);
            }
            (answer, _) => answer.map_err(|refusal| refusal.to_string()),
        };
        match answer {
            Ok(token) => self.finish(token, endpoint.as_deref(), now),
            Err(why) => self.failed("the token endpoint", endpoint.as_deref(), &why),
        }
    }

    pub(super) fn refreshed(&mut self, outcome: Result<Fetched, String>, now: u64) -> Step {
        let endpoint = self.request.as_ref().map(|request| request.endpoint.clone());
        let fetched = match outcome {
            Ok(fetched) => fetched,
            Err(why) => return self.failed("the refresh", endpoint.as_deref(), &format!("{why}; {LATER}")),
        };
        let refusal = match self.token_of(&fetched, now) {
            None => return self.ask("refresh", State::Refreshing, now),
            Some(Ok(mut token)) => {
                self.has_refreshed = true;
                let before = self.session.as_ref().and_then(|session| session.token.clone());
                // RFC 6749 §6: what is not said stays as it was.
                token.refresh_token = token.refresh_token.or_else(|| before.as_ref()?.refresh_token.clone());
                token.scope = token.scope.or_else(|| before?.scope);
                return self.finish(token, endpoint.as_deref(), now);
            }
            Some(Err(refusal)) => refusal,
        };
        if refusal.is_transient() {
            return self.failed("the refresh", endpoint.as_deref(), &format!("{refusal}; {LATER}"));
        }
        if refusal.is_of_client() && !self.may_not_refresh(&refusal) {
            return self.refused_to_client(&refusal, endpoint.as_deref(), now);
        }
        if !refusal.is_final() {
            return self.refused_strangely(&refusal, endpoint.as_deref(), now);
        }
        let note = format!(
            "the refresh token was refused at {} ({refusal}) and is not used any more: a new login is needed",
            shown_url(endpoint.as_deref().unwrap_or_default())
        );
        self.trace.decided(&note);
        self.notes.push(note);
        self.request = None;
        self.refused_refresh = true;
        self.spent = self.session.as_ref().and_then(Session::refresh_token).map(str::to_owned);
        if !self.given.refused && self.given.auth.granted() == Grant::AuthorizationCode {
            // The next request needs a user: not before the server has said what it wants.
            return self.failed("the refresh", endpoint.as_deref(), &refusal.to_string());
        }
        self.decide_again(now)
    }

    /// Returns true if a client that the program was given may log in, and may not refresh (RFC 6749 §5.2).
    fn may_not_refresh(&self, refusal: &Refusal) -> bool {
        let client = self.request.as_ref().map(|request| request.client.known_by);
        refusal.is("unauthorized_client") && client != Some(KnownBy::Registration)
    }

    /// The server does not know the client that the refresh token was given to.
    fn refused_to_client(&mut self, refusal: &Refusal, endpoint: Option<&str>, now: u64) -> Step {
        let client = self.request.as_ref().map(|request| request.client.clone());
        let Some(client) = client.filter(|client| client.known_by == KnownBy::Registration && self.given.refused)
        else {
            let own = self.given.auth.client_id.is_some();
            let advice = match own {
                true => format!("; look at {} and {}", named("client_id"), named("client_secret")),
                false => String::new(),
            };
            return self.failed("the refresh", endpoint, &format!("{refusal}; {KEPT}{advice}"));
        };
        // Until the login that follows has succeeded, the token stays where it is kept.
        let note = format!(
            "the registration at {} is not known there any more ({refusal}): this program is registered again, which needs \
             a new login",
            shown_url(&self.issuer)
        );
        self.trace.decided(&note);
        self.notes.push(note);
        self.request = None;
        self.forgotten = Some(client.client_id);
        self.refused_refresh = true;
        self.refused_client = true;
        self.decide_again(now)
    }

    /// It may have been refused in words of the server's own, or by somebody on the way.
    fn refused_strangely(&mut self, refusal: &Refusal, endpoint: Option<&str>, now: u64) -> Step {
        if self.metadata.is_none() {
            self.trace.decided("no refusal of the refresh token: where the token endpoint is now is looked for");
            self.request = None;
            return self.discover();
        }
        let token = self.session.as_ref().and_then(Session::refresh_token).map(str::to_owned);
        let again = self.given.doubted == token;
        if self.given.refused && (again || refusal.is_of_endpoint()) {
            // A login is the way out, and until it succeeds the token stays where it is kept.
            let note = format!(
                "the refresh token was not taken at {} ({refusal}): a new login is needed",
                shown_url(endpoint.unwrap_or_default())
            );
            self.trace.decided(&note);
            self.notes.push(note);
            self.request = None;
            self.nonce_tried = false;
            return self.grant(now);
        }
        self.doubted = token;
        let advice = "this client's next attempt leads to a new login, and any other's once the kept one is removed";
        self.failed("the refresh", endpoint, &format!("{refusal}; {KEPT}: {advice}"))
    }

    fn decide_again(&mut self, now: u64) -> Step {
        let session = self.session.take();
        match self.metadata {
            Some(_) => self.decide(session, now),
            None => self.discover(),
        }
    }

    fn finish(&mut self, token: Token, endpoint: Option<&str>, now: u64) -> Step {
        if token.token_type == TokenType::Dpop && self.proofs.is_none() {
            return self.failed("the token endpoint", endpoint, "it gave a DPoP token that was not asked for");
        }
        if token.token_type == TokenType::Bearer && self.proofs.is_some() && self.needs_dpop() {
            return self.failed("the token endpoint", endpoint, "it gave a bearer token, and the server wants DPoP");
        }
        if token.token_type == TokenType::Bearer && self.proofs.is_some() && self.given.auth.dpop == Some(true) {
            let place = shown_url(endpoint.unwrap_or_default());
            let note = format!("{place} gave a bearer token, which is bound to no key, although dpop was asked for");
            self.trace.decided(&note);
            self.notes.push(note);
        }
        let Some(request) = self.request.take() else {
            return Step::Failed(Error::new(ErrorKind::Auth, "authorization: a token that nobody asked for"));
        };
        self.trace.decided("a token");
        let methods = match &self.metadata {
            Some(metadata) => metadata.token_endpoint_auth_methods_supported.clone(),
            None => self.session.as_ref().and_then(|session| session.methods.clone()),
        };
        let bound = self.proofs.as_ref().filter(|_| token.token_type == TokenType::Dpop);
        Step::Done(Box::new(Session {
            issuer: self.issuer.clone(),
            resource: self.identifier.clone(),
            resource_metadata: self.resource_metadata.take().or_else(|| {
                let before = self
                    .session
                    .as_ref()
                    .or(self.given.stored.as_ref())
                    .filter(|s| is_same_issuer(&s.issuer, &self.issuer));
                before?.resource_metadata.clone()
            }),
            token_endpoint: request.endpoint,
            methods,
            client: request.client,
            grant: Some(self.given.auth.granted()),
            user: self.given.auth.user.clone(),
            unsaved: false,
            scopes: request.scopes,
            since: now,
            dpop: bound.map(Proofs::to_kept),
            token: Some(token),
        }))
    }
}
