//! What is asked and what counts as a right answer.

use crate::args::Proto;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Add,
    Echo(usize),
    Sleep(u64),
    List,
    Read,
    ReadTemplate,
    Prompt,
    Sample,
    Elicit,
    Ping,
}

impl Kind {
    /// Whether the server asks us in the middle of every call.
    pub fn is_asked(self) -> bool {
        matches!(self, Kind::Sample | Kind::Elicit)
    }

    pub fn parse(s: &str) -> Option<Kind> {
        Some(match s {
            "call-add" | "soak" => Kind::Add,
            "echo-1k" => Kind::Echo(1 << 10),
            "echo-64k" => Kind::Echo(64 << 10),
            "echo-1m" => Kind::Echo(1 << 20),
            "list" => Kind::List,
            "read" => Kind::Read,
            "read-template" => Kind::ReadTemplate,
            "prompt" => Kind::Prompt,
            "sample" => Kind::Sample,
            "elicit" => Kind::Elicit,
            "ping" => Kind::Ping,
            _ => {
                if let Some(x) = s.strip_prefix("sleep-") {
                    Kind::Sleep(x.parse().ok()?)
                } else if let Some(x) = s.strip_prefix("echo-") {
                    Kind::Echo(x.parse().ok()?)
                } else {
                    return None;
                }
            }
        })
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcpbench","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

pub struct Gen {
    pub kind: Kind,
    pub proto: Proto,
    tools: usize,
    /// Text of an echo call, first 8 bytes replaced by the request number.
    payload: String,
    /// The same as the inside of a JSON string literal.
    payload_esc: Vec<u8>,
}

/// Text like what tools return: mostly ASCII, some quotes, line breaks and non-ASCII.
/// Exactly `len` bytes of UTF-8.
fn make_payload(len: usize) -> String {
    let unit = "The quick brown fox jumps over the lazy dog; \"quoted\" text, caf\u{e9} cr\u{e8}me.\n";
    let mut s = String::with_capacity(len + unit.len());
    s.push_str("00000000");
    while s.len() + unit.len() <= len {
        s.push_str(unit);
    }
    while s.len() < len {
        s.push('x');
    }
    s
}

impl Gen {
    pub fn new(kind: Kind, proto: Proto, tools: usize) -> Gen {
        let payload = match kind {
            Kind::Echo(len) => make_payload(len.max(8)),
            _ => String::new(),
        };
        let esc = serde_json::to_string(&payload).unwrap();
        let payload_esc = esc.as_bytes()[1..esc.len() - 1].to_vec();
        Gen { kind, proto, tools, payload, payload_esc }
    }

    /// How a session begins: with what we can be asked, where we are.
    pub fn initialize(&self) -> &'static str {
        if self.kind.is_asked() { INITIALIZE_ASKED } else { INITIALIZE }
    }

    pub fn method(&self) -> &'static str {
        match self.kind {
            Kind::Add | Kind::Echo(_) | Kind::Sleep(_) | Kind::Sample | Kind::Elicit => "tools/call",
            Kind::List => "tools/list",
            Kind::Read | Kind::ReadTemplate => "resources/read",
            Kind::Prompt => "prompts/get",
            Kind::Ping => "ping",
        }
    }

