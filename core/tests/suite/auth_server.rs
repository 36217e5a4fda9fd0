//! A protected server, without sockets: who is let in, who is not and what they are told, and what belongs to whom.
#![cfg(feature = "auth")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod fixture;
mod oldest;
mod owners;
mod scopes;

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use fixture::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tricorn::http::HttpOptions;
use tricorn::model::Principal;
use tricorn::server::Auth;
use tricorn::{Error, ErrorKind, Server};

async fn listed(it: &Fixture, token: &str) -> Answer {
    it.ask(token, "tools/list", json!({})).await
}

#[tokio::test]
async fn without_a_token_nothing_goes() {
    let it = Fixture::new();
    let body = modern("tools/list", json!({})).to_string();
    let json_type = ("content-type", "application/json");
    for (verb, target, headers) in [
        ("POST", "/mcp", &[json_type][..]),
        ("POST", "/mcp", &[]),
        ("POST", "/mcp", &[json_type, ("authorization", "Basic YTpi")]),
        ("POST", "/mcp", &[json_type, ("authorization", "DPoP abc")]),
        ("GET", "/mcp", &[("accept", "text/event-stream"), ("mcp-session-id", "x")]),
        ("DELETE", "/mcp", &[("mcp-session-id", "x")]),
        // The oldest transport.
        ("GET", "/sse", &[("accept", "text/event-stream")]),
        ("POST", "/messages?session_id=x", &[json_type]),
        ("PUT", "/mcp", &[]),
    ] {
        let answer = it.send(verb, target, headers, body.clone()).await;
        assert_eq!(answer.status, 401, "{verb} {target} {headers:?}: {answer:?}");
        assert_eq!(answer.challenge("resource_metadata").as_deref(), Some(METADATA));
        assert_eq!((answer.challenge("scope").as_deref(), answer.challenge("error")), (Some("base"), None));
        assert!(answer.json["error"]["message"].is_string());
    }
    assert_eq!(it.authority.asked(), 0, "nobody is asked about nothing");
    // Before the token comes whether it is this server that is meant at all.
    let evil = [("origin", "https://evil.example.com")];
    assert_eq!(it.send("POST", "/mcp", &evil, body).await.status, 403);
}

#[tokio::test]
async fn what_is_no_request_for_this_server_is_malformed() {
    let it = Fixture::new();
    let good = it.token(&json!({}));
    let bearer = format!("Bearer {good}");
    let (good_header, twice) = (("authorization", bearer.as_str()), format!("{bearer}, {bearer}"));
    let by_query = format!("/mcp?access_token={good}");
    for (target, headers) in [
        (by_query.as_str(), &[][..]),
        (&by_query, &[good_header]),
        ("/mcp?x=1&access_token", &[good_header]),
        ("/mcp", &[good_header, good_header]),
        ("/mcp", &[good_header, ("authorization", "Basic YTpi")]),
        ("/mcp", &[("authorization", &twice)]),
        ("/mcp", &[("authorization", "Bearer")]),
        ("/mcp", &[("authorization", "Bearer a b")]),
    ] {
        let answer = it.send("POST", target, headers, String::new()).await;
        assert_eq!(answer.status, 400, "{target} {headers:?}: {answer:?}");
        assert_eq!(answer.challenge("error").as_deref(), Some("invalid_request"));
        assert!(!answer.text.contains(&good) && !answer.header("www-authenticate").unwrap().contains(&good));
    }
}

