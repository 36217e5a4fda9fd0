//! Registration of a server's features: while it is built and while it runs.

use std::sync::{Arc, PoisonError};

use serde_json::json;

use crate::call::Handler;
use crate::error::Result;
use crate::model::{Prompt, Resource, ResourceTemplate, Tool};
use crate::protocol::Input;
use crate::server::entries::{prompt_entry, resource_entry, template_entry, tool_entry};
use crate::server::listed::Kind;
use crate::server::parameters::Parameters;
use crate::server::registry::{Registry, Source};
use crate::server::resources::ResourceEntry;
use crate::server::{IntoHandler, Server};

/// The tool with the schemas that its function's type says, where its definition says none.
fn with_schemas<M, F: IntoHandler<M>>(mut tool: Tool) -> Tool {
    if let Some(schema) = F::input_schema()
        && schema.is_object()
        && tool.members().get("inputSchema") == Some(&json!({"type": "object", "additionalProperties": false}))
    {
        tool = tool.input_schema(schema);
    }
    if let Some(schema) = F::output_schema()
        && !tool.members().contains_key("outputSchema")
    {
        tool = tool.output_schema(schema);
    }
    tool
}

impl Server {
    fn kept(mut self, outcome: Result<()>) -> Self {
        if let Err(error) = outcome {
            self.mistake.get_or_insert(error);
        }
        self
    }

    /// Adds a tool: `Server::new("demo").tool("add", "Add two numbers", |a: Add| async move { Ok(a.a + a.b) })`.
    /// A mistake (a name taken, a bad schema) is reported when serving starts, here and below.
    #[must_use]
    pub fn tool<M, F: IntoHandler<M>>(self, name: &str, description: &str, function: F) -> Self {
        self.tool_with(Tool::new(name, description), function)
    }

    /// Adds a tool with everything that its definition may say. Schemas that the function's type gives are filled in
    /// where the definition has none.
    #[must_use]
    pub fn tool_with<M, F: IntoHandler<M>>(self, tool: Tool, function: F) -> Self {
        let outcome = self.add_tool(with_schemas::<M, F>(tool), function.into_handler());
        self.kept(outcome)
    }

    /// Adds a resource, read by a function: `.resource(Resource::new("notes://today", "today"), || async { Ok("…") })`.
    /// It may return text, [`ResourceContents`](crate::model::ResourceContents), several of them, or a value, which is
    /// read as JSON.
    #[must_use]
    pub fn resource<M, F: IntoHandler<M>>(self, resource: Resource, function: F) -> Self {
        let outcome = self.add_resource(resource, function.into_handler());
        self.kept(outcome)
    }

    /// Adds a resource template; the function's argument says what the variables are:
    /// `.resource_template(ResourceTemplate::new("notes://{day}", "a day's notes"), |day: Day| async move { … })`.
    #[must_use]
    pub fn resource_template<M, F: IntoHandler<M>>(self, template: ResourceTemplate, function: F) -> Self {
        self.resource_template_with(template, Parameters::default(), function)
    }

    /// Adds a resource template with completions or a schema of its own.
    #[must_use]
    pub fn resource_template_with<M, F: IntoHandler<M>>(
        self,
        template: ResourceTemplate,
        mut parameters: Parameters,
        function: F,
    ) -> Self {
        parameters.schema = parameters.schema.or_else(F::input_schema);
        let outcome = self.add_resource_template(template, parameters, function.into_handler());
        self.kept(outcome)
    }

    /// Adds a prompt; the function's argument says what the arguments are:
    /// `.prompt(Prompt::new("greet"), |who: Who| async move { Ok(format!("Greet {}.", who.name)) })`. It may return text,
    /// which the user says, [`PromptMessage`](crate::model::PromptMessage)s or a
    /// [`GetPromptResult`](crate::model::GetPromptResult).
    #[must_use]
    pub fn prompt<M, F: IntoHandler<M>>(self, prompt: Prompt, function: F) -> Self {
        self.prompt_with(prompt, Parameters::default(), function)
    }

    /// Adds a prompt with completions or a schema of its own.
    #[must_use]
    pub fn prompt_with<M, F: IntoHandler<M>>(self, prompt: Prompt, mut parameters: Parameters, function: F) -> Self {
        parameters.schema = parameters.schema.or_else(F::input_schema);
        let outcome = self.add_prompt(prompt, parameters, function.into_handler());
        self.kept(outcome)
    }

