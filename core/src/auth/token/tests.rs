use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::auth::registration::KnownBy;

fn client(secret: Option<&str>, agreed: Option<&str>) -> Client {
    Client {
        client_id: "i d".into(),
        client_secret: secret.map(str::to_owned),
        client_secret_expires_at: None,
        token_endpoint_auth_method: agreed.map(str::to_owned),
        redirect_uri: None,
        known_by: KnownBy::Registration,
    }
}

#[test]
fn the_method_is_one_that_the_server_lists() {
    for (secret, agreed, key, listed, expected) in [
        (Some("s"), None, false, None, Ok(Method::Basic)),
        (Some("s"), None, false, Some(&["client_secret_post", "client_secret_basic"][..]), Ok(Method::Basic)),
        (Some("s"), None, false, Some(&["client_secret_post"]), Ok(Method::Post)),
        (Some("s"), None, false, Some(&["none"]), Ok(Method::None)),
        (Some("s"), None, false, Some(&["tls_client_auth"]), Err("by client_secret_basic or client_secret_post")),
        (Some("s"), Some("client_secret_post"), false, Some(&["client_secret_basic"]), Ok(Method::Post)),
        (Some("s"), Some("none"), false, None, Ok(Method::None)),
        (Some("s"), Some("unknown"), false, None, Ok(Method::Basic)),
        (None, Some("client_secret_basic"), false, None, Ok(Method::None)),
        (None, None, false, Some(&["client_secret_basic"]), Ok(Method::None)),
        (None, None, true, Some(&["private_key_jwt"]), Ok(Method::PrivateKeyJwt)),
        (None, None, true, None, Ok(Method::PrivateKeyJwt)),
        (None, None, true, Some(&["client_secret_basic"]), Err("without private_key_jwt")),
    ] {
        let listed: Option<Vec<String>> = listed.map(|all| all.iter().map(|m| (*m).to_owned()).collect());
        match (Method::choose(&client(secret, agreed), key, listed.as_deref()), expected) {
            (Ok(method), Ok(expected)) => assert_eq!(method, expected, "{listed:?}"),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (outcome, expected) => panic!("{outcome:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn the_client_proves_itself() {
    let sent = |method, assertion| {
        let client = client(Some("s:&"), None);
        let pairs = vec![("grant_type", "refresh_token"), ("refresh_token", "r&")];
        let fetch = request("https://as/token", pairs, &client, method, assertion, None);
        let shown = format!("{fetch:?}");
        assert_eq!(shown, "Fetch(POST https://as/token)");
        let header = fetch.headers.iter().find(|(name, _)| *name == "authorization").map(|(_, value)| value.clone());
        (fetch.body.expect("a form").1, header)
    };
    let grant = "grant_type=refresh_token&refresh_token=r%26";
    assert_eq!(sent(Method::None, None), (format!("{grant}&client_id=i+d"), None));
    assert_eq!(sent(Method::Post, None), (format!("{grant}&client_id=i+d&client_secret=s%3A%26"), None));
    let basic = format!("Basic {}", STANDARD.encode("i+d:s%3A%26"));
    assert_eq!(sent(Method::Basic, None), (grant.to_owned(), Some(basic)));
    let (form, header) = sent(Method::PrivateKeyJwt, Some("a.b.c"));
    assert!(form.ends_with("client-assertion-type%3Ajwt-bearer&client_assertion=a.b.c") && header.is_none(), "{form}");
}

fn fetched(status: u16, body: &str) -> Fetched {
    Fetched { status, headers: Vec::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

#[test]
fn tokens_are_read_as_servers_write_them() {
    for (body, expires_at, renew_at) in [
        (json!({"access_token": "t", "token_type": "bearer", "expires_in": 3600}), Some(4600), Some(4570)),
        (json!({"access_token": "t", "token_type": "Bearer", "expires_in": "100"}), Some(1100), Some(1090)),
        (json!({"access_token": "t", "expires_in": 5.5}), Some(1005), Some(1005)),
        (json!({"access_token": "t", "expires_in": -1}), None, None),
        (json!({"access_token": "t", "expires_in": null}), None, None),
        (json!({"access_token": "t", "expires_in": 0}), Some(1000), Some(1000)),
    ] {
        let token = answer(&fetched(200, &body.to_string()), 1000).expect("a token");
        assert_eq!((token.expires_at, token.renew_at), (expires_at, renew_at), "{body}");
        assert_eq!(token.token_type, TokenType::Bearer);
    }
    let body =
        json!({"access_token": "t", "token_type": "DPoP", "refresh_token": "r", "scope": "a b", "expires_in": 60});
    let token = answer(&fetched(200, &body.to_string()), 0).expect("a token");
    assert_eq!((token.token_type, token.scope.as_deref()), (TokenType::Dpop, Some("a b")));
    assert!(!token.is_stale(53) && token.is_stale(54));
    assert!(!format!("{token:?}").contains("\"t\""));
}

#[test]
fn refusals_say_what_they_are() {
    for (status, body, shown, transient) in [
        (400, r#"{"error":"invalid_grant"}"#, r#"HTTP 400 "invalid_grant""#, false),
        (400, r#"{"error":"x","error_description":"a\nb"}"#, r#"HTTP 400 "x": "a\nb""#, false),
        (200, r#"{"error":"bad_verification_code"}"#, r#"HTTP 200 "bad_verification_code""#, false),
        (503, "<html>", "HTTP 503", true),
        (429, "", "HTTP 429", true),
        (400, r#"{"error":"temporarily_unavailable"}"#, r#"HTTP 400 "temporarily_unavailable""#, true),
        (200, "access_token=x", r#"HTTP 200: "the answer is no JSON, and so no token""#, false),
        (403, "<html>", "HTTP 403", false),
        (200, r#"{"token_type":"Bearer"}"#, r#"HTTP 200: "the answer has no access_token""#, false),
        (
            200,
            r#"{"access_token":"t","token_type":"mac"}"#,
            r#"HTTP 200: "the token_type is neither Bearer nor DPoP""#,
            false,
        ),
        (
            200,
            "{\"access_token\":\"t\\r\\nx: y\"}",
            r#"HTTP 200: "the access_token has characters that no header can carry""#,
            false,
        ),
    ] {
        let refusal = answer(&fetched(status, body), 0).expect_err(body);
        assert_eq!((refusal.to_string().as_str(), refusal.is_transient()), (shown, transient));
    }
}

#[test]
fn what_a_refusal_repeats_of_what_is_secret_is_not_shown() {
    let body = json!({"error": "invalid_request", "error_description": "no token secret-refresh-token, or secret-r"});
    let refusal = answer(&fetched(400, &body.to_string()), 0).expect_err("refused").without(["secret-refresh-token"]);
    let shown = refusal.to_string();
    assert!(shown.starts_with("HTTP 400 \"invalid_request\"") && !shown.contains("secret-refresh"), "{shown}");
    // A secret that is cut off is hidden, too; a short text is in too many words.
    let body = json!({"error": "invalid_request", "error_description": "bad secret-ref"});
    let refusal =
        answer(&fetched(400, &body.to_string()), 0).expect_err("refused").without(["secret-refresh-token", "bad"]);
    assert_eq!(refusal.to_string(), "HTTP 400 \"invalid_request\": \"bad …\"");
}
