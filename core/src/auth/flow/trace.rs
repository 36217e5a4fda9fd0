//! Steps of a login, for people who want to know why it failed.

use serde::Serialize;

use crate::error::shown_url;

/// The most steps of one login.
const MAX_STEPS: usize = 64;

/// One step of a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuthStep {
    /// Purpose of the step: `challenge` (the server's refusal, and its reason), `resource metadata`, `authorization
    /// server metadata`, `registration`, `token`, …
    pub step: &'static str,
    /// Address, without the parts that may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Consequence of the answer.
    pub decision: String,
}

#[derive(Default)]
pub(super) struct Trace(Vec<AuthStep>);

impl Trace {
    /// A step is begun.
    pub(super) fn step(&mut self, step: &'static str) {
        if self.0.len() < MAX_STEPS {
            self.0.push(AuthStep { step, url: None, status: None, decision: String::new() });
        }
    }

    /// A step that asks somebody.
    pub(super) fn asked(&mut self, step: &'static str, url: &str) {
        self.step(step);
        if let Some(last) = self.0.last_mut() {
            last.url = Some(shown_url(url.split('?').next().unwrap_or_default()).trim_matches('"').to_owned());
        }
    }

    pub(super) fn answered(&mut self, status: u16) {
        if let Some(last) = self.0.last_mut() {
            last.status = Some(status);
        }
    }

    /// Records the consequence of the newest step.
    pub(super) fn decided(&mut self, what: &str) {
        match self.0.last_mut() {
            Some(last) if last.decision.is_empty() => what.clone_into(&mut last.decision),
            Some(last) => {
                last.decision.push_str("; ");
                last.decision.push_str(what);
            }
            None => {
                self.step("start");
                self.decided(what);
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<AuthStep> {
        std::mem::take(&mut self.0)
    }
}
