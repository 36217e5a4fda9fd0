//! Lifetime and scope of a server's answers.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::listed::Kind;
use crate::error::{Error, Result, shortened};
use crate::model::{CacheHints, CacheScope};
use crate::options::unknown_in_words;

/// Lifetime and scope of a server's answers in its clients' caches (`ttlMs` and `cacheScope`, revision 2026-07-28;
/// other clients are not told). The default is nothing: 0 and private, because only the server's author knows how often
/// things change and whom they are for.
///
/// The hints for everything (`general`) hold where nothing more special is set, but for two things: a list of which a
/// function gives a part, and the result of a resource's function, may depend on who asks. These are private unless
/// `scope` is set for that list or for `read`, or by the resource or the result itself. Middleware that answers
/// differently to different clients says so in the result's `cacheScope`, or the server's author in these options.
///
/// JSON: `{"ttl"?: seconds, "scope"?: "public"|"private", "discover"?, "tools"?, "prompts"?, "resources"?,
/// "resource_templates"?, "read"?}`, the last six with `ttl` and `scope` of their own.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use std::time::Duration;
/// use tricorn::model::{CacheHints, CacheScope};
/// use tricorn::prelude::*;
/// use tricorn::server::{CacheOptions, Kind};
///
/// let tools = CacheHints::new().ttl(Duration::from_secs(3600)).scope(CacheScope::Public);
/// let contents = CacheHints::new().ttl(Duration::from_secs(5));
/// let server = Server::new("shop")
///     .cache(CacheOptions::new().list(Kind::Tool, tools).read(contents))
///     .tool("buy", "Buy fruit", async || Ok("bought"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// # assert_eq!(client.page(Kind::Tool, None, &CallOptions::new()).await?.extra["ttlMs"], 3_600_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheOptions {
    /// For everything.
    pub general: CacheHints,
    /// `server/discover`.
    pub discover: CacheHints,
    /// `tools/list`.
    pub tools: CacheHints,
    /// `prompts/list`.
    pub prompts: CacheHints,
    /// `resources/list`.
    pub resources: CacheHints,
    /// `resources/templates/list`.
    pub resource_templates: CacheHints,
    /// `resources/read`.
    pub read: CacheHints,
}

impl CacheOptions {
    /// Nothing is said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says this of everything of which nothing else is said.
    #[must_use]
    pub fn of(hints: CacheHints) -> Self {
        Self { general: hints, ..Self::default() }
    }

    /// Says this of `server/discover`.
    #[must_use]
    pub fn discover(mut self, hints: CacheHints) -> Self {
        self.discover = hints;
        self
    }

    /// Says this of the list of this kind.
    #[must_use]
    pub fn list(mut self, kind: Kind, hints: CacheHints) -> Self {
        match kind {
            Kind::Tool => self.tools = hints,
            Kind::Prompt => self.prompts = hints,
            Kind::Resource => self.resources = hints,
            Kind::ResourceTemplate => self.resource_templates = hints,
        }
        self
    }

    /// Says this of what is read, where neither the resource nor the result says it.
    #[must_use]
    pub fn read(mut self, hints: CacheHints) -> Self {
        self.read = hints;
        self
    }

    /// Returns the hints for `server/discover`.
    pub(super) fn of_discovery(&self) -> CacheHints {
        self.discover.or(self.general)
    }

    /// Returns the hints for every page of the list of this kind; `open`: a function gives a part of it.
    pub(super) fn of_list(&self, kind: Kind, open: bool) -> CacheHints {
        let special = match kind {
            Kind::Tool => self.tools,
            Kind::Prompt => self.prompts,
            Kind::Resource => self.resources,
            Kind::ResourceTemplate => self.resource_templates,
        };
        let general = CacheHints { scope: self.general.scope.filter(|_| !open), ..self.general };
        special.or(general)
    }

    /// Returns the hints for the contents of a resource that has these hints of its own.
    pub(super) fn of_read(&self, own: CacheHints) -> CacheHints {
        own.or(self.read).or(CacheHints { scope: None, ..self.general })
    }

    /// # Errors
    /// The fault, naming the member.
    fn parse(value: Value) -> Result<Self> {
        let Value::Object(mut members) = value else {
            let got = shortened(&value.to_string(), 60).into_owned();
            return Err(Error::misuse(format!("expected an object with \"ttl\" and \"scope\", got {got}")));
        };
        let mut options = Self::of(CacheHints::take(&mut members)?);
        let mut named = |name: &str| take(&mut members, name);
        options.discover = named("discover")?;
        options.tools = named("tools")?;
        options.prompts = named("prompts")?;
        options.resources = named("resources")?;
        options.resource_templates = named("resource_templates")?;
        options.read = named("read")?;
        match members.keys().next() {
            None => Ok(options),
            Some(other) => Err(Error::misuse(unknown_in_words(other, &MEMBERS))),
        }
    }
}

