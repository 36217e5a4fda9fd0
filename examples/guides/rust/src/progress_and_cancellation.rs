//! Progress and cancellation: how far a call is, and that nobody wants its answer any more.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Print {
    pages: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Signals of a call of `watch`.
#[derive(Default)]
struct Watching {
    started: Notify,
    stopped: Notify,
}

/// A cancelled handler's future is dropped, wherever it waits, and so is this.
struct Watch(Arc<Watching>);

impl Drop for Watch {
    fn drop(&mut self) {
        println!("server: stopped");
        self.0.stopped.notify_one();
    }
}

fn server(watching: &Arc<Watching>) -> Server {
    let watching = watching.clone();
    Server::new("printer")
        .tool("print", "Print some pages", |Print { pages }: Print, ctx: Context| async move {
            for page in 1..=pages {
                ctx.progress(page.into(), Some(pages.into()), Some(&format!("page {page}")));
            }
            Ok(format!("printed {pages} pages"))
        })
        .tool("watch", "Watch the printer for ever", move |_: Nothing| {
            let watch = Watch(watching.clone());
            async move {
                watch.0.started.notify_one();
                std::future::pending::<()>().await;
                Ok("never")
            }
        })
}

#[derive(Deserialize)]
struct Progress {
    progress: f64,
    total: f64,
    message: String,
}

fn show(progress: &RawJson) {
    if let Ok(Progress { progress, total, message }) = progress.to() {
        println!("{progress} of {total}: {message}");
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let watching = Arc::new(Watching::default());
    let client = Client::in_memory(&server(&watching), &ClientOptions::default()).await?;

    let options = CallOptions::new().on_progress(|progress| show(&progress));
    let result = client.call_tool_with("print", json!({"pages": 3}), &options).await?;
    println!("print: {}", result.text());

    // Dropping the call's future cancels it, as `abort` does here.
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.call_tool("watch", json!({})).await });
    watching.started.notified().await;
    call.abort();
    watching.stopped.notified().await;
    println!("call: {}", if call.await.is_err() { "cancelled" } else { "answered" });

    let options = CallOptions::new().timeout(Duration::from_millis(200));
    match client.call_tool_with("watch", json!({}), &options).await {
        Err(error) if error.kind() == ErrorKind::Timeout => {
            watching.stopped.notified().await;
            println!("call: no answer in time");
        }
        other => println!("call: {other:?}"),
    }
    client.close().await;
    Ok(())
}
