//! One legacy client's view of a server.

use std::sync::{Arc, PoisonError, RwLock};

use super::entries::{prompt_entry, resource_entry, template_entry, tool_entry};
use super::listed::{Common, Kind};
use super::parameters::Parameters;
use super::registry::Changes;
use super::router::session::Overlay;
use crate::call::{Context, Handler, Link};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Prompt, Resource, ResourceTemplate, Tool};
use crate::protocol::Input;
use crate::protocol::revision::Era;

/// View of one client, which may differ from that of others: for as long as its session lives, and only in revisions
/// that have sessions.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::prelude::*;
/// use tricorn::server::Kind;
///
/// let server = Server::new("bank")
///     .tool("unlock", "Open the vault for this client", async |cx: Context| {
///         cx.session()?.set_enabled(Kind::Tool, "vault", true)?;
///         Ok("open")
///     })
///     .tool("vault", "Look into the vault", async || Ok("gold"));
/// server.set_enabled(Kind::Tool, "vault", false); // for everybody else
/// # let client = Client::in_memory(&server, &ClientOptions::new().revision("2025-11-25")).await?;
/// # client.call_tool("unlock", json!({})).await?;
/// # assert_eq!(client.call_tool("vault", json!({})).await?.text(), "gold");
/// # Ok(())
/// # }
/// ```
pub struct Session {
    link: Arc<dyn Link>,
}

impl Context {
    /// The session of this request's client.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) in revisions that have no sessions.
    pub fn session(&self) -> Result<Session> {
        let revision = self.request().revision;
        if revision.era() == Era::Modern || self.link().session().get().is_none() {
            let why = match revision.era() {
                Era::Modern => format!("there are no sessions in revision {revision}"),
                Era::Legacy => "this server keeps no sessions (stateless)".to_owned(),
            };
            let message = format!("{why}: what a client sees is the same for all");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(Session { link: self.link().clone() })
    }
}

impl Session {
    fn overlay(&self) -> Result<&Overlay> {
        let slot = self.link.session().get().and_then(|slot| slot.downcast_ref::<Overlay>());
        slot.ok_or_else(|| Error::new(ErrorKind::Unsupported, "this connection has no session"))
    }

    /// Waits until the session has ended, so that what was kept for its client can go.
    pub async fn ended(&self) {
        if let Ok(overlay) = self.overlay() {
            overlay.ended.wait().await;
        }
    }

    fn changed<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        let changes = self.overlay()?.changes.get_or_init(|| RwLock::new(Changes::default()));
        Ok(change(&mut changes.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn tell(&self, kind: Kind, changed: bool) {
        if changed {
            self.link.clone().input(Input::Changed(kind));
        }
    }

    fn change<T>(&self, kind: Kind, change: impl FnOnce(&mut Changes) -> T, has: impl FnOnce(&T) -> bool) -> Result<T> {
        let outcome = self.changed(change)?;
        self.tell(kind, has(&outcome));
        Ok(outcome)
    }

    /// Returns the state that an entry of this session is made with, if its client can use one.
    fn adding(&self, kind: Kind) -> Result<&Arc<Common>> {
        let overlay = self.overlay()?;
        let capability = kind.capability();
        if !self.link.declares(capability) {
            let what = kind.word();
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "this session was not told of {capability}, so its client asks for none: declare {capability:?} with \
                     the server's option \"capabilities\", or add a {what} to the server before it connects"
                ),
            ));
        }
        Ok(&overlay.router.common)
    }

    /// Shows or hides what has this name, URI or URI template from this client, whatever others see. Says whether that
    /// changed anything.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when the connection has no session, here and below.
    pub fn set_enabled(&self, kind: Kind, name: &str, yes: bool) -> Result<bool> {
        let router = self.overlay()?.router.clone();
        // Before the session's own lock, as everywhere.
        let registry = router.registry.read().unwrap_or_else(PoisonError::into_inner);
        let changed = self.changed(|changes| changes.set_enabled(&registry, kind, name, yes))?;
        drop(registry);
        self.tell(kind, changed);
        Ok(changed)
    }

