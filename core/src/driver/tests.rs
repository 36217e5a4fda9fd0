use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;

use super::{Peer, Service, Sink};
use crate::call::{Context, Handler, Link, Reply};
use crate::error::Error;
use crate::model::Tool;
use crate::protocol::{Call, Connection, Outbound, Transport};
use crate::server::Server;

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, line: &str) {
        self.0.lock().expect("lock").push(line.to_owned());
    }
}

impl Sink for Log {
    fn send(&self, batch: Vec<Outbound>) {
        batch.iter().for_each(|outbound| self.add(&String::from_utf8_lossy(&outbound.frame)));
    }

    fn close(&self) {
        self.add("closed");
    }
}

/// Cancels each request before it is started.
#[derive(Default)]
struct Late(OnceLock<bool>);

struct Nothing;

impl Handler for Nothing {
    fn call(&self, _: Context, _: crate::jsonrpc::RawJson, _: Reply) {}
}

impl Service for Late {
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>) {
        peer.receive(&Bytes::from(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"late"}}"#,
        ));
        let context = Context::new(call.id, call.context, peer.clone(), Arc::new(Nothing));
        let _ = self.0.set(peer.started(&context));
    }

    fn closed(&self, _peer: &Arc<Peer>, _reason: &Error, _relaunch: bool) {}
}

