//! The first message on standard input, looked at before anybody is there to answer it.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};
use tricorn::cassette::MAX_LINE;
use tricorn::model::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};

/// Lines that are looked at: before its first request a client has little to say.
const LINES: usize = 8;
/// Bytes of a line that is changed on its way: a server reads no longer one. With the end of the line.
const LONGEST: u64 = (4 << 20) + 1;
/// Byte order mark, which some writers begin a stream with.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Standard input, which is waited for also where another program has made it one that does not block.
#[cfg(unix)]
pub(crate) struct Stream(std::fs::File);
#[cfg(not(unix))]
type Stream = io::Stdin;

#[cfg(unix)]
impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                read => return read,
            }
        }
    }
}

/// Standard input, with what was read of it.
pub(crate) struct Opening {
    head: Vec<u8>,
    rest: BufReader<Stream>,
    first: Value,
}

impl Opening {
    /// Reads until the first request has come. `None`: the input has ended before.
    pub(crate) fn read() -> io::Result<Option<Self>> {
        Self::of(stream()?)
    }

    fn of(stream: Stream) -> io::Result<Option<Self>> {
        let (mut head, mut rest, mut first) = (Vec::new(), BufReader::new(stream), Value::Null);
        for _ in 0..LINES {
            let begin = head.len();
            if (&mut rest).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut head)? == 0 {
                return Ok((!head.trim_ascii().is_empty()).then_some(Self { head, rest, first }));
            }
            let line = &head[begin..];
            let line = if begin == 0 { line.strip_prefix(MARK).unwrap_or(line) } else { line }.trim_ascii();
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

    /// Puts it back for whoever reads standard input next, each line as `change` gives it, unless it is too long for a
    /// server.
    #[cfg(unix)]
    pub(crate) fn put_back(self, change: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        rustix::stdio::dup2_stdin(&reader)?;
        // Nobody is left to be told of a failure: for whoever reads, the input ends.
        let passing = move || drop(pass_on(self.whole(), writer, change));
        std::thread::Builder::new().name("tricorn-stdin".into()).spawn(passing).map(drop)
    }

    /// Says that this system has no way to do so.
    #[cfg(not(unix))]
    pub(crate) fn put_back(self, _: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

/// Passes all lines on, each as `change` gives it; a longer one than [`LONGEST`] as it is, in pieces.
#[cfg_attr(not(unix), allow(dead_code, reason = "put_back"))]
fn pass_on(mut from: impl BufRead, mut to: impl Write, mut change: impl FnMut(Vec<u8>) -> Vec<u8>) -> io::Result<()> {
    let mut is_rest = false;
    loop {
        let mut piece = Vec::new();
        let length = (&mut from).take(LONGEST).read_until(b'\n', &mut piece)?;
        if length == 0 {
            return Ok(());
        }
        let goes_on = length as u64 == LONGEST && !piece.ends_with(b"\n");
        if !goes_on && !is_rest {
            piece = change(piece);
        }
        is_rest = goes_on;
        to.write_all(&piece)?;
    }
}

/// The revision that the parameters of a request ask for.
pub(crate) fn revision_of(params: &Value) -> Option<&str> {
    params["_meta"][PROTOCOL_VERSION].as_str().or_else(|| params["protocolVersion"].as_str())
}

#[cfg(unix)]
fn stream() -> io::Result<Stream> {
    let own = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    Ok(Stream(own.into()))
}

#[cfg(not(unix))]
fn stream() -> io::Result<Stream> {
    Ok(io::stdin())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_goes_on_as_it_is() {
        let longest = LONGEST as usize;
        let mut line = vec![b'x'; longest];
        line[longest - 1] = b'\n';
        let long = [vec![b'x'; 2 * longest + 7], b"\n".to_vec()].concat();
        let all = [b"a\n".to_vec(), long.clone(), line, b"b".to_vec()].concat();
        let (mut lengths, mut out) = (Vec::new(), Vec::new());
        pass_on(&all[..], &mut out, |line| {
            lengths.push(line.len());
            line
        })
        .unwrap();
        assert_eq!(lengths, [2, longest, 1]);
        assert!(out == all, "it is passed on otherwise");
    }

    #[cfg(unix)]
    #[test]
    fn an_input_that_does_not_block_is_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let writing = std::thread::spawn(move || {
            let pieces = ["\u{feff}", "{\"method\": \"initialize\", \"id\": 1,", " \"params\": {}}\n", "later\n"];
            for piece in pieces {
                std::thread::sleep(std::time::Duration::from_millis(20));
                writer.write_all(piece.as_bytes()).unwrap();
            }
        });
        let stream = Stream(std::os::fd::OwnedFd::from(reader).into());
        let opening = Opening::of(stream).unwrap().unwrap();
        // It is found behind a byte order mark, which stays for whoever reads it next.
        assert_eq!(opening.method(), "initialize");
        let mut whole = String::new();
        opening.whole().read_to_string(&mut whole).unwrap();
        writing.join().unwrap();
        assert!(whole.starts_with("\u{feff}{") && whole.ends_with("}\nlater\n"), "{whole}");
    }
}
