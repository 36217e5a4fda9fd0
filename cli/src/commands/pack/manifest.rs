//! The manifest of a bundle, and the entry of a registry, from what the server says of itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tricorn::protocol::Kind;

use super::files::Files;
use super::project::Project;
use super::{Bundle, schema};
use crate::commands::{Entry, listed, text};
use crate::connection::Session;
use crate::failure::{Failure, Outcome};

/// The version of the manifest's format that is written: the one that its specification calls the current one.
const MANIFEST: &str = "0.3";
/// The schema of the registry's entries that is written.
const REGISTRY: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The longest icon inside of an answer that is made a file, in base64.
const LONGEST_ICON: usize = 1 << 20;
/// Icons of one server.
const MOST_ICONS: usize = 16;

/// Description that a running server gives of itself.
pub(super) struct Facts {
    info: Value,
    instructions: Option<String>,
    pub(super) tools: Vec<Entry>,
    prompts: Vec<Value>,
    /// Some prompts cannot be written down.
    has_more_prompts: bool,
}

impl Facts {
    /// Asks it.
    pub(super) async fn of(session: &Session) -> Outcome<Self> {
        let info = session.client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
        let tools = listed(session, Kind::Tool).await?;
        let (mut prompts, mut has_more_prompts) = (Vec::new(), false);
        for prompt in listed(session, Kind::Prompt).await? {
            match written(session, &prompt).await {
                Some(prompt) => prompts.push(prompt),
                None => has_more_prompts = true,
            }
        }
        Ok(Self { info, instructions: session.client.instructions(), tools, prompts, has_more_prompts })
    }

    fn said(&self, name: &str) -> Option<&str> {
        self.info[name].as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn name(&self, project: &Project) -> String {
        let name = self.said("name").or(project.name.as_deref()).unwrap_or("server");
        let plain: String = name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
            .collect();
        let plain = plain.trim_matches(['-', '.']).to_owned();
        if plain.is_empty() { "server".to_owned() } else { plain }
    }

    /// The project's version, as some servers say that of their library.
    fn version(&self, project: &Project) -> String {
        project.version.as_deref().or_else(|| self.said("version")).unwrap_or("0.0.0").to_owned()
    }

    fn description(&self, project: &Project) -> String {
        let said = self.said("description").or(project.description.as_deref());
        let instructions = self.instructions.as_deref().map(crate::output::first_line).filter(|line| !line.is_empty());
        let named = || self.said("title").or_else(|| self.said("name"));
        said.or(instructions).or_else(named).unwrap_or("A server").to_owned()
    }

    fn icons(&self) -> impl Iterator<Item = &Value> {
        self.info["icons"].as_array().into_iter().flatten().take(MOST_ICONS)
    }
}

/// A prompt as a manifest has it: with placeholders in the places of its arguments.
async fn written(session: &Session, prompt: &Entry) -> Option<Value> {
    let name = text(prompt, "name");
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let arguments: Vec<&str> = arguments.into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    let filled: Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), format!("${{arguments.{name}}}").into())).collect();
    let params = json!({"name": name, "arguments": filled});
    let options = tricorn::CallOptions::new();
    let result = session.request("reading a prompt", "prompts/get", &params, &options).await.ok()?;
    let result: Value = result.to().ok()?;
    let messages: Vec<&Value> = result["messages"].as_array()?.iter().collect();
    let [message] = messages.as_slice() else { return None };
    if message["role"] != "user" {
        return None;
    }
    let mut written = json!({"name": name, "text": message["content"]["text"].as_str()?});
    let description = text(prompt, "description");
    if !description.is_empty() {
        written["description"] = description.into();
    }
    if !arguments.is_empty() {
        written["arguments"] = arguments.into();
    }
    Some(written)
}

