//! Tracing: which trace a request belongs to, on both sides.

use serde_json::{Value, json};
use tricorn::TraceContext;
use tricorn::prelude::*;
use tricorn::server::CreateMessageRequestParams;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn tell(who: &str, ctx: &Context) {
    let Some(trace) = ctx.trace_context() else { return println!("{who}: no trace") };
    let baggage = trace.baggage().map_or_else(|| "no baggage".to_owned(), |baggage| format!("baggage {baggage}"));
    let (span, id) = (trace.parent_id().unwrap_or_default(), trace.trace_id().unwrap_or_default());
    println!("{who}: span {span} of trace {id}, {baggage}");
}

fn server() -> Server {
    Server::new("tracing").tool("work", "Does something for a trace", |_: Nothing, ctx: Context| async move {
        tell("tool", &ctx);
        let question = CreateMessageRequestParams::new(9).user(&Content::text("And you?"));
        Ok(ctx.sample(&question).await?.text())
    })
}

async fn model(_: Value, ctx: Context) -> Result<Value, HandlerError> {
    tell("model", &ctx);
    Ok("Fine.".into())
}

/// Returns the current trace of your tracing system.
fn current() -> Option<TraceContext> {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    TraceContext::new(Some(parent), None, Some("tenant=7")).ok()
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let handlers = Handlers::new().sampling(model);

    let client = Client::in_memory_with(&app, &ClientOptions::new().trace_context(current), &handlers).await?;
    client.call_tool("work", json!({})).await?;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let other = TraceContext::new(Some(parent), None, None)?;
    client.call_tool_with("work", json!({}), &CallOptions::new().trace_context(other)).await?;
    client.close().await;

    let client = Client::in_memory_with(&app, &ClientOptions::new(), &handlers).await?;
    println!("malformed:");
    let by_hand = CallOptions::new().meta(json!({"traceparent": "who knows"}));
    client.call_tool_with("work", json!({}), &by_hand).await?;
    client.close().await;
    Ok(())
}
