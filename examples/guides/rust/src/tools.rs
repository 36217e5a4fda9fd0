//! Tools: a server that has some, and a client that calls them.

use serde_json::json;
use tricorn::prelude::*;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Divide {
    /// The dividend
    a: f64,
    /// The divisor
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    celsius: f64,
}

fn server() -> Server {
    let weather = Tool::new("weather", "Today's weather").annotations(&ToolAnnotations::new().read_only());
    Server::new("tools")
        .tool("add", "Add two numbers", |Add { a, b }: Add| async move { Ok(a + b) })
        .tool("divide", "Divide one number by another", |Divide { a, b }: Divide| async move {
            if b == 0.0 {
                return Err(HandlerError::new("cannot divide by zero"));
            }
            Ok(a / b)
        })
        .tool_with(weather, |Place { city }: Place| async move { Ok(Weather { city, celsius: 22.5 }) })
        .tool("picture", "Draw a dot", || async { Ok(Content::image(PNG, "image/png")) })
        .tool("sound", "Record silence", || async { Ok(Content::audio(WAV, "audio/wav")) })
        .tool("manual", "The manual", || async {
            Ok(Content::resource_text("manual://radio", "text/plain", "Turn it off and on again."))
        })
        .tool("report", "A text with a picture", || async {
            Ok(CallToolResult::new([
                Content::text("This is the dot."),
                Content::image(PNG, "image/png"),
                Content::resource_link("manual://radio", "manual"),
            ]))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let client = Client::in_memory(&server(), &ClientOptions::default()).await?;

    for tool in client.list_tools().await? {
        println!("{}: {}", tool["name"].as_str().unwrap_or_default(), tool["description"].as_str().unwrap_or_default());
    }

    let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    println!("add: {}", sum.structured_as::<i64>()?);

    let weather: Weather = client.call_tool("weather", json!({"city": "Rome"})).await?.structured_as()?;
    println!("weather: {} °C in {}", weather.celsius, weather.city);

    let failed = client.call_tool("divide", json!({"a": 1, "b": 0})).await?;
    println!("divide: is_error={}, {}", failed.is_error, failed.text());
    let wrong = client.call_tool("divide", json!({"a": "one", "b": 2})).await?;
    println!("divide: is_error={}, {}", wrong.is_error, wrong.text());
    if let Err(error) = client.call_tool("multiply", json!({})).await {
        println!("multiply: error {}", error.code().unwrap_or_default());
    }

    for name in ["picture", "sound", "manual", "report"] {
        for block in client.call_tool(name, json!({})).await?.content {
            let members = block.members();
            let what = match block.kind() {
                "text" => members["text"].as_str(),
                "image" | "audio" => members["mimeType"].as_str(),
                "resource" => members["resource"]["text"].as_str(),
                _ => members["uri"].as_str(),
            };
            println!("{name}: {} {}", block.kind(), what.unwrap_or_default());
        }
    }
    client.close().await;
    Ok(())
}
