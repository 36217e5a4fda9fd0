//! Places that answer with something else than what is looked for, and servers that name nobody.

use super::*;

const OPENID: &str = "https://as/.well-known/openid-configuration";
const ORIGIN: &str = "https://h/.well-known/oauth-authorization-server";

/// A server whose metadata names no authorization server.
fn nameless() -> World {
    World::usual()
        .with(PRM, 200, json!({"resource": SERVER}))
        .with("https://h/register", 201, json!({"client_id": "c"}))
        .with("https://h/token", 200, json!({"access_token": "new"}))
}

fn without(member: &str, issuer: &str) -> Value {
    let mut document = metadata(issuer);
    document.as_object_mut().expect("an object").remove(member);
    document
}

#[test]
fn a_place_that_answers_with_nothing_of_use_is_passed_over() {
    let array = || json!([SERVER, ["https://as"], null, null, null, null, null, null, null]);
    for (status, body) in
        [(1, json!(null)), (404, json!(null)), (302, json!(null)), (200, json!("<html>")), (200, array())]
    {
        let prm = json!({"resource": "https://h", "authorization_servers": ["https://as"]});
        let mut world = World::usual().with(PRM, status, body.clone()).with(ROOT_PRM, 200, prm);
        let (outcome, _) = world.run(challenged("Bearer"));
        assert_eq!(outcome.expect("a session").resource.as_deref(), Some("https://h"), "{status} {body}");
        let mut world = World::usual().with(AS, status, body.clone()).with(OPENID, 200, metadata("https://as"));
        world.run(challenged("Bearer")).0.expect("a session");
        assert!(world.asked.contains(&format!("GET {OPENID}")), "{:?}", world.asked);
    }
    // Nobody can tell what is there: the resource's says who lets in, and an authorization server's says who it is.
    for (at, status, final_) in [(PRM, 0, true), (PRM, 503, true), (AS, 0, true), (AS, 503, false)] {
        let prm = json!({"resource": "https://h", "authorization_servers": ["https://as"]});
        let world = World::usual().with(ROOT_PRM, 200, prm).with(OPENID, 200, metadata("https://as"));
        let (outcome, _) = world.with(at, status, json!(null)).run(challenged("Bearer"));
        assert_eq!(outcome.is_err(), final_, "{at} {status}");
    }
}

#[test]
fn of_several_servers_the_next_one_will_do() {
    let prm = json!({"resource": SERVER, "authorization_servers": ["https://one", "http://two", "https://as"]});
    for status in [0, 404, 503] {
        let one = "https://one/.well-known/oauth-authorization-server";
        let mut world = World::usual().with(PRM, 200, prm.clone()).with(one, status, json!(null));
        let (outcome, mut flow) = world.run(challenged("Bearer"));
        assert_eq!(outcome.expect("a session").issuer, "https://as", "{status}");
        assert!(flow.take_notes()[0].contains("the authorization server \"https://one\" is of no use"));
        // Not where somebody has a login, or is known.
        for (auth, stored) in [
            (Auth::new(), Some(session("https://one", Some("r1")))),
            (Auth::new().issuer("https://one"), None),
            (Auth::new().client_id("c"), None),
        ] {
            let mut world = World::usual().with(PRM, 200, prm.clone()).with(one, status, json!(null));
            let given = Given { stored, ..given(auth, &["Bearer"]) };
            assert!(world.run(given).0.is_err() && world.opened.is_empty(), "{status}");
        }
    }
}

#[test]
fn an_array_is_no_object() {
    for (at, status, members, step) in [
        (AS, 200, json!(["https://as", "https://as/authorize", "https://as/token", null, null, null]), "array"),
        ("https://as/register", 201, json!(["id", null, null, "none"]), "a JSON array, expected an object"),
        ("https://as/token", 200, json!(["new", "Bearer"]), "the answer is no JSON object"),
    ] {
        let mut world = World::usual().with(at, status, members);
        let error = world.run(challenged("Bearer")).0.expect_err(at);
        assert!(error.message().contains(step), "{error}");
    }
}

#[test]
fn a_resource_has_no_fragment() {
    let prm = json!({"resource": format!("{SERVER}#x"), "authorization_servers": ["https://as"]});
    let mut world = World::usual().with(PRM, 200, prm);
    let error = world.run(challenged("Bearer")).0.expect_err("a fragment");
    assert!(error.message().contains("expected a URL without a fragment"), "{error}");
}