#[tokio::test]
async fn what_is_no_token_for_this_server_now_is_invalid() {
    let it = Fixture::new();
    let (key, other) = (it.authority.key(), Key::new("one"));
    let head = |alg: &str, kid: &str, typ: &str| json!({"alg": alg, "kid": kid, "typ": typ});
    let jwk = key.jwk().to_string();
    let good = it.token(&json!({}));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let flipped = format!("{}{}", if signature.starts_with('A') { 'B' } else { 'A' }, &signature[1..]);
    for (what, token) in [
        ("expired", it.token(&json!({"exp": now() - 61}))),
        ("never expires", it.token(&json!({"exp": null}))),
        ("of tomorrow", it.token(&json!({"nbf": now() + 3600}))),
        ("wrong audience", it.token(&json!({"aud": "https://other.example.com/mcp"}))),
        ("nearly the audience", it.token(&json!({"aud": "https://mcp.example.com/mcp/"}))),
        ("no audience", it.token(&json!({"aud": null}))),
        ("wrong issuer", it.token(&json!({"iss": "https://as.example.com"}))),
        ("alg none", format!("{}.", unsigned(&head("none", "one", "at+jwt"), &json!({})))),
        ("alg NONE", format!("{}.", unsigned(&head("NONE", "one", "at+jwt"), &json!({})))),
        ("HS256 with the public key", hs256("one", key.public())),
        ("HS256 with its JWK", hs256("one", jwk.as_bytes())),
        ("another alg", key.token_with(&head("RS256", "one", "at+jwt"), &json!({}))),
        ("wrong kid", key.token_with(&head("ES256", "two", "at+jwt"), &json!({}))),
        ("another key of that kid", other.token(&json!({}))),
        ("a key of its own", other.token_with(&json!({"alg": "ES256", "jwk": other.jwk(), "kid": "one"}), &json!({}))),
        ("another typ", key.token_with(&head("ES256", "one", "dpop+jwt"), &json!({}))),
        ("bound to a key", it.token(&json!({"cnf": {"jkt": "x"}}))),
        ("nobody's", it.token(&json!({"sub": null, "client_id": null}))),
        ("changed", format!("{signed}.{flipped}")),
        ("unsigned", format!("{signed}.")),
        ("opaque", "abcdef".into()),
        ("oversized", it.token(&json!({"x": "x".repeat(16 << 10)}))),
    ] {
        let answer = listed(&it, &token).await;
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
        assert_eq!(answer.challenge("error").as_deref(), Some("invalid_token"), "{what}");
        assert_eq!(answer.challenge("resource_metadata").as_deref(), Some(METADATA), "{what}");
        assert!(!answer.text.contains(&token) && !answer.header("www-authenticate").unwrap().contains(&token));
    }
    for (what, token) in [
        ("good", good),
        ("within the skew", it.token(&json!({"exp": now() - 30, "iat": now() + 30}))),
        ("of several audiences", it.token(&json!({"aud": ["https://other.example.com", RESOURCE]}))),
        ("without typ", key.token_with(&json!({"alg": "ES256", "kid": "one"}), &json!({}))),
        ("without kid", key.token_with(&json!({"alg": "ES256", "typ": "JWT"}), &json!({}))),
    ] {
        let answer = listed(&it, &token).await;
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
    }
    // The first one, and one for those that the set lacks: whatever is sent, the authorization server is left alone.
    assert_eq!(it.authority.asked(), 2);
}

#[tokio::test]
async fn a_new_key_is_found() {
    let it = Fixture::new();
    assert_eq!(listed(&it, &it.token(&json!({}))).await.status, 200);
    let (old, new) = (it.token(&json!({})), Key::new("two").into());
    *it.authority.keys.lock().unwrap() = vec![new];
    let fresh = it.token(&json!({}));
    let both = tokio::join!(listed(&it, &fresh), listed(&it, &fresh), listed(&it, &fresh));
    assert_eq!((both.0.status, both.1.status, both.2.status, it.authority.asked()), (200, 200, 200, 2));
    assert_eq!(listed(&it, &old).await.status, 401, "it was taken back");
    // Under the name of the former one, too; whatever is signed with none of them makes nobody ask again.
    let it = Fixture::new();
    assert_eq!(listed(&it, &it.token(&json!({}))).await.status, 200);
    *it.authority.keys.lock().unwrap() = vec![Key::new("one").into()];
    assert_eq!((listed(&it, &it.token(&json!({}))).await.status, it.authority.asked()), (200, 2));
    assert_eq!((listed(&it, &Key::new("one").token(&json!({}))).await.status, it.authority.asked()), (401, 2));
}

