use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::cache::{CacheOptions, of_source, restricted};
use super::listed::{Common, Entry, Kind, Listed};
use super::parameters::Parameters;
use super::typed::typed;
use crate::call::{Failures, Handler, Shaper};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::schema::Schema;
use crate::model::{CacheHints, Resource, ResourceTemplate, UriTemplate};
use crate::protocol::Payload;
use crate::protocol::revision::{Revision, object, shape};

/// A registered resource.
pub(crate) struct ResourceEntry {
    listed: Listed,
}

impl Entry for ResourceEntry {
    fn listed(&self) -> &Listed {
        &self.listed
    }
}

impl ResourceEntry {
    pub(super) fn new(mut resource: Resource, handler: Arc<dyn Handler>, common: &Arc<Common>) -> Result<Self> {
        let (hints, scopes) = (resource.hints(), resource.take_scopes());
        let mut listed = Listed::new(Kind::Resource, resource.into_members(), scopes, handler, common)?;
        listed.hints = hints;
        if !is_uri(listed.name()) {
            let subject = listed.subject();
            return Err(Error::misuse(format!("{subject}: \"uri\": expected an absolute URI, such as \"notes://1\"")));
        }
        Ok(Self { listed })
    }
}

#[cfg(feature = "files")]
impl ResourceEntry {
    /// A resource that is a file.
    pub(super) fn of_file(
        resource: Resource,
        handler: Arc<dyn Handler>,
        file: Arc<super::files::File>,
        common: &Arc<Common>,
    ) -> Result<Self> {
        let mut entry = Self::new(resource, handler, common)?;
        entry.listed.file = Some(file);
        Ok(entry)
    }
}

/// Returns true if a text begins with a scheme (RFC 3986, 3.1) and has nothing in it that no URI has unescaped.
pub(super) fn is_uri(text: &str) -> bool {
    let is_written = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    text.split_once(':').filter(|_| is_written).is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// A registered resource template.
pub(crate) struct TemplateEntry {
    listed: Listed,
    pub(crate) template: UriTemplate,
    /// Schema of the variables; without one they are text.
    parameters: Option<(Value, Schema)>,
    /// The handler checks them.
    judged: bool,
    pub(super) completions: Completions,
}

impl Entry for TemplateEntry {
    fn listed(&self) -> &Listed {
        &self.listed
    }
}

/// Completion handlers, by the names of their arguments.
pub(crate) type Completions = Vec<(String, Arc<dyn Handler>)>;

impl TemplateEntry {
    pub(super) fn new(
        mut template: ResourceTemplate,
        handler: Arc<dyn Handler>,
        parameters: Parameters,
        common: &Arc<Common>,
    ) -> Result<Self> {
        let Parameters { schema: parameters, completions, judged } = parameters;
        let (hints, scopes) = (template.hints(), template.take_scopes());
        let mut listed = Listed::new(Kind::ResourceTemplate, template.into_members(), scopes, handler, common)?;
        listed.hints = hints;
        let subject = listed.subject();
        let template = UriTemplate::parse(listed.name())
            .map_err(|error| Error::misuse(format!("{subject}: \"uriTemplate\": {}", error.message())))?;
        let variables: Vec<&str> = template.variables().collect();
        let parameters = match parameters {
            Some(schema) => {
                for name in template.lists() {
                    let property = &schema["properties"][name];
                    let target = property["$ref"].as_str().and_then(|to| crate::model::schema::target(&schema, to));
                    if target.unwrap_or(property)["type"] == "object" {
                        return Err(Error::misuse(format!(
                            "{subject}: \"{name}*\" gives a list of texts, which the parameter {name:?} cannot be: it is \
                             an object"
                        )));
                    }
                }
                for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                    let required = schema["required"].as_array().is_some_and(|r| r.iter().any(|r| r == name));
                    if required && !variables.contains(&name.as_str()) {
                        return Err(Error::misuse(format!(
                            "{subject}: the parameter {name:?} is no variable of the template; they are {variables:?}"
                        )));
                    }
                }
                let checked = Schema::new(&format!("{subject}: parameters"), &schema)?;
                Some((schema, checked))
            }
            None => None,
        };
        for (name, _) in &completions {
            if !variables.contains(&name.as_str()) {
                return Err(Error::misuse(format!(
                    "{subject}: the completion of {name:?} is of no variable of the template; they are {variables:?}"
                )));
            }
        }
        Ok(Self { listed, template, parameters, judged, completions })
    }

    /// The variables that the URI has, as the handler gets them.
    ///
    /// # Errors
    /// −32602 naming the variable that is wrong.
    pub(crate) fn arguments(&self, variables: Map<String, Value>) -> Result<RawJson> {
        match &self.parameters {
            None => Ok(RawJson::from_value(&variables)),
            Some((source, schema)) => {
                let text = typed(source, variables);
                if !self.judged {
                    schema.check_text(|| source, "argument", text.get()).map_err(Error::invalid_params)?;
                }
                Ok(text)
            }
        }
    }

    pub(super) fn schema(&self) -> Option<&Value> {
        self.parameters.as_ref().map(|(source, _)| source)
    }
}

