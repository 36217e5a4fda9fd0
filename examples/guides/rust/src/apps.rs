//! MCP Apps: a tool with a user interface, a host that shows it, and a client that shows none.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tricorn::apps::{self, Permission, ResourceUi, ToolUi, Visibility};
use tricorn::prelude::*;

const MAP: &str = "ui://weather/map";

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
}

fn server() -> tricorn::Result<Server> {
    let map = ToolUi::new(MAP)?;
    let forecast = Tool::new("forecast", "The weather of the coming days").meta(map.meta());
    let for_app = map.clone().visibility([Visibility::App]);
    let refresh = Tool::new("refresh", "What it is like now, for the map").meta(for_app.meta());
    let alerts = Tool::new("alerts", "Warnings of storms").meta(map.visibility([Visibility::Model]).meta());
    let app = Server::new("weather")
        .extension(apps::extension())
        .tool_with(forecast, |Place { city }: Place, ctx: Context| async move {
            Ok(if apps::is_supported(&ctx) {
                format!("{city}: sunny. The map is on the screen.")
            } else {
                format!("{city}: sunny from Monday to Sunday, 21 to 25 degrees.")
            })
        })
        .tool_with(refresh, |Place { city }: Place| async move { Ok(format!("{city}: 22 degrees")) })
        .tool_with(alerts, || async { Ok("none") });
    let page = ResourceUi::new().connect_domains(["https://tiles.example.com"]).permission(Permission::Geolocation);
    apps::resource(app, MAP, &page, || "<h1>Weather</h1>")
}

/// Permissions and origins that the page asks for, as far as they matter here.
#[derive(Deserialize)]
struct Wanted {
    csp: Csp,
    permissions: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Csp {
    connect_domains: Vec<String>,
}

type Listed = Map<String, Value>;

fn name(tool: &Listed) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

fn names(tools: &[Listed], may: impl Fn(&Listed) -> bool) -> String {
    tools.iter().filter(|tool| may(tool)).map(name).collect::<Vec<_>>().join(", ")
}

async fn host(client: &Client) -> tricorn::Result<()> {
    let tools = client.list_tools().await?;
    println!("the model may call: {}", names(&tools, ToolUi::is_visible_to_model));
    println!("the page may call: {}", names(&tools, ToolUi::is_callable_by_app));
    let called = &tools[0]; // by the model
    println!("{}: {}", name(called), client.call_tool(name(called), json!({"city": "Rome"})).await?.text());
    if let Some(uri) = ToolUi::of(called).and_then(|ui| ui.resource_uri) {
        show(client, &uri).await?;
    }
    Ok(())
}

/// In a sandboxed frame, which may do what the contents ask for and the host allows.
async fn show(client: &Client, uri: &str) -> tricorn::Result<()> {
    let read = client.read_resource(uri).await?;
    let page = read.contents[0].members();
    println!("page: {uri}, {}, {}", page["mimeType"].as_str().unwrap_or_default(), read.text());
    if let Ok(wanted) = serde_json::from_value::<Wanted>(page["_meta"]["ui"].clone()) {
        println!("requests: {}", wanted.csp.connect_domains.join(", "));
        println!("permissions: {}", wanted.permissions.into_keys().collect::<Vec<_>>().join(", "));
    }
    // What the page calls goes through the host.
    println!("refresh: {}", client.call_tool("refresh", json!({"city": "Rome"})).await?.text());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server()?;
    println!("with user interfaces");
    let shows = ClientOptions::new().extension(apps::EXTENSION, apps::client_settings(&[apps::MIME_TYPE]));
    let client = Client::in_memory(&app, &shows).await?;
    host(&client).await?;
    client.close().await;

    println!("without");
    let client = Client::in_memory(&app, &ClientOptions::new()).await?;
    println!("forecast: {}", client.call_tool("forecast", json!({"city": "Rome"})).await?.text());
    client.close().await;
    Ok(())
}