    /// Adds a file as a resource: `.file(File::new("notes.md", "docs://notes")?)`.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn file(self, file: crate::server::files::File) -> Self {
        let outcome = self.add_file(file);
        self.kept(outcome)
    }

    /// Adds a directory whose files are resources: `.directory(Directory::new("notes", "docs://notes")?)`. Nothing
    /// outside of it can be read.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn directory(self, directory: crate::server::files::Directory) -> Self {
        let outcome = self.add_directory(directory);
        self.kept(outcome)
    }

    /// Completes what has no completion of its own. The function gets the parameters of `completion/complete`.
    #[must_use]
    pub fn on_complete<M, F: IntoHandler<M>>(self, function: F) -> Self {
        self.set_completion(function.into_handler());
        self
    }

    /// Hears of subscriptions: `{"uri", "subscribed": bool}`. An error refuses them.
    #[must_use]
    pub fn on_subscribe<M, F: IntoHandler<M>>(self, function: F) -> Self {
        self.set_subscription(function.into_handler());
        self
    }

    /// Hears that a client's roots have changed (`notifications/roots/list_changed`); its context belongs to no request,
    /// and can ask for them: [`Context::list_roots`](crate::Context::list_roots).
    #[must_use]
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn on_roots_changed<M, F: IntoHandler<M>>(self, function: F) -> Self {
        self.set_roots_changed(function.into_handler());
        self
    }

    // ---- while it runs ----------------------------------------------------------------------------------------

    /// Changes the registry. The caller drops the result of `change`, after the lock.
    fn with<T>(&self, change: impl FnOnce(&mut Registry) -> T) -> T {
        change(&mut self.shared.router.registry.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, kind: Kind, change: impl FnOnce(&mut Registry) -> T, has: impl FnOnce(&T) -> bool) -> T {
        let outcome = self.with(change);
        if has(&outcome) {
            self.changed();
            self.list_changed(kind);
        }
        outcome
    }

    /// Adds a tool, also while the server runs: clients are told that the list has changed, here and below.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the name is taken or a schema is bad.
    pub fn add_tool(&self, tool: Tool, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = tool_entry(tool, handler, &self.shared.router.common)?;
        self.change(Kind::Tool, |registry| registry.tools.add(&entry), Result::is_ok)
    }

    /// Puts a tool in the place of the one with its name: where that stands in lists, and hidden when that is. Calls of
    /// the old one that run go on. A name that is not there yet is added.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when a schema is bad; the old one stays.
    pub fn replace_tool(&self, tool: Tool, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = tool_entry(tool, handler, &self.shared.router.common)?;
        drop(self.change(Kind::Tool, |registry| registry.tools.replace(&entry), |_| true));
        Ok(())
    }

    /// Adds a resource. Its handler gets `{"uri"}`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the URI is taken or is none.
    pub fn add_resource(&self, resource: Resource, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = resource_entry(resource, handler, &self.shared.router.common)?;
        self.change(Kind::Resource, |registry| registry.resources.add(&entry), Result::is_ok)
    }

    /// Puts a resource in the place of the one with its URI, as [`replace_tool`](Self::replace_tool) does.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the URI is none.
    pub fn replace_resource(&self, resource: Resource, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = resource_entry(resource, handler, &self.shared.router.common)?;
        drop(self.change(Kind::Resource, |registry| registry.resources.replace(&entry), |_| true));
        Ok(())
    }

    /// Adds a file as a resource, under its own name. It is listed with its size when there is such a file.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the URI is taken or is none.
    #[cfg(feature = "files")]
    pub fn add_file(&self, file: crate::server::files::File) -> Result<()> {
        let definition = Resource::parse(file.definition().get())?.cache(file.hints()).scopes(file.needs().to_vec());
        let file = Arc::new(file);
        let jobs = self.shared.router.common.jobs.clone();
        let handler = Arc::new(crate::server::router::files::ReadsFile { file: file.clone(), jobs });
        let entry = Arc::new(ResourceEntry::of_file(definition, handler, file, &self.shared.router.common)?);
        self.change(Kind::Resource, |registry| registry.resources.add(&entry), Result::is_ok)
    }

    /// Adds a directory whose files are resources, listed after the registered ones, as they are when asked for. Of
    /// directories that lie in each other's URIs the innermost that has the file is read. It is removed, shown and hidden
    /// as a resource, by its base URI; a resource that has the same URI comes first.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when there is a directory with this base URI.
    #[cfg(feature = "files")]
    pub fn add_directory(&self, directory: crate::server::files::Directory) -> Result<()> {
        let add = |registry: &mut Registry| registry.add_directory(Arc::new(directory));
        self.change(Kind::Resource, add, Result::is_ok)
    }

    /// Adds a resource template. Its handler gets the variables.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the template is taken or is none, or its parameters do not fit it.
    pub fn add_resource_template(
        &self,
        template: ResourceTemplate,
        parameters: Parameters,
        handler: Arc<dyn Handler>,
    ) -> Result<()> {
        let entry = template_entry(template, parameters, handler, &self.shared.router.common)?;
        self.change(Kind::ResourceTemplate, |registry| registry.templates.add(&entry), Result::is_ok)
    }

    /// Puts a resource template in the place of the one with its URI template, as [`replace_tool`](Self::replace_tool)
    /// does.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the template is none, or its parameters do not fit it.
    pub fn replace_resource_template(
        &self,
        template: ResourceTemplate,
        parameters: Parameters,
        handler: Arc<dyn Handler>,
    ) -> Result<()> {
        let entry = template_entry(template, parameters, handler, &self.shared.router.common)?;
        drop(self.change(Kind::ResourceTemplate, |registry| registry.templates.replace(&entry), |_| true));
        Ok(())
    }

    /// Adds a prompt. Its handler gets the arguments.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the name is taken or the parameters are bad.
    pub fn add_prompt(&self, prompt: Prompt, parameters: Parameters, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = prompt_entry(prompt, parameters, handler, &self.shared.router.common)?;
        self.change(Kind::Prompt, |registry| registry.prompts.add(&entry), Result::is_ok)
    }

    /// Puts a prompt in the place of the one with its name, as [`replace_tool`](Self::replace_tool) does.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the parameters are bad.
    pub fn replace_prompt(&self, prompt: Prompt, parameters: Parameters, handler: Arc<dyn Handler>) -> Result<()> {
        let entry = prompt_entry(prompt, parameters, handler, &self.shared.router.common)?;
        drop(self.change(Kind::Prompt, |registry| registry.prompts.replace(&entry), |_| true));
        Ok(())
    }

    /// Removes what has this name, URI or URI template; of directories, the base URI. Says whether there was something.
    pub fn remove(&self, kind: Kind, name: &str) -> bool {
        self.change(kind, |registry| registry.remove(kind, name), Option::is_some).is_some()
    }

    /// Removes a tool. Says whether there was one.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(Kind::Tool, name)
    }

    /// Shows or hides what has this name, URI or URI template: what is hidden is not listed and cannot be used. Says
    /// whether that changed anything.
    pub fn set_enabled(&self, kind: Kind, name: &str, yes: bool) -> bool {
        self.change(kind, |registry| registry.set_enabled(kind, name, yes), |changed| *changed)
    }

    /// Sets the source of everything that is not registered. `list` gets `{"cursor"?}` and answers with an array of
    /// definitions or a whole list result; its pages follow the registered ones. `get` gets the parameters of
    /// `tools/call`, `resources/read` or `prompts/get`. This server knows of a tool only the last list of the source
    /// before it runs: those run as tasks that were listed with `execution.taskSupport`, and over HTTP the headers of a
    /// call are checked against the arguments that were listed with `x-mcp-header` (2026-07-28). Of a tool that it has
    /// listed to nobody yet, nothing is checked.
    pub fn set_source(&self, kind: Kind, list: Option<Arc<dyn Handler>>, get: Option<Arc<dyn Handler>>) {
        drop(self.change(kind, |registry| registry.set_source(kind, Source { list, get }), |_| true));
        if kind == Kind::Tool {
            self.shared.router.common.told.forget();
        }
    }

    /// Completes what has no completion of its own.
    pub fn set_completion(&self, handler: Arc<dyn Handler>) {
        let before = self.with(|registry| registry.completion.replace(handler));
        self.changed();
        drop(before);
    }

    /// Hears of subscriptions.
    pub fn set_subscription(&self, handler: Arc<dyn Handler>) {
        drop(self.with(|registry| registry.subscription.replace(handler)));
    }

    /// Hears that a client's roots have changed.
    pub fn set_roots_changed(&self, handler: Arc<dyn Handler>) {
        drop(self.with(|registry| registry.roots_changed.replace(handler)));
    }

    /// Answers requests, and hears of notifications, that neither the protocol nor an extension has, in sessions that begin
    /// with a handshake: for a server that stands before another one. The method is
    /// [`RequestContext::method`](crate::protocol::RequestContext::method); the parameters are as they came.
    #[doc(hidden)]
    pub fn set_fallback(&self, requests: Arc<dyn Handler>, notifications: Arc<dyn Handler>) {
        let before = self.with(|registry| registry.fallback.replace((requests, notifications)));
        self.changed();
        drop(before);
    }

    /// Tells those who subscribed to `uri`, or to something that it is a part of, that it has changed.
    /// With a [store](crate::Server::store) those of all processes are told.
    pub fn resource_updated(&self, uri: &str) {
        #[cfg(feature = "runtime")]
        if self.shared.outbox.add(|| crate::store::Change::Resource(uri.to_owned())) {
            return;
        }
        self.shared.links.tell(|| Input::Updated(uri.to_owned()));
    }

    /// Says that the user has finished what they were sent to a page for: to the client that was asked under this
    /// `elicitation_id`, by [`Context::elicit_url`](crate::Context::elicit_url) or by
    /// [`Error::url_elicitation_required`](crate::Error::url_elicitation_required), also after the call
    /// (`notifications/elicitation/complete`, revision 2025-11-25). Of one client the last 256 are known; others do nothing.
    pub fn elicitation_complete(&self, elicitation_id: &str) {
        self.shared.links.tell(|| Input::Visited(elicitation_id.to_owned()));
    }

    /// Tells clients that a list has changed, where the server cannot know: that of a source.
    /// With a [store](crate::Server::store) those of all processes are told.
    pub fn list_changed(&self, kind: Kind) {
        #[cfg(feature = "runtime")]
        if self.shared.outbox.add(|| crate::store::Change::List(kind.as_str().to_owned())) {
            return;
        }
        self.shared.links.tell(|| Input::Changed(kind));
    }
}
