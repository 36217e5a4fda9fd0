//! A client of a protected server, whose user logs in with the browser: `cargo run -- URL [--no-browser]`
//!
//! The login is kept for the next time: where logins of this user are by default, or in the directory that `LOGINS` names.

use serde_json::json;
use tricorn::auth::FileStore;
use tricorn::client::Auth;
use tricorn::prelude::*;

async fn call(target: &Target, auth: &Auth) -> tricorn::Result<()> {
    let client = Client::connect(target, &ClientOptions::new().auth(auth.clone())).await?;
    println!("logged in: {}", client.call_tool("whoami", json!({})).await?.text());
    // This needs a scope that the token does not have yet, so the user is asked once more.
    println!("{}", client.call_tool("delete_file", json!({"name": "draft.txt"})).await?.text());
    client.close().await;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let url = std::env::args().find(|arg| arg.starts_with("http"));
    let target = url.ok_or_else(|| Error::misuse("which URL?"))?.parse()?;
    // The name is what the page where the user consents calls this program.
    let mut auth = Auth::new().client_name("Log in").no_browser(std::env::args().any(|arg| arg == "--no-browser"));
    if let Ok(directory) = std::env::var("LOGINS") {
        auth = auth.store(FileStore::at(directory));
    }
    let outcome = call(&target, &auth).await;
    if let Err(error) = &outcome {
        println!("failed: {error}");
        for step in auth.trace() {
            let asked = [Some(step.step.to_owned()), step.url, step.status.map(|status| status.to_string())];
            println!("  {}: {}", asked.into_iter().flatten().collect::<Vec<_>>().join(" "), step.decision);
        }
    }
    outcome
}
