//! The server mounted in somebody else's HTTP server.

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

/// Serves at the address after `--http`, at every path.
pub(crate) async fn serve(app: &Server, options: HttpOptions) -> tricorn::Result<ExitCode> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let address = address.ok_or_else(|| Error::misuse("EVERYTHING_MOUNT: --http HOST:PORT says where"))?;
    let endpoint = app.endpoint(options)?;
    let listener = TcpListener::bind(address).await?;
    eprintln!("ready http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            // What is wrong with a connection is its client's affair.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), endpoint).await;
        });
    }
}
