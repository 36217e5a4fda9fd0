use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::endpoint::http::fetch::*;

#[tokio::test]
async fn a_server_elsewhere_leads_to_no_private_address() {
    let ok = |server: &'static str, url: &'static str| async move {
        let host = Parts::of(server).expect(server).host;
        let place = Place(vec![Reach::of(host.parse().expect(host))]);
        let policy = FetchPolicy::of_server(server, Arc::new(place), ["https://10.0.0.9/token"]);
        policy.addresses(&Parts::of(url).expect(url)).await.is_ok()
    };
    for (server, url, allowed) in [
        ("https://8.8.8.8/mcp", "https://9.9.9.9/", true),
        ("https://8.8.8.8/mcp", "https://127.0.0.1/", false),
        ("https://8.8.8.8/mcp", "https://169.254.169.254/", false),
        ("https://8.8.8.8/mcp", "https://10.0.0.1/", false),
        ("https://8.8.8.8/mcp", "https://10.0.0.9/other", true),
        ("https://8.8.8.8/mcp", "https://10.0.0.9:8443/other", false),
        ("https://10.0.0.1/mcp", "https://10.0.0.2/", true),
        ("https://10.0.0.1/mcp", "https://127.0.0.1/", false),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/", true),
        ("http://127.0.0.1:1/mcp", "https://10.0.0.1/", true),
        ("http://127.0.0.1:1/mcp", "https://169.254.169.254/", false),
        ("http://127.0.0.1:1/mcp", "http://[::1]:2/", true),
    ] {
        assert_eq!(ok(server, url).await, allowed, "{server} {url}");
    }
}

#[tokio::test]
async fn only_safe_urls_are_asked() {
    let policy = FetchPolicy::named();
    for url in ["http://example.com/", "ftp://example.com/", "file:///etc/passwd", ""] {
        let error = fetch(&Fetch::get(url), &policy).await.expect_err(url);
        assert!(error.why.starts_with("refused: ") && !error.answered, "{error}");
    }
}

#[test]
fn redirects_are_resolved() {
    for (location, to) in [
        ("/b", Some("https://h/b")),
        ("b", Some("https://h/a/b")),
        ("//other/x", Some("https://other/x")),
        ("http://other/", Some("http://other/")),
        ("a b", None),
    ] {
        assert_eq!(resolved_against("https://h/a/?x#f", location).as_deref(), to, "{location}");
    }
}

/// A server that has been reached there.
struct Place(Vec<Reach>);

impl Whereabouts for Place {
    fn reaches(&self) -> Pin<Box<dyn Future<Output = Vec<Reach>> + Send + '_>> {
        Box::pin(ready(self.0.clone()))
    }
}

/// A name server that has another answer each time, and remembers what it was asked.
#[derive(Default)]
struct Rebinding {
    answers: HashMap<&'static str, VecDeque<&'static str>>,
    asked: Mutex<Vec<String>>,
}

impl Rebinding {
    fn new(names: &[(&'static str, &[&'static str])]) -> Arc<Self> {
        let answers = names.iter().map(|(name, answers)| (*name, answers.iter().copied().collect())).collect();
        Arc::new(Self { answers, asked: Mutex::default() })
    }

    fn ask(&self, name: &str) -> Vec<SocketAddr> {
        let mut asked = self.asked.lock().expect("no panic");
        let before = asked.iter().filter(|other| *other == name).count();
        asked.push(name.to_owned());
        let addresses = self.answers[name].get(before).expect(name).split(' ');
        addresses.map(|address| SocketAddr::new(address.parse().expect(address), 0)).collect()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no panic"))
    }

    /// For a server that is there, by these names.
    fn policy(self: &Arc<Self>, server: &str, place: &[Reach]) -> FetchPolicy {
        let names = self.clone();
        let policy = FetchPolicy::of_server(server, Arc::new(Place(place.to_vec())), []);
        FetchPolicy { names: Names::Given(Box::new(move |name| names.ask(name))), ..policy }
    }
}

const METADATA: &str = "169.254.169.254";
const HERE: &str = "127.0.0.1";

