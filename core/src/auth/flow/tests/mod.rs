mod kept;
mod ladder;
mod recorded;
mod refused;
mod registered;
mod traced;
mod warned;
mod world;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use world::*;

use super::*;
use crate::auth::client::{Grant, Identity};
use crate::auth::registration::KnownBy;
use crate::auth::token::TokenType;

#[test]
fn everything_is_discovered() {
    let mut world = World::usual();
    let (outcome, mut flow) = world.run(challenged(&format!("Bearer resource_metadata=\"{PRM}\"")));
    let session = outcome.expect("a session");
    assert_eq!((token_of(&session), session.client.client_id.as_str()), ("new", "registered"));
    assert_eq!((session.resource.as_deref(), session.issuer.as_str()), (Some(SERVER), "https://as"));
    assert_eq!(world.asked_for("resource").as_deref(), Some(SERVER));
    assert_eq!(world.asked_for("scope"), None);
    let form = world.last().to_owned();
    assert!(form.contains("grant_type=authorization_code&code=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback"));
    assert!(form.contains("&code_verifier=") && form.ends_with("&resource=https%3A%2F%2Fh%2Fmcp&client_id=registered"));
    let trace = flow.take_trace();
    let steps: Vec<_> = trace.iter().map(|step| (step.step, step.status)).collect();
    let expected = [
        ("challenge", Some(401)),
        ("resource metadata", Some(200)),
        ("authorization server metadata", Some(200)),
        ("what is kept", None),
        ("registration", Some(201)),
        ("login in the browser", None),
        ("token", Some(200)),
    ];
    assert_eq!(steps, expected);
    let shown = serde_json::to_string(&trace).expect("JSON");
    assert!(!shown.contains("state=") && !shown.contains("challenge=") && !shown.contains("\"new\""), "{shown}");
}

#[test]
fn metadata_is_looked_for_in_order() {
    let with_path = "https://as/t";
    let prm = |issuer: &str| json!({"resource": "https://h", "authorization_servers": [issuer]});
    let document = |issuer: &str| {
        let mut document = metadata("https://as");
        document["issuer"] = issuer.into();
        document
    };
    let tenant = [
        "https://as/.well-known/oauth-authorization-server/t",
        "https://as/.well-known/openid-configuration/t",
        "https://as/t/.well-known/openid-configuration",
    ];
    let custom = "https://h/custom/metadata.json";
    for (named, at, issuer, found, asked) in [
        // The header's place, and no other.
        (Some(PRM), PRM, "https://as", AS, vec![PRM, AS]),
        (None, PRM, "https://as", AS, vec![PRM, AS]),
        (None, ROOT_PRM, with_path, tenant[0], vec![PRM, ROOT_PRM, tenant[0]]),
        (Some(custom), custom, with_path, tenant[2], vec![custom, tenant[0], tenant[1], tenant[2]]),
        // The header leads nowhere, and the well-known place does.
        (Some(custom), PRM, with_path, tenant[1], vec![custom, PRM, tenant[0], tenant[1]]),
    ] {
        let mut world = World::usual().with(found, 200, document(issuer));
        world.answers.remove(PRM);
        world = world.with(at, 200, prm(issuer));
        let header = named.map(|named| format!("Bearer realm=\"x\", resource_metadata=\"{named}\""));
        let lines: Vec<&str> = ["Negotiate abc=="].into_iter().chain(header.as_deref()).collect();
        let (outcome, _) = world.run(given(Auth::new(), &lines));
        let session = outcome.expect("a session");
        assert_eq!((session.issuer.as_str(), session.resource.as_deref()), (issuer, Some("https://h")));
        let documents: Vec<_> = world.asked.iter().filter_map(|line| line.strip_prefix("GET ")).collect();
        assert_eq!(documents, asked);
    }
}

