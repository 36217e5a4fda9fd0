//! Sources of tests, and a search for one by its name.
//!
//! | name | test |
//! |---|---|
//! | `transcript FOLDER/FILE` | `tests/transcripts/FOLDER/FILE.txt`, in every language |
//! | `case FILE/NAME` | a case of `tests/cases/FILE.json`, in every language |
//! | `load NAME` | `contract leaks`, `contract launchers`, `contract stateless`, `contract together`, `contract cassettes` and the broken HTTP of `contract bad-input`, in every language |
//! | `login SCENE` | a scene of `contract logins`, in every language |
//! | `guide SCENE` | a scene of `contract guides`, in every language |
//! | `attack GROUP/NAME` | an attack of `tests/cases/attacks`, on the server of every language and its mounts |
//! | `suite server\|client SCENARIO` | a scenario of the official suite, in every language |
//! | `engine PATH NAME` | a test function of the engine below `core/`, counted for every language |
//! | `discovery FILE` | `tests/auth/discovery/FILE.json`, which the engine's tests read, counted for every language |
//! | `rust\|python\|node\|swift PATH NAME` | a test of that language alone |

use super::missing;
use crate::options::LANGUAGES;
use crate::script;
use crate::{Outcome, attacks, cases, guides, logins};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Proved = [bool; LANGUAGES.len()];

/// The loads that have no file.
const LOADS: [&str; 6] = ["leaks", "launchers", "broken-http", "stateless", "together", "cassettes"];

/// The scenarios of the official suite that requirements may lean on: those that it exercises.
const SERVER_SCENARIOS: [&str; 61] = [
    "caching",
    "completion-complete",
    "dns-rebinding-protection",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "http-custom-header-server-validation",
    "http-header-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "json-schema-2020-12",
    "logging-set-level",
    "ping",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "sep-2164-resource-not-found",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "server-stateless",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
    "tools-call-audio",
    "tools-call-elicitation",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-sampling",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-list",
];
const CLIENT_SCENARIOS: [&str; 44] = [
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/authorization-server-migration",
    "auth/basic-cimd",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/iss-normalized",
    "auth/iss-not-advertised",
    "auth/iss-supported",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-default",
    "auth/metadata-issuer-mismatch",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/offline-access-not-supported",
    "auth/offline-access-scope",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/scope-from-scopes-supported",
    "auth/scope-from-www-authenticate",
    "auth/scope-omitted-when-undefined",
    "auth/scope-retry-limit",
    "auth/scope-step-up",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-none",
    "auth/token-endpoint-auth-post",
    "auth/wif-jwt-bearer",
    "elicitation-sep1034-client-defaults",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "http-standard-headers",
    "initialize",
    "json-schema-2020-12-preservation",
    "json-schema-ref-no-deref",
    "request-metadata",
    "sep-2322-client-request-state",
    "sse-retry",
    "tools_call",
];

/// Everything that can be named.
pub(super) struct Sources {
    root: PathBuf,
    transcripts: BTreeMap<String, Proved>,
    cases: BTreeMap<String, Proved>,
    attacks: BTreeMap<String, Proved>,
    unsupported: BTreeMap<String, Vec<String>>,
}

impl Sources {
    pub(super) fn read(root: &Path) -> Outcome<Self> {
        let mut transcripts = BTreeMap::new();
        for script in script::read_all(&root.join("tests/transcripts"))? {
            transcripts.insert(script.name, without(&script.skips));
        }
        let cases =
            cases::names(&root.join("tests/cases"))?.into_iter().map(|(name, skips)| (name, without(&skips))).collect();
        let attacks = attacks::names(&root.join("tests/cases/attacks"))?
            .into_iter()
            .map(|(name, skips)| (name, without(&skips)))
            .collect();
        let mut unsupported = BTreeMap::new();
        for side in ["server", "client"] {
            let path = root.join(format!("tests/conformance/{side}.toml"));
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            unsupported.insert(side.to_owned(), failing(&text));
        }
        Ok(Self { root: root.to_owned(), transcripts, cases, attacks, unsupported })
    }

