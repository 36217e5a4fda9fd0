//! Tests of the notifications that a client hears.

use std::sync::{Arc, Mutex};

use tricorn::Events;
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::jsonrpc::RawJson;

use super::server::{PATIENCE, Server};

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) notifications: Mutex<Vec<String>>,
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Events for Heard {
    fn notification(&self, method: &str, _params: Option<&RawJson>) {
        self.notifications.lock().unwrap().push(method.to_owned());
    }

    fn warning(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

/// A client that tells what it hears.
pub(crate) async fn listening(server: &Server, heard: &Arc<Heard>) -> Client {
    let target = Target::from_text(&server.url()).unwrap();
    let (options, handlers) = (ClientOptions::default(), Handlers::new().events(heard.clone()));
    let connecting = Client::connect_with(&target, &options, &handlers);
    tokio::time::timeout(PATIENCE, connecting).await.expect("in time").unwrap()
}
