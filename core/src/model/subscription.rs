use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Capabilities;
use crate::error::{Error, Result, shortened};

/// The most URIs that one client may be subscribed to, and their bytes together.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1000;
pub(crate) const MAX_SUBSCRIBED: usize = 1 << 20;
/// The longest URI that can be subscribed to, in bytes.
pub(crate) const MAX_URI: usize = 8 << 10;

/// The members that ask for the changes of a list, each with the notification and the capability of the server.
const LISTS: [(&str, &str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed", "tools.listChanged"),
    ("promptsListChanged", "notifications/prompts/list_changed", "prompts.listChanged"),
    ("resourcesListChanged", "notifications/resources/list_changed", "resources.listChanged"),
];
const TASK_IDS: &str = "taskIds";
const RESOURCES: (&str, &str) = ("resourceSubscriptions", "resources.subscribe");

/// The changes that a client wants to hear of: the schema's object of this name (specification 2026-07-28,
/// "Subscriptions"). Of resource templates the changes are those of resources.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::model::SubscriptionFilter;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("news")
/// #     .tool("search", "Search", async || Ok("nothing"))
/// #     .resource(Resource::new("news://sport", "sport"), async || Ok("1:0"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let wanted = SubscriptionFilter::new().tools().resource("news://sport").resource("news://nowhere");
/// let changes = client.listen(wanted).await?;
/// // The server leaves out the resource that it does not know.
/// assert_eq!(changes.honoured().resource_subscriptions, ["news://sport"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// Changes of the list of prompts.
    #[serde(skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// Changes of the lists of resources and resource templates.
    #[serde(skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// Changes of the resources with these URIs, and of what is a part of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Changes of the tasks with these ids (extension `io.modelcontextprotocol/tasks`; in 2025-11-25 those of which the
    /// server tells).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Members of the program's own extensions: `true`, or the wanted keys.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl SubscriptionFilter {
    /// No changes at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The changes of all lists of which a server with these capabilities tells.
    #[must_use]
    pub fn lists_of(capabilities: &Capabilities) -> Self {
        let mut all = Self::default();
        for (member, _, capability) in LISTS {
            if capabilities.has(capability) {
                *all.list_mut(member) = true;
            }
        }
        all
    }

    /// And changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = true;
        self
    }

    /// And changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = true;
        self
    }

    /// And changes of the lists of resources and resource templates.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = true;
        self
    }

    /// And changes of the resource with this URI.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.add(&uri.into());
        self
    }

    /// And changes of the task with this id.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        if !self.task_ids.contains(&id) {
            self.task_ids.push(id);
        }
        self
    }

    /// Adds changes of an extension: the member of the filter that belongs to it, which is `true`, or an array of the
    /// wanted keys.
    #[must_use]
    pub fn other(mut self, member: impl Into<String>, value: impl Into<Value>) -> Self {
        self.others.insert(member.into(), value.into());
        self
    }

    /// Returns true if it asks for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn list_mut(&mut self, member: &str) -> &mut bool {
        match member {
            "toolsListChanged" => &mut self.tools_list_changed,
            "promptsListChanged" => &mut self.prompts_list_changed,
            _ => &mut self.resources_list_changed,
        }
    }

    fn list(&self, member: &str) -> bool {
        match member {
            "toolsListChanged" => self.tools_list_changed,
            "promptsListChanged" => self.prompts_list_changed,
            _ => self.resources_list_changed,
        }
    }

    /// Asks for this resource, too. Says whether it did not before.
    pub(crate) fn add(&mut self, uri: &str) -> bool {
        let is_new = !self.has(uri);
        if is_new {
            self.resource_subscriptions.push(uri.to_owned());
        }
        is_new
    }

    pub(crate) fn has(&self, uri: &str) -> bool {
        self.resource_subscriptions.iter().any(|own| own == uri)
    }

    /// Returns true if it asks for changes of the list that this notification is about.
    pub(crate) fn wants_list(&self, notification: &str) -> bool {
        LISTS.iter().any(|(member, method, _)| *method == notification && self.list(member))
    }

    /// Returns true if it asks for this URI, or for one that it is a part of.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        self.resource_subscriptions.iter().any(|own| own == uri || is_part(uri, own))
    }

    /// The notifications of the lists that it asks for.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &'static str> {
        LISTS.iter().filter(|(member, ..)| self.list(member)).map(|(_, method, _)| *method)
    }

    /// Returns the members that are asked for, each with the capability that a server needs for it.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lists = LISTS.iter().filter(|(member, ..)| self.list(member)).map(|(member, _, needed)| (*member, *needed));
        lists.chain((!self.resource_subscriptions.is_empty()).then_some(RESOURCES))
    }

    /// The capabilities that say that a server tells of something.
    pub(crate) fn capabilities() -> impl Iterator<Item = &'static str> {
        LISTS.iter().map(|(_, _, capability)| *capability).chain([RESOURCES.1])
    }

    /// Without what is told by servers that declare this capability.
    pub(crate) fn without(&mut self, capability: &str) {
        match LISTS.iter().find(|(_, _, own)| *own == capability) {
            Some((member, ..)) => *self.list_mut(member) = false,
            None => self.resource_subscriptions = Vec::new(),
        }
    }

    /// Returns true if this member is the protocol's, or that of the extension for tasks.
    pub(crate) fn is_own(member: &str) -> bool {
        member == RESOURCES.0 || member == TASK_IDS || LISTS.iter().any(|(own, ..)| *own == member)
    }

    /// Checks the members of extensions.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the one that is the protocol's, or neither a boolean nor keys.
    pub(crate) fn check_others(&self) -> Result<()> {
        for (member, value) in &self.others {
            let is_key = |key: &Value| key.is_string();
            let why = match value {
                _ if Self::is_own(member) => {
                    " is the protocol's: say tools, prompts, resources, uris or tasks".to_owned()
                }
                Value::Bool(_) => continue,
                Value::Array(keys) if keys.iter().all(is_key) => continue,
                _ => {
                    let got = value.to_string();
                    format!(": expected true or a list of keys, which are text, got {}", shortened(&got, 60))
                }
            };
            return Err(Error::misuse(format!("listen: extensions: {member:?}{why}")));
        }
        Ok(())
    }

    /// Returns true if it asks for what belongs to this member, about this key.
    pub(crate) fn wants_other(&self, member: &str, key: Option<&str>) -> bool {
        match self.others.get(member) {
            Some(Value::Bool(yes)) => *yes,
            Some(Value::Array(keys)) => key.is_some_and(|key| keys.iter().any(|own| own == key)),
            _ => false,
        }
    }

    /// Reads a member that belongs to an extension.
    ///
    /// # Errors
    /// −32602 when it is neither a boolean nor an array of keys, or too much.
    pub(crate) fn add_other(&mut self, member: &str, value: &Value) -> Result<()> {
        let keys = match value {
            Value::Bool(false) => return Ok(()),
            Value::Bool(true) => Some(0),
            Value::Array(keys) if keys.is_empty() => return Ok(()),
            Value::Array(keys) if keys.len() <= MAX_SUBSCRIPTIONS => {
                keys.iter().map(|key| key.as_str().map(str::len)).sum::<Option<usize>>()
            }
            _ => None,
        };
        if keys.is_none_or(|bytes| bytes > MAX_SUBSCRIBED) {
            let got = value.to_string();
            let message = format!(
                "\"notifications\": {member:?}: expected true or an array of at most {MAX_SUBSCRIPTIONS} keys, of at most \
                 {MAX_SUBSCRIBED} bytes, got {}",
                shortened(&got, 60)
            );
            return Err(Error::invalid_params(message));
        }
        self.others.insert(member.to_owned(), value.clone());
        Ok(())
    }

    /// Reads which tasks a client asks for.
    ///
    /// # Errors
    /// −32602 when they are no ids, or too many.
    pub(crate) fn read_tasks(&mut self, members: &Map<String, Value>) -> Result<()> {
        let Some(given) = members.get(TASK_IDS) else { return Ok(()) };
        let wrong = || {
            let got = given.to_string();
            let message = format!(
                "\"notifications\": \"taskIds\": expected an array of at most {MAX_SUBSCRIPTIONS} tasks' ids, got {}",
                shortened(&got, 60)
            );
            Error::invalid_params(message)
        };
        let ids = given.as_array().filter(|ids| ids.len() <= MAX_SUBSCRIPTIONS).ok_or_else(wrong)?;
        let ids: Option<std::collections::BTreeSet<_>> = ids.iter().map(Value::as_str).collect();
        self.task_ids = ids.ok_or_else(wrong)?.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// Reads what a client asks for. Members that are not known are other revisions' or extensions'.
    ///
    /// # Errors
    /// −32602 naming the member that is wrong or too much.
    pub(crate) fn read(members: &Map<String, Value>) -> Result<Self> {
        let wrong = |member: &str, expected: &str, got: &Value| {
            let got = got.to_string();
            let message = format!("\"notifications\": {member:?}: expected {expected}, got {}", shortened(&got, 60));
            Error::invalid_params(message)
        };
        let mut filter = Self::default();
        for (member, ..) in LISTS {
            match members.get(member) {
                None => {}
                Some(Value::Bool(yes)) => *filter.list_mut(member) = *yes,
                Some(other) => return Err(wrong(member, "a boolean", other)),
            }
        }
        let uris = match members.get(RESOURCES.0) {
            None => return Ok(filter),
            Some(Value::Array(uris)) => uris,
            Some(other) => return Err(wrong(RESOURCES.0, "an array of URIs", other)),
        };
        let mut known = std::collections::BTreeSet::new();
        let mut bytes = 0;
        for uri in uris {
            let Value::String(uri) = uri else { return Err(wrong(RESOURCES.0, "URIs", uri)) };
            check_uri(RESOURCES.0, uri)?;
            if known.insert(uri.as_str()) {
                bytes += uri.len();
                filter.resource_subscriptions.push(uri.clone());
            }
        }
        if known.len() > MAX_SUBSCRIPTIONS || bytes > MAX_SUBSCRIBED {
            let message = format!(
                "\"notifications\": {:?}: {} URIs of {bytes} bytes, at most {MAX_SUBSCRIPTIONS} and {MAX_SUBSCRIBED} bytes \
                 can be subscribed to",
                RESOURCES.0,
                known.len()
            );
            return Err(Error::invalid_params(message));
        }
        Ok(filter)
    }
}

