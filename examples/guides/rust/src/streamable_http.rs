//! Streamable HTTP: a server at a URL, for any number of clients of both eras.

use serde_json::json;
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("http").tool("greet", "Greet whoever calls", |_: Nothing, ctx: Context| async move {
        let headers = ctx.request().transport.headers();
        let user =
            headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-user")).map(|(_, value)| value.as_str());
        Ok(format!("hello, {}", user.unwrap_or("stranger")))
    })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    // Any free port; as a program of its own: `server().run()`, started with `--http 127.0.0.1:8000`.
    let serving = server().serve_http(HttpOptions::new().port(0)).await?;
    let target: Target = serving.url().parse()?;

    let options = ClientOptions::new().header("X-User", "ada");
    for options in [options.clone(), options.revision("2025-11-25")] {
        let client = Client::connect(&target, &options).await?;
        println!("{} over {}, session: {}", client.revision(), client.transport(), client.session_id().is_some());
        println!("{}", client.call_tool("greet", json!({})).await?.text());
        client.close().await;
    }

    serving.close();
    serving.join().await;
    if let Err(error) = Client::connect(&target, &ClientOptions::default()).await {
        println!("stopped: {}", error.kind().as_str());
    }
    Ok(())
}
