//! Definitions of tools and prompts, as hosts and models read them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tricorn::model::PeerSchema;

use super::lists::Listing;
use super::report::{Report, Severity};
use super::wire::Wire;
use crate::output::one_line;

/// Subschemas that are looked at in one walk.
const STEPS: usize = 20_000;
const DEEPEST: usize = 16;
const MOST_SUBSCHEMAS: usize = 64;
const LARGEST: usize = 8 << 10;
const LARGEST_ALL: usize = 64 << 10;
const MOST_TOOLS: usize = 128;
/// The longest name of a tool that hosts with a prefix of their own take.
const LONGEST_NAME: usize = 50;

/// The hosts whose rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// OpenAI's function calling
    Openai,
    /// The same in strict mode
    OpenaiStrict,
    Gemini,
    Vscode,
    Claude,
}

/// Looks at everything that is listed.
pub(super) fn all(wire: &Wire, listing: &Listing, profiles: &[Profile]) {
    let report = &wire.report;
    if listing.tools.is_empty() && listing.prompts.is_empty() {
        return;
    }
    report.ran(&["no-description", "odd-name", "host-name", "twin-names", "bad-schema", "deep-ref", "circular-ref"]);
    report.ran(&["remote-ref", "too-big", "hints-contradict", "output-no-object"]);
    let by_profile: [(Profile, &[&'static str]); 5] = [
        (Profile::Openai, &["no-properties"]),
        (Profile::OpenaiStrict, &["not-strict"]),
        (Profile::Vscode, &["array-no-items"]),
        (Profile::Claude, &["top-anyOf", "odd-key"]),
        (Profile::Gemini, &["gemini-keyword"]),
    ];
    for (_, names) in by_profile.iter().filter(|(profile, _)| profiles.contains(profile)) {
        report.ran(names);
    }
    let mut pages = HashMap::<&str, Vec<usize>>::new();
    let mut bytes = 0;
    for (page, tool) in &listing.tools {
        let name = tool["name"].as_str().unwrap_or_default();
        pages.entry(name).or_default().push(*page);
        bytes += one(wire, name, tool, profiles);
    }
    let mut twins: Vec<_> = pages.into_iter().filter(|(_, pages)| pages.len() > 1).collect();
    twins.sort_unstable();
    for (name, pages) in twins {
        let pages: Vec<_> = pages.iter().map(ToString::to_string).collect();
        report.find("twin-names", format!("{name:?} on the pages {}", pages.join(", ")));
    }
    let count = listing.tools.len();
    if count > MOST_TOOLS || bytes > LARGEST_ALL {
        report.find("too-big", format!("{count} tools of {} KiB together", bytes >> 10));
    }
    for (_, prompt) in &listing.prompts {
        let name = prompt["name"].as_str().unwrap_or_default();
        if !has_text(prompt) {
            report.find("no-description", format!("the prompt {name:?}"));
        }
        for argument in prompt["arguments"].as_array().into_iter().flatten().filter(|argument| !has_text(argument)) {
            report.find("no-description", format!("the argument {} of the prompt {name:?}", argument["name"]));
        }
    }
}

fn has_text(value: &Value) -> bool {
    value["description"].as_str().is_some_and(|text| !text.trim().is_empty())
}

fn is_name(name: &str, more: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    !name.is_empty() && name.chars().count() <= longest && name.chars().all(fits)
}

/// Looks at one tool, and gives the bytes of its definition.
fn one(wire: &Wire, name: &str, tool: &Value, profiles: &[Profile]) -> usize {
    let report = &wire.report;
    if !has_text(tool) {
        report.find("no-description", format!("the tool {name:?}"));
    }
    if !is_name(name, "_-.", 128) {
        report.find("odd-name", format!("{name:?}"));
    } else if !is_name(name, "_-", 64) {
        report.find("host-name", format!("{name:?} is not of [A-Za-z0-9_-]{{1,64}}"));
    } else if name.len() > LONGEST_NAME {
        report.find("host-name", format!("{name:?} has more than {LONGEST_NAME} characters"));
    }
    let hints = &tool["annotations"];
    if hints["readOnlyHint"] == Value::Bool(true) && hints["destructiveHint"] == Value::Bool(true) {
        report.find("hints-contradict", format!("{name}: {hints}"));
    }
    let bytes = tool.to_string().len();
    if bytes > LARGEST {
        report.find("too-big", format!("{name}: {} KiB", bytes >> 10));
    }
    let input = &tool["inputSchema"];
    if let Some(schema) = input.as_object() {
        arguments(report, name, schema);
        for profile in profiles {
            of_host(report, name, schema, *profile);
        }
        general(report, &format!("{name}: inputSchema"), input);
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            report.find("bad-schema", format!("{name}: inputSchema: expected \"type\": \"object\""));
        }
    } else {
        report.find("bad-schema", format!("{name}: inputSchema: {}", one_line(&input.to_string())));
    }
    let output = &tool["outputSchema"];
    if !output.is_null() {
        general(report, &format!("{name}: outputSchema"), output);
        if !wire.is_modern && output["type"] != "object" {
            report.find("output-no-object", format!("{name}: {}", one_line(&output.to_string())));
        }
    }
    bytes
}

fn arguments(report: &Report, name: &str, schema: &Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (argument, of) in properties.into_iter().flatten() {
        let target = of["$ref"].as_str().and_then(|reference| local(schema, reference));
        let is_constant = of.get("const").is_some();
        if of.is_object() && !has_text(of) && !target.is_some_and(has_text) && !is_constant {
            report.find("no-description", format!("the argument {argument:?} of {name:?}"));
        }
    }
}

/// The schema that a reference within this document leads to.
fn local<'a>(root: &'a Map<String, Value>, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix("#/")?;
    let mut parts = pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let mut at = root.get(&parts.next()?)?;
    for part in parts {
        at = match at {
            Value::Object(members) => members.get(&part)?,
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Calls a function with each subschema and its place, as far as there are not too many.
fn walk(
    schema: &Value,
    steps: &mut usize,
    place: &mut Vec<String>,
    look: &mut impl FnMut(&Map<String, Value>, &[String]),
) {
    let Some(members) = schema.as_object() else { return };
    if *steps == 0 || place.len() > 256 {
        return;
    }
    *steps -= 1;
    look(members, place);
    for (key, value) in members {
        let many: Vec<(String, &Value)> = match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas", Value::Object(all)) => {
                all.iter().map(|(name, value)| (format!("{key}/{name}"), value)).collect()
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", _)
                if value.is_object() =>
            {
                vec![(key.clone(), value)]
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(all)) => {
                all.iter().enumerate().map(|(at, value)| (format!("{key}/{at}"), value)).collect()
            }
            _ => Vec::new(),
        };
        for (step, inner) in many {
            place.push(step);
            walk(inner, steps, place, look);
            place.pop();
        }
    }
}

fn is_array(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    }
}

/// Looks at a subschema and its place.
type Look<'a> = dyn FnMut(&Map<String, Value>, &[String]) + 'a;

fn of_host(report: &Report, name: &str, schema: &Map<String, Value>, profile: Profile) {
    let whole = Value::Object(schema.clone());
    let each = |look: &mut Look<'_>| {
        walk(&whole, &mut STEPS.clone(), &mut Vec::new(), &mut |schema, place| look(schema, place));
    };
    match profile {
        Profile::Openai => {
            if !schema.contains_key("properties") {
                report.find("no-properties", format!("{name}: {}", one_line(&whole.to_string())));
            }
        }
        Profile::OpenaiStrict => each(&mut |schema, place| {
            let properties = schema.get("properties").and_then(Value::as_object);
            let Some(properties) = properties.filter(|properties| !properties.is_empty()) else { return };
            let required: HashSet<_> = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let at = if place.is_empty() { name.to_owned() } else { format!("{name}: {}", place.join("/")) };
            let optional: Vec<_> = properties.keys().filter(|key| !required.contains(key.as_str())).collect();
            if !optional.is_empty() {
                let optional: Vec<_> = optional.iter().map(|key| format!("{key:?}")).collect();
                report.find("not-strict", format!("{at}: not required: {}", optional.join(", ")));
            } else if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
                report.find("not-strict", format!("{at}: additionalProperties is not false"));
            }
        }),
        Profile::Vscode => each(&mut |schema, place| {
            if is_array(schema) && !schema.contains_key("items") && !schema.contains_key("prefixItems") {
                report.find("array-no-items", format!("{name}: {}", place.join("/")));
            }
        }),
        Profile::Claude => {
            for keyword in ["oneOf", "anyOf", "allOf"].iter().filter(|keyword| schema.contains_key(**keyword)) {
                report.find("top-anyOf", format!("{name}: {keyword}"));
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            for key in properties.into_iter().flatten().map(|(key, _)| key).filter(|key| !is_name(key, "_-.", 64)) {
                report.find("odd-key", format!("{name}: {key:?} is not of [A-Za-z0-9_.-]{{1,64}}"));
            }
        }
        Profile::Gemini => each(&mut |schema, place| {
            let in_items = place.last().is_some_and(|step| step == "items");
            for keyword in ["$ref", "$defs", "exclusiveMinimum", "exclusiveMaximum", "anyOf"] {
                if schema.contains_key(keyword) && (keyword != "anyOf" || in_items) {
                    let at = if place.is_empty() { "the top".to_owned() } else { place.join("/") };
                    report.find("gemini-keyword", format!("{name}: {keyword} at {at}"));
                }
            }
        }),
    }
}

