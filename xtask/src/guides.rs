//! The guides: their examples run and print the same in every language, and their pages show them as they are.

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::{process, tool};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const EXAMPLES: &str = "examples/guides";
const PAGES: &str = "docs/guides";
/// Programs that show nothing alone: `contract guides` runs them, with an authorization server, a browser and a proxy.
const STAGED: [&str; 2] = ["log-in", "protected-server"];
/// Settings of that proxy.
const SETTINGS: &str = "nginx.conf";
/// For one program, which waits for nothing but itself.
const LIMIT: Duration = Duration::from_secs(60);
/// Lines of a difference that are shown.
const SHOWN: usize = 4;

/// Returns the topics with an example in a language: every `TOPIC.txt`, which has the output of the example. The files
/// of one language alone are beside its programs, as are outputs that differ there, such as words of a schema library
/// of its own.
fn topics(lang: Lang) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for folder in [EXAMPLES.to_owned(), format!("{EXAMPLES}/{lang}")] {
        for entry in std::fs::read_dir(place::root().join(&folder)).with_context(|| folder.clone())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            found.extend(name.strip_suffix(".txt").map(|topic| (topic.to_owned(), format!("{folder}/{name}"))));
        }
    }
    Ok(found)
}

/// Returns the path of a language's program, by the language's habits of naming.
pub(crate) fn program(lang: Lang, topic: &str) -> String {
    let file = match lang {
        Lang::Rust => format!("src/{}.rs", topic.replace('-', "_")),
        Lang::Python => format!("{}.py", topic.replace('-', "_")),
        Lang::Node => format!("{topic}.mjs"),
        Lang::Swift => format!("Sources/{}.swift", topic.split('-').map(capitalized).collect::<String>()),
    };
    format!("{EXAMPLES}/{lang}/{file}")
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest}", first.to_uppercase())
}

fn command(lang: Lang, topic: &str) -> Command {
    let file = place::root().join(program(lang, topic));
    let (path, argument) = match lang {
        Lang::Rust => (place::built("guides"), PathBuf::from(topic)),
        Lang::Python => (tool::venv("python"), file),
        Lang::Node => (PathBuf::from("node"), file),
        Lang::Swift => (place::root().join(EXAMPLES).join("swift/run"), PathBuf::from(topic)),
    };
    let mut command = tool::command(path);
    command.arg(argument);
    command
}

/// Runs a language's examples: how many printed what they should, and what the others did.
pub(crate) fn run(lang: Lang) -> Result<(Counts, Vec<String>)> {
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for (topic, prints) in topics(lang)?.into_iter().filter(|(topic, _)| !STAGED.contains(&topic.as_str())) {
        report::step(format!("{lang} guides: {topic}"));
        let expected = std::fs::read_to_string(place::root().join(prints))?;
        let log = place::log(&format!("guides {lang} {topic}"));
        let done = process::run(command(lang, &topic), LIMIT, Some(&log))?;
        let found = if done.ok() { differences(&expected, &done.stdout) } else { vec![done.why()] };
        counts += Counts::of(found.is_empty());
        failures.extend(found.into_iter().map(|f| format!("{}: {f}", program(lang, &topic))));
    }
    Ok((counts, failures))
}

/// The first lines that are not as they should be.
fn differences(expected: &str, printed: &str) -> Vec<String> {
    let (wanted, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), printed.lines().collect());
    let longest = wanted.len().max(got.len());
    let pairs = (0..longest).map(|n| (n + 1, wanted.get(n), got.get(n))).filter(|(_, w, g)| w != g);
    pairs.take(SHOWN).map(|(n, w, g)| format!("line {n}: expected {w:?}, got {g:?}")).collect()
}

/// `cargo xtask guides`: writes the examples into the pages. Says how many pages have changed.
pub(crate) fn write() -> Result<usize> {
    let mut changed = 0;
    for path in pages()? {
        let page = std::fs::read_to_string(&path)?;
        let new = filled(&page).with_context(|| place::short(&path))?;
        if new != page {
            std::fs::write(&path, new)?;
            report::line(format!("wrote {}", place::short(&path)));
            changed += 1;
        }
    }
    Ok(changed)
}

