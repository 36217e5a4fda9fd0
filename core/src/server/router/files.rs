//! Files and directories among the resources: their handlers, and the pages of their lists. File systems block, so all
//! of it runs on threads for that.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::call::{Context, Handler, HiddenError, Link, Reply};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::CacheHints;
use crate::protocol::revision::{Rules, object, shape};
use crate::protocol::{Call, Transport};
use crate::server::cache::restricted;
use crate::server::files::{Contents, Directory, File, Guarded, ReadError};
use crate::server::jobs::Jobs;
use crate::server::listed::{Common, Kind, Sizes};
use crate::server::paging::{key, sealed, unsealed};
use crate::server::permits::{may, of_directories, permit_use};
use crate::server::registry::{Changes, Registry};

/// Beginning of the cursors of a directory's pages.
pub(super) const FOLDER: &str = "f-";

/// The directories that a request may see, in order of their base URIs, from this one on.
pub(super) fn visible<'a>(
    registry: &'a Registry,
    from: &str,
    changes: Option<&'a Changes>,
    transport: &'a Transport,
) -> impl Iterator<Item = &'a Arc<Directory>> {
    registry.directories_from(from, changes).filter(|directory| may(directory.needs(), transport))
}

/// Returns the handler that reads a URI below a directory. The scopes of the innermost directory decide; the others are
/// left out where the caller may not use them.
///
/// # Errors
/// −32600 naming the scopes.
pub(super) fn reader(
    registry: &Registry,
    uri: &str,
    changes: Option<&Changes>,
    transport: &Transport,
    jobs: &Arc<Jobs>,
) -> Option<Result<Arc<dyn Handler>>> {
    let needs = of_directories(registry, changes, uri)?;
    if let Err(error) = permit_use(&|| subject(uri), &needs, transport) {
        return Some(Err(error));
    }
    let mut directories = registry.directories_of(uri, changes);
    directories.retain(|directory| may(directory.needs(), transport));
    let guarded = registry.guarded(changes).into();
    Some(Ok(Arc::new(ReadsDirectories { directories, guarded, jobs: jobs.clone() })))
}

fn subject(uri: &str) -> String {
    format!("resource {:?}", shortened(uri, 200))
}

/// Returns the resources that a request may not see, whatever directory they lie in.
pub(super) fn barred(registry: &Registry, changes: Option<&Changes>, transport: &Transport) -> Vec<Guarded> {
    let mut guarded = registry.guarded(changes);
    guarded.retain(|one| !may(one.needs(), transport));
    guarded
}

/// Reads one file.
pub(in crate::server) struct ReadsFile {
    pub(in crate::server) file: Arc<File>,
    pub(in crate::server) jobs: Arc<Jobs>,
}

impl Handler for ReadsFile {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let file = self.file.clone();
        let uri = crate::server::router::uri_of(&cx);
        // Its definition says how long it keeps.
        self.jobs.run(&cx, move || answer(file.read(), &uri, CacheHints::new(), reply));
    }
}

/// Reads the files of directories, the first that has the file.
struct ReadsDirectories {
    directories: Vec<Arc<Directory>>,
    guarded: Arc<[Guarded]>,
    jobs: Arc<Jobs>,
}

impl Handler for ReadsDirectories {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let (directories, guarded) = (self.directories.clone(), self.guarded.clone());
        let uri = crate::server::router::uri_of(&cx);
        self.jobs.run(&cx.clone(), move || {
            for directory in &directories {
                let inside = directory.really_inside(&uri, &guarded);
                let permitted = |one: &&Guarded| permit_use(&|| subject(&uri), one.needs(), &cx.request().transport);
                if let Some(error) = inside.iter().find_map(|one| permitted(one).err()) {
                    return reply.error(error);
                }
                let outcome = directory.read(&uri);
                if !matches!(outcome, Err(ReadError::NotFound)) {
                    let hints = inside.iter().fold(directory.hints(), |hints, one| restricted(hints, one.needs()));
                    return answer(outcome, &uri, hints, reply);
                }
            }
            answer(Err(ReadError::NotFound), &uri, CacheHints::new(), reply);
        });
    }
}

/// Handler of a listing, which answers by itself.
struct Lists;

impl Handler for Lists {
    fn call(&self, _: Context, _: RawJson, _: Reply) {}
}

