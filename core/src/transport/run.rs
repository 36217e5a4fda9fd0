//! Serving the way the command line says.

use crate::error::{Error, Result};
use crate::server::Server;

impl Server {
    /// Serves over standard streams, or over HTTP when the program was started with `--http HOST:PORT` (path `/mcp`).
    /// `ready <url>` on standard error says where. Returns when the input has ended or the server was closed.
    ///
    /// # Errors
    /// A mistake in the server's definition, a bad address, one that is taken.
    pub async fn run(self) -> Result<()> {
        let mut args = std::env::args().skip(1);
        let mut http = None;
        while let Some(arg) = args.next() {
            if let Some(address) = arg.strip_prefix("--http=") {
                http = Some(address.to_owned());
            } else if arg == "--http" {
                http = Some(args.next().ok_or_else(|| Error::misuse("--http: expected HOST:PORT after it"))?);
            }
        }
        match http {
            None => self.stdio().await,
            Some(address) => self.http(&address).await,
        }
    }

    #[cfg(feature = "client-process")]
    async fn stdio(&self) -> Result<()> {
        self.serve_stdio().await
    }

    #[cfg(not(feature = "client-process"))]
    async fn stdio(&self) -> Result<()> {
        Err(Error::misuse("this build has no standard streams: enable the feature \"client-process\""))
    }

    #[cfg(feature = "http")]
    async fn http(&self, address: &str) -> Result<()> {
        let bad = || Error::misuse(format!("--http: expected HOST:PORT, got {address:?}"));
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        let options =
            serde_json::json!({"host": host.trim_matches(['[', ']']), "port": port.parse::<u16>().map_err(|_| bad())?});
        let serving = self.serve_http(super::http::HttpOptions::parse(&options.to_string())?).await?;
        eprintln!("ready {}", serving.url());
        serving.join().await;
        Ok(())
    }

    #[cfg(not(feature = "http"))]
    async fn http(&self, _address: &str) -> Result<()> {
        Err(Error::misuse("this build has no HTTP: enable the feature \"http\""))
    }
}
