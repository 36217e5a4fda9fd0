//! The protocol without a socket: `cargo bench -p tricorn --bench connection`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tricorn::jsonrpc::{Decoded, Limits, Message, RawJson, decode};
use tricorn::model::Capabilities;
use tricorn::protocol::revision::Revision;
use tricorn::protocol::{
    Action, Call, CallId, Connection, Facts, Input, Invocation, Payload, Role, Structured, Transport,
};

const NOW: Duration = Duration::from_secs(1);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#;
const MODERN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}"#;

fn message(text: &str) -> Message {
    match decode(&Bytes::copy_from_slice(text.as_bytes()), &Limits::default()) {
        Ok(Decoded::One(message)) => message,
        other => panic!("not a message: {other:?}"),
    }
}

fn facts(role: Role) -> Arc<Facts> {
    let capabilities = if role == Role::Server { r#"{"tools":{}}"# } else { "{}" };
    Arc::new(Facts {
        role,
        info: RawJson::trusted(r#"{"name":"n","version":"1"}"#),
        capabilities: Capabilities::new(RawJson::trusted(capabilities)),
        instructions: None,
        discovery: tricorn::model::CacheHints::new(),
        revisions: Revision::ALL.to_vec(),
        max_in_flight: 256,
        methods: Vec::new(),
        passes_on: false,
        max_listeners: 64,
        max_queued_notifications: 256,
        keep_alive: None,
    })
}

fn connection(role: Role) -> Connection {
    Connection::new(facts(role), Arc::new(Transport::new("stdio")))
}

fn legacy() -> Connection {
    let mut connection = connection(Role::Server);
    for text in [INITIALIZE, INITIALIZED] {
        connection.handle(NOW, Input::Received(message(text)));
    }
    connection
}

fn dispatched(actions: Vec<Action>) -> Box<Call> {
    let call = actions.into_iter().find_map(|a| if let Action::Dispatch(call) = a { Some(call) } else { None });
    call.expect("the call is dispatched")
}

/// A request from its message to its answer's bytes.
fn answer(connection: &mut Connection, message: Message) -> usize {
    let call = dispatched(connection.handle(NOW, Input::Received(message)));
    let outcome = Payload::Value { value: RawJson::trusted(r#"{"sum":3}"#), structured: Structured::Plain };
    connection.handle(NOW, Input::Completed(call.id, Ok(outcome))).len()
}

fn serving(c: &mut Criterion) {
    let mut group = c.benchmark_group("connection");
    for (name, text) in [("legacy call", CALL), ("modern call", MODERN)] {
        let mut connection = legacy();
        if text == MODERN {
            connection = self::connection(Role::Server);
        }
        let message = message(text);
        group.bench_function(name, |b| {
            b.iter_batched(|| message.clone(), |m| answer(&mut connection, black_box(m)), BatchSize::SmallInput);
        });
    }
    let mut busy = legacy();
    let waiting: Vec<_> = (100..300)
        .map(|id| {
            let text = CALL.replace("\"id\":1,", &format!("\"id\":{id},"));
            dispatched(busy.handle(NOW, Input::Received(message(&text)))).id
        })
        .collect();
    let next = message(CALL);
    group.bench_function("legacy call beside 200 in flight", |b| {
        b.iter_batched(|| next.clone(), |m| answer(&mut busy, black_box(m)), BatchSize::SmallInput);
    });
    assert_eq!(busy.in_flight(), waiting.len());
    group.bench_function("handshake", |b| b.iter(legacy));
    group.finish();
}

fn asking(c: &mut Criterion) {
    let mut connection = connection(Role::Client);
    let mut next = 0;
    c.bench_function("connection/cancelled call of a client", |b| {
        b.iter(|| {
            next += 1;
            let call = Invocation::new(CallId::new(next), "ping", None);
            let sent = connection.handle(NOW, Input::Call(call)).len();
            sent + connection.handle(NOW, Input::Cancel(CallId::new(next), None)).len()
        });
    });
}

criterion_group!(benches, serving, asking);
criterion_main!(benches);
