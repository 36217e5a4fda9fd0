//! What a login leaves behind, and what is kept of it.

use serde::{Deserialize, Serialize};

use super::client::{Auth, Grant};
use super::registration::{Client, KnownBy};
use super::secret::Secret;
use super::token::Token;
use crate::error::{Error, ErrorKind, Result};

/// What one client has at one authorization server, for one MCP server. There is nothing of another issuer in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) issuer: String,
    /// What tokens are asked for (RFC 8707), as the server's metadata has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// Where that metadata was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_metadata: Option<String>,
    pub(crate) token_endpoint: String,
    /// The server's `token_endpoint_auth_methods_supported`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    pub(crate) client: Client,
    /// How the token was got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
    /// What was asked for.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Token>,
    /// When it came, Unix seconds.
    #[serde(default)]
    pub(crate) since: u64,
    /// The key that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dpop: Option<Secret>,
}

impl Session {
    /// Whether it belongs to who is meant by these options: what another program or user has got is not shown for them.
    pub(crate) fn is_of(&self, auth: &Auth) -> bool {
        let client_id = &self.client.client_id;
        let client = match self.client.known_by {
            KnownBy::Preregistration => auth.client_id.as_ref() == Some(client_id),
            KnownBy::MetadataDocument => auth.client_metadata_url.as_ref() == Some(client_id),
            KnownBy::Registration => auth.client_id.is_none(),
        };
        client
            && self.grant.is_none_or(|grant| grant == auth.granted())
            && auth.issuer.as_ref().is_none_or(|issuer| *issuer == self.issuer)
    }

    /// The scopes that the token is good for: what was granted, or all that was asked for.
    pub(crate) fn has_scopes(&self, wanted: &str) -> bool {
        let granted = self.token.as_ref().and_then(|token| token.scope.as_deref());
        wanted.split_whitespace().all(|scope| match granted {
            Some(granted) => granted.split_whitespace().any(|own| own == scope),
            None => self.scopes.iter().any(|own| own == scope),
        })
    }

    pub(crate) fn refresh_token(&self) -> Option<&str> {
        self.token.as_ref()?.refresh_token.as_deref()
    }

    /// As it is kept.
    ///
    /// # Errors
    /// Never, as all of it can be written.
    pub(crate) fn to_kept(&self) -> Result<Secret> {
        serde_json::to_string(self)
            .map(Secret::new)
            .map_err(|e| Error::new(ErrorKind::Auth, format!("a login cannot be written: {e}")))
    }

    /// What was kept; `None` when it is another issuer's, or another version of this library has written it
    /// otherwise.
    pub(crate) fn from_kept(kept: &Secret, issuer: &str) -> Option<Self> {
        serde_json::from_str::<Self>(kept.expose()).ok().filter(|session| session.issuer == issuer)
    }
}
