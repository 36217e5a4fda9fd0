//! Tokens that the authorization server is asked about.

use std::sync::Arc;

use tokio::time::timeout;

use crate::auth::fetch::Fetch;
use crate::auth::resource::claims::{self, Expected};
use crate::auth::resource::introspection;
use crate::driver::now;
use crate::endpoint::http::server::guard::{Denied, Guard, invalid, lock, seconds};
use crate::endpoint::http::server::holder::Holder;
use crate::model::Principal;

const INACTIVE: &str = "the token is not active";

impl Guard {
    /// Returns the principal of a token; `key` stands for the token, and for everything that it is good for.
    pub(super) async fn introspected(
        &self,
        key: [u8; 32],
        fetch: impl Fn() -> Fetch,
        expected: &Expected<'_>,
        holder: &Holder,
    ) -> Result<Arc<Principal>, Denied> {
        let known = || lock(&self.known).get(&key, now());
        if let Some(principal) = known() {
            return Ok(principal);
        }
        if lock(&self.known).is_inactive(&key, now()) {
            return Err(invalid(INACTIVE));
        }
        let _waiting = self.waits(holder)?;
        let asked = async {
            let _turn = self.asking.acquire().await.map_err(|_| "it was closed".to_owned())?;
            match known() {
                Some(principal) => Ok(Some(Ok(principal))),
                None => Ok(introspection::read(&self.fetched(&fetch()).await?)?.map(Err)),
            }
        };
        let claims = match timeout(self.auth.timeout, asked).await {
            Ok(Ok(Some(Ok(principal)))) => return Ok(principal),
            Ok(Ok(Some(Err(claims)))) => claims,
            Ok(Ok(None)) => {
                lock(&self.known).put_inactive(key, now());
                return Err(invalid(INACTIVE));
            }
            Ok(Err(why)) => {
                let why: String = why;
                return Err(self.unavailable(&format!("introspection: {why}")));
            }
            Err(_) => return Err(self.unavailable("introspection: no answer in time")),
        };
        let principal = claims::check(claims, expected, seconds()).map_err(invalid)?;
        let principal = Arc::new(self.completed(principal));
        lock(&self.known).put(key, principal.clone(), now());
        Ok(principal)
    }
}
