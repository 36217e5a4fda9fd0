//! A first server. `quickstart-server` speaks over standard streams, `quickstart-server --http [HOST:PORT|unix:PATH]`
//! over HTTP.

use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i32,
    b: i32,
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    Server::new("demo")
        .tool("add", "Add two numbers", |Add { a, b }: Add, _: Context| async move { Ok(i64::from(a) + i64::from(b)) })
        .run()
        .await
}
