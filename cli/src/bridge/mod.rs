//! A server that asks the one behind it, or a group of them: what `run` serves on the other transport, and what the other
//! commands are connected to when a target is many servers.

mod behind;
mod front;
mod renewal;
mod upstream;

use std::sync::Arc;

use serde_json::Value;
use tricorn::Server;
use tricorn::client::{ClientOptions, Handlers};

use crate::failure::{Failure, Outcome};
use crate::output::Screen;
use crate::targets::Found;

use behind::{Behind, Facts};
use upstream::Upstreams;

use renewal::Offers;

/// The server and its connections.
pub(crate) struct Bridge {
    pub(crate) server: Server,
    upstreams: Arc<Upstreams>,
    /// Entries of the server behind, where that may be renewed.
    offers: Option<Offers>,
}

impl Bridge {
    /// Asks the server behind what it is, so that one that is not there is said before anybody connects. Needs a runtime.
    pub(crate) async fn new(found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Outcome<Self> {
        let scout = Behind::scout(&found, &unrecorded(&options), screen).await?;
        let bridge = Self::to(scout.facts(&found.name), found, options, screen, most);
        scout.close().await;
        Ok(bridge)
    }

    /// A bridge for one client of this process, which has these handlers: the connection that has asked is the client's.
    pub(crate) async fn for_client(
        found: Found,
        options: ClientOptions,
        screen: &Screen,
        handlers: &Handlers,
    ) -> Outcome<Self> {
        let name = found.name.clone();
        let upstreams = Arc::new(Upstreams::new(found, options, screen.clone(), 1));
        let facts = upstreams.prepare(&Value::Object(handlers.declared().clone())).await?.behind.facts(&name);
        Ok(Self::over(&facts, upstreams))
    }

    /// A bridge to a group for one client that is not known yet. Servers are connected when it asks for the first time, as
    /// they are told then what it can do; until then nothing is known of them.
    pub(crate) fn waiting(found: Found, options: ClientOptions, screen: &Screen) -> Self {
        let facts = Facts::of_group(&found.name);
        let upstreams = Arc::new(Upstreams::new(found, options, screen.clone(), 1));
        Self::over(&facts, upstreams)
    }

    /// Waits until the first connection has failed, for ever if it does not.
    pub(crate) async fn failed(&self) -> Failure {
        self.upstreams.failed().await
    }

    /// A bridge to a server that may be [renewed](Self::renew): it may have tools, resources and prompts later on.
    pub(crate) async fn renewable(found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Outcome<Self> {
        let scout = Behind::scout(&found, &unrecorded(&options), screen).await?;
        let offers = Offers::of(&scout).await;
        let bridge = Self::to(scout.facts(&found.name).with_lists(), found, options, screen, most);
        scout.close().await;
        Ok(Self { offers: Some(offers), ..bridge })
    }

    fn to(facts: Facts, found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Self {
        Self::over(&facts, Arc::new(Upstreams::new(found, options, screen.clone(), most)))
    }

    fn over(facts: &Facts, upstreams: Arc<Upstreams>) -> Self {
        let server = front::server(facts, &upstreams);
        upstreams.serves(&server);
        Self { server, upstreams, offers: None }
    }

    /// Puts another server in the place of the one behind, for all sessions, and tells their clients of lists that differ.
    /// Returns the differences, in words. If it cannot be connected, everything stays as it is.
    pub(crate) async fn renew(&mut self, found: Found) -> Outcome<Vec<String>> {
        let scout = self.upstreams.scout(&found).await?;
        let offers = Offers::of(&scout).await;
        scout.close().await;
        self.upstreams.renew(found).await;
        let before = self.offers.replace(offers.clone()).unwrap_or_default();
        let (kinds, words) = before.differences(&offers);
        kinds.into_iter().for_each(|kind| self.server.list_changed(kind));
        Ok(words)
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.server.close();
        self.upstreams.close().await;
    }
}

/// The options of a connection that is made to look only: it is no part of a recording.
fn unrecorded(options: &ClientOptions) -> ClientOptions {
    let mut options = options.clone();
    options.record = None;
    options
}
