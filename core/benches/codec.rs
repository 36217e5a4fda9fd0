//! Bytes to messages and back: `cargo bench -p tricorn --bench codec`.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tricorn::jsonrpc::{Id, Limits, RawJson, decode, encode_request, encode_result};

fn call(arguments: &str) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{arguments},"_meta":{{"progressToken":"p"}}}}}}"#
    )
    .into()
}

fn decoding(c: &mut Criterion) {
    let limits = Limits::default();
    let text = |length: usize| format!(r#"{{"text":"{}"}}"#, "x".repeat(length));
    let nested = format!("{{\"a\":{}1{}}}", "[".repeat(60), "]".repeat(60));
    let batch = format!("[{}]", vec![String::from_utf8_lossy(&call("{}")); 16].join(","));
    let mut group = c.benchmark_group("decode");
    for (name, frame) in [
        ("call", call(r#"{"a":1,"b":2}"#)),
        ("call of 1 KiB", call(&text(1 << 10))),
        ("call of 64 KiB", call(&text(64 << 10))),
        ("call of 1 MiB", call(&text(1 << 20))),
        ("nested call", call(&nested)),
        ("batch of 16", batch.into()),
        ("refused", Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"method":5}"#)),
    ] {
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(name, |b| b.iter(|| decode(black_box(&frame), &limits)));
    }
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let id = Id::Number(7);
    let params = RawJson::trusted(r#"{"name":"add","arguments":{"a":1,"b":2}}"#);
    let small = RawJson::trusted(r#"{"content":[{"type":"text","text":"3"}],"structuredContent":{"sum":3}}"#);
    let large = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(64 << 10));
    let large = RawJson::trusted(large);
    let mut group = c.benchmark_group("encode");
    group.bench_function("call", |b| b.iter(|| encode_request(black_box(&id), "tools/call", Some(&params))));
    group.bench_function("result", |b| b.iter(|| encode_result(black_box(&id), &small)));
    group.bench_function("result of 64 KiB", |b| b.iter(|| encode_result(black_box(&id), &large)));
    group.finish();
}

criterion_group!(benches, decoding, encoding);
criterion_main!(benches);
