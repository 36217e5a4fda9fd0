//! Tokens that their issuer has signed, and its keys.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::auth::fetch::Fetch;
use crate::auth::jose::{self, Algorithm, KeySet, Refused};
use crate::auth::resource::keys::Look;
use crate::auth::resource::{Source, claims};
use crate::auth::server_metadata::{ServerMetadata, well_known};
use crate::auth::url::is_safe;
use crate::driver::{now, runtime};
use crate::endpoint::http::server::guard::{Denied, Guard, invalid, lock};
use crate::endpoint::http::server::holder::Holder;
use crate::error::shown_url;

impl Guard {
    /// The claims of a token that its issuer has signed.
    pub(super) async fn verified(self: &Arc<Self>, token: &str) -> Result<Map<String, Value>, Denied> {
        let header = jose::header(token)?;
        if !claims::is_access_token(header.typ.as_deref()) {
            return Err(invalid("the token is no access token (typ)"));
        }
        let keys = self.keys(None).await?;
        let refused = match jose::verify(token, &keys, &Algorithm::ALL) {
            Ok(claims) => return Ok(claims),
            Err(refused) => refused,
        };
        // The issuer may sign with another key by now, which may have the name of the former one.
        if !matches!(refused, Refused::UnknownKey | Refused::Signature) {
            return Err(refused.into());
        }
        let is_named = refused == Refused::Signature && header.kid.is_some();
        let newer = self.keys(Some(&keys)).await?;
        match Arc::ptr_eq(&newer, &keys) {
            // The key that it names is known, and did not sign it.
            true if is_named => Err(refused.into()),
            true if lock(&self.keys).has_failed() => Err(Denied::Unavailable),
            true => Err(refused.into()),
            false => Ok(jose::verify(token, &newer, &Algorithm::ALL)?),
        }
    }

    /// The issuer's keys; `lacking` are some that a token is not signed with.
    async fn keys(self: &Arc<Self>, lacking: Option<&Arc<KeySet>>) -> Result<Arc<KeySet>, Denied> {
        let mut waited = false;
        loop {
            let look = lock(&self.keys).look(now(), lacking);
            match look {
                Look::Use(keys) => return Ok(keys),
                Look::Renew(keys) => {
                    drop(self.start_fetch(lacking));
                    return Ok(keys);
                }
                Look::Fetch if !waited => {
                    let _waiting = self.waits(&Holder::Unknown)?;
                    match self.start_fetch(lacking) {
                        Some(task) => drop(task.await),
                        None => drop(self.fetching.lock().await),
                    }
                    waited = true;
                }
                Look::Fetch | Look::Down => return Err(Denied::Unavailable),
            }
        }
    }

    /// Fetches the keys, unless that is being done or has just been. It goes on whoever hangs up, because others wait,
    /// and clients that come and go quickly would not let it end.
    fn start_fetch(self: &Arc<Self>, lacking: Option<&Arc<KeySet>>) -> Option<tokio::task::JoinHandle<()>> {
        let turn = self.fetching.clone().try_lock_owned().ok()?;
        if !matches!(lock(&self.keys).look(now(), lacking), Look::Fetch | Look::Renew(_)) {
            return None;
        }
        let (guard, missed) = (self.clone(), lacking.is_some());
        Some(runtime::spawn(async move {
            let looking = AssertUnwindSafe(guard.looked_for()).catch_unwind();
            let found = match timeout(guard.auth.timeout, looking).await {
                Ok(Ok(found)) => found,
                Ok(Err(_)) => Err("fetching panicked".to_owned()),
                Err(_) => Err(format!("no answer within {:?}", guard.auth.timeout)),
            };
            if let Err(why) = &found {
                guard.complain(&format!("the issuer's keys cannot be fetched: {why}"));
            }
            lock(&guard.keys).fetched(now(), found.ok(), missed);
            drop(turn);
        }))
    }

    async fn looked_for(&self) -> Result<KeySet, String> {
        let Source::Issuer { issuer, jwks_uri } = &self.auth.source else { return Err("there is no issuer".into()) };
        let known = jwks_uri.clone().or_else(|| lock(&self.keys).uri.clone());
        let uri = match known {
            Some(uri) => uri,
            None => {
                let found = self.discovered(issuer).await?;
                lock(&self.keys).uri = Some(found.clone());
                found
            }
        };
        let answer = self.fetched(&Fetch::get(&uri)).await.map_err(|why| format!("{}: {why}", shown_url(&uri)))?;
        if answer.status != 200 {
            return Err(format!("{} answered {}, expected 200", shown_url(&uri), answer.status));
        }
        let keys = KeySet::parse(&answer.body).map_err(|why| format!("{}: {why}", shown_url(&uri)))?;
        match keys.len() {
            0 => Err(format!("{} has no key that tokens can be verified with", shown_url(&uri))),
            _ => Ok(keys),
        }
    }

    /// Returns the address of an issuer's keys, by its metadata (RFC 8414; OpenID Connect Discovery).
    async fn discovered(&self, issuer: &str) -> Result<String, String> {
        let mut tried = Vec::new();
        for url in well_known(issuer) {
            let why = match self.fetched(&Fetch::get(&url)).await {
                Ok(answer) if answer.status == 200 => match ServerMetadata::parse(&answer.body, Some(issuer)) {
                    Ok(ServerMetadata { jwks_uri: Some(uri), .. }) if is_safe(&uri) => return Ok(uri),
                    Ok(ServerMetadata { jwks_uri: Some(_), .. }) => "its jwks_uri is no https URL".to_owned(),
                    Ok(_) => "it has no jwks_uri; say it with Auth::jwks_uri".to_owned(),
                    Err(why) => why,
                },
                Ok(answer) => format!("answered {}", answer.status),
                Err(why) => why,
            };
            tried.push(format!("{}: {why}", shown_url(&url)));
        }
        Err(format!("no metadata of the issuer {}: {}", shown_url(issuer), tried.join("; ")))
    }
}
