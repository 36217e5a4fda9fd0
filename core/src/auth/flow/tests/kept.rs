//! Tests of stored logins: their owner, their validity, and the effect of a strange answer on them.

use super::*;

fn used(auth: Auth, challenges: &[&str], stored: Session) -> Given {
    Given { stored: Some(stored), used: Some("old-token".into()), refused: true, ..given(auth, challenges) }
}

#[test]
fn an_origin_that_names_another_issuer_gets_nothing() {
    let origin = "https://h/.well-known/oauth-authorization-server";
    for (issuer, good) in [("https://h", true), ("https://h/", true), ("", true), ("https://other", false)] {
        let mut document = metadata("https://h");
        document["issuer"] = json!(issuer);
        let mut world = World::usual().with(PRM, 404, json!({})).with(origin, 200, document);
        world = world.with("https://h/register", 201, json!({"client_id": "c"}));
        world = world.with("https://h/token", 200, json!({"access_token": "new"}));
        let (outcome, _) = world.run(challenged("Bearer"));
        match good {
            true => assert_eq!(token_of(&outcome.expect(issuer)), "new"),
            false => {
                let error = outcome.expect_err(issuer);
                assert!(error.message().contains("its issuer is \"https://other\", expected \"https://h\""), "{error}");
                assert!(world.opened.is_empty());
            }
        }
    }
}

#[test]
fn where_the_metadata_was_is_remembered() {
    let elsewhere = "https://h/about/mcp";
    let mut world = World::usual().with(PRM, 404, json!({})).with(
        elsewhere,
        200,
        json!({"resource": SERVER, "authorization_servers": ["https://as"]}),
    );
    let (outcome, _) = world.run(challenged(&format!("Bearer resource_metadata=\"{elsewhere}\"")));
    let session = outcome.expect("a session");
    assert_eq!(session.resource_metadata.as_deref(), Some(elsewhere));
    // Nothing names it now.
    world.asked.clear();
    let stored = Session { token: None, ..session };
    let (outcome, _) = world.run(used(Auth::new(), &[], stored));
    assert_eq!(outcome.expect("a session").resource_metadata.as_deref(), Some(elsewhere));
    assert_eq!(world.asked[0], format!("GET {elsewhere}"));
}

#[test]
fn what_belongs_to_another_program_or_user_is_not_used() {
    let (mut newer, stored) = (session("https://as", Some("r9")), session("https://as", Some("r1")));
    newer.token.as_mut().expect("a token").access_token = "newer".into();
    newer.client.known_by = KnownBy::Preregistration;
    let own = |auth: Auth| {
        let mut world = World::usual();
        world.kept = Some(newer.clone());
        let (outcome, _) = world.run(used(auth, &["Bearer"], stored.clone()));
        outcome.map(|session| token_of(&session).to_owned()).map_err(|error| error.to_string())
    };
    assert_eq!(own(Auth::new().client_id("old")).as_deref(), Ok("newer"));
    assert_eq!(own(Auth::new().client_id("other")).as_deref(), Ok("new"));
    assert_eq!(own(Auth::client_credentials("old", "s")).as_deref(), Ok("newer"), "what names no grant is taken");
    newer.grant = Some(Grant::AuthorizationCode);
    let mut world = World::usual();
    world.kept = Some(newer);
    let (outcome, _) = world.run(used(Auth::client_credentials("old", "s"), &["Bearer"], stored));
    assert_eq!(token_of(&outcome.expect("a session")), "new");
}

#[test]
fn what_could_not_be_kept_is_newer_than_what_is() {
    let mut world = World::usual();
    world.kept = Some(session("https://as", Some("used up")));
    let own = Session { since: 900, unsaved: true, ..session("https://as", Some("r1")) };
    let (outcome, _) = world.run(used(Auth::new(), &["Bearer"], own));
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(world.last().contains("refresh_token=r1"), "{:?}", world.asked);
    // A stored login that is gone was taken away by somebody.
    let mut world = World::usual();
    let own = Session { since: 900, ..session("https://as", Some("r1")) };
    let (outcome, _) = world.run(used(Auth::new(), &["Bearer"], own));
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(!world.asked.iter().any(|line| line.contains("refresh_token=r1")), "{:?}", world.asked);
}

#[test]
fn a_refusal_without_a_challenge_is_one() {
    let mut world = World::usual();
    world.kept = Some(session("https://as", Some("r1")));
    let stored = world.kept.clone().expect("a session");
    let (outcome, _) = world.run(used(Auth::new(), &[], stored));
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert_eq!(world.asked[0], format!("GET {PRM}"), "what the server wants is asked first");
}