fn answer(outcome: Result<Contents, ReadError>, uri: &str, hints: CacheHints, reply: Reply) {
    match outcome {
        Ok(contents) => {
            let mut result = serde_json::json!({"contents": [contents]});
            let (millis, scope) = hints.members();
            if hints.ttl.is_some() {
                result["ttlMs"] = millis.into();
            }
            if hints.scope.is_some() {
                result["cacheScope"] = scope.as_str().into();
            }
            reply.result(RawJson::from_value(&result));
        }
        Err(ReadError::NotFound) => reply.error(Error::resource_not_found(uri)),
        Err(ReadError::Failed(error)) => reply.hidden("io::Error", &error),
        Err(refused) => reply.error(Error::invalid_params(format!("\"uri\": {refused}"))),
    }
}

/// A page of a directory's files that is asked for.
pub(super) struct Asked {
    pub(super) directory: Arc<Directory>,
    /// Resources of the directory that are not shown.
    pub(super) barred: Vec<Guarded>,
    /// File after which it begins.
    pub(super) after: Option<String>,
    pub(super) page_size: usize,
    /// Cursor of the list after the directory's last page.
    pub(super) next: Option<String>,
    /// Lifetime and scope of the list.
    pub(super) hints: CacheHints,
}

/// Answers with a page in which the sizes of files are missing.
pub(super) fn fill(link: &Arc<dyn Link>, call: Call, common: &Arc<Common>, sizes: Sizes, mut page: String) {
    let context = Context::new(call.id, call.context, link.clone(), Arc::new(Lists));
    if !link.started(&context) {
        return;
    }
    let reply = Reply::new(context.clone(), None);
    common.jobs.run(&context, move || {
        sizes.fill(&mut page);
        reply.result(RawJson::written(page));
    });
}

/// Answers with one page of a directory's files.
pub(super) fn list(link: &Arc<dyn Link>, call: Call, common: Arc<Common>, asked: Asked) {
    let context = Context::new(call.id, call.context, link.clone(), Arc::new(Lists));
    if !link.started(&context) {
        return;
    }
    let reply = Reply::new(context.clone(), None);
    common.jobs.clone().run(&context.clone(), move || {
        let Asked { directory, barred, after, page_size, next, hints } = asked;
        let rules = context.request().revision.rules();
        let hides = |uri: &str| !barred.is_empty() && !directory.really_inside(uri, &barred).is_empty();
        match directory.list_unless(&|| context.is_cancelled(), &hides, after.as_deref(), page_size) {
            Ok(page) => {
                if directory.is_news(&page) {
                    let subject = format!("the list of {}", directory.base());
                    let error = Box::<HiddenError>::from("the rest is on no page (max_files)");
                    common.failures.report(directory.base(), &subject, "too many files", &*error);
                }
                let next = page.next.map(|after| cursor(&directory, &after)).or(next);
                reply.result(page_of(rules, page.entries.iter().map(serde_json::to_value), next, hints));
            }
            Err(_) if context.is_cancelled() => drop(reply),
            Err(error) => {
                let subject = format!("the list of {}", directory.base());
                common.failures.report(directory.base(), &subject, "io::Error", &error);
                reply.error(Error::rpc(code::INTERNAL_ERROR, format!("{subject} failed: io::Error")));
            }
        }
    });
}

fn page_of(
    rules: &Rules,
    entries: impl Iterator<Item = serde_json::Result<Value>>,
    next: Option<String>,
    hints: CacheHints,
) -> RawJson {
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
        object::push_member(&mut out, "nextCursor", RawJson::from_value(&next).get());
    }
    if rules.result_type {
        out.push_str(&hints.written());
    }
    out.push('}');
    RawJson::written(out)
}

/// Returns the cursor of a directory's beginning, or of its continuation after this file.
pub(super) fn cursor(directory: &Directory, after: &str) -> String {
    format!("{FOLDER}{}.{after}", sealed(&key(directory.base())))
}

/// The directory and the place in it that a cursor names. No directory is the first one.
pub(super) fn place_of(cursor: &str) -> Option<(String, Option<String>)> {
    let (place, after) = cursor.strip_prefix(FOLDER)?.split_once('.')?;
    let place = if place.is_empty() { String::new() } else { unsealed(place)? };
    Some((place, (!after.is_empty()).then(|| after.to_owned())))
}
