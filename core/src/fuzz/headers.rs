//! Headers of requests, from clients and from the proxies on their way.

use std::net::{IpAddr, SocketAddr};

use http::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use super::{SLOWEST, Target, mutate, run, shown, sort};
use crate::endpoint::http::client::encoding::encode;
use crate::endpoint::http::server::forwarded::Proxies;
use crate::endpoint::http::server::headers::{Accepts, is_json, mirrors, mirrors_arguments};
use crate::jsonrpc::RawJson;

const WORDS: &[&str] = &[
    "accept: ",
    "application/json, text/event-stream",
    "text/event-stream",
    "application/json",
    "*/*",
    "text/*",
    ";q=0",
    ";q=0.0001",
    ";q=NaN",
    ";charset=utf-8",
    "content-type: ",
    "mcp-name: ",
    "mcp-param-a: ",
    "mcp-param-n: ",
    "=?base64?",
    "?=",
    "=?base64?ZWNobw==?=",
    "{\"a\":\"x\",\"n\":42}",
    "1e400",
    "42.0",
    "NaN",
    ",",
    ";",
    "=",
    "\"",
    "é",
    "\t",
    "\n",
];

/// The headers that lines are, as far as they are any.
fn map(input: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n').take(64) {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(line[..at].trim_ascii());
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

#[test]
fn headers() {
    run(&Target { name: "headers", property: carried, mutate: mutate::lines, words: WORDS, slowest: SLOWEST });
}

/// A header mirrors what it was made of, and nothing else.
fn carried(input: &[u8]) -> u64 {
    let headers = map(input);
    let accepts = Accepts::of(&headers);
    if !headers.contains_key(ACCEPT) {
        assert!(accepts.json && accepts.events, "{}", shown(input));
    }
    let any = headers.get_all(ACCEPT).iter().any(|value| value.as_bytes() == b"*/*");
    assert!(!any || (accepts.json && accepts.events), "{}", shown(input));
    let json = is_json(&headers);
    // The server reads any text as the client has written it.
    let name = HeaderName::from_static("mcp-name");
    let text = String::from_utf8_lossy(input);
    let mut own = HeaderMap::new();
    own.insert(name.clone(), HeaderValue::from_str(&encode(&text)).expect("an encoded text fits into a header"));
    assert_eq!(mirrors(&own, &name, "Mcp-Name", Some(&*text)), Ok(()), "{}", shown(input));
    let other = format!("{text}.");
    assert!(mirrors(&own, &name, "Mcp-Name", Some(other.as_str())).is_err(), "{}", shown(input));
    assert!(mirrors(&own, &name, "Mcp-Name", None).is_err());
    let mirrored = mirrors(&headers, &name, "Mcp-Name", Some("echo"));
    bounded(&mirrored);
    // The last line may be arguments.
    let schema = json!({"properties": {
        "a": {"type": "string", "x-mcp-header": "A"},
        "n": {"type": "integer", "x-mcp-header": "N"},
        "inner": {"properties": {"b": {"type": "boolean", "x-mcp-header": "B"}}}}});
    let marks = crate::model::mirror::mirrors(&schema).expect("valid marks");
    let last = text.rsplit('\n').next().unwrap_or_default();
    let arguments = RawJson::parse(last.to_owned()).ok();
    let compared = mirrors_arguments(&headers, &marks, arguments.as_ref());
    bounded(&compared);
    let said = |checked: &Result<(), String>| checked.clone().err().unwrap_or_default();
    sort(&format!("{} {} {json} {} {}", accepts.json, accepts.events, said(&mirrored), said(&compared)))
}

fn bounded(checked: &Result<(), String>) {
    if let Err(why) = checked {
        assert!((1..=4000).contains(&why.len()) && why.contains("Mcp-"), "{}", shown(why.as_bytes()));
    }
}

const PROXIES: &[&str] = &[
    "x-forwarded-for: ",
    "forwarded: for=",
    "for=\"[2001:db8::1]:4711\"",
    "192.0.2.9",
    "192.0.2.9:80",
    "10.0.0.2",
    "::ffff:10.0.0.2",
    "2001:db8::1",
    "unknown",
    "_hidden",
    ";proto=https",
    ";by=203.0.113.43",
    ", ",
    ",",
    "\"",
    "[",
    "]",
    "\n",
    "1.1.1.1, ",
];

#[test]
fn proxies() {
    run(&Target { name: "proxies", property: forwarded, mutate: mutate::lines, words: PROXIES, slowest: SLOWEST });
}

/// Checks that only a trusted proxy names the origin of a request, and names it in so many words.
fn forwarded(input: &[u8]) -> u64 {
    let headers = map(input);
    let trusted = Proxies::parse(&["10.0.0.0/8".to_owned(), "fd00::/8".to_owned()]).expect("networks");
    let stranger: IpAddr = "203.0.113.1".parse().expect("an address");
    let proxy: IpAddr = "10.0.0.1".parse().expect("an address");
    assert_eq!(Proxies::default().client(proxy, &headers), proxy, "{}", shown(input));
    assert_eq!(trusted.client(stranger, &headers), stranger, "{}", shown(input));
    let client = trusted.client(proxy, &headers);
    if client != proxy {
        let read = |text: &str| {
            let text = text.trim().trim_matches('"');
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            let socket = text.parse::<SocketAddr>().map(|socket| socket.ip());
            bare.parse::<IpAddr>().or(socket).ok().map(|address| address.to_canonical())
        };
        let values = headers.values().filter_map(|value| value.to_str().ok());
        let is_named = values.flat_map(|value| value.split([',', ';', '='])).any(|part| read(part) == Some(client));
        assert!(is_named, "{client} is not in {}", shown(input));
    }
    let names: Vec<String> = String::from_utf8_lossy(input).lines().take(8).map(str::to_owned).collect();
    let own = Proxies::parse(&names);
    if let Ok(own) = &own {
        own.client(stranger, &headers);
    }
    sort(&format!("{} {} {}", client == proxy, client.is_ipv4(), own.is_ok()))
}
