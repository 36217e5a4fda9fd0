//! Authorization: a server that knows who asks, and what each of them may use.

use serde_json::json;
use tricorn::client::Auth as Login;
use tricorn::http::HttpOptions;
use tricorn::model::Principal;
use tricorn::prelude::*;
use tricorn::server::Auth;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct File {
    name: String,
}

/// Who has which token. In production this is `Auth::issuer("https://login.example.com")`.
async fn verify(token: String) -> tricorn::Result<Principal> {
    match token.as_str() {
        "token-of-ada" => Ok(Principal::new("ada").scopes(["notes", "files:write"])),
        "token-of-bob" => Ok(Principal::new("bob").scopes(["notes"])),
        _ => Err(Error::new(ErrorKind::Auth, "unknown token")),
    }
}

fn server() -> Server {
    let auth = Auth::verifier(verify)
        .authorization_servers(["https://login.example.com"])
        .required_scopes(["notes"])
        .resource_name("Notes");
    Server::new("notes")
        .auth(auth)
        .tool("whoami", "Say who asks", |_: Nothing, ctx: Context| async move {
            Ok(ctx.principal().map(|own| own.subject.clone()).unwrap_or_default())
        })
        .tool_with(Tool::new("delete_file", "Delete a file").scopes(["files:write"]), |file: File| async move {
            Ok(format!("deleted {}", file.name))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let serving = server().serve_http(HttpOptions::new().port(0)).await?;
    let target: Target = serving.url().parse()?;

    for token in ["token-of-ada", "token-of-bob", "token-of-eve"] {
        let options = ClientOptions::new().auth(Login::bearer(token));
        let client = match Client::connect(&target, &options).await {
            Ok(client) => client,
            Err(error) => {
                println!("{token}: {}", error.kind().as_str());
                continue;
            }
        };
        let subject = client.call_tool("whoami", json!({})).await?;
        let tools = client.list_tools().await?;
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        println!("{}: {}", subject.text(), names.join(", "));
        match client.call_tool("delete_file", json!({"name": "draft"})).await {
            Ok(result) => println!("{}: {}", subject.text(), result.text()),
            Err(error) => println!("{}: {}", subject.text(), error.kind().as_str()),
        }
        client.close().await;
    }

    serving.close();
    serving.join().await;
    Ok(())
}
