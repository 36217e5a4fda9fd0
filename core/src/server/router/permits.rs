//! Scopes that a request needs.

use crate::call::SessionSlot;
use crate::jsonrpc::RawJson;
use crate::model::meta;
use crate::protocol::Head;
use crate::server::listed::Kind;
use crate::server::permits::needs_of;
use crate::server::{Router, completion};

impl Router {
    /// The scopes that a request needs besides those of the server, as its session sees what there is.
    #[cfg(feature = "http")]
    pub(crate) fn scopes_needed(
        &self,
        session: Option<&SessionSlot>,
        method: &str,
        params: Option<&RawJson>,
    ) -> Vec<String> {
        let head = || Head::read(params).unwrap_or_default();
        let text = |raw: Option<RawJson>| raw.as_ref().and_then(meta::text).map(std::borrow::Cow::into_owned);
        let named = match method {
            "tools/call" => text(head().name).map(|name| (Kind::Tool, name)),
            "prompts/get" => text(head().name).map(|name| (Kind::Prompt, name)),
            "resources/read" | "resources/subscribe" => text(head().uri).map(|uri| (Kind::Resource, uri)),
            "completion/complete" => completion::Asked::read(params).ok().map(|asked| (asked.kind, asked.name)),
            _ => None,
        };
        let Some((kind, name)) = named else { return Vec::new() };
        self.see(session, |registry, changes| needs_of(registry, changes, kind, &name))
    }
}