    /// Removes what was added to this session. Says whether there was something.
    ///
    /// # Errors
    /// As [`set_enabled`](Self::set_enabled).
    pub fn remove(&self, kind: Kind, name: &str) -> Result<bool> {
        self.change(kind, |changes| changes.remove(kind, name), Option::is_some).map(|removed| removed.is_some())
    }

    /// Adds a tool for this client alone. It stands before one of the server's with the same name.
    ///
    /// # Errors
    /// As [`Server::add_tool`](crate::Server::add_tool).
    pub fn add_tool(&self, tool: Tool, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = tool_entry(tool, handler, self.adding(Kind::Tool)?)?;
        self.change(Kind::Tool, |changes| changes.own.tools.add(&entry), Result::is_ok)?
    }

    /// Puts a tool in the place of the one that this session has of its name, or adds it, as
    /// [`Server::replace_tool`](crate::Server::replace_tool).
    ///
    /// # Errors
    /// As [`add_tool`](Self::add_tool), but the name may be taken, here and below.
    pub fn replace_tool(&self, tool: Tool, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = tool_entry(tool, handler, self.adding(Kind::Tool)?)?;
        self.change(Kind::Tool, |changes| changes.own.tools.replace(&entry), |_| true).map(drop)
    }

    /// Adds a resource for this client alone.
    ///
    /// # Errors
    /// As [`Server::add_resource`](crate::Server::add_resource); [`Unsupported`](ErrorKind::Unsupported) when the server
    /// had no resources and did not declare any as the client connected, and so below: see
    /// [`ServerOptions::capabilities`](crate::server::ServerOptions::capabilities).
    pub fn add_resource(&self, resource: Resource, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = resource_entry(resource, handler, self.adding(Kind::Resource)?)?;
        self.change(Kind::Resource, |changes| changes.own.resources.add(&entry), Result::is_ok)?
    }

    /// Puts a resource in the place of the one that this session has of its URI, or adds it.
    ///
    /// # Errors
    /// As [`add_resource`](Self::add_resource).
    pub fn replace_resource(&self, resource: Resource, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = resource_entry(resource, handler, self.adding(Kind::Resource)?)?;
        self.change(Kind::Resource, |changes| changes.own.resources.replace(&entry), |_| true).map(drop)
    }

    /// Adds a resource template for this client alone.
    ///
    /// # Errors
    /// As [`Server::add_resource_template`](crate::Server::add_resource_template).
    pub fn add_resource_template(
        &self,
        template: ResourceTemplate,
        parameters: Parameters,
        handler: Arc<dyn Handler>,
    ) -> Result<()> {
        let entry = template_entry(template, parameters, handler, self.adding(Kind::ResourceTemplate)?)?;
        self.change(Kind::ResourceTemplate, |changes| changes.own.templates.add(&entry), Result::is_ok)?
    }

    /// Puts a resource template in the place of the one that this session has of its URI template, or adds it.
    ///
    /// # Errors
    /// As [`add_resource_template`](Self::add_resource_template).
    pub fn replace_resource_template(
        &self,
        template: ResourceTemplate,
        parameters: Parameters,
        handler: Arc<dyn Handler>,
    ) -> Result<()> {
        let entry = template_entry(template, parameters, handler, self.adding(Kind::ResourceTemplate)?)?;
        self.change(Kind::ResourceTemplate, |changes| changes.own.templates.replace(&entry), |_| true).map(drop)
    }

    /// Adds a prompt for this client alone.
    ///
    /// # Errors
    /// As [`Server::add_prompt`](crate::Server::add_prompt).
    pub fn add_prompt(&self, prompt: Prompt, parameters: Parameters, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = prompt_entry(prompt, parameters, handler, self.adding(Kind::Prompt)?)?;
        self.change(Kind::Prompt, |changes| changes.own.prompts.add(&entry), Result::is_ok)?
    }

    /// Puts a prompt in the place of the one that this session has of its name, or adds it.
    ///
    /// # Errors
    /// As [`add_prompt`](Self::add_prompt).
    pub fn replace_prompt(&self, prompt: Prompt, parameters: Parameters, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = prompt_entry(prompt, parameters, handler, self.adding(Kind::Prompt)?)?;
        self.change(Kind::Prompt, |changes| changes.own.prompts.replace(&entry), |_| true).map(drop)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
