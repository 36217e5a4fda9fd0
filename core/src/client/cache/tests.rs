use super::*;
use serde_json::{Value, json};

const NOW: Duration = Duration::from_secs(1000);

fn secs(seconds: u64) -> Duration {
    NOW + Duration::from_secs(seconds)
}

fn place(target: &str, scope: &str) -> Place {
    Place { target: target.into(), scope: scope.into(), has_address: true, renew: None }
}

fn cache(options: &CacheOptions) -> Arc<Cache> {
    Cache::new(options, place("server", "ada"))
}

fn text(value: &Value) -> RawJson {
    RawJson::from_value(value)
}

fn look(cache: &Arc<Cache>, now: Duration, method: &str, params: Value) -> Look {
    look_as(cache, now, method, params, CacheMode::Default)
}

fn look_as(cache: &Arc<Cache>, now: Duration, method: &str, params: Value, mode: CacheMode) -> Look {
    cache.look(|| now, Revision::NEWEST, method, Some(&text(&params)), &CallOptions::new().cache(mode))
}

fn asked(look: Look) -> Asked {
    match look {
        Look::Ask(asked) => asked,
        Look::Plain => panic!("nothing is kept of it"),
        Look::Hit(result) => panic!("it was kept: {result}"),
        Look::Search(_) => panic!("it is in memory"),
    }
}

fn hit(look: Look) -> Option<Value> {
    match look {
        Look::Hit(result) => Some(result.to().expect("json")),
        Look::Ask(_) | Look::Plain | Look::Search(_) => None,
    }
}

fn result(ttl: i64, scope: &str, what: &str) -> Value {
    json!({"tools": [what], "ttlMs": ttl, "cacheScope": scope, "resultType": "complete"})
}

/// Asks for a list, which is answered at once.
fn fill(cache: &Arc<Cache>, now: Duration, method: &str, params: Value, answer: &Value) {
    let given = asked(look(cache, now, method, params)).settle(now, Ok(text(answer))).expect("given");
    assert_eq!(given, text(answer));
}

#[test]
fn an_answer_is_fresh_for_as_long_as_it_says() {
    let cache = cache(&CacheOptions::default());
    let answer = result(10_000, "private", "a");
    fill(&cache, NOW, "tools/list", json!({}), &answer);
    assert_eq!(hit(look(&cache, secs(9), "tools/list", json!({"cursor": null}))), Some(answer));
    assert_eq!(hit(look(&cache, secs(10), "tools/list", json!({}))), None, "not at the end");
    let next = result(1000, "private", "b");
    asked(look(&cache, secs(10), "tools/list", json!({}))).settle(secs(20), Ok(text(&next))).expect("given");
    // It counts from when it was received.
    assert_eq!(hit(look(&cache, secs(20), "tools/list", json!({}))), Some(next));
    let usage = cache.usage();
    assert_eq!((usage.hits, usage.misses, usage.stale, usage.entries), (2, 3, 0, 1));
    assert!(usage.bytes > 80);
}

#[test]
fn what_says_nothing_of_the_kind_is_not_kept() {
    let cache = cache(&CacheOptions::default());
    for answer in [
        json!({"tools": []}),
        json!({"tools": [], "cacheScope": "public"}),
        result(0, "public", "a"),
        result(-5, "public", "a"),
        json!({"tools": [], "ttlMs": "5000"}),
        json!({"tools": [], "ttlMs": null}),
        json!({"resultType": "input_required", "requestState": "s", "ttlMs": 5000, "cacheScope": "public"}),
    ] {
        fill(&cache, NOW, "tools/list", json!({}), &answer);
        assert_eq!(hit(look(&cache, NOW, "tools/list", json!({}))), None, "{answer}");
    }
    // And it ends what was kept before.
    fill(&cache, NOW, "tools/list", json!({}), &result(5000, "public", "a"));
    let again = asked(look_as(&cache, NOW, "tools/list", json!({}), CacheMode::Refresh));
    again.settle(NOW, Ok(text(&result(0, "private", "b")))).expect("given");
    assert_eq!(hit(look(&cache, NOW, "tools/list", json!({}))), None);
    assert_eq!(cache.usage().entries, 0);
    // Longer than any clock runs.
    fill(&cache, NOW, "tools/list", json!({}), &json!({"tools": [], "ttlMs": 1e300, "cacheScope": "public"}));
    assert!(hit(look(&cache, secs(1_000_000), "tools/list", json!({}))).is_some());
}

