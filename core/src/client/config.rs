//! The configuration files in which hosts list their servers.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Stderr, Target};
use crate::error::{Error, Result, shortened};

/// Members of an entry that say how to connect; hosts keep other things beside them.
const MEMBERS: [&str; 8] = ["type", "url", "headers", "command", "args", "env", "cwd", "stderr"];

/// Whether a text is meant as the path of such a file: a URL or a command line may end in one, too.
pub(super) fn is_path(text: &str) -> bool {
    !super::options::is_http(text)
        && text.ends_with(".json")
        && (!text.contains(char::is_whitespace) || Path::new(text).is_file())
}

/// Refuses what ends like the path of such a file that is not there, and begins with no program either.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming both.
pub(super) fn check_command(line: &str, program: &str) -> Result<()> {
    let looks_like_path = line.ends_with(".json") && line.contains(char::is_whitespace);
    if !looks_like_path || is_program(program) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "target {line:?}: there is no such file, and no program {program:?} for a command line either"
    )))
}

fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The server of this name, or the only one. Its standard error goes to `stderr` if its entry does not say.
pub(super) fn read(path: &Path, server: Option<&str>, stderr: Option<&str>) -> Result<Target> {
    let config = load(path)?;
    let servers = servers(&config).ok_or_else(|| no_servers(path))?;
    pick(servers, server, stderr).map_err(|e| bad(path, e.message()))
}

/// All servers that are not disabled, in their order.
pub(super) fn read_all(path: &Path, stderr: Option<&str>) -> Result<Vec<(String, Result<Target>)>> {
    all(&load(path)?, stderr).ok_or_else(|| no_servers(path))
}

/// As [`read_all`], of what such a file holds; `None` when it holds no servers.
pub(super) fn all(config: &Map<String, Value>, stderr: Option<&str>) -> Option<Vec<(String, Result<Target>)>> {
    let enabled = servers(config)?.iter().filter(|(_, entry)| entry.get("disabled") != Some(&Value::Bool(true)));
    let named = |name: &String, entry| match name.is_empty() {
        true => Err(Error::misuse("server \"\": expected a name that is not empty")),
        false => target(name, entry, stderr),
    };
    Some(enabled.map(|(name, entry)| (name.clone(), named(name, entry))).collect())
}

fn bad(path: &Path, why: &str) -> Error {
    Error::misuse(format!("{}: {why}", path.display()))
}

fn no_servers(path: &Path) -> Error {
    bad(path, "no object \"mcpServers\" in it")
}

fn load(path: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(path).map_err(|e| bad(path, &e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| bad(path, &e.to_string()))
}

/// `{"text"}`, `{"file"}` or `{"mcpServers"}`, each with `"stderr"?` and, where there are several to choose from,
/// `"server"?`; `None` for any other target.
pub(super) fn named(text: &str) -> Result<Option<Target>> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Named {
        text: Option<String>,
        file: Option<String>,
        server: Option<String>,
        stderr: Option<String>,
    }
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else { return Ok(None) };
    let own = members.iter().filter(|(name, _)| ["text", "file", "server", "stderr"].contains(&name.as_str()));
    let named: Named = serde_json::from_value(own.map(|(k, v)| (k.clone(), v.clone())).collect())
        .map_err(|e| Error::misuse(format!("target: {e}")))?;
    let (server, stderr) = (named.server.as_deref(), named.stderr.as_deref());
    if let Some(servers) = servers(&members) {
        return pick(servers, server, stderr).map(Some);
    }
    let text = named.text.as_deref().map(str::trim);
    text.map_or(Ok(()), super::options::check_scheme)?;
    if let Some(file) = named.file.as_deref().or_else(|| text.filter(|text| is_path(text))) {
        return read(Path::new(file), server, stderr).map(Some);
    }
    if server.is_some() {
        return Err(Error::misuse("server: only a configuration file has several to choose from"));
    }
    let Some(text) = text else { return Ok(None) };
    let mut target = Target::from_text(text)?;
    if let (Target::Command { stderr: place, .. }, Some(name)) = (&mut target, stderr) {
        *place = Stderr::parse(name)?;
    }
    Ok(Some(target))
}

/// Hosts agree on the shape but not on the name.
fn servers(config: &Map<String, Value>) -> Option<&Map<String, Value>> {
    ["mcpServers", "servers"].iter().find_map(|name| config.get(*name)?.as_object())
}

