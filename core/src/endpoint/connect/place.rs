//! Owners of a client's cached answers: the server that gives them, and the user that asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::client::{ClientOptions, Place, Target, digest};
use crate::loopback::is_loopback;

/// A URL without what does not say which server it is. The path does: one origin may be the gateway to many servers.
pub(super) fn endpoint(url: &str) -> String {
    if is_socket(url) {
        return url.to_owned();
    }
    let url = url.split('#').next().unwrap_or(url);
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let scheme = scheme.to_ascii_lowercase();
    let host = host.strip_suffix(if scheme == "https" { ":443" } else { ":80" }).unwrap_or(&host);
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{host}{slash}{path}")
}

/// Returns true if a URL names a socket of this machine.
fn is_socket(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("unix") || scheme.eq_ignore_ascii_case("http+unix")
}

/// Returns the digest of the server behind a URL: an address that only this machine has is another one on any other
/// machine.
fn meant(url: &str) -> Arc<str> {
    let endpoint = endpoint(url);
    let place = endpoint.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()).unwrap_or_default();
    let port = place.rfind(':').filter(|at| !place[*at..].contains(']'));
    let host = &place[..port.unwrap_or(place.len())];
    // No address to connect to elsewhere means this machine, too.
    let is_own = is_socket(url) || is_loopback(host) || ["0.0.0.0", "[::]"].contains(&host);
    if !is_own {
        return digest("url", [endpoint.as_str()]);
    }
    digest("own url", [endpoint.as_str(), &gethostname::gethostname().to_string_lossy()])
}

/// Returns the owner of cached answers. Those of an HTTP server are for all who share a store; private ones for the
/// same authorization, which any header and the address may hold. A process of its own may know what no other does.
pub(super) fn place_of(to: &Target, options: &ClientOptions) -> Place {
    let (Target::Url { url, headers } | Target::Sse { url, headers }) = to else {
        return own_place(options);
    };
    let own = options.cache.scope.as_deref();
    let target = meant(url);
    // The user that will log in is not known yet, so nobody else is taken for one.
    #[cfg(feature = "auth")]
    if options.auth.is_some() && own.is_none() {
        return Place { target, scope: alone(), has_address: true, renew: Some(alone) };
    }
    let user = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()?.rsplit_once('@'));
    let all = options.headers.iter().chain(headers).map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()));
    let all: BTreeMap<String, &str> = all.collect();
    let parts = all.iter().flat_map(|(name, value)| [name.as_str(), *value]).chain(user.map(|(user, _)| user));
    // A server's answers may depend on the abilities of its client.
    let facts = options.facts();
    let parts = parts.chain([facts.capabilities.raw().get()]);
    let scope = match own {
        Some(own) => digest("own scope", [own, facts.capabilities.raw().get()]),
        None => digest("headers", parts),
    };
    Place { target, scope, has_address: true, renew: None }
}

/// Returns the owner of answers from a server that no other client can reach.
pub(super) fn own_place(options: &ClientOptions) -> Place {
    let scope = digest("own scope", options.cache.scope.as_deref());
    Place { target: digest("own", [&*number()]), scope, has_address: false, renew: None }
}

/// A scope that no other client has, in this process or in another that shares a store.
#[cfg(feature = "auth")]
fn alone() -> Arc<str> {
    digest("alone", [&*crate::random::new_id().unwrap_or_else(|_| number().into())])
}

/// Another one each time.
fn number() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_machine_has_is_not_what_another_has() {
        for own in [
            "http://localhost:8080/mcp",
            "http://127.0.0.1/mcp",
            "http://[::1]:80/",
            "https://a.localhost",
            "http://u@localhost./?x",
            "http://0.0.0.0:1",
            "http://[::]:1/",
            "http://[::1]",
        ] {
            let (mine, anyone) = (meant(own), digest("url", [endpoint(own).as_str()]));
            assert!(mine == meant(own) && mine != anyone, "{own}");
        }
        for shared in
            ["https://example.com/mcp", "http://10.0.0.1:80", "http://localhost.example.com", "http://[fd00::1]/"]
        {
            assert_eq!(meant(shared), digest("url", [endpoint(shared).as_str()]), "{shared}");
        }
    }
}
