//! Facts that one side tells the other of itself and of its requests, as a revision can carry them.

use std::borrow::Cow;

use super::super::Era;
use super::Rules;
use crate::jsonrpc::RawJson;
use crate::model::TASKS_EXTENSION;
use crate::protocol::revision::object::{has, members, push_member};

/// Declared capabilities as `rules` know them.
pub(crate) fn capabilities<'a>(rules: &Rules, declared: &'a RawJson) -> Cow<'a, str> {
    let known = |name: &str| match name {
        "tasks" => rules.tasks,
        "completions" => rules.completions_declared,
        "elicitation" => rules.elicitation,
        _ => true,
    };
    let known_part = |name: &str, part: &str| match (name, part) {
        ("elicitation", "form" | "url") => rules.elicitation_modes,
        ("sampling", "tools") => rules.sampling_tools,
        ("sampling", "context") => rules.sampling_context,
        ("extensions", TASKS_EXTENSION) => rules.tasks_extension,
        // Where nobody tells of it.
        ("roots", "listChanged") => rules.era == Era::Legacy,
        _ => true,
    };
    let open = ["tasks", "completions", "elicitation", "sampling", "roots", TASKS_EXTENSION];
    if !open.into_iter().any(|name| has(declared.get(), name)) {
        return Cow::Borrowed(declared.get());
    }
    let mut out = String::from("{");
    for (name, value) in members(declared.get()) {
        let parts = members(value.get());
        // Without modes there are only forms.
        let only_urls = name == "elicitation" && !rules.elicitation_modes && {
            let has = |mode: &str| parts.iter().any(|(part, _)| part == mode);
            has("url") && !has("form")
        };
        if !known(&name) || only_urls {
            continue;
        }
        if parts.iter().all(|(part, _)| known_part(&name, part)) {
            push_member(&mut out, &name, value.get());
            continue;
        }
        let mut kept = String::from("{");
        for (part, value) in parts.iter().filter(|(part, _)| known_part(&name, part)) {
            push_member(&mut kept, part, value.get());
        }
        kept.push('}');
        if name != "extensions" || kept.len() > 2 {
            push_member(&mut out, &name, &kept);
        }
    }
    out.push('}');
    Cow::Owned(out)
}

/// An `Implementation` as `rules` know it.
pub(crate) fn implementation(rules: &Rules, info: &RawJson) -> String {
    without(info, |member| match member {
        "title" => !rules.structured,
        "icons" | "description" | "websiteUrl" => !rules.icons,
        _ => false,
    })
}

/// The parameters of `completion/complete` as `rules` know them; `None`: nothing to change.
pub(crate) fn completion(rules: &Rules, params: &RawJson) -> Option<RawJson> {
    let newer = !rules.completion_context && members(params.get()).iter().any(|(member, _)| member == "context");
    newer.then(|| RawJson::written(without(params, |member| member == "context")))
}

fn without(object: &RawJson, left_out: impl Fn(&str) -> bool) -> String {
    let mut out = String::from("{");
    for (member, value) in members(object.get()) {
        if !left_out(&member) {
            push_member(&mut out, &member, value.get());
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::Revision;
    use super::*;

    fn object(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).expect("JSON")
    }

    fn rules(revision: &str) -> &'static Rules {
        Revision::parse(revision).expect("known").rules()
    }

    #[test]
    fn capabilities_are_those_of_the_revision() {
        let all = r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{},"x":{}},"elicitation":{"form":{},"url":{}},"tasks":{},"x":{"url":{}}}"#;
        let oldest = r#"{"roots":{"listChanged":true},"sampling":{"x":{}},"x":{"url":{}}}"#;
        let plain = r#"{"roots":{"listChanged":true},"sampling":{"x":{}},"elicitation":{},"x":{"url":{}}}"#;
        for (revision, expected) in
            [("2024-11-05", oldest), ("2025-03-26", oldest), ("2025-06-18", plain), ("2025-11-25", all)]
        {
            assert_eq!(capabilities(rules(revision), &object(all)), expected, "{revision}");
        }
        let roots = object(r#"{"roots":{"listChanged":true}}"#);
        assert_eq!(capabilities(rules("2026-07-28"), &roots), r#"{"roots":{}}"#);
        let urls = object(r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(capabilities(rules("2025-06-18"), &urls), "{}");
        assert_eq!(capabilities(rules("2025-11-25"), &urls), urls.get());
    }

    #[test]
    fn who_it_is_is_said_as_the_revision_has_it() {
        let all = object(r#"{"name":"c","version":"1","title":"C","description":"d","icons":[],"websiteUrl":"w"}"#);
        for (revision, expected) in [
            ("2024-11-05", r#"{"name":"c","version":"1"}"#),
            ("2025-03-26", r#"{"name":"c","version":"1"}"#),
            ("2025-06-18", r#"{"name":"c","version":"1","title":"C"}"#),
            ("2025-11-25", all.get()),
        ] {
            assert_eq!(implementation(rules(revision), &all), expected, "{revision}");
        }
    }

    #[test]
    fn completion_has_a_context_where_there_is_one() {
        let params = object(r#"{"ref":{},"context":{"arguments":{}},"x":1}"#);
        for revision in ["2024-11-05", "2025-03-26"] {
            let shaped = completion(rules(revision), &params).expect("changed");
            assert_eq!(shaped.get(), r#"{"ref":{},"x":1}"#);
        }
        assert!(completion(rules("2025-06-18"), &params).is_none());
    }
}
