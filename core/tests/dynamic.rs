//! What is taken out of a server while it runs.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use tricorn::Reply;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::Kind;

/// Calls back when it goes.
struct Guard(Server, Arc<Mutex<usize>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.remove_tool("other");
        self.0.list_changed(Kind::Tool);
        *self.1.lock().unwrap() += 1;
    }
}

struct Held(Guard);

impl tricorn::Handler for Held {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.value(RawJson::from_value(&Arc::strong_count(&self.0.1)));
    }
}

#[test]
fn it_may_use_the_server_when_it_is_dropped() {
    let (server, gone) = (Server::new("s"), Arc::new(Mutex::new(0)));
    let held = || Arc::new(Held(Guard(server.clone(), gone.clone())));
    server.add_tool(Tool::new("t", ""), held()).unwrap();
    server.add_tool(Tool::new("t", ""), held()).unwrap_err();
    assert!(server.remove_tool("t"));
    for _ in 0..2 {
        server.set_source(Kind::Tool, Some(held()), None);
        server.set_completion(held());
        server.set_subscription(held());
    }
    assert_eq!(*gone.lock().unwrap(), 5);
}