/// Members of the option `cache`.
const MEMBERS: [&str; 8] = ["ttl", "scope", "discover", "tools", "prompts", "resources", "resource_templates", "read"];

fn take(members: &mut Map<String, Value>, name: &str) -> Result<CacheHints> {
    match members.shift_remove(name) {
        None | Some(Value::Null) => Ok(CacheHints::new()),
        Some(value) => CacheHints::read(&value)
            .map_err(|error| Error::misuse(format!("{:?}: {}", crate::idiom::named(name), error.message()))),
    }
}

impl<'de> Deserialize<'de> for CacheOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::parse(value).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

/// Returns the hints for a page that a source gave. Every page of a list is for the same (specification, "Interaction
/// with Pagination"): the source's own scope counts where the whole list is the source's, and else only when it is
/// `private`.
pub(super) fn of_source(list: CacheHints, whole: bool, page: &Map<String, Value>) -> CacheHints {
    let ttl = page.get("ttlMs").and_then(Value::as_u64).map(std::time::Duration::from_millis);
    let said = page.get("cacheScope").and_then(Value::as_str).and_then(CacheScope::parse);
    let scope = said.filter(|scope| *scope == CacheScope::Private || whole);
    CacheHints { ttl, scope }.or(list)
}

/// Restricts the cache hints of an entry that needs scopes: it is not for a cache that all share.
pub(super) fn restricted(hints: CacheHints, scopes: &[String]) -> CacheHints {
    if scopes.is_empty() { hints } else { hints.scope(CacheScope::Private) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn options(value: Value) -> CacheOptions {
        CacheOptions::parse(value).expect("options")
    }

    #[test]
    fn the_more_special_counts() {
        let options = options(json!({
            "ttl": 60, "scope": "public", "tools": {"ttl": 5}, "prompts": {"scope": "private"}, "read": {"ttl": 1},
        }));
        assert_eq!(options.of_discovery().members(), (60_000, CacheScope::Public));
        assert_eq!(options.of_list(Kind::Tool, false).members(), (5000, CacheScope::Public));
        assert_eq!(options.of_list(Kind::Prompt, false).members(), (60_000, CacheScope::Private));
        let own = CacheHints::new().ttl(Duration::from_millis(3)).scope(CacheScope::Public);
        assert_eq!(options.of_read(own).members(), (3, CacheScope::Public));
        assert_eq!(options.of_read(CacheHints::new()).members(), (1000, CacheScope::Private));
    }

    #[test]
    fn what_may_depend_on_who_asks_is_private_unless_it_is_said_of_it() {
        let general = options(json!({"ttl": 60, "scope": "public"}));
        assert_eq!(general.of_list(Kind::Tool, true).members(), (60_000, CacheScope::Private));
        assert_eq!(general.of_read(CacheHints::new()).members(), (60_000, CacheScope::Private));
        let said = options(json!({"tools": {"scope": "public"}, "read": {"scope": "public"}}));
        assert_eq!(said.of_list(Kind::Tool, true).members(), (0, CacheScope::Public));
        assert_eq!(said.of_read(CacheHints::new()).members(), (0, CacheScope::Public));
    }

    #[test]
    fn a_source_may_be_more_careful_and_public_only_where_the_whole_list_is_its_own() {
        let page = |value: Value| value.as_object().cloned().expect("object");
        let (public, private) =
            (page(json!({"ttlMs": 7, "cacheScope": "public"})), page(json!({"cacheScope": "private"})));
        let list = CacheHints::new().ttl(Duration::from_secs(1));
        assert_eq!(of_source(list, true, &public).members(), (7, CacheScope::Public));
        assert_eq!(of_source(list, false, &public).members(), (7, CacheScope::Private));
        assert_eq!(of_source(list.scope(CacheScope::Public), false, &private).members(), (1000, CacheScope::Private));
        assert_eq!(of_source(list, true, &page(json!({"ttlMs": -1}))).members(), (1000, CacheScope::Private));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (wrong, said) in [
            (json!({"tools": {"ttl": -1}}), "\"tools\": \"ttl\": expected seconds of at least 0, got -1"),
            (json!({"scope": true}), "\"scope\": expected \"public\" or \"private\", got true"),
            (json!({"read": 5}), "\"read\": expected an object with \"ttl\" and \"scope\", got 5"),
            (json!(true), "expected an object with \"ttl\" and \"scope\", got true"),
        ] {
            assert_eq!(CacheOptions::parse(wrong).expect_err("wrong").message(), said);
        }
        let unknown = CacheOptions::parse(json!({"tool": {}})).expect_err("wrong");
        assert!(unknown.message().starts_with("unknown option \"tool\", did you mean \"tools\"?"), "{unknown}");
    }
}
