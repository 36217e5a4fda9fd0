use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::Handler;
use super::handler::safe_message;
use super::validate::Schema;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::Tool;
use crate::model::mirror::{Mirror, mirrors};
use crate::protocol::Payload;
use crate::protocol::revision::{Revision, shape};

/// A registered tool.
pub(crate) struct ToolEntry {
    pub(crate) tool: Tool,
    pub(crate) handler: Arc<dyn Handler>,
    /// Grows with every registration; cursors are made of it.
    serial: u64,
    input: Schema,
    output: Option<Schema>,
    /// The arguments that HTTP headers mirror.
    pub(crate) mirrors: Vec<Mirror>,
    /// The definition as each revision carries it, written on first use.
    texts: [OnceLock<RawJson>; Revision::ALL.len()],
}

impl ToolEntry {
    fn new(tool: Tool, handler: Arc<dyn Handler>, serial: u64) -> Result<Self> {
        let name = tool.name().to_owned();
        let schema =
            |key: &str| tool.members().get(key).map(|s| Schema::new(&format!("tool {name:?}: {key}"), s)).transpose();
        let input =
            schema("inputSchema")?.ok_or_else(|| Error::misuse(format!("tool {name:?}: inputSchema: missing")))?;
        let output = schema("outputSchema")?;
        let mirrors = tool.members().get("inputSchema").map_or_else(|| Ok(Vec::new()), mirrors);
        let mirrors = mirrors.map_err(|why| Error::misuse(format!("tool {name:?}: inputSchema: {why}")))?;
        Ok(Self { tool, handler, serial, input, output, mirrors, texts: Default::default() })
    }

    fn text(&self, revision: Revision) -> &RawJson {
        let place = Revision::ALL.iter().position(|r| *r == revision).unwrap_or_default();
        self.texts[place].get_or_init(|| shape::tool(revision.rules(), &self.tool))
    }

    /// Checks a call's arguments.
    ///
    /// # Errors
    /// The text for the model.
    pub(crate) fn check_arguments(&self, arguments: &RawJson) -> Result<(), String> {
        self.input.check_text("argument", arguments.get())
    }

    /// Decides whether a value is structured content, and checks it against the output schema.
    pub(crate) fn checked(&self, payload: Payload) -> Payload {
        let problem = match (&self.output, &payload) {
            (Some(schema), Payload::Value { value, .. }) => schema.check_text("result", value.get()),
            (Some(schema), Payload::Object(result)) => check_structured(schema, result),
            // Nothing returned is nothing to read.
            (None, Payload::Value { value, .. }) if value.get() == "null" => {
                return Payload::Object(RawJson::trusted(r#"{"content":[]}"#));
            }
            (None, Payload::Value { value, .. }) => {
                let structured = value.is_object();
                let Payload::Value { value, .. } = payload else {
                    return payload;
                };
                return Payload::Value { value, structured };
            }
            _ => Ok(()),
        };
        match problem {
            Ok(()) => payload,
            Err(text) => {
                let name = self.tool.name();
                eprintln!("tricorn: tool {name:?}: the result does not fit the outputSchema: {text}");
                Payload::Failed(safe_message(name, "the result does not fit the outputSchema"))
            }
        }
    }
}

fn check_structured(schema: &Schema, result: &RawJson) -> Result<(), String> {
    let members = shape::members(result.get());
    let is = |key: &str, value: &str| members.iter().any(|(k, v)| k == key && v.get() == value);
    match members.iter().find(|(k, _)| k == "structuredContent") {
        Some((_, raw)) => schema.check_text("result", raw.get()),
        None if is("isError", "true") || members.iter().any(|(k, _)| k == "resultType") => Ok(()),
        None => Err("structuredContent is missing".into()),
    }
}

/// What a server offers, in order of registration.
#[derive(Default)]
pub(crate) struct Registry {
    tools: Vec<Arc<ToolEntry>>,
    by_name: HashMap<String, Arc<ToolEntry>>,
    serial: u64,
}

impl Registry {
    /// Adds a tool, or replaces the one of the same name in its place.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when a schema is bad or the name is taken.
    pub(crate) fn add_tool(&mut self, tool: Tool, handler: Arc<dyn Handler>) -> Result<()> {
        let name = tool.name().to_owned();
        if self.by_name.contains_key(&name) {
            return Err(Error::misuse(format!("tool {name:?} is already registered: remove it first")));
        }
        let entry = Arc::new(ToolEntry::new(tool, handler, self.serial + 1)?);
        self.serial += 1;
        self.tools.push(entry.clone());
        self.by_name.insert(name, entry);
        Ok(())
    }

    pub(crate) fn remove_tool(&mut self, name: &str) -> bool {
        self.tools.retain(|entry| entry.tool.name() != name);
        self.by_name.remove(name).is_some()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.by_name.get(name).cloned()
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// One page of `tools/list`. A cursor names the last tool seen, so it survives changes of the registry.
    ///
    /// # Errors
    /// −32602 for a cursor that was never given out.
    pub(crate) fn list_tools(&self, revision: Revision, cursor: Option<&str>, page_size: usize) -> Result<RawJson> {
        let after = match cursor {
            None | Some("") => 0,
            Some(cursor) => cursor
                .strip_prefix("t-")
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                .filter(|serial| (1..=self.serial).contains(serial))
                .ok_or_else(|| Error::invalid_params("\"cursor\": not one that this server gave out"))?,
        };
        let start = self.tools.partition_point(|entry| entry.serial <= after);
        let page = &self.tools[start..self.tools.len().min(start + page_size)];
        let mut out = String::with_capacity(page.iter().map(|e| e.text(revision).get().len() + 1).sum::<usize>() + 64);
        out.push_str("{\"tools\":[");
        for (n, entry) in page.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(entry.text(revision).get());
        }
        out.push(']');
        if let Some(last) = page.last().filter(|_| start + page.len() < self.tools.len()) {
            out.push_str(&format!(",\"nextCursor\":\"t-{:x}\"", last.serial));
        }
        out.push('}');
        Ok(RawJson::written(out))
    }
}