/// Returns the findings of `cargo xtask tidy` about the guides.
pub(crate) fn stale() -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut shown = String::new();
    for path in pages()? {
        let page = std::fs::read_to_string(&path)?;
        let name = place::short(&path);
        match filled(&page) {
            Ok(new) if new == page => {}
            Ok(_) => found.push(format!("{name}: not as the examples are: run cargo xtask guides")),
            Err(error) => found.push(format!("{name}: {error:#}")),
        }
        found.extend(dead_links(&page).into_iter().map(|link| format!("{name}: the link {link} leads nowhere")));
        shown.push_str(&page);
    }
    let mut files = BTreeSet::from([format!("{EXAMPLES}/{SETTINGS}")]);
    for lang in Lang::ALL {
        files.extend(topics(lang)?.keys().map(|topic| program(lang, topic)));
        files.extend(STAGED.map(|topic| program(lang, topic)));
    }
    let unseen = files.iter().filter(|f| !shown.contains(&mark(f)));
    found.extend(unseen.map(|f| format!("{f}: no page of {PAGES} shows it")));
    Ok(found)
}

/// The links to files and headings that are not there.
fn dead_links(page: &str) -> Vec<String> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let dead = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let path = place::root().join(PAGES).join(file);
        let text = if file.is_empty() { Some(page.to_owned()) } else { std::fs::read_to_string(&path).ok() };
        match text {
            Some(text) => !heading.is_empty() && !text.lines().any(|line| anchor(line).as_deref() == Some(heading)),
            None => !path.exists(),
        }
    };
    links
        .filter(|link| !link.contains("://") && link.bytes().all(|b| b.is_ascii_graphic()))
        .filter(dead)
        .map(str::to_owned)
        .collect()
}

/// Returns the anchor of a heading.
fn anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = title.to_lowercase().replace(' ', "-");
    Some(kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect())
}

fn pages() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place::root().join(PAGES)).with_context(|| PAGES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The line of a page before a block that shows this file.
fn mark(file: &str) -> String {
    format!("<!-- {file} -->")
}

/// A page with every block that is marked as the file that the mark names.
fn filled(page: &str) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let file = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
        let Some(file) = file.filter(|f| f.starts_with(EXAMPLES)) else { continue };
        if lines.peek().is_some_and(|l| l.starts_with("```")) {
            lines.next();
            lines.by_ref().find(|l| *l == "```").context("a block has no end")?;
        }
        let text = std::fs::read_to_string(place::root().join(file)).with_context(|| file.to_owned())?;
        let language = match file.rsplit('.').next().unwrap_or_default() {
            "rs" => "rust",
            "py" => "python",
            "mjs" => "js",
            "txt" => "text",
            "conf" => "nginx",
            other => other,
        };
        out.push_str(&format!("```{language}\n{text}```\n"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_language() {
        let names = Lang::ALL.map(|lang| program(lang, "dynamic-servers").replace("examples/guides/", ""));
        let expected = [
            "rust/src/dynamic_servers.rs",
            "python/dynamic_servers.py",
            "node/dynamic-servers.mjs",
            "swift/Sources/DynamicServers.swift",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn blocks_are_filled_and_stay_filled() {
        let page = "# A\n<!-- examples/guides/tools.txt -->\nend\n";
        let once = filled(page).expect("the file is there");
        assert!(once.starts_with("# A\n<!-- examples/guides/tools.txt -->\n```text\nadd"), "{once}");
        assert!(once.ends_with("```\nend\n"), "{once}");
        assert_eq!(filled(&once).expect("the same"), once);
        assert!(filled("<!-- examples/guides/nothing.txt -->\n").is_err());
    }

    #[test]
    fn links_lead_somewhere() {
        let page = "# A thing\n[x](tools.md#listing) [y](#a-thing) [z](../../README.md) [w](https://example.com/#no)\n";
        assert_eq!(dead_links(page), Vec::<String>::new());
        assert_eq!(dead_links("[x](tools.md#no) [y](#no) [z](no.md)"), ["tools.md#no", "#no", "no.md"]);
        assert_eq!(anchor("## Prompts' arguments").as_deref(), Some("prompts-arguments"));
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(differences("a\nb\n", "a\nb\n"), Vec::<String>::new());
        let found = differences("a\nb\n", "a\nc\nd\n");
        assert_eq!(found.len(), 2);
        assert!(found[1].contains("line 3: expected None"), "{found:?}");
    }
}
