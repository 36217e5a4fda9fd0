//! A server that asks the one behind it, or a group of them: what `run` serves on the other transport, and what the other
//! commands are connected to when a target is many servers.

mod behind;
mod front;
mod upstream;

use std::sync::Arc;

use tricorn::Server;
use tricorn::client::ClientOptions;

use crate::failure::Outcome;
use crate::output::Screen;
use crate::targets::Found;

use behind::Behind;
use upstream::Upstreams;

/// The server and its connections.
pub(crate) struct Bridge {
    pub(crate) server: Server,
    upstreams: Arc<Upstreams>,
}

impl Bridge {
    /// Asks the server behind what it is, so that one that is not there is said before anybody connects. Needs a runtime.
    pub(crate) async fn new(found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Outcome<Self> {
        let mut unrecorded = options.clone();
        unrecorded.record = None;
        let scout = Behind::scout(&found, &unrecorded, screen).await?;
        let upstreams = Arc::new(Upstreams::new(found, options, screen.clone(), most));
        let server = front::server(&scout.facts(upstreams.name()), &upstreams);
        upstreams.serves(&server);
        scout.close().await;
        Ok(Self { server, upstreams })
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.server.close();
        self.upstreams.close().await;
    }
}