/// There is no such resource.
pub(crate) fn not_found(uri: &str) -> Error {
    Error::resource_not_found(uri)
}

/// Makes of what a resource's handler answered a `ReadResourceResult`.
pub(crate) struct Read {
    pub(crate) uri: String,
    /// MIME type of the entry; none for a source's.
    pub(crate) mime_type: Option<String>,
    pub(crate) subject: String,
    pub(crate) common: Arc<Common>,
    /// Lifetime and scope of the result, where it does not name them itself.
    pub(crate) hints: CacheHints,
}

impl Read {
    pub(crate) fn of(entry: &Listed, uri: &str, cache: Option<CacheOptions>) -> Self {
        Self {
            uri: uri.to_owned(),
            mime_type: entry.members.get("mimeType").and_then(Value::as_str).map(str::to_owned),
            subject: entry.subject(),
            common: entry.common.clone(),
            hints: restricted(cache.map(|cache| cache.of_read(entry.hints)).unwrap_or_default(), &entry.scopes),
        }
    }

    fn text(&self, text: &str, mime_type: Option<&str>) -> RawJson {
        let mut contents = Map::new();
        contents.insert("uri".into(), self.uri.as_str().into());
        if let Some(mime_type) = self.mime_type.as_deref().or(mime_type) {
            contents.insert("mimeType".into(), mime_type.into());
        }
        contents.insert("text".into(), text.into());
        RawJson::from_value(&json!({"contents": [contents]}))
    }

    /// Contents with what the definition says of them, where they say nothing themselves.
    fn completed(&self, contents: Value) -> Value {
        match contents {
            Value::Object(members) => {
                let mut out = Map::new();
                if !members.contains_key("uri") {
                    out.insert("uri".into(), self.uri.as_str().into());
                }
                if let Some(mime_type) = self.mime_type.as_deref().filter(|_| !members.contains_key("mimeType")) {
                    out.insert("mimeType".into(), mime_type.into());
                }
                out.extend(members);
                Value::Object(out)
            }
            other => other,
        }
    }

    fn object(&self, object: &RawJson) -> Result<RawJson> {
        let mut result: Map<String, Value> = object.to().map_err(|e| self.wrong(&e.to_string()))?;
        if is_contents(&result) {
            return Ok(RawJson::from_value(&json!({"contents": [self.completed(Value::Object(result))]})));
        }
        if let Some(Value::Array(contents)) = result.get_mut("contents") {
            let given = std::mem::take(contents);
            *contents = given.into_iter().map(|one| self.completed(one)).collect();
            return Ok(RawJson::from_value(&result));
        }
        // Something of the caller's own, such as a result of an extension.
        if result.contains_key("resultType") {
            return Ok(object.clone());
        }
        Err(self.wrong("expected \"contents\", an array"))
    }

    /// The result with how long it keeps, where the revision says that.
    fn hinted(&self, object: RawJson, revision: Revision) -> RawJson {
        if !revision.rules().result_type {
            return object;
        }
        let members = object::members(object.get());
        let has = |name: &str| members.iter().any(|(key, _)| key == name);
        let (millis, scope) = self.hints.members();
        let mut out = object.get()[..object.get().len() - 1].to_owned();
        if !has("ttlMs") {
            object::push_member(&mut out, "ttlMs", &millis.to_string());
        }
        if !has("cacheScope") {
            object::push_member(&mut out, "cacheScope", &format!("\"{}\"", scope.as_str()));
        }
        out.push('}');
        RawJson::written(out)
    }

    fn wrong(&self, why: &str) -> Error {
        Error::rpc(code::INTERNAL_ERROR, format!("{} failed: its result is no ReadResourceResult: {why}", self.subject))
    }
}