#[test]
fn the_origin_is_the_authorization_server_of_2025_03_26() {
    let known = "https://h/.well-known/oauth-authorization-server";
    let oauth = json!({
        "issuer": "https://h/", "authorization_endpoint": "https://h/oauth/authorize",
        "token_endpoint": "https://h/oauth/token", "registration_endpoint": "https://h/oauth/register",
        "code_challenge_methods_supported": ["S256"],
    });
    for (published, prefix) in [(Some(oauth), "https://h/oauth"), (None, "https://h")] {
        let mut world = World::new().with(&format!("{prefix}/register"), 200, json!({"client_id": "me"})).with(
            &format!("{prefix}/token"),
            200,
            json!({"access_token": "t"}),
        );
        if let Some(published) = published {
            world = world.with(known, 200, published);
        }
        let (outcome, _) = world.run(challenged("Bearer"));
        let session = outcome.expect("a session");
        // Never under the issuer that the document names: it could be somebody else's.
        assert_eq!((session.issuer.as_str(), session.resource.as_deref()), ("https://h", None));
        assert_eq!(world.asked_for("resource"), None);
        assert!(world.opened[0].starts_with(&format!("{prefix}/authorize?")), "{:?}", world.opened);
    }
}

#[test]
fn what_fails_says_where_and_why() {
    let usual = World::usual;
    let no_pkce = || {
        let mut document = metadata("https://as");
        document.as_object_mut().expect("an object").remove("code_challenge_methods_supported");
        document
    };
    let named = format!("Bearer resource_metadata=\"{PRM}\"");
    for (world, callback, why) in [
        (
            usual().with(
                PRM,
                200,
                json!({"resource": "https://evil.example.com/mcp", "authorization_servers": ["https://as"]}),
            ),
            "",
            "it is about the resource \"https://evil.example.com/mcp\"",
        ),
        (usual().with(PRM, 503, json!(null)), "", "/mcp\": HTTP 503"),
        (usual().with(PRM, 0, json!(null)), "", "no connection"),
        (usual().with(PRM, 404, json!(null)), "", "the server names its metadata, but there is none"),
        (
            usual().with(PRM, 200, json!({"resource": SERVER, "authorization_servers": ["http://as"]})),
            "",
            "its authorization server is \"http://as\", expected an https URL",
        ),
        (usual().with(AS, 404, json!(null)), "", "at \"https://as\": there is none to be used"),
        (
            usual().with(AS, 200, metadata("https://attacker.example.com")),
            "",
            "its issuer is \"https://attacker.example.com\", expected \"https://as\"",
        ),
        (
            usual().with(AS, 200, no_pkce()),
            "",
            "the authorization server at \"https://as\" lists no code_challenge_methods_supported; it cannot be used with PKCE S256",
        ),
        (
            usual().with("https://as/register", 400, json!({"error": "invalid_redirect_uri"})),
            "",
            "the registration at \"https://as/register\": HTTP 400 \"invalid_redirect_uri\"",
        ),
        (usual(), "code=c&iss=https%3A%2F%2Fevil", "it names the issuer \"https://evil\""),
        (usual(), "error=access_denied", "the user said no"),
        (
            usual().with("https://as/token", 400, json!({"error": "invalid_client"})),
            "code=c",
            "the token endpoint at \"https://as/token\": HTTP 400 \"invalid_client\"",
        ),
        (
            usual().with("https://as/token", 200, json!({"access_token": "t", "token_type": "DPoP"})),
            "code=c",
            "a DPoP token that was not asked for",
        ),
    ] {
        let mut world = World { callback: callback.into(), ..world };
        let (outcome, _) = world.run(challenged(&named));
        let error = outcome.expect_err(why);
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(error.message().starts_with("authorization: ") && error.message().contains(why), "{error}\n{why}");
    }
    let mut world = World { callback: "code=c&iss=https%3A%2F%2Fas%2Ft".into(), ..World::usual() };
    assert!(world.run(challenged(&named)).0.is_err());
    assert!(!world.asked.iter().any(|line| line.contains("/token")), "{:?}", world.asked);
}

