//! A first server. `quickstart-server` speaks over standard streams, `quickstart-server --http [HOST:PORT|unix:PATH]`
//! over HTTP.

use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    Server::new("demo")
        .tool("add", "Add two numbers", |Add { a, b }: Add, _: Context| async move { Ok(a + b) })
        .run()
        .await
}
