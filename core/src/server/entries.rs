//! Entries of the registry, made of definitions and handlers.

use std::sync::Arc;

use super::listed::Common;
use super::parameters::Parameters;
use super::prompts::PromptEntry;
use super::resources::{ResourceEntry, TemplateEntry};
use super::tools::ToolEntry;
use crate::call::Handler;
use crate::error::Result;
use crate::model::{Prompt, Resource, ResourceTemplate, Tool};

pub(super) fn tool_entry(tool: Tool, handler: Arc<dyn Handler>, common: &Arc<Common>) -> Result<Arc<ToolEntry>> {
    tool.check_schemas()?;
    Ok(Arc::new(ToolEntry::new(tool, handler, common)?))
}

pub(super) fn resource_entry(
    resource: Resource,
    handler: Arc<dyn Handler>,
    common: &Arc<Common>,
) -> Result<Arc<ResourceEntry>> {
    ResourceEntry::new(resource, handler, common).map(Arc::new)
}

pub(super) fn template_entry(
    template: ResourceTemplate,
    parameters: Parameters,
    handler: Arc<dyn Handler>,
    common: &Arc<Common>,
) -> Result<Arc<TemplateEntry>> {
    TemplateEntry::new(template, handler, parameters, common).map(Arc::new)
}

pub(super) fn prompt_entry(
    prompt: Prompt,
    parameters: Parameters,
    handler: Arc<dyn Handler>,
    common: &Arc<Common>,
) -> Result<Arc<PromptEntry>> {
    PromptEntry::new(prompt, handler, parameters, common).map(Arc::new)
}