#[test]
fn scopes_are_what_the_challenge_wants_and_what_was_there() {
    let listed = |scopes: Value| json!({"resource": SERVER, "authorization_servers": ["https://as"], "scopes_supported": scopes});
    let offline = || {
        let mut document = metadata("https://as");
        document["scopes_supported"] = json!(["offline_access", "a"]);
        document
    };
    for (world, auth, challenge, steps_up, expected) in [
        (
            World::usual().with(PRM, 200, listed(json!(["x", "y"]))),
            Auth::new(),
            "Bearer scope=\"a b\"",
            false,
            Some("a b"),
        ),
        (World::usual().with(PRM, 200, listed(json!(["x", "y"]))), Auth::new(), "Bearer", false, Some("x y")),
        (World::usual(), Auth::new(), "Bearer", false, None),
        (World::usual(), Auth::new().scopes(["own"]), "Bearer scope=\"a\"", false, Some("own a")),
        (World::usual(), Auth::new(), "Bearer error=\"insufficient_scope\", scope=\"w\"", true, Some("a w")),
        (World::usual().with(AS, 200, offline()), Auth::new(), "Bearer scope=\"a\"", false, Some("a offline_access")),
        (World::usual().with(AS, 200, offline()), Auth::new(), "Bearer", false, None),
    ] {
        let mut world = world;
        world.kept = steps_up.then(|| session("https://as", Some("r")));
        let given = Given { steps_up, stored: world.kept.clone(), ..given(auth, &[challenge]) };
        world.run(given).0.expect("a session");
        assert_eq!(world.asked_for("scope").as_deref(), expected, "{challenge}");
        let consent = expected.is_some_and(|scope| scope.contains("offline"));
        assert_eq!(world.asked_for("prompt").is_some(), consent);
    }
}

#[test]
fn a_refresh_needs_no_discovery() {
    let mut world = World::usual();
    world.kept = Some(session("https://as", Some("r1")));
    let given = Given { stored: world.kept.clone(), used: Some("old-token".into()), ..given(Auth::new(), &[]) };
    let (outcome, _) = world.run(given);
    let session = outcome.expect("a session");
    assert_eq!(token_of(&session), "new");
    assert_eq!(session.refresh_token(), Some("r2"));
    let form = "grant_type=refresh_token&refresh_token=r1&resource=https%3A%2F%2Fh%2Fmcp&client_id=old";
    assert_eq!(world.asked, ["LOAD https://as".to_owned(), format!("POST https://as/token {form}")]);
}

#[test]
fn a_refresh_token_is_dropped_only_when_it_is_refused() {
    for (status, body, kept) in [
        (0, json!(null), true),
        (503, json!({"error": "invalid_grant"}), true),
        (429, json!(null), true),
        (400, json!({"error": "temporarily_unavailable"}), true),
        (400, json!({"error": "invalid_grant"}), false),
    ] {
        for ahead in [true, false] {
            let mut world = World::usual();
            world.kept = Some(session("https://as", Some("r1")));
            world.answers.insert("https://as/token".into(), VecDeque::new());
            let world = world.then("https://as/token", status, &[], body.clone());
            let mut world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
            let challenges: &[&str] = if ahead { &[] } else { &["Bearer error=\"invalid_token\""] };
            let stored = world.kept.clone();
            let (outcome, mut flow) =
                world.run(Given { stored, used: Some("old-token".into()), ..given(Auth::new(), challenges) });
            let notes = flow.take_notes();
            if kept {
                let error = outcome.expect_err("no token");
                assert!(error.message().contains("the refresh token is kept: try again later"), "{error}");
                assert_eq!((world.opened.len(), notes.len()), (0, 0));
            } else if ahead {
                // Nobody has asked the user for anything: the server speaks first.
                let error = outcome.expect_err("no token");
                assert!(error.message().contains("invalid_grant"), "{error}");
                assert_eq!((world.opened.len(), notes.len()), (0, 1));
            } else {
                let session = outcome.expect("a session");
                // The registration is good still.
                assert_eq!((token_of(&session), session.client.client_id.as_str()), ("new", "old"));
                assert_eq!(session.refresh_token(), None);
                assert_eq!(world.opened.len(), 1);
                assert!(
                    notes[0]
                        .contains("the refresh token was refused at \"https://as/token\" (HTTP 400 \"invalid_grant\")")
                );
                let refreshes = world.asked.iter().filter(|line| line.contains("grant_type=refresh_token")).count();
                assert_eq!(refreshes, 1, "{:?}", world.asked);
            }
        }
    }
}