/// Returns true if this is a `ResourceContents`: with any other member it is a value of the user's own.
fn is_contents(value: &Map<String, Value>) -> bool {
    value.keys().all(|key| ["uri", "mimeType", "text", "blob", "_meta"].contains(&key.as_str()))
        && (value.get("text").is_some_and(Value::is_string) || value.get("blob").is_some_and(Value::is_string))
}

impl Shaper for Read {
    fn shape(&self, payload: Payload, revision: Revision) -> Result<Payload> {
        let object = match payload {
            Payload::Text(text) => self.text(&text, None),
            Payload::Failed(text) => return Err(Error::rpc(code::INTERNAL_ERROR, text)),
            Payload::Object(object) => self.object(&object)?,
            Payload::Value { value, .. } => {
                let parsed: Value = value.to().map_err(|e| self.wrong(&e.to_string()))?;
                match parsed {
                    Value::Null => return Err(self.wrong("it gave nothing")),
                    Value::String(text) => self.text(&text, None),
                    Value::Object(members) if is_contents(&members) => self.object(&value)?,
                    Value::Array(items)
                        if !items.is_empty() && items.iter().all(|i| i.as_object().is_some_and(is_contents)) =>
                    {
                        let contents: Vec<Value> = items.into_iter().map(|one| self.completed(one)).collect();
                        RawJson::from_value(&json!({"contents": contents}))
                    }
                    _ => self.text(value.get(), Some("application/json")),
                }
            }
        };
        Ok(Payload::Object(self.hinted(object, revision)))
    }

    fn subject(&self) -> String {
        self.subject.clone()
    }

    fn name(&self) -> &str {
        &self.uri
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }
}

/// A list that a source gave, with definitions as a revision can carry them and a cursor that finds the source again.
pub(crate) struct ListedBySource {
    pub(crate) kind: Kind,
    common: Arc<Common>,
    /// Lifetime and scope of the list.
    hints: CacheHints,
    /// Nothing else is in the list.
    pub(super) whole: bool,
}

impl ListedBySource {
    pub(super) fn new(kind: Kind, common: &Arc<Common>, hints: CacheHints) -> Self {
        Self { kind, common: common.clone(), hints, whole: false }
    }
}

impl Shaper for ListedBySource {
    fn shape(&self, payload: Payload, revision: Revision) -> Result<Payload> {
        let given = match payload {
            Payload::Object(given) | Payload::Value { value: given, .. } => given,
            Payload::Failed(text) => return Err(Error::rpc(code::INTERNAL_ERROR, text)),
            Payload::Text(_) => return Err(self.wrong()),
        };
        let given: Value = given.to().map_err(|_| self.wrong())?;
        let (entries, next, rest) = match given {
            Value::Array(entries) => (entries, None, Map::new()),
            Value::Object(mut members) => match members.shift_remove(self.kind.list_member()) {
                Some(Value::Array(entries)) => (entries, members.shift_remove("nextCursor"), members),
                _ => return Err(self.wrong()),
            },
            _ => return Err(self.wrong()),
        };
        let mut out = format!("{{{:?}:[", self.kind.list_member());
        for (n, entry) in entries.into_iter().enumerate() {
            let Value::Object(members) = entry else { return Err(self.wrong()) };
            if self.kind == Kind::Tool {
                self.common.told.learn(&members);
            }
            if n > 0 {
                out.push(',');
            }
            out.push_str(shape::foreign_definition(revision.rules(), self.kind, members).get());
        }
        out.push(']');
        if let Some(Value::String(next)) = next {
            object::push_member(&mut out, "nextCursor", RawJson::from_value(&format!("{SOURCE}{next}")).get());
        }
        for (key, value) in rest.iter().filter(|(key, _)| *key != "ttlMs" && *key != "cacheScope") {
            object::push_member(&mut out, key, RawJson::from_value(value).get());
        }
        if revision.rules().result_type {
            out.push_str(&of_source(self.hints, self.whole, &rest).written());
        }
        out.push('}');
        Ok(Payload::Object(RawJson::written(out)))
    }

    fn subject(&self) -> String {
        format!("the list of {}", self.kind.list_member())
    }

    fn name(&self) -> &str {
        self.kind.list_member()
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }
}

/// Beginning of the cursors of a source's pages.
pub(crate) const SOURCE: &str = "x-";

impl ListedBySource {
    fn wrong(&self) -> Error {
        let (member, subject) = (self.kind.list_member(), self.subject());
        Error::rpc(
            code::INTERNAL_ERROR,
            format!(
                "{subject} failed: expected an array of definitions, or an object with {member:?} and \"nextCursor\""
            ),
        )
    }
}
