//! Options, and the types that hold them, as surface/ describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::text::named;

/// A language of a host package. Its number is its place in the lists of words.toml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Node,
    Swift,
}

impl Language {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Swift => "swift",
        }
    }
}

/// An option.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    #[serde(skip)]
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The group of options that it holds.
    group: Option<String>,
    #[serde(default)]
    pub(super) required: bool,
    /// The engine sees it.
    #[serde(default = "yes")]
    pub(super) wire: bool,
    /// Its value may hold a secret, so that messages do not show it.
    #[serde(default)]
    pub(super) secret: bool,
    /// Its members have names of their own, which are no options.
    #[serde(default)]
    pub(super) by_name: bool,
    pub(super) since: Option<String>,
    /// A feature of tests/deprecated.toml.
    pub(super) deprecated: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) min: Option<Value>,
    pub(super) max: Option<Value>,
    /// The texts that there are.
    #[serde(default)]
    pub(super) values: Vec<String>,
    pub(super) doc: String,
    python: Option<Said>,
    node: Option<Said>,
    swift: Option<Said>,
    /// Languages without it, and the reason.
    #[serde(default)]
    absent: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

/// Something that a language says of an option: its type alone, or more.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    Type(String),
    More(Own),
}

/// The same with all its parts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Own {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// The initial value, of an option that is not optional.
    pub(super) value: Option<String>,
    /// A sentence that follows the common ones.
    pub(super) doc: Option<String>,
    /// The default in words, in place of the common one.
    default: Option<String>,
    /// Swift: argument of `options.set`, `{}` being the property; empty for none.
    pub(super) set: Option<String>,
    /// The type is not made optional.
    #[serde(default)]
    pub(super) exact: bool,
}

impl Row {
    fn said(&self, language: Language) -> Option<&Said> {
        match language {
            Language::Python => self.python.as_ref(),
            Language::Node => self.node.as_ref(),
            Language::Swift => self.swift.as_ref(),
        }
    }

    /// The entry of a language, beside its type.
    pub(super) fn own(&self, language: Language) -> Option<&Own> {
        match self.said(language)? {
            Said::Type(_) => None,
            Said::More(own) => Some(own),
        }
    }

    /// The type that a language spells itself.
    pub(super) fn spelled(&self, language: Language) -> Option<&str> {
        match self.said(language)? {
            Said::Type(kind) => Some(kind),
            Said::More(own) => own.kind.as_deref(),
        }
    }

    pub(super) fn default_in(&self, language: Language) -> Option<Value> {
        match self.own(language).and_then(|own| own.default.clone()) {
            Some(text) => Some(Value::String(text)),
            None => self.default.clone(),
        }
    }

    pub(super) fn is_in(&self, language: Language) -> bool {
        !self.absent.contains_key(language.key())
    }
}

/// A group of options: a file of options/.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) options: Vec<Row>,
    /// The files of the core that have them.
    core: Vec<String>,
}

/// Types of a language in one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) doc: String,
    #[serde(default)]
    pub(super) imports: String,
    /// Text before the types.
    #[serde(default)]
    pub(super) before: String,
    /// Text behind the types.
    #[serde(default)]
    pub(super) after: String,
    #[serde(default, rename = "type")]
    pub(super) types: Vec<Type>,
    /// Node: holds the names of all options that are times.
    #[serde(default)]
    pub(super) durations: bool,
}

/// A type that holds options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) doc: String,
    /// The groups whose options are its members.
    pub(super) options: Vec<String>,
    /// Options of these that are not.
    #[serde(default)]
    without: Vec<String>,
    /// The only options of these that are.
    #[serde(default)]
    only: Vec<String>,
    /// Names of the types that it extends.
    #[serde(default)]
    pub(super) bases: Vec<String>,
    /// Each member may be the language's null, too.
    #[serde(default)]
    pub(super) nullable: bool,
    /// Python: the class with the members that are required.
    pub(super) required: Option<String>,
    /// Swift: parameters of the initializer.
    #[serde(default)]
    pub(super) init: Vec<String>,
    /// Members that come before the others.
    #[serde(default)]
    first: Vec<String>,
    /// Swift: the type exists, and its members are parameters of an initializer, which ends with these lines.
    pub(super) parameters: Option<String>,
    /// Swift: documentation of the initializer.
    pub(super) init_doc: Option<String>,
    /// Swift: the head of the function that makes the engine's text of it.
    pub(super) text: Option<String>,
    /// Node: the name of the table with the type of each member.
    pub(super) table: Option<String>,
    /// Node: the name of the list of its members, and of its bases', that the engine does not see.
    pub(super) own: Option<String>,
    /// Lines at the end of its body.
    #[serde(default)]
    pub(super) more: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    file: Vec<File>,
    #[serde(default)]
    checked: Vec<Checked>,
}

/// A hand-written file, in which the options of these groups have to be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Checked {
    path: String,
    options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    words: BTreeMap<String, [String; 3]>,
}

#[derive(Deserialize)]
struct Feature {
    note: String,
}

/// Everything in surface/ but the limits.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) words: BTreeMap<String, [String; 3]>,
    /// Notes of deprecated features.
    pub(super) notes: BTreeMap<String, String>,
}

