//! Middleware: what stands around every request, of a server and of a client.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{ConcurrencyLimit, Logging, Next, RateLimit, Request, Timing};
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

/// User of a request.
struct User(String);

fn params(request: &Request) -> Value {
    request.params.as_ref().and_then(|params| params.to().ok()).unwrap_or_default()
}

/// Refuses whoever does not say who they are, and tells the others' names to what comes after.
async fn sign_in(request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
    let params = params(&request);
    let Some(user) = params["_meta"]["com.example/user"].as_str() else {
        return Err(Error::rpc(-32001, "who are you?"));
    };
    let method = request.method.clone();
    println!("> {method} of {user}");
    let result = next.run(request, &context.with_state(User(user.to_owned()))).await?;
    println!("< {method}");
    Ok(result)
}

/// Changes parameters on their way.
async fn tidy(mut request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
    if request.method == "tools/call" {
        let mut params = params(&request);
        params["arguments"]["name"] = params["arguments"]["name"].as_str().map(str::trim).into();
        request.params = Some(RawJson::from_value(&params));
    }
    next.run(request, &context).await
}

fn server(timing: &Timing) -> Server {
    Server::new("signed")
        .middleware(timing.clone()) // the first one is the outermost
        .middleware(sign_in)
        .middleware(tidy)
        .tool("greet", "Greet somebody", |Greet { name }: Greet, ctx: Context| async move {
            let user = ctx.state::<User>().map_or_else(String::new, |user| user.0.clone());
            Ok(format!("Hello {name}, from {user}!"))
        })
}

/// A client's: signs whatever it sends.
async fn sign(mut request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
    let mut params = params(&request);
    params["_meta"]["com.example/user"] = "Ada".into();
    request.params = Some(RawJson::from_value(&params));
    next.run(request, &context).await
}

fn limited(green: &Arc<Semaphore>) -> tricorn::Result<Server> {
    let limit = RateLimit::per_second(1.0 / 3600.0)?.burst(NonZeroU32::MIN.saturating_add(1));
    let green = green.clone();
    Ok(Server::new("limited").middleware(limit).tool("wait", "Wait for the green light", move || {
        let green = green.clone();
        async move {
            let _green = green.acquire().await?;
            Ok("done")
        }
    }))
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let timing = Timing::new();
    let app = server(&timing);
    let options = ClientOptions::default();
    let client = Client::in_memory_with(&app, &options, &Handlers::new().middleware(sign)).await?;
    println!("greet: {}", client.call_tool("greet", json!({"name": " Bob "})).await?.text());
    client.close().await;

    let records = Arc::<Mutex<Vec<String>>>::default();
    let written = records.clone();
    let logged = Logging::new(move |record| {
        let outcome = if record.error.is_some() { "failed" } else { "ok" };
        let line = format!("{} {} {outcome}", record.method, record.name.as_deref().unwrap_or_default());
        written.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    });
    let unsigned = Client::in_memory_with(&app, &options, &Handlers::new().middleware(logged)).await?;
    if let Err(error) = unsigned.call_tool("greet", json!({"name": "Bob"})).await {
        println!("unsigned: error {}, {}", error.code().unwrap_or_default(), error.message());
    }
    unsigned.close().await;
    println!("logged: {}", records.lock().unwrap_or_else(PoisonError::into_inner).join(", "));
    if let Some(calls) = timing.summary().get("tools/call") {
        println!("timing: {} calls, {} failed", calls.count, calls.failed);
    }

    // One at a time, nobody waits. The limit is the client's own: the second is not even sent.
    let green = Arc::new(Semaphore::new(0));
    let limit = ConcurrencyLimit::new(1)?.max_waiting(0);
    let busy = Client::in_memory_with(&limited(&green)?, &options, &Handlers::new().middleware(limit)).await?;
    let refused = async {
        if let Err(error) = busy.call_tool("wait", json!({})).await {
            println!("one too many: error {}", error.code().unwrap_or_default());
        }
        green.add_permits(1);
    };
    let (other, ()) = tokio::join!(busy.call_tool("wait", json!({})), refused);
    println!("the other: {}", other?.text());
    println!("once more: {}", busy.call_tool("wait", json!({})).await?.text());
    if let Err(error) = busy.call_tool("wait", json!({})).await {
        let data: Value = error.data().and_then(|data| data.to().ok()).unwrap_or_default();
        let minutes = data["retryAfter"].as_f64().unwrap_or_default() / 60.0;
        println!("too often: error {}, again in {minutes:.0} minutes", error.code().unwrap_or_default());
    }
    busy.close().await;
    Ok(())
}
