//! From a URI back to the variables, which RFC 6570 leaves open (section 1.4).

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::parsing::is_escape;
use super::{Expression, Operator, Part, Spec};

/// The most memory of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 4 << 20;
/// The most path segments that the pattern counts, each of which costs a copy of their class. More are counted afterwards.
const MAX_COUNTED: usize = 8;

/// One anchored pattern with a group for each expression. The library matches in linear time.
pub(super) fn pattern(parts: &[Part]) -> Result<Regex, String> {
    let mut out = String::from("(?s)^");
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(text) => push_literal(&mut out, text),
            Part::Expression(expression) => push_expression(&mut out, expression, &parts[at + 1..]),
        }
    }
    out.push('$');
    let built = RegexBuilder::new(&out).size_limit(MAX_PATTERN).build();
    built.map_err(|_| "too many literals and expressions for one template".to_owned())
}

/// The text, and for what expansion encodes (non-ASCII characters) also the encoded form. Escapes in either case.
fn push_literal(out: &mut String, text: &str) {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if is_escape(&text[at..]) {
            push_escape(out, u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap_or_default());
            at += 3;
            continue;
        }
        at += c.len_utf8();
        let mut buffer = [0; 4];
        let raw = c.encode_utf8(&mut buffer);
        if c.is_ascii() {
            out.push_str(&regex::escape(raw));
        } else {
            let _ = write!(out, "(?:{}|", regex::escape(raw));
            raw.bytes().for_each(|byte| push_escape(out, byte));
            out.push(')');
        }
    }
}

fn push_escape(out: &mut String, byte: u8) {
    out.push('%');
    for digit in [byte >> 4, byte & 15] {
        let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
        let _ = match digit {
            '0'..='9' => write!(out, "{digit}"),
            _ => write!(out, "[{digit}{}]", digit.to_ascii_uppercase()),
        };
    }
}

fn push_expression(out: &mut String, expression: &Expression, later: &[Part]) {
    use Operator::{Fragment, Label, Parameters, Path, Query, QueryMore, Reserved, Simple};
    let next = later.first().and_then(|part| match part {
        Part::Expression(next) => Some(next.operator),
        Part::Literal(_) => None,
    });
    // The next part may be missing and starts with a character that may stand here, too: it comes first.
    let lazy = if matches!(next, Some(Label | Parameters | QueryMore)) { "?" } else { "" };
    let comes = |operators: &[Operator], c: char| {
        later.iter().any(|part| match part {
            Part::Literal(text) => text.contains(c),
            Part::Expression(next) => operators.contains(&next.operator),
        })
    };
    let _ = match expression.operator {
        Simple => write!(out, "([^/?#]+{lazy})"),
        Reserved => {
            let class = match (comes(&[Query], '?'), comes(&[Fragment], '#')) {
                (true, _) => "[^?#]",
                (false, true) => "[^#]",
                (false, false) => ".",
            };
            write!(out, "({class}+{lazy})")
        }
        Fragment => write!(out, "(#.*{lazy})?"),
        Label => write!(out, "(\\.[^/?#]*{lazy})?"),
        Path if expression.variables.iter().any(|spec| spec.explode) => write!(out, "((?:/[^/?#]*{lazy})*{lazy})"),
        Path if expression.variables.len() > MAX_COUNTED => write!(out, "((?:/[^/?#]*{lazy})*{lazy})"),
        Path => write!(out, "((?:/[^/?#]*{lazy}){{0,{}}}{lazy})", expression.variables.len()),
        Parameters => write!(out, "((?:;[^/?#;]*{lazy})*)"),
        Query => write!(out, "(\\?[^#]*{lazy})?"),
        QueryMore => write!(out, "(&[^#]*{lazy})?"),
    };
}