#[test]
fn a_page_in_the_place_of_a_token_endpoint_is_no_refusal() {
    // Known by what is kept alone, it may have moved: where it is now is found out.
    let mut world = World::usual().with("https://as/old", 403, json!("<html>"));
    let stored = Session { token_endpoint: "https://as/old".into(), ..session("https://as", Some("r1")) };
    world.kept = Some(stored.clone());
    let given = Given { stored: Some(stored), used: Some("old-token".into()), ..given(Auth::new(), &[]) };
    let (outcome, mut flow) = world.run(given);
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(world.last().contains("POST https://as/token grant_type=refresh_token&refresh_token=r1"));
    assert!(flow.take_notes().is_empty() && world.opened.is_empty());
    // Where the metadata says so it may mean anything. Twice, a user may log in, and nothing is thrown away before that.
    for doubted in [None, Some("r1")] {
        let mut world = World::usual();
        world.answers.insert("https://as/token".into(), VecDeque::new());
        let world = world.then("https://as/token", 403, &[], json!("<html>"));
        let mut world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
        world.kept = Some(session("https://as", Some("r1")));
        let stored = world.kept.clone().expect("a session");
        let given = Given { doubted: doubted.map(str::to_owned), ..used(Auth::new(), &["Bearer"], stored) };
        let (outcome, mut flow) = world.run(given);
        assert_eq!((flow.take_notes().len(), flow.take_spent()), (usize::from(doubted.is_some()), None));
        if doubted.is_some() {
            assert_eq!(token_of(&outcome.expect("a session")), "new");
            assert_eq!(world.opened.len(), 1);
            continue;
        }
        let error = outcome.expect_err("no token");
        assert!(error.message().contains("HTTP 403; the refresh token is kept: this client's next attempt"), "{error}");
        assert_eq!((world.opened.len(), flow.take_doubted().as_deref()), (0, Some("r1")));
    }
}

#[test]
fn where_the_metadata_was_once_is_only_a_hint() {
    for status in [0, 503, 429, 404] {
        let mut world = World::usual().with("https://gone/prm", status, json!({}));
        let stored = Session { resource_metadata: Some("https://gone/prm".into()), ..session("https://as", None) };
        let (outcome, _) = world.run(used(Auth::new(), &["Bearer"], stored));
        assert_eq!(outcome.expect("a session").resource_metadata.as_deref(), Some(PRM), "{status}");
    }
}

#[test]
fn nobody_is_asked_to_log_in_before_the_server_has_refused_a_token() {
    for spent in [Some("r1".to_owned()), None] {
        let mut world = World::usual();
        let refresh_token = spent.as_deref();
        world.kept = Some(session("https://as", refresh_token.or(Some("r1"))));
        let moved = Session { resource: Some("https://h/other".into()), ..session("https://as", Some("r1")) };
        let stored = if spent.is_some() { world.kept.clone() } else { Some(moved) };
        if spent.is_none() {
            world.kept = None;
        }
        let ahead = Given { stored, spent, used: Some("old-token".into()), ..given(Auth::new(), &[]) };
        let error = world.run(ahead).0.expect_err("no token");
        assert!(error.message().contains("has not refused the token yet"), "{error}");
        assert!(world.opened.is_empty() && !world.asked.iter().any(|line| line.contains("register")));
    }
}

#[test]
fn a_refresh_token_that_was_refused_is_not_sent_again() {
    let mut world = World::usual().with("https://as/token", 400, json!({"error": "invalid_grant"}));
    world.kept = Some(session("https://as", Some("r1")));
    let ahead = Given { stored: world.kept.clone(), used: Some("old-token".into()), ..given(Auth::new(), &[]) };
    let (outcome, mut flow) = world.run(ahead);
    assert!(outcome.is_err());
    let spent = flow.take_spent();
    assert_eq!(spent.as_deref(), Some("r1"));
    // The server has refused the token meanwhile.
    let mut world = World { kept: world.kept, ..World::usual() };
    let stored = world.kept.clone().expect("a session");
    let (outcome, mut flow) = world.run(Given { spent, ..used(Auth::new(), &["Bearer"], stored) });
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(!world.asked.iter().any(|line| line.contains("grant_type=refresh_token")), "{:?}", world.asked);
    assert!(flow.take_notes().is_empty(), "it was said before");
}

#[test]
fn a_damaged_key_ends_its_tokens_and_nothing_else() {
    let mut bound = session("https://as", Some("r1"));
    bound.dpop = Some("damaged".into());
    let mut world = World::usual();
    world.kept = Some(bound.clone());
    let (outcome, mut flow) = world.run(used(Auth::new(), &["Bearer"], bound));
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(!world.asked.iter().any(|line| line.contains("grant_type=refresh_token")), "{:?}", world.asked);
    assert_eq!((world.opened.len(), flow.take_notes().len()), (1, 1));
}
