//! Lists: pages, cursors, order, and whether they are there at all.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::opening::shape;
use super::wire::{SOON, Said, Wire};
use crate::output::one_line;

const MOST_PAGES: usize = 1000;
const MOST_ENTRIES: usize = 20_000;
const MOST_BYTES: usize = 32 << 20;

/// Everything that a server lists, with the page that each entry is on.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<(usize, Value)>,
    pub(super) resources: Vec<(usize, Value)>,
    pub(super) templates: Vec<(usize, Value)>,
    pub(super) prompts: Vec<(usize, Value)>,
}

/// One list.
struct Pages {
    entries: Vec<(usize, Value)>,
    pages: usize,
}

async fn pages(wire: &mut Wire, method: &str, member: &str) -> Result<Pages, Said> {
    let (mut found, mut seen) = (Pages { entries: Vec::new(), pages: 0 }, HashSet::new());
    let (mut cursor, mut bytes) = (None::<Value>, 0);
    loop {
        let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let said = wire.ask(method, params).await;
        let Some(result) = said.result() else {
            if found.pages == 0 {
                return Err(said);
            }
            if !matches!(said, Said::Ended(_)) {
                let evidence = format!("{method}, page {}: {}", found.pages + 1, one_line(&said.shown()));
                wire.report.find(if member == "tools" { "tools-lie" } else { "lists-lie" }, evidence);
            }
            return Ok(found);
        };
        if wire.is_modern {
            shape(&wire.report, method, result);
        }
        found.pages += 1;
        for entry in result[member].as_array().into_iter().flatten() {
            bytes += entry.to_string().len();
            if found.entries.len() >= MOST_ENTRIES || bytes > MOST_BYTES {
                wire.report.find("cursor-loop", format!("{method}: {} entries, and more", found.entries.len()));
                return Ok(found);
            }
            found.entries.push((found.pages, entry.clone()));
        }
        let next = result.get("nextCursor").filter(|next| !next.is_null()).cloned();
        let Some(next) = next else { return Ok(found) };
        if !seen.insert(next.to_string()) {
            wire.report.find("cursor-loop", format!("{method}: the cursor {next} again, on page {}", found.pages));
            return Ok(found);
        }
        if found.pages >= MOST_PAGES {
            wire.report.find("cursor-loop", format!("{method}: more than {MOST_PAGES} pages"));
            return Ok(found);
        }
        cursor = Some(next);
    }
}

fn names(entries: &[(usize, Value)]) -> Vec<&str> {
    entries.iter().map(|(_, entry)| entry["name"].as_str().unwrap_or_default()).collect()
}

/// Fetches all lists.
pub(super) async fn all(wire: &mut Wire) -> Listing {
    let mut listing = Listing::default();
    tools(wire, &mut listing).await;
    if wire.has("resources") {
        wire.report.ran(&["lists-lie"]);
        match pages(wire, "resources/list", "resources").await {
            Ok(found) => {
                cursors(wire, "resources/list", &found).await;
                listing.resources = found.entries;
            }
            Err(said) => lies(wire, "resources/list", &said),
        }
        // A server without templates may not know their list.
        if let Ok(found) = pages(wire, "resources/templates/list", "resourceTemplates").await {
            listing.templates = found.entries;
        }
    }
    if wire.has("prompts") {
        wire.report.ran(&["lists-lie"]);
        match pages(wire, "prompts/list", "prompts").await {
            Ok(found) => listing.prompts = found.entries,
            Err(said) => lies(wire, "prompts/list", &said),
        }
    }
    listing
}

/// A list that is declared and not given. The end of the server is another finding.
fn lies(wire: &Wire, method: &str, said: &Said) {
    if !matches!(said, Said::Ended(_)) {
        let name = if method == "tools/list" { "tools-lie" } else { "lists-lie" };
        wire.report.find(name, format!("{method}: {}", one_line(&said.shown())));
    }
}

