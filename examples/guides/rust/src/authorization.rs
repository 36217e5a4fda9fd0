//! Authorization: a server that takes access tokens, and clients that have one.

use serde_json::json;
use tricorn::client::Auth as Login;
use tricorn::http::HttpOptions;
use tricorn::model::Principal;
use tricorn::prelude::*;
use tricorn::server::Auth;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Returns the owner of a token. In production use `Auth::issuer("https://login.example.com")` instead.
async fn verify(token: String) -> tricorn::Result<Principal> {
    match token.as_str() {
        "token-of-ada" => Ok(Principal::new("ada").scopes(["notes:read", "notes:write"])),
        "token-of-bob" => Ok(Principal::new("bob").scopes(["notes:read"])),
        _ => Err(Error::new(ErrorKind::Auth, "unknown token")),
    }
}

fn subject(ctx: &Context) -> String {
    ctx.principal().map_or_else(|| "nobody".to_owned(), |principal| principal.subject.clone())
}

fn server() -> Server {
    let auth =
        Auth::verifier(verify).authorization_servers(["https://login.example.com"]).required_scopes(["notes:read"]);
    let write = Tool::new("write", "Write a note").scopes(["notes:write"]);
    Server::new("notes")
        .auth(auth)
        .tool("whoami", "Say who asks", |_: Nothing, ctx: Context| async move { Ok(subject(&ctx)) })
        .tool_with(
            write,
            |note: Note, ctx: Context| async move { Ok(format!("{} wrote {}", subject(&ctx), note.text)) },
        )
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let serving = server().serve_http(HttpOptions::new().port(0)).await?;
    let target: Target = serving.url().parse()?;

    for name in ["ada", "bob"] {
        // A user logs in with a browser, and the program finds out the rest: `Login::new()`.
        let options = ClientOptions::new().auth(Login::bearer(format!("token-of-{name}")));
        let client = Client::connect(&target, &options).await?;
        let tools = client.list_tools().await?;
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        println!("{} may use: {}", client.call_tool("whoami", json!({})).await?.text(), names.join(", "));
        match client.call_tool("write", json!({"text": "milk"})).await {
            Ok(result) => println!("{}", result.text()),
            Err(error) => println!("refused: {}", error.kind().as_str()),
        }
        client.close().await;
    }

    if let Err(error) = Client::connect(&target, &ClientOptions::default()).await {
        println!("without a token: {}", error.kind().as_str());
    }
    serving.close();
    serving.join().await;
    Ok(())
}
