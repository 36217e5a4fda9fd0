//! URI templates (RFC 6570, all four levels), and the way back: from a URI to the variables.

use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

use crate::error::{Error, Result, shortened};

mod expansion;
mod matching;
mod parsing;

/// The longest template, and the longest URI that is made or matched, in bytes.
const MAX_BYTES: usize = 8 << 10;
/// The most expressions (`{…}`) in a template.
const MAX_EXPRESSIONS: usize = 64;

/// A URI template such as `file:///{+path}` or `search://{topic}{?limit,tags*}`.
///
/// At most 8 KiB and 64 expressions.
///
/// ```
/// use serde_json::{Map, json};
/// use tricorn::model::UriTemplate;
///
/// let template = UriTemplate::parse("search://{topic}{?limit}")?;
/// let values = Map::from_iter([("topic".to_owned(), json!("sea lions")), ("limit".to_owned(), json!(5))]);
/// let uri = template.expand(&values)?;
/// assert_eq!(uri, "search://sea%20lions?limit=5");
/// assert_eq!(template.matches(&uri).unwrap()["topic"], "sea lions");
/// assert!(template.matches("search://a/b").is_none());
/// # Ok::<(), tricorn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct UriTemplate {
    source: String,
    parts: Vec<Part>,
    /// One group for each expression, in their order. Its matching takes linear time in the URI's length.
    pattern: Regex,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(String),
    Expression(Expression),
}

/// `{?a,b*}`
#[derive(Debug, Clone)]
struct Expression {
    operator: Operator,
    variables: Vec<Spec>,
}

/// One variable in an expression.
#[derive(Debug, Clone)]
struct Spec {
    name: String,
    /// `*`
    explode: bool,
    /// `:n`, in characters.
    prefix: Option<usize>,
}

/// Operator at the beginning of an expression (RFC 6570, section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// none
    Simple,
    /// `+`
    Reserved,
    /// `#`
    Fragment,
    /// `.`
    Label,
    /// `/`
    Path,
    /// `;`
    Parameters,
    /// `?`
    Query,
    /// `&`
    QueryMore,
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) saying at which byte it is wrong and how.
    pub fn parse(source: &str) -> Result<Self> {
        let wrong = |why: String| {
            let shown = shortened(source, 200);
            Error::misuse(format!("URI template \"{shown}\": {why}"))
        };
        let parts = parsing::parts(source).map_err(wrong)?;
        let pattern = matching::pattern(&parts).map_err(wrong)?;
        Ok(Self { source: source.to_owned(), parts, pattern })
    }

    /// False for a template that cannot fit `uri`, as its beginning shows. Costs no more than a comparison, and does
    /// not look at the rest of the template.
    pub(crate) fn may_match(template: &str, uri: &str) -> bool {
        // Characters that are encoded may stand there in several forms.
        let literal = template.bytes().take_while(|byte| byte.is_ascii() && !matches!(byte, b'{' | b'%'));
        let mut given = uri.bytes();
        literal.into_iter().all(|byte| given.next() == Some(byte))
    }

    /// The template as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Literal(_) => None,
        })
    }

    fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.expressions().flat_map(|expression| &expression.variables)
    }

    /// The variables' names in their order, each once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.specs()
            .enumerate()
            .filter(|(at, spec)| self.specs().take(*at).all(|earlier| earlier.name != spec.name))
            .map(|(_, spec)| spec.name.as_str())
    }

    /// The names of variables that are lists: `{a*}`.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &str> {
        self.specs().filter(|spec| spec.explode).map(|spec| spec.name.as_str())
    }

    /// The URI for these values: strings, numbers, booleans, lists and objects of them. A value that is missing or
    /// `null` is left out (RFC 6570, section 3).
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the variable whose value is nested or, with a length such as
    /// `{a:3}`, no string; also when the URI is longer than 8 KiB.
    pub fn expand(&self, values: &Map<String, Value>) -> Result<String> {
        let wrong = |why: String| Error::misuse(format!("URI template \"{}\": {why}", shortened(&self.source, 200)));
        let mut uri = String::with_capacity(self.source.len());
        for part in &self.parts {
            match part {
                Part::Literal(text) => expansion::push_literal(&mut uri, text),
                Part::Expression(expression) => {
                    expansion::push_expression(&mut uri, expression, values).map_err(wrong)?;
                }
            }
            if uri.len() > MAX_BYTES {
                return Err(wrong(format!("the URI is longer than {MAX_BYTES} bytes")));
            }
        }
        Ok(uri)
    }

    /// The variables' values in `uri`, percent-decoded, when it fits the template; those that it leaves out are absent.
    ///
    /// - `{var}` is at least one character and none of `/`, `?`, `#`; `{+var}` is at least one and crosses `/`.
    ///   Expressions with another operator may be missing.
    /// - Query (`{?a,b}`, `{&a}`) and path-style (`{;a}`) parameters may come in any order; an unknown one, or one that
    ///   comes twice without `*`, does not fit.
    /// - `{var*}`, `{/var*}`, `{?var*}` give a list of strings, everything else a string: without `*`, a list and a
    ///   text with commas look the same.
    /// - A variable that is used twice has one value. A URI over 8 KiB, a broken escape and what is not UTF-8 once
    ///   decoded fit nothing.
    ///
    /// Decoding comes last: a value may hold a `/` that was `%2F`, or be `..`. Whoever takes it for a path checks it.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        if uri.len() > MAX_BYTES {
            return None;
        }
        let captures = self.pattern.captures(uri)?;
        matching::values(self.expressions().zip(captures.iter().skip(1).map(|group| group.map(|g| g.as_str()))))
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UriTemplate {}

#[cfg(test)]
mod tests;