#[test]
fn what_another_process_has_got_is_used() {
    let mut world = World::usual();
    let mut newer = session("https://as", Some("r9"));
    newer.token.as_mut().expect("a token").access_token = "newer".into();
    world.kept = Some(newer);
    let stored = Some(session("https://as", Some("r1")));
    let (outcome, _) = world.run(Given { stored, used: Some("old-token".into()), ..given(Auth::new(), &[]) });
    assert_eq!(token_of(&outcome.expect("a session")), "newer");
    assert_eq!(world.asked, ["LOAD https://as"]);
}

#[test]
fn another_authorization_server_sees_nothing_of_the_former() {
    let mut world = World::usual();
    // With a dot, which no random state or verifier has.
    let former = session("https://former", Some("former.refresh"));
    let (outcome, mut flow) =
        world.run(Given { stored: Some(former), ..given(Auth::new(), &["Bearer error=\"invalid_token\""]) });
    assert_eq!(outcome.expect("a session").client.client_id, "registered");
    let mut said = world.asked.iter().chain(&world.opened);
    assert!(!said.any(|line| line.contains("client_id=old") || line.contains("former.refresh")));
    assert!(flow.take_notes()[0].contains("from \"https://former\" to \"https://as\""));
    // A client that was registered by hand is one server's.
    let mut former = session("https://former", None);
    former.client.known_by = KnownBy::Preregistration;
    let mut world = World::usual();
    let auth = Auth::new().client_id("old");
    let error = world.run(Given { stored: Some(former), ..given(auth, &["Bearer"]) }).0.expect_err("another server");
    assert!(error.message().contains("client_id \"old\" belongs to the former"), "{error}");
}

#[test]
fn grants_without_a_user() {
    let identity = Identity { client_secret: None, ..Identity::new("https://idp/token", "at-idp", "id-token") };
    let jag = json!({"access_token": "jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"});
    let bearer = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    for (auth, expected) in [
        (
            Auth::client_credentials("c", "s"),
            "grant_type=client_credentials&scope=a&resource=https%3A%2F%2Fh%2Fmcp".to_owned(),
        ),
        (
            Auth::workload("c", |_| async { Ok(String::new()) }),
            format!("{bearer}jwt+for+https%3A%2F%2Fas&scope=a&resource=https%3A%2F%2Fh%2Fmcp&client_id=c"),
        ),
        (
            Auth::new().client_id("c").assertion("own"),
            format!("{bearer}own&scope=a&resource=https%3A%2F%2Fh%2Fmcp&client_id=c"),
        ),
        (
            Auth::identity_assertion(identity).client_id("c").client_secret("s"),
            format!("{bearer}jag&resource=https%3A%2F%2Fh%2Fmcp"),
        ),
    ] {
        let mut world = World::usual().with("https://idp/token", 200, jag.clone());
        let granted = auth.granted();
        let (outcome, _) = world.run(given(auth, &["Bearer scope=\"a\""]));
        assert_eq!(token_of(&outcome.expect("a session")), "new");
        assert_eq!(world.last(), format!("POST https://as/token {expected}"));
        assert!(world.opened.is_empty());
        let exchanged = world.asked.iter().find(|line| line.starts_with("POST https://idp/token"));
        assert_eq!(exchanged.is_some(), granted == Grant::IdJag);
        assert!(exchanged.is_none_or(|line| line.contains("&audience=https%3A%2F%2Fas&subject_token=id-token")));
    }
}

#[test]
fn an_assertion_that_is_refused_is_not_tried_again() {
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let mut world = World::usual().with("https://as/token", 400, json!({"error": error}));
        let auth = Auth::new().client_id("c").assertion("jwt");
        assert!(world.run(given(auth, &["Bearer"])).0.expect_err(error).message().contains(error));
        let asked = world.asked.iter().filter(|line| line.contains("/token")).count();
        assert_eq!((asked, world.opened.len()), (1, 0));
    }
}

