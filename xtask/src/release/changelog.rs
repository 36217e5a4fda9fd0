//! `CHANGELOG.md`: a heading for each version, `## 0.2.0 (unreleased)` or `## 0.1.0 (2026-11-28)`, the newest first.

use super::version::Version;
use anyhow::{Result, bail};
use std::ops::Range;

pub(super) const PATH: &str = "CHANGELOG.md";
const UNRELEASED: &str = " (unreleased)";

/// The changelog of a release.
#[derive(Debug)]
pub(super) struct Cut {
    /// The whole file, in which work goes on below a new heading.
    pub(super) text: String,
    /// The entries of the release, without their heading.
    pub(super) notes: String,
}

/// Gives the unreleased entries a version and a date.
pub(super) fn cut(text: &str, version: &Version, date: &str) -> Result<Cut> {
    let (heading, entries) = unreleased(text)?;
    let notes = text[entries].trim();
    if !notes.lines().any(|line| line.trim_start().starts_with("- ")) {
        let heading = &text[heading];
        bail!("{PATH} has no entry below {heading:?}: say there what has changed for users");
    }
    let headings = format!("## {}{UNRELEASED}\n\n## {version} ({date})", version.next());
    let cut = format!("{}{headings}{}", &text[..heading.start], &text[heading.end..]);
    Ok(Cut { text: cut, notes: notes.to_owned() })
}

/// The first heading of a version, and what stands below it.
fn unreleased(text: &str) -> Result<(Range<usize>, Range<usize>)> {
    let Some((start, end, title)) = headings(text).next() else {
        bail!("{PATH} has no version: add a heading such as \"## 0.1.0{UNRELEASED}\"");
    };
    if title.strip_suffix(UNRELEASED).is_none_or(|version| version.parse::<Version>().is_err()) {
        bail!("{PATH} begins with {title:?}: add a heading such as \"## 0.1.0{UNRELEASED}\" above it");
    }
    let below = headings(text).nth(1).map_or(text.len(), |(start, ..)| start);
    Ok((start..end, end..below))
}

/// Begin, end and text of each heading of a version.
fn headings(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        Some((start, start + line.len(), line.strip_prefix("## ")?))
    })
}

/// The newest version that has a date.
pub(super) fn newest(text: &str) -> Option<Version> {
    let dated = headings(text).filter(|(.., title)| !title.ends_with(UNRELEASED));
    dated.filter_map(|(.., title)| title.split_once(" (")?.0.parse().ok()).max()
}

/// Reasons why no release could be cut from this, apart from its entries.
pub(super) fn faults(text: &str) -> Vec<String> {
    unreleased(text).err().map(|error| format!("{error:#}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Changelog\n\nAll.\n\n## 0.2.0 (unreleased)\n\n### Servers\n\n- One.\n- Two.\n\n## 0.1.0 (2026-01-02)\n\n- First.\n";

    #[test]
    fn the_unreleased_entries_get_version_and_date() {
        let version = "0.1.1".parse().expect("a version");
        let cut = cut(TEXT, &version, "2026-03-04").expect("there are entries");
        assert_eq!(cut.notes, "### Servers\n\n- One.\n- Two.");
        let headings: Vec<&str> = cut.text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## 0.2.0 (unreleased)", "## 0.1.1 (2026-03-04)", "## 0.1.0 (2026-01-02)"]);
        assert_eq!(cut.text.replace("## 0.2.0 (unreleased)\n\n## 0.1.1 (2026-03-04)", "## 0.2.0 (unreleased)"), TEXT);
        assert_eq!(newest(&cut.text).expect("a dated version"), version);
    }

    #[test]
    fn nothing_is_cut_without_entries_or_heading() {
        let version = "0.2.0".parse().expect("a version");
        let said = |text: &str| format!("{:#}", cut(text, &version, "2026-03-04").expect_err("refused"));
        assert!(said(&TEXT.replace("- One.\n- Two.\n", "")).contains("has no entry below \"## 0.2.0 (unreleased)\""));
        assert!(said(&TEXT.replace(" (unreleased)", " (2026-02-02)")).contains("begins with \"0.2.0 (2026-02-02)\""));
        assert!(said("# Changelog\n").contains("has no version"));
    }
}
