//! The protocol work every floor shares: parse with serde_json into borrowed structs, do the
//! tool, write the answer by hand. No dispatch tables, no schema validation, no allocation that
//! can be avoided. Not an SDK and not conforming beyond what the benchmark asks.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;

pub struct Core {
    list: Vec<u8>,
}

pub enum Act {
    /// the answer is in `out`
    Reply,
    /// notification
    Silent,
    /// the answer is in `out`, to be sent after so many milliseconds
    After(u64),
}

#[derive(Deserialize)]
struct Req<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    _meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    pv: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct AddArgs {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct EchoArgs<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SleepArgs {
    ms: u64,
}

const MODERN: &[u8] =
    br#","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"0"}}"#;
const CACHE: &[u8] = br#","ttlMs":0,"cacheScope":"private""#;

impl Core {
    pub fn new(tools: usize) -> Core {
        let mut l = Vec::new();
        l.extend_from_slice(br#""tools":[{"name":"add","description":"Add two integers.","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}},{"name":"echo","description":"Return the text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"sleep_ms","description":"Sleep for some milliseconds.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}}"#);
        for i in 3..tools {
            let _ = write!(
                l,
                r#",{{"name":"tool_{i:03}","description":"Filler tool number {i}: looks a record up by key and returns at most limit rows.","inputSchema":{{"type":"object","properties":{{"key":{{"type":"string","description":"Record key"}},"limit":{{"type":"integer","description":"Maximum number of rows","default":10}},"verbose":{{"type":"boolean","description":"Return all columns","default":false}}}},"required":["key"]}}}}"#
            );
        }
        l.push(b']');
        Core { list: l }
    }

    pub fn handle(&self, msg: &[u8], out: &mut Vec<u8>) -> Act {
        let req: Req = match serde_json::from_slice(msg) {
            Ok(r) => r,
            Err(_) => {
                out.extend_from_slice(
                    br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
                );
                return Act::Reply;
            }
        };
        let Some(id) = req.id else { return Act::Silent };
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        let modern =
            req.params.as_ref().and_then(|p| p._meta.as_ref()).and_then(|m| m.pv.as_deref()) == Some("2026-07-28");
        let mut after = 0;
        let err = |out: &mut Vec<u8>, code: i32, m: &str| {
            let _ = write!(out, r#","error":{{"code":{code},"message":"{m}"}}}}"#);
        };
        match req.method.as_ref() {
            "tools/call" => {
                let p = req.params.as_ref();
                let args = p.and_then(|p| p.arguments).map(|a| a.get()).unwrap_or("{}");
                match p.and_then(|p| p.name.as_deref()) {
                    Some("add") => {
                        let Ok(x) = serde_json::from_str::<AddArgs>(args) else {
                            err(out, -32602, "bad arguments");
                            return Act::Reply;
                        };
                        let mut b = itoa::Buffer::new();
                        let s = b.format(x.a + x.b);
                        out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"{\"sum\":"#);
                        out.extend_from_slice(s.as_bytes());
                        out.extend_from_slice(br#"}"}],"structuredContent":{"sum":"#);
                        out.extend_from_slice(s.as_bytes());
                        out.push(b'}');
                    }
                    Some("echo") => {
                        let Ok(x) = serde_json::from_str::<EchoArgs>(args) else {
                            err(out, -32602, "bad arguments");
                            return Act::Reply;
                        };
                        out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
                        let _ = serde_json::to_writer(&mut *out, x.text.as_ref());
                        out.extend_from_slice(b"}]");
                    }
                    Some("sleep_ms") => {
                        let Ok(x) = serde_json::from_str::<SleepArgs>(args) else {
                            err(out, -32602, "bad arguments");
                            return Act::Reply;
                        };
                        after = x.ms;
                        let _ = write!(out, r#","result":{{"content":[{{"type":"text","text":"slept {}"}}]"#, x.ms);
                    }
                    _ => {
                        err(out, -32602, "unknown tool");
                        return Act::Reply;
                    }
                }
            }
            "tools/list" => {
                out.extend_from_slice(br#","result":{"#);
                out.extend_from_slice(&self.list);
                if modern {
                    out.extend_from_slice(CACHE);
                }
            }
            "initialize" => out.extend_from_slice(br#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"floor","version":"0"}"#),
            "server/discover" => {
                out.extend_from_slice(br#","result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}"#);
                out.extend_from_slice(CACHE);
            }
            "resources/read" => {
                out.extend_from_slice(br#","result":{"contents":[{"uri":"bench://hello","mimeType":"text/plain","text":"hello from bench"}]"#);
                if modern {
                    out.extend_from_slice(CACHE);
                }
            }
            "resources/list" => out.extend_from_slice(br#","result":{"resources":[{"uri":"bench://hello","name":"hello"}]"#),
            "prompts/get" => out.extend_from_slice(br#","result":{"messages":[{"role":"user","content":{"type":"text","text":"Say hello to Ada."}}]"#),
            "prompts/list" => out.extend_from_slice(br#","result":{"prompts":[{"name":"greet","arguments":[{"name":"name","required":true}]}]"#),
            "ping" => out.extend_from_slice(br#","result":{"#),
            _ => {
                err(out, -32601, "method not found");
                return Act::Reply;
            }
        }
        if modern {
            out.extend_from_slice(MODERN);
        }
        out.extend_from_slice(b"}}");
        if after > 0 { Act::After(after) } else { Act::Reply }
    }
}
