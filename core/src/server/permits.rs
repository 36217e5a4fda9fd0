//! Scopes that the features of a server need, and checks of requests for them.
//!
//! The transport asks first, before anything runs, because it can answer with a challenge; the router asks again about
//! the entry that it found, because middleware may have changed the request.

use super::listed::{Entry, Kind, Listed};
use super::registry::{Changes, Registry};
use crate::error::{Error, Result};
use crate::jsonrpc::code;
use crate::protocol::Transport;

/// Returns true if a request that came in so may use what needs these scopes. Where no access tokens are known over
/// HTTP, nobody has any; on other transports there are none.
pub(super) fn may(scopes: &[String], transport: &Transport) -> bool {
    match &transport.principal {
        Some(principal) => scopes.iter().all(|scope| principal.has_scope(scope)),
        None => scopes.is_empty() || transport.kind != "http",
    }
}

/// # Errors
/// −32600 naming the scopes.
pub(super) fn permit(listed: &Listed, transport: &Transport) -> Result<()> {
    permit_use(&|| listed.subject(), &listed.scopes, transport)
}

/// # Errors
/// As [`permit`]'s.
pub(super) fn permit_use(subject: &dyn Fn() -> String, scopes: &[String], transport: &Transport) -> Result<()> {
    if may(scopes, transport) {
        return Ok(());
    }
    Err(Error::rpc(code::INVALID_REQUEST, format!("{} needs the scopes {:?}", subject(), scopes.join(" "))))
}

/// Returns the needs of a URI that is below a directory: of several directories, those of the innermost; and those of
/// everything else that stands for that URI in another spelling, or lies in that directory.
#[cfg(feature = "files")]
pub(super) fn of_directories(registry: &Registry, changes: Option<&Changes>, uri: &str) -> Option<Vec<String>> {
    use super::files::is_same;

    let innermost = registry.directories_of(uri, changes).into_iter().next()?;
    let guarded = registry.guarded(changes);
    let mut all: Vec<&[String]> = vec![innermost.needs()];
    all.extend(innermost.inside(uri, &guarded).into_iter().map(super::files::Guarded::needs));
    let resources = registry.visible(|r| &r.resources, changes).map(|entry| entry.listed());
    let resources = resources.filter(|listed| !listed.scopes.is_empty() && is_same(listed.name(), uri));
    all.extend(resources.map(|listed| listed.scopes.as_slice()));
    if let Some(listed) = innermost.as_listed(uri) {
        let templates = registry.visible(|r| &r.templates, changes);
        let templates = templates.filter(|entry| entry.template.matches(&listed).is_some());
        all.extend(templates.map(|entry| entry.listed().scopes.as_slice()));
    }
    let mut needs: Vec<String> = Vec::new();
    for scope in all.into_iter().flatten() {
        if !needs.contains(scope) {
            needs.push(scope.clone());
        }
    }
    Some(needs)
}

#[cfg(not(feature = "files"))]
fn of_directories(_: &Registry, _: Option<&Changes>, _: &str) -> Option<Vec<String>> {
    None
}

/// Returns the needs of a name; for a resource's URI, they may be those of a template or a directory.
pub(super) fn needs_of(registry: &Registry, changes: Option<&Changes>, kind: Kind, name: &str) -> Vec<String> {
    let scopes = |listed: &Listed| listed.scopes.clone();
    let found = match kind {
        Kind::Tool => registry.find(|r| &r.tools, name, changes).map(|entry| scopes(entry.listed())),
        Kind::Prompt => registry.find(|r| &r.prompts, name, changes).map(|entry| scopes(entry.listed())),
        Kind::Resource => {
            let own = registry.find(|r| &r.resources, name, changes).map(|entry| scopes(entry.listed()));
            let template = || {
                let mut templates = registry.visible(|r| &r.templates, changes);
                let entry = templates.find(|entry| entry.template.matches(name).is_some());
                entry.map(|entry| scopes(entry.listed()))
            };
            own.or_else(template).or_else(|| of_directories(registry, changes, name))
        }
        Kind::ResourceTemplate => {
            let entry = registry.find(|r| &r.templates, name, changes).map(|entry| scopes(entry.listed()));
            let resource = || registry.find(|r| &r.resources, name, changes).map(|entry| scopes(entry.listed()));
            entry.or_else(resource).or_else(|| of_directories(registry, changes, name))
        }
    };
    found.unwrap_or_default()
}

/// Returns true if a request that came in so may use what this name stands for.
pub(super) fn may_use(
    registry: &Registry,
    changes: Option<&Changes>,
    kind: Kind,
    name: &str,
    transport: &Transport,
) -> bool {
    may(&needs_of(registry, changes, kind, name), transport)
}
