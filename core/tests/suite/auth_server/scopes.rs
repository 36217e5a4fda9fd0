//! Tests of scopes: lists show the permitted entries, and calls without the scopes are answered with one challenge
//! before anything runs.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tricorn::http::HttpOptions;
use tricorn::model::{CacheHints, CacheScope};
use tricorn::prelude::*;
use tricorn::server::{Auth, CacheOptions};

use super::fixture::*;

fn names(answer: &Answer, member: &str, key: &str) -> Vec<String> {
    let all = answer.json["result"][member].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    all.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_show_what_their_reader_may_use() {
    let it = Fixture::with(Mode::Up, |auth| auth.scope_implies("all", ["files:write", "files:list", "notes"]));
    for (scope, tools, resources, templates, prompts) in [
        ("base", &["whoami", "ask", "job"][..], &["notes://open"][..], &[][..], &["greet"][..]),
        ("base files:write", &["whoami", "ask", "job"], &["notes://open"], &[], &["greet"]),
        (
            "base files:write files:list days",
            &["whoami", "ask", "job", "write"],
            &["notes://open"],
            &["days://{day}"],
            &["greet"],
        ),
        (
            "base all plans",
            &["whoami", "ask", "job", "write"],
            &["notes://open", "notes://secret"],
            &[],
            &["plan", "greet"],
        ),
    ] {
        let token = it.token(&json!({"scope": scope}));
        for (method, member, key, expected) in [
            ("tools/list", "tools", "name", tools),
            ("resources/list", "resources", "uri", resources),
            ("resources/templates/list", "resourceTemplates", "uriTemplate", templates),
            ("prompts/list", "prompts", "name", prompts),
        ] {
            let answer = it.ask(&token, method, json!({})).await;
            assert_eq!(names(&answer, member, key), expected, "{scope}: {method}");
            assert_eq!(answer.json["result"]["cacheScope"], "private", "{method}");
            assert!(!answer.text.contains("\"scopes\""), "{answer:?}");
        }
    }
}

/// Returns the requests that need more than `base`, with all the scopes that they need.
fn restricted() -> Vec<(&'static str, Value, &'static str)> {
    let day = json!({"name": "day", "value": ""});
    vec![
        ("tools/call", json!({"name": "write", "arguments": {}}), "base files:write files:list mail"),
        ("resources/read", json!({"uri": "notes://secret"}), "base notes mail"),
        ("resources/read", json!({"uri": "days://monday"}), "base days mail"),
        ("prompts/get", json!({"name": "plan", "arguments": {"day": "x"}}), "base plans mail"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "plan"}, "argument": day}),
            "base plans mail",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "days://{day}"}, "argument": day}),
            "base days mail",
        ),
    ]
}

fn challenged(answer: &Answer, scope: &str) {
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.challenge("error").as_deref(), Some("insufficient_scope"));
    assert_eq!(answer.challenge("scope").as_deref(), Some(scope));
    assert_eq!(answer.challenge("resource_metadata").as_deref(), Some(METADATA));
    assert_eq!(answer.header("content-type"), Some("application/json"), "no stream has begun");
}

