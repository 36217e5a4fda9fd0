//! Challenges: `WWW-Authenticate` (RFC 9110, section 11.6.1; RFC 6750, section 3).

use std::fmt::Write;

/// The most challenges that are read of one answer, and the most parameters of each: more are passed over.
const MOST: usize = 32;

/// One way to authenticate, as a server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// As it came; compared without regard to case.
    pub(crate) scheme: String,
    /// Names as they came, and values without their quotes. A single text (`token68`) is left out.
    pub(crate) params: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge of this scheme, without parameters.
    pub(crate) fn new(scheme: &str) -> Self {
        Self { scheme: scheme.to_owned(), params: Vec::new() }
    }

    /// For bearer tokens (RFC 6750).
    pub(crate) fn bearer() -> Self {
        Self::new("Bearer")
    }

    /// Adds a parameter.
    #[must_use]
    pub(crate) fn param(mut self, name: &str, value: impl Into<String>) -> Self {
        self.params.push((name.to_owned(), value.into()));
        self
    }

    /// Returns true if it is of this scheme.
    pub(crate) fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The first parameter of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The header's value: printable ASCII on one line, whatever the values are. Characters that cannot stand in a
    /// header become `?`, and parameters whose names are no tokens are left out.
    pub(crate) fn header(&self) -> String {
        let mut text = self.scheme.clone();
        let mut between = " ";
        for (name, value) in self.params.iter().filter(|(name, _)| is_token(name)) {
            let _ = write!(text, "{between}{name}=\"");
            for c in value.chars() {
                match c {
                    '"' | '\\' => text.extend(['\\', c]),
                    ' '..='~' => text.push(c),
                    _ => text.push('?'),
                }
            }
            text.push('"');
            between = ", ";
        }
        text
    }
}

