//! Origin of a request behind proxies that are trusted.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};

use crate::error::{Error, Result};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose word counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proxies(Vec<Network>);

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// Number of its bits that count.
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Self { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        let alike = |one: u128, other: u128, width: u32| {
            let shift = width - self.bits;
            shift >= width || one >> shift == other >> shift
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => alike(own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => alike(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

impl Proxies {
    /// Reads addresses, and networks such as `10.0.0.0/8`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) with the text that is neither.
    pub(crate) fn parse(names: &[String]) -> Result<Self> {
        let network = |name: &String| {
            Network::parse(name).ok_or_else(|| {
                let expected = "expected an address, or a network as 10.0.0.0/8";
                Error::misuse(format!(
                    "HTTP option {:?}: {expected}, got {name:?}",
                    crate::idiom::named("trusted_proxies")
                ))
            })
        };
        names.iter().map(network).collect::<Result<_>>().map(Self)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address.to_canonical()))
    }

    /// The address that a request comes from: of its connection, or where a trusted proxy is there the last one that it,
    /// or a trusted one before it, names and does not trust. Where the two headers for that say different things, one of
    /// them is the client's own invention, and neither counts.
    pub(crate) fn client(&self, from: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.0.is_empty() || !self.trusts(from) {
            return from;
        }
        let named = |header: &HeaderName, read: fn(&str) -> Option<IpAddr>| {
            let mut last = None;
            for value in headers.get_all(header).iter().rev() {
                for element in value.to_str().ok()?.rsplit(',') {
                    let address = read(element.trim())?;
                    last = Some(address);
                    if !self.trusts(address) {
                        return last;
                    }
                }
            }
            last
        };
        let simple = headers.contains_key(&X_FORWARDED_FOR).then(|| named(&X_FORWARDED_FOR, address));
        let standard = headers.contains_key(FORWARDED).then(|| named(&FORWARDED, forwarded_for));
        match (simple, standard) {
            (Some(one), Some(other)) => one.filter(|one| Some(*one) == other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => None,
        }
        .unwrap_or(from)
    }
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// The `for` of an element of `Forwarded` (RFC 7239, section 4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let node = pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("for"))?.1;
    address(node.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], from: &str, headers: &[(&'static str, &'static str)]) -> String {
        let names: Vec<_> = trusted.iter().map(|name| (*name).to_owned()).collect();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        let proxies = Proxies::parse(&names).expect("networks");
        proxies.client(from.parse().expect("an address"), &map).to_string()
    }

    #[test]
    fn only_trusted_proxies_say_who_asks() {
        let told = [("x-forwarded-for", "192.0.2.9")];
        assert_eq!(client(&[], "127.0.0.1", &told), "127.0.0.1");
        assert_eq!(client(&["10.0.0.0/8"], "127.0.0.1", &told), "127.0.0.1");
        assert_eq!(client(&["127.0.0.1"], "127.0.0.1", &told), "192.0.2.9");
        assert_eq!(client(&["127.0.0.0/8"], "::ffff:127.9.9.9", &told), "192.0.2.9");
        assert_eq!(client(&["fd00::/8"], "fd12::1", &told), "192.0.2.9");
        assert_eq!(client(&["0.0.0.0/0"], "203.0.113.1", &told), "192.0.2.9");
        assert_eq!(client(&["127.0.0.1"], "127.0.0.1", &[]), "127.0.0.1");
    }

    #[test]
    fn what_the_client_says_itself_does_not_count() {
        let of = |headers: &[(&'static str, &'static str)]| client(&["10.0.0.0/8"], "10.0.0.1", headers);
        assert_eq!(of(&[("x-forwarded-for", "1.1.1.1, 192.0.2.9, 10.0.0.2")]), "192.0.2.9");
        assert_eq!(of(&[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "192.0.2.9")]), "192.0.2.9");
        assert_eq!(of(&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")]), "10.0.0.3");
        assert_eq!(of(&[("x-forwarded-for", "1.1.1.1, unknown")]), "10.0.0.1");
        assert_eq!(of(&[("forwarded", "for=1.1.1.1, for=\"[2001:db8::1]:4711\";proto=https")]), "2001:db8::1");
        assert_eq!(of(&[("forwarded", "proto=http;For=192.0.2.9")]), "192.0.2.9");
        assert_eq!(of(&[("forwarded", "for=_hidden")]), "10.0.0.1");
        assert_eq!(of(&[("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "192.0.2.9")]), "10.0.0.1");
        assert_eq!(of(&[("forwarded", "for=192.0.2.9"), ("x-forwarded-for", "192.0.2.9:80")]), "192.0.2.9");
    }

    #[test]
    fn what_is_no_network_is_named() {
        for wrong in ["", "localhost", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0.0/-1"] {
            let error = Proxies::parse(&[wrong.to_owned()]).expect_err(wrong);
            assert!(error.message().contains("\"trusted_proxies\""), "{wrong}");
        }
    }
}