#[tokio::test]
async fn one_challenge_names_all_that_a_request_needs() {
    let it = Fixture::new();
    for (method, params, needed) in restricted() {
        // The server's scope, the operation's, and what there is already; and so if not even the server's is there.
        for own in ["base mail offline_access", "mail"] {
            let token = it.token(&json!({"scope": own}));
            let answer = it.ask(&token, method, params.clone()).await;
            challenged(&answer, needed);
            assert_eq!(answer.json["id"], 1);
        }
    }
    assert_eq!(it.ran.load(Ordering::SeqCst), 0);
    let none = it.token(&json!({"scope": null}));
    challenged(&it.ask(&none, "tools/list", json!({})).await, "base");
    let all = it.token(&json!({"scope": "base files:write files:list notes days plans"}));
    for (method, params, _) in restricted() {
        let answer = it.ask(&all, method, params).await;
        assert!(answer.status == 200 && answer.json["result"].is_object(), "{method}: {answer:?}");
    }
    assert_eq!(it.ran.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn so_it_is_in_sessions() {
    let it = Fixture::new();
    let token = it.token(&json!({"scope": "base mail"}));
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = it.post(Some(&token), &[], &initialize(version)).await;
        let session = [("mcp-session-id", opened.header("mcp-session-id").unwrap())];
        for (method, params, needed) in restricted() {
            challenged(&it.post(Some(&token), &session, &legacy(method, &params)).await, needed);
        }
        let subscribe = legacy("resources/subscribe", &json!({"uri": "notes://secret"}));
        challenged(&it.post(Some(&token), &session, &subscribe).await, "base notes mail");
        if version == "2025-03-26" {
            let read = legacy("resources/read", &json!({"uri": "notes://secret"}));
            let call = legacy("tools/call", &json!({"name": "write"}));
            let batch = json!([read, legacy("ping", &json!({})), call]);
            let answer = it.post(Some(&token), &session, &batch).await;
            challenged(&answer, "base notes files:write files:list mail");
        }
        let answer = it.post(Some(&token), &session, &legacy("tools/list", &json!({}))).await;
        assert_eq!(names(&answer, "tools", "name"), ["whoami", "ask", "job"]);
        // More is granted on the way, and the session goes on.
        let more = it.token(&json!({"scope": "base files:write files:list"}));
        let answer = it.post(Some(&more), &session, &legacy("tools/list", &json!({}))).await;
        assert_eq!(names(&answer, "tools", "name"), ["whoami", "ask", "job", "write"]);
        // Streams and ends of sessions need what the server needs.
        let small = format!("Bearer {}", it.token(&json!({"scope": "mail"})));
        for verb in ["GET", "DELETE"] {
            let headers = [session[0], ("accept", "text/event-stream"), ("authorization", small.as_str())];
            challenged(&it.send(verb, "/mcp", &headers, String::new()).await, "base mail");
        }
    }
    assert_eq!(it.ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_listener_hears_of_what_it_may_read() {
    use http_body_util::BodyExt;
    let it = Fixture::new();
    let filter = json!({"resourceSubscriptions": ["notes://open", "notes://secret", "days://monday"]});
    let mut stream = it.listen(&it.token(&json!({})), &filter).await;
    let first = String::from_utf8(stream.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
    assert!(first.contains("notes://open") && !first.contains("secret") && !first.contains("monday"), "{first}");
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_opened_it() {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;
    let it = Fixture::new();
    let filter = json!({"toolsListChanged": true});
    let open = async |exp: u64| it.listen(&it.token(&json!({"exp": exp})), &filter).await;
    // Clocks may differ by 60 s, of which the first has five left.
    let (short, mut long) = (open(now() - 55).await, open(now()).await);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), short.collect());
    let text = String::from_utf8(ended.await.expect("an end").unwrap().to_bytes().to_vec()).unwrap();
    assert!(text.ends_with(": closed: the access token has expired\n\n"), "{text}");
    // No answer: it has not ended in order, so its client comes again.
    assert!(!text.contains("resultType"), "{text}");
    assert!(long.frame().await.is_some() && long.frame().now_or_never().is_none());
}

#[tokio::test]
async fn without_tokens_scopes_are_nobodys_over_http() {
    let tool = || Tool::new("write", "").scopes(["files:write"]);
    let server = Server::new("s").tool_with(tool(), |_: Nothing| async { Ok("done") });
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let body = modern("tools/call", json!({"name": "write", "arguments": {}}));
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request = request.header("mcp-protocol-version", MODERN).header("mcp-method", "tools/call");
    let request = request.header("mcp-name", "write").header("accept", "application/json");
    let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
    let answer = Answer::of(endpoint.handle(request.body(body).unwrap()).await).await;
    assert_eq!(answer.json["error"]["code"], -32600, "{answer:?}");
    // In the same process there is nobody to keep out.
    let client = Client::in_memory(&server, &ClientOptions::default()).await.unwrap();
    assert_eq!(client.call_tool("write", json!({})).await.unwrap().text(), "done");
}

#[cfg(feature = "files")]
#[tokio::test]
async fn files_and_directories_need_scopes_too() {
    use tricorn::server::files::{Directory, File};
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/auth_server");
    let directory = |uri: &str| Directory::new(here, uri).unwrap();
    let secret = File::new(format!("{here}/fixture.rs"), "file:///secret.rs").unwrap().scopes(["secrets"]);
    let server = Server::new("files")
        .cache(CacheOptions::new().read(CacheHints::new().scope(CacheScope::Public)))
        .file(secret)
        .directory(directory("file:///open"))
        .directory(directory("file:///open/inner").scopes(["inner"]))
        .directory(directory("file:///closed").scopes(["closed"]));
    let auth = Auth::issuer(ISSUER).resource(RESOURCE).required_scopes(["base"]);
    let it = Fixture::serving(server, Authority::new(Mode::Up), auth);
    let listed = async |token: &str| {
        let (mut found, mut cursor) = (Vec::new(), json!({}));
        loop {
            let answer = it.ask(token, "resources/list", cursor).await;
            assert_eq!(answer.json["result"]["cacheScope"], "private", "{answer:?}");
            found.extend(names(&answer, "resources", "uri").into_iter().filter(|uri| uri.ends_with("/scopes.rs")));
            found.extend(names(&answer, "resources", "uri").into_iter().filter(|uri| uri.ends_with("/secret.rs")));
            match answer.json["result"].get("nextCursor") {
                Some(next) => cursor = json!({"cursor": next}),
                None => return found,
            }
        }
    };
    let token = it.token(&json!({"scope": "base"}));
    assert_eq!(listed(&token).await, ["file:///open/scopes.rs"]);
    let read = async |token: &str, uri: &str| it.ask(token, "resources/read", json!({"uri": uri})).await;
    assert_eq!(read(&token, "file:///open/scopes.rs").await.status, 200);
    // Of what is not there, too, nobody hears without the scope.
    for (uri, needed) in [
        ("file:///secret.rs", "base secrets"),
        ("file:///open/inner/scopes.rs", "base inner"),
        ("file:///closed/scopes.rs", "base closed"),
        ("file:///closed/nothing.rs", "base closed"),
    ] {
        challenged(&read(&token, uri).await, needed);
    }
    let token = it.token(&json!({"scope": "base secrets closed"}));
    assert_eq!(
        listed(&token).await,
        ["file:///secret.rs", "file:///closed/scopes.rs", "file:///open/scopes.rs"],
        "what needs other scopes is not there"
    );
    for uri in ["file:///secret.rs", "file:///closed/scopes.rs"] {
        let answer = read(&token, uri).await;
        assert_eq!(answer.json["result"]["cacheScope"], "private", "{answer:?}");
    }
    assert_eq!(read(&token, "file:///open/scopes.rs").await.json["result"]["cacheScope"], "public");
}

#[cfg(feature = "files")]
#[tokio::test]
async fn what_lies_inside_a_directory_keeps_its_scopes_in_every_spelling() {
    use tricorn::server::files::{Directory, File};
    let root = std::env::temp_dir().join(format!("tricorn-inside-{}", std::process::id()));
    for (name, text) in [("open.txt", "o"), ("private/plan.txt", "p"), ("secret.rs", "s"), ("apart/a.txt", "a")] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    #[cfg(unix)]
    for (to, name) in [("private", "alias"), ("private/plan.txt", "link.txt")] {
        let _ = std::fs::remove_file(root.join(name));
        std::os::unix::fs::symlink(root.join(to).strip_prefix(&root).unwrap(), root.join(name)).unwrap();
    }
    let directory = |path: &str, uri: &str| Directory::new(root.join(path), uri).unwrap();
    let secret = File::new(root.join("secret.rs"), "file:///srv/docs/secret.rs").unwrap().scopes(["secrets"]);
    let server = Server::new("files")
        .directory(directory("", "file:///srv/docs"))
        .directory(directory("private", "file:///srv/docs/private").scopes(["private"]))
        .directory(directory("apart", "apart://here").scopes(["apart"]))
        .resource(Resource::new("file:///srv/docs/a+b", "made").scopes(["made"]), || async { Ok("made") })
        .file(secret)
        .on_complete(|_: Value| async { Ok(json!(["x"])) });
    let auth = Auth::issuer(ISSUER).resource(RESOURCE).required_scopes(["base"]);
    let it = Fixture::serving(server, Authority::new(Mode::Up), auth);
    let (few, all) =
        (it.token(&json!({"scope": "base"})), it.token(&json!({"scope": "base private secrets apart made"})));
    let opened = it.post(Some(&few), &[], &initialize("2025-11-25")).await;
    let session = [("mcp-session-id", opened.header("mcp-session-id").unwrap())];
    for (uri, needed) in [
        ("private/plan.txt", "base private"),
        ("%70rivate/plan.txt", "base private"),
        ("%70rivate/nothing.txt", "base private"),
        ("secret%2Ers", "base secrets"),
        ("apart/a.txt", "base apart"),
        ("%61part/a%2Etxt", "base apart"),
        ("a%2bb", "base made"),
    ] {
        let uri = format!("file:///srv/docs/{uri}");
        challenged(&it.ask(&few, "resources/read", json!({"uri": uri})).await, needed);
        let subscribe = legacy("resources/subscribe", &json!({"uri": uri}));
        challenged(&it.post(Some(&few), &session, &subscribe).await, needed);
        let argument = json!({"name": "x", "value": ""});
        let complete = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument});
        challenged(&it.ask(&few, "completion/complete", complete).await, needed);
        let read = it.ask(&all, "resources/read", json!({"uri": uri})).await;
        let is_there = !uri.contains("nothing") && !uri.contains("bb");
        assert_eq!(read.json["result"]["contents"][0]["text"].is_string(), is_there, "{read:?}");
        if is_there {
            assert_eq!(read.json["result"]["cacheScope"], "private", "{read:?}");
        }
    }
    let listed = async |token: &str| {
        let (mut found, mut cursor) = (Vec::new(), json!({}));
        loop {
            let answer = it.ask(token, "resources/list", cursor).await;
            found.extend(names(&answer, "resources", "uri"));
            match answer.json["result"].get("nextCursor") {
                Some(next) => cursor = json!({"cursor": next}),
                None => return found,
            }
        }
    };
    assert_eq!(listed(&few).await, ["file:///srv/docs/open.txt"]);
    assert!(listed(&all).await.contains(&"file:///srv/docs/private/plan.txt".to_owned()));
    #[cfg(unix)]
    for name in ["alias/plan.txt", "alias/nothing.txt", "link.txt"] {
        // Where a name leads is found out when the request runs already.
        let params = json!({"uri": format!("file:///srv/docs/{name}")});
        let answer = it.ask(&few, "resources/read", params.clone()).await;
        assert_eq!(answer.json["error"]["code"], -32600, "{answer:?}");
        assert!(answer.text.contains("private"), "{answer:?}");
        let read = it.ask(&all, "resources/read", params).await;
        assert_eq!(read.json["result"]["contents"].is_array(), !name.contains("nothing"), "{read:?}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}
