//! Structures with their initializers, and the engine's text of them.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

use super::NOTICE;
use super::options::{File, Language, Options, Row, Type};
use super::text::{self, WIDTH, named};

const SWIFT: Language = Language::Swift;

pub(super) fn emit(options: &Options, file: &File) -> Result<String> {
    let mut out = format!("// {NOTICE}\n// {}\n", file.doc);
    for one in &file.types {
        structure(&mut out, options, one)?;
    }
    Ok(out)
}

fn structure(out: &mut String, options: &Options, of: &Type) -> Result<()> {
    let members = options.members(of, SWIFT)?;
    if let Some(ending) = &of.parameters {
        return parameters(out, options, of, &members, ending);
    }
    out.push('\n');
    comment(out, "", &text::worded(options, of.doc.trim(), SWIFT));
    let _ = writeln!(out, "public struct {}: {} {{", of.name, of.bases.join(", "));
    for row in &members {
        property(out, options, row)?;
    }
    out.push_str(&of.more);
    let kept: Vec<&&Row> = members.iter().filter(|row| row.deprecated.is_some()).collect();
    if !kept.is_empty() {
        out.push_str("\n    /// Values of the deprecated options, for the library to use.\n");
        let _ = writeln!(out, "    struct Kept: {} {{", of.bases.join(", "));
        for row in kept {
            let _ = writeln!(out, "        var {}", stored(row)?);
        }
        out.push_str("    }\n    var kept = Kept()\n");
    }
    if !of.init.is_empty() {
        initializer(out, of, &members)?;
    }
    if let Some(head) = &of.text {
        let _ = write!(out, "\n    {head} {{\n        var options = OptionsText()\n");
        for row in &members {
            if let Some(line) = setting(row)? {
                let _ = writeln!(out, "        {line}");
            }
        }
        out.push_str("        return options\n    }\n");
    }
    out.push_str("}\n");
    Ok(())
}

fn property(out: &mut String, options: &Options, row: &Row) -> Result<()> {
    comment(out, "    ", &text::of(options, row, SWIFT)?);
    let Some(note) = text::note(options, row)? else {
        let _ = writeln!(out, "    public var {}", stored(row)?);
        return Ok(());
    };
    let mark = format!("    @available(*, deprecated, message: \"{note}\")");
    if mark.chars().count() <= WIDTH {
        let _ = writeln!(out, "{mark}");
    } else {
        let _ = writeln!(out, "    @available(\n        *, deprecated,\n        message: \"{note}\"\n    )");
    }
    let name = named(&row.name, SWIFT);
    let _ = writeln!(out, "    public var {name}: {} {{", kind(row)?);
    let _ = writeln!(out, "        get {{ kept.{name} }}\n        set {{ kept.{name} = newValue }}\n    }}");
    Ok(())
}

/// The declaration of a stored property, without `var`.
fn stored(row: &Row) -> Result<String> {
    let declared = format!("{}: {}", named(&row.name, SWIFT), kind(row)?);
    Ok(match row.own(SWIFT).and_then(|own| own.value.as_deref()) {
        Some(value) => format!("{declared} = {value}"),
        None => declared,
    })
}

/// The type of a property: optional, unless it has a value or is required.
fn kind(row: &Row) -> Result<String> {
    let kind = match row.spelled(SWIFT) {
        Some(kind) => kind.to_owned(),
        None => spelled(row)?.0.to_owned(),
    };
    let is_plain = row.required || row.own(SWIFT).is_some_and(|own| own.value.is_some());
    Ok(match kind {
        kind if is_plain => kind,
        kind if kind.contains("->") || kind.starts_with("any ") => format!("({kind})?"),
        kind => format!("{kind}?"),
    })
}

fn initializer(out: &mut String, of: &Type, members: &[&Row]) -> Result<()> {
    let mut parameters = Vec::new();
    let mut lines = Vec::new();
    for name in &of.init {
        let row = members.iter().find(|row| row.name == *name).with_context(|| format!("{}: {name}", of.name))?;
        let value = row.own(SWIFT).and_then(|own| own.value.as_deref()).unwrap_or("nil");
        let (name, kind) = (named(name, SWIFT), kind(row)?);
        parameters.push(if row.required { format!("{name}: {kind}") } else { format!("{name}: {kind} = {value}") });
        lines.push(format!("self.{name} = {name}"));
    }
    out.push('\n');
    comment(out, "    ", of.init_doc.as_deref().unwrap_or("Every option has its default."));
    if let [line] = &lines[..] {
        let _ = writeln!(out, "    public init({}) {{ {line} }}", parameters.join(", "));
        return Ok(());
    }
    head(out, "public init", &parameters);
    for line in lines {
        let _ = writeln!(out, "        {line}");
    }
    out.push_str("    }\n");
    Ok(())
}

