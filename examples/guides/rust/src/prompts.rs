//! Prompts: texts and conversations that the user picks.

use serde_json::{Value, json};
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// What to review
    code: String,
    tone: Option<Tone>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kindly,
    Strictly,
}

#[derive(Deserialize, JsonSchema)]
struct Explain {
    uri: String,
}

fn server() -> Server {
    Server::new("prompts")
        .prompt(Prompt::new("standup").description("Begin the day"), || async { Ok("What did you do yesterday?") })
        .prompt(Prompt::new("review").description("Review code"), |Review { code, tone }: Review| async move {
            let tone = if matches!(tone, Some(Tone::Strictly)) { "strictly" } else { "kindly" };
            Ok(format!("Review this {tone}: {code}"))
        })
        .prompt(Prompt::new("explain").description("Explain a text"), |Explain { uri }: Explain| async move {
            Ok(GetPromptResult::new([
                PromptMessage::user(Content::resource_text(uri, "text/plain", "Turn it off and on again.")),
                PromptMessage::user("Explain the text above.".into()),
            ]))
        })
        .prompt(Prompt::new("caption").description("Show how pictures are described"), || async {
            Ok(GetPromptResult::new([
                PromptMessage::user(Content::image("iVBORw==", "image/png")),
                PromptMessage::assistant("A dot.".into()),
            ]))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let client = Client::in_memory(&server(), &ClientOptions::default()).await?;

    for prompt in client.list_prompts().await? {
        let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<_> = arguments
            .map(|a| format!("{}{}", text(&a["name"]), if a["required"] == true { " (required)" } else { "" }))
            .collect();
        let names = if names.is_empty() { "-".to_owned() } else { names.join(", ") };
        println!("{}: {names}", text(&prompt["name"]));
    }

    show(&client, "standup", json!({})).await?;
    show(&client, "review", json!({"code": "x = 1", "tone": "strictly"})).await?;
    if let Err(error) = client.get_prompt("review", ()).await {
        println!("review: error {}, {}", error.code().unwrap_or_default(), error.message());
    }
    show(&client, "explain", json!({"uri": "file:///radio.txt"})).await?;
    show(&client, "caption", json!({})).await?;
    client.close().await;
    Ok(())
}

async fn show(client: &Client, name: &str, arguments: Value) -> tricorn::Result<()> {
    let result = client.get_prompt(name, arguments).await?;
    for message in result["messages"].as_array().into_iter().flatten() {
        let (role, content) = (text(&message["role"]), &message["content"]);
        match text(&content["type"]) {
            "text" => println!("{name}: {role} text {}", content["text"]),
            "image" => println!("{name}: {role} image {}", text(&content["mimeType"])),
            _ => println!("{name}: {role} resource {}", text(&content["resource"]["uri"])),
        }
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
