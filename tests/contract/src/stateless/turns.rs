//! A round-robin proxy as small as can be: one request on each connection, the next process for each request.

use super::front::ANSWERED_BY;
use crate::Outcome;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Longest silence of either side.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest head, and the longest body.
const MAX_BYTES: u64 = 4 << 20;

/// A proxy that listens, until it is dropped.
pub(super) struct Turns {
    pub(super) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Turns {
    pub(super) fn start(upstreams: &[String]) -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, upstreams) = (stopped.clone(), upstreams.to_vec());
        thread::spawn(move || {
            // A client is served before the next one is listened to: whose turn it is, is told at the accept.
            for (turn, client) in listener.incoming().enumerate() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let upstream = upstreams[turn % upstreams.len()].clone();
                if let Ok(client) = client {
                    thread::spawn(move || drop(relay(client, &upstream)));
                }
            }
        });
        Ok(Self { address, stopped })
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // The listener looks at the flag when something comes.
        let _ = TcpStream::connect(self.address);
    }
}

/// One request and its answer. Both sides close behind it, so that each request is a connection of its own.
fn relay(client: TcpStream, upstream: &str) -> Result<(), Error> {
    client.set_read_timeout(Some(SILENCE))?;
    client.set_nodelay(true)?;
    let mut reader = BufReader::new(&client);
    let request = head(&mut reader)?;
    let length = request.iter().find_map(|line| value(line, "content-length")).unwrap_or("0");
    let length: u64 = length.parse().map_err(|_| ErrorKind::InvalidData)?;
    if length > MAX_BYTES {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;

    let mut server = TcpStream::connect(upstream)?;
    server.set_read_timeout(Some(SILENCE))?;
    server.set_nodelay(true)?;
    server.write_all(&[written(&request, "Connection: close").as_bytes(), &body].concat())?;
    let mut reader = BufReader::new(&server);
    let answer = head(&mut reader)?;
    (&client).write_all(written(&answer, &format!("{ANSWERED_BY}: {upstream}")).as_bytes())?;
    std::io::copy(&mut reader, &mut &client)?;
    client.shutdown(Shutdown::Both)
}

/// The lines of a head.
fn head(reader: &mut impl BufRead) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    let mut reader = reader.take(MAX_BYTES);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => return Ok(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A head with one more header.
fn written(lines: &[String], header: &str) -> String {
    let (first, rest) = lines.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
    let rest = rest.iter().filter(|line| value(line, header.split(':').next().unwrap_or_default()).is_none());
    let rest: String = rest.map(|line| format!("{line}\r\n")).collect();
    format!("{first}\r\n{header}\r\n{rest}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::http::{Connection, Endpoint, Exchange, Request};

    /// A server that says what it was sent.
    fn echo() -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut reader = BufReader::new(&client);
                let request = head(&mut reader).expect("a request");
                let closes = request.iter().any(|line| line == "Connection: close");
                let mut body = vec![0; 2];
                reader.read_exact(&mut body).expect("a body");
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{closes:5}");
                (&client).write_all(&[answer.as_bytes(), &body].concat()).expect("sent");
            }
        });
        address
    }

    #[test]
    fn each_request_goes_to_the_next() {
        let upstreams = [echo(), echo()];
        let turns = Turns::start(&upstreams).expect("a proxy");
        let endpoint = Endpoint { authority: turns.address.to_string(), path: "/".into() };
        for number in 10..16 {
            let headers = vec![("connection".to_owned(), "keep-alive".to_owned())];
            let body = Some(number.to_string().into_bytes());
            let request = Request { method: "POST".into(), path: "/".into(), headers, body };
            let connection = Connection::open(&endpoint).expect("connected");
            let mut exchange = Exchange::start(connection, &request, &endpoint.authority).expect("sent");
            let by = exchange.head(SILENCE).expect("a head").get(ANSWERED_BY).map(str::to_owned);
            assert_eq!(by.as_ref(), Some(&upstreams[number % 2]));
            let body = exchange.body(SILENCE).expect("a body");
            assert_eq!(String::from_utf8_lossy(&body), format!("true {number}"));
            assert!(exchange.recycle().is_none_or(|connection| connection.usable()));
        }
    }
}
