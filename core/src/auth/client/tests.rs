use super::*;

#[test]
fn what_is_missing_is_named() {
    let jag =
        |token: Option<&str>| Identity { token: token.map(str::to_owned), ..Identity::new("https://idp/t", "i", "") };
    for (auth, why) in [
        (Auth::new(), None),
        (Auth::client_credentials("c", "s"), None),
        (Auth::private_key_jwt("c", "pem", "ES256"), None),
        (Auth::bearer("t"), None),
        (Auth::workload("c", |_| async { Ok("j".to_owned()) }), None),
        (Auth::identity_assertion(jag(Some("t"))).client_id("c"), None),
        (Auth::new().grant(Grant::ClientCredentials), Some("\"client_id\": this grant needs one")),
        (Auth::new().grant(Grant::ClientCredentials).client_id("c"), Some("\"client_secret\"")),
        (Auth::new().grant(Grant::JwtBearer).client_id("c"), Some("\"assertion\"")),
        (Auth::new().grant(Grant::IdJag).client_id("c"), Some("\"identity\"")),
        (Auth::identity_assertion(jag(None)).client_id("c"), Some("expected its token")),
        (Auth::new().client_secret("s"), Some("belongs to a client_id")),
        (Auth::new().client_metadata_url("https://h"), Some("with a path")),
        (Auth::new().application_type("app"), Some("\"native\" or \"web\"")),
        (Auth::new().issuer("http://as"), Some("\"issuer\"")),
        (Auth::private_key_jwt("c", "pem", "HS256"), Some("\"signing_algorithm\"")),
        (Auth::bearer("a b"), Some("\"token\"")),
        (Auth { login_timeout: -1.0, ..Auth::new() }, Some("login_timeout")),
    ] {
        let error = auth.check().err().map(|error| error.message().to_owned());
        assert_eq!(error.is_some(), why.is_some(), "{auth:?}: {error:?}");
        assert!(error.unwrap_or_default().contains(why.unwrap_or_default()), "{auth:?}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let identity = Identity { client_secret: Some("hidden".into()), ..Identity::new("https://idp/t", "i", "hidden") };
    let auth = Auth::client_credentials("c", "hidden").private_key("hidden").token("hidden");
    let auth = Auth { identity: Some(identity), assertion: Some("hidden".into()), ..auth };
    assert!(!format!("{auth:?}").contains("hidden"));
}

#[test]
fn it_is_read_from_json() {
    let text = r#"{"client_id":"c","scopes":["a"],"identity":{"token_endpoint":"https://idp/t","client_id":"i"}}"#;
    let auth: Auth = serde_json::from_str(text).expect("options");
    assert_eq!((auth.client_id.as_deref(), auth.granted()), (Some("c"), Grant::IdJag));
    assert!(serde_json::from_str::<Auth>(r#"{"client":"c"}"#).is_err());
}
