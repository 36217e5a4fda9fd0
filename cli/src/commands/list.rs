use serde_json::{Value, json};
use tricorn::protocol::Kind;

use super::{Entry, listed, text};
use crate::arguments::List;
use crate::connection::Session;
use crate::failure::{FAILED, Outcome};
use crate::output::{Table, first_line, one_line, wrapped};
use crate::schema::signature;

/// Lines of what a server says of itself; `--json` has all of them.
const LINES: usize = 6;

/// Lists what the server has.
pub(super) async fn list(session: &Session, list: &List) -> Outcome<u8> {
    let all = !(list.tools || list.resources || list.templates || list.prompts);
    let wanted = [
        (Kind::Tool, "tools", "Tools", all || list.tools),
        (Kind::Resource, "resources", "Resources", all || list.resources),
        (Kind::ResourceTemplate, "resourceTemplates", "Resource templates", all || list.templates),
        (Kind::Prompt, "prompts", "Prompts", all || list.prompts),
    ];
    let screen = &session.screen;
    let (mut parts, mut failures) = (Vec::new(), Vec::new());
    for (kind, key, title, is_wanted) in wanted {
        if is_wanted {
            match listed(session, kind).await {
                Ok(entries) => parts.push((kind, key, title, entries)),
                // A list that the server declares and does not have takes nothing from the others.
                Err(failure) if all && failure.status == FAILED => failures.push(failure),
                Err(failure) => return Err(failure),
            }
        }
    }
    match failures.pop() {
        Some(failure) if parts.iter().all(|(.., entries)| entries.is_empty()) => return Err(failure),
        last => failures.extend(last),
    }
    failures.iter().for_each(|failure| screen.warn(&failure.message));
    if list.json {
        let mut result = json!({
            "server": session.client.server_info(),
            "revision": session.client.revision().as_str(),
            "transport": session.client.transport(),
            "capabilities": session.client.capabilities().raw(),
        });
        if let Some(instructions) = session.client.instructions() {
            result["instructions"] = instructions.into();
        }
        for (_, key, _, entries) in parts {
            result[key] = entries.into_iter().map(Value::Object).collect();
        }
        screen.json(&result);
        return Ok(0);
    }
    let mut page = String::new();
    if all {
        page.push_str(&head(session));
    }
    let is_empty = parts.iter().all(|(.., entries)| entries.is_empty());
    for (kind, _, title, entries) in parts {
        if entries.is_empty() {
            continue;
        }
        if !page.is_empty() {
            page.push('\n');
        }
        let title = format!("{title} ({})", entries.len());
        page.push_str(&format!("{}\n{}", screen.style().bold(&title), table(session, kind, &entries)));
    }
    if is_empty {
        page.push_str(if page.is_empty() { "nothing\n" } else { "\nThe server offers nothing.\n" });
    }
    screen.print(&page);
    Ok(0)
}

/// Describes the server in its own words.
fn head(session: &Session) -> String {
    let (screen, client) = (&session.screen, &session.client);
    let info: Value = client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
    let member = |name: &str| info[name].as_str().map(one_line).filter(|text| !text.is_empty());
    let name = member("name").unwrap_or_else(|| session.name.clone());
    let version = member("version").map(|version| format!(" {version}")).unwrap_or_default();
    let title = member("title").filter(|title| *title != name).map(|title| format!(" ({title})")).unwrap_or_default();
    let spoken = format!("{}, {}", client.transport(), client.revision().as_str());
    let mut head = format!("{}{version}{title}  {}\n", screen.style().bold(&name), screen.style().dim(&spoken));
    for text in [member("description"), client.instructions()].into_iter().flatten() {
        let lines = wrapped(screen, &text, "  ");
        let mut lines = lines.lines();
        lines.by_ref().take(LINES).for_each(|line| head.push_str(&format!("{line}\n")));
        if lines.next().is_some() {
            head.push_str("  …\n");
        }
    }
    head
}

fn table(session: &Session, kind: Kind, entries: &[Entry]) -> String {
    let mut table = Table::new(&session.screen);
    for entry in entries {
        let described = first_line(text(entry, "description"));
        let described = if described.is_empty() { text(entry, "title") } else { described };
        match kind {
            Kind::Tool => {
                let schema = entry.get("inputSchema").unwrap_or(&Value::Null);
                table.row([text(entry, "name"), &signature(schema), described]);
            }
            Kind::Resource => {
                let kind = text(entry, "mimeType");
                let named = if described.is_empty() { text(entry, "name") } else { described };
                table.row([text(entry, "uri"), kind, named]);
            }
            Kind::ResourceTemplate => {
                let named = if described.is_empty() { text(entry, "name") } else { described };
                table.row([text(entry, "uriTemplate"), text(entry, "mimeType"), named]);
            }
            _ => table.row([text(entry, "name"), &arguments(entry), described]),
        }
    }
    table.text()
}

/// The arguments of a prompt in short.
fn arguments(prompt: &Entry) -> String {
    let given = prompt.get("arguments").and_then(Value::as_array);
    let shown = given.into_iter().flatten().filter_map(|argument| {
        let name = argument["name"].as_str()?;
        Some(if argument["required"] == true { name.to_owned() } else { format!("[{name}]") })
    });
    shown.collect::<Vec<_>>().join(" ")
}