#[test]
fn metadata_that_names_nobody_leads_to_the_origin_and_its_own_word() {
    for (document, why) in [
        (metadata("https://h"), None),
        (without("code_challenge_methods_supported", "https://h"), Some("lists no code_challenge_methods_supported")),
        (without("issuer", "https://h"), Some("its issuer is \"\", expected \"https://h\"")),
        (without("token_endpoint", "https://h"), Some("it lists no token_endpoint")),
        (json!("<html>"), Some("\"authorization_servers\": missing in the metadata at")),
    ] {
        let mut world = nameless().with(ORIGIN, 200, document.clone());
        let (outcome, _) = world.run(challenged("Bearer"));
        match why {
            None => assert_eq!(outcome.expect("a session").resource.as_deref(), Some(SERVER)),
            Some(why) => {
                let error = outcome.expect_err(why);
                assert!(error.message().contains(why) && world.opened.is_empty(), "{error}");
            }
        }
    }
    // Nobody has named that issuer, and so it may be written with a slash.
    let mut slash = metadata("https://h");
    slash["issuer"] = json!("https://h/");
    nameless().with(ORIGIN, 200, slash).run(challenged("Bearer")).0.expect("a session");
    assert!(nameless().run(challenged("Bearer")).0.is_err(), "nothing is assumed");
}

#[test]
fn nothing_is_assumed_where_the_revision_has_metadata() {
    let origin = || nameless().with(PRM, 404, json!(null));
    let unlisted = without("code_challenge_methods_supported", "https://h");
    for (needs_metadata, document, why) in [
        // 2025-03-26.
        (false, None, None),
        (false, Some(metadata("https://h")), None),
        (false, Some(without("issuer", "https://h")), None),
        // A document that does not list PKCE says that there is none (RFC 8414, section 2).
        (false, Some(unlisted), Some("lists no code_challenge_methods_supported")),
        // Pinned to a later one.
        (true, Some(metadata("https://h")), None),
        (true, Some(without("issuer", "https://h")), Some("they must be the same text")),
        (true, None, Some("the server has no protected-resource metadata, which its revision needs")),
    ] {
        let mut world = origin();
        if let Some(document) = document {
            world = world.with(ORIGIN, 200, document);
        }
        let (outcome, _) = world.run(Given { needs_metadata, ..challenged("Bearer") });
        match why {
            None => drop(outcome.expect("a session")),
            Some(why) => {
                let error = outcome.expect_err(why);
                assert!(error.message().contains(why) && world.opened.is_empty(), "{error}");
            }
        }
    }
}

#[test]
fn what_the_server_names_oddly_is_found() {
    let (named, prm) = ("https://h/meta/prm", json!({"resource": SERVER, "authorization_servers": ["https://as/"]}));
    for value in [named, "'https://h/meta/prm'", "/meta/prm", "meta/prm", "'/meta/prm'"] {
        let mut world = World::usual().with(PRM, 404, json!(null)).with(named, 200, prm.clone());
        let (outcome, _) = world.run(challenged(&format!("Bearer resource_metadata=\"{value}\"")));
        // The issuer differs by the slash of its empty path.
        assert_eq!(outcome.expect(value).issuer, "https://as/", "{value}");
    }
    for status in [500, 503, 429] {
        let mut world = World::usual().with(named, status, json!(null));
        let (outcome, _) = world.run(challenged(&format!("Bearer resource_metadata=\"{named}\"")));
        assert_eq!(outcome.expect("a session").issuer, "https://as", "{status}");
    }
    // Nothing is assumed of a server that names what there is not.
    let mut world = World::usual().with(named, 500, json!(null)).with(PRM, 404, json!(null));
    assert!(world.run(challenged(&format!("Bearer resource_metadata=\"{named}\""))).0.is_err());
}

#[test]
fn an_issuer_may_have_a_slash_for_a_path() {
    for (listed, said, option) in [
        ("https://as/", "https://as", None),
        ("https://as", "https://as/", None),
        ("https://as/", "https://as", Some("https://as")),
        ("https://as/", "https://as", Some("https://as/")),
        ("https://as", "https://as/", Some("https://as/")),
    ] {
        let prm = json!({"resource": SERVER, "authorization_servers": [listed]});
        let mut document = metadata("https://as");
        document["issuer"] = said.into();
        let mut world = World::usual().with(PRM, 200, prm).with(AS, 200, document);
        world.callback = format!("code=c&iss={said}");
        let auth = option.map_or_else(Auth::new, |issuer| Auth::new().issuer(issuer));
        let (outcome, _) = world.run(given(auth, &["Bearer"]));
        assert!(outcome.is_ok(), "{listed} {said} {option:?}: {:?}", outcome.err());
    }
}
