mod completion;
#[cfg(feature = "files")]
pub(super) mod files;
mod listening;
mod permits;
pub(super) mod session;
mod telling;
mod tools;

use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use serde::Deserialize;
use serde_json::json;

use self::session::Overlay;
use super::cache::CacheOptions;
use super::dispatch::{fail, start};
use super::extension::Extensions;
use super::listed::{Common, Entry, Kind, Listed};
use super::paging::bad_cursor;
use super::permits::{may, permit};
use super::registry::{Changes, Registry};
use super::resources::{ListedBySource, Read, SOURCE, not_found};
use crate::call::{Chain, Context, Handler, Link, SessionSlot, Tasks};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{self, RawJson};
#[cfg(feature = "http")]
use crate::model::mirror::Mirror;
use crate::model::{CacheHints, CacheScope, TaskSupport};
use crate::protocol::revision::{Era, object, shape};
use crate::protocol::{Call, Payload, States};

/// Finds what a request asks for and runs it.
pub(crate) struct Router {
    /// Itself, for what outlives a call of its functions.
    pub(crate) this: Weak<Self>,
    pub(crate) middleware: Chain,
    /// Values that every request of the server may use.
    pub(crate) states: RwLock<States>,
    /// The value that its lifespan started.
    pub(crate) lifespan_state: RwLock<Option<Arc<dyn Any + Send + Sync>>>,
    pub(crate) registry: RwLock<Registry>,
    pub(crate) common: Arc<Common>,
    pub(crate) page_size: AtomicUsize,
    /// Lifetime and scope of answers.
    pub(crate) cache: RwLock<CacheOptions>,
    /// Runs calls as tasks, where that is switched on.
    pub(crate) tasks: RwLock<Option<Arc<Tasks>>>,
    pub(super) extensions: Extensions,
}

impl Router {
    pub(crate) fn dispatch(&self, link: &Arc<dyn Link>, mut call: Call) {
        call.context.states = self.all_states();
        match (self.middleware.all(), self.this.upgrade()) {
            (Some(all), Some(router)) => all.incoming(link, call, move |link, call| router.route(link, call)),
            _ => self.route(link, call),
        }
    }

    /// Returns the values that every request may use.
    pub(super) fn all_states(&self) -> States {
        let states = self.states.read().unwrap_or_else(PoisonError::into_inner).clone();
        match &*self.lifespan_state.read().unwrap_or_else(PoisonError::into_inner) {
            Some(state) => states.and(state.clone()),
            None => states,
        }
    }

    fn route(&self, link: &Arc<dyn Link>, call: Call) {
        match call.method.name {
            "tools/call" => self.call_tool(link, call),
            "tools/list" => self.list(link, call, Kind::Tool),
            "resources/list" => self.list(link, call, Kind::Resource),
            "resources/templates/list" => self.list(link, call, Kind::ResourceTemplate),
            "resources/read" => self.read(link, call),
            "resources/subscribe" => self.subscribe(link, call, true),
            "resources/unsubscribe" => self.subscribe(link, call, false),
            "prompts/list" => self.list(link, call, Kind::Prompt),
            "prompts/get" => self.get_prompt(link, call),
            "completion/complete" => self.complete(link, call),
            "subscriptions/listen" => self.listen(link, call),
            name => match self.tasks().filter(|_| name.starts_with("tasks/")) {
                Some(tasks) if call.method.extension.is_some() => tasks.serve_extension(link, &call),
                Some(tasks) => tasks.serve(link, call, self.page_size.load(Ordering::Relaxed)),
                None if self.extensions.serve(link, &call) => {}
                None => self.pass_on(link, call),
            },
        }
    }

