//! A server on the official Rust SDK: `rmcp-server --stdio | --http HOST:PORT`.

use anyhow::{Context, bail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use std::sync::Arc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    temperature: f64,
    conditions: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Kind {
    kind: String,
}

#[derive(Clone)]
struct Fixture {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Fixture {
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Return the text unchanged")]
    fn echo(&self, Parameters(Message { text }): Parameters<Message>) -> String {
        text
    }

    #[tool(description = "A weather report")]
    fn structured(&self, Parameters(Place { city }): Parameters<Place>) -> Json<Weather> {
        Json(Weather { city, temperature: 22.5, conditions: "sunny".to_owned() })
    }

    #[tool(description = "Fail when asked to")]
    fn fail(&self, Parameters(Kind { kind }): Parameters<Kind>) -> CallToolResult {
        match kind.as_str() {
            "tool" => CallToolResult::error(vec![ContentBlock::text("the tool says no")]),
            _ => CallToolResult::success(vec![ContentBlock::text("no failure")]),
        }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

async fn run() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let fixture = Fixture { tool_router: Fixture::tool_router() };
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio"] => {
            fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        ["--http", address] => {
            let config = StreamableHttpServerConfig::default();
            let sessions = Arc::new(LocalSessionManager::default());
            let service = StreamableHttpService::new(move || Ok(fixture.clone()), sessions, config);
            let app = axum::Router::new().nest_service("/mcp", service);
            let listener = tokio::net::TcpListener::bind(address).await.context("cannot listen")?;
            eprintln!("ready http://{}/mcp", listener.local_addr()?);
            axum::serve(listener, app).await?;
        }
        _ => bail!("rmcp-server --stdio | --http HOST:PORT"),
    }
    Ok(())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run()));
    if let Err(error) = &result {
        eprintln!("{error:#}");
    }
    // The runtime's stdin thread may still be blocked in a read.
    std::process::exit(i32::from(result.is_err()));
}
