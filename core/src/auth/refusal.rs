//! Refusals of an authorization server.

use std::fmt;

use serde_json::Value;

use super::fetch::Fetched;
use crate::error::shortened;

/// Reads the code and the description of a refusal.
pub(crate) fn refusal_of(fetched: &Fetched) -> Refusal {
    let body: Value = serde_json::from_slice(&fetched.body).unwrap_or_default();
    let text = |name: &str, most| body.get(name).and_then(Value::as_str).map(|text| shortened(text, most).into_owned());
    Refusal { status: fetched.status, error: text("error", 60), description: text("error_description", 200) }
}

/// A refusal as RFC 6749 §5.2 has it, or any other answer that is not what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
    pub(crate) description: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        if let Some(error) = &self.error {
            write!(f, " {error:?}")?;
        }
        self.description.as_ref().map_or(Ok(()), |description| write!(f, ": {description:?}"))
    }
}

impl Refusal {
    /// Returns true if the same may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        const LATER: [&str; 4] = ["temporarily_unavailable", "slow_down", "server_error", "use_dpop_nonce"];
        self.is_busy() || self.error.as_deref().is_some_and(|error| LATER.contains(&error))
    }

    /// Returns true if what was shown is of no use any more: what says so in OAuth's own word for it, and not the page
    /// of a proxy or a complaint about the request.
    pub(crate) fn is_final(&self) -> bool {
        !self.is_busy() && self.is("invalid_grant")
    }

    /// Returns true if a token endpoint has said so, in whatever words, and would again: a 403 that has no error of
    /// OAuth's in it may be of a proxy's.
    pub(crate) fn is_of_endpoint(&self) -> bool {
        let in_general = matches!(self.status, 400..500) && !matches!(self.status, 403 | 407 | 451);
        !self.is_transient() && (in_general || (self.status < 500 && self.error.is_some()))
    }

    /// Returns true if the server does not know the client, or not by what it has shown.
    pub(crate) fn is_of_client(&self) -> bool {
        !self.is_busy() && (self.is("invalid_client") || self.is("unauthorized_client"))
    }

    /// Without these texts, which the server may have repeated.
    pub(crate) fn without<'a>(mut self, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        for secret in secrets {
            for said in [&mut self.error, &mut self.description].into_iter().flatten() {
                mask(said, secret);
            }
        }
        self
    }

    pub(super) fn is_busy(&self) -> bool {
        self.status >= 500 || matches!(self.status, 408 | 425 | 429)
    }

    pub(crate) fn is(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }
}

/// Takes a secret out of a text.
pub(crate) fn mask(text: &mut String, secret: &str) {
    // A long one may have been cut off.
    let shown = (MASKED..=secret.len()).rev().filter_map(|end| secret.get(..end));
    if let Some(shown) = shown.into_iter().find(|shown| text.contains(*shown)) {
        *text = text.replace(shown, "…");
    }
}

/// The shortest text that is taken for a secret which somebody repeats.
pub(super) const MASKED: usize = 6;
