//! From variables to a URI: the algorithm of RFC 6570, section 3.2 and appendix A.

use serde_json::{Map, Value};

use super::parsing::is_escape;
use super::{Expression, MAX_BYTES, Operator, Spec};

/// Rules of an operator (the table of appendix A).
struct Style {
    first: &'static str,
    separator: char,
    /// Values come as `name=value`.
    named: bool,
    /// Text after the name of an empty value.
    if_empty: &'static str,
    /// Reserved characters and escapes pass as they are.
    reserved: bool,
}

impl Operator {
    const fn style(self) -> Style {
        let (first, separator, named, if_empty, reserved) = match self {
            Self::Simple => ("", ',', false, "", false),
            Self::Reserved => ("", ',', false, "", true),
            Self::Fragment => ("#", ',', false, "", true),
            Self::Label => (".", '.', false, "", false),
            Self::Path => ("/", '/', false, "", false),
            Self::Parameters => (";", ';', true, "", false),
            Self::Query => ("?", '&', true, "=", false),
            Self::QueryMore => ("&", '&', true, "=", false),
        };
        Style { first, separator, named, if_empty, reserved }
    }
}

/// A literal of the template: what a URI cannot have as it is, is encoded.
pub(super) fn push_literal(out: &mut String, text: &str) {
    push_encoded(out, text, true, usize::MAX);
}

/// One expression's text; what is beyond [`MAX_BYTES`] is cut off, for the caller to refuse.
///
/// # Errors
/// The variable whose value does not fit, as the end of a sentence.
pub(super) fn push_expression(
    out: &mut String,
    expression: &Expression,
    values: &Map<String, Value>,
) -> Result<(), String> {
    let style = expression.operator.style();
    let mut any = false;
    for spec in &expression.variables {
        let fitting = values.get(&spec.name).map_or(Ok(Scalars::None), |value| Scalars::of(value));
        let value = fitting.map_err(|why| format!("variable {:?}: {why}", spec.name))?;
        if matches!(value, Scalars::None) {
            continue;
        }
        if out.len() > MAX_BYTES {
            break;
        }
        if spec.prefix.is_some() && !matches!(value, Scalars::One(_)) {
            let name = &spec.name;
            return Err(format!("variable {name:?}: a list or an object has no first characters, take out the \":n\""));
        }
        if any {
            out.push(style.separator);
        } else {
            out.push_str(style.first);
        }
        any = true;
        push_value(out, &style, spec, &value);
    }
    Ok(())
}

/// A value's texts.
enum Scalars {
    None,
    One(String),
    List(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Scalars {
    fn of(value: &Value) -> Result<Self, &'static str> {
        let scalar = |value: &Value| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::Bool(yes) => Ok(Some(yes.to_string())),
            Value::Array(_) | Value::Object(_) => {
                Err("what is in a list or an object must be a string, a number or a boolean")
            }
        };
        let fitting = match value {
            Value::Array(items) => {
                Self::List(items.iter().filter_map(|item| scalar(item).transpose()).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let texts = members
                    .iter()
                    .filter_map(|(key, value)| Some(scalar(value).transpose()?.map(|text| (key.clone(), text))));
                Self::Members(texts.collect::<Result<_, _>>()?)
            }
            one => scalar(one)?.map_or(Self::None, Self::One),
        };
        let empty = match &fitting {
            Self::List(items) => items.is_empty(),
            Self::Members(members) => members.is_empty(),
            _ => false,
        };
        Ok(if empty { Self::None } else { fitting })
    }
}

fn push_value(out: &mut String, style: &Style, spec: &Spec, value: &Scalars) {
    let most = spec.prefix.unwrap_or(usize::MAX);
    let encode = |out: &mut String, text: &str| push_encoded(out, text, style.reserved, most);
    let named = |out: &mut String, name: &str, empty: bool| {
        if out.len() > MAX_BYTES {
            return;
        }
        out.push_str(name);
        out.push_str(if empty { style.if_empty } else { "=" });
    };
    if style.named && (!spec.explode || matches!(value, Scalars::One(_))) {
        named(out, &spec.name, matches!(value, Scalars::One(text) if text.is_empty()));
    }
    match value {
        Scalars::None => {}
        Scalars::One(text) => encode(out, text),
        Scalars::List(items) => {
            for (at, item) in items.iter().enumerate().take(MAX_BYTES) {
                if at > 0 {
                    out.push(if spec.explode { style.separator } else { ',' });
                }
                if spec.explode && style.named {
                    named(out, &spec.name, item.is_empty());
                }
                encode(out, item);
            }
        }
        Scalars::Members(members) => {
            for (at, (key, text)) in members.iter().enumerate().take(MAX_BYTES) {
                if at > 0 {
                    out.push(if spec.explode { style.separator } else { ',' });
                }
                encode(out, key);
                match (spec.explode, style.named && text.is_empty()) {
                    (true, true) => out.push_str(style.if_empty),
                    (true, false) => out.push('='),
                    (false, _) => out.push(','),
                }
                encode(out, text);
            }
        }
    }
}

/// At most `most` characters of `text`, percent-encoded, and none once the URI is too long. An escape that passes as it is counts as one.
fn push_encoded(out: &mut String, text: &str, reserved: bool, most: usize) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut rest = text;
    for _ in 0..most {
        let Some(c) = rest.chars().next().filter(|_| out.len() <= MAX_BYTES) else { return };
        let mut length = c.len_utf8();
        let passes = match c {
            '-' | '.' | '_' | '~' => true,
            '%' if reserved && is_escape(rest) => {
                length = 3;
                true
            }
            c if c.is_ascii_alphanumeric() => true,
            c => reserved && ":/?#[]@!$&'()*+,;=".contains(c),
        };
        let (this, after) = rest.split_at(length);
        if passes {
            out.push_str(this);
        } else {
            for byte in this.bytes() {
                out.extend(['%', HEX[usize::from(byte >> 4)].into(), HEX[usize::from(byte & 15)].into()]);
            }
        }
        rest = after;
    }
}