#[tokio::test]
async fn while_nobody_can_tell_it_is_unavailable() {
    for mode in [Mode::Down, Mode::Slow, Mode::Endless, Mode::Garbage, Mode::Lying] {
        let it = Fixture::with(mode, |auth| auth);
        let token = it.token(&json!({}));
        for _ in 0..3 {
            let answer = listed(&it, &token).await;
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{mode:?}: {answer:?}");
            assert!(answer.header("www-authenticate").is_none() && !answer.text.contains(&token), "{mode:?}");
        }
        let together: Vec<_> = (0..20).map(|_| listed(&it, &token)).collect();
        assert!(futures_util::future::join_all(together).await.iter().all(|answer| answer.status == 503));
        assert!(it.authority.asked() < 10, "{mode:?}: it is not asked again at once");
    }
    // Keys that are known are used meanwhile; what is signed with others nobody can tell.
    let it = Fixture::new();
    assert_eq!(listed(&it, &it.token(&json!({}))).await.status, 200);
    *it.authority.mode.lock().unwrap() = Mode::Down;
    let other = Key::new("two");
    assert_eq!(listed(&it, &other.token(&json!({}))).await.status, 503);
    assert_eq!(listed(&it, &it.token(&json!({}))).await.status, 200);
}

#[tokio::test]
async fn handlers_know_who_asks_and_not_by_which_token() {
    let it = Fixture::new();
    let token = it.token(&json!({"scope": "base mail", "tenant": "t1"}));
    let answer = it.ask(&token, "tools/call", json!({"name": "whoami", "arguments": {}})).await;
    let said: Value = serde_json::from_str(answer.json["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let facts = json!({"subject": "ada", "client": "app", "scopes": ["base", "mail"], "tenant": "t1"});
    assert_eq!(said["principal"], facts);
    assert!(!said["headers"].as_array().unwrap().contains(&json!("authorization")), "{said}");
    assert_eq!(said["context"]["principal"]["claims"]["tenant"], "t1");
    assert!(!said.to_string().contains(&token));
}

#[tokio::test]
async fn the_metadata_is_for_everybody() {
    let it = Fixture::with(Mode::Up, |auth| auth.resource_name("Notes").scopes_supported(["base", "mail"]));
    let document = json!({"resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["base", "mail"],
        "bearer_methods_supported": ["header"], "resource_name": "Notes"});
    for (path, headers) in [
        ("/.well-known/oauth-protected-resource/mcp", &[][..]),
        ("/.well-known/oauth-protected-resource", &[]),
        ("/.well-known/oauth-protected-resource/mcp", &[("origin", "https://evil.example.com")]),
    ] {
        let answer = it.send("GET", path, headers, String::new()).await;
        assert_eq!((answer.status, &answer.json), (200, &document), "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let head = it.send("HEAD", path, headers, String::new()).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}: {head:?}");
        assert_eq!(head.header("content-type"), Some("application/json"));
        assert_eq!(head.header("content-length"), Some(answer.text.len().to_string().as_str()));
    }
    let well_known = "/.well-known/oauth-protected-resource/mcp";
    let asked = [
        ("origin", "https://evil.example.com"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "mcp-protocol-version"),
    ];
    let answer = it.send("OPTIONS", well_known, &asked, String::new()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("*")));
    assert_eq!(answer.header("access-control-allow-headers"), Some("mcp-protocol-version"));
    assert_eq!(it.send("POST", well_known, &[], String::new()).await.status, 405);
    let other = "/.well-known/oauth-protected-resource/other";
    assert_eq!(it.send("GET", other, &[], String::new()).await.status, 401);
    let published = it.endpoint.resource_metadata().unwrap();
    assert_eq!(published.path, well_known);
    assert_eq!(serde_json::from_str::<Value>(&published.text).unwrap(), document);
    let open = Server::new("open").endpoint(HttpOptions::default()).unwrap();
    assert_eq!(open.resource_metadata(), None);
}

#[tokio::test]
async fn pages_that_may_use_the_server_may_ask_and_read_the_challenge() {
    let it = Fixture::new();
    let page = ("origin", "https://app.example.com");
    let preflight = [page, ("access-control-request-method", "POST")];
    assert_eq!(it.send("OPTIONS", "/mcp", &preflight, String::new()).await.status, 204);
    let answer = it.post(None, &[page], &modern("tools/list", json!({}))).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("access-control-allow-origin"), Some(page.1));
    assert_eq!(answer.header("access-control-expose-headers"), Some("Mcp-Session-Id, WWW-Authenticate"));
}

