//! A client that is not known any more, or not by what it shows, and the scopes that are asked for.

use super::*;

/// Runs a stored login against a first answer of the token endpoint.
fn after(refusal: Value, auth: Auth, challenges: &[&str], stored: Session) -> (World, Result<Session, Error>, Flow) {
    let mut world = World::usual();
    world.answers.insert("https://as/token".into(), VecDeque::new());
    let world = world.then("https://as/token", 400, &[], refusal);
    let mut world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
    world.kept = Some(stored.clone());
    let used = Some("old-token".into());
    let (outcome, flow) = world.run(Given { stored: Some(stored), used, ..given(auth, challenges) });
    (world, outcome, flow)
}

#[test]
fn a_forgotten_registration_is_made_anew() {
    for error in ["invalid_client", "unauthorized_client"] {
        let stored = session("https://as", Some("r1"));
        let (world, outcome, mut flow) = after(json!({"error": error}), Auth::new(), &["Bearer"], stored.clone());
        assert_eq!(outcome.expect(error).client.client_id, "registered");
        assert_eq!((world.opened.len(), flow.take_spent()), (1, None), "the token is not the culprit");
        assert!(flow.take_notes()[0].contains("the registration at \"https://as\" is not known there any more"));
        // Nobody has asked for a user yet.
        let (world, outcome, _) = after(json!({"error": error}), Auth::new(), &[], stored);
        let shown = outcome.expect_err("no token");
        assert!(shown.message().ends_with("the refresh token is kept"), "{shown}");
        assert!(world.opened.is_empty());
    }
}

#[test]
fn what_the_program_is_known_by_is_not_made_anew() {
    let mut stored = session("https://as", Some("r1"));
    stored.client.known_by = KnownBy::Preregistration;
    let auth = Auth::new().client_id("old").client_secret("the-newer-secret");
    let (world, outcome, _) = after(json!({"error": "invalid_client"}), auth, &["Bearer"], stored);
    let error = outcome.expect_err("no token");
    assert!(error.message().ends_with("the refresh token is kept; look at client_id and client_secret"), "{error}");
    assert!(world.opened.is_empty() && !world.asked.iter().any(|line| line.contains("/register")));
}

#[test]
fn a_secret_that_was_changed_is_used_at_once() {
    let mut stored = session("https://as", Some("r1"));
    stored.client.known_by = KnownBy::Preregistration;
    stored.client.client_secret = Some("the-older-secret".into());
    let mut world = World::usual();
    let mut about = metadata("https://as");
    about["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    world = world.with(AS, 200, about);
    world.kept = Some(stored.clone());
    let auth = Auth::new().client_id("old").client_secret("the-newer-secret");
    let used = Some("old-token".into());
    let (outcome, _) = world.run(Given { stored: Some(stored), used, ..given(auth, &["Bearer"]) });
    assert_eq!(token_of(&outcome.expect("a session")), "new");
    assert!(world.last().contains("client_secret=the-newer-secret"), "{:?}", world.asked);
}

/// A login that has a registration, and no refresh token.
fn known() -> Session {
    session("https://as", None)
}

#[test]
fn a_login_finds_out_that_it_is_forgotten() {
    // By the token endpoint, which takes no code of it.
    let (world, outcome, _) = after(json!({"error": "invalid_client"}), Auth::new(), &["Bearer"], known());
    assert_eq!(outcome.expect("a session").client.client_id, "registered");
    assert_eq!(world.opened.len(), 2);
    assert!(world.opened[0].contains("client_id=old") && world.opened[1].contains("client_id=registered"));
    // Or by the answer in the browser, where it is refused as a new one then.
    let mut world = World::usual();
    world.kept = Some(known());
    world.callback = "error=unauthorized_client".into();
    let used = Some("old-token".into());
    let (outcome, _) = world.run(Given { stored: Some(known()), used, ..given(Auth::new(), &["Bearer"]) });
    let error = outcome.expect_err("refused");
    assert!(error.message().contains("unauthorized_client"), "{error}");
    assert_eq!(world.opened.len(), 2, "once more, and not for ever");
}

#[test]
fn where_nothing_more_is_wanted_a_login_asks_for_what_is_wanted_now() {
    for (steps_up, scope) in [(false, None), (true, Some("a"))] {
        let mut world = World::usual();
        world.kept = Some(known());
        let used = Some("old-token".into());
        let (outcome, _) =
            world.run(Given { stored: Some(known()), used, steps_up, ..given(Auth::new(), &["Bearer"]) });
        assert!(outcome.is_ok());
        assert_eq!(world.asked_for("scope").as_deref(), scope, "{:?}", world.opened);
    }
}
