//! Tasks: tool calls that go on after their answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use tricorn::model::TaskStatus;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Bake {
    what: String,
}

fn server(step: &Arc<Semaphore>) -> Server {
    let step = step.clone();
    Server::new("bakery")
        .tasks(TaskOptions::new())
        .tool_with(
            Tool::new("bake", "Bake something").task_support(TaskSupport::Optional),
            move |Bake { what }: Bake, ctx: Context| {
                let step = step.clone();
                async move {
                    ctx.set_status("kneading");
                    step.acquire().await?.forget();
                    ctx.set_status("in the oven");
                    step.acquire().await?.forget();
                    Ok(format!("one {what}"))
                }
            },
        )
        .tool_with(
            Tool::new("cater", "Food for everybody, which takes days").task_support(TaskSupport::Required),
            || async { Ok("a feast") },
        )
        .tool("price", "What it costs", || async { Ok("3 euros") })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let step = Arc::new(Semaphore::new(0));
    let app = server(&step);
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory(&app, &options).await?;
    for tool in client.list_tools().await? {
        let support = tool.get("execution").and_then(|execution| execution["taskSupport"].as_str());
        println!("{}: {}", tool["name"].as_str().unwrap_or_default(), support.unwrap_or("forbidden"));
    }

    let calling = CallOptions::new();
    let ttl = Some(Duration::from_secs(600));
    let task = client.call_tool_task("bake", json!({"what": "cake"}), ttl, &calling).await?;
    println!("task: {}", task.status().await?.status.as_str());
    let mut changes = task.changes();
    while let Some(now) = changes.next().await? {
        if now.status == TaskStatus::Working
            && let Some(message) = &now.status_message
        {
            println!("{}: {message}", now.status.as_str());
            step.add_permits(1);
        }
    }
    println!("over: {}", task.status().await?.status.as_str());
    // The id is all it takes to come back.
    println!("result: {}", client.task(task.id()).result().await?.text());

    println!("cater: {}", client.call_tool("cater", json!({})).await?.text());

    let other = client.call_tool_task("bake", json!({"what": "bread"}), None, &calling).await?;
    println!("cancelled: {}", other.cancel().await?.status.as_str());
    let all: Vec<_> = client.tasks().await?.into_iter().map(|task| task.status.as_str()).collect();
    println!("all: {}", all.join(", "));

    if let Err(error) = client.call_tool_with("price", json!({}), &calling.task(None)).await
        && error.kind() == ErrorKind::Unsupported
    {
        println!("price: not as a task");
    }
    client.close().await;

    let options = options.revision("2026-07-28").tasks(TaskOptions::new());
    let modern = Client::in_memory(&app, &options).await?;
    println!("2026-07-28: {}", modern.call_tool("cater", json!({})).await?.text());
    modern.close().await;
    Ok(())
}
