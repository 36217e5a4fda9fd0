/// Kind of things that a server offers and lists.
///
/// ```
/// use tricorn::prelude::*;
/// use tricorn::server::Kind;
///
/// let server = Server::new("vault")
///     .tool("open", "Open the vault", async || Ok("open"))
///     .resource(Resource::new("vault://gold", "gold"), async || Ok("12 bars"));
/// server.set_enabled(Kind::Tool, "open", false); // it is not listed, and cannot be called
/// server.remove(Kind::Resource, "vault://gold");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Tools, by name.
    Tool,
    /// Resources, by URI.
    Resource,
    /// Resource templates, by URI template.
    ResourceTemplate,
    /// Prompts, by name.
    Prompt,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::ResourceTemplate, Self::Prompt];

    /// `tool`, `resource`, `resource_template`, `prompt`: the same in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource_template",
            Self::Prompt => "prompt",
        }
    }

    /// The kind called `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the word for it in a message.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::ResourceTemplate => "resource template",
            other => other.as_str(),
        }
    }

    /// The member of a definition that names it.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::ResourceTemplate => "uriTemplate",
        }
    }

    /// The member of a list's result that holds the definitions.
    pub(crate) const fn list_member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::ResourceTemplate => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }

    /// Returns the first letter of its list's cursors.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Tool => "t",
            Self::Resource => "r",
            Self::ResourceTemplate => "u",
            Self::Prompt => "p",
        }
    }

    /// The notification that its list has changed.
    pub(crate) const fn list_changed(self) -> &'static str {
        match self {
            Self::Tool => "notifications/tools/list_changed",
            Self::Resource | Self::ResourceTemplate => "notifications/resources/list_changed",
            Self::Prompt => "notifications/prompts/list_changed",
        }
    }

    /// The capability that says that there are such things.
    pub(crate) const fn capability(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource | Self::ResourceTemplate => "resources",
            Self::Prompt => "prompts",
        }
    }
}
