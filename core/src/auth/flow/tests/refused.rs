//! A token that the server refuses while the authorization server has others, or none: a login is always the way out.

use super::*;

fn refused(auth: Auth, challenge: &str, stored: &Session) -> Given {
    Given { stored: Some(stored.clone()), used: Some("old-token".into()), ..given(auth, &[challenge]) }
}

fn refreshes(world: &World) -> usize {
    world.asked.iter().filter(|line| line.contains("grant_type=refresh_token")).count()
}

#[test]
fn a_token_that_is_refused_as_soon_as_it_is_refreshed_leads_to_a_login() {
    let mut world = World::usual();
    let kept = session("https://as", Some("r1"));
    world.kept = Some(kept.clone());
    let (outcome, flow) = world.run(Given { useless: true, ..refused(Auth::new(), "Bearer scope=\"a\"", &kept) });
    let session = outcome.expect("a session");
    assert_eq!((token_of(&session), session.client.client_id.as_str()), ("new", "old"));
    assert!(!flow.has_refreshed());
    assert_eq!((world.opened.len(), refreshes(&world), world.asked_for("scope").as_deref()), (1, 0, Some("a")));
    // Until it succeeds what there was stays, and nothing says otherwise.
    let mut world = World { callback: "error=access_denied".into(), kept: Some(kept.clone()), ..World::usual() };
    let (outcome, mut flow) = world.run(Given { useless: true, ..refused(Auth::new(), "Bearer", &kept) });
    assert!(outcome.expect_err("no login").message().contains("the user said no"));
    assert_eq!((flow.take_spent(), flow.take_doubted()), (None, None));
}

#[test]
fn a_refresh_is_for_the_scopes_that_were_asked_for() {
    let granted = |scope: &str| {
        let mut kept = session("https://as", Some("r1"));
        kept.token.as_mut().expect("a token").scope = Some(scope.into());
        kept
    };
    let asked = |scopes: &[&str]| {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Session { scopes, ..granted("a") }
    };
    for (kept, challenge, login) in [
        (session("https://as", Some("r1")), "Bearer scope=\"a\"", None),
        (session("https://as", Some("r1")), "Bearer scope=\"b\"", Some("a b")),
        (granted("a b"), "Bearer scope=\"a b\"", None),
        // Less was granted: to ask again for the same would bring the same.
        (asked(&["a", "b"]), "Bearer scope=\"a b\"", None),
        (asked(&["a", "b"]), "Bearer scope=\"c\"", Some("a b c")),
    ] {
        let mut world = World::usual();
        world.kept = Some(kept.clone());
        let (outcome, flow) = world.run(refused(Auth::new(), challenge, &kept));
        assert_eq!(token_of(&outcome.expect("a session")), "new");
        assert_eq!((world.asked_for("scope").as_deref(), refreshes(&world)), (login, usize::from(login.is_none())));
        assert_eq!(flow.has_refreshed(), login.is_none());
    }
}

#[test]
fn a_refresh_that_is_refused_in_other_words_leads_to_a_login() {
    for (status, body, login) in [
        (200, json!({"error": "bad_refresh_token"}), true),
        (400, json!({"error": "invalid_refresh_token"}), true),
        (400, json!({"error": "unsupported_grant_type"}), true),
        (400, json!({"error": "invalid_request"}), true),
        (403, json!({"error": "access_denied"}), true),
        (404, json!("Not Found"), true),
        // Anybody on the way may say that.
        (403, json!("<html>"), false),
        (200, json!("<html>"), false),
        (429, json!({"error": "x"}), false),
        (500, json!({"error": "invalid_grant"}), false),
        (0, json!(null), false),
    ] {
        let mut world = World::usual();
        world.answers.insert("https://as/token".into(), VecDeque::new());
        let world = world.then("https://as/token", status, &[], body.clone());
        let mut world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
        let kept = session("https://as", Some("r1"));
        world.kept = Some(kept.clone());
        let (outcome, mut flow) = world.run(refused(Auth::new(), "Bearer", &kept));
        let notes = flow.take_notes();
        assert_eq!((world.opened.len(), refreshes(&world), flow.take_spent()), (usize::from(login), 1, None), "{body}");
        if login {
            let session = outcome.expect("a session");
            assert_eq!((token_of(&session), session.refresh_token()), ("new", None));
            assert!(notes[0].contains("was not taken") && notes[0].contains("a new login is needed"), "{notes:?}");
        } else {
            let error = outcome.expect_err("no telling");
            assert!(error.message().contains("; the refresh token is kept: ") && notes.is_empty(), "{error}");
        }
    }
}

#[test]
fn a_client_that_may_not_refresh_may_log_in() {
    let mut kept = session("https://as", Some("r1"));
    kept.client.known_by = KnownBy::Preregistration;
    for (error, login) in [("unauthorized_client", true), ("invalid_client", false)] {
        let mut world = World::usual();
        world.answers.insert("https://as/token".into(), VecDeque::new());
        let world = world.then("https://as/token", 400, &[], json!({"error": error}));
        let mut world = world.then("https://as/token", 200, &[], json!({"access_token": "new"}));
        world.kept = Some(kept.clone());
        let (outcome, _) = world.run(refused(Auth::new().client_id("old"), "Bearer", &kept));
        assert_eq!((outcome.is_ok(), world.opened.len()), (login, usize::from(login)), "{error}");
    }
}

#[test]
fn the_programs_own_scopes_are_asked_for_once() {
    let auth = || Auth::new().scopes(["own"]);
    let kept = session("https://as", Some("r1"));
    let mut world = World::usual().with(
        "https://as/token",
        200,
        json!({"access_token": "new", "refresh_token": "r2", "scope": "a"}),
    );
    world.kept = Some(kept.clone());
    // Its token was not shown, as it lacks them.
    let (outcome, _) = world.run(Given { used: None, ..refused(auth(), "Bearer", &kept) });
    let session = outcome.expect("a session");
    assert_eq!((world.asked_for("scope").as_deref(), refreshes(&world)), (Some("a own"), 0));
    // It was granted less, and that is that.
    assert!(session.has_asked("own") && !session.has_scopes("own"));
    world.kept = Some(session.clone());
    let given = Given { used: Some("new".into()), ..refused(auth(), "Bearer", &session) };
    assert_eq!(token_of(&world.run(given).0.expect("a session")), "new");
    assert_eq!((world.opened.len(), refreshes(&world)), (1, 1));
}
