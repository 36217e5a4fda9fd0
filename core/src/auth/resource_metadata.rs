//! RFC 9728, OAuth 2.0 Protected Resource Metadata: a server's account of its authorization servers.

use serde::{Deserialize, Serialize};

use super::fetch::odd;
use super::url::Parts;
use crate::model::or_default;

/// A protected resource's metadata, RFC 9728 §2. Members that it does not name are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource's identifier: the URL that tokens are asked for.
    pub resource: String,
    /// The issuers of the authorization servers whose tokens it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub authorization_servers: Vec<String>,
    /// The scopes that are needed for the basics.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub scopes_supported: Option<Vec<String>>,
    /// Ways in which a token may come: `header`, and never `query` here.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub resource_name: Option<String>,
    /// Page where developers can read about it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub resource_documentation: Option<String>,
    /// Address of its own keys.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub jwks_uri: Option<String>,
    /// The algorithms of DPoP proofs that it takes (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// True if it takes only tokens that are bound to a key by DPoP (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "odd")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

impl ResourceMetadata {
    /// The metadata of this resource, whose tokens these issuers give.
    pub fn new(
        resource: impl Into<String>,
        authorization_servers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let authorization_servers = authorization_servers.into_iter().map(Into::into).collect();
        Self { resource: resource.into(), authorization_servers, ..Self::default() }
    }
}

/// Returns the possible addresses of the metadata of the resource at `url`, best first: §3.1 with its path, and at the
/// root of its origin.
pub(crate) fn well_known(url: &str) -> Vec<String> {
    let Some(parts) = Parts::of(url) else { return Vec::new() };
    let root = format!("{}/.well-known/oauth-protected-resource", parts.origin());
    match parts.rest() {
        rest if rest.is_empty() => vec![root],
        rest => vec![format!("{root}{rest}"), root],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_comes_after_the_well_known_part() {
        let root = "https://h/.well-known/oauth-protected-resource";
        for (url, expected) in [
            ("https://h/mcp", vec![format!("{root}/mcp"), root.into()]),
            ("https://u:p@h/a/mcp/?x=1#f", vec![format!("{root}/a/mcp/?x=1"), root.into()]),
            ("https://h/", vec![root.into()]),
            ("https://h", vec![root.into()]),
            ("no url", vec![]),
        ] {
            assert_eq!(well_known(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        let text = r#"{"resource":"https://h/","authorization_servers":["https://as"],"tls_client_certificate_bound_access_tokens":false,"x":{}}"#;
        let metadata: ResourceMetadata = serde_json::from_str(text).expect("metadata");
        assert_eq!(metadata, ResourceMetadata::new("https://h/", ["https://as"]));
        let written = serde_json::to_string(&metadata).expect("text");
        assert_eq!(written, r#"{"resource":"https://h/","authorization_servers":["https://as"]}"#);
        assert!(serde_json::from_str::<ResourceMetadata>("{}").is_err());
        let odd = r#"{"resource":"https://h/","authorization_servers":["https://as"],"scopes_supported":"a b","resource_name":{},
            "bearer_methods_supported":["header",null],"dpop_bound_access_tokens_required":"true"}"#;
        let metadata: ResourceMetadata = serde_json::from_str(odd).expect("metadata");
        let mut expected = ResourceMetadata::new("https://h/", ["https://as"]);
        expected.bearer_methods_supported = Some(vec!["header".into()]);
        assert_eq!(metadata, expected);
    }
}
