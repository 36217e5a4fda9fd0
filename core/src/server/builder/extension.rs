//! Extensions of a server.

use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::protocol::Input;
use crate::server::extension::Extension;
use crate::server::{Router, Server};

impl Server {
    /// Offers an extension of the protocol. Off unless it is added; clients have to declare it as well
    /// ([`ClientOptions::extension`](crate::client::ClientOptions::extension)).
    ///
    /// ```
    /// # use tricorn::Server;
    /// # use tricorn::server::{Extension, HandlerError};
    /// # use serde_json::{Value, json};
    /// let search = Extension::new("com.example/search")
    ///     .settings(json!({"languages": ["en"]}))
    ///     .method("com.example/search", async |params: Value| {
    ///         Ok::<_, HandlerError>(json!({"found": [params["query"]]}))
    ///     });
    /// Server::new("library").extension(search);
    /// ```
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        if let Err(error) = self.add_extension(extension) {
            self.mistake.get_or_insert(error);
        }
        self
    }

    /// As [`extension`](Self::extension), at any time; connections that are open do not learn of it.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name, a method or a member of the filter that is wrong or taken.
    pub fn add_extension(&self, extension: Extension) -> Result<()> {
        let router: &Router = &self.shared.router;
        router.extensions.add(extension, &router.common)?;
        self.changed();
        Ok(())
    }

    /// Sends a notification of an extension to all clients that asked for it: those with `true` in its member of their
    /// filter, and those with `key` in that. Clients of older revisions, which cannot ask, hear of it when they declare the
    /// extension.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when no extension has this notification, and for parameters that are no
    /// object.
    pub fn notify(&self, method: &str, params: Option<RawJson>, key: Option<&str>) -> Result<()> {
        let params = params.unwrap_or_else(RawJson::empty_object);
        let announcement = self.shared.router.extensions.announcement(method, params, key)?;
        self.shared.links.tell(|| Input::Announce(Box::new(announcement.clone())));
        Ok(())
    }
}