/// Writes the manifest. Icons inside of the server's answer become files.
///
/// # Errors
/// Members that the format wants and nobody has given.
pub(super) fn manifest(facts: &Facts, bundle: &mut Bundle, author: Option<&str>, secrets: &[String]) -> Outcome<Value> {
    let project = &bundle.project;
    let author = author.map(str::to_owned).or_else(|| project.author.clone()).or_else(|| project.author_of_git());
    let Some(author) = author else {
        return Err(Failure::misuse("a bundle names its author: --author NAME, or say it in the project's file"));
    };
    let mut config = json!({"command": bundle.start.command, "args": bundle.start.arguments});
    if let Some(command) = &bundle.start.on_windows {
        config["platform_overrides"] = json!({"win32": {"command": command}});
    }
    let mut asked = Map::new();
    if !secrets.is_empty() {
        let mut env = Map::new();
        for name in secrets {
            let key = name.to_ascii_lowercase();
            env.insert(name.clone(), format!("${{user_config.{key}}}").into());
            let option = json!({
                "type": "string", "title": name, "description": format!("The variable {name} of the server"),
                "required": true, "sensitive": true,
            });
            asked.insert(key, option);
        }
        config["env"] = env.into();
    }
    let mut manifest = json!({
        "manifest_version": MANIFEST,
        "name": facts.name(project),
        "version": facts.version(project),
        "description": facts.description(project),
        "author": {"name": author},
        "server": {"type": bundle.kind, "entry_point": bundle.entry, "mcp_config": config},
    });
    let optional = [
        ("display_name", facts.said("title").map(str::to_owned)),
        ("license", project.license.clone()),
        ("homepage", facts.said("websiteUrl").map(str::to_owned).or_else(|| project.homepage.clone())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            manifest[name] = value.into();
        }
    }
    if let Some(url) = &project.repository {
        manifest["repository"] = json!({"type": "git", "url": url});
    }
    let tools = facts.tools.iter().map(|tool| {
        let mut entry = json!({"name": text(tool, "name")});
        let description = text(tool, "description");
        if !description.is_empty() {
            entry["description"] = description.into();
        }
        entry
    });
    let tools: Vec<_> = tools.collect();
    if !tools.is_empty() {
        manifest["tools"] = tools.into();
    }
    if !facts.prompts.is_empty() {
        manifest["prompts"] = facts.prompts.clone().into();
    }
    if facts.has_more_prompts {
        manifest["prompts_generated"] = true.into();
    }
    let mut compatibility = Map::new();
    if bundle.bound.is_some() {
        compatibility.insert("platforms".into(), json!([platform()]));
    }
    if let Some((name, version)) = &bundle.runtime {
        compatibility.insert("runtimes".into(), json!({*name: version}));
    }
    if !compatibility.is_empty() {
        manifest["compatibility"] = compatibility.into();
    }
    if !asked.is_empty() {
        manifest["user_config"] = asked.into();
    }
    let icons = icons(facts, &mut bundle.files);
    if !icons.is_empty() {
        manifest["icons"] = icons.into();
    }
    schema::check(&manifest, schema::MANIFEST, "manifest.json")?;
    Ok(manifest)
}

