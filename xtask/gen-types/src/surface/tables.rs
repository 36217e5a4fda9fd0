//! The engine's tables of options: words of its messages depend on them.

use std::collections::BTreeSet;
use std::fmt::Write;

use toml::Value;

use super::NOTICE;
use super::options::{Options, Row};
use super::text::{WIDTH, seconds};

/// Groups whose options the engine reads by themselves, not as a member of another option.
const OUTER: [&str; 4] = ["client", "listen", "program", "server"];

pub(super) fn emit(options: &Options) -> Vec<(String, String)> {
    let mut out = format!("//! Tables of options. {NOTICE}\n");
    let named = |is_meant: &dyn Fn(&str, &Row) -> bool| -> BTreeSet<&str> {
        options.rows().filter(|(group, row)| is_meant(group, row)).map(|(_, row)| row.name.as_str()).collect()
    };
    // The cache says its own bounds.
    let from_one = named(&|group, row| row.min.is_some() && group != "client_cache");
    list(&mut out, "FROM_ONE", "Counts of which none is nothing.", &from_one);
    // The `ttl` of a task is the protocol's, and in milliseconds in every language.
    let times = named(&|_, row| row.kind == "duration" && row.name != "ttl");
    list(&mut out, "TIMES", "Times, which are numbers of the host's unit.", &times);
    let private = named(&|group, row| row.secret && OUTER.contains(&group));
    let doc = "Options that hold secrets, at least where they are of another shape than they should be: of their values the\n\
               /// type is said.";
    list(&mut out, "PRIVATE", doc, &private);
    let by_name = named(&|_, row| row.by_name);
    let doc = "Options whose members have names of their own: headers, variables, identifiers, scopes.";
    list(&mut out, "BY_NAME", doc, &by_name);
    defaults(&mut out, options);
    vec![("core/src/surface.rs".into(), out)]
}

/// The defaults that are no words, for a test that compares them with the engine's.
fn defaults(out: &mut String, options: &Options) {
    let rows = options.rows().filter(|(_, row)| row.wire);
    let all: Vec<String> = rows
        .filter_map(|(group, row)| Some(format!("    (\"{group}\", \"{}: {}\"),", row.name, shown(row)?)))
        .collect();
    let _ = writeln!(out, "\n/// Defaults: the group, and the member as `Debug` shows it in the engine's options.");
    let _ = writeln!(out, "#[cfg(test)]\npub(crate) const DEFAULTS: [(&str, &str); {}] = [", all.len());
    let _ = writeln!(out, "{}\n];", all.join("\n"));
}

/// A default as `Debug` shows that of the engine; nothing for one in words.
fn shown(row: &Row) -> Option<String> {
    Some(match (row.kind.as_str(), row.default.as_ref()?) {
        ("flag", Value::Boolean(yes)) => yes.to_string(),
        ("bytes" | "count" | "port", Value::Integer(number)) => number.to_string(),
        ("bytes" | "count" | "port", Value::String(text)) => number_of(text)?.to_string(),
        ("duration", Value::String(text)) => format!("{}.0", seconds(text)?),
        _ => return None,
    })
}

/// `16 KiB` in bytes, `8000` as it is; nothing for words.
fn number_of(text: &str) -> Option<u64> {
    let (number, shift) = match text.split_once(' ') {
        None => (text, 0),
        Some((number, "KiB")) => (number, 10),
        Some((number, "MiB")) => (number, 20),
        Some(_) => return None,
    };
    number.parse::<u64>().ok().map(|number| number << shift)
}

fn list(out: &mut String, name: &str, doc: &str, names: &BTreeSet<&str>) {
    let _ = writeln!(out, "\n/// {doc}");
    let whole: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let (head, list) = (format!("pub(crate) const {name}: [&str; {}] =", names.len()), whole.join(", "));
    // As rustfmt writes them.
    if head.len() + list.len() + 4 <= WIDTH {
        let _ = writeln!(out, "{head} [{list}];");
        return;
    }
    if list.len() + 7 <= WIDTH {
        let _ = writeln!(out, "{head}\n    [{list}];");
        return;
    }
    let _ = writeln!(out, "{head} [");
    for name in whole {
        let _ = writeln!(out, "    {name},");
    }
    out.push_str("];\n");
}
