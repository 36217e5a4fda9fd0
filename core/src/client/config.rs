//! The configuration files in which hosts list their servers.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Stderr, Target};
use crate::error::{Error, Reason, Result, shortened};

/// Members of an entry that say how to connect; hosts keep other things beside them.
const MEMBERS: [&str; 8] = ["type", "url", "headers", "command", "args", "env", "cwd", "stderr"];
/// The objects that hosts keep their servers in: Claude, Cursor and most others; VS Code and its settings; Zed.
const ROOTS: [&[&str]; 5] =
    [&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp.servers"], &["context_servers"]];
/// Headers that the transport sets itself. Servers' pages tell people to write them into these files.
const OWNED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];
/// The longest file of variables (`envFile`), in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Values of placeholders, by the text between their braces (`input:key`, `workspaceFolder`, `TOKEN`): before the
/// environment.
pub(super) type Variables = BTreeMap<String, String>;

/// Returns true if a text is meant as the path of such a file: a URL or a command line may end in one, too.
pub(super) fn is_path(text: &str) -> bool {
    !super::target::is_url(text)
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

#[cfg(windows)]
fn is_program(name: &str) -> bool {
    super::programs::Search::new(&BTreeMap::new(), None).find(name).is_some()
}

#[cfg(not(windows))]
fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The server of this name, or the only one. Its standard error goes to `stderr` if its entry does not say.
pub(super) fn read(path: &Path, server: Option<&str>, stderr: Option<&str>, variables: &Variables) -> Result<Target> {
    let config = load(path)?;
    let servers = servers(&config).ok_or_else(|| bad(path, &no_servers(&config)))?;
    pick(servers, server, stderr, variables).map_err(|e| {
        let message = format!("{}: {}", path.display(), e.message());
        e.reworded(message)
    })
}

/// All servers that are not disabled, in their order.
pub(super) fn read_all(
    path: &Path,
    stderr: Option<&str>,
    variables: &Variables,
) -> Result<Vec<(String, Result<Target>)>> {
    let config = load(path)?;
    all(&config, stderr, variables).ok_or_else(|| bad(path, &no_servers(&config)))
}

/// As [`read_all`], of what such a file holds; `None` when it holds no servers.
pub(super) fn all(
    config: &Map<String, Value>,
    stderr: Option<&str>,
    variables: &Variables,
) -> Option<Vec<(String, Result<Target>)>> {
    let enabled = servers(config)?.iter().filter(|(_, entry)| !is_disabled(entry));
    let named = |name: &String, entry| match name.is_empty() {
        true => Err(Error::misuse("server \"\": expected a name that is not empty")),
        false => target(name, entry, stderr, variables),
    };
    Some(enabled.map(|(name, entry)| (name.clone(), named(name, entry))).collect())
}

fn bad(path: &Path, why: &str) -> Error {
    Error::misuse(format!("{}: {why}", path.display()))
}

/// Says why there are none.
fn no_servers(config: &Map<String, Value>) -> String {
    match config.get("mcpServers") {
        Some(odd) => format!("target \"mcpServers\": expected an object, got {}", crate::options::type_of(odd)),
        None => "no object \"mcpServers\", \"servers\" or \"context_servers\" in it".to_owned(),
    }
}

fn load(path: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(path).map_err(|e| bad(path, &e.to_string()))?;
    let text = text.trim_start_matches('\u{feff}');
    if let Ok(config) = serde_json::from_str(text) {
        return Ok(config);
    }
    // Some hosts have comments and commas at the end in them.
    match jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err(bad(path, "expected an object")),
        Err(e) => Err(bad(path, &e.to_string())),
    }
}

