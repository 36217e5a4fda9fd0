//! The server of a group that a call goes to.

use super::joined::Joined;
use crate::client::Client;

/// Place of a thing that a group lists.
pub(crate) struct Route {
    pub(crate) client: Client,
    /// The server's name in the group.
    pub(crate) server: String,
    /// The thing's own name, or URI.
    pub(crate) name: String,
}

impl Route {
    pub(super) fn of(found: Option<(&(String, Joined), &str)>) -> Option<Self> {
        let ((server, joined), name) = found?;
        Some(Self { client: joined.client.clone(), server: server.clone(), name: name.to_owned() })
    }
}