    pub(crate) fn tasks(&self) -> Option<Arc<Tasks>> {
        self.tasks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The arguments of the tool called `name` that HTTP headers mirror, as every client sees it; `None` where no tool has
    /// any.
    #[cfg(feature = "http")]
    pub(crate) fn mirrors(&self, name: &str) -> Option<Arc<[Mirror]>> {
        if !self.common.told.any_mirrors() {
            return None;
        }
        let entry = self.registry.read().unwrap_or_else(PoisonError::into_inner).find(|r| &r.tools, name, None);
        Some(entry.map_or_else(|| self.common.told.mirrors(name), |entry| entry.mirrors()))
    }

    /// Looks at what is registered, as the session of a request sees it.
    pub(super) fn look<T>(
        &self,
        link: &Arc<dyn Link>,
        call: &Call,
        look: impl FnOnce(&Registry, Option<&Changes>) -> T,
    ) -> T {
        let session = match call.context.revision.era() {
            Era::Legacy => Some(link.session()),
            Era::Modern => None,
        };
        self.see(session, look)
    }

    /// Looks at what is registered, as a session sees it.
    pub(super) fn see<T>(
        &self,
        session: Option<&SessionSlot>,
        look: impl FnOnce(&Registry, Option<&Changes>) -> T,
    ) -> T {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        let overlay = session.and_then(SessionSlot::get).and_then(|slot| slot.downcast_ref::<Overlay>());
        match overlay.and_then(|overlay| overlay.changes.get()) {
            None => look(&registry, None),
            Some(changes) => look(&registry, Some(&changes.read().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    /// Returns the lifetime and the scope of answers.
    fn cache(&self) -> CacheOptions {
        *self.cache.read().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- lists ------------------------------------------------------------------------------------------------

    fn list(&self, link: &Arc<dyn Link>, call: Call, kind: Kind) {
        #[derive(Deserialize, Default)]
        struct Params {
            #[serde(default)]
            cursor: Option<String>,
        }
        let params = match &call.params {
            None => Params::default(),
            Some(params) => match params.to() {
                Ok(params) => params,
                Err(_) => return fail(link, &call, Error::invalid_params("\"cursor\": expected a string")),
            },
        };
        let (source, restricted) = self.look(link, &call, |registry, changes| {
            (registry.source(kind).list.clone(), registry.is_restricted(kind, changes))
        });
        let mut hints = self.cache().of_list(kind, source.is_some());
        if restricted {
            hints = hints.scope(CacheScope::Private);
        }
        #[cfg(feature = "files")]
        if let Some((place, after)) = params.cursor.as_deref().and_then(files::place_of) {
            return self.list_directory(link, call, kind, &place, after, hints);
        }
        if let Some(inner) = params.cursor.as_deref().and_then(|cursor| cursor.strip_prefix(SOURCE)) {
            return match source {
                Some(source) => {
                    self.list_source(link, call, source, ListedBySource::new(kind, &self.common, hints), Some(inner))
                }
                None => fail(link, &call, bad_cursor()),
            };
        }
        let page_size = self.page_size.load(Ordering::Relaxed);
        let revision = call.context.revision;
        let page = self.look(link, &call, |registry, changes| {
            let permitted = |listed: &Listed| may(&listed.scopes, &call.context.transport);
            registry.list(kind, revision, params.cursor.as_deref(), page_size, changes, permitted)
        });
        #[cfg_attr(not(feature = "files"), expect(unused_mut, unused_variables, reason = "of files"))]
        let (mut text, mut last, sizes) = match page {
            Ok(page) => page,
            Err(error) => return fail(link, &call, error),
        };
        #[cfg(feature = "files")]
        if last
            && kind == Kind::Resource
            && self.look(link, &call, |registry, changes| {
                files::visible(registry, "", changes, &call.context.transport).next().is_some()
            })
        {
            if text.ends_with(":[]") {
                return self.list_directory(link, call, kind, "", None, hints);
            }
            text.push_str(&format!(",\"nextCursor\":\"{}.\"", files::FOLDER));
            last = false;
        }
        match source {
            // Nothing of our own: the source's first page is the first.
            Some(source) if last && text.ends_with(":[]") => {
                let list = ListedBySource::new(kind, &self.common, hints);
                return self.list_source(link, call, source, list, None);
            }
            Some(_) if last => text.push_str(&format!(",\"nextCursor\":\"{SOURCE}\"")),
            _ => {}
        }
        if revision.rules().result_type {
            text.push_str(&hints.written());
        }
        text.push('}');
        #[cfg(feature = "files")]
        if !sizes.is_empty() {
            return files::fill(link, call, &self.common, sizes, text);
        }
        link.clone().complete(call.id, Ok(Payload::Object(RawJson::written(text))));
    }

    /// A page of a directory's files; after the last comes the next directory, then the source.
    #[cfg(feature = "files")]
    fn list_directory(
        &self,
        link: &Arc<dyn Link>,
        call: Call,
        kind: Kind,
        place: &str,
        after: Option<String>,
        hints: CacheHints,
    ) {
        if kind != Kind::Resource {
            return fail(link, &call, bad_cursor());
        }
        let (found, next, barred) = self.look(link, &call, |registry, changes| {
            // It may have been removed since the cursor was given out; then the list goes on with the next.
            let mut rest = files::visible(registry, place, changes, &call.context.transport);
            let found = rest.next().cloned();
            let next = match rest.next() {
                Some(next) => Some(files::cursor(next, "")),
                None => registry.source(kind).list.as_ref().map(|_| SOURCE.to_owned()),
            };
            (found, next, files::barred(registry, changes, &call.context.transport))
        });
        let Some(directory) = found else {
            let mut text = "{\"resources\":[]".to_owned();
            if let Some(next) = next {
                text.push_str(&format!(",\"nextCursor\":\"{next}\""));
            }
            if call.context.revision.rules().result_type {
                text.push_str(&hints.written());
            }
            text.push('}');
            return link.clone().complete(call.id, Ok(Payload::Object(RawJson::written(text))));
        };
        let after = after.filter(|_| *super::paging::key(directory.base()) == *place);
        let page_size = self.page_size.load(Ordering::Relaxed);
        let asked = files::Asked { directory, barred, after, page_size, next, hints };
        files::list(link, call, self.common.clone(), asked);
    }

    fn list_source(
        &self,
        link: &Arc<dyn Link>,
        call: Call,
        source: Arc<dyn Handler>,
        mut list: ListedBySource,
        cursor: Option<&str>,
    ) {
        let params = match cursor.filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => RawJson::from_value(&json!({"cursor": cursor})),
            None => RawJson::empty_object(),
        };
        let kind = list.kind;
        list.whole = self.look(link, &call, |registry, _| !registry.has_own(kind));
        start(link, call, source, Some(Arc::new(list)), params);
    }

    // ---- tools ------------------------------------------------------------------------------------------------

    fn call_tool(&self, link: &Arc<dyn Link>, mut call: Call) {
        let given = call.arguments.take();
        let name = match named(&call, "name", "the name of a tool") {
            Ok(name) => name,
            Err(error) => return fail(link, &call, error),
        };
        let entry = self.look(link, &call, |registry, changes| {
            let entry = registry.find(|r| &r.tools, &name, changes);
            entry.ok_or_else(|| registry.source(Kind::Tool).get.clone())
        });
        let arguments = match given {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.is_object() => arguments,
            // The empty object as PHP writes it.
            Some(arguments) if arguments.get() == "[]" => RawJson::empty_object(),
            Some(other) => {
                let message = format!("\"arguments\": expected an object, got {}", shown(&other));
                return fail(link, &call, Error::invalid_params(message));
            }
        };
        let has_tasks = || call.context.revision.rules().tasks && self.tasks().is_some();
        match entry {
            Ok(entry) => {
                if let Err(error) = permit(entry.listed(), &call.context.transport) {
                    return fail(link, &call, error);
                }
                if let Err(error) = entry.check_task(call.task.is_some(), has_tasks) {
                    return fail(link, &call, error);
                }
                match entry.check_arguments(&arguments) {
                    Ok(read) => {
                        let arguments = read.unwrap_or(arguments);
                        let (handler, support) = (entry.listed().handler.clone(), entry.task_support());
                        self.run_tool(link, call, handler, entry, arguments, support);
                    }
                    // The model can mend it, so it is told in every revision.
                    Err(text) => {
                        let fails = Arc::new(super::tools::Fails(text));
                        self.run_tool(link, call, fails, entry, arguments, TaskSupport::Forbidden);
                    }
                }
            }
            Err(Some(source)) => {
                let support = match self.common.told.check(&name, call.task.is_some(), has_tasks) {
                    Ok(support) => support,
                    Err(error) => return fail(link, &call, error),
                };
                let params = given_to_source(&call);
                let shaper = Arc::new(super::tools::Unlisted { common: self.common.clone() });
                self.run_tool(link, call, source, shaper, params, support);
            }
            Err(None) => {
                fail(link, &call, Error::invalid_params(format!("unknown tool {:?}", shortened(&name, 100))));
            }
        }
    }

    // ---- resources --------------------------------------------------------------------------------------------

    fn read(&self, link: &Arc<dyn Link>, call: Call) {
        let uri = match named(&call, "uri", "the URI of a resource") {
            Ok(uri) => uri.into_owned(),
            Err(error) => return fail(link, &call, error),
        };
        let cache = Some(self.cache()).filter(|_| !was_asked(&call));
        type Found = Option<(Arc<dyn Handler>, Read, Result<RawJson>)>;
        let found = self.look(link, &call, |registry, changes| -> Found {
            if let Some(entry) = registry.find(|r| &r.resources, &uri, changes) {
                let params = RawJson::from_value(&json!({"uri": uri}));
                let params = permit(entry.listed(), &call.context.transport).map(|()| params);
                return Some((entry.listed().handler.clone(), Read::of(entry.listed(), &uri, cache), params));
            }
            for entry in registry.visible(|r| &r.templates, changes) {
                if let Some(variables) = entry.template.matches(&uri) {
                    let permitted = permit(entry.listed(), &call.context.transport);
                    let arguments = permitted.and_then(|()| entry.arguments(variables));
                    return Some((entry.listed().handler.clone(), Read::of(entry.listed(), &uri, cache), arguments));
                }
            }
            #[cfg(feature = "files")]
            let folder = files::reader(registry, &uri, changes, &call.context.transport, &self.common.jobs);
            #[cfg(not(feature = "files"))]
            let folder: Option<Result<Arc<dyn Handler>>> = None;
            let params = match &folder {
                Some(Err(error)) => Err(error.clone()),
                _ => Ok(RawJson::from_value(&json!({"uri": uri}))),
            };
            let source = folder.and_then(Result::ok).or_else(|| registry.source(Kind::Resource).get.clone())?;
            let read = Read {
                uri: uri.clone(),
                mime_type: None,
                subject: format!("resource {:?}", shortened(&uri, 200)),
                common: self.common.clone(),
                hints: cache.map(|cache| cache.of_read(CacheHints::new())).unwrap_or_default(),
            };
            Some((source, read, params))
        });
        match found {
            Some((handler, read, Ok(params))) => start(link, call, handler, Some(Arc::new(read)), params),
            Some((_, _, Err(error))) => fail(link, &call, error),
            None => fail(link, &call, not_found(&uri)),
        }
    }

    // ---- prompts and completion -------------------------------------------------------------------------------

    fn get_prompt(&self, link: &Arc<dyn Link>, call: Call) {
        let name = match named(&call, "name", "the name of a prompt") {
            Ok(name) => name,
            Err(error) => return fail(link, &call, error),
        };
        let entry = self.look(link, &call, |registry, changes| {
            let entry = registry.find(|r| &r.prompts, &name, changes);
            entry.ok_or_else(|| registry.source(Kind::Prompt).get.clone())
        });
        match entry {
            Ok(entry) => match permit(entry.listed(), &call.context.transport)
                .and_then(|()| entry.arguments(call.arguments.as_ref()))
            {
                Ok(arguments) => {
                    let handler = entry.listed().handler.clone();
                    start(link, call, handler, Some(entry), arguments);
                }
                Err(error) => fail(link, &call, error),
            },
            Err(Some(source)) => {
                let params = given_to_source(&call);
                let shaper = Arc::new(super::prompts::Unlisted { common: self.common.clone() });
                start(link, call, source, Some(shaper), params);
            }
            Err(None) => {
                fail(link, &call, Error::invalid_params(format!("unknown prompt {:?}", shortened(&name, 100))));
            }
        }
    }
}

#[cfg(feature = "files")]
pub(super) fn covers(registry: &Registry, uri: &str, changes: Option<&Changes>) -> bool {
    !registry.directories_of(uri, changes).is_empty()
}

#[cfg(not(feature = "files"))]
pub(super) fn covers(_: &Registry, _: &str, _: Option<&Changes>) -> bool {
    false
}

/// The URI that a request is about.
#[cfg(feature = "files")]
pub(super) fn uri_of(cx: &Context) -> String {
    let name = cx.request().name.as_ref();
    name.and_then(|name| jsonrpc::unquoted(name.get())).map(Cow::into_owned).unwrap_or_default()
}

/// The parameters as a source gets them. The client's answers, and their state, are its own with this server: a source
/// that asks another one with them would bring both there.
fn given_to_source(call: &Call) -> RawJson {
    call.params.as_ref().map_or_else(RawJson::empty_object, shape::without_rounds)
}

/// Returns true if a request brings answers to what it was asked: its result depends on them, so it is not to be kept.
fn was_asked(call: &Call) -> bool {
    let members = call.params.as_ref().map(|params| object::members(params.get())).unwrap_or_default();
    members.iter().any(|(key, _)| key == "inputResponses" || key == "requestState")
}

/// The member of the parameters that says what the request is about.
pub(super) fn named<'a>(call: &'a Call, key: &str, what: &str) -> Result<Cow<'a, str>> {
    let Some(name) = &call.name else {
        return Err(Error::invalid_params(format!("{key:?}: missing, expected {what}")));
    };
    jsonrpc::unquoted(name.get())
        .ok_or_else(|| Error::invalid_params(format!("{key:?}: expected a string, got {}", shown(name))))
}

fn shown(value: &RawJson) -> Cow<'_, str> {
    shortened(value.get(), 60)
}