    /// Returns the languages that a test proves something in.
    pub(super) fn languages(&self, test: &str) -> Outcome<Proved> {
        let (kind, rest) = test.split_once(' ').ok_or_else(|| missing(test, "KIND NAME"))?;
        match kind {
            "transcript" => self.transcripts.get(rest).copied().ok_or_else(|| missing(test, "no such file")),
            "case" => self.cases.get(rest).copied().ok_or_else(|| missing(test, "no such case")),
            "load" => everywhere(test, LOADS.contains(&rest)),
            "login" => everywhere(test, logins::names().any(|scene| scene == rest)),
            "guide" => everywhere(test, guides::names().any(|scene| scene == rest)),
            "attack" => self.attacks.get(rest).copied().ok_or_else(|| missing(test, "no such attack")),
            "discovery" => {
                let file = self.root.join(format!("tests/auth/discovery/{rest}.json"));
                everywhere(test, file.is_file())
            }
            "suite" => {
                let (side, scenario) = rest.split_once(' ').ok_or_else(|| missing(test, "suite SIDE SCENARIO"))?;
                let known: &[&str] = if side == "server" { &SERVER_SCENARIOS } else { &CLIENT_SCENARIOS };
                if !known.contains(&scenario) {
                    return Err(missing(test, "no such scenario"));
                }
                let failing = self.unsupported.get(side).ok_or_else(|| missing(test, "server or client"))?;
                if failing.iter().any(|name| name == scenario) {
                    return Err(missing(test, "that scenario is expected to fail"));
                }
                Ok([true; LANGUAGES.len()])
            }
            "engine" => self.function(&format!("core/{rest}"), test).map(|()| [true; LANGUAGES.len()]),
            language => {
                let position = LANGUAGES.iter().position(|known| *known == language);
                let position = position.ok_or_else(|| missing(test, "unknown kind"))?;
                self.function(rest, test)?;
                let mut proved = [false; LANGUAGES.len()];
                proved[position] = true;
                Ok(proved)
            }
        }
    }

    /// `PATH NAME`: the file has the name, as a function or as a title in quotes.
    fn function(&self, rest: &str, test: &str) -> Outcome {
        let (path, name) = rest.split_once(' ').ok_or_else(|| missing(test, "PATH NAME"))?;
        let text = std::fs::read_to_string(self.root.join(path)).map_err(|_| missing(test, "no such file"))?;
        let forms = [
            format!("fn {name}("),
            format!("def {name}("),
            format!("func {name}("),
            format!("\"{name}\""),
            format!("'{name}'"),
        ];
        if forms.iter().any(|form| text.contains(form)) {
            Ok(())
        } else {
            Err(missing(test, "the file has no such test"))
        }
    }
}

/// Scenarios that are expected to fail: every quoted word of such an entry outside its reason.
fn failing(text: &str) -> Vec<String> {
    let mut table = "";
    let mut names = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if line.starts_with('[') {
            table = line.trim_end();
        } else if table == "[[expected]]" && !line.starts_with("reason") {
            names.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    names
}

/// Returns the languages of a test that is the same in all of them.
fn everywhere(test: &str, is_there: bool) -> Outcome<Proved> {
    if is_there { Ok([true; LANGUAGES.len()]) } else { Err(missing(test, "nothing has that name")) }
}

fn without(skips: &[(String, String)]) -> Proved {
    LANGUAGES.map(|language| !skips.iter().any(|(gap, _)| gap == language || gap == "all"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::launch;

    fn sources() -> Sources {
        Sources::read(&launch::root().unwrap()).unwrap()
    }

    #[test]
    fn what_all_languages_run_counts_for_all() {
        let sources = sources();
        for test in [
            "login registers, and logs in",
            "guide logs in through nginx",
            "attack tokens/no token",
            "attack keys that fail/nobody can tell",
            "discovery keycloak",
            "load leaks",
            "suite client auth/iss-wrong-issuer",
            "suite server input-required-result-multi-round",
            "engine src/auth/pkce.rs the_challenge_is_that_of_appendix_b",
        ] {
            assert_eq!(sources.languages(test), Ok([true; LANGUAGES.len()]), "{test}");
        }
        let python = "python bindings-python/tests/test_auth_client.py test_a_user_logs_in";
        assert_eq!(sources.languages(python), Ok(LANGUAGES.map(|language| language == "python")));
    }

    #[test]
    fn what_is_not_there_proves_nothing() {
        let sources = sources();
        for test in [
            "login",
            "login somebody",
            "guide somebody",
            "attack no token",
            "attack nobody/no token",
            "discovery README",
            "discovery ../provider/provider",
            "load auth",
            "suite client auth/none",
            "suite server auth/iss-wrong-issuer",
            "suite server tasks-status-notifications",
            "engine src/auth/pkce.rs the_challenge",
            "engine src/auth/none.rs the_challenge_is_that_of_appendix_b",
            "cobol src/main.cob test",
        ] {
            let error = sources.languages(test).unwrap_err();
            assert!(error.starts_with(&format!("the test `{test}` does not exist: ")), "{error}");
        }
    }

    #[test]
    fn lists_say_nothing_twice() {
        for list in [&SERVER_SCENARIOS[..], &CLIENT_SCENARIOS, &LOADS] {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), list.len());
        }
    }

    #[test]
    fn only_what_is_expected_to_fail_is() {
        let text = "[required]\nextensions = [\n    \"tasks\",\n]\n\n# [\"no\"]\n[[expected]]\nscenarios = [\n    \
                    \"ping\",\n]\nrevisions = [\"2025-11-25\"]\nreason = \"a \\\"pong\\\"\"\n\n[[unexercised]]\nscenarios = \
                    [\"skills\"]\n";
        assert_eq!(failing(text), ["ping", "2025-11-25"]);
    }
}