/// Returns true if `uri` is a part of `whole`.
pub(crate) fn is_part(uri: &str, whole: &str) -> bool {
    uri.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/') || (whole.ends_with('/') && !rest.is_empty()))
        || whole.strip_suffix('/').is_some_and(|bare| bare == uri && has_empty_path(bare))
}

/// The other spelling of a URI whose path is empty: `https://example.com` and `https://example.com/` name the same (RFC
/// 3986, section 6.2.3), and some clients' URL types write the one for the other.
pub(crate) fn other_spelling(uri: &str) -> Option<String> {
    match uri.strip_suffix('/') {
        Some(bare) => has_empty_path(bare).then(|| bare.to_owned()),
        None => has_empty_path(uri).then(|| format!("{uri}/")),
    }
}

/// Returns true if nothing follows the authority.
fn has_empty_path(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(_, rest)| !rest.is_empty() && !rest.contains(['/', '?', '#']))
}

/// Checks that a URI is short enough to be subscribed to.
///
/// # Errors
/// −32602 naming `member`.
pub(crate) fn check_uri(member: &str, uri: &str) -> Result<()> {
    if uri.len() <= MAX_URI {
        return Ok(());
    }
    let length = uri.len();
    let message = format!("{member:?}: {length} bytes are more than the {MAX_URI} that can be subscribed to");
    Err(Error::invalid_params(message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_path_has_two_spellings() {
        assert_eq!(other_spelling("https://example.com").as_deref(), Some("https://example.com/"));
        assert_eq!(other_spelling("demo://status/").as_deref(), Some("demo://status"));
        for other in ["add", "demo:///", "https://e.com/a", "https://e.com/a/", "https://e.com?q", "https://", "a/"] {
            assert_eq!(other_spelling(other), None, "{other}");
        }
        assert!(is_part("https://example.com", "https://example.com/"));
        assert!(!is_part("https://example.com/a", "https://example.com/a/"));
    }

    fn read(value: &Value) -> Result<SubscriptionFilter> {
        SubscriptionFilter::read(value.as_object().expect("an object"))
    }

    #[test]
    fn what_is_asked_for_is_read_and_written_alike() {
        let given = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:/b", "a:/b", "c:"]});
        let filter = read(&given).expect("right");
        assert_eq!(filter, SubscriptionFilter::new().tools().resource("a:/b").resource("c:"));
        let written = serde_json::to_value(&filter).expect("JSON");
        assert_eq!(written, json!({"toolsListChanged": true, "resourceSubscriptions": ["a:/b", "c:"]}));
        assert_eq!(serde_json::from_value::<SubscriptionFilter>(written).expect("right"), filter);
        assert!(read(&json!({"promptsListChanged": false, "taskIds": [1]})).expect("open").is_empty());
        assert!(filter.wants("a:/b/c") && filter.wants("a:/b") && !filter.wants("a:/bc"));
        assert!(filter.wants_list("notifications/tools/list_changed"));
        assert!(!filter.wants_list("notifications/prompts/list_changed"));
        let needs: Vec<_> = filter.needs().collect();
        assert_eq!(needs, [("toolsListChanged", "tools.listChanged"), RESOURCES]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many: Vec<_> = (0..=MAX_SUBSCRIPTIONS).map(|n| format!("a:{n}")).collect();
        for (given, named) in [
            (json!({"toolsListChanged": 1}), "\"toolsListChanged\": expected a boolean, got 1"),
            (json!({"promptsListChanged": null}), "\"promptsListChanged\": expected a boolean, got null"),
            (json!({"resourceSubscriptions": "a:"}), "\"resourceSubscriptions\": expected an array of URIs"),
            (json!({"resourceSubscriptions": [7]}), "\"resourceSubscriptions\": expected URIs, got 7"),
            (json!({"resourceSubscriptions": ["x".repeat(MAX_URI + 1)]}), "\"resourceSubscriptions\": 8193 bytes"),
            (json!({"resourceSubscriptions": many}), "1001 URIs"),
        ] {
            let error = read(&given).expect_err(named);
            assert!(error.message().contains(named), "{error}");
            assert_eq!(error.code(), Some(-32602), "{error}");
        }
    }
}
