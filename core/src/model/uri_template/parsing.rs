//! The grammar of RFC 6570, section 2, with errors that say where and what.

use super::{Expression, MAX_BYTES, MAX_EXPRESSIONS, Operator, Part, Spec};

/// A template's literals and expressions.
///
/// # Errors
/// At which byte what is wrong, as the end of a sentence.
pub(super) fn parts(source: &str) -> Result<Vec<Part>, String> {
    if source.len() > MAX_BYTES {
        return Err(format!("{} bytes, at most {MAX_BYTES}", source.len()));
    }
    let mut parts = Vec::new();
    let mut expressions = 0;
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        if let Some(inner) = rest.strip_prefix('{') {
            expressions += 1;
            if expressions > MAX_EXPRESSIONS {
                return Err(format!("at byte {at}: more than {MAX_EXPRESSIONS} expressions"));
            }
            let end = inner.find('}').ok_or_else(|| format!("at byte {at}: \"{{\" is never closed"))?;
            parts.push(Part::Expression(expression(&inner[..end], at + 1)?));
            at += end + 2;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            literal(&rest[..end], at)?;
            parts.push(Part::Literal(rest[..end].to_owned()));
            at += end;
        }
    }
    Ok(parts)
}

fn literal(text: &str, start: usize) -> Result<(), String> {
    for (at, c) in text.char_indices() {
        let at = start + at;
        match c {
            '}' => return Err(format!("at byte {at}: \"}}\" closes nothing")),
            '%' if !is_escape(&text[at - start..]) => {
                return Err(format!("at byte {at}: \"%\" is not followed by two hexadecimal digits, write %25"));
            }
            ' ' | '"' | '\'' | '<' | '>' | '\\' | '^' | '`' | '|' => {
                return Err(format!("at byte {at}: {c:?} must be percent-encoded"));
            }
            c if c.is_control() => return Err(format!("at byte {at}: control character {c:?}")),
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn is_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 3 && bytes[0] == b'%' && bytes[1].is_ascii_hexdigit() && bytes[2].is_ascii_hexdigit()
}

fn expression(text: &str, start: usize) -> Result<Expression, String> {
    let operator = match text.chars().next() {
        None => return Err(format!("at byte {start}: \"{{}}\" names no variable")),
        Some('+') => Operator::Reserved,
        Some('#') => Operator::Fragment,
        Some('.') => Operator::Label,
        Some('/') => Operator::Path,
        Some(';') => Operator::Parameters,
        Some('?') => Operator::Query,
        Some('&') => Operator::QueryMore,
        Some(reserved @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(format!("at byte {start}: operator {reserved:?} has no meaning yet"));
        }
        Some(_) => Operator::Simple,
    };
    let mut at = start + usize::from(operator != Operator::Simple);
    let mut variables = Vec::new();
    for text in text[at - start..].split(',') {
        variables.push(spec(text, at)?);
        at += text.len() + 1;
    }
    Ok(Expression { operator, variables })
}

fn spec(text: &str, start: usize) -> Result<Spec, String> {
    let (name, explode, prefix) = if let Some(name) = text.strip_suffix('*') {
        (name, true, None)
    } else if let Some((name, length)) = text.split_once(':') {
        let at = start + name.len() + 1;
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) && !length.starts_with('0');
        let length = length.parse().ok().filter(|length| digits && *length < 10_000);
        let length = length.ok_or_else(|| format!("at byte {at}: a length is 1 to 9999"))?;
        (name, false, Some(length))
    } else {
        (text, false, None)
    };
    if name.is_empty() {
        return Err(format!("at byte {start}: a variable's name is missing"));
    }
    let mut dot = true;
    for (offset, c) in name.char_indices() {
        let at = start + offset;
        let fits = match c {
            '.' => !dot,
            '%' => is_escape(&name[offset..]),
            c => c.is_ascii_alphanumeric() || c == '_',
        };
        if !fits {
            return Err(format!(
                "at byte {at}: {c:?} in a variable's name, which has letters, digits, \"_\" and single dots between them"
            ));
        }
        dot = c == '.';
    }
    if dot {
        return Err(format!("at byte {}: a variable's name ends with a dot", start + name.len() - 1));
    }
    Ok(Spec { name: name.to_owned(), explode, prefix })
}