    /// `Mcp-Name` header of the stateless revision.
    pub fn name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Add => Some("add"),
            Kind::Echo(_) => Some("echo"),
            Kind::Sleep(_) => Some("sleep_ms"),
            Kind::Read => Some("bench://hello"),
            Kind::ReadTemplate => Some("bench://item/7"),
            Kind::Prompt => Some("greet"),
            Kind::Sample => Some("ask_model"),
            Kind::Elicit => Some("ask_user"),
            Kind::List | Kind::Ping => None,
        }
    }

    fn add_args(id: u64) -> (i64, i64) {
        ((id % 1_000_003) as i64, 777 - (id * 31 % 977) as i64)
    }

    pub fn build(&self, id: u64, out: &mut Vec<u8>) {
        let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"{}""#, self.method());
        let meta = match self.proto {
            Proto::Stateless => META,
            Proto::Handshake => "",
        };
        let sep = if meta.is_empty() { "" } else { "," };
        match self.kind {
            Kind::Add => {
                let (a, b) = Self::add_args(id);
                let _ = write!(out, r#","params":{{"name":"add","arguments":{{"a":{a},"b":{b}}}{sep}{meta}}}}}"#);
            }
            Kind::Echo(_) => {
                out.extend_from_slice(br#","params":{"name":"echo","arguments":{"text":""#);
                let _ = write!(out, "{:08}", id % 100_000_000);
                out.extend_from_slice(&self.payload_esc[8..]);
                let _ = write!(out, r#""}}{sep}{meta}}}}}"#);
            }
            Kind::Sleep(ms) => {
                let _ = write!(out, r#","params":{{"name":"sleep_ms","arguments":{{"ms":{ms}}}{sep}{meta}}}}}"#);
            }
            Kind::Read | Kind::ReadTemplate => {
                let uri = self.name().unwrap_or_default();
                let _ = write!(out, r#","params":{{"uri":"{uri}"{sep}{meta}}}}}"#);
            }
            Kind::Sample | Kind::Elicit => {
                let name = self.name().unwrap_or_default();
                let _ = write!(out, r#","params":{{"name":"{name}","arguments":{{"question":"q{id}"}}{sep}{meta}}}}}"#);
            }
            Kind::Prompt => {
                let _ = write!(out, r#","params":{{"name":"greet","arguments":{{"name":"Ada"}}{sep}{meta}}}}}"#);
            }
            Kind::List | Kind::Ping => {
                if meta.is_empty() {
                    out.extend_from_slice(br#","params":{}}"#);
                } else {
                    let _ = write!(out, r#","params":{{{meta}}}}}"#);
                }
            }
        }
    }

    pub fn validate(&self, id: u64, env: &Envelope) -> Result<(), String> {
        if let Some(e) = env.error {
            return Err(format!("error response: {}", clip(e.get())));
        }
        let Some(raw) = env.result else {
            return Err("neither result nor error".into());
        };
        let bad = |e: serde_json::Error| format!("result does not parse: {e}: {}", clip(raw.get()));
        let check_type = |t: &Option<Cow<str>>| -> Result<(), String> {
            if self.proto == Proto::Stateless && t.as_deref() != Some("complete") {
                return Err(format!("resultType is {t:?}, 2026-07-28 requires \"complete\""));
            }
            Ok(())
        };
        match self.kind {
            Kind::Add => {
                let r: CallAdd = serde_json::from_str(raw.get()).map_err(bad)?;
                if r.is_error == Some(true) {
                    return Err(format!("isError: {}", clip(raw.get())));
                }
                check_type(&r.result_type)?;
                let (a, b) = Self::add_args(id);
                match r.structured {
                    Some(s) if s.sum == a + b => Ok(()),
                    Some(s) => Err(format!("sum is {}, not {}", s.sum, a + b)),
                    None => Err(format!("no structuredContent: {}", clip(raw.get()))),
                }
            }
            Kind::Echo(_) => {
                let r: CallText = serde_json::from_str(raw.get()).map_err(bad)?;
                if r.is_error == Some(true) {
                    return Err(format!("isError: {}", clip(raw.get())));
                }
                check_type(&r.result_type)?;
                let t = r.content.first().and_then(|c| c.text.as_deref()).unwrap_or("");
                let head = format!("{:08}", id % 100_000_000);
                if t.len() == self.payload.len()
                    && t.as_bytes()[..8] == head.as_bytes()[..]
                    && t[8..] == self.payload[8..]
                {
                    Ok(())
                } else {
                    Err(format!("echoed text differs ({} bytes, expected {})", t.len(), self.payload.len()))
                }
            }
            Kind::Sleep(ms) => {
                let r: CallText = serde_json::from_str(raw.get()).map_err(bad)?;
                check_type(&r.result_type)?;
                let t = r.content.first().and_then(|c| c.text.as_deref()).unwrap_or("");
                if r.is_error != Some(true) && t == format!("slept {ms}") {
                    Ok(())
                } else {
                    Err(format!("sleep answer: {}", clip(raw.get())))
                }
            }
            Kind::List => {
                let r: ListTools = serde_json::from_str(raw.get()).map_err(bad)?;
                check_type(&r.result_type)?;
                if r.tools.len() != self.tools {
                    return Err(format!("{} tools listed, expected {}", r.tools.len(), self.tools));
                }
                for want in ["add", "echo", "sleep_ms"] {
                    if !r.tools.iter().any(|t| t.name == want && t.input_schema.is_some()) {
                        return Err(format!("tool {want} (with inputSchema) not in the list"));
                    }
                }
                Ok(())
            }
            Kind::Sample | Kind::Elicit => {
                let r: CallText = serde_json::from_str(raw.get()).map_err(bad)?;
                check_type(&r.result_type)?;
                let t = r.content.first().and_then(|c| c.text.as_deref()).unwrap_or("");
                if r.is_error != Some(true) && t.strip_prefix("said q").and_then(|n| n.parse().ok()) == Some(id) {
                    Ok(())
                } else {
                    Err(format!("call that asks: {}", clip(raw.get())))
                }
            }
            Kind::Read | Kind::ReadTemplate => {
                let r: ReadRes = serde_json::from_str(raw.get()).map_err(bad)?;
                check_type(&r.result_type)?;
                let want = if self.kind == Kind::Read { "hello from bench" } else { "item 7" };
                if r.contents.first().and_then(|c| c.text.as_deref()) == Some(want) {
                    Ok(())
                } else {
                    Err(format!("resource: {}", clip(raw.get())))
                }
            }
            Kind::Prompt => {
                let r: PromptRes = serde_json::from_str(raw.get()).map_err(bad)?;
                check_type(&r.result_type)?;
                match r.messages.first().and_then(|m| m.content.text.as_deref()) {
                    Some("Say hello to Ada.") => Ok(()),
                    _ => Err(format!("prompt: {}", clip(raw.get()))),
                }
            }
            Kind::Ping => Ok(()),
        }
    }
}

impl Gen {
    /// What we say to the server's question: `said ` and what it asked.
    pub fn answer(&self, env: &Envelope, out: &mut Vec<u8>) -> Result<(), String> {
        let (Some(id), Some(params)) = (env.id, env.params) else {
            return Err("a question without an id or parameters".into());
        };
        let bad = |e: serde_json::Error| format!("question does not parse: {e}: {}", clip(params.get()));
        let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.get());
        match (self.kind, env.method.as_deref()) {
            (Kind::Sample, Some("sampling/createMessage")) => {
                let q: Sampling = serde_json::from_str(params.get()).map_err(bad)?;
                let text = q.messages.first().and_then(|m| m.content.text.as_deref()).unwrap_or("");
                let _ = write!(
                    out,
                    r#"{{"role":"assistant","content":{{"type":"text","text":"said {text}"}},"model":"bench"}}}}"#
                );
            }
            (Kind::Elicit, Some("elicitation/create")) => {
                let q: Elicitation = serde_json::from_str(params.get()).map_err(bad)?;
                let _ = write!(out, r#"{{"action":"accept","content":{{"answer":"said {}"}}}}}}"#, q.message);
            }
            (_, method) => return Err(format!("not a question of this scenario: {method:?}")),
        }
        Ok(())
    }
}

pub fn clip(s: &str) -> String {
    let mut end = s.len().min(300);
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    s[..end].to_string()
}

#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    pub fn num_id(&self) -> Option<u64> {
        self.id.and_then(|r| r.get().parse().ok())
    }
    pub fn is_response(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }
    pub fn is_request(&self) -> bool {
        self.method.is_some() && self.id.is_some()
    }
}

#[derive(Deserialize)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize)]
struct CallAdd<'a> {
    #[serde(rename = "structuredContent", default)]
    structured: Option<Sum>,
    #[serde(rename = "isError", default)]
    is_error: Option<bool>,
    #[serde(rename = "resultType", borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct TextContent<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CallText<'a> {
    #[serde(borrow, default)]
    content: Vec<TextContent<'a>>,
    #[serde(rename = "isError", default)]
    is_error: Option<bool>,
    #[serde(rename = "resultType", borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ToolEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "inputSchema", borrow, default)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ListTools<'a> {
    #[serde(borrow)]
    tools: Vec<ToolEntry<'a>>,
    #[serde(rename = "resultType", borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ReadRes<'a> {
    #[serde(borrow)]
    contents: Vec<TextContent<'a>>,
    #[serde(rename = "resultType", borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct PromptMsg<'a> {
    #[serde(borrow)]
    content: TextContent<'a>,
}

#[derive(Deserialize)]
struct Sampling<'a> {
    #[serde(borrow)]
    messages: Vec<PromptMsg<'a>>,
}

#[derive(Deserialize)]
struct Elicitation<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct PromptRes<'a> {
    #[serde(borrow)]
    messages: Vec<PromptMsg<'a>>,
    #[serde(rename = "resultType", borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpbench","version":"0.1.0"}}}"#;
/// The same of a client that can be asked.
const INITIALIZE_ASKED: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{}},"clientInfo":{"name":"mcpbench","version":"0.1.0"}}}"#;
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
