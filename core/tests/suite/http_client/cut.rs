//! A network that breaks: a proxy that cuts connections in the middle of event streams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// The first answers that are streams of a request are cut, each after so many bytes of its body.
    pub(crate) async fn new(to: SocketAddr, after: &'static [usize]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let cuts = Arc::new(AtomicUsize::new(0));
        let made = cuts.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let made = made.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(to).await {
                        let _ = carry(client, server, &made, after).await;
                    }
                });
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    cuts: &AtomicUsize,
    after: &[usize],
) -> std::io::Result<()> {
    let (mut up, mut down) = (vec![0; 4096], vec![0; 4096]);
    let mut stream = None;
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read? {
                0 => return Ok(()),
                n => server.write_all(&up[..n]).await?,
            },
            read = server.read(&mut down) => {
                let piece = &down[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                // A request's stream names its events `r…`.
                if stream.is_none() && piece.windows(5).any(|w| w == b"id: r") {
                    stream = after.get(cuts.load(Ordering::SeqCst)).copied();
                }
                if let Some(left) = &mut stream {
                    if piece.len() >= *left {
                        client.write_all(&piece[..*left]).await?;
                        cuts.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                    *left -= piece.len();
                }
                client.write_all(piece).await?;
            }
        }
    }
}
