//! Reach of addresses, and the address of a server that leads to others.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;

/// Addresses of a server.
pub(crate) trait Whereabouts: Send + Sync {
    /// Returns the kinds of the addresses that connections to it have reached, each once. Opens one where there was
    /// none yet; empty when that fails. The current address of the server's name is nothing to go by: it may be another
    /// one each time.
    fn reaches(&self) -> Pin<Box<dyn Future<Output = Vec<Reach>> + Send + '_>>;
}

/// Places from which an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Public,
    Private,
    LinkLocal,
    Loopback,
    Nowhere,
}

impl Reach {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            [169, 254, ..] => Self::LinkLocal,
            // 100.64.0.0/10 is shared by the customers of a carrier.
            [100, second, ..] if second & 0xc0 == 64 => Self::Private,
            _ if address.is_private() => Self::Private,
            [0, ..] | [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Self::Nowhere,
            [224..=255, ..] => Self::Nowhere,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let inner = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            [0, 0, 0, 0, 0, 0, ..] => Self::Nowhere,
            // An address of the older kind inside: NAT64 and 6to4.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
            [0x2002, high, low, ..] => inner(high, low),
            [first, ..] if first & 0xfe00 == 0xfc00 => Self::Private,
            [first, ..] if first & 0xffc0 == 0xfe80 => Self::LinkLocal,
            // Addresses of documentation; those of Teredo, which carry an IPv4 address of anybody's.
            [0x2001, 0xdb8, ..] | [0x2001, 0, ..] => Self::Nowhere,
            [first, ..] if first & 0xe000 == 0x2000 => Self::Public,
            _ => Self::Nowhere,
        }
    }

    /// Returns true if a server may lead there that is at these addresses. All of them count, as anybody can give a
    /// name of his own one more.
    pub(crate) fn is_near(self, server: &[Self]) -> bool {
        let has = |reach: Self| server.contains(&reach);
        match self {
            Self::Public => true,
            Self::Nowhere => false,
            Self::Private => (has(Self::Private) || has(Self::Loopback)) && !has(Self::Public) && !has(Self::Nowhere),
            Self::LinkLocal | Self::Loopback => !server.is_empty() && server.iter().all(|own| *own == self),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Loopback => "loopback",
            Self::Nowhere => "reserved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_their_reach() {
        for (address, reach) in [
            ("8.8.8.8", Reach::Public),
            ("2606:4700::1111", Reach::Public),
            ("127.0.0.1", Reach::Loopback),
            ("127.9.9.9", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("10.1.2.3", Reach::Private),
            ("172.31.0.1", Reach::Private),
            ("172.32.0.1", Reach::Public),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("100.128.0.1", Reach::Public),
            ("fd00::1", Reach::Private),
            ("64:ff9b::a00:1", Reach::Private),
            ("2002:7f00:1::", Reach::Loopback),
            ("169.254.169.254", Reach::LinkLocal),
            ("::ffff:169.254.169.254", Reach::LinkLocal),
            ("fe80::1", Reach::LinkLocal),
            ("0.0.0.0", Reach::Nowhere),
            ("::", Reach::Nowhere),
            ("::7f00:1", Reach::Nowhere),
            ("224.0.0.1", Reach::Nowhere),
            ("255.255.255.255", Reach::Nowhere),
            ("192.0.2.1", Reach::Nowhere),
            ("ff02::1", Reach::Nowhere),
        ] {
            assert_eq!(Reach::of(address.parse().expect(address)), reach, "{address}");
        }
    }

    #[test]
    fn all_addresses_of_a_server_say_where_it_is() {
        use Reach::{LinkLocal, Loopback, Nowhere, Private, Public};
        for (server, reach, near) in [
            (&[Private][..], Private, true),
            (&[Loopback], Private, true),
            (&[Private, Loopback, LinkLocal], Private, true),
            (&[Public, Private], Private, false),
            (&[Nowhere, Private], Private, false),
            (&[LinkLocal], Private, false),
            (&[Loopback, Loopback], Loopback, true),
            (&[Loopback, Public], Loopback, false),
            (&[Loopback, Private], Loopback, false),
            (&[Public, LinkLocal], LinkLocal, false),
            (&[LinkLocal], LinkLocal, true),
            (&[Nowhere], Nowhere, false),
            (&[], Private, false),
            (&[], Loopback, false),
            (&[], Public, true),
        ] {
            assert_eq!(reach.is_near(server), near, "{server:?} {reach:?}");
        }
    }
}
