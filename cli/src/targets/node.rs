//! JavaScript and TypeScript files.

use std::path::{Path, PathBuf};
use std::process::Command;

use tricorn::client::Target;

use super::program::in_path;
use super::{Script, Way, absolute};
use crate::failure::{Failure, Outcome, UNREACHABLE};
use crate::launcher::Launcher;

/// The first version that strips types without being told to.
const STRIPS: (u32, u32) = (22, 18);
/// The first one of the next line that does.
const STRIPS_NEXT: (u32, u32) = (23, 6);

pub(super) fn target(script: &Script<'_>, way: &Way, launcher: &Launcher) -> Outcome<Target> {
    if let Some(name) = script.name {
        return Err(Failure::misuse(format!(
            "{}:{name}: only a Python file has a name after it",
            script.path.display()
        )));
    }
    let node = node(script.path, launcher)?;
    if script.extension().ends_with("ts") {
        check_types(script.path, &node)?;
    }
    let mut arguments = vec![absolute(script.path)];
    way.arguments(&mut arguments);
    Ok(Target::command(node.to_string_lossy(), arguments))
}

fn node(path: &Path, launcher: &Launcher) -> Outcome<PathBuf> {
    let own = launcher.node.clone().filter(|path| path.is_file());
    own.or_else(|| in_path("node")).ok_or_else(|| {
        Failure::new(
            UNREACHABLE,
            format!(
                "{}: no Node.js: looked for node in PATH; install it, or give the command line after --",
                path.display()
            ),
        )
    })
}

/// Refuses a file with types where Node.js would not run it.
fn check_types(path: &Path, node: &Path) -> Outcome<()> {
    let output = Command::new(node).arg("--version").output().ok();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    // What says something else may run it.
    let Some(version) = version(&said) else { return Ok(()) };
    if version >= STRIPS_NEXT || (version.0 == STRIPS.0 && version >= STRIPS) {
        return Ok(());
    }
    Err(Failure::new(
        UNREACHABLE,
        format!(
            "{}: {} is Node.js {said}, which runs no TypeScript: it needs 22.18 or later; compile the file, or give the command line after --",
            path.display(),
            node.display(),
        ),
    ))
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v')?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("v22.18.0"), Some((22, 18)));
        assert_eq!(version("1.2.3"), None);
    }
}