/// `{"text"}`, `{"file"}` or `{"mcpServers"}`, each with `"stderr"?` and, where there are several to choose from,
/// `"server"?`; `None` for any other target.
pub(super) fn named(text: &str, variables: &Variables) -> Result<Option<Target>> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Named {
        text: Option<String>,
        file: Option<String>,
        server: Option<String>,
        stderr: Option<String>,
        variables: Variables,
    }
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else { return Ok(None) };
    let own =
        members.iter().filter(|(name, _)| ["text", "file", "server", "stderr", "variables"].contains(&name.as_str()));
    let mut named: Named = serde_json::from_value(own.map(|(k, v)| (k.clone(), v.clone())).collect())
        .map_err(|e| Error::misuse(format!("target: {e}")))?;
    for (name, value) in variables {
        named.variables.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let (server, stderr) = (named.server.as_deref(), named.stderr.as_deref());
    if let Some(servers) = servers(&members) {
        return pick(servers, server, stderr, &named.variables).map(Some);
    }
    if members.contains_key("mcpServers") {
        return Err(Error::misuse(no_servers(&members)));
    }
    let text = named.text.as_deref().map(str::trim);
    text.map_or(Ok(()), super::target::check_scheme)?;
    if let Some(file) = named.file.as_deref().or_else(|| text.filter(|text| is_path(text))) {
        return read(Path::new(file), server, stderr, &named.variables).map(Some);
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
    let (first, others) = (config.get("mcpServers").and_then(Value::as_object), &ROOTS[1..]);
    let at = |root: &&[&str]| {
        let (last, above) = root.split_last()?;
        let found = above.iter().try_fold(config, |config, name| config.get(*name)?.as_object())?;
        found.get(*last)?.as_object()
    };
    // Gemini and others have an object of settings of that name beside their servers.
    let only = || config.get("mcp")?.as_object().filter(|all| !all.is_empty() && all.values().all(is_entry));
    first.or_else(|| others.iter().find_map(at)).or_else(only)
}

fn is_entry(value: &Value) -> bool {
    ["command", "url", "serverUrl", "httpUrl"].iter().any(|name| value.get(*name).is_some())
}

/// As hosts write it, one way or the other.
fn is_disabled(entry: &Value) -> bool {
    entry.get("disabled") == Some(&Value::Bool(true)) || entry.get("enabled") == Some(&Value::Bool(false))
}

fn pick(
    servers: &Map<String, Value>,
    server: Option<&str>,
    stderr: Option<&str>,
    variables: &Variables,
) -> Result<Target> {
    let known = || match servers.is_empty() {
        true => "there is none".to_owned(),
        false => servers.keys().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", "),
    };
    let (name, entry) = match server {
        Some(name) => (name, servers.get(name)),
        None if servers.len() == 1 => servers.iter().next().map_or(("", None), |(name, entry)| (name, Some(entry))),
        None => {
            let message = format!("say which server is meant (\"server\"): {}", known());
            return Err(Error::misuse(message).because(Reason::NoServerNamed));
        }
    };
    let entry = entry.ok_or_else(|| Error::misuse(format!("no server {name:?}, only: {}", known())))?;
    if server.is_none() && is_disabled(entry) {
        return Err(Error::misuse(format!("server {name:?} is disabled: name it (\"server\") to use it all the same")));
    }
    target(name, entry, stderr, variables)
}

