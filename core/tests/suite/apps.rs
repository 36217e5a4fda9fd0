//! MCP Apps: what is declared, shown and read, in every revision.
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use tricorn::apps::{self, Permission, ResourceUi, ToolUi, Visibility};
use tricorn::prelude::*;

const MAP: &str = "ui://weather/map";

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn weather() -> Server {
    let ui = ResourceUi::new()
        .connect_domains(["https://tiles.example.com"])
        .permission(Permission::Geolocation)
        .permission(Permission::ClipboardWrite)
        .prefers_border(true);
    let own = ToolUi::new(MAP).unwrap().visibility([Visibility::App]);
    let app = Server::new("weather")
        .extension(apps::extension())
        .tool_with(Tool::new("forecast", "").meta(own.meta()), async |_: Nothing, cx: Context| {
            Ok(if apps::is_supported(&cx) { "a map" } else { "sunny" })
        })
        .tool_with(Tool::new("older", "").meta(json!({"ui/resourceUri": MAP})), async || Ok("x"))
        .tool_with(Tool::new("plain", ""), async || Ok("x"));
    apps::resource(app, MAP, &ui, || "<h1>Map</h1>").unwrap()
}

async fn client(revision: &str, mime_type: &str) -> Client {
    let settings = apps::client_settings(&[mime_type]);
    let options = ClientOptions::new().revision(revision).extension(apps::EXTENSION, settings);
    Client::in_memory(&weather(), &options).await.unwrap()
}

async fn said(client: &Client) -> Value {
    let result = client.call_tool("forecast", json!({})).await.unwrap();
    serde_json::to_value(result).unwrap()["content"][0]["text"].clone()
}

#[tokio::test]
async fn a_tool_has_a_user_interface() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = client(revision, apps::MIME_TYPE).await;
        assert!(client.capabilities().has_extension(apps::EXTENSION), "{revision}");
        assert_eq!(said(&client).await, "a map", "{revision}");
        let read = client.read_resource(MAP).await.unwrap();
        let contents = read.contents[0].members();
        assert_eq!(contents["text"], "<h1>Map</h1>", "{revision}");
        assert_eq!(contents["mimeType"], apps::MIME_TYPE, "{revision}");
        let tools = client.list_tools().await.unwrap();
        if !matches!(revision, "2024-11-05" | "2025-03-26") {
            let ui = json!({
                "csp": {"connectDomains": ["https://tiles.example.com"]},
                "permissions": {"geolocation": {}, "clipboardWrite": {}},
                "prefersBorder": true,
            });
            assert_eq!(contents["_meta"], json!({"ui": ui}), "{revision}");
            assert_eq!(tools[0]["_meta"], json!({"ui": {"resourceUri": MAP, "visibility": ["app"]}}), "{revision}");
            let own = ToolUi::new(MAP).unwrap();
            assert_eq!(ToolUi::of(&tools[0]), Some(own.clone().visibility([Visibility::App])));
            assert_eq!(ToolUi::of(&tools[1]), Some(own));
            assert_eq!(ToolUi::of(&tools[2]), None);
            let visible: Vec<_> = tools.iter().map(ToolUi::is_visible_to_model).collect();
            assert_eq!(visible, [false, true, true], "{revision}");
            assert!(tools.iter().all(ToolUi::is_callable_by_app));
        }
    }
}

#[tokio::test]
async fn who_shows_no_user_interface_gets_the_text() {
    assert_eq!(said(&client("2026-07-28", "text/x").await).await, "sunny");
    let plain = Client::in_memory(&weather(), &ClientOptions::new()).await.unwrap();
    assert_eq!(said(&plain).await, "sunny");
}

#[tokio::test]
async fn a_user_interface_says_of_itself_what_resources_say() {
    let of_itself = Resource::new("ui://a/b", "b").title("B").description("The page").mime_type("text/plain");
    let server = apps::resource_with(Server::new("s"), of_itself, &ResourceUi::new(), || "<p>").unwrap();
    let client = Client::in_memory(&server, &ClientOptions::new()).await.unwrap();
    let listed = client.list_resources().await.unwrap();
    let listed = serde_json::to_value(&listed[0]).unwrap();
    let wanted =
        json!({"uri": "ui://a/b", "name": "b", "title": "B", "description": "The page", "mimeType": apps::MIME_TYPE});
    assert_eq!(listed, wanted);
    assert_eq!(ToolUi::default().visibility([Visibility::Model]).meta(), json!({"ui": {"visibility": ["model"]}}));
}

#[test]
fn what_is_wrong_is_named() {
    let error = ToolUi::new("https://example.com").unwrap_err();
    assert!(error.message().contains("resource_uri: expected a URI that begins with ui://"), "{error}");
    let error = apps::resource(Server::new("x"), "x:y", &ResourceUi::new(), || "").unwrap_err();
    assert!(error.message().contains("uri: expected"), "{error}");
}

#[test]
fn what_others_list_is_read_with_care() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../../tests/apps.json")).unwrap();
    for case in &cases {
        let tool = json!({"name": "t", "_meta": case["meta"]}).as_object().unwrap().clone();
        let ui = ToolUi::of(&tool).map_or(Value::Null, |ui| json!(ui));
        assert_eq!(ui, case["ui"], "{case}");
        assert_eq!(ToolUi::is_visible_to_model(&tool), case["model"] == true, "{case}");
        assert_eq!(ToolUi::is_callable_by_app(&tool), case["app"] == true, "{case}");
    }
}
