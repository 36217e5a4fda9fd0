//! `tests/auth/discovery`: what servers out there serve, and what comes of it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Map;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    server: String,
    documents: BTreeMap<String, Served>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Served {
    status: u16,
    body: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    challenges: Vec<String>,
    #[serde(default)]
    auth: Auth,
    #[serde(default)]
    documents: BTreeMap<String, Served>,
    callback: Option<String>,
    /// The documents that are asked for, in order.
    asked: Vec<String>,
    #[serde(default)]
    login: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

#[test]
fn servers_out_there_lead_to_a_login_or_to_an_exact_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/auth/discovery");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() >= 8);
    let mut wrong = Map::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("text");
        let file: File = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        for case in &file.cases {
            let mut expected = json!({"asked": case.asked});
            match (&case.login, &case.error) {
                (Some(login), None) => expected["login"] = login.clone(),
                (None, Some(error)) => expected["error"] = error.clone().into(),
                _ => panic!("{name}: {}: either login or error", case.about),
            }
            let came = run(&file, case);
            if came != expected {
                wrong.insert(format!("{name}: {}", case.about), came);
            }
        }
    }
    assert!(wrong.is_empty(), "what came is other than what is written: {:#}", Value::Object(wrong));
}

fn run(file: &File, case: &Case) -> Value {
    let mut world = World::new();
    for (url, served) in file.documents.iter().chain(&case.documents) {
        world = world.with(url, served.status, served.body.clone());
    }
    world.callback = case.callback.clone().unwrap_or_else(|| "code=c".into());
    let challenges: Vec<&str> = case.challenges.iter().map(String::as_str).collect();
    let given = Given { server_url: file.server.clone(), refused: true, ..given(case.auth.clone(), &challenges) };
    let (outcome, _) = world.run(given);
    let asked: Vec<&str> = world.asked.iter().filter_map(|line| line.strip_prefix("GET ")).collect();
    let mut came = json!({"asked": asked});
    match outcome {
        Ok(session) => {
            let page = world.opened.last().map(|url| url.split('?').next().unwrap_or_default());
            let parameter = |name| world.asked_for(name);
            came["login"] = json!({"issuer": session.issuer, "client_id": session.client.client_id, "page": page,
                "token_endpoint": session.token_endpoint, "resource": session.resource, "scope": parameter("scope")});
            assert!(page.is_none() || parameter("code_challenge_method").as_deref() == Some("S256"), "{}", case.about);
            assert_eq!(parameter("resource"), session.resource.filter(|_| page.is_some()), "{}", case.about);
        }
        Err(error) => came["error"] = error.message().into(),
    }
    came
}