#[test]
fn a_key_proves_the_client() {
    let pem = include_str!("../../jose/testdata/p256.pem");
    let mut world = World::usual();
    let (outcome, _) = world.run(given(Auth::private_key_jwt("c", pem, "ES256"), &["Bearer"]));
    outcome.expect("a session");
    assert!(world.last().contains("&client_id=c&client_assertion_type=urn%3A"), "{}", world.last());
    let mut world = World::usual();
    let error = world.run(given(Auth::private_key_jwt("c", "pem", "ES999"), &["Bearer"])).0.expect_err("unknown");
    assert!(error.message().contains("signing_algorithm \"ES999\" is not known"), "{error}");
}

#[test]
fn what_a_refusal_repeats_of_what_it_was_shown_is_not_told() {
    let pem = include_str!("../../jose/testdata/p256.pem");
    let identity = Identity { token: None, ..Identity::new("https://idp/token", "at-idp", "") };
    for (auth, at, echoed) in [
        // An answer of a function is no option, and a signed text is another one each time.
        (Auth::identity_assertion(identity).client_id("c").client_secret("s"), "https://idp/token", "subject_token"),
        (Auth::private_key_jwt("c", pem, "ES256"), "https://as/token", "client_assertion"),
        (Auth::workload("c", |_| async { Ok(String::new()) }), "https://as/token", "assertion"),
    ] {
        let refusal = json!({"error": "invalid_request", "error_description": "no good: ECHO"});
        let mut world = World { echoed, ..World::usual().with(at, 400, refusal) };
        let (outcome, mut flow) = world.run(given(auth, &["Bearer"]));
        let error = outcome.expect_err("refused");
        let shown = form_urlencoded::parse(world.last().rsplit(' ').next().expect("a form").as_bytes())
            .find(|(name, _)| name == echoed)
            .map(|(_, value)| value.into_owned())
            .expect("it was sent");
        let told = format!("{error} {}", serde_json::to_string(&flow.take_trace()).expect("JSON"));
        assert!(error.message().contains("no good: …"), "{error}");
        assert!(!told.contains(shown.get(..12).expect("a long one")), "{told}");
    }
}

#[test]
fn tokens_are_bound_where_the_server_asks_for_it() {
    let able = || {
        let mut document = metadata("https://as");
        document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        document
    };
    let dpop = json!({"access_token": "new", "token_type": "DPoP"});
    let required =
        json!({"resource": SERVER, "authorization_servers": ["https://as"], "dpop_bound_access_tokens_required": true});
    for (prm, auth, challenge, bound) in [
        (None, Auth::new(), "DPoP", true),
        (None, Auth::new(), "Bearer", false),
        (None, Auth::new().dpop(true), "Bearer", true),
        (None, Auth::new().dpop(false), "DPoP", false),
        (Some(required.clone()), Auth::new(), "Bearer", true),
    ] {
        let mut world = World::usual().with(AS, 200, able());
        world.answers.insert("https://as/token".into(), VecDeque::new());
        if let Some(prm) = prm {
            world = world.with(PRM, 200, prm);
        }
        if bound {
            world = world.then("https://as/token", 400, &[("dpop-nonce", "n")], json!({"error": "use_dpop_nonce"}));
            world = world.then("https://as/token", 200, &[], dpop.clone());
        } else {
            world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
        }
        let (outcome, _) = world.run(given(auth, &[challenge]));
        let session = outcome.expect("a session");
        assert_eq!(session.dpop.is_some(), bound, "{challenge}");
        assert_eq!(session.token.as_ref().map(|token| token.token_type == TokenType::Dpop), Some(bound));
        let asked = world.asked.iter().filter(|line| line.starts_with("POST https://as/token")).count();
        assert_eq!(asked, if bound { 2 } else { 1 });
    }
    let mut world = World::usual().with(AS, 200, able()).with(PRM, 200, required);
    let error = world.run(challenged("DPoP")).0.expect_err("a bearer token");
    assert!(error.message().contains("it gave a bearer token, and the server wants DPoP"), "{error}");
}

#[test]
fn nothing_is_told_twice() {
    let (mut flow, _) = Flow::start(challenged("Bearer"));
    assert!(matches!(flow.called_back(Ok("code=c".into()), 0), Step::Failed(_)));
    assert!(matches!(flow.fetched(Err(String::new().into()), 0), Step::Failed(_)));
}
