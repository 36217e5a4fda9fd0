//! Extensions of one's own (specification, "Extensions"): settings, requests, notifications to those who listen.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value, json};

use super::IntoHandler;
use super::listed::Common;
use crate::call::{Failures, Handler, Link, Shaper};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::schema::Schema;
use crate::model::{SubscriptionFilter, TASKS_EXTENSION, check_extension};
use crate::options::check_object;
use crate::protocol::revision::modern::missing_extension;
use crate::protocol::revision::{Method, Revision, object};
use crate::protocol::{Announcement, Call, Payload};

/// An extension of the protocol that a server offers: its name, the settings that it is declared with, and the requests
/// and notifications that belong to it. Both sides have to declare it; a client that does not never hears of it.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::prelude::*;
/// use tricorn::server::Extension;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Query { query: String }
///
/// let search = Extension::new("com.example/search")
///     .method("com.example/search", async |Query { query }: Query| Ok(json!({"found": [query]})));
/// let server = Server::new("library").extension(search);
///
/// let options = ClientOptions::new().extension("com.example/search", json!({}));
/// let client = Client::in_memory(&server, &options).await?;
/// let query = RawJson::from_value(&json!({"query": "tea"}));
/// let found = client.request("com.example/search", Some(query), &CallOptions::new()).await?;
/// # assert!(found.get().contains("tea"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Extension {
    id: String,
    settings: Value,
    methods: Vec<Row>,
    notifications: Vec<(String, String)>,
}

struct Row {
    name: String,
    idempotent: bool,
    schema: Option<Value>,
    handler: Arc<dyn Handler>,
}

impl Extension {
    /// An extension called `id`: a name with a prefix, such as `com.example/search`. It has no settings: `{}`.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), settings: json!({}), methods: Vec::new(), notifications: Vec::new() }
    }

    /// Sets the settings that are declared to clients with it: an object.
    pub fn settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    /// Answers this request, such as `com.example/search`, with a function of its parameters, which may ask for the
    /// context, too. The function's parameters are checked (−32602); its return value is the result, an object. Its
    /// `resultType`, where it has one, is a name of the extension's (2026-07-28).
    pub fn method<M, F: IntoHandler<M>>(self, name: impl Into<String>, handler: F) -> Self {
        self.row(name.into(), false, F::input_schema(), handler.into_handler())
    }

    /// As [`method`](Self::method), for a request that may be sent again when nobody knows whether it was carried out.
    pub fn idempotent_method<M, F: IntoHandler<M>>(self, name: impl Into<String>, handler: F) -> Self {
        self.row(name.into(), true, F::input_schema(), handler.into_handler())
    }

    pub(crate) fn row(
        mut self,
        name: String,
        idempotent: bool,
        schema: Option<Value>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        self.methods.push(Row { name, idempotent, schema, handler });
        self
    }

    /// Sends this notification to clients that ask for it: `member` of the filter of `subscriptions/listen` is `true`, or
    /// an array of the keys that they want to hear of. See [`Server::notify`](crate::Server::notify).
    pub fn notification(mut self, method: impl Into<String>, member: impl Into<String>) -> Self {
        self.notifications.push((method.into(), member.into()));
        self
    }
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let methods: Vec<_> = self.methods.iter().map(|row| &row.name).collect();
        f.debug_struct("Extension").field("id", &self.id).field("methods", &methods).finish_non_exhaustive()
    }
}

/// The extensions of a server.
#[derive(Default)]
pub(crate) struct Extensions(RwLock<Known>);

#[derive(Default)]
struct Known {
    settings: BTreeMap<String, Value>,
    methods: BTreeMap<&'static str, Arc<Served>>,
    rows: Vec<&'static Method>,
    /// Notifications, each with its extension and the member of the filter that asks for it.
    notifications: BTreeMap<String, (Arc<str>, Arc<str>)>,
}

impl Extensions {
    fn read<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the settings that are declared of them.
    pub(super) fn settings(&self) -> BTreeMap<String, Value> {
        self.read(|known| known.settings.clone())
    }