#[test]
fn only_what_the_protocol_says_keeps_is_kept() {
    let cache = cache(&CacheOptions::default());
    for method in ["tools/call", "prompts/get", "completion/complete", "ping", "own/method"] {
        assert!(matches!(look(&cache, NOW, method, json!({})), Look::Plain), "{method}");
    }
    for revision in Revision::of_era(crate::protocol::revision::Era::Legacy) {
        let looked = cache.look(|| NOW, revision, "tools/list", None, &CallOptions::new());
        assert!(matches!(looked, Look::Plain), "{revision}");
    }
    let off = super::tests::cache(&CacheOptions::off());
    assert!(matches!(look(&off, NOW, "tools/list", json!({})), Look::Plain));
}

#[test]
fn parameters_tell_answers_apart_and_what_no_answer_depends_on_does_not() {
    let cache = cache(&CacheOptions::default());
    let answer = |what: &str| result(10_000, "private", what);
    fill(&cache, NOW, "resources/read", json!({"uri": "a://1", "x": {"b": 1, "c": 2}}), &answer("1"));
    fill(&cache, NOW, "resources/read", json!({"uri": "a://2"}), &answer("2"));
    fill(&cache, NOW, "tools/list", json!({"_meta": {"com.example/tenant": "t"}}), &answer("t"));
    let read = |params| hit(look(&cache, NOW, "resources/read", params));
    assert_eq!(read(json!({"x": {"b": 1, "c": 2}, "uri": "a://1"})), Some(answer("1")));
    let meta = json!({"progressToken": 7, "traceparent": "00-a-b-01", "io.modelcontextprotocol/logLevel": "debug"});
    assert_eq!(read(json!({"uri": "a://2", "_meta": meta})), Some(answer("2")));
    for other in [json!({"uri": "a://1"}), json!({"uri": "a://3"}), json!({"uri": "a://2", "_meta": {"x/y": 1}})] {
        assert_eq!(read(other.clone()), None, "{other}");
    }
    let list = |params| hit(look(&cache, NOW, "tools/list", params));
    assert_eq!(list(json!({"_meta": {"com.example/tenant": "t", "progressToken": 1}})), Some(answer("t")));
    assert_eq!((list(json!({})), list(json!({"cursor": ""}))), (None, None));
}

#[test]
fn what_answers_were_brought_to_is_never_kept() {
    let cache = cache(&CacheOptions::default());
    fill(&cache, NOW, "resources/read", json!({"uri": "a://1"}), &result(10_000, "public", "1"));
    for params in [json!({"uri": "a://1", "requestState": "s"}), json!({"uri": "a://1", "inputResponses": {}})] {
        assert!(matches!(look(&cache, NOW, "resources/read", params), Look::Plain));
    }
}

#[test]
fn private_answers_stay_under_their_authorization() {
    let options = CacheOptions::new().memory(Arc::new(MemoryCache::new(100, 1 << 20)));
    let of = |target, scope| Cache::new(&options, place(target, scope));
    let (ada, bob, other) = (of("server", "ada"), of("server", "bob"), of("other", "ada"));
    let (private, public) = (result(10_000, "private", "ada's"), result(10_000, "public", "all"));
    fill(&ada, NOW, "tools/list", json!({}), &private);
    fill(&ada, NOW, "prompts/list", json!({}), &public);
    fill(&ada, NOW, "resources/list", json!({}), &json!({"resources": [], "ttlMs": 9000, "cacheScope": "all"}));
    assert_eq!(hit(look(&of("server", "ada"), NOW, "tools/list", json!({}))), Some(private));
    assert_eq!(hit(look(&bob, NOW, "tools/list", json!({}))), None);
    assert_eq!(hit(look(&bob, NOW, "resources/list", json!({}))), None, "what is not said is private");
    assert_eq!(hit(look(&bob, NOW, "prompts/list", json!({}))), Some(public));
    assert_eq!(hit(look(&other, NOW, "prompts/list", json!({}))), None, "another server");
    // A public answer is private now: the public one is not given any more.
    let again = asked(look_as(&bob, NOW, "prompts/list", json!({}), CacheMode::Refresh));
    let now_private = result(10_000, "private", "bob's");
    again.settle(NOW, Ok(text(&now_private))).expect("given");
    assert_eq!(hit(look(&ada, NOW, "prompts/list", json!({}))), None);
    assert_eq!(hit(look(&bob, NOW, "prompts/list", json!({}))), Some(now_private));
}

