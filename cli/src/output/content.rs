//! Blocks of content, as people read them.

use serde_json::{Map, Value};

use super::media::{Media, Place};
use super::screen::Screen;
use super::table::wrapped;
use super::text::shown;

/// Makes text of the blocks of a result or of a message.
pub(crate) fn blocks(screen: &Screen, place: &Place, content: &[Value]) -> String {
    let all: Vec<_> = content.iter().map(|block| one(screen, place, block)).collect();
    all.join("\n")
}

/// The same for standard error: nothing of it is meant for a terminal.
pub(crate) fn plain(place: &Place, content: &[Value]) -> String {
    let all = content.iter().map(|block| {
        let member = |name: &str| block.get(name).and_then(Value::as_str);
        let embedded = block.get("resource").unwrap_or(&Value::Null);
        let text = member("text").or_else(|| embedded["text"].as_str());
        let data = member("data").or_else(|| embedded["blob"].as_str());
        let mime = member("mimeType").or_else(|| embedded["mimeType"].as_str());
        match (text, data.and_then(|data| Media::decoded(data, mime))) {
            (Some(text), _) => shown(text).into_owned(),
            (None, Some(media)) => {
                shown(&media.named_by(embedded["uri"].as_str().unwrap_or_default()).saved(place)).into_owned()
            }
            (None, None) => shown(&pretty(block)).into_owned(),
        }
    });
    all.collect::<Vec<_>>().join("\n")
}

/// Makes text of what was read of a resource.
pub(crate) fn contents(screen: &Screen, place: &Place, entries: &[Map<String, Value>]) -> String {
    let named = entries.len() > 1;
    let all = entries.iter().map(|entry| {
        let head = match entry.get("uri").and_then(Value::as_str).filter(|_| named) {
            Some(uri) => format!("{}\n", screen.style().bold(&screen.for_output(uri))),
            None => String::new(),
        };
        format!("{head}{}", resource(screen, place, entry))
    });
    all.collect::<Vec<_>>().join("\n")
}

fn one(screen: &Screen, place: &Place, block: &Value) -> String {
    let member = |name: &str| block.get(name).and_then(Value::as_str);
    match member("type") {
        Some("text") => screen.for_output(member("text").unwrap_or_default()),
        Some("image" | "audio") => media(screen, place, member("data"), member("mimeType")),
        Some("resource_link") => {
            let (name, uri) = (member("title").or_else(|| member("name")).unwrap_or_default(), member("uri"));
            let line = format!("{} <{}>", screen.for_output(name), screen.for_output(uri.unwrap_or_default()));
            match member("description") {
                Some(text) => format!("{line}\n{}", wrapped(screen, text, "  ")),
                None => line,
            }
        }
        Some("resource") => match block.get("resource").and_then(Value::as_object) {
            Some(entry) => {
                let uri = entry.get("uri").and_then(Value::as_str).unwrap_or_default();
                format!("{}\n{}", screen.style().dim(&screen.for_output(uri)), resource(screen, place, entry))
            }
            None => String::new(),
        },
        // What a later revision has.
        _ => screen.for_output(&pretty(block)),
    }
}

fn resource(screen: &Screen, place: &Place, entry: &Map<String, Value>) -> String {
    let member = |name: &str| entry.get(name).and_then(Value::as_str);
    match (member("text"), member("blob")) {
        (Some(text), _) => screen.for_output(text),
        (None, Some(blob)) => match Media::decoded(blob, member("mimeType")) {
            Some(media) => media.named_by(member("uri").unwrap_or_default()).place(screen, place),
            None => not_base64(screen, member("mimeType")),
        },
        (None, None) => String::new(),
    }
}

fn media(screen: &Screen, place: &Place, data: Option<&str>, mime: Option<&str>) -> String {
    match Media::decoded(data.unwrap_or_default(), mime) {
        Some(media) => media.place(screen, place),
        None => not_base64(screen, mime),
    }
}

fn not_base64(screen: &Screen, mime: Option<&str>) -> String {
    format!("{}: not base64", screen.for_output(mime.unwrap_or("bytes")))
}

/// JSON on several lines.
pub(crate) fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
