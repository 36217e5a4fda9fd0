//! The server mounted in somebody else's HTTP server: hyper, or axum with layers of tower.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

/// Serves at the address after `--http`: hyper at every path, axum at `/mcp` and where nothing else is.
pub(crate) async fn serve(app: &Server, options: HttpOptions) -> tricorn::Result<ExitCode> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let address = address.ok_or_else(|| Error::misuse("EVERYTHING_MOUNT: --http HOST:PORT says where"))?;
    let endpoint = app.endpoint(options)?;
    let listener = TcpListener::bind(address).await?;
    eprintln!("ready http://{}/mcp", listener.local_addr()?);
    if std::env::var("EVERYTHING_MOUNT").is_ok_and(|kind| kind == "axum") {
        let layers = ServiceBuilder::new()
            .concurrency_limit(1024)
            .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(60)))
            .layer(CorsLayer::permissive())
            .layer(CompressionLayer::new());
        // The metadata of a protected server is at a path from the root.
        let app = Router::new().nest_service("/mcp", endpoint.clone()).fallback_service(endpoint).layer(layers);
        axum::serve(listener, app).await?;
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        let (stream, _) = listener.accept().await?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            // What is wrong with a connection is its client's affair.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), endpoint).await;
        });
    }
}