/// Reads the target of an entry.
fn target(name: &str, entry: &Value, stderr: Option<&str>, variables: &Variables) -> Result<Target> {
    let bad = |why: &str| Error::misuse(format!("server {name:?}: {why}"));
    let entry = entry.as_object().ok_or_else(|| bad("expected an object"))?;
    for key in ["disabled", "enabled"] {
        if let Some(value) = entry.get(key).filter(|value| !value.is_boolean() && !value.is_null()) {
            let got = shortened(&value.to_string(), 60).into_owned();
            return Err(bad(&format!("{key:?}: expected true or false, got {got}")));
        }
    }
    let entry = in_own_words(name, entry).map_err(|why| bad(&why))?;
    let lookup = |name: &str| variables.get(name).cloned().or_else(|| std::env::var(name).ok());
    let known = Known { variables, environment: &lookup };
    let own = entry.iter().filter(|(name, _)| MEMBERS.contains(&name.as_str()));
    let own = own.map(|(k, v)| Ok((k.clone(), expanded(v, &known).map_err(|why| bad(&format!("{k:?}: {why}")))?)));
    let mut own: Map<String, Value> = own.collect::<Result<_>>()?;
    if let Some(file) = entry.get("envFile").filter(|file| !file.is_null()) {
        let file = expanded(file, &known).map_err(|why| bad(&format!("\"envFile\": {why}")))?;
        let path = file.as_str().ok_or_else(|| bad(&format!("\"envFile\": expected a path, got {file}")))?;
        let mut all = env_file(path).map_err(|why| bad(&format!("\"envFile\" {path:?}: {why}")))?;
        if let Some(Value::Object(env)) = own.remove("env") {
            all.extend(env);
        }
        own.insert("env".to_owned(), Value::Object(all));
    }
    if own.contains_key("command") {
        // Hosts start it as it stands, spaces and all.
        own.entry("args").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(stderr) = stderr {
            own.entry("stderr").or_insert_with(|| stderr.into());
        }
    }
    Target::parse(&Value::Object(own).to_string()).map_err(|e| bad(e.message()))
}

/// An entry with the members that hosts spell otherwise under the names that they have here.
fn in_own_words(server: &str, entry: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut out: Map<String, Value> =
        entry.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    // `{"transport": {"type", "url"}}` and `{"transport": "sse"}`; Zed's older `{"command": {"path", "args", "env"}}`.
    match out.remove("transport") {
        Some(Value::Object(transport)) => transport.into_iter().for_each(|(key, value)| {
            out.entry(key).or_insert(value);
        }),
        Some(Value::String(kind)) => {
            out.entry("type").or_insert(Value::String(kind));
        }
        Some(other) => return Err(format!("\"transport\": expected a name or an object, got {other}")),
        None => {}
    }
    if let Some(Value::Object(command)) = out.get("command").cloned() {
        out.remove("command");
        for (key, value) in command {
            let key = if key == "path" { "command".to_owned() } else { key };
            out.entry(key).or_insert(value);
        }
    }
    for alias in ["serverUrl", "httpUrl"] {
        if let Some(url) = out.remove(alias) {
            out.entry("url").or_insert(url);
        }
    }
    if let Some(Value::String(url)) = out.get_mut("url") {
        *url = url.trim().to_owned();
    }
    if let Some(Value::String(kind)) = out.get_mut("type") {
        *kind = match kind.to_ascii_lowercase().replace(['_', ' '], "-").as_str() {
            "local" | "stdio" => "stdio".to_owned(),
            "remote" | "http" | "streamable-http" | "streamablehttp" => "http".to_owned(),
            "sse" => "sse".to_owned(),
            _ => kind.clone(),
        };
    }
    if let Some(Value::Object(env)) = out.get_mut("env") {
        for (name, value) in env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!("\"env\": {name:?} is no name of a variable"));
            }
            if value.is_number() || value.is_boolean() {
                *value = Value::String(value.to_string());
            }
        }
    }
    if let Some(Value::Object(headers)) = out.get_mut("headers") {
        headers.retain(|name, _| {
            let is_owned = OWNED.iter().any(|owned| name.eq_ignore_ascii_case(owned));
            if is_owned {
                crate::report::say(format_args!(
                    "server {server:?}: the header {name:?} is left out, the transport sets it itself"
                ));
            }
            !is_owned
        });
        for value in headers.values_mut().filter(|value| value.is_number() || value.is_boolean()) {
            *value = Value::String(value.to_string());
        }
    }
    Ok(out)
}

/// A file of lines `NAME=value`, as hosts read them: comments, `export`, quotes.
fn env_file(path: &str) -> Result<Map<String, Value>, String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|e| e.to_string())?;
    let mut out = Map::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("line {}: expected NAME=value", at + 1));
        };
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote)?.split_once(quote).map(|(inside, _)| inside);
        let value = match (quoted('"'), quoted('\'')) {
            (Some(inside), _) => inside.replace("\\n", "\n"),
            (_, Some(inside)) => inside.to_owned(),
            _ => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
        };
        out.insert(name.trim().to_owned(), Value::String(value));
    }
    Ok(out)
}

