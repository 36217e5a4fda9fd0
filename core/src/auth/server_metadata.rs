//! RFC 8414, OAuth 2.0 Authorization Server Metadata, and OpenID Connect Discovery 1.0: what an authorization server can
//! do, and where.

use serde::Deserialize;

use super::fetch::{object, odd};
use super::url::{Parts, is_safe, is_same_issuer};
use crate::error::{shortened, shown_url};

/// An authorization server's metadata: what a client or a resource server acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ServerMetadata {
    #[serde(default)]
    pub(crate) issuer: String,
    #[serde(default)]
    pub(crate) authorization_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) token_endpoint: Option<String>,
    /// RFC 7591.
    #[serde(default, deserialize_with = "odd")]
    pub(crate) registration_endpoint: Option<String>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) jwks_uri: Option<String>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) scopes_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) grant_types_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// RFC 7636.
    #[serde(default, deserialize_with = "odd")]
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "odd")]
    pub(crate) client_id_metadata_document_supported: Option<bool>,
    /// RFC 9207.
    #[serde(default, deserialize_with = "odd")]
    pub(crate) authorization_response_iss_parameter_supported: Option<bool>,
    /// RFC 9449.
    #[serde(default, deserialize_with = "odd")]
    pub(crate) dpop_signing_alg_values_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// The server at an MCP server's origin that publishes no metadata, as 2025-03-26 has it.
    pub(crate) fn assumed(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            ..Self::default()
        }
    }

    /// Reads a document. With `issuer`, it must be that issuer's own: the same text, without any normalization
    /// (RFC 8414 §3.3) but the slash of an empty path. Optional members that are not what they should be are passed over.
    ///
    /// # Errors
    /// The fault of the document, for people.
    pub(crate) fn parse(body: &[u8], issuer: Option<&str>) -> Result<Self, String> {
        let metadata: Self = object(body).map_err(|e| format!("it is no authorization server metadata ({e})"))?;
        if let Some(issuer) = issuer
            && !is_same_issuer(&metadata.issuer, issuer)
        {
            return Err(format!(
                "its issuer is {}, expected {}: they must be the same text",
                shown_url(&metadata.issuer),
                shown_url(issuer)
            ));
        }
        for (name, url) in
            [("authorization_endpoint", &metadata.authorization_endpoint), ("token_endpoint", &metadata.token_endpoint)]
        {
            if let Some(url) = url.as_deref().filter(|url| !is_safe(url)) {
                return Err(format!("its {name} is {}, expected an https URL", shown_url(url)));
            }
        }
        Ok(metadata)
    }

    /// Checks that S256 may be used (RFC 7636): a document has to say so (RFC 8414, section 2). `assumed`: there is no
    /// document.
    ///
    /// # Errors
    /// The reason why it may not, for people.
    pub(crate) fn check_pkce(&self, assumed: bool) -> Result<(), String> {
        match &self.code_challenge_methods_supported {
            Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
            Some(methods) => Err(format!(
                "lists code_challenge_methods_supported {}, without S256; it cannot be used with PKCE S256",
                shortened(&format!("{methods:?}"), 100)
            )),
            None if assumed => Ok(()),
            None => Err("lists no code_challenge_methods_supported; it cannot be used with PKCE S256".into()),
        }
    }

    /// Returns true if a scope may be asked for because the server knows it.
    pub(crate) fn has_scope(&self, scope: &str) -> bool {
        self.scopes_supported.iter().flatten().any(|own| own == scope)
    }
}