#[test]
fn what_has_changed_is_dropped_at_once() {
    let cache = cache(&CacheOptions::default());
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    let answer = result(10_000, "public", "a");
    let refill = || {
        for method in lists {
            for params in [json!({}), json!({"cursor": "2"})] {
                let asked = asked(look_as(&cache, NOW, method, params, CacheMode::Refresh));
                asked.settle(NOW, Ok(text(&answer))).expect("given");
            }
        }
    };
    for (told, gone) in [
        ("notifications/tools/list_changed", &["tools/list"][..]),
        ("notifications/prompts/list_changed", &["prompts/list"]),
        ("notifications/resources/list_changed", &["resources/list", "resources/templates/list"]),
        ("notifications/message", &[]),
    ] {
        refill();
        cache.heard(told, None);
        for method in lists {
            for params in [json!({}), json!({"cursor": "2"})] {
                let kept = hit(look(&cache, NOW, method, params)).is_some();
                assert_eq!(kept, !gone.contains(&method), "{told}: {method}");
            }
        }
    }
}

#[test]
fn what_is_read_is_dropped_when_it_or_a_part_of_it_has_changed() {
    let cache = cache(&CacheOptions::default());
    let uris = ["a://dir", "a://dir/1", "a://dir/1/x", "a://dir2", "b://"];
    for (changed, gone) in [
        ("a://dir/1", &["a://dir", "a://dir/1", "a://dir/1/x"][..]),
        ("a://dir2", &["a://dir2"]),
        ("b://thing", &["b://"]),
        ("a://none", &[]),
    ] {
        for uri in uris {
            let asked = asked(look_as(&cache, NOW, "resources/read", json!({"uri": uri}), CacheMode::Refresh));
            asked.settle(NOW, Ok(text(&result(10_000, "private", uri)))).expect("given");
        }
        cache.heard("notifications/resources/updated", Some(&text(&json!({"uri": changed}))));
        for uri in uris {
            let kept = hit(look(&cache, NOW, "resources/read", json!({"uri": uri}))).is_some();
            assert_eq!(kept, !gone.contains(&uri), "{changed}: {uri}");
        }
    }
}

#[test]
fn what_was_asked_for_before_a_change_is_not_kept_after_it() {
    let cache = cache(&CacheOptions::default());
    let before = asked(look(&cache, NOW, "tools/list", json!({})));
    let prompts = asked(look(&cache, NOW, "prompts/list", json!({})));
    cache.heard("notifications/tools/list_changed", None);
    before.settle(NOW, Ok(text(&result(10_000, "public", "old")))).expect("given");
    prompts.settle(NOW, Ok(text(&result(10_000, "public", "p")))).expect("given");
    assert_eq!(hit(look(&cache, NOW, "tools/list", json!({}))), None);
    assert!(hit(look(&cache, NOW, "prompts/list", json!({}))).is_some(), "another list");
}

#[test]
fn what_another_was_told_is_not_undone_by_a_slow_answer() {
    let options = CacheOptions::new().memory(Arc::new(MemoryCache::new(100, 1 << 20)));
    let of = |scope| Cache::new(&options, place("server", scope));
    let (ada, bob) = (of("ada"), of("bob"));
    for scope in ["public", "private"] {
        let slow = asked(look(&bob, NOW, "tools/list", json!({})));
        ada.heard("notifications/tools/list_changed", None);
        fill(&ada, NOW, "tools/list", json!({}), &result(10_000, "private", "new"));
        slow.settle(NOW, Ok(text(&result(10_000, scope, "old")))).expect("given");
        assert_eq!(hit(look(&bob, NOW, "tools/list", json!({}))), None, "{scope}");
        assert_eq!(hit(look(&ada, NOW, "tools/list", json!({}))), Some(result(10_000, "private", "new")), "{scope}");
        ada.forget("tools/list");
    }
    // Answers that are on their way at the same time do not hinder one another.
    let (first, second) = (asked(look(&ada, NOW, "prompts/list", json!({}))), json!({"cursor": "2"}));
    fill(&bob, NOW, "prompts/list", second, &result(10_000, "private", "2"));
    first.settle(NOW, Ok(text(&result(10_000, "private", "1")))).expect("given");
    assert!(hit(look(&ada, NOW, "prompts/list", json!({}))).is_some());
}

#[test]
fn a_wrong_cursor_ends_all_pages_of_its_list() {
    let cache = cache(&CacheOptions::default());
    let answer = result(10_000, "public", "a");
    fill(&cache, NOW, "tools/list", json!({}), &answer);
    fill(&cache, NOW, "prompts/list", json!({}), &answer);
    let unavailable = Error::rpc(-32000, "busy");
    asked(look(&cache, NOW, "tools/list", json!({"cursor": "2"}))).settle(NOW, Err(unavailable)).expect_err("given");
    assert!(hit(look(&cache, NOW, "tools/list", json!({}))).is_some(), "another error");
    let wrong = Error::invalid_params("bad cursor");
    asked(look(&cache, NOW, "tools/list", json!({"cursor": "2"}))).settle(NOW, Err(wrong)).expect_err("given");
    assert_eq!(hit(look(&cache, NOW, "tools/list", json!({}))), None);
    assert!(hit(look(&cache, NOW, "prompts/list", json!({}))).is_some(), "another list");
}