/// Values of placeholders.
struct Known<'a> {
    variables: &'a Variables,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

/// A member in whose texts `${VAR}` and `${env:VAR}` stand for an environment variable, `${VAR:-default}` for what to
/// take when it is not set or empty, and `${…}` for what the program has given, as hosts have it. Values that come in
/// are not looked at again.
///
/// # Errors
/// The placeholder that nobody fills.
fn expanded(value: &Value, known: &Known<'_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expanded_text(text, known)?),
        Value::Array(items) => items.iter().map(|item| expanded(item, known)).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), expanded(value, known)?));
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn expanded_text(text: &str, known: &Known<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        match after.split_once('}') {
            Some((inside, left)) if !inside.is_empty() => {
                out.push_str(&filled(inside, known)?);
                rest = left;
            }
            _ => {
                out.push_str("${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the value of one placeholder.
fn filled(inside: &str, known: &Known<'_>) -> Result<String, String> {
    if let Some(given) = known.variables.get(inside) {
        return Ok(given.clone());
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match name {
        "userHome" => return std::env::var("HOME").map_err(|_| "${userHome}: HOME is not set".to_owned()),
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
        _ => {}
    }
    let is_host_s = matches!(name, "workspaceFolder" | "workspaceFolderBasename" | "workspaceRoot" | "cwd" | "file");
    let set = if is_name && !is_host_s { (known.environment)(name) } else { known.variables.get(name).cloned() };
    let set = set.filter(|value| default.is_none() || !value.is_empty());
    if let Some(value) = set.or_else(|| default.map(str::to_owned)) {
        return Ok(value);
    }
    Err(match is_name && !is_host_s {
        true => format!("the environment variable {name:?} is not set, and has no default"),
        false => format!(
            "the placeholder \"${{{}}}\" is filled by hosts: give its value (option \"variables\"), or write it out",
            shortened(inside, 100)
        ),
    })
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
        let given = [("input:key", "secret"), ("workspaceFolder", "/w")];
        let variables = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let known = Known { variables: &variables, environment: &variable };
        for (text, expected) in [
            ("a${A}b${A}", "a1b1"),
            ("${A:-2}${NONE:-2}${EMPTY:-3}${EMPTY}", "123"),
            ("${NONE:-}x", "x"),
            ("${NESTED}", "${A}"),
            ("$A ${} ${A", "$A ${} ${A"),
            ("${env:A}${env:NONE:-2}", "12"),
            ("${input:key} ${workspaceFolder}", "secret /w"),
            ("${NONE:-http://h:8}", "http://h:8"),
        ] {
            assert_eq!(expanded_text(text, &known).as_deref(), Ok(expected), "{text}");
        }
        let members = json!({"args": ["${A}", 1], "env": {"${A}": "${A}", "x": null}});
        let expected = json!({"args": ["1", 1], "env": {"${A}": "1", "x": null}});
        assert_eq!(expanded(&members, &known), Ok(expected));
        for (text, part) in [("${input:other}", "\"${input:other}\" is filled by hosts"), ("${command:x}", "variables")]
        {
            assert!(expanded_text(text, &known).expect_err(text).contains(part));
        }
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
    fn the_dialects_of_hosts_are_read() {
        let folder = std::env::temp_dir().join(format!("tricorn-dialects-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (path, env) = (folder.join("mcp.json"), folder.join(".env"));
        std::fs::write(&env, "# keys\nexport TOKEN='a b'\nPORT=1 # one\n").expect("written");
        let env = env.display();
        let text = format!(
            "\u{feff}{{ // a comment\n \"servers\": {{\n\
             \"env\": {{\"command\": \"x y\", \"args\": null, \"envFile\": \"{env}\", \"env\": {{\"PORT\": 3000, \"ON\": true}}}},\n\
             \"windsurf\": {{\"serverUrl\": \" http://h/mcp \", \"headers\": {{\"Accept\": \"*/*\", \"X-Key\": \"${{input:key}}\"}}}},\n\
             \"gemini\": {{\"httpUrl\": \"http://h/mcp\", \"type\": \"HTTP\"}},\n\
             \"nested\": {{\"transport\": {{\"type\": \"streamable_http\", \"url\": \"http://h/mcp\"}}}},\n\
             \"zed\": {{\"command\": {{\"path\": \"x\", \"args\": [\"y\"]}}}},\n\
             \"open\": {{\"command\": \"x\", \"args\": [\"${{workspaceFolder}}\"]}},\n\
             \"odd\": {{\"command\": \"x\", \"env\": {{\"A=B\": \"x\"}}}},\n\
             }}, }}"
        );
        std::fs::write(&path, text).expect("written");
        let variables = Variables::from([("input:key".to_owned(), "k".to_owned())]);
        let found = read_all(&path, None, &variables).expect("servers");
        std::fs::remove_dir_all(&folder).expect("removed");
        let mut all: BTreeMap<String, Result<Target>> = found.into_iter().collect();
        let mut of = |name: &str| all.remove(name).expect(name);
        let Ok(Target::Command { command, args, env, .. }) = of("env") else { panic!("a command") };
        assert_eq!((&*command, args.len()), ("x y", 0));
        let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), v.as_deref().unwrap_or_default())).collect();
        assert_eq!(env, [("ON", "true"), ("PORT", "3000"), ("TOKEN", "a b")]);
        let Ok(Target::Url { url, headers }) = of("windsurf") else { panic!("a URL") };
        assert_eq!((&*url, headers.len(), &*headers["X-Key"]), ("http://h/mcp", 1, "k"));
        for name in ["gemini", "nested"] {
            assert!(matches!(of(name), Ok(Target::Url { .. })), "{name}");
        }
        assert_eq!(super::tests::command(of("zed")).1, ["y"]);
        let open = of("open").expect_err("nobody fills it");
        assert!(open.message().contains("server \"open\"") && open.message().contains("workspaceFolder"), "{open}");
        assert!(of("odd").expect_err("no name").message().contains("\"A=B\" is no name"));
    }

    #[test]
    fn servers_are_found_under_the_names_that_hosts_use() {
        let a = json!({"a": {"command": "x"}});
        for config in [
            json!({"mcpServers": a}),
            json!({"servers": a}),
            json!({"mcp": {"servers": a}}),
            json!({"mcp.servers": a}),
            json!({"context_servers": a}),
            json!({"mcp": a}),
        ] {
            let Value::Object(config) = config else { panic!("an object") };
            assert_eq!(all(&config, None, &Variables::new()).map(|found| found.len()), Some(1), "{config:?}");
        }
        let off = Target::parse(r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}}"#).expect_err("disabled");
        assert!(off.message().contains("is disabled"), "{off}");
        let named = r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}, "server": "a"}"#;
        assert!(Target::parse(named).is_ok());
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
        let found = all(&config, None, &Variables::new()).expect("servers");
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

    #[test]
    fn variables_of_the_program_fill_what_it_gives() {
        let given = Variables::from([
            ("input:key".to_owned(), "k".to_owned()),
            ("workspaceFolder".to_owned(), "/w".to_owned()),
        ]);
        let entry = json!({"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/s", "${input:key}"]}}});
        let args = ["/w/s", "k"].map(str::to_owned).to_vec();
        let read = |text: &str| command(Target::parse_with(text, &given)).1;
        assert_eq!(read(&entry.to_string()), args);
        let path = std::env::temp_dir().join(format!("tricorn-variables-{}.json", std::process::id()));
        std::fs::write(&path, entry.to_string()).expect("written");
        assert_eq!(read(&json!({"text": path.display().to_string()}).to_string()), args);
        assert_eq!(read(&json!(path.display().to_string()).to_string()), args);
        std::fs::remove_file(&path).expect("removed");
    }
}
