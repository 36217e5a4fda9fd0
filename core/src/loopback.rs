//! Hosts that are this machine and nobody else's.

use std::net::IpAddr;

/// Returns true if a URL's host, with or without the brackets of IPv6, means this machine: an address of the loopback
/// interface, `localhost` or a name below it (RFC 6761, section 6.3).
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}