/// The challenges in all lines of the header. Text that is none is passed over, and unquoted values are taken up to the
/// next comma or space, although many of them would have to be quoted.
pub(crate) fn parse(lines: &[&str]) -> Vec<Challenge> {
    let mut found = Vec::new();
    for line in lines {
        Reader { rest: line }.line(&mut found);
    }
    found
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// RFC 9110, section 11.2.
fn is_token68_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// One line. Lines are parts of one list, so the first may have begun what the next one goes on with.
    fn line(&mut self, found: &mut Vec<Challenge>) {
        loop {
            self.take(|byte| is_space(byte) || byte == b',');
            if self.rest.is_empty() {
                return;
            }
            let name = self.take(is_token_byte);
            let spaces = self.take(is_space);
            if name.is_empty() {
                self.skip_item();
            } else if self.rest.starts_with('=') {
                self.value(name, found);
                self.params(found);
            } else if spaces.is_empty() && !self.at_end() {
                // No scheme has such a character in it.
                self.skip_item();
            } else {
                if found.len() == MOST {
                    return;
                }
                found.push(Challenge::new(name));
                self.first(found);
            }
        }
    }

    /// Reads the text after a scheme: nothing, a token68, or the first of its parameters.
    fn first(&mut self, found: &mut [Challenge]) {
        let before = self.rest;
        self.take(is_token68_byte);
        self.take(|byte| byte == b'=');
        self.take(is_space);
        if self.at_end() {
            return;
        }
        self.rest = before;
        self.params(found);
    }

    /// Parameters up to the next comma; some servers have none between them.
    fn params(&mut self, found: &mut [Challenge]) {
        while !self.at_end() {
            let name = self.take(is_token_byte);
            self.take(is_space);
            if name.is_empty() || !self.rest.starts_with('=') {
                return self.skip_item();
            }
            self.value(name, found);
        }
    }

    /// The value of a parameter, from its `=` on.
    fn value(&mut self, name: &str, found: &mut [Challenge]) {
        self.rest = &self.rest[1..];
        self.take(is_space);
        let value = if self.rest.starts_with('"') { self.quoted() } else { Some(self.unquoted()) };
        self.take(is_space);
        if let (Some(value), Some(challenge)) = (value, found.last_mut())
            && challenge.params.len() < MOST
        {
            challenge.params.push((name.to_owned(), value));
        }
    }

    fn unquoted(&mut self) -> String {
        self.take(|byte| !is_space(byte) && byte != b',').to_owned()
    }

    /// A quoted text; `None` when its end is missing.
    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                _ => value.push(c),
            }
        }
        self.rest = "";
        None
    }

    /// Goes on after the next comma that is not quoted.
    fn skip_item(&mut self) {
        while !self.at_end() {
            if self.rest.starts_with('"') {
                self.quoted();
            } else {
                let mut chars = self.rest.chars();
                chars.next();
                self.rest = chars.as_str();
            }
        }
    }

    fn at_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(',')
    }

    fn take(&mut self, is: impl Fn(u8) -> bool) -> &'a str {
        // All that is looked for is ASCII or ends at ASCII, so this is no place within a character.
        let end = self.rest.bytes().position(|byte| !is(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> Vec<String> {
        parse(lines).iter().map(Challenge::header).collect()
    }

    #[test]
    fn challenges_are_found_among_others() {
        for (lines, expected) in [
            (&["Bearer"][..], &["Bearer"][..]),
            (&["bearer realm=x"], &[r#"bearer realm="x""#]),
            (&["Bearer realm=\"a, b\", error=\"c\\\"d\\\\\""], &[r#"Bearer realm="a, b", error="c\"d\\""#]),
            (&["Negotiate, Bearer scope=\"a b\""], &["Negotiate", r#"Bearer scope="a b""#]),
            (&["Negotiate YII+/a==, Bearer scope=a"], &["Negotiate", r#"Bearer scope="a""#]),
            (
                &["Basic realm=\"x\", charset=\"UTF-8\", Bearer scope=a, NTLM"],
                &[r#"Basic realm="x", charset="UTF-8""#, r#"Bearer scope="a""#, "NTLM"],
            ),
            (
                &["Negotiate", "Bearer a=b", "DPoP algs=\"ES256 RS256\""],
                &["Negotiate", r#"Bearer a="b""#, r#"DPoP algs="ES256 RS256""#],
            ),
            // Spaces around `=` are bad, and allowed; empty members of a list, too.
            (&[", ,Bearer a = \"b\" ,, c\t=d ,"], &[r#"Bearer a="b", c="d""#]),
            // Seen in the wild: no quotes, no commas.
            (
                &["Bearer resource_metadata=https://a.example/.well-known/x?y=z"],
                &[r#"Bearer resource_metadata="https://a.example/.well-known/x?y=z""#],
            ),
            (&["Bearer realm=\"x\" scope=\"y z\""], &[r#"Bearer realm="x", scope="y z""#]),
            (&["Bearer scope=\"\", a="], &[r#"Bearer scope="", a="""#]),
            // Texts that are no challenge.
            (&[""], &[]),
            (&["a=b"], &[]),
            (&["=\"x, Basic\", Bearer"], &["Bearer"]),
            (&["(x) y, Bearer a=b"], &[r#"Bearer a="b""#]),
            (&["Bearer a=b, c=\"unfinished, Basic"], &[r#"Bearer a="b""#]),
            (&["Bearer é=b, a=é"], &[r#"Bearer a="?""#]),
        ] {
            assert_eq!(shown(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn there_is_an_end_to_what_is_read() {
        let many = "Bearer a=b, ".repeat(1000);
        assert_eq!(parse(&[&many]).len(), MOST);
        let many = format!("Bearer {}", "a=b, ".repeat(1000));
        assert_eq!(parse(&[&many])[0].params.len(), MOST);
        // Without a comma between them they are read one after the other.
        let many = format!("Bearer {}", "a=\"b\" ".repeat(20_000));
        assert_eq!(parse(&[&many])[0].params.len(), MOST);
    }

    #[test]
    fn parameters_are_named_without_regard_to_case() {
        let challenge = &parse(&["BEARER Scope=\"a\", scope=b"])[0];
        assert!(challenge.is("bearer") && !challenge.is("DPoP"));
        assert_eq!((challenge.get("SCOPE"), challenge.get("error")), (Some("a"), None));
    }

    #[test]
    fn nothing_gets_out_of_its_quotes() {
        let challenge = Challenge::bearer()
            .param("error", "invalid_token")
            .param("error_description", "a\r\nSet-Cookie: b=\"c\"\\ \u{7f}é\0")
            .param("x\r\ny", "z")
            .param("", "z");
        let header = challenge.header();
        assert_eq!(header, r#"Bearer error="invalid_token", error_description="a??Set-Cookie: b=\"c\"\\ ???""#);
        let read = parse(&[&header]);
        assert_eq!(read[0].get("error_description"), Some("a??Set-Cookie: b=\"c\"\\ ???"));
    }
}