/// The values of what each expression's group has caught.
pub(super) fn values<'a>(
    groups: impl Iterator<Item = (&'a Expression, Option<&'a str>)>,
) -> Option<Map<String, Value>> {
    let mut found = Found::default();
    // One pool: which of several query expressions a parameter belongs to, its name says.
    let mut query = (Vec::new(), Vec::new());
    for (expression, text) in groups {
        let text = text.unwrap_or_default();
        match expression.operator {
            Operator::Query | Operator::QueryMore => {
                query.0.extend(&expression.variables);
                query.1.extend(text.get(1..).unwrap_or_default().split('&'));
            }
            Operator::Parameters => {
                let specs: Vec<_> = expression.variables.iter().collect();
                found.named(&specs, text.split(';'))?;
            }
            _ if text.is_empty() => {}
            Operator::Simple | Operator::Reserved => found.positional(&expression.variables, text, ',')?,
            Operator::Fragment => found.positional(&expression.variables, &text[1..], ',')?,
            Operator::Label => found.positional(&expression.variables, &text[1..], '.')?,
            Operator::Path => {
                let (specs, text) = (&expression.variables, &text[1..]);
                let more = !specs.iter().any(|spec| spec.explode) && text.matches('/').count() >= specs.len();
                if more {
                    return None;
                }
                found.positional(specs, text, '/')?;
            }
        }
    }
    found.named(&query.0, query.1.into_iter())?;
    found.finish()
}

#[derive(Default)]
struct Found<'a> {
    values: Map<String, Value>,
    /// The first characters of variables.
    prefixes: Vec<(&'a str, String)>,
}

impl<'a> Found<'a> {
    fn put(&mut self, spec: &'a Spec, value: Value) -> Option<()> {
        match (spec.prefix, value) {
            (Some(most), Value::String(text)) => {
                (text.chars().count() <= most).then(|| self.prefixes.push((&spec.name, text)))
            }
            (_, value) => match self.values.get(&spec.name) {
                Some(earlier) => (*earlier == value).then_some(()),
                None => {
                    self.values.insert(spec.name.clone(), value);
                    Some(())
                }
            },
        }
    }

    /// Matches values to variables by their places. The first variable with `*` takes what is left over.
    fn positional(&mut self, specs: &'a [Spec], text: &str, separator: char) -> Option<()> {
        let Some(explode) = specs.iter().position(|spec| spec.explode) else {
            return specs.iter().zip(text.splitn(specs.len(), separator)).try_for_each(|(spec, text)| {
                let value = decoded(text)?;
                self.put(spec, Value::String(value))
            });
        };
        let parts: Vec<_> =
            text.split(separator).map(|text| decoded(text).map(Value::String)).collect::<Option<_>>()?;
        let after = specs.len() - explode - 1;
        let before = explode.min(parts.len());
        let end = parts.len().saturating_sub(after).max(before);
        for (spec, value) in specs.iter().zip(&parts[..before]) {
            self.put(spec, value.clone())?;
        }
        if end > before {
            self.put(&specs[explode], Value::Array(parts[before..end].to_vec()))?;
        }
        for (spec, value) in specs[explode + 1..].iter().zip(&parts[end..]) {
            let value = if spec.explode { Value::Array(vec![value.clone()]) } else { value.clone() };
            self.put(spec, value)?;
        }
        Some(())
    }

    /// `name=value` in any order; `name` alone has the empty value.
    fn named<'u>(&mut self, specs: &[&'a Spec], pairs: impl Iterator<Item = &'u str>) -> Option<()> {
        let mut texts: Vec<Vec<Value>> = vec![Vec::new(); specs.len()];
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let at = specs.iter().position(|spec| spec.name == name)?;
            texts[at].push(Value::String(decoded(value)?));
        }
        for (spec, mut values) in specs.iter().zip(texts) {
            match (spec.explode, values.len()) {
                (_, 0) => {}
                (true, _) => self.put(spec, Value::Array(values))?,
                (false, 1) => self.put(spec, values.remove(0))?,
                (false, _) => return None,
            }
        }
        Some(())
    }

    fn finish(mut self) -> Option<Map<String, Value>> {
        for (name, text) in self.prefixes {
            match self.values.get(name) {
                Some(Value::String(whole)) if whole.starts_with(&text) => {}
                Some(_) => return None,
                None => {
                    self.values.insert(name.to_owned(), Value::String(text));
                }
            }
        }
        Some(self.values)
    }
}

fn decoded(text: &str) -> Option<String> {
    let broken = text.match_indices('%').any(|(at, _)| !is_escape(&text[at..]));
    if broken { None } else { percent_decode_str(text).decode_utf8().ok().map(Into::into) }
}
