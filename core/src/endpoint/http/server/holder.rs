//! Holder of sessions that count together when there is no room for more.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::budget::Owner;
use crate::model::Principal;

/// Somebody who has sessions, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// Issuer and subject of an access token.
    Principal(Arc<(Option<String>, String, bool)>),
    /// Address of clients that nobody asks for a token. Behind a proxy all of them have the same.
    Address(IpAddr),
    /// A mounted server is not told.
    Unknown,
}

impl Holder {
    pub(super) fn of(principal: Option<&Principal>, from: Option<IpAddr>) -> Self {
        match (principal, from) {
            (Some(principal), _) => Self::Principal(Arc::new(principal.key())),
            (None, Some(from)) => Self::Address(network(from)),
            (None, None) => Self::Unknown,
        }
    }

    /// The owner in the budget that its bytes count for.
    pub(super) fn owner(&self) -> Owner {
        if *self == Self::Unknown { Owner::UNKNOWN } else { Owner::of(self) }
    }

    /// The number that its tasks count by.
    pub(super) fn share(&self) -> Option<u64> {
        (*self != Self::Unknown).then(|| Owner::of(self).number())
    }

    pub(super) fn is_principal(&self) -> bool {
        matches!(self, Self::Principal(_))
    }
}

/// One client may have any address of an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_more_than_an_address() {
        let address = |text: &str| Holder::of(None, Some(text.parse().expect(text)));
        let of = |principal: &Principal| Holder::of(Some(principal), None);
        assert_eq!(address("2001:db8::1"), address("2001:db8::2:3:4:5"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
        let ada = Principal::new("ada").issuer("https://a.example.com");
        assert_eq!(of(&ada), Holder::of(Some(&ada.clone().scopes(["x"])), Some([192, 0, 2, 1].into())));
        assert_ne!(of(&ada), of(&Principal::new("ada").issuer("https://b.example.com")));
        assert_ne!(of(&Principal::of_client("ada")), of(&Principal::new("ada")));
        assert_eq!(Holder::of(None, None), Holder::Unknown);
    }
}
