//! Mistakes in workflows as they are written: actionlint, and rules of our own.

use super::FOLDER;
use super::steps::Workflow;
use crate::{place, process, report, setup, tool};
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// The result of actionlint.
#[derive(Default)]
pub(super) struct Linted {
    /// Its lines, where it ran: none when all is well.
    pub(super) said: Option<Vec<String>>,
    /// Reasons why it did not run, or saw no scripts.
    pub(super) skips: Vec<String>,
}

/// Runs actionlint, with shellcheck where that can be had.
pub(super) fn actionlint<'a>(files: impl Iterator<Item = &'a String>) -> Result<Linted> {
    let mut linted = Linted::default();
    let program = match setup::actionlint() {
        Ok(program) => program,
        Err(why) => {
            linted.skips.push(format!("actionlint: {why:#}"));
            return Ok(linted);
        }
    };
    let shellcheck = setup::shellcheck().unwrap_or_else(|why| {
        linted.skips.push(format!("shellcheck: {why:#}"));
        std::path::PathBuf::new()
    });
    report::step("actionlint");
    let mut command = tool::command(program);
    command.args(["-oneline", "-no-color", "-pyflakes="]).arg(format!("-shellcheck={}", shellcheck.display()));
    command.args(files.map(|name| format!("{FOLDER}/{name}")));
    let done = process::run(command, LIMIT, Some(&place::log("actionlint")))?;
    let said: Vec<String> = done.stdout.lines().map(str::to_owned).collect();
    linted.said = Some(if done.ok() || !said.is_empty() { said } else { vec![done.why()] });
    Ok(linted)
}

/// Rules that actionlint does not have.
pub(super) fn rules(files: &BTreeMap<String, Workflow>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, workflow) in files {
        let mut say = |what: String| found.push(format!("{FOLDER}/{name}: {what}"));
        if !workflow.has_permissions() {
            say("has all permissions: name those it needs, at the top".to_owned());
        }
        for (job, parts) in workflow.jobs() {
            if parts.timeout_minutes.is_none() {
                say(format!("{job} may run for six hours: add timeout-minutes"));
            }
            for step in &parts.steps {
                if let Some(uses) = step.uses.as_deref().filter(|uses| !is_pinned(uses, &workflow.text)) {
                    say(format!("{job}: {uses} can change: name its commit, and the version in a comment"));
                }
                let Some(run) = &step.run else { continue };
                if step.name.is_none() {
                    say(format!("{job}: a script without a name: {run:?}"));
                }
                if run.contains("${{") {
                    say(format!("{job}: a script is made of what others may choose: {run:?}: pass it by env"));
                }
            }
        }
    }
    found
}

/// Tells whether this is `owner/name@` with 40 hexadecimal digits, and `# v1.2.3` behind it.
fn is_pinned(uses: &str, text: &str) -> bool {
    let commit = uses.split_once('@').map_or("", |(_, commit)| commit);
    let lines = text.lines().filter(|line| line.contains(uses));
    let told = |line: &str| line.split_once(" # v").is_some_and(|(_, version)| version.starts_with(char::is_numeric));
    commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()) && lines.into_iter().all(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "permissions: {}\njobs:\n  one:\n    timeout-minutes: 5\n    steps:\n      - uses: a/b@0123456789012345678901234567890123456789 # v1.2\n      - name: Greet\n        run: echo hello\n";

    fn said(text: &str) -> Vec<String> {
        rules(&BTreeMap::from([("a.yml".to_owned(), Workflow::read(text).expect("a workflow"))]))
    }

    #[test]
    fn a_workflow_has_bounds() {
        assert_eq!(said(GOOD), Vec::<String>::new());
        for (from, to, why) in [
            ("permissions: {}\n", "", "all permissions"),
            ("    timeout-minutes: 5\n", "", "six hours"),
            ("0123456789012345678901234567890123456789", "v1", "can change"),
            (" # v1.2", "", "the version in a comment"),
            ("name: Greet\n        ", "", "without a name"),
            ("echo hello", "echo ${{ github.head_ref }}", "pass it by env"),
        ] {
            let found = said(&GOOD.replace(from, to));
            assert!(found.len() == 1 && found[0].contains(why), "{why}: {found:?}");
        }
    }
}
