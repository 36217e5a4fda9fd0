//! RFC 8693, OAuth 2.0 Token Exchange, as the enterprise-managed authorization has it: an identity provider gives an
//! Identity Assertion JWT Authorization Grant (ID-JAG) for what it has said of the user.

use serde_json::Value;

use super::client::Identity;
use super::fetch::{Fetch, Fetched};
use super::refusal::{Refusal, refusal_of};
use super::registration::{Client, KnownBy};
use super::token::{self, Method};

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Asks the identity provider for an ID-JAG that is good at `audience`, an issuer, for `resource`.
pub(crate) fn request(
    identity: &Identity,
    subject: &str,
    audience: &str,
    resource: Option<&str>,
    scope: &str,
) -> Fetch {
    let mut pairs = vec![
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("audience", audience),
        ("subject_token", subject),
        ("subject_token_type", identity.subject_token_type()),
    ];
    pairs.extend(resource.map(|resource| ("resource", resource)));
    pairs.extend((!scope.is_empty()).then_some(("scope", scope)));
    let client = Client {
        client_id: identity.client_id.clone(),
        client_secret: identity.client_secret.clone(),
        client_secret_expires_at: None,
        token_endpoint_auth_method: None,
        redirect_uri: None,
        known_by: KnownBy::Preregistration,
    };
    let method = if client.client_secret.is_some() { Method::Basic } else { Method::None };
    let mut fetch = token::request(&identity.token_endpoint, pairs, &client, method, None, None);
    if let (Method::Basic, Some((_, form))) = (method, &mut fetch.body) {
        // The draft names the client in the request, too.
        form.push('&');
        form.push_str(&super::url::form([("client_id", &*identity.client_id)]));
    }
    fetch
}

/// The assertion in the identity provider's answer, §2.2.
///
/// # Errors
/// Its refusal.
pub(crate) fn answer(fetched: &Fetched) -> Result<String, Refusal> {
    let refusal = refusal_of(fetched);
    if !(200..300).contains(&fetched.status) || refusal.error.is_some() {
        return Err(refusal);
    }
    let body: Value = serde_json::from_slice(&fetched.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("access_token"), text("issued_token_type")) {
        (Some(assertion), Some(ID_JAG)) => Ok(assertion.to_owned()),
        _ => Err(Refusal { error: Some("no ID-JAG in the answer".into()), ..refusal }),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn an_assertion_is_asked_for() {
        let identity = Identity::new("https://idp/token", "me", "token");
        let fetch = request(&identity, "x.y.z", "https://as", Some("https://h/mcp"), "a b");
        assert_eq!(
            fetch.body.expect("a form").1,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
             &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag&audience=https%3A%2F%2Fas\
             &subject_token=x.y.z&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token\
             &resource=https%3A%2F%2Fh%2Fmcp&scope=a+b&client_id=me"
        );
    }

    #[test]
    fn only_an_id_jag_will_do() {
        for (status, body, expected) in [
            (
                200,
                r#"{"access_token":"j","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}"#,
                Ok("j"),
            ),
            (
                200,
                r#"{"access_token":"j","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}"#,
                Err("no ID-JAG"),
            ),
            (200, "x", Err("no ID-JAG")),
            (400, r#"{"error":"invalid_grant"}"#, Err("invalid_grant")),
        ] {
            let fetched = Fetched { status, headers: Vec::new(), body: Bytes::from_static(body.as_bytes()) };
            match (answer(&fetched), expected) {
                (Ok(assertion), Ok(expected)) => assert_eq!(assertion, expected),
                (Err(refusal), Err(expected)) => assert!(refusal.to_string().contains(expected), "{refusal}"),
                (outcome, _) => panic!("{outcome:?}"),
            }
        }
    }
}
