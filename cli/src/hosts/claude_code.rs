//! Claude Code, whose file is changed by its own command where that is in `PATH`.
//!
//! Sessions that are open write their file whole, over what others wrote (anthropics/claude-code 27941).

use std::process::{Command, Stdio};

use serde_json::Value;

use super::file::Contents;
use super::places::Places;
use super::{Entry, Install, Outcome, Place, Said, Uninstall, diff, is_same};

impl Said<'_> {
    /// Adds an entry for the user.
    pub(super) fn add_to_claude_code(
        &mut self,
        install: &Install,
        entry: &Entry,
        value: &Value,
        place: &Place,
        places: &Places,
    ) -> Outcome<u8> {
        let contents = Contents::read(&place.path)?;
        let entries = place.format.entries(contents.text(), place.root).map_err(|trouble| place.left(&trouble))?;
        let name = &entry.name;
        let old = entries.get(name);
        if old.is_some_and(|old| is_same(old, value)) {
            self.answer(&format!("\"{name}\" is already installed in Claude Code: {}", place.path.display()));
            return Ok(0);
        }
        if let Some(old) = old
            && !install.force
        {
            let pretty = |value: &Value| format!("{value:#}\n");
            let diff =
                diff::unified(name, &pretty(old), &pretty(value), &[old.clone(), value.clone()], &install.given(value));
            let _gone = write!(self.err, "{diff}");
            let what = "--force replaces it, --name gives this one another name";
            return Err(format!("Claude Code has another server \"{name}\"; {what}").into());
        }
        let (text, shown) = (value.to_string(), diff::masked(value, &install.given(value)).to_string());
        let add = ["mcp", "add-json", "--scope", "user", name, &text];
        let add_shown = ["mcp", "add-json", "--scope", "user", name, &shown];
        let remove = ["mcp", "remove", "--scope", "user", name];
        if install.dry_run {
            if old.is_some() {
                self.answer(&line("claude", &remove));
            }
            self.answer(&line("claude", &add_shown));
            return Ok(0);
        }
        if old.is_some() {
            claude(&remove, &remove, places)?;
        }
        if let Err(mut failure) = claude(&add, &add_shown, places) {
            // The old one was removed for it.
            if let Some(old) = old {
                let before = old.to_string();
                let again = ["mcp", "add-json", "--scope", "user", name, &before];
                let end = match claude(&again, &again, places) {
                    Ok(()) => format!("; \"{name}\" is as it was"),
                    Err(_) => format!("; the old \"{name}\" is gone, and could not be put back: {before}"),
                };
                failure.message.push_str(&end);
            }
            return Err(failure);
        }
        let after = Contents::read(&place.path)?;
        let after = place.format.entries(after.text(), place.root).map_err(|trouble| place.left(&trouble))?;
        if !after.contains_key(name) {
            return Err(format!(
                "claude mcp add-json said that it was done, but \"{name}\" is not in {}",
                place.path.display()
            )
            .into());
        }
        self.answer(&format!("Installed \"{name}\" in Claude Code by its own command: {}", place.path.display()));
        Ok(0)
    }

    /// Removes an entry of the user.
    pub(super) fn remove_from_claude_code(
        &mut self,
        uninstall: &Uninstall,
        place: &Place,
        places: &Places,
    ) -> Outcome<u8> {
        let name = &uninstall.name;
        let step = ["mcp", "remove", "--scope", "user", name];
        if uninstall.dry_run {
            self.answer(&line("claude", &step));
            return Ok(0);
        }
        claude(&step, &step, places)?;
        self.answer(&format!("Removed \"{name}\" from Claude Code by its own command: {}", place.path.display()));
        Ok(0)
    }
}

fn line(program: &str, words: &[&str]) -> String {
    let all = std::iter::once(program).chain(words.iter().copied());
    shlex::try_join(all.clone()).unwrap_or_else(|_| all.collect::<Vec<_>>().join(" "))
}

/// Runs Claude Code's command; what it says is told where it fails. `shown` are the words without secrets.
fn claude(words: &[&str], shown: &[&str], places: &Places) -> Outcome<()> {
    let program = places.program("claude");
    let program =
        program.ok_or_else(|| format!("claude is not in PATH; what is to be run: {}", line("claude", shown)))?;
    let mut command = Command::new(&program);
    command.args(words).current_dir(&places.folder).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let words = words.iter().take(2).copied().collect::<Vec<_>>();
    Err(format!("{} failed ({}): {}", line("claude", &words), output.status, diff::shown(&said)).into())
}
