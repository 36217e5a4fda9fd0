//! Tests of refusals and warnings where the program was told something else than the server says.

use super::*;

#[test]
fn an_issuer_that_the_server_does_not_list_is_refused() {
    for auth in [Auth::new(), Auth::new().client_id("c"), Auth::client_credentials("c", "s")] {
        let mut world = World::usual();
        let error = world.run(given(auth.clone().issuer("https://other"), &["Bearer"])).0.expect_err("another");
        assert!(error.message().contains("https://as") && error.message().contains("https://other"), "{error}");
        assert!(!world.asked.iter().any(|line| line.contains("/register") || line.contains("/token")));
        let mut world = World::usual();
        world.run(given(auth.issuer("https://as"), &["Bearer"])).0.expect("a session");
    }
}

#[test]
fn a_secret_without_an_issuer_goes_where_the_server_says_and_that_is_said() {
    let named = |flow: &mut Flow| flow.take_notes().iter().any(|note| note.contains("give the option \"issuer\""));
    let auth = Auth::client_credentials("c", "s");
    let (outcome, mut flow) = World::usual().run(given(auth.clone(), &["Bearer"]));
    assert!(named(&mut flow));
    // Once it is known, nobody has to hear of it again.
    let again = Given { stored: Some(outcome.expect("a session")), ..given(auth.clone(), &["Bearer"]) };
    assert!(!named(&mut World::usual().run(again).1));
    assert!(!named(&mut World::usual().run(given(auth.issuer("https://as"), &["Bearer"])).1));
}

#[test]
fn a_secret_is_spoken_of_before_a_user_logs_in_with_it() {
    let named =
        |flow: &mut Flow| flow.take_notes().iter().filter(|note| note.contains("client_secret is shown")).count();
    let auth = Auth::new().client_id("c").client_secret("s");
    let mut world = World::usual();
    let (outcome, mut flow) = world.run(given(auth.clone(), &["Bearer"]));
    assert_eq!((named(&mut flow), world.opened.len()), (1, 1));
    let again = Given { stored: Some(outcome.expect("a session")), ..given(auth.clone(), &["Bearer"]) };
    assert_eq!(named(&mut World::usual().run(again).1), 0);
    assert_eq!(named(&mut World::usual().run(given(auth.issuer("https://as"), &["Bearer"])).1), 0);
    // A secret of the server's own is no secret of the program's.
    assert_eq!(named(&mut World::usual().run(challenged("Bearer")).1), 0);
}

#[test]
fn a_bearer_token_where_another_was_asked_for_is_said() {
    let able = || {
        let mut document = metadata("https://as");
        document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        document
    };
    for (auth, challenge, said) in
        [(Auth::new().dpop(true), "Bearer", true), (Auth::new(), "DPoP", false), (Auth::new(), "Bearer", false)]
    {
        let mut world = World::usual().with(AS, 200, able());
        let (outcome, mut flow) = world.run(given(auth, &[challenge]));
        assert!(outcome.expect("a session").dpop.is_none());
        assert_eq!(flow.take_notes().iter().any(|note| note.contains("bound to no key")), said, "{challenge}");
    }
}
