//! Targets of a client, as people and their hosts write them.

use std::collections::BTreeMap;

use super::{SLOWEST, Target as Fuzzed, mutate, run, shown, sort};
use crate::client::Target;
use crate::error::{Error, ErrorKind, Result};

const MEMBERS: &[&str] = &[
    "mcpServers",
    "servers",
    "mcp",
    "mcp.servers",
    "context_servers",
    "server",
    "a",
    "b",
    "type",
    "stdio",
    "sse",
    "http",
    "streamable-http",
    "url",
    "https://h.example/mcp",
    "serverUrl",
    "httpUrl",
    "transport",
    "headers",
    "Authorization",
    "command",
    "args",
    "env",
    "cwd",
    "stderr",
    "event",
    "disabled",
    "enabled",
    "variables",
    "input:key",
    "${input:key}",
    "${TRICORN_FUZZ_IS_NOT_SET:-x}",
    "${",
    "}",
    "A=B",
    "// note\n",
    "/*",
    ",",
];

#[test]
fn configurations() {
    let (name, property) = ("configurations", configured as fn(&[u8]) -> u64);
    run(&Fuzzed { name, property, mutate: mutate::json_text, words: MEMBERS, slowest: SLOWEST });
}

/// A file of a host gives a target that can be connected to, or says what is wrong. Another file is never read here: no
/// word names one.
fn configured(input: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(input);
    if ["envFile", "\"file\"", "\"text\"", "\\u"].iter().any(|part| text.contains(part)) {
        return 0;
    }
    let variables = BTreeMap::from([("input:key".to_owned(), "secret".to_owned())]);
    let path = std::env::temp_dir().join(format!("tricorn-fuzz-{}.json", std::process::id()));
    std::fs::write(&path, input).expect("a file");
    let read = [None, Some("a")].map(|server| Target::from_file_with(&path, server, &variables));
    std::fs::remove_file(&path).expect("removed");
    let mut said = String::new();
    for target in &read {
        is_target(target, input);
        if let Ok(Target::Command { env, .. }) = target {
            let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
            assert!(env.keys().all(is_name), "{env:?}: {}", shown(input));
        }
        // The message begins with the path of the file.
        let why = target.as_ref().err().map_or("taken", Error::message);
        said.push_str(why.split_once(".json").map_or(why, |(_, why)| why));
    }
    is_target(&Target::parse_with(&text, &variables), input);
    sort(&said)
}

fn is_target(target: &Result<Target>, input: &[u8]) {
    match target {
        Ok(Target::Command { .. }) => {}
        Ok(other) => {
            let shown = format!("{other:?}");
            let is_url = ["url: \"http://", "url: \"https://"].iter().any(|part| shown.to_lowercase().contains(part));
            assert!(is_url, "{shown}");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Misuse, "{error}: {}", shown(input)),
    }
}

const TEXTS: &[&str] = &[
    "https://",
    "http://h:1/mcp",
    "HTTP://",
    "ftp://",
    "user:pw@",
    "localhost:3000/mcp",
    "[::1]:80",
    "npx -y server",
    "uvx",
    "'a b'",
    "\"",
    "'",
    "\\",
    " ",
    "#",
    "?",
    ".json",
    "C:\\",
    "--",
    "\0",
    "é",
    "$(x)",
];

#[test]
fn texts() {
    run(&Fuzzed { name: "texts", property: given, mutate: mutate::bytes, words: TEXTS, slowest: SLOWEST });
}

/// A text gives a target, or an error that repeats no secret of a URL.
fn given(input: &[u8]) -> u64 {
    const SECRET: &str = "?token=s3cr3t";
    let text = String::from_utf8_lossy(input);
    let target = Target::from_text(&text);
    is_target(&target, input);
    if let Err(error) = &target {
        assert!(error.message().len() <= 2000 + 10 * text.len(), "{}", shown(error.message().as_bytes()));
    }
    if let Ok(Target::Url { url, .. }) = &target {
        assert_eq!(url, text.trim());
    }
    let secret = format!("{}{SECRET}", text.trim());
    if !secret.contains(['"', '\'', '\\']) && cfg!(feature = "stdio") {
        let told = Target::from_text(&secret);
        if let Err(error) = told {
            assert!(!error.message().contains("s3cr3t"), "{error}: {}", shown(input));
        }
    }
    sort(target.as_ref().err().map_or("taken", Error::message))
}
