//! The token of a request: RFC 6750, section 2.1, and only there. Never from a query or a body (section 2.3; MCP).

/// Credentials that a request brings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Brought<'a> {
    /// No bearer token: nothing, or what is of another scheme.
    Nothing,
    Token(&'a str),
    /// Something that cannot be read, and why (`invalid_request`).
    Malformed(&'static str),
}

/// Reads the `Authorization` headers of a request, each as far as it is text, and the query of its target.
pub(crate) fn read<'a>(authorization: &[Option<&'a str>], query: Option<&str>) -> Brought<'a> {
    let in_query = |query: &str| form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token");
    if query.is_some_and(in_query) {
        return Brought::Malformed("a token in the query is not accepted: send it in the Authorization header");
    }
    let value = match authorization {
        [] => return Brought::Nothing,
        [Some(value)] => value.trim_matches([' ', '\t']),
        [None] => return Brought::Malformed("the Authorization header is not visible ASCII"),
        _ => return Brought::Malformed("there is more than one Authorization header"),
    };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Brought::Nothing;
    }
    let token = token.trim_start_matches(' ');
    if is_token(token) { Brought::Token(token) } else { Brought::Malformed("what follows Bearer is no token") }
}

/// `b64token`.
fn is_token(text: &str) -> bool {
    let token = text.trim_end_matches('=');
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_header_has_one_token() {
        let malformed = |authorization: &[Option<&str>], query| {
            assert!(matches!(read(authorization, query), Brought::Malformed(_)), "{authorization:?} {query:?}");
        };
        for (header, expected) in [
            ("Bearer a.b-c_~+/d==", Brought::Token("a.b-c_~+/d==")),
            ("bearer  a ", Brought::Token("a")),
            ("Basic YTpi", Brought::Nothing),
            ("DPoP a", Brought::Nothing),
            ("", Brought::Nothing),
        ] {
            assert_eq!(read(&[Some(header)], None), expected, "{header}");
        }
        for header in
            ["Bearer", "Bearer ", "Bearer =", "Bearer a b", "Bearer a, Bearer b", "Bearer a=b", "Bearer \"a\""]
        {
            malformed(&[Some(header)], None);
        }
        assert_eq!(read(&[], None), Brought::Nothing);
        malformed(&[None], None);
        malformed(&[Some("Bearer a"), Some("Bearer a")], None);
        malformed(&[Some("Bearer a"), Some("Basic a")], None);
    }

    #[test]
    fn nothing_is_taken_from_the_query() {
        for query in ["access_token=a", "x=1&access_token=a", "access_token", "access%5Ftoken=a"] {
            assert!(matches!(read(&[Some("Bearer a")], Some(query)), Brought::Malformed(_)), "{query}");
            assert!(matches!(read(&[], Some(query)), Brought::Malformed(_)), "{query}");
        }
        // Whatever it stands for, it is no token here.
        for query in ["", "my_access_token=a", "session_id=access_token"] {
            assert_eq!(read(&[], Some(query)), Brought::Nothing, "{query}");
        }
    }
}
