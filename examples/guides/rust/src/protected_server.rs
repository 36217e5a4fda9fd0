//! A protected server, for production: an authorization server says who comes in.
//!
//! ```sh
//! ISSUER=https://login.example.com RESOURCE=https://example.com/files/mcp ALLOWED_HOSTS=example.com PORT=8000 \
//!     cargo run --release -- --http
//! ```
//!
//! `ISSUER`: whose access tokens are taken. `RESOURCE`: the server's public URL, as its clients write it.
//! `ALLOWED_HOSTS`: the hosts in it, with commas between them. `PORT`: of this machine, which the proxy in front passes
//! requests to; 8000 if not said.
//!
//! Without `RESOURCE` and `ALLOWED_HOSTS` it is for clients on this machine, which need no proxy.

use tricorn::http::HttpOptions;
use tricorn::prelude::*;
use tricorn::server::Auth;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct File {
    name: String,
}

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn who(ctx: &Context) -> String {
    ctx.principal().map_or_else(|| "nobody".to_owned(), |principal| principal.subject.clone())
}

fn server(auth: Auth) -> Server {
    let delete_file = Tool::new("delete_file", "Delete a file").scopes(["files:write"]);
    Server::new("files")
        .auth(auth)
        .tool("whoami", "Say who asks", |_: Nothing, ctx: Context| async move { Ok(who(&ctx)) })
        .tool_with(
            delete_file,
            |file: File, ctx: Context| async move { Ok(format!("{} deleted {}", who(&ctx), file.name)) },
        )
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let issuer = setting("ISSUER").ok_or_else(|| Error::misuse("ISSUER is not set"))?;
    let mut auth = Auth::issuer(issuer).required_scopes(["files:read"]).resource_name("Files");
    if let Some(resource) = setting("RESOURCE") {
        auth = auth.resource(resource);
    }
    let port = setting("PORT").unwrap_or_else(|| "8000".to_owned());
    let port = port.parse().map_err(|_| Error::misuse("PORT is no port"))?;
    let mut options = HttpOptions::new().port(port);
    if let Some(hosts) = setting("ALLOWED_HOSTS") {
        options = options.allowed_hosts(hosts.split(','));
    }
    server(auth).run_with(options).await.map(drop)
}
