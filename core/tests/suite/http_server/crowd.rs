//! Many sockets and many requests of one client beside few of others.

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tricorn::http::{HttpOptions, HttpServer};

use super::socket::{read_until, write};
use super::*;

async fn from(last: u8, serving: &HttpServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    within("connecting", socket.connect(serving.local_addr().unwrap())).await.unwrap()
}

fn add(id: usize) -> Value {
    modern(id, "tools/call", tool("add", json!({"a": id, "b": 0})))
}

/// More sockets than are looked at for one that makes room: it is still one of whoever has the most.
#[tokio::test]
async fn a_crowd_of_one_client_makes_room_for_others() {
    const MANY: usize = 400;
    let it = Fixture::new();
    let options = HttpOptions::new().port(0).max_connections(MANY);
    let serving = within("listening", it.server.serve_http(options)).await.unwrap();
    let mut crowd = Vec::new();
    for _ in 0..MANY {
        crowd.push(from(9, &serving).await);
    }
    until("all are there", || it.server.usage().connections == MANY).await;
    let mut others = Vec::new();
    for number in 0..40 {
        let mut other = from(1, &serving).await;
        write(&mut other, &serving, &add(number)).await;
        let answer = read_until(&mut other, "serverInfo").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
        others.push(other);
    }
    // Not one of theirs has made room.
    for (number, other) in others.iter_mut().enumerate() {
        write(other, &serving, &add(number)).await;
        assert!(read_until(other, "serverInfo").await.starts_with("HTTP/1.1 200"), "{number}");
    }
    until("there is room for no more", || it.server.usage().connections <= MANY).await;
}

/// Requests that are sent without waiting for answers are answered in order, and others in between.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    const MANY: usize = 300;
    let it = Fixture::new();
    let serving = within("listening", it.server.serve_http(HttpOptions::new().port(0))).await.unwrap();
    let (mut hasty, mut patient) = (from(9, &serving).await, from(1, &serving).await);
    let mut all = Vec::new();
    for id in 0..MANY {
        let body = add(id);
        let text = body.to_string();
        all.extend_from_slice(format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", serving.local_addr().unwrap()).as_bytes());
        for (name, value) in correct(&[], &body) {
            all.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        all.extend_from_slice(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }
    let reading = async {
        for id in 0..MANY {
            let wanted = format!("\"id\":{id},");
            assert!(read_one(&mut hasty, &all, id).await.contains(&wanted), "{id}");
        }
    };
    let calling = async {
        for id in 0..20 {
            write(&mut patient, &serving, &add(id)).await;
            assert!(read_until(&mut patient, "serverInfo").await.contains("200 OK"));
        }
    };
    tokio::join!(reading, calling);
}

/// Writes everything with the first, and reads one answer.
async fn read_one(socket: &mut TcpStream, all: &[u8], number: usize) -> String {
    if number == 0 {
        within("writing", socket.write_all(all)).await.unwrap();
    }
    let head = read_exactly_to(socket, b"\r\n\r\n").await;
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap()];
    within("reading", tokio::io::AsyncReadExt::read_exact(socket, &mut body)).await.unwrap();
    String::from_utf8(body).unwrap()
}

async fn read_exactly_to(socket: &mut TcpStream, end: &[u8]) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end) {
        text.push(within("reading", tokio::io::AsyncReadExt::read_u8(socket)).await.unwrap());
    }
    String::from_utf8(text).unwrap()
}