/// The name of this platform in manifests.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// The icons that a manifest can have: PNG files of one size.
fn icons(facts: &Facts, files: &mut Files) -> Vec<Value> {
    let mut icons = Vec::new();
    for icon in facts.icons() {
        let sizes: Vec<_> = icon["sizes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let [size] = sizes.as_slice() else { continue };
        let is_size = size.split_once('x').is_some_and(|(width, height)| {
            [width, height].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let Some(source) = icon["src"].as_str().filter(|_| is_size) else { continue };
        let place = if let Some(data) = source.strip_prefix("data:image/png;base64,") {
            let Some(bytes) = (data.len() <= LONGEST_ICON).then(|| STANDARD.decode(data).ok()).flatten() else {
                continue;
            };
            let place = format!("icons/icon-{}.png", icons.len() + 1);
            files.text(&place, bytes);
            place
        } else if source.starts_with("https://") {
            source.to_owned()
        } else {
            continue;
        };
        let mut entry = json!({"src": place, "size": size});
        if let Some(theme) = icon["theme"].as_str() {
            entry["theme"] = theme.into();
        }
        icons.push(entry);
    }
    icons
}

/// Places where a server can be had, for the registry.
pub(super) enum Place {
    /// A bundle at this address, with its digest.
    Bundle { url: String, sha256: String, secrets: Vec<String> },
    /// A server at this address.
    Remote { url: String, headers: Vec<String> },
}

/// The version and the file's name at which a bundle is downloaded, where the repository is on GitHub.
pub(super) fn download(facts: &Facts, project: &Project, file: &str) -> Option<String> {
    let repository = project.repository.as_deref().filter(|url| url.starts_with("https://github.com/"))?;
    Some(format!("{repository}/releases/download/v{}/{file}", facts.version(project)))
}

/// Writes the registry's entry.
///
/// # Errors
/// Members that the registry wants and nobody has given.
pub(super) fn server_json(facts: &Facts, project: &Project, name: Option<&str>, place: Place) -> Outcome<Value> {
    let of_github = || {
        let path = project.repository.as_deref()?.strip_prefix("https://github.com/")?;
        let owner = path.split('/').next().filter(|owner| !owner.is_empty())?;
        Some(format!("io.github.{owner}/{}", facts.name(project)))
    };
    let Some(name) = name.map(str::to_owned).or_else(of_github) else {
        let hint = "--name io.github.OWNER/NAME, or com.example/NAME of a domain of yours";
        return Err(Failure::misuse(format!("the registry wants a name with its owner: {hint}")));
    };
    let mut entry = json!({
        "$schema": REGISTRY,
        "name": name,
        "description": cut(&facts.description(project), 100),
        "version": cut(&facts.version(project), 255),
    });
    if let Some(title) = facts.said("title") {
        entry["title"] = cut(title, 100).into();
    }
    let site = facts.said("websiteUrl").or(project.homepage.as_deref());
    if let Some(url) = site.filter(|url| url.starts_with("http")) {
        entry["websiteUrl"] = url.into();
    }
    if let Some(url) = &project.repository {
        let host = url.split('/').nth(2).unwrap_or_default();
        entry["repository"] = json!({"url": url, "source": host.strip_suffix(".com").unwrap_or(host)});
    }
    let icons: Vec<_> = facts.icons().filter_map(registered_icon).collect();
    if !icons.is_empty() {
        entry["icons"] = icons.into();
    }
    let inputs = |names: Vec<String>| -> Vec<Value> {
        names.iter().map(|name| json!({"name": name, "isRequired": true, "isSecret": true})).collect()
    };
    match place {
        Place::Bundle { url, sha256, secrets } => {
            let mut package = json!({
                "registryType": "mcpb", "identifier": url, "fileSha256": sha256, "transport": {"type": "stdio"},
            });
            if !secrets.is_empty() {
                package["environmentVariables"] = inputs(secrets).into();
            }
            entry["packages"] = json!([package]);
        }
        Place::Remote { url, headers } => {
            let mut remote = json!({"type": "streamable-http", "url": url});
            if !headers.is_empty() {
                remote["headers"] = inputs(headers).into();
            }
            entry["remotes"] = json!([remote]);
        }
    }
    schema::check(&entry, schema::SERVER, "server.json")?;
    Ok(entry)
}

/// An icon that the registry takes.
fn registered_icon(icon: &Value) -> Option<Value> {
    const TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"];
    let source = icon["src"].as_str().filter(|source| source.starts_with("https://") && source.len() <= 255)?;
    let mut entry = json!({"src": source});
    for name in ["mimeType", "sizes", "theme"] {
        if !icon[name].is_null() {
            entry[name] = icon[name].clone();
        }
    }
    icon["mimeType"].as_str().is_none_or(|kind| TYPES.contains(&kind)).then_some(entry)
}

/// At most so many characters, with an ellipsis in the place of the rest.
fn cut(text: &str, most: usize) -> String {
    let text = crate::output::one_line(text);
    if text.chars().count() <= most {
        return text;
    }
    let mut cut: String = text.chars().take(most - 1).collect();
    if let Some(end) = cut.rfind(' ').filter(|end| *end > most / 2) {
        cut.truncate(end);
    }
    cut + "…"
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn facts(info: Value) -> Facts {
        Facts { info, instructions: None, tools: Vec::new(), prompts: Vec::new(), has_more_prompts: false }
    }

    #[test]
    fn what_is_long_is_cut_between_words() {
        assert_eq!(cut("short", 100), "short");
        let long = cut(&"word ".repeat(40), 100);
        assert!(long.chars().count() <= 100 && long.ends_with("word…"), "{long}");
        assert_eq!(cut(&"ä".repeat(101), 100).chars().count(), 100);
    }

    #[test]
    fn a_registry_wants_an_owner() {
        let facts = facts(json!({"name": "My Weather", "version": "1.0.0", "title": "Weather"}));
        let remote = || Place::Remote { url: "https://example.com/mcp".into(), headers: vec!["X-Key".into()] };
        let failure = server_json(&facts, &Project::default(), None, remote()).unwrap_err();
        assert!(failure.message.contains("--name"), "{}", failure.message);
        let project = Project { repository: Some("https://github.com/ada/weather".into()), ..Project::default() };
        let entry = server_json(&facts, &project, None, remote()).unwrap();
        assert_eq!(entry["name"], "io.github.ada/My-Weather");
        assert_eq!(entry["repository"], json!({"url": "https://github.com/ada/weather", "source": "github"}));
        let failure = server_json(&facts, &project, Some("no owner"), remote()).unwrap_err();
        assert!(failure.message.starts_with("server.json: /name: "), "{}", failure.message);
    }

    #[test]
    fn icons_become_files_or_stay_addresses() {
        let facts = facts(json!({"icons": [
            {"src": "data:image/png;base64,aGk=", "sizes": ["16x16"], "theme": "dark"},
            {"src": "https://example.com/a.png", "sizes": ["48x48"]},
            {"src": "https://example.com/b.svg", "sizes": ["any"]},
            {"src": "http://example.com/c.png", "sizes": ["48x48"]},
        ]}));
        let mut files = Files::default();
        let made = icons(&facts, &mut files);
        assert_eq!(
            made,
            [
                json!({"src": "icons/icon-1.png", "size": "16x16", "theme": "dark"}),
                json!({"src": "https://example.com/a.png", "size": "48x48"}),
            ]
        );
        assert!(files.all.contains_key("icons/icon-1.png"));
        assert_eq!(facts.icons().filter_map(registered_icon).count(), 2);
    }
}