/// Returns the possible addresses of an issuer's metadata, best first: RFC 8414 §3.1, then OpenID Connect Discovery
/// with the path in either place.
pub(crate) fn well_known(issuer: &str) -> Vec<String> {
    let Some(parts) = Parts::of(issuer) else { return Vec::new() };
    let (origin, path) = (parts.origin(), parts.path.trim_end_matches('/'));
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_follows_the_issuers_path() {
        let root = ["https://as/.well-known/oauth-authorization-server", "https://as/.well-known/openid-configuration"];
        let path = [
            "https://as/.well-known/oauth-authorization-server/t/1",
            "https://as/.well-known/openid-configuration/t/1",
            "https://as/t/1/.well-known/openid-configuration",
        ];
        for (issuer, expected) in [
            ("https://as", &root[..]),
            ("https://as/", &root),
            ("https://as/t/1", &path),
            ("https://as/t/1/", &path),
            ("as", &[]),
        ] {
            assert_eq!(well_known(issuer), expected, "{issuer}");
        }
    }

    #[test]
    fn a_document_is_its_issuers_own() {
        let document = br#"{"issuer":"https://as","token_endpoint":"https://as/token","x":1}"#;
        for (issuer, why) in [
            (Some("https://as"), None),
            (None, None),
            (Some("https://as/"), None),
            (Some("https://as/t"), Some("its issuer is \"https://as\", expected \"https://as/t\"")),
            (Some("https://AS"), Some("the same text")),
            (Some("https://as:443"), Some("the same text")),
        ] {
            let error = ServerMetadata::parse(document, issuer).err();
            assert_eq!(error.is_some(), why.is_some(), "{issuer:?}");
            assert!(error.unwrap_or_default().contains(why.unwrap_or_default()), "{issuer:?}");
        }
        for bad in [
            &b"<html>"[..],
            b"[]",
            br#"{"issuer":"https://as","token_endpoint":"http://as/token"}"#,
            br#"{"issuer":"https://as","authorization_endpoint":"javascript:alert(1)"}"#,
            br#"{"issuer":"https://as","token_endpoint":1}"#,
        ] {
            assert!(ServerMetadata::parse(bad, Some("https://as")).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn one_odd_member_is_passed_over() {
        let odd = br#"{"issuer":"https://as","token_endpoint":"https://as/token","scopes_supported":"a b",
            "grant_types_supported":["authorization_code",null],"token_endpoint_auth_methods_supported":"none",
            "client_id_metadata_document_supported":"true","jwks_uri":{},"registration_endpoint":"",
            "code_challenge_methods_supported":["S256"],"dpop_signing_alg_values_supported":null,
            "authorization_response_iss_parameter_supported":1}"#;
        let metadata = ServerMetadata::parse(odd, Some("https://as")).expect("metadata");
        let text = |text: &str| Some(text.to_owned());
        let expected = ServerMetadata {
            issuer: "https://as".into(),
            token_endpoint: text("https://as/token"),
            grant_types_supported: Some(vec!["authorization_code".into()]),
            code_challenge_methods_supported: Some(vec!["S256".into()]),
            ..ServerMetadata::default()
        };
        assert_eq!(metadata, expected);
        let marked = [b"\xef\xbb\xbf", &odd[..]].concat();
        assert_eq!(ServerMetadata::parse(&marked, Some("https://as")).expect("metadata"), expected);
    }

    #[test]
    fn pkce_is_refused_where_it_is_not_listed() {
        let metadata = |methods: Option<&[&str]>| ServerMetadata {
            code_challenge_methods_supported: methods.map(|m| m.iter().map(|m| (*m).to_owned()).collect()),
            ..ServerMetadata::default()
        };
        for (methods, assumed, why) in [
            (Some(&["S256"][..]), false, None),
            (Some(&["plain", "S256"]), false, None),
            (None, true, None),
            (None, false, Some("lists no code_challenge_methods_supported; it cannot be used with PKCE S256")),
            (Some(&["plain"]), true, Some("[\"plain\"], without S256")),
            (Some(&[]), false, Some("without S256")),
            (Some(&["s256"]), false, Some("without S256")),
        ] {
            let error = metadata(methods).check_pkce(assumed).err();
            assert_eq!(error.is_some(), why.is_some(), "{methods:?}");
            assert!(error.unwrap_or_default().contains(why.unwrap_or_default()), "{methods:?}");
        }
    }
}
