//! Where tests are, and whether one by a given name is there.
//!
//! | name | test |
//! |---|---|
//! | `transcript FOLDER/FILE` | `tests/transcripts/FOLDER/FILE.txt`, in every language |
//! | `case FILE/NAME` | a case of `tests/cases/FILE.json`, in every language |
//! | `load NAME` | `contract leaks`, `contract launchers`, `contract stateless`, `contract together` and the broken HTTP of `contract bad-input`, in every language |
//! | `suite server\|client SCENARIO` | a scenario of the official suite, in every language |
//! | `engine PATH NAME` | a test function of the engine below `core/`, counted for every language |
//! | `rust\|python\|node\|swift PATH NAME` | a test of that language alone |

use super::missing;
use crate::Outcome;
use crate::cases;
use crate::options::LANGUAGES;
use crate::script;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Proved = [bool; LANGUAGES.len()];

/// The loads that have no file.
const LOADS: [&str; 5] = ["leaks", "launchers", "broken-http", "stateless", "together"];

/// The scenarios of the official suite that this requirements may lean on.
const SERVER_SCENARIOS: [&str; 34] = [
    "completion-complete",
    "dns-rebinding-protection",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "http-custom-header-server-validation",
    "http-header-validation",
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
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
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
const CLIENT_SCENARIOS: [&str; 8] = [
    "http-custom-headers",
    "http-invalid-tool-headers",
    "http-standard-headers",
    "initialize",
    "json-schema-2020-12-preservation",
    "json-schema-ref-no-deref",
    "request-metadata",
    "tools_call",
];

/// Everything that can be named.
pub(super) struct Sources {
    root: PathBuf,
    transcripts: BTreeMap<String, Proved>,
    cases: BTreeMap<String, Proved>,
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
        let mut unsupported = BTreeMap::new();
        for side in ["server", "client"] {
            let path = root.join(format!("tests/conformance/{side}.toml"));
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            unsupported.insert(side.to_owned(), failing(&text));
        }
        Ok(Self { root: root.to_owned(), transcripts, cases, unsupported })
    }

    /// Which languages a test proves something in.
    pub(super) fn languages(&self, test: &str) -> Outcome<Proved> {
        let (kind, rest) = test.split_once(' ').ok_or_else(|| missing(test, "KIND NAME"))?;
        match kind {
            "transcript" => self.transcripts.get(rest).copied().ok_or_else(|| missing(test, "no such file")),
            "case" => self.cases.get(rest).copied().ok_or_else(|| missing(test, "no such case")),
            "load" if LOADS.contains(&rest) => Ok([true; LANGUAGES.len()]),
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

fn without(skips: &[(String, String)]) -> Proved {
    LANGUAGES.map(|language| !skips.iter().any(|(gap, _)| gap == language || gap == "all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_expected_to_fail_is() {
        let text = "[required]\nextensions = [\n    \"tasks\",\n]\n\n# [\"no\"]\n[[expected]]\nscenarios = [\n    \
                    \"ping\",\n]\nrevisions = [\"2025-11-25\"]\nreason = \"a \\\"pong\\\"\"\n\n[[unexercised]]\nscenarios = \
                    [\"skills\"]\n";
        assert_eq!(failing(text), ["ping", "2025-11-25"]);
    }
}