impl Options {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let words: Words = read(&root.join("surface/words.toml"))?;
        let features: BTreeMap<String, Feature> = read(&root.join("tests/deprecated.toml"))?;
        let folder = root.join("surface/options");
        let mut groups = BTreeMap::new();
        for name in crate::files(&folder, "toml")? {
            let group = name.trim_end_matches(".toml").to_owned();
            groups.insert(group, group_of(&folder.join(&name))?);
        }
        let notes = features.into_iter().map(|(name, feature)| (name, feature.note)).collect();
        let options = Self { groups, words: words.words, notes };
        options.check()?;
        options.check_core(root)?;
        Ok(options)
    }

    /// Checks that the engine has the options that are given to it.
    fn check_core(&self, root: &Path) -> Result<()> {
        for (name, group) in &self.groups {
            let mut text = String::new();
            for path in &group.core {
                text += &fs::read_to_string(root.join(path)).with_context(|| format!("{name}: {path}"))?;
            }
            let words = words(&text);
            for row in group.options.iter().filter(|row| row.wire && !group.core.is_empty()) {
                let is_there = words.contains(row.name.as_str());
                ensure!(is_there, "{name}.{}: not in {}", row.name, group.core.join(", "));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        for (group, row) in self.rows() {
            let name = &row.name;
            if let Some(inner) = &row.group {
                ensure!(self.groups.contains_key(inner), "{group}.{name}: no group {inner}");
            }
            if let Some(feature) = &row.deprecated {
                ensure!(self.notes.contains_key(feature), "{group}.{name}: {feature} is not in tests/deprecated.toml");
            }
            for (language, reason) in &row.absent {
                let is_known = ["python", "node", "swift"].contains(&language.as_str());
                ensure!(
                    is_known && !reason.is_empty(),
                    "{group}.{name}: absent.{language} needs a language and a reason"
                );
            }
        }
        Ok(())
    }

    /// All options, with the names of their groups.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.groups.iter().flat_map(|(name, group)| group.options.iter().map(move |row| (name.as_str(), row)))
    }

    /// The files of a language.
    ///
    /// # Errors
    /// A hand-written file lacks an option.
    pub(super) fn types(&self, root: &Path, language: Language) -> Result<Vec<File>> {
        let files: Files = read(&root.join(format!("surface/types/{}.toml", language.key())))?;
        for Checked { path, options } in &files.checked {
            let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
            let words = words(&text);
            for group in options {
                let rows = &self.groups.get(group).with_context(|| format!("{path}: no group {group}"))?.options;
                for row in rows.iter().filter(|row| row.is_in(language)) {
                    let name = named(&row.name, language);
                    ensure!(words.contains(name.as_str()), "{path}: no option {name}, which {group}.toml has");
                }
            }
        }
        Ok(files.file)
    }

    /// The members of a type that a language has, in order.
    pub(super) fn members(&self, of: &Type, language: Language) -> Result<Vec<&Row>> {
        let mut members = Vec::new();
        for group in &of.options {
            let rows = &self.groups.get(group).with_context(|| format!("{}: no group {group}", of.name))?.options;
            let is_meant =
                |row: &&Row| !of.without.contains(&row.name) && (of.only.is_empty() || of.only.contains(&row.name));
            members.extend(rows.iter().filter(is_meant).filter(|row| row.is_in(language)));
        }
        members.sort_by_key(|row| of.first.iter().position(|name| *name == row.name).unwrap_or(of.first.len()));
        for name in of.without.iter().chain(&of.only).chain(&of.init).chain(&of.first) {
            let is_known =
                self.rows().any(|(group, row)| of.options.iter().any(|one| one == group) && row.name == *name);
            ensure!(is_known, "{}: no option {name}", of.name);
        }
        Ok(members)
    }
}

pub(super) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The names in a source text.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// The options of a file, in its order.
fn group_of(path: &Path) -> Result<Group> {
    let members: BTreeMap<String, Spanned<Value>> = read(path)?;
    let mut members: Vec<(String, Spanned<Value>)> = members.into_iter().collect();
    members.sort_by_key(|(_, value)| value.span().start);
    let mut since = None;
    let mut side = None;
    let mut core = Vec::new();
    let mut options = Vec::new();
    for (name, value) in members {
        match (name.as_str(), value.into_inner()) {
            ("side", Value::String(text)) => side = Some(text),
            ("since", Value::String(text)) => since = Some(text),
            ("core", value @ Value::Array(_)) => core = value.try_into()?,
            (_, value @ Value::Table(_)) => {
                let mut row: Row = value.try_into().with_context(|| format!("{}: {name}", path.display()))?;
                row.doc = joined(&row.doc);
                row.name = name;
                options.push(row);
            }
            _ => bail!("{}: {name} is no option", path.display()),
        }
    }
    let is_date = |date: &String| date.len() == "2026-07-28".len() && date.starts_with("20");
    ensure!(since.as_ref().is_none_or(is_date), "{}: since {since:?}", path.display());
    let side = side.with_context(|| format!("{}: no side", path.display()))?;
    ensure!(["both", "client", "server"].contains(&side.as_str()), "{}: side {side}", path.display());
    Ok(Group { options, core })
}

/// A text without its line breaks, but for those between paragraphs.
pub(super) fn joined(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