/// An initializer of a type that exists: its parameters, each with its documentation, and the engine's text of them.
fn parameters(out: &mut String, options: &Options, of: &Type, members: &[&Row], ending: &str) -> Result<()> {
    let _ = writeln!(out, "\nextension {} {{", of.name);
    comment(out, "    ", &text::worded(options, of.doc.trim(), SWIFT));
    out.push_str("    ///\n    /// - Parameters:\n");
    let mut declared = Vec::new();
    for row in members {
        let (name, kind) = (named(&row.name, SWIFT), kind(row)?);
        if row.required {
            declared.push(format!("_ {name}: {kind}"));
            continue;
        }
        let value = row.own(SWIFT).and_then(|own| own.value.as_deref()).unwrap_or("nil");
        declared.push(format!("{name}: {kind} = {value}"));
        let doc = format!("- {name}: {}", text::of(options, row, SWIFT)?);
        for (at, line) in text::wrapped(&doc, WIDTH - 12).iter().enumerate() {
            let _ = writeln!(out, "    ///   {}{line}", if at == 0 { "" } else { "  " });
        }
    }
    head(out, "public convenience init", &declared);
    out.push_str("        var options = OptionsText()\n");
    for row in members {
        if let Some(line) = setting(row)? {
            let _ = writeln!(out, "        {line}");
        }
    }
    out.push_str(ending);
    out.push_str("    }\n}\n");
    Ok(())
}

/// The first lines of an initializer.
fn head(out: &mut String, words: &str, parameters: &[String]) {
    let whole = format!("    {words}({}) {{", parameters.join(", "));
    if whole.chars().count() <= WIDTH {
        let _ = writeln!(out, "{whole}");
    } else {
        let _ = writeln!(out, "    {words}(");
        let mut line = String::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let comma = if at + 1 < parameters.len() { "," } else { "" };
            if !line.is_empty() && 9 + line.len() + parameter.len() + comma.len() > WIDTH {
                let _ = writeln!(out, "        {line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            let _ = write!(line, "{parameter}{comma}");
        }
        let _ = writeln!(out, "        {line}\n    ) {{");
    }
}

/// The statement that gives an option to the engine.
fn setting(row: &Row) -> Result<Option<String>> {
    if !row.wire {
        return Ok(None);
    }
    let own = row.own(SWIFT);
    let name = named(&row.name, SWIFT);
    let place = if row.deprecated.is_some() { format!("kept.{name}") } else { name };
    let value = match own.and_then(|own| own.set.as_deref()) {
        Some("") => return Ok(None),
        Some(set) => set.replace("{}", &place),
        None if is_called(row) => return Ok(None),
        None => format!("{}: {place}", spelled(row)?.1),
    };
    let statement = format!("options.set(\"{}\", {value})", row.name);
    Ok(Some(match own.and_then(|own| own.value.as_deref()) {
        Some("[]" | "[:]") => format!("if !{place}.isEmpty {{ {statement} }}"),
        Some("false") => format!("if {place} {{ options.set(\"{}\", flag: true) }}", row.name),
        _ => statement,
    }))
}

/// A function, which goes to the engine by its number.
fn is_called(row: &Row) -> bool {
    row.kind == "function"
}

/// The type of what every language has under a name of its own, and the label under which `options.set` takes it.
fn spelled(row: &Row) -> Result<(&'static str, &'static str)> {
    Ok(match row.kind.as_str() {
        "duration" => ("Duration", "duration"),
        "bytes" | "count" | "port" => ("Int", "number"),
        "flag" => ("Bool", "flag"),
        "text" => ("String", "text"),
        "texts" | "scopes" => ("[String]", "texts"),
        "table" => ("[String: String]", "table"),
        other => bail!("{}: swift spells no {other}", row.name),
    })
}

fn comment(out: &mut String, indent: &str, doc: &str) {
    for line in text::wrapped(doc, WIDTH - indent.len() - 4) {
        let _ = writeln!(out, "{}", format!("{indent}/// {line}").trim_end());
    }
}
