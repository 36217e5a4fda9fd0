//! A server that asks the one behind it, or a group of them: what `run` serves on the other transport, and what the other
//! commands are connected to when a target is many servers.

mod behind;
mod empty;
mod front;
mod order;
mod renewal;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tricorn::Server;
use tricorn::client::{ClientOptions, Handlers};

use crate::failure::{Failure, Outcome};
use crate::output::Screen;
use crate::targets::Found;

use behind::{Behind, Facts};
pub(crate) use empty::Lists;
use front::Spoken;
use renewal::Offers;
use upstream::Upstreams;

/// Time that a client waits for its first answer until the servers of a group are connected. Most clients wait for half a
/// minute or more, but Codex gives a server up after 10 s.
const PATIENCE: Duration = Duration::from_secs(6);

/// The server and its connections.
pub(crate) struct Bridge {
    pub(crate) server: Server,
    upstreams: Arc<Upstreams>,
    /// Entries of the server behind, where that may be renewed.
    offers: Option<Offers>,
    /// The connection that is made before the client asks.
    preparing: Option<JoinHandle<()>>,
    /// Lists that are not declared.
    missing: Lists,
}

impl Bridge {
    /// Asks the server behind what it is, so that one that is not there is said before anybody connects. Needs a runtime.
    pub(crate) async fn new(found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Outcome<Self> {
        let (spoken, options) = Spoken::of(&found, options);
        let scout = Behind::scout(&found, &unrecorded(&options), screen).await?;
        let facts = scout.facts(&found.name);
        let upstreams = Upstreams::new(found, options, screen.clone(), most);
        let bridge = Self::over(&facts, &spoken, Arc::new(upstreams));
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
        let (spoken, options) = Spoken::of(&found, options);
        let upstreams = Arc::new(Upstreams::new(found, options, screen.clone(), 1));
        let facts = upstreams.prepare(&Value::Object(handlers.declared().clone()), true).await?.behind.facts(&name);
        Ok(Self::over(&facts, &spoken, upstreams))
    }

    /// A bridge to a group for the one client that has these capabilities. It declares what the servers have that are
    /// connected in time; after that it declares all lists, and whoever asks waits.
    pub(crate) async fn for_group(
        found: Found,
        options: ClientOptions,
        screen: &Screen,
        declared: Value,
    ) -> Outcome<Self> {
        let name = found.name.clone();
        let (spoken, options) = Spoken::of(&found, options);
        let upstreams = Arc::new(Upstreams::new(found, options, screen.clone(), 1));
        let connecting = upstreams.clone();
        let mut preparing = tokio::spawn(async move {
            if let Err(failure) = connecting.prepare(&declared, false).await {
                connecting.fail(failure);
            }
        });
        let facts = tokio::select! {
            biased;
            failure = upstreams.failed() => return Err(failure),
            _ = timeout(PATIENCE, &mut preparing) => upstreams.prepared(&name),
        };
        let facts = facts.unwrap_or_else(|| Facts::of_group(&name));
        let missing = Lists::missing(&facts);
        // Requests for tools stand in the place of those for missing lists.
        let facts = if cfg!(unix) && !missing.is_empty() { facts.with_tools() } else { facts };
        Ok(Self { preparing: Some(preparing), missing, ..Self::over(&facts, &spoken, upstreams) })
    }

    /// Takes the lists that the server does not declare, and would refuse.
    pub(crate) fn missing(&mut self) -> Lists {
        std::mem::take(&mut self.missing)
    }

    /// Waits until the first connection has failed, for ever if it does not.
    pub(crate) async fn failed(&self) -> Failure {
        self.upstreams.failed().await
    }

    /// A bridge to a server that may be [renewed](Self::renew): it may have tools, resources and prompts later on.
    pub(crate) async fn renewable(found: Found, options: ClientOptions, screen: &Screen, most: usize) -> Outcome<Self> {
        let (spoken, options) = Spoken::of(&found, options);
        let scout = Behind::scout(&found, &unrecorded(&options), screen).await?;
        let offers = Offers::of(&scout).await;
        let facts = scout.facts(&found.name).with_lists();
        let upstreams = Upstreams::new(found, options, screen.clone(), most);
        let bridge = Self::over(&facts, &spoken, Arc::new(upstreams));
        scout.close().await;
        Ok(Self { offers: Some(offers), ..bridge })
    }

    fn over(facts: &Facts, spoken: &Spoken, upstreams: Arc<Upstreams>) -> Self {
        let server = front::server(facts, spoken, &upstreams);
        upstreams.serves(&server);
        Self { server, upstreams, offers: None, preparing: None, missing: Lists::missing(facts) }
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
        if let Some(preparing) = &self.preparing {
            preparing.abort();
        }
        self.upstreams.close().await;
    }
}

/// The options of a connection that is made to look only: it is no part of a recording.
fn unrecorded(options: &ClientOptions) -> ClientOptions {
    options.clone().unrecorded()
}