/// Faults that matter to every reader of a schema.
fn general(report: &Report, what: &str, schema: &Value) {
    let (mut references, mut is_remote, mut ids) = (false, false, false);
    walk(schema, &mut STEPS.clone(), &mut Vec::new(), &mut |schema, _| ids |= schema.contains_key("$id"));
    walk(schema, &mut STEPS.clone(), &mut Vec::new(), &mut |schema, place| {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return };
        references = true;
        // Parts with ids of their own are referred to by these: the reader below knows them.
        if !reference.starts_with('#') && !ids {
            is_remote = true;
            report.find("remote-ref", format!("{what}: {}: {reference:?}", place.join("/")));
        }
    });
    if let Some(root) = schema.as_object().filter(|_| references && !is_remote) {
        depth(report, what, root);
    }
    if !is_remote && let Err(error) = PeerSchema::read(&schema.to_string()) {
        let why = error.message().trim_start_matches("schema: ");
        // Readers differ in what they know of regular expressions: `[\w-.]` is one for some.
        let is_pattern = why.contains("not a regular expression");
        let severity = if is_pattern { Severity::Warning } else { Severity::Error };
        report.find_as("bad-schema", severity, format!("{what}: {why}"));
    }
}

/// A walk along references.
struct Way<'a> {
    root: &'a Map<String, Value>,
    /// References on the way, each of which leads to the next.
    open: Vec<&'a str>,
    deepest: usize,
    subschemas: usize,
    circle: Option<String>,
}

