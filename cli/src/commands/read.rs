use serde_json::{Map, Value, json};

use crate::arguments::Read;
use crate::connection::Session;
use crate::failure::{FAILED, Failure, MISUSE, Outcome};
use crate::output::{Media, Place, Progress, contents, size};

/// Reads a resource.
pub(super) async fn read(session: &Session, read: &Read) -> Outcome<u8> {
    let (screen, what) = (&session.screen, &read.uri);
    if what.trim().is_empty() {
        return Err(Failure::misuse("the URI is empty"));
    }
    let progress = Progress::new(screen);
    let options = session.patient().on_progress(progress.listener());
    let result = session.request(what, "resources/read", &json!({"uri": read.uri}), &options).await?;
    drop(progress);
    let result: Value = result.to().map_err(|error| Failure::new(FAILED, format!("{what}: {error}")))?;
    if read.json {
        screen.json(&result);
        return Ok(0);
    }
    let entries: Vec<Map<String, Value>> =
        result["contents"].as_array().into_iter().flatten().filter_map(|entry| entry.as_object().cloned()).collect();
    match (&read.output, entries.as_slice()) {
        (Some(path), [only]) => {
            let bytes = bytes(what, only)?;
            let wrote = std::fs::write(path, &bytes);
            wrote.map_err(|error| Failure::new(MISUSE, format!("--output {}: {error}", path.display())))?;
            screen.line(&format!("{}: {}", path.display(), size(bytes.len())));
        }
        (Some(_), several) => {
            let count = several.len();
            return Err(Failure::new(
                FAILED,
                format!("{what}: it has {count} parts, and --output takes one: use --json"),
            ));
        }
        // For another program it is what it is.
        (None, [only]) if !screen.is_terminal() => {
            screen.bytes(&bytes(what, only)?);
        }
        (None, entries) => screen.print(&contents(screen, &Place::Temporary, entries)),
    }
    Ok(0)
}

fn bytes(what: &str, entry: &Map<String, Value>) -> Outcome<Vec<u8>> {
    let member = |name: &str| entry.get(name).and_then(Value::as_str);
    match (member("text"), member("blob")) {
        (Some(text), _) => Ok(text.as_bytes().to_vec()),
        (None, Some(blob)) => {
            let media = Media::decoded(blob, None);
            let broken = || Failure::new(FAILED, format!("{what}: the server's blob is no base64: --json prints it"));
            media.map(|media| media.bytes).ok_or_else(broken)
        }
        (None, None) => Ok(Vec::new()),
    }
}