fn pick(servers: &Map<String, Value>, server: Option<&str>, stderr: Option<&str>) -> Result<Target> {
    let known = || match servers.is_empty() {
        true => "there is none".to_owned(),
        false => servers.keys().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", "),
    };
    let (name, entry) = match server {
        Some(name) => (name, servers.get(name)),
        None if servers.len() == 1 => servers.iter().next().map_or(("", None), |(name, entry)| (name, Some(entry))),
        None => return Err(Error::misuse(format!("say which server is meant (\"server\"): {}", known()))),
    };
    let entry = entry.ok_or_else(|| Error::misuse(format!("no server {name:?}, only: {}", known())))?;
    target(name, entry, stderr)
}

/// What an entry says of how to connect.
fn target(name: &str, entry: &Value, stderr: Option<&str>) -> Result<Target> {
    let bad = |why: &str| Error::misuse(format!("server {name:?}: {why}"));
    let entry = entry.as_object().ok_or_else(|| bad("expected an object"))?;
    if let Some(disabled) = entry.get("disabled").filter(|value| !value.is_boolean() && !value.is_null()) {
        return Err(bad(&format!(
            "\"disabled\": expected true or false, got {}",
            shortened(&disabled.to_string(), 60)
        )));
    }
    let own = entry.iter().filter(|(name, _)| MEMBERS.contains(&name.as_str()));
    let own = own.map(|(k, v)| Ok((k.clone(), expanded(v, &variable).map_err(|why| bad(&format!("{k:?}: {why}")))?)));
    let mut own: Map<String, Value> = own.collect::<Result<_>>()?;
    if own.contains_key("command") {
        // Hosts start it as it stands, spaces and all.
        own.entry("args").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(stderr) = stderr {
            own.entry("stderr").or_insert_with(|| stderr.into());
        }
    }
    Target::parse(&Value::Object(own).to_string()).map_err(|e| bad(e.message()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A member in whose texts `${VAR}` stands for an environment variable, and `${VAR:-default}` for what to take when it is
/// not set or empty, as hosts have it. What comes in is not looked at again.
///
/// # Errors
/// The variable that is not set.
fn expanded(value: &Value, variable: &impl Fn(&str) -> Option<String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expanded_text(text, variable)?),
        Value::Array(items) => items.iter().map(|item| expanded(item, variable)).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), expanded(value, variable)?));
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn expanded_text(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let inside = after.split_once('}');
        let parts = inside.map(|(inside, rest)| match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default), rest),
            None => (inside, None, rest),
        });
        match parts {
            // Something of the program's own, such as `${input:key}`.
            None => {
                out.push_str("${");
                rest = after;
            }
            Some((name, ..)) if !is_name(name) => {
                out.push_str("${");
                rest = after;
            }
            Some((name, default, left)) => {
                let set = variable(name).filter(|value| default.is_none() || !value.is_empty());
                match set.or_else(|| default.map(str::to_owned)) {
                    Some(value) => out.push_str(&value),
                    None => return Err(format!("the environment variable {name:?} is not set, and has no default")),
                }
                rest = left;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_of_the_environment_are_expanded() {
        let variable = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("a${A}b${A}", "a1b1"),
            ("${A:-2}${NONE:-2}${EMPTY:-3}${EMPTY}", "123"),
            ("${NONE:-}x", "x"),
            ("${NESTED}", "${A}"),
            ("$A ${} ${input:key} ${A", "$A ${} ${input:key} ${A"),
            ("${NONE:-http://h:8}", "http://h:8"),
        ] {
            assert_eq!(expanded_text(text, &variable).as_deref(), Ok(expected), "{text}");
        }
        let members = json!({"args": ["${A}", 1], "env": {"${A}": "${A}", "x": null}});
        let expected = json!({"args": ["1", 1], "env": {"${A}": "1", "x": null}});
        assert_eq!(expanded(&members, &variable), Ok(expected));
        let entry = json!({"mcpServers": {"a": {"command": "x", "env": {"K": "${TRICORN_TEST_IS_NOT_SET}"}}}});
        let error = Target::parse(&entry.to_string()).expect_err("not set");
        assert!(error.message().contains("server \"a\": \"env\""), "{error}");
        assert!(error.message().contains("\"TRICORN_TEST_IS_NOT_SET\" is not set"), "{error}");
        let entry = json!({"mcpServers": {"a": {"command": "${TRICORN_TEST_IS_NOT_SET:-x y}", "note": "${NONE}"}}});
        assert_eq!(command(Target::parse(&entry.to_string())).0, "x y");
    }

    fn command(target: Result<Target>) -> (String, Vec<String>, Stderr) {
        match target.expect("a target") {
            Target::Command { command, args, stderr, .. } => (command, args, stderr),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_configuration_file_is_a_target() {
        let path = std::env::temp_dir().join(format!("tricorn {} mcp.json", std::process::id()));
        let one =
            json!({"mcpServers": {"a": {"type": "stdio", "command": "server", "args": ["x"], "disabled": false}}});
        std::fs::write(&path, one.to_string()).expect("written");
        let text = path.to_str().expect("text");
        let expected = ("server".to_owned(), vec!["x".to_owned()], Stderr::Inherit);
        assert_eq!(command(Target::from_text(text)), expected);
        assert_eq!(command(Target::from_file(&path, Some("a"))), expected);
        let event = json!({"file": text, "stderr": "event"}).to_string();
        assert_eq!(command(Target::parse(&event)).2, Stderr::Event);
        let chosen = json!({"text": text, "server": "a", "stderr": "event"}).to_string();
        assert_eq!(command(Target::parse(&chosen)).2, Stderr::Event);
        let line = json!({"text": "server x", "stderr": "event"}).to_string();
        assert_eq!(command(Target::parse(&line)), (expected.0, expected.1, Stderr::Event));
        for choice in [r#"{"text": "server x", "server": "a"}"#, r#"{"url": "http://h/mcp", "server": "a"}"#] {
            let nothing = Target::parse(choice).expect_err("no file");
            assert!(nothing.message().contains("server: only a configuration file"), "{nothing}");
        }
        let url = Target::parse(r#"{"text": " https://h/mcp.json ", "stderr": "event"}"#);
        assert!(matches!(url, Ok(Target::Url { url, .. }) if url == "https://h/mcp.json"));
        // The end of a command line, not a file.
        let line = format!("env --config {}", text.replace(' ', "-"));
        assert_eq!(command(Target::from_text(&line)).0, "env");
        std::fs::remove_file(&path).expect("removed");
        for gone in [Target::from_file(&path, None), Target::from_text("missing.json")] {
            assert_eq!(gone.expect_err("no file").kind(), crate::ErrorKind::Misuse);
        }
        for line in [text, "no-such-program mcp.json"] {
            let error = Target::from_text(line).expect_err("neither");
            assert!(error.message().contains("no such file, and no program"), "{error}");
        }
    }

    #[test]
    fn an_entry_is_taken_as_it_stands() {
        let target = |entry: Value| {
            let config = json!({"mcpServers": null, "servers": {"a": entry}, "stderr": "event"});
            command(Target::parse(&config.to_string()))
        };
        assert_eq!(target(json!({"command": "my server"})), ("my server".into(), Vec::new(), Stderr::Event));
        assert_eq!(target(json!({"command": "x", "stderr": "discard"})).2, Stderr::Discard);
    }

    #[test]
    fn a_mistake_in_one_entry_is_that_entry_s() {
        let config = json!({"mcpServers": {
            "good": {"type": "stdio", "command": "x", "disabled": false},
            "off": {"type": "none", "disabled": true},
            "maybe": {"command": "x", "disabled": "yes"},
            "pigeon": {"type": "carrier-pigeon", "url": "http://h"},
            "mixed": {"type": "http", "command": "x"},
        }});
        let Value::Object(config) = config else { panic!("an object") };
        let found = all(&config, None).expect("servers");
        let said = |name: &str| {
            let (_, target) = found.iter().find(|(n, _)| n == name).expect(name);
            target.as_ref().err().map(|error| error.message().to_owned()).unwrap_or_default()
        };
        assert_eq!((found.len(), &*said("good")), (4, ""));
        assert_eq!(said("maybe"), r#"server "maybe": "disabled": expected true or false, got "yes""#);
        assert!(
            said("pigeon").starts_with(r#"server "pigeon": target "type": expected "stdio""#),
            "{}",
            said("pigeon")
        );
        assert_eq!(said("mixed"), r#"server "mixed": target "type": "http" has a "url", and not a "command""#);
    }

    #[test]
    #[expect(deprecated, reason = "it is one of them")]
    fn one_of_several_servers_is_named() {
        let config = |server: Value| {
            let servers = json!({"a": {"command": "x"}, "b": {"url": "http://h/mcp", "headers": {"k": "v"}}, "c": {}});
            Target::parse(&json!({"servers": servers, "server": server}).to_string())
        };
        assert!(matches!(config("b".into()), Ok(Target::Url { headers, .. }) if headers["k"] == "v"));
        let older = json!({"mcpServers": {"a": {"type": "sse", "url": "http://h/sse"}}}).to_string();
        assert!(matches!(Target::parse(&older), Ok(Target::Sse { .. })));
        for (server, part) in [
            (Value::Null, "\"a\", \"b\", \"c\""),
            ("d".into(), "no server \"d\""),
            ("c".into(), "server \"c\": target: expected \"url\" or \"command\""),
        ] {
            let error = config(server).expect_err(part);
            assert!(error.message().contains(part), "{error}");
        }
        let none = Target::parse(r#"{"mcpServers": {}}"#).expect_err("none");
        assert!(none.message().contains("there is none"), "{none}");
    }
}