    /// Their requests.
    pub(super) fn rows(&self) -> Vec<&'static Method> {
        self.read(|known| known.rows.clone())
    }

    pub(super) fn add(&self, extension: Extension, common: &Arc<Common>) -> Result<()> {
        let Extension { id, settings, methods, notifications } = extension;
        let wrong = |why: String| Error::misuse(format!("extension {:?}: {why}", shortened(&id, 100)));
        check_extension(&id, &settings).map_err(wrong)?;
        if id == TASKS_EXTENSION {
            return Err(wrong("switch it on by the option \"tasks\"".into()));
        }
        let mut served = Vec::new();
        for Row { name, idempotent, schema, handler } in methods {
            let what = format!("extension {id:?}: {name:?}");
            let schema = match schema {
                Some(source) => Some((Schema::new(&format!("{what}: parameters"), &source)?, source)),
                None => None,
            };
            let row = Method::define(&id, &name, idempotent).map_err(wrong)?;
            served.push((row, Arc::new(Served { row, schema, handler, common: common.clone() })));
        }
        for (method, member) in &notifications {
            Method::check_notification(method).map_err(wrong)?;
            if member.is_empty() || SubscriptionFilter::is_own(member) {
                return Err(wrong(format!("{method:?}: {member:?} is no name for a member of its own of the filter")));
            }
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.settings.contains_key(&id) {
            return Err(wrong("it is there already".into()));
        }
        for (place, (row, _)) in served.iter().enumerate() {
            if known.methods.contains_key(row.name) || served[..place].iter().any(|(other, _)| other.name == row.name) {
                return Err(wrong(format!("{:?} is there already", row.name)));
            }
        }
        for (place, (method, member)) in notifications.iter().enumerate() {
            let taken = |(other, own): (&str, &str)| other == method || own == member;
            let mut all = known.notifications.iter().map(|(method, (_, member))| (method.as_str(), &**member));
            let mut new = notifications[..place].iter().map(|(method, member)| (method.as_str(), member.as_str()));
            if all.any(taken) || new.any(taken) {
                return Err(wrong(format!("{method:?} or {member:?} is there already")));
            }
        }
        let shared: Arc<str> = id.as_str().into();
        for (method, member) in notifications {
            known.notifications.insert(method, (shared.clone(), member.into()));
        }
        for (row, served) in served {
            known.rows.push(row);
            known.methods.insert(row.name, served);
        }
        known.settings.insert(id, settings);
        Ok(())
    }

    /// Answers a request of one of them. `false`: there is none.
    pub(super) fn serve(&self, link: &Arc<dyn Link>, call: &Call) -> bool {
        let Some(served) = self.read(|known| known.methods.get(call.method.name).cloned()) else { return false };
        match served.parameters(call.params.as_ref()) {
            Ok(params) => super::dispatch::start(link, call.clone(), served.handler.clone(), Some(served), params),
            Err(error) => super::dispatch::fail(link, call, error),
        }
        true
    }

    /// Adds to a filter what a client asks for that belongs to extensions.
    ///
    /// # Errors
    /// −32602 for what can not be asked for so, −32021 when the client does not declare the extension.
    pub(super) fn asked(
        &self,
        members: &Map<String, Value>,
        declares: impl Fn(&str) -> bool,
        filter: &mut SubscriptionFilter,
    ) -> Result<()> {
        self.read(|known| {
            for (extension, member) in known.notifications.values() {
                let Some(value) = members.get(&**member) else { continue };
                // To ask for nothing nobody needs to declare anything.
                if matches!(value, Value::Bool(false)) || value.as_array().is_some_and(Vec::is_empty) {
                    continue;
                }
                if !declares(extension) {
                    return Err(missing_extension(extension));
                }
                filter.add_other(member, value)?;
            }
            Ok(())
        })
    }

    pub(super) fn announcement(&self, method: &str, params: RawJson, key: Option<&str>) -> Result<Announcement> {
        check_object(format_args!("{method}: parameters"), &params)?;
        let Some((extension, member)) = self.read(|known| known.notifications.get(method).cloned()) else {
            let all = self.read(|known| known.notifications.keys().cloned().collect::<Vec<_>>().join("\", \""));
            let known = if all.is_empty() { "there are none".into() } else { format!("they are \"{all}\"") };
            return Err(Error::misuse(format!(
                "{method:?} is no notification of an extension of this server: {known}"
            )));
        };
        Ok(Announcement { extension, member, method: method.into(), key: key.map(Into::into), params })
    }
}

/// A request of an extension.
struct Served {
    row: &'static Method,
    schema: Option<(Schema, Value)>,
    handler: Arc<dyn Handler>,
    common: Arc<Common>,
}

impl Served {
    /// The parameters as the handler gets them: `_meta` is the context's.
    fn parameters(&self, params: Option<&RawJson>) -> Result<RawJson> {
        let params = match params {
            None => RawJson::empty_object(),
            Some(params) if !object::has(params.get(), "\"_meta\"") => params.clone(),
            Some(params) => {
                let mut text = String::from("{");
                for (name, value) in object::members(params.get()).iter().filter(|(name, _)| name != "_meta") {
                    object::push_member(&mut text, name, value.get());
                }
                text.push('}');
                RawJson::written(text)
            }
        };
        if let Some((schema, source)) = &self.schema {
            schema.check_text(|| source, "parameter", params.get()).map_err(Error::invalid_params)?;
        }
        Ok(params)
    }
}

impl Served {
    /// Nobody could read a result whose type is no name. One of questions is no handler's: in an extension's request there
    /// are none.
    ///
    /// # Errors
    /// −32603.
    fn check_type(&self, result: &RawJson) -> Result<()> {
        const TYPE: &str = "resultType";
        // The client would send the request again, or come for a task that is none.
        const RESERVED: [&str; 2] = ["\"input_required\"", "\"task\""];
        if !object::has(result.get(), TYPE) {
            return Ok(());
        }
        let members = object::members(result.get());
        let mut all = members.iter().filter(|(key, _)| key == TYPE).map(|(_, value)| value.get());
        let Some(wrong) = all.find(|kind| !kind.starts_with('"') || RESERVED.contains(kind)) else {
            return Ok(());
        };
        let text = format!(
            "{} failed: {TYPE:?} of its result: expected \"complete\" or a type of the extension, got {}",
            self.subject(),
            shortened(wrong, 60)
        );
        Err(Error::rpc(code::INTERNAL_ERROR, text))
    }
}

impl Shaper for Served {
    fn shape(&self, payload: Payload, _: Revision) -> Result<Payload> {
        match payload {
            Payload::Object(object) | Payload::Value { value: object, .. } if object.is_object() => {
                self.check_type(&object).map(|()| Payload::Object(object))
            }
            Payload::Failed(text) => Err(Error::rpc(code::INTERNAL_ERROR, text)),
            Payload::Value { value, .. } if value.get() == "null" => Ok(Payload::Object(RawJson::empty_object())),
            _ => {
                let text = format!("{} failed: its result is no object", self.subject());
                Err(Error::rpc(code::INTERNAL_ERROR, text))
            }
        }
    }

    fn subject(&self) -> String {
        format!("{:?}", self.row.name)
    }

    fn name(&self) -> &str {
        self.row.name
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }
}
