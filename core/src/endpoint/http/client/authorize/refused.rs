//! Consequences of a refused request for its token, and the attempts for one request.

use std::sync::Arc;

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;

use crate::auth::challenge::{self, Challenge};
use crate::auth::refusal::mask;
use crate::endpoint::http::client::authorize::{Access, Authorizer, Why};
use crate::endpoint::http::client::head::Head;
use crate::error::{Error, ErrorKind, Result, shortened, shown_url};

/// Most times that the scopes of a token are widened for one request.
const MAX_STEP_UPS: usize = 2;

/// Most times that one request waits for the logins of others that want other scopes.
const MAX_JOINED: usize = 100;

/// The most sets of scopes of which it is remembered that they were not granted.
const MAX_DECLINED: usize = 100;

/// Attempts for one request.
#[derive(Default)]
pub(in super::super) struct Trial {
    /// Nobody waits for it, so no user is asked.
    quiet: bool,
    /// Tokens of a login, or of a grant without a user.
    logins: usize,
    /// Tokens of a refresh: whoever logs in may still get a better one.
    refreshes: usize,
    /// Tokens that somebody else had got meanwhile.
    taken_over: usize,
    step_ups: usize,
    /// Logins with more scopes that were somebody else's.
    joined: usize,
    nonces: usize,
}

impl Trial {
    pub(in super::super) fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }
}

impl Authorizer {
    /// Draws the consequences of an answer for the token of its request. `true`: the request is worth another attempt.
    ///
    /// # Errors
    /// The reason why there is no token that would do.
    pub(in super::super) async fn is_refused(
        self: &Arc<Self>,
        head: &Head,
        shown: Option<&Access>,
        trial: &mut Trial,
    ) -> Result<bool> {
        let nonce = head.headers.get("dpop-nonce").and_then(|value| value.to_str().ok());
        if let (Some(nonce), Some(Access { proofs: Some(_), .. })) = (nonce, shown) {
            self.lock().nonce = Some(nonce.into());
        }
        if !matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            || self.auth.token.is_some()
            || self.over.is_set()
        {
            return Ok(false);
        }
        let lines: Vec<&str> =
            head.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
        let challenges = challenge::parse(&lines);
        // Without a user, and so with the refresh token or not at all.
        let quiet = trial.quiet && self.needs_user();
        let refused = |what: &str, challenges: &[Challenge]| self.refused(what, challenges, shown);
        let says = |error: &str| challenges.iter().any(|challenge| challenge.get("error") == Some(error));
        let generation = shown.map_or_else(|| self.lock().generation, |access| access.generation);
        if head.status == StatusCode::UNAUTHORIZED {
            if nonce.is_some() && says("use_dpop_nonce") && trial.nonces == 0 {
                trial.nonces += 1;
                return Ok(true);
            }
            if trial.logins > 0 {
                return Err(refused("a token that it was just given", &challenges));
            }
            let refreshed = trial.refreshes > 0;
            if quiet && (refreshed || !self.lock().may_refresh()) {
                return Err(refused("the token, and only a user can get another", &challenges));
            }
            self.lock().declined.clear();
            let why = match (quiet, refreshed) {
                (true, _) => Why::Ahead,
                (false, true) => Why::Useless(challenges),
                (false, false) => Why::Refused(challenges),
            };
            self.fly(why, generation).await?;
            let state = self.lock();
            let is = |token: u64| token == state.generation;
            match trial {
                // A token that somebody else has got is not the one that this request was given.
                _ if is(state.taken_over) && trial.taken_over == 0 => trial.taken_over += 1,
                _ if is(state.refreshed) && trial.refreshes == 0 => trial.refreshes += 1,
                _ => trial.logins += 1,
            }
            return Ok(true);
        }
        if !says("insufficient_scope") || self.auth.tokens.is_some() {
            return Ok(false);
        }
        if quiet {
            return Err(refused("the token, and only a user can get another", &challenges));
        }
        let wanted = challenges.iter().find_map(|challenge| challenge.get("scope")).unwrap_or_default();
        let newer = self.lock().generation != generation;
        if !newer && shown.is_some() && wanted.trim().is_empty() {
            // The same scopes would be asked for once more.
            return Err(refused("the token, and its challenge names no scope to ask for", &challenges));
        }
        if !newer
            && !wanted.is_empty()
            && self.lock().session.as_ref().is_some_and(|session| session.has_scopes(wanted))
        {
            return Err(refused("a token that has all the scopes that it wants", &challenges));
        }
        if self.lock().declined.contains(wanted) {
            return Err(refused("the token, and the scopes that it wants were not granted", &challenges));
        }
        if trial.step_ups >= MAX_STEP_UPS {
            return Err(refused(&format!("the token, after {MAX_STEP_UPS} logins with more scopes"), &challenges));
        }
        if trial.joined >= MAX_JOINED {
            return Err(refused(&format!("the token, after {MAX_JOINED} logins of other calls"), &challenges));
        }
        let wanted = wanted.to_owned();
        if !self.fly(Why::Insufficient(challenges), generation).await? {
            // The scopes that this one wants were not asked for.
            trial.joined += 1;
            return Ok(true);
        }
        trial.step_ups += 1;
        let mut state = self.lock();
        let granted = state.session.as_ref().is_some_and(|session| session.has_scopes(&wanted));
        if !granted && !wanted.is_empty() {
            if state.declined.len() >= MAX_DECLINED {
                state.declined.clear();
            }
            state.declined.insert(wanted);
        }
        Ok(true)
    }

    pub(super) fn refused(&self, what: &str, challenges: &[Challenge], shown: Option<&Access>) -> Error {
        let mut message = format!("authorization: {} refuses {what}", shown_url(&self.server_url));
        for name in ["error", "error_description", "scope"] {
            if let Some(value) = challenges.iter().find_map(|challenge| challenge.get(name)) {
                let mut value = value.to_owned();
                shown.into_iter().for_each(|access| mask(&mut value, &access.token));
                message.push_str(&format!("; {name}: {:?}", shortened(&value, 200)));
            }
        }
        Error::new(ErrorKind::Auth, message)
    }
}
