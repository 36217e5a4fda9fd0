//! Files and directories among the resources: their handlers, and the pages of their lists. File systems block, so all
//! of it runs on threads for that.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::files::{Contents, Directory, File, ReadError};
use super::listed::{Common, Kind};
use crate::call::{Context, Handler, Link, Reply};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::{Rules, shape};
use crate::protocol::{Call, Payload};

/// What the cursors of a directory's pages begin with.
pub(super) const FOLDER: &str = "f-";

/// Reads one file.
pub(super) struct ReadsFile(pub(super) Arc<File>);

impl Handler for ReadsFile {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let file = self.0.clone();
        let uri = super::router::uri_of(&cx);
        cx.link().clone().block(Box::new(move || answer(file.read(), &uri, reply)));
    }
}

/// Reads the files of a directory.
pub(super) struct ReadsDirectory(pub(super) Arc<Directory>);

impl Handler for ReadsDirectory {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let directory = self.0.clone();
        let uri = super::router::uri_of(&cx);
        cx.link().clone().block(Box::new(move || answer(directory.read(&uri), &uri, reply)));
    }
}

fn answer(outcome: Result<Contents, ReadError>, uri: &str, reply: Reply) {
    match outcome {
        Ok(contents) => reply.result(RawJson::from_value(&serde_json::json!({"contents": [contents]}))),
        Err(ReadError::NotFound) => reply.error(Error::resource_not_found(uri)),
        Err(ReadError::Failed(error)) => reply.hidden("io::Error", &error),
        Err(refused) => reply.error(Error::invalid_params(format!("\"uri\": {refused}"))),
    }
}

/// A page of a directory's files that is asked for.
pub(super) struct Asked {
    pub(super) directory: Arc<Directory>,
    /// Which of the server's directories it is.
    pub(super) place: usize,
    /// After which file it begins.
    pub(super) after: Option<String>,
    pub(super) page_size: usize,
    /// Where the list goes on after the directory's last page.
    pub(super) next: Option<String>,
}

/// Answers with one page of a directory's files.
pub(super) fn list(link: &Arc<dyn Link>, call: Call, common: Arc<Common>, asked: Asked) {
    let link = link.clone();
    link.clone().block(Box::new(move || {
        let Asked { directory, place, after, page_size, next } = asked;
        let rules = call.context.revision.rules();
        let outcome = match directory.list(after.as_deref(), page_size) {
            Ok(page) => {
                let next = page.next.map(|after| format!("{FOLDER}{place}-{after}")).or(next);
                Ok(Payload::Object(page_of(rules, page.entries.iter().map(serde_json::to_value), next)))
            }
            Err(error) => {
                let subject = format!("the list of {}", directory.base());
                common.failures.report(directory.base(), &subject, "io::Error", &error);
                Err(Error::rpc(code::INTERNAL_ERROR, format!("{subject} failed: io::Error")))
            }
        };
        link.complete(call.id, outcome);
    }));
}

fn page_of(rules: &Rules, entries: impl Iterator<Item = serde_json::Result<Value>>, next: Option<String>) -> RawJson {
    let mut out = String::from("{\"resources\":[");
    for (n, entry) in entries.flatten().enumerate() {
        let members: Map<String, Value> = entry.as_object().cloned().unwrap_or_default();
        if n > 0 {
            out.push(',');
        }
        out.push_str(shape::definition(rules, Kind::Resource, &members).get());
    }
    out.push(']');
    if let Some(next) = next {
        shape::push_member(&mut out, "nextCursor", RawJson::from_value(&next).get());
    }
    out.push('}');
    RawJson::written(out)
}

/// The directory and the place in it that a cursor names.
pub(super) fn place_of(cursor: &str) -> Option<(usize, Option<String>)> {
    let (place, after) = cursor.strip_prefix(FOLDER)?.split_once('-')?;
    Some((place.parse().ok()?, (!after.is_empty()).then(|| after.to_owned())))
}