#[test]
fn a_call_may_pass_over_what_is_kept() {
    let cache = cache(&CacheOptions::default());
    let (old, new) = (result(10_000, "public", "old"), result(10_000, "public", "new"));
    fill(&cache, NOW, "tools/list", json!({}), &old);
    assert!(matches!(look_as(&cache, NOW, "tools/list", json!({}), CacheMode::Bypass), Look::Plain));
    assert_eq!(hit(look(&cache, NOW, "tools/list", json!({}))), Some(old));
    let again = asked(look_as(&cache, NOW, "tools/list", json!({}), CacheMode::Refresh));
    again.settle(secs(1), Ok(text(&new))).expect("given");
    assert_eq!(hit(look(&cache, secs(1), "tools/list", json!({}))), Some(new));
}

#[test]
fn an_old_answer_is_given_only_when_that_is_wanted_and_the_server_cannot_be_asked() {
    let lost = || Error::new(ErrorKind::Transport, "the server is gone");
    let late = || Error::new(ErrorKind::Timeout, "no answer");
    let answer = json!({"tools": [], "ttlMs": 1000, "cacheScope": "public", "_meta": {"a/b": 1}});
    let plain = cache(&CacheOptions::default());
    fill(&plain, NOW, "tools/list", json!({}), &answer);
    let error = asked(look(&plain, secs(5), "tools/list", json!({}))).settle(secs(5), Err(lost())).expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Transport);

    let cache = cache(&CacheOptions::default().stale_on_error(true));
    fill(&cache, NOW, "tools/list", json!({}), &answer);
    for error in [lost(), late(), Error::closed("the server has gone")] {
        let given = asked(look(&cache, secs(5), "tools/list", json!({}))).settle(secs(7), Err(error)).expect("stale");
        let expected = json!({"tools": [], "ttlMs": 1000, "cacheScope": "public",
                              "_meta": {"a/b": 1, "tricorn/stale": {"ageMs": 7000}}});
        assert_eq!(given.to::<Value>().expect("json"), expected);
    }
    let refused = asked(look(&cache, secs(5), "tools/list", json!({}))).settle(secs(5), Err(Error::rpc(-32603, "no")));
    assert_eq!(refused.expect_err("the server has answered").code(), Some(-32603));
    let refresh = asked(look_as(&cache, secs(5), "tools/list", json!({}), CacheMode::Refresh));
    assert!(refresh.settle(secs(5), Err(lost())).is_err(), "a kept answer was not wanted");
    // An answer that is known to be another now is not given either.
    let running = asked(look(&cache, secs(5), "tools/list", json!({})));
    cache.heard("notifications/tools/list_changed", None);
    assert!(running.settle(secs(5), Err(lost())).is_err());
    assert_eq!(cache.usage().stale, 3);
    // Whoever closes the client wants nothing more.
    fill(&cache, NOW, "tools/list", json!({}), &answer);
    let running = asked(look(&cache, secs(5), "tools/list", json!({})));
    cache.give_up();
    let error = running.settle(secs(5), Err(Error::closed("the client was closed"))).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[test]
fn digests_say_nothing_and_tell_parts_apart() {
    let of = |parts: &[&str]| digest("headers", parts.iter().copied());
    assert_eq!(of(&["authorization", "Bearer s"]), of(&["authorization", "Bearer s"]));
    assert_ne!(of(&["a", "bc"]), of(&["ab", "c"]));
    assert_ne!(of(&[]), of(&[""]));
    let text = of(&["authorization", "Bearer secret"]);
    assert!(text.len() == 64 && !text.contains("secret"));
}

#[test]
fn a_login_is_a_change_for_nobody_else() {
    let (private, public) = (result(10_000, "private", "mine"), result(10_000, "public", "all"));
    for is_shared in [true, false] {
        let options = CacheOptions::default();
        let options = if is_shared { options.memory(Arc::new(MemoryCache::new(9, 9999))) } else { options };
        let alone = Cache::new(&options, Place { renew: Some(|| "2".into()), ..place("server", "1") });
        fill(&alone, NOW, "tools/list", json!({}), &private);
        fill(&alone, NOW, "prompts/list", json!({}), &public);
        alone.logged_in();
        assert_eq!(hit(look(&alone, NOW, "tools/list", json!({}))), None);
        assert_eq!(hit(look(&alone, NOW, "prompts/list", json!({}))).is_some(), is_shared);
    }
}
