//! Replaced by the endpoint: keeps the bridge compiling meanwhile.
#![allow(missing_docs, clippy::unused_async)]

use bytes::Bytes;
use http_body_util::Full;

use crate::error::{Error, ErrorKind, Result};
use crate::server::Server;

#[derive(Debug, Clone, Default)]
pub struct HttpOptions;
impl HttpOptions {
    pub fn parse(_text: &str) -> Result<Self> {
        Ok(Self)
    }
}

#[derive(Debug, Clone)]
pub struct Endpoint;
impl Endpoint {
    pub async fn handle<B>(&self, _request: http::Request<B>) -> http::Response<Full<Bytes>> {
        http::Response::new(Full::new(Bytes::new()))
    }
}

#[derive(Debug)]
pub struct HttpServer;
impl HttpServer {
    pub fn url(&self) -> String {
        String::new()
    }
    pub async fn join(self) {}
}

impl Server {
    pub async fn serve_http(&self, _options: HttpOptions) -> Result<HttpServer> {
        Err(Error::new(ErrorKind::Unsupported, "HTTP"))
    }
    pub fn endpoint(&self, _options: HttpOptions) -> Result<Endpoint> {
        Ok(Endpoint)
    }
}
