//! Scopes: what a token's imply, what an operation needs, and the one challenge that says so (RFC 6750, section 3.1).

use crate::auth::challenge::Challenge;
use crate::model::Principal;

/// The most scopes that a challenge names.
const MOST: usize = 100;
/// The most bytes of those that are granted already. Needed scopes are named whatever their length.
const MOST_BYTES: usize = 2048;

/// Returns the scopes that follow from `granted`, besides itself; an implied scope may imply more.
pub(crate) fn implied(granted: &[String], rules: &[(String, Vec<String>)]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    loop {
        let known = |scope: &String| granted.contains(scope) || found.contains(scope);
        let next = rules.iter().filter(|(broad, _)| known(broad)).flat_map(|(_, narrow)| narrow);
        match next.into_iter().find(|scope| !known(scope)).cloned() {
            Some(scope) => found.push(scope),
            None => return found,
        }
    }
}

/// All that a token should have for an operation: what the server needs, what the operation needs, and what it has, so
/// that it does not lose that. `None`: it has everything.
pub(crate) fn lacking(principal: &Principal, required: &[String], needed: &[String]) -> Option<Vec<String>> {
    let all = || required.iter().chain(needed);
    if all().all(|scope| principal.has_scope(scope)) {
        return None;
    }
    let mut named: Vec<String> = Vec::new();
    let (needed, mut left) = (all().count(), MOST_BYTES);
    // Clients of older revisions ask for what is named, and for nothing of what they have.
    let granted = principal.scopes.iter().filter(|scope| *scope != "offline_access");
    for (n, scope) in all().chain(granted).enumerate() {
        if !is_scope(scope) || named.contains(scope) || named.len() >= MOST {
            continue;
        }
        if n >= needed {
            let Some(rest) = left.checked_sub(scope.len() + 1) else { continue };
            left = rest;
        }
        named.push(scope.clone());
    }
    Some(named)
}

/// Returns true if it is a `scope-token` (RFC 6749, section 3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// The challenge to a request without a token, with a bad one or with too small a one.
pub(crate) fn challenge(error: Option<(&str, &str)>, scopes: &[String], metadata: Option<&str>) -> Challenge {
    let mut challenge = Challenge::bearer();
    if let Some((error, description)) = error {
        challenge = challenge.param("error", error).param("error_description", description);
    }
    if let Some(url) = metadata {
        challenge = challenge.param("resource_metadata", url);
    }
    if !scopes.is_empty() {
        challenge = challenge.param("scope", scopes.join(" "));
    }
    challenge
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(scopes: &[&str]) -> Vec<String> {
        scopes.iter().map(|scope| (*scope).to_owned()).collect()
    }

    #[test]
    fn broad_scopes_imply_narrow_ones() {
        let rules = [
            ("admin".to_owned(), owned(&["write", "admin"])),
            ("write".to_owned(), owned(&["read"])),
            ("read".to_owned(), owned(&["write"])),
        ];
        assert_eq!(implied(&owned(&["admin"]), &rules), ["write", "read"]);
        assert_eq!(implied(&owned(&["read"]), &rules), ["write"]);
        assert_eq!(implied(&owned(&["other"]), &rules), [""; 0]);
    }

    #[test]
    fn one_challenge_names_all_that_is_needed() {
        let mut principal = Principal::new("ada").scopes(["mail", "offline_access", "all"]);
        principal.set_implied(owned(&["read"]));
        for (required, needed, expected) in [
            (&[][..], &[][..], None),
            (&["mail"], &["read"], None),
            (&["read"], &["write", "read"], Some(&["read", "write", "mail", "all"][..])),
            (&["base"], &[], Some(&["base", "mail", "all"])),
        ] {
            let named = lacking(&principal, &owned(required), &owned(needed));
            assert_eq!(named, expected.map(owned), "{required:?} {needed:?}");
        }
    }

    #[test]
    fn a_challenge_has_an_end() {
        let long = |n: usize| format!("{n}{}", "x".repeat(500));
        let mut principal = Principal::new("ada").scopes((0..50).map(long));
        principal.set_implied(Vec::new());
        let needed: Vec<String> = (100..110).map(long).collect();
        let named = lacking(&principal, &[], &needed).expect("something lacks");
        assert_eq!((&named[..10], named.len()), (&needed[..], 14));
    }

    #[test]
    fn a_challenge_says_where_and_what() {
        let url = "https://h/.well-known/oauth-protected-resource/mcp";
        assert_eq!(
            challenge(Some(("invalid_token", "the token has expired")), &owned(&["a", "b"]), Some(url)).header(),
            format!(
                "Bearer error=\"invalid_token\", error_description=\"the token has expired\", \
                 resource_metadata=\"{url}\", scope=\"a b\""
            )
        );
        assert_eq!(challenge(None, &[], None).header(), "Bearer");
    }
}