#[tokio::test]
async fn an_opaque_token_is_asked_about() {
    let authority = Authority::new(Mode::Up);
    let auth = Auth::introspection("https://as.example.com/introspect", "me", "a secret");
    let it = Fixture::of(authority.clone(), auth.resource(RESOURCE).authority());
    assert_eq!(listed(&it, "bad").await.status, 401);
    assert_eq!(listed(&it, "good").await.status, 200);
    assert_eq!(listed(&it, "good").await.status, 200);
    let asked = authority.introspected.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "what was good a moment ago still is");
    let (credentials, body) = &asked[1];
    assert_eq!(
        (credentials.as_str(), body.as_str()),
        ("Basic bWU6YStzZWNyZXQ=", "token=good&token_type_hint=access_token")
    );
    *authority.mode.lock().unwrap() = Mode::Down;
    assert_eq!(listed(&it, "other").await.status, 503);
    assert_eq!(listed(&it, "good").await.status, 200);
    // Whoever it is good for, it is for one audience.
    let auth = Auth::introspection("https://as.example.com/introspect", "me", "a secret");
    let elsewhere = Fixture::of(Authority::new(Mode::Up), auth.resource("https://mcp.example.com/other").authority());
    assert_eq!(listed(&elsewhere, "good").await.status, 401);
}

trait Listed {
    fn authority(self) -> Self;
}

impl Listed for Auth {
    fn authority(self) -> Self {
        self.authorization_servers([ISSUER])
    }
}

#[tokio::test]
async fn a_function_may_have_the_word() {
    let verify = |token: String| async move {
        let refused = |kind| Err(Error::new(kind, format!("{token} is bad")));
        match token.as_str() {
            "ada" => Ok(Principal::new("ada").scopes(["base"]).expires_at(SystemTime::now() + Duration::from_secs(60))),
            "old" => {
                Ok(Principal::new("ada").scopes(["base"]).expires_at(SystemTime::now() - Duration::from_secs(600)))
            }
            "small" => Ok(Principal::new("ada")),
            "panics" => panic!("a secret"),
            "hangs" => std::future::pending().await,
            "later" => refused(ErrorKind::Transport),
            _ => refused(ErrorKind::Auth),
        }
    };
    let auth = Auth::verifier(verify).resource(RESOURCE).authority().required_scopes(["base"]);
    let it = Fixture::of(Authority::new(Mode::Up), auth.timeout(Duration::from_millis(50)));
    for (token, status) in
        [("ada", 200), ("old", 401), ("bad", 401), ("small", 403), ("later", 503), ("hangs", 503), ("panics", 503)]
    {
        let answer = listed(&it, token).await;
        assert_eq!(answer.status, status, "{token}: {answer:?}");
        assert!(!answer.text.contains("is bad"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_server_on_the_loopback_interface_knows_its_own_url() {
    let authority = Authority::new(Mode::Up);
    let server = Server::new("local").auth(authority.fetched_by(Auth::issuer(ISSUER)));
    let refused = server.endpoint(HttpOptions::default()).unwrap_err();
    assert!(refused.message().contains("\"resource\": missing"), "{refused}");
    let anywhere = HttpOptions::new().port(0).allowed_hosts(["*"]);
    assert!(server.serve_http(anywhere).await.is_err(), "anybody could say what it is called");
    let serving = server.serve_http(HttpOptions::new().port(0)).await.unwrap();
    let address = serving.local_addr().unwrap();
    let exchange = async |head: String| {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        text
    };
    for name in ["localhost", "127.0.0.1"] {
        let (host, port) = (format!("{name}:{}", address.port()), address.port());
        let own = format!("http://{name}:{port}/mcp");
        let path = "/.well-known/oauth-protected-resource/mcp";
        let text = exchange(format!("GET {path} HTTP/1.1\r\nHost: {host}")).await;
        assert!(text.contains(&format!("\"resource\":\"{own}\"")), "{text}");
        let text = exchange(format!("DELETE /mcp HTTP/1.1\r\nHost: {host}")).await;
        assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
        assert!(text.contains(&format!("resource_metadata=\"http://{host}{path}\"")), "{text}");
        let mine = authority.key().token(&json!({"aud": own}));
        let text = exchange(format!("DELETE /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {mine}")).await;
        assert!(text.starts_with("HTTP/1.1 400 ") && text.contains("Mcp-Session-Id"), "let in: {text}");
        let other = authority.key().token(&json!({"aud": RESOURCE}));
        let text = exchange(format!("DELETE /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {other}")).await;
        assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
    }
    assert_eq!(authority.asked.load(Ordering::SeqCst), 1);
    server.close();
    serving.join().await;
}