/// Depth of a schema with its references followed.
fn depth(report: &Report, what: &str, root: &Map<String, Value>) {
    let mut way = Way { root, open: Vec::new(), deepest: 0, subschemas: 0, circle: None };
    let properties = root.get("properties").and_then(Value::as_object);
    for (_, value) in properties.into_iter().flatten() {
        way.follow(value, 1);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        root.get(keyword).and_then(Value::as_array).into_iter().flatten().for_each(|value| way.follow(value, 1));
    }
    if let Some(circle) = way.circle {
        report.find("circular-ref", format!("{what}: {circle}"));
    } else if way.deepest > DEEPEST {
        report.find("deep-ref", format!("{what}: {} levels", way.deepest));
    } else if way.subschemas > MOST_SUBSCHEMAS {
        report.find("deep-ref", format!("{what}: more than {MOST_SUBSCHEMAS} subschemas"));
    }
}

impl<'a> Way<'a> {
    fn follow(&mut self, schema: &'a Value, level: usize) {
        let Some(members) = schema.as_object() else { return };
        self.subschemas += 1;
        self.deepest = self.deepest.max(level);
        if self.subschemas > STEPS || level > 64 || self.circle.is_some() {
            return;
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            // The whole schema is always on the way.
            if self.open.contains(&reference) || matches!(reference, "#" | "#/") {
                let way: Vec<_> = self.open.iter().copied().chain([reference]).collect();
                self.circle = Some(way.join(" → "));
                return;
            }
            if let Some(target) = local(self.root, reference) {
                self.open.push(reference);
                self.follow(target, level);
                self.open.pop();
            }
        }
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(all)) => {
                    all.values().for_each(|value| self.follow(value, level + 1));
                }
                ("items" | "additionalProperties", value) => self.follow(value, level + 1),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                    all.iter().for_each(|value| self.follow(value, level + 1));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Report {
        let report = Report::default();
        general(&report, "tool", schema);
        report
    }

    #[test]
    fn references_are_judged_by_what_they_lead_to() {
        let report = found(&json!({"type": "object", "properties": {"a": {"$ref": "#"}}}));
        assert!(report.has("circular-ref"));
        let own =
            json!({"$id": "https://h/root", "properties": {"a": {"$ref": "item"}}, "$defs": {"i": {"$id": "item"}}});
        assert!(!found(&own).has_findings());
        assert!(found(&json!({"properties": {"a": {"$ref": "https://h/x"}}})).has("remote-ref"));
    }

    #[test]
    fn a_pattern_that_not_all_know_is_no_error() {
        let report = found(&json!({"properties": {"a": {"type": "string", "pattern": "[\\w-.]"}}}));
        assert_eq!((report.has("bad-schema"), report.errors()), (true, 0));
        assert_eq!(found(&json!({"properties": {"a": {"type": "strng"}}})).errors(), 1);
    }
}
