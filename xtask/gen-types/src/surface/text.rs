//! Documentation of options in the words of a language.

use anyhow::{Context, Result, bail};
use toml::Value;

use super::options::{Language, Options, Row, joined};

/// Width of the lines of all generated files.
pub(super) const WIDTH: usize = 120;

/// The name of an option as a language writes it.
pub(super) fn named(name: &str, language: Language) -> String {
    /// Words that Swift writes in capitals.
    const ACRONYMS: [&str; 4] = ["id", "ttl", "uri", "url"];
    if language == Language::Python {
        return name.to_owned();
    }
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        if language == Language::Swift && ACRONYMS.contains(&word) {
            out.push_str(&word.to_ascii_uppercase());
        } else {
            let (first, rest) = word.split_at(word.len().min(1));
            out.push_str(&first.to_ascii_uppercase());
            out.push_str(rest);
        }
    }
    out
}

/// Puts the words and names of a language in the place of `{so}`.
pub(super) fn worded(options: &Options, text: &str, language: Language) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let token = after.split_once('}').map(|(token, _)| token).unwrap_or_default();
        let is_token = !token.is_empty() && token.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if !is_token {
            out.push('{');
            rest = after;
            continue;
        }
        rest = &after[token.len() + 1..];
        match options.words.get(token) {
            Some(words) => out.push_str(&words[language as usize]),
            None => {
                let parts: Vec<String> = token.split('.').map(|part| named(part, language)).collect();
                out.push_str(&parts.join("."));
            }
        }
    }
    out + rest
}

/// The documentation of an option: sentences, unit, bounds and default.
pub(super) fn of(options: &Options, row: &Row, language: Language) -> Result<String> {
    let mut sentences = vec![row.doc.clone()];
    let own = row.own(language).and_then(|own| own.doc.as_deref()).map(joined);
    let unit = match (row.kind.as_str(), language) {
        ("bytes", _) => Some("In bytes."),
        ("duration", Language::Python) => Some("In seconds."),
        ("duration", Language::Node) => Some("In milliseconds."),
        _ => None,
    };
    // Paragraphs of a language's own come last.
    let (own, paragraphs) = match own {
        Some(text) => match text.split_once("\n\n") {
            Some((first, rest)) => (Some(first.to_owned()), Some(rest.to_owned())),
            None => (Some(text), None),
        },
        None => (None, None),
    };
    sentences.extend(own);
    sentences.extend(row.since.as_ref().map(|since| format!("Since revision {since}.")));
    sentences.extend(unit.map(str::to_owned));
    if let Some(max) = &row.max {
        sentences.push(format!("At most {}.", value(row, max, language)?));
    }
    if let Some(default) = row.default_in(language) {
        sentences.push(format!("Default: {}.", value(row, &default, language)?));
    }
    let mut text = worded(options, &sentences.join(" "), language);
    if let Some(paragraphs) = paragraphs {
        text.push_str("\n\n");
        text.push_str(&worded(options, &paragraphs, language));
    }
    Ok(text)
}

/// A default or a bound as text; times in the language's unit.
pub(super) fn value(row: &Row, value: &Value, language: Language) -> Result<String> {
    Ok(match value {
        Value::Boolean(true) => "`{true}`".to_owned(),
        Value::Boolean(false) => "`{false}`".to_owned(),
        Value::Integer(number) => grouped(*number),
        Value::String(text) if row.kind == "duration" => match (seconds(text), language) {
            (Some(seconds), Language::Python) => grouped(seconds),
            (Some(seconds), Language::Node) => grouped(seconds * 1000),
            _ => text.clone(),
        },
        Value::String(text) => text.clone(),
        other => bail!("{}: {other} is no default", row.name),
    })
}

/// `10 min` in seconds; nothing for what is no time.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(number.parse::<i64>().ok()? * factor)
}

/// `10,000`.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.as_bytes()[at - 1].is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The note of a deprecated option.
pub(super) fn note<'a>(options: &'a Options, row: &Row) -> Result<Option<&'a str>> {
    let Some(feature) = &row.deprecated else { return Ok(None) };
    options.notes.get(feature).map(|note| Some(note.as_str())).with_context(|| format!("no note of {feature}"))
}

/// Lines of at most `width` characters; an empty one between paragraphs.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, paragraph) in text.split("\n\n").enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        // Indented lines are code.
        if paragraph.lines().any(|line| line.starts_with("    ") || line.starts_with("```")) {
            lines.extend(paragraph.lines().map(str::to_owned));
            continue;
        }
        let mut line = String::new();
        for word in words(paragraph) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}

/// The words of a paragraph; code between backticks is one.
fn words(paragraph: &str) -> Vec<String> {
    let is_open = |text: &str| text.matches('`').count() % 2 == 1;
    let is_balanced = !is_open(paragraph);
    let mut words: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match words.last_mut() {
            Some(last) if is_balanced && is_open(last) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_the_language() {
        assert_eq!(named("website_url", Language::Swift), "websiteURL");
        assert_eq!(named("request_state_ttl", Language::Node), "requestStateTtl");
        assert_eq!(named("url", Language::Swift), "url");
        assert_eq!((seconds("10 min"), seconds("never")), (Some(600), None));
        assert_eq!([grouped(4096), grouped(250), grouped(1_000_000)], ["4,096", "250", "1,000,000"]);
    }

    #[test]
    fn lines_end_before_the_margin() {
        assert_eq!(wrapped("one two three\n\nfour", 7), ["one two", "three", "", "four"]);
        assert_eq!(wrapped("is `{ a: 1 }` here", 9), ["is", "`{ a: 1 }`", "here"]);
    }
}
