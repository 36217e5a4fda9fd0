//! The first message on standard input, looked at before anybody is there to answer it.

use std::io::{self, BufRead, BufReader, Read};

use serde_json::{Value, json};
use tricorn::cassette::MAX_LINE;
use tricorn::model::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};

/// Lines that are looked at: before its first request a client has little to say.
const LINES: usize = 8;

#[cfg(unix)]
type Stream = std::fs::File;
#[cfg(not(unix))]
type Stream = io::Stdin;

/// Standard input, with what was read of it.
pub(crate) struct Opening {
    head: Vec<u8>,
    rest: BufReader<Stream>,
    first: Value,
}

impl Opening {
    /// Reads until the first request has come. `None`: the input has ended before.
    pub(crate) fn read() -> io::Result<Option<Self>> {
        let (mut head, mut rest, mut first) = (Vec::new(), BufReader::new(stream()?), Value::Null);
        for _ in 0..LINES {
            let begin = head.len();
            if (&mut rest).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut head)? == 0 {
                return Ok((!head.trim_ascii().is_empty()).then_some(Self { head, rest, first }));
            }
            let line = head[begin..].trim_ascii();
            if line.is_empty() {
                continue;
            }
            first = serde_json::from_slice(line).unwrap_or_default();
            // Something else than a notification is answered.
            if first.get("id").is_some() || first.get("method").is_none() {
                break;
            }
        }
        Ok(Some(Self { head, rest, first }))
    }

    /// The method of the request.
    pub(crate) fn method(&self) -> &str {
        self.first["method"].as_str().unwrap_or_default()
    }

    /// The revision that it asks for.
    pub(crate) fn revision(&self) -> Option<&str> {
        revision_of(&self.first["params"])
    }

    /// The capabilities that the client declares with it, an object.
    pub(crate) fn capabilities(&self) -> Value {
        let params = &self.first["params"];
        let declared = match self.method() {
            "initialize" => &params["capabilities"],
            _ => &params["_meta"][CLIENT_CAPABILITIES],
        };
        if declared.is_object() { declared.clone() } else { json!({}) }
    }

    /// All of it, from the beginning.
    pub(crate) fn whole(self) -> impl BufRead {
        io::Cursor::new(self.head).chain(self.rest)
    }

    /// Puts it back for whoever reads standard input next, each line as `change` gives it.
    #[cfg(unix)]
    pub(crate) fn put_back(self, mut change: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) -> io::Result<()> {
        use std::io::Write as _;
        let (reader, mut writer) = io::pipe()?;
        rustix::stdio::dup2_stdin(&reader)?;
        let mut whole = self.whole();
        let passing = move || {
            let mut line = Vec::new();
            while matches!(whole.read_until(b'\n', &mut line), Ok(1..)) {
                if writer.write_all(&change(std::mem::take(&mut line))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("tricorn-stdin".into()).spawn(passing).map(drop)
    }

    /// Says that this system has no way to do so.
    #[cfg(not(unix))]
    pub(crate) fn put_back(self, _: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

/// The revision that the parameters of a request ask for.
pub(crate) fn revision_of(params: &Value) -> Option<&str> {
    params["_meta"][PROTOCOL_VERSION].as_str().or_else(|| params["protocolVersion"].as_str())
}

#[cfg(unix)]
fn stream() -> io::Result<Stream> {
    Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(Stream::from)?)
}

#[cfg(not(unix))]
fn stream() -> io::Result<Stream> {
    Ok(io::stdin())
}