/// A client's peer with a legacy connection that is open.
#[cfg(feature = "runtime")]
fn client_peer() -> Arc<Peer> {
    let facts = crate::protocol::Facts {
        role: crate::protocol::Role::Client,
        info: crate::jsonrpc::RawJson::trusted(r#"{"name":"c","version":"1"}"#),
        capabilities: crate::model::Capabilities::default(),
        instructions: None,
        discovery: crate::model::CacheHints::new(),
        revisions: crate::protocol::revision::Revision::ALL.to_vec(),
        max_in_flight: 1000,
        methods: Vec::new(),
        passes_on: false,
        max_listeners: 64,
        max_queued_notifications: 256,
        keep_alive: None,
    };
    let connection = Connection::new(Arc::new(facts), Arc::new(Transport::new("test")));
    let limits = crate::jsonrpc::Limits::default();
    let peer = Peer::new(connection, limits, Arc::new(Late::default()), |_| Arc::new(Log::default()));
    let revision = crate::protocol::revision::Revision::NEWEST_LEGACY;
    peer.open(Some(revision), std::time::Duration::ZERO, None, None);
    peer.receive(&Bytes::from(
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
    ));
    peer
}

#[cfg(feature = "runtime")]
#[tokio::test]
async fn a_connection_has_one_timer() {
    use crate::protocol::Invocation;
    use std::time::Duration;
    let peer = client_peer();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let call = |timeout: Duration| {
        let waiter = super::Waiter { done: Box::new(|_| {}), progress: None, lasting: false, told: None };
        let make = |call| {
            let mut invocation = Invocation::new(call, "tools/list", None);
            invocation.timeout = Some(timeout);
            invocation
        };
        peer.call(make, waiter)
    };
    let _long = call(Duration::from_secs(600));
    for _ in 0..20 {
        let _short = call(Duration::from_millis(2));
        while peer.awaited() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A timer that was replaced ends as soon as the runtime looks at it.
        tokio::task::yield_now().await;
        assert!(tasks() <= 1, "{} tasks", tasks());
    }
    assert_eq!(peer.awaited(), 1, "the short ones are over, the long one waits");
}

fn peer(service: Arc<dyn Service>) -> (Arc<Peer>, Arc<Log>) {
    let server = Server::new("s");
    let tool = Tool::parse(r#"{"name":"t","inputSchema":{"type":"object"}}"#).expect("a tool");
    server.add_tool(tool, Arc::new(Nothing)).expect("added");
    let log = Arc::new(Log::default());
    let connection = Connection::new(server.facts(), Arc::new(Transport::new("test")));
    let sink = log.clone();
    (Peer::new(connection, server.limits(), service, |_| sink), log)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

#[test]
fn what_was_answered_before_the_end_is_sent() {
    let (peer, log) = peer(Arc::new(Late::default()));
    peer.cork();
    peer.receive(&Bytes::from(INITIALIZE));
    assert!(log.0.lock().expect("lock").is_empty());
    peer.close("the end");
    peer.close("the end");
    peer.uncork();
    let log = log.0.lock().expect("lock");
    assert!(log.len() == 2 && log[0].contains("serverInfo") && log[1] == "closed", "{log:?}");
}

#[test]
fn a_request_that_was_cancelled_on_its_way_does_not_start() {
    let service = Arc::new(Late::default());
    let (peer, _) = peer(service.clone());
    peer.receive(&Bytes::from(INITIALIZE));
    peer.receive(&Bytes::from(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    peer.receive(&Bytes::from(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#));
    assert_eq!(service.0.get(), Some(&false));
    assert_eq!(peer.in_flight(), 0);
}

/// Blocking work waits its turn; abandoned work is dropped, and a panic is nobody's end.
#[cfg(all(feature = "runtime", feature = "files"))]
#[test]
fn a_few_jobs_block_at_once() {
    use crate::protocol::{CallId, RequestContext, revision::Revision};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, mpsc};
    use std::time::Duration;
    const PATIENCE: Duration = Duration::from_secs(20);
    let (peer, _) = peer(Arc::new(Late::default()));
    let context = || {
        let facts = RequestContext::of_own(Revision::NEWEST_LEGACY, "resources/read", Arc::default(), "test");
        Context::new(CallId(0), facts, peer.clone(), Arc::new(Nothing))
    };
    let jobs = Arc::new(crate::server::Jobs::default());
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (started, starts) = mpsc::channel();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for number in 0..20 {
        let (gate, started, running, most) = (gate.clone(), started.clone(), running.clone(), most.clone());
        jobs.run(&context(), move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            started.send(number).expect("heard");
            let open = gate.0.lock().expect("lock");
            drop(gate.1.wait_timeout_while(open, PATIENCE, |open| !*open).expect("lock"));
            running.fetch_sub(1, Ordering::SeqCst);
            assert_ne!(number, 3, "a panic");
        });
    }
    for _ in 0..8 {
        starts.recv_timeout(PATIENCE).expect("started");
    }
    let held = Arc::new(());
    for _ in 0..1000 {
        let (context, held) = (context(), held.clone());
        context.cancel(None);
        jobs.run(&context, move || panic!("{held:?} is not wanted"));
    }
    assert!(Arc::strong_count(&held) < 200, "{} of the cancelled ones are kept", Arc::strong_count(&held));
    *gate.0.lock().expect("lock") = true;
    gate.1.notify_all();
    for _ in 8..20 {
        starts.recv_timeout(PATIENCE).expect("started");
    }
    let (last, end) = mpsc::channel();
    jobs.run(&context(), move || last.send(()).expect("heard"));
    end.recv_timeout(PATIENCE).expect("there is room again");
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

/// A page waits its turn like all that file systems are asked for, and nothing else waits for it.
#[cfg(all(feature = "runtime", feature = "files"))]
#[tokio::test]
async fn a_page_with_files_is_made_where_it_may_block() {
    use std::collections::BTreeMap;
    use std::sync::Condvar;
    use std::time::Duration;

    use serde_json::{Value, json};

    use crate::client::{Client, ClientOptions};
    use crate::server::files::File;

    const PATIENCE: Duration = Duration::from_secs(20);
    let path = std::env::temp_dir().join(format!("tricorn-page-{}", std::process::id()));
    std::fs::write(&path, "12345").expect("written");
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let server = Server::new("s");
    let (jobs, waits) = (server.shared.router.common.jobs.clone(), gate.clone());
    let server = server.tool("block", "", move |_: BTreeMap<String, Value>, cx: Context| {
        let gate = waits.clone();
        jobs.run(&cx, move || {
            let open = gate.0.lock().expect("lock");
            drop(gate.1.wait_timeout_while(open, PATIENCE, |open| !*open).expect("lock"));
        });
        async { Ok("blocked") }
    });
    server.add_file(File::new(path.clone(), "docs://a").expect("a file")).expect("added");
    let client = Client::in_memory(&server, &ClientOptions::default()).await.expect("connected");
    for _ in 0..8 {
        client.call_tool("block", json!({})).await.expect("a place");
    }
    let list = client.list_resources();
    let others = client.list_tools();
    tokio::pin!(list);
    tokio::select! {
        biased;
        listed = &mut list => panic!("not at its turn: {listed:?}"),
        tools = others => assert_eq!(tools.expect("tools").len(), 1),
    }
    *gate.0.lock().expect("lock") = true;
    gate.1.notify_all();
    let listed = tokio::time::timeout(PATIENCE, list).await.expect("in time").expect("listed");
    assert_eq!(listed[0]["size"], 5);
    std::fs::remove_file(path).expect("removed");
}
