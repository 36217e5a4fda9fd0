//! The benchmark client, steered by the environment: see `benches/`.
#![expect(clippy::print_stdout, reason = "READY and DONE go to the harness")]

use std::env::var;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tricorn::prelude::*;

const UNIT: &str = "The quick brown fox jumps over the lazy dog; \"quoted\" text, caf\u{e9} cr\u{e8}me.\n";

struct Plan {
    scenario: String,
    concurrency: usize,
    tools: usize,
    text: String,
}

fn number(name: &str) -> usize {
    var(name).ok().and_then(|v| v.parse().ok()).unwrap_or_default()
}

fn text(scenario: &str) -> String {
    let len = match scenario {
        "echo-1k" => 1 << 10,
        "echo-64k" => 1 << 16,
        "echo-1m" => 1 << 20,
        _ => 0,
    };
    let mut text = UNIT.repeat(len / UNIT.len());
    text.push_str(&"x".repeat(len - text.len()));
    text
}

async fn one(client: &Client, plan: &Plan, n: usize) -> tricorn::Result<bool> {
    if plan.scenario == "list" {
        return Ok(client.list_tools().await?.len() == plan.tools);
    }
    if plan.text.is_empty() {
        let result = client.call_tool("add", json!({"a": n, "b": 7})).await?;
        #[derive(Deserialize)]
        struct Sum {
            sum: usize,
        }
        return Ok(result.structured_as::<Sum>()?.sum == n + 7);
    }
    let result = client.call_tool("echo", json!({"text": plan.text})).await?;
    Ok(result.content.first().and_then(|c| c.as_text()) == Some(plan.text.as_str()))
}

async fn phase(client: &Client, plan: &Arc<Plan>, count: usize) -> (usize, usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..plan.concurrency {
        let (client, plan, next) = (client.clone(), plan.clone(), next.clone());
        workers.spawn(async move {
            let (mut ok, mut failed) = (0, 0);
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return (ok, failed);
                }
                match one(&client, &plan, n).await {
                    Ok(true) => ok += 1,
                    Ok(false) => failed += 1,
                    Err(error) => {
                        eprintln!("{error}");
                        failed += 1;
                    }
                }
            }
        });
    }
    let done = workers.join_all().await;
    done.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<()> {
    let scenario = var("BENCH_SCENARIO").unwrap_or_else(|_| "call-add".into());
    let text = text(&scenario);
    let plan = Arc::new(Plan {
        scenario,
        concurrency: number("BENCH_CONCURRENCY").max(1),
        tools: number("BENCH_TOOLS"),
        text,
    });
    let place = if var("BENCH_TRANSPORT").as_deref() == Ok("http") { "BENCH_URL" } else { "BENCH_SERVER_CMD" };
    let target: Target = var(place).map_err(|_| Error::misuse(format!("{place} is not set")))?.parse()?;
    let options = var("BENCH_PROTO").into_iter().fold(ClientOptions::new(), ClientOptions::revision);
    let client = Client::connect(&target, &options).await?;
    phase(&client, &plan, number("BENCH_WARMUP")).await;
    println!("READY tricorn-rust {}", client.revision());
    std::io::stdout().flush()?;
    let mut line = String::new();
    let line = tokio::task::spawn_blocking(move || std::io::stdin().lock().read_line(&mut line).map(|_| ()));
    line.await.map_err(|e| Error::misuse(e.to_string()))??;
    let (ok, failed) = phase(&client, &plan, number("BENCH_N")).await;
    println!("DONE {ok} {failed}");
    std::io::stdout().flush()?;
    // Stay until the harness has read the process's figures.
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    client.close().await;
    Ok(())
}
