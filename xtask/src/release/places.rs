//! Places where the version of the packages is written. The rest takes it from there: Python's package from cargo (maturin), the
//! packages of npm's platforms from `package.json`, Swift's from the tag, and the programs from `CARGO_PKG_VERSION`.

use super::version::Version;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ops::Range;

/// A place that has the version, once or several times.
struct Place {
    path: &'static str,
    written: Written,
}

/// The form of a version in a file.
enum Written {
    /// After these texts, one after the other, and before a quotation mark.
    After(&'static [&'static str]),
    /// A lock file of cargo: as the version of the packages of this repository that are named, or of all of them.
    Locked(&'static [&'static str]),
}

/// The first of them is that which the others agree with.
const PLACES: [Place; 8] = [
    Place { path: "Cargo.toml", written: Written::After(&["\n[workspace.package]\n", "version = \""]) },
    Place { path: "Cargo.toml", written: Written::After(&["\ntricorn = {", "version = \""]) },
    Place { path: "cli/Cargo.toml", written: Written::After(&["\ntricorn = {", "version = \""]) },
    Place { path: "Cargo.lock", written: Written::Locked(&[]) },
    Place { path: "core/fuzz/Cargo.lock", written: Written::Locked(&["tricorn"]) },
    Place { path: "package.json", written: Written::After(&["\n  \"version\": \""]) },
    Place { path: "package-lock.json", written: Written::After(&["\n  \"version\": \""]) },
    Place { path: "package-lock.json", written: Written::After(&["\n    \"\": {\n", "\n      \"version\": \""]) },
];

impl Written {
    fn find(&self, text: &str) -> Result<Vec<Range<usize>>> {
        match self {
            Self::After(marks) => after(text, marks).map(|range| Vec::from([range])),
            Self::Locked(names) => locked(text, names),
        }
    }
}

fn after(text: &str, marks: &[&str]) -> Result<Range<usize>> {
    let mut start = 0;
    for mark in marks {
        let at = text[start..].find(mark);
        start += at.with_context(|| format!("there is no {:?}", mark.trim()))? + mark.len();
    }
    let length = text[start..].find('"').context("a quotation mark is missing")?;
    Ok(start..start + length)
}

/// Packages without a source are of this repository.
fn locked(text: &str, names: &[&str]) -> Result<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut at = 0;
    for block in text.split_inclusive("\n\n") {
        let start = at;
        at += block.len();
        let ours = block.starts_with("[[package]]\n") && !block.contains("\nsource = ");
        let wanted = names.is_empty() || names.iter().any(|name| block.contains(&format!("\nname = \"{name}\"\n")));
        if ours && wanted {
            let version = after(block, &["\nversion = \""])?;
            found.push(start + version.start..start + version.end);
        }
    }
    if found.is_empty() {
        bail!("there is no package of this repository");
    }
    Ok(found)
}

/// The versions of a place that are there, with their lines.
fn versions<'a>(place: &Place, text: &'a str) -> Result<Vec<(usize, &'a str)>> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    Ok(place.written.find(text)?.into_iter().map(|range| (line(range.start), &text[range])).collect())
}

/// The version of the packages; `read` gives the text of a path.
pub(super) fn present(read: impl Fn(&str) -> Option<String>) -> Result<Version> {
    let place = &PLACES[0];
    let text = read(place.path).with_context(|| format!("there is no {}", place.path))?;
    let found = versions(place, &text).with_context(|| place.path.to_owned())?;
    let (_, version) = found.first().with_context(|| format!("{} has no version", place.path))?;
    version.parse().with_context(|| place.path.to_owned())
}

/// One line for each place that has another version than the first.
pub(super) fn disagreements(read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let present = match present(&read) {
        Ok(version) => version.to_string(),
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut found = Vec::new();
    for place in &PLACES {
        let path = place.path;
        let text = read(path).unwrap_or_default();
        match versions(place, &text) {
            Ok(versions) => {
                let other = versions.into_iter().filter(|(_, version)| *version != present);
                found
                    .extend(other.map(|(line, other)| {
                        format!("{path}:{line}: {other}, where {} has {present}", PLACES[0].path)
                    }));
            }
            Err(error) => found.push(format!("{path}: the version is not found: {error:#}")),
        }
    }
    found
}

/// All files with another version in them; and each place, as one reads it.
pub(super) fn with(
    version: &Version,
    read: impl Fn(&str) -> Option<String>,
) -> Result<(BTreeMap<&'static str, String>, Vec<String>)> {
    let mut texts = BTreeMap::new();
    let mut said = Vec::new();
    for place in &PLACES {
        let path = place.path;
        let before = match texts.remove(path) {
            Some(text) => text,
            None => read(path).with_context(|| format!("there is no {path}"))?,
        };
        said.extend(versions(place, &before)?.iter().map(|(line, old)| format!("{path}:{line}: {old} -> {version}")));
        let mut text = before.clone();
        for range in place.written.find(&before)?.into_iter().rev() {
            text.replace_range(range, &version.to_string());
        }
        texts.insert(path, text);
    }
    Ok((texts, said))
}

/// The files with the version in them; some have it twice.
#[cfg(test)]
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    PLACES.iter().map(|place| place.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place;

    fn real(path: &str) -> Option<String> {
        std::fs::read_to_string(place::root().join(path)).ok()
    }

    #[test]
    fn the_places_of_this_repository_have_one_version() {
        assert_eq!(disagreements(real), Vec::<String>::new());
    }

    #[test]
    fn every_place_is_changed_and_nothing_else() {
        let old = present(real).expect("a version");
        let new = "97.98.99-rc.7".parse().expect("a version");
        let (texts, said) = with(&new, real).expect("every place is there");
        let after = |path: &str| texts.get(path).cloned();
        assert_eq!(disagreements(after), Vec::<String>::new());
        assert_eq!(present(after).expect("a version"), new);
        assert!(said.iter().any(|line| line.starts_with("package.json:3: ")), "{said:?}");
        for (path, text) in &texts {
            let before = real(path).expect("it is there");
            let changed: Vec<(&str, &str)> = before.lines().zip(text.lines()).filter(|(a, b)| a != b).collect();
            assert!(!changed.is_empty() && before.lines().count() == text.lines().count(), "{path}");
            assert!(changed.iter().all(|(a, b)| a.replace(&old.to_string(), &new.to_string()) == **b), "{path}");
        }
        let lock = &texts["Cargo.lock"];
        assert_eq!(
            lock.matches("97.98.99-rc.7").count(),
            lock.matches("[[package]]").count() - lock.matches("\nsource = ").count()
        );
    }

    #[test]
    fn a_version_that_drifts_is_told_with_its_line() {
        for path in paths() {
            let old = present(real).expect("a version").to_string();
            let drifted = |of: &str| {
                let text = real(of)?;
                let range = |place: &Place| place.written.find(&text).ok()?.pop();
                let range = PLACES.iter().rev().find(|place| place.path == of).and_then(range)?;
                let mut other = text.clone();
                other.replace_range(range, "9.9.9");
                Some(if of == path { other } else { text })
            };
            let found = disagreements(drifted);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].starts_with(&format!("{path}:")) && found[0].ends_with(&format!(" has {old}")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_place_that_is_gone_is_told() {
        let without = |path: &str| if path == "package.json" { Some("{}".to_owned()) } else { real(path) };
        let found = disagreements(without);
        assert_eq!(found, ["package.json: the version is not found: there is no \"\\\"version\\\": \\\"\""]);
        assert!(disagreements(|_| None)[0].contains("there is no Cargo.toml"));
    }
}
