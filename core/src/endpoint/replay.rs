//! A cassette as the other side of a client, in memory.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::memory::Pipe;
use crate::cassette::{Cassette, Player};
use crate::client::{ClientOptions, Closer};
use crate::driver::{Peer, Service, Sink};
use crate::protocol::{Connection, Outbound, Transport};

/// Gives what the client sends to the player, and what that says to the client.
struct Deck {
    player: Mutex<Player>,
    down: Arc<Pipe>,
}

impl Sink for Deck {
    fn send(&self, batch: Vec<Outbound>) {
        for message in batch {
            let said = self.player.lock().unwrap_or_else(PoisonError::into_inner).hear(&message.frame);
            if !said.is_empty() {
                self.down.push(said);
            }
        }
    }

    fn close(&self) {}
}

struct Stop(Weak<Peer>);

impl Closer for Stop {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(peer) = self.0.upgrade() {
            peer.close("the client was closed");
        }
        Box::pin(std::future::ready(()))
    }
}

/// Joins a peer to a cassette.
pub(super) fn play(
    cassette: &Cassette,
    is_strict: bool,
    options: &ClientOptions,
    service: Arc<dyn Service>,
) -> (Arc<Peer>, Arc<dyn Closer>) {
    let down = Pipe::new();
    let deck = Arc::new(Deck { player: Mutex::new(Player::new(cassette, is_strict)), down: down.clone() });
    let connection = Connection::new(Arc::new(options.facts()), Arc::new(Transport::new("memory")));
    let peer = Peer::new(connection, options.limits(), service, |_| deck);
    peer.tap_with(options.tapping(Some("memory")));
    down.connect(&peer);
    let closer = Arc::new(Stop(Arc::downgrade(&peer)));
    (peer, closer)
}
