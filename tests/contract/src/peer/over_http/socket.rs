//! Just enough of an HTTP server for scripts: whole requests in, answers part by part out.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A piece of an answer.
pub(super) enum Part {
    /// All of it.
    Whole(Vec<u8>),
    /// The head of an event stream.
    Stream(Vec<(String, String)>),
    /// One event.
    Event(Vec<u8>),
    /// The end of the stream.
    End,
    /// Hang up.
    Cut,
}

/// A request, and the way to its sender.
pub(super) struct Arrival {
    pub(super) method: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    parts: Sender<Part>,
    gone: Arc<AtomicBool>,
}

impl Arrival {
    /// A header's value, by its lower-case name.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    pub(super) fn send(&self, part: Part) {
        let _ = self.parts.send(part);
    }

    pub(super) fn answer(&self, status: u16, headers: Vec<(String, String)>, kind: Option<&str>, body: Vec<u8>) {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
        if let Some(kind) = kind.filter(|_| !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")))
        {
            head.push_str(&format!("Content-Type: {kind}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.send(Part::Whole([head.into_bytes(), body].concat()));
    }

    /// An answer without a body.
    pub(super) fn refuse(&self, status: u16) {
        self.answer(status, Vec::new(), None, Vec::new());
    }

    /// Returns true if the client hung up before the end of the answer.
    pub(super) fn gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// Take connections until nobody listens to us any more.
pub(super) fn accept(listener: &TcpListener, arrivals: &Sender<Arrival>) {
    for stream in listener.incoming().flatten() {
        let arrivals = arrivals.clone();
        std::thread::spawn(move || serve(stream, &arrivals));
    }
}

fn serve(mut stream: TcpStream, arrivals: &Sender<Arrival>) -> Option<()> {
    let mut buffer = Vec::new();
    stream.set_nodelay(true).ok()?;
    loop {
        stream.set_read_timeout(None).ok()?;
        let (method, headers, body) = request(&mut stream, &mut buffer)?;
        let (parts, answer) = channel();
        let gone = Arc::new(AtomicBool::new(false));
        let arrival = Arrival { method, headers, body, parts, gone: Arc::clone(&gone) };
        arrivals.send(arrival).ok()?;
        if respond(&mut stream, &answer).is_none() {
            gone.store(true, Ordering::Release);
            let _ = stream.shutdown(Shutdown::Both);
            return None;
        }
    }
}

type Whole = (String, Vec<(String, String)>, Vec<u8>);

fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Whole> {
    let end = loop {
        if let Some(place) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break place;
        }
        more(stream, buffer)?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let method = lines.next()?.split(' ').next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let named = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if named("transfer-encoding").is_some() {
        loop {
            let end = loop {
                if let Some(place) = buffer.windows(2).position(|window| window == b"\r\n") {
                    break place;
                }
                more(stream, buffer)?;
            };
            let size = usize::from_str_radix(String::from_utf8_lossy(&buffer[..end]).trim(), 16).ok()?;
            while buffer.len() < end + 2 + size + 2 {
                more(stream, buffer)?;
            }
            body.extend_from_slice(&buffer[end + 2..end + 2 + size]);
            buffer.drain(..end + 2 + size + 2);
            if size == 0 {
                break;
            }
        }
    } else {
        let length = named("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while buffer.len() < length {
            more(stream, buffer)?;
        }
        body = buffer.drain(..length).collect();
    }
    Some((method, headers, body))
}

fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 16 * 1024];
    let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
    buffer.extend_from_slice(&chunk[..count]);
    Some(())
}

/// Write the answer; `None` when the client hung up or has to be hung up on.
fn respond(stream: &mut TcpStream, answer: &Receiver<Part>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_millis(5))).ok()?;
    loop {
        match answer.recv_timeout(Duration::from_millis(5)) {
            Ok(Part::Whole(bytes)) => return stream.write_all(&bytes).ok(),
            Ok(Part::Stream(headers)) => {
                let mut head =
                    "HTTP/1.1 200 Scripted\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
                        .to_owned();
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str("\r\n");
                stream.write_all(head.as_bytes()).ok()?;
            }
            Ok(Part::Event(data)) => {
                let event = [b"event: message\ndata: ".as_slice(), &data, b"\n\n"].concat();
                let chunk = [format!("{:x}\r\n", event.len()).into_bytes(), event, b"\r\n".to_vec()].concat();
                stream.write_all(&chunk).ok()?;
            }
            Ok(Part::End) => return stream.write_all(b"0\r\n\r\n").ok(),
            Ok(Part::Cut) => return None,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let mut byte = [0];
                match stream.peek(&mut byte) {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    Err(_) => return None,
                }
            }
        }
    }
}
