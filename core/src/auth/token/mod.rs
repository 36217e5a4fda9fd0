//! The token endpoint: RFC 6749 §3.2, §4.4, §5 and §6, with the grants of RFC 7523 and the client's proof of itself.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assertion::CLIENT_ASSERTION_TYPE;
use super::fetch::{Fetch, Fetched};
use super::refusal::{Refusal, refusal_of};
use super::registration::Client;
use super::url::form;
use crate::error::shortened;

/// The media type of what is posted there.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
/// RFC 7523 §2.1: an assertion is the grant.
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// A token is renewed so many seconds before its end, or a tenth of its life if that is less.
const AHEAD: u64 = 30;

/// Authentication of a client at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    None,
    Basic,
    Post,
    PrivateKeyJwt,
}

impl Method {
    fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            "private_key_jwt" => Some(Self::PrivateKeyJwt),
            _ => None,
        }
    }

    /// Chooses the method that both sides support, of those that the server lists; its default list is that of RFC
    /// 8414.
    ///
    /// # Errors
    /// The methods that the server wants instead, for people.
    pub(crate) fn choose(client: &Client, has_key: bool, listed: Option<&[String]>) -> Result<Self, String> {
        if let Some(agreed) = client.token_endpoint_auth_method.as_deref().and_then(Self::named)
            && (agreed == Self::None || client.client_secret.is_some() || (has_key && agreed == Self::PrivateKeyJwt))
        {
            return Ok(agreed);
        }
        let lists =
            |method: Self| listed.is_some_and(|listed| listed.iter().any(|own| Self::named(own) == Some(method)));
        if has_key {
            return match listed {
                Some(all) if !lists(Self::PrivateKeyJwt) => Err(format!(
                    "lists token_endpoint_auth_methods_supported {}, without private_key_jwt",
                    shortened(&format!("{all:?}"), 200)
                )),
                _ => Ok(Self::PrivateKeyJwt),
            };
        }
        if client.client_secret.is_none() {
            // Many servers do not list what public clients do.
            return Ok(Self::None);
        }
        match listed {
            None => Ok(Self::Basic),
            Some(_) if lists(Self::Basic) => Ok(Self::Basic),
            Some(_) if lists(Self::Post) => Ok(Self::Post),
            Some(_) if lists(Self::None) => Ok(Self::None),
            Some(all) => Err(format!(
                "lists token_endpoint_auth_methods_supported {}, and a client secret can be shown by client_secret_basic \
                 or client_secret_post",
                shortened(&format!("{all:?}"), 200)
            )),
        }
    }
}

/// A request for a token. `assertion`: what `private_key_jwt` signs; `proof`: DPoP's.
pub(crate) fn request<'a>(
    endpoint: &str,
    mut pairs: Vec<(&'a str, &'a str)>,
    client: &'a Client,
    method: Method,
    assertion: Option<&'a str>,
    proof: Option<String>,
) -> Fetch {
    let mut basic = None;
    let secret = client.client_secret.as_deref().unwrap_or_default();
    match method {
        Method::None => pairs.push(("client_id", &client.client_id)),
        Method::Post => pairs.extend([("client_id", &*client.client_id), ("client_secret", secret)]),
        Method::Basic => {
            // RFC 6749 §2.3.1: each is encoded before they are joined.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let joined = format!("{}:{}", encoded(&client.client_id), encoded(secret));
            basic = Some(format!("Basic {}", STANDARD.encode(joined)));
        }
        Method::PrivateKeyJwt => {
            pairs.extend([
                ("client_id", &*client.client_id),
                ("client_assertion_type", CLIENT_ASSERTION_TYPE),
                ("client_assertion", assertion.unwrap_or_default()),
            ]);
        }
    }
    let mut fetch = Fetch::post(endpoint, FORM, form(pairs));
    fetch.headers.extend(basic.map(|value| ("authorization", value)));
    fetch.headers.extend(proof.map(|value| ("dpop", value)));
    fetch
}

/// Scheme by which a token is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TokenType {
    Bearer,
    #[serde(rename = "DPoP")]
    Dpop,
}

/// Answer of the token endpoint. Times are Unix seconds.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) access_token: String,
    pub(crate) token_type: TokenType,
    /// `None`: not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
    /// From then on it is renewed before it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renew_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// The granted scopes, if the server names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("token_type", &self.token_type)
            .field("expires_at", &self.expires_at)
            .field("refresh_token", &self.refresh_token.is_some())
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Token {
    /// Returns true if it should not be used any more.
    pub(crate) fn is_stale(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }
}

/// Reads the answer of the token endpoint.
///
/// # Errors
/// Its refusal. A token that cannot be read is one, too.
pub(crate) fn answer(fetched: &Fetched, now: u64) -> Result<Token, Refusal> {
    let refusal = refusal_of(fetched);
    if !(200..300).contains(&fetched.status) || refusal.error.is_some() {
        return Err(refusal);
    }
    let unreadable = |why: &str| Refusal { description: Some(why.to_owned()), ..refusal.clone() };
    let body: Value =
        serde_json::from_slice(&fetched.body).map_err(|_| unreadable("the answer is no JSON, and so no token"))?;
    if !body.is_object() {
        return Err(unreadable("the answer is no JSON object, and so no token"));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let access_token = text("access_token").ok_or_else(|| unreadable("the answer has no access_token"))?;
    // It becomes a part of a header.
    if !access_token.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Err(unreadable("the access_token has characters that no header can carry"));
    }
    let token_type = match text("token_type") {
        None => TokenType::Bearer,
        Some(name) if name.eq_ignore_ascii_case("bearer") => TokenType::Bearer,
        Some(name) if name.eq_ignore_ascii_case("dpop") => TokenType::Dpop,
        Some(_) => return Err(unreadable("the token_type is neither Bearer nor DPoP")),
    };
    // Some write it as a text, and some as a fraction.
    let life = body.get("expires_in").and_then(|value| match value {
        Value::String(text) => text.trim().parse::<u64>().ok(),
        value => value.as_u64().or_else(|| value.as_f64().filter(|life| *life >= 0.0).map(|life| life as u64)),
    });
    Ok(Token {
        access_token,
        token_type,
        expires_at: life.map(|life| now.saturating_add(life)),
        renew_at: life.map(|life| now.saturating_add(life - (life / 10).min(AHEAD))),
        refresh_token: text("refresh_token"),
        scope: text("scope"),
    })
}

#[cfg(test)]
mod tests;
