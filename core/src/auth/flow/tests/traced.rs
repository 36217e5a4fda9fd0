//! Tests of the trace, which people read when a login fails.

use super::*;

fn steps(flow: &mut Flow) -> Vec<AuthStep> {
    flow.take_trace()
}

#[test]
fn what_the_server_refused_is_the_first_step() {
    for (challenge, steps_up, status, decision) in [
        ("Bearer", false, 401, "nothing that says more"),
        (
            "Bearer error=\"invalid_token\", scope=\"a b\", resource_metadata=\"https://h/prm?key=secret\"",
            false,
            401,
            "error \"invalid_token\", scope \"a b\", resource_metadata \"https://h/prm\"",
        ),
        ("Bearer error=\"old-token\", scope=\"a\"", true, 403, "error \"…\", scope \"a\""),
    ] {
        let used = Some("old-token".into());
        let (mut flow, _) = Flow::start(Given { steps_up, used, ..challenged(challenge) });
        let first = steps(&mut flow).swap_remove(0);
        assert_eq!((first.step, first.url.as_deref(), first.status), ("challenge", Some(SERVER), Some(status)));
        assert_eq!(first.decision, decision);
    }
    // Ahead of its end nobody has refused anything.
    let stored = Some(session("https://as", Some("r1")));
    let (mut flow, _) = Flow::start(Given { stored, ..given(Auth::new(), &[]) });
    assert!(steps(&mut flow).is_empty());
}

#[test]
fn every_step_has_a_decision_of_its_own() {
    let no_pkce = || {
        let mut document = metadata("https://as");
        document.as_object_mut().expect("an object").remove("code_challenge_methods_supported");
        document
    };
    let no_registration = || {
        let mut document = metadata("https://as");
        document.as_object_mut().expect("an object").remove("registration_endpoint");
        document
    };
    for (world, kept, last) in [
        (World::usual(), None, ("token", "a token")),
        (World::usual(), Some(session("https://as", Some("r1"))), ("refresh", "a token")),
        (World::usual().with(AS, 200, no_pkce()), None, ("login in the browser", "given up: ")),
        (World::usual().with(AS, 200, no_registration()), None, ("client", "given up: ")),
    ] {
        let mut world = World { kept: kept.clone(), ..world };
        let (_, mut flow) = world.run(Given { stored: kept, used: Some("old-token".into()), ..challenged("Bearer") });
        let trace = steps(&mut flow);
        assert!(trace.iter().all(|step| !step.decision.is_empty()), "{trace:?}");
        let end = trace.last().expect("steps");
        assert!(end.step == last.0 && end.decision.starts_with(last.1), "{end:?}");
    }
}
