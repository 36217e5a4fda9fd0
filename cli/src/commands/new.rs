//! A new project.

mod templates;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::arguments::New;
use crate::failure::{FAILED, Failure, Outcome};
use crate::output::Screen;
use templates::{FIRST, of};

/// The longest name.
const LONGEST: usize = 64;
/// Names that mean something else to Cargo, npm, Python or Swift.
const TAKEN: [&str; 24] = [
    "any",
    "aux",
    "build",
    "con",
    "core",
    "deps",
    "examples",
    "favicon-ico",
    "foundation",
    "incremental",
    "main",
    "mcp",
    "node-modules",
    "nul",
    "packages",
    "prn",
    "proc-macro",
    "pytest",
    "self",
    "std",
    "swift",
    "test",
    "testing",
    "tricorn",
];

/// Makes a project in a folder of its name.
pub(super) fn new(new: &New, screen: &Screen) -> Outcome<u8> {
    check(&new.name)?;
    let folder = Path::new(&new.name);
    is_free(folder)?;
    let files: Vec<(PathBuf, String)> = of(new.lang)
        .iter()
        .map(|(path, text)| (folder.join(filled(path, &new.name)), filled(text, &new.name)))
        .collect();
    if !new.dry_run {
        write(&files)
            .map_err(|(path, error)| Failure::new(FAILED, format!("cannot write {}: {error}", path.display())))?;
    }
    for (path, _) in &files {
        screen.print(&path.display().to_string());
    }
    if !new.dry_run {
        screen.line(&format!("next: cd {}, then {}", new.name, filled(FIRST[new.lang as usize], &new.name)));
    }
    Ok(0)
}

/// A name that is good for a folder and for a package of every language.
fn check(name: &str) -> Outcome<()> {
    let wrong = |why: &str| Err(Failure::misuse(format!("{name:?} is no name for a project: {why}")));
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if name.contains(char::is_whitespace) {
        let instead = "expected lower-case letters, digits and single hyphens, as in \"my-server\"";
        return wrong(&format!("blanks are not allowed: {instead}"));
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return wrong("expected a lower-case letter first, as in \"my-server\"");
    }
    if name.split('-').any(|word| word.is_empty() || !is_word(word)) {
        return wrong("expected lower-case letters, digits and single hyphens, as in \"my-server\"");
    }
    if name.len() > LONGEST {
        return wrong(&format!("it is longer than {LONGEST} characters"));
    }
    if TAKEN.contains(&name) {
        return wrong("it means something else to a package manager");
    }
    Ok(())
}

fn is_free(folder: &Path) -> Outcome<()> {
    let shown = folder.display();
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(Failure::misuse(format!("{shown} is a file: take another name, or remove it")))
        }
        Err(error) => Err(Failure::misuse(format!("cannot look into the folder {shown}: {error}"))),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => {
                Err(Failure::misuse(format!("the folder {shown} is there, with something in it: take another name")))
            }
        },
    }
}

fn write(files: &[(PathBuf, String)]) -> Result<(), (PathBuf, std::io::Error)> {
    for (path, text) in files {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            // Nothing is written over, should somebody have put it there meanwhile.
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
            file.write_all(text.as_bytes())
        });
        written.map_err(|error| (path.clone(), error))?;
    }
    Ok(())
}

/// Puts the name into a template. `my-server` is a type `MyServer` in Swift.
fn filled(text: &str, name: &str) -> String {
    let words = name.split('-').map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
    let text = text.replace("{{name}}", name).replace("{{version}}", tricorn::VERSION);
    text.replace("{{type}}", &words.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_good_everywhere() {
        for name in ["weather", "my-server", "a1", "web-3d"] {
            assert!(check(name).is_ok(), "{name}");
        }
        let long = "a".repeat(LONGEST + 1);
        for name in ["", "My", "1a", "a_b", "a-", "a--b", "../a", "a/b", ".a", "a b", "ä", "test", "tricorn", &long] {
            assert!(check(name).is_err(), "{name}");
        }
        assert_eq!(filled("{{name}} {{type}}", "my-server2"), "my-server2 MyServer2");
    }
}