async fn tools(wire: &mut Wire, listing: &mut Listing) {
    let report = wire.report.clone();
    // Not declared, it may be unknown, and nothing follows from a silence.
    let outcome = match wire.has("tools") {
        true => pages(wire, "tools/list", "tools").await,
        false => {
            let said = wire.request("tools/list", json!({})).await;
            let entries = said.result().and_then(|result| result["tools"].as_array()).cloned();
            entries
                .map(|tools| Pages { entries: tools.into_iter().map(|tool| (1, tool)).collect(), pages: 1 })
                .ok_or(said)
        }
    };
    if !wire.has("tools") {
        report.ran(&["undeclared"]);
        if let Ok(found) = &outcome
            && !found.entries.is_empty()
        {
            let capabilities = Value::Object(wire.capabilities.clone());
            let names = one_line(&names(&found.entries).join(", "));
            report.find("undeclared", format!("capabilities {capabilities}, tools {names}"));
        }
    } else {
        report.ran(&["tools-lie"]);
    }
    let found = match outcome {
        Ok(found) => found,
        Err(said) => {
            if wire.has("tools") {
                lies(wire, "tools/list", &said);
            }
            return;
        }
    };
    report.ran(&["cursor-loop", "order-shifts"]);
    cursors(wire, "tools/list", &found).await;
    if !report.has("cursor-loop")
        && let Ok(again) = pages(wire, "tools/list", "tools").await
    {
        let (first, second) = (names(&found.entries), names(&again.entries));
        let (mut one, mut two) = (first.clone(), second.clone());
        one.sort_unstable();
        two.sort_unstable();
        if let Some((a, b)) = first.iter().zip(&second).find(|(a, b)| a != b)
            && one == two
        {
            report.find("order-shifts", format!("{a:?} first, and then {b:?} in its place"));
        }
    }
    listing.tools = found.entries;
}

/// A cursor that was never given: a server that has pages should refuse it.
async fn cursors(wire: &mut Wire, method: &str, found: &Pages) {
    if found.pages < 2 {
        return;
    }
    wire.report.ran(&["bad-cursor-ok"]);
    let said = wire.ask(method, json!({"cursor": "x"})).await;
    if said.result().is_some() {
        wire.report.find("bad-cursor-ok", format!("{method} with the cursor \"x\": {}", one_line(&said.shown())));
    }
}

/// Capabilities that are declared and not there.
pub(super) async fn capabilities(wire: &mut Wire, listing: &Listing) {
    subscriptions(wire, listing).await;
    completions(wire, listing).await;
    if wire.has("logging") && !wire.is_modern {
        wire.report.ran(&["loglevel-lies"]);
        let said = wire.ask("logging/setLevel", json!({"level": "warning"})).await;
        if said.error().is_some() {
            wire.report.find("loglevel-lies", format!("logging/setLevel: {}", one_line(&said.shown())));
        }
    }
}

async fn subscriptions(wire: &mut Wire, listing: &Listing) {
    let declared = wire.capabilities.get("resources").is_some_and(|it| it["subscribe"] == Value::Bool(true));
    let Some(uri) = listing.resources.iter().find_map(|(_, entry)| entry["uri"].as_str()) else { return };
    if !declared {
        return;
    }
    wire.report.ran(&["subscribe-lies"]);
    if wire.is_modern {
        let id = wire.id();
        let params = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let said = match wire.begin(&id, "subscriptions/listen", params).await {
            Some(said) => said,
            None => wire.answer(&id, SOON / 3).await,
        };
        if said.error().is_some() {
            wire.report.find("subscribe-lies", format!("subscriptions/listen: {}", one_line(&said.shown())));
        }
        wire.cancel(&id).await;
        return;
    }
    let said = wire.ask("resources/subscribe", json!({"uri": uri})).await;
    if said.error().is_some() {
        wire.report.find("subscribe-lies", format!("resources/subscribe: {}", one_line(&said.shown())));
    } else {
        wire.request("resources/unsubscribe", json!({"uri": uri})).await;
    }
}

async fn completions(wire: &mut Wire, listing: &Listing) {
    if !wire.has("completions") {
        return;
    }
    wire.report.ran(&["complete-lies"]);
    let of_prompt = listing.prompts.iter().find_map(|(_, prompt)| {
        let argument = prompt["arguments"].get(0)?["name"].as_str()?;
        Some((json!({"type": "ref/prompt", "name": prompt["name"]}), argument))
    });
    let of_template = || {
        listing.templates.iter().find_map(|(_, template)| {
            let uri = template["uriTemplate"].as_str()?;
            let variable = uri.split_once('{')?.1.split_once('}')?.0;
            let variable = variable.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(',').next()?;
            Some((json!({"type": "ref/resource", "uri": uri}), variable))
        })
    };
    let (reference, argument) =
        of_prompt.or_else(of_template).unwrap_or_else(|| (json!({"type": "ref/prompt", "name": "none"}), "none"));
    let params = json!({"ref": reference, "argument": {"name": argument, "value": "a"}});
    let said = wire.ask("completion/complete", params).await;
    if said.code() == Some(-32601) {
        wire.report.find("complete-lies", format!("completion/complete: {}", one_line(&said.shown())));
    }
}