/// Listens, and gives these answers, one on each connection. The number of those left is told.
fn serve(answers: Vec<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind((HERE, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let left = Arc::new(AtomicUsize::new(answers.len()));
    let count = left.clone();
    std::thread::spawn(move || {
        for answer in answers {
            let mut socket = listener.accept().expect("a connection").0;
            count.fetch_sub(1, Ordering::SeqCst);
            let mut lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
            while lines.next().is_some_and(|line| !line.expect("a line").is_empty()) {}
            let _ = socket.write_all(answer.replace("$port", &port.to_string()).as_bytes());
        }
    });
    (port, left)
}

fn found() -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".into()
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn what_is_connected_to_is_what_was_looked_at() {
    let names = Rebinding::new(&[("as.localhost", &[HERE, METADATA]), ("two.localhost", &[HERE, METADATA])]);
    let policy = names.policy("http://mcp.localhost/mcp", &[Reach::Loopback]);
    let (port, left) = serve(vec![moved("http://two.localhost:$port/b"), found()]);
    let answer = fetch(&Fetch::get(format!("http://as.localhost:{port}/a")), &policy).await.expect("an answer");
    assert_eq!((answer.status, left.load(Ordering::SeqCst)), (200, 0));
    assert_eq!(names.asked(), ["as.localhost", "two.localhost"], "each name once");
}

#[tokio::test]
async fn each_request_and_each_redirect_is_looked_at_again() {
    let names = Rebinding::new(&[
        ("as.localhost", &[HERE, METADATA, HERE]),
        ("two.localhost", &["8.8.8.8 169.254.169.254", HERE]),
    ]);
    let policy = names.policy("http://mcp.localhost/mcp", &[Reach::Loopback]);
    let (port, left) = serve(vec![found(), moved("http://two.localhost:$port/b"), found()]);
    let url = format!("http://as.localhost:{port}/a");
    let token = Fetch::post(url.clone(), "application/x-www-form-urlencoded", "a=b".into());
    assert!(fetch(&Fetch::get(url.clone()), &policy).await.is_ok());
    let refused = fetch(&token, &policy).await.expect_err("another address");
    assert!(refused.why.contains("169.254.169.254 is a link-local address"), "{refused}");
    let refused = fetch(&Fetch::get(url), &policy).await.expect_err("a redirect inwards");
    assert!(refused.why.contains("169.254.169.254 is a link-local address"), "{refused}");
    assert_eq!(left.load(Ordering::SeqCst), 1, "nobody was connected to who had been refused");
    assert_eq!(names.asked(), ["as.localhost", "as.localhost", "as.localhost", "two.localhost"]);
}

#[tokio::test]
async fn a_server_is_where_it_was_connected_to_whatever_its_name_says_now() {
    let names = Rebinding::new(&[("mcp.localhost", &[HERE, "127.0.0.1 8.8.8.8"]), ("as.localhost", &[HERE])]);
    let policy = names.policy("http://mcp.localhost/mcp", &[Reach::Public]);
    let (port, left) = serve(vec![found()]);
    // Its own name is no exception: it was elsewhere when it sent us there.
    let own =
        FetchPolicy::of_server(&format!("http://mcp.localhost:{port}/mcp"), Arc::new(Place(vec![Reach::Public])), []);
    let own = FetchPolicy { names: policy.names, ..own };
    let url = format!("http://mcp.localhost:{port}/.well-known/oauth-protected-resource");
    let refused = fetch(&Fetch::get(url.clone()), &own).await.expect_err("another address");
    assert!(refused.why.contains("127.0.0.1 is a loopback address"), "{refused}");
    let refused = fetch(&Fetch::get(format!("http://as.localhost:{port}/")), &own).await.expect_err("an address here");
    assert!(refused.why.contains("127.0.0.1 is a loopback address"), "{refused}");
    // The one of two addresses is left that is where the server is.
    let addresses = own.addresses(&Parts::of(&url).expect("a URL")).await.expect("an address");
    assert_eq!(addresses, ["8.8.8.8:0".parse().expect("an address")]);
    assert_eq!((names.asked().len(), left.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test]
async fn a_server_that_was_not_reached_leads_to_no_private_address() {
    let names = Rebinding::new(&[("mcp.localhost", &[HERE]), ("as.localhost", &[HERE, "8.8.8.8"])]);
    let policy = names.policy("http://mcp.localhost/mcp", &[]);
    for (url, allowed) in
        [("http://mcp.localhost/", false), ("http://as.localhost/", false), ("http://as.localhost/", true)]
    {
        assert_eq!(policy.addresses(&Parts::of(url).expect(url)).await.is_ok(), allowed, "{url}");
    }
}

#[tokio::test]
async fn an_answer_of_no_use_is_told_from_none() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let moved = |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: {0}\r\n\r\n{1}", MAX_BODY + 1, " ".repeat(MAX_BODY + 1));
    for (answer, why, answered) in [
        (moved("/"), "more than 3 redirects", true),
        (moved("http://example.com/"), "refused: ", true),
        (moved("a b"), "a redirect that leads nowhere", true),
        (long, "the answer is longer than", true),
        (moved("http://127.0.0.1:1/"), "", false),
        ("no HTTP".to_owned(), "", false),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let answer = answer.clone();
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 1024]).await;
                    // Nobody reads what is too long to its end.
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        let unfetched = fetch(&Fetch::get(&url), &FetchPolicy::named()).await.expect_err(why);
        assert!(unfetched.answered == answered && unfetched.why.starts_with(why), "{unfetched:?}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_url_may_have_a_query_and_no_path() {
    let (port, left) = serve(vec![found(), "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}".into()]);
    let policy = FetchPolicy::named();
    let url = format!("http://{HERE}:{port}?tenant=1");
    let answer = fetch(&Fetch::get(url.clone()), &policy).await.expect("an answer");
    assert_eq!((answer.status, left.load(Ordering::SeqCst)), (200, 1));
    let error = fetch(&Fetch::get(url), &policy).await.expect_err("it breaks off");
    assert!(error.why.starts_with("the answer broke off: ") && !error.why.contains("transport:"), "{error}");
}
