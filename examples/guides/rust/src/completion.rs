//! Completion: how the value of an argument may go on.

use std::collections::HashMap;

use serde_json::{Map, json};
use tricorn::model::{CompleteResult, Completion};
use tricorn::prelude::*;
use tricorn::server::{Kind, Parameters};

/// The parameters of `completion/complete`, as far as they matter here.
#[derive(Deserialize, JsonSchema)]
struct Asked {
    argument: Argument,
    #[serde(default)]
    context: Known,
}

#[derive(Deserialize, JsonSchema)]
struct Argument {
    value: String,
}

#[derive(Deserialize, JsonSchema, Default)]
struct Known {
    #[serde(default)]
    arguments: HashMap<String, String>,
}

fn begun<'a>(all: impl IntoIterator<Item = &'a str>, value: &str) -> Vec<String> {
    all.into_iter().filter(|one| one.starts_with(value)).map(str::to_owned).collect()
}

fn cities(country: Option<&String>) -> &'static [&'static str] {
    match country.map(String::as_str) {
        Some("france") => &["paris", "pau", "lyon"],
        Some("england") => &["plymouth", "london"],
        _ => &[],
    }
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    code: String,
    language: String,
    tone: Option<Tone>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kindly,
    Strictly,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    country: String,
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    number: String,
}

fn server() -> Server {
    // The choices of `tone` complete themselves.
    let languages = Parameters::default().complete("language", |asked: Asked| async move {
        Ok(begun(["python", "pypy", "rust"], &asked.argument.value))
    });
    let places = Parameters::default()
        .complete("country", |asked: Asked| async move { Ok(begun(["france", "england"], &asked.argument.value)) })
        // What is known already decides what is suggested.
        .complete("city", |asked: Asked| async move {
            let country = asked.context.arguments.get("country");
            Ok(begun(cities(country).iter().copied(), &asked.argument.value))
        });
    let numbers = Parameters::default().complete("number", |asked: Asked| async move {
        // Too many: the first hundred are sent.
        let all: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let values = begun(all.iter().map(String::as_str), &asked.argument.value);
        Ok(json!({"total": values.len(), "values": values}))
    });
    Server::new("completion")
        .prompt_with(Prompt::new("review").description("Review code"), languages, |review: Review| async move {
            let tone = if matches!(review.tone, Some(Tone::Strictly)) { "strictly" } else { "kindly" };
            Ok(format!("Review this {} {tone}: {}", review.language, review.code))
        })
        .resource_template_with(
            ResourceTemplate::new("weather://{country}/{city}", "weather").description("The weather of a city"),
            places,
            |Place { country, city }: Place| async move { Ok(format!("Rain in {city}, {country}")) },
        )
        .prompt_with(Prompt::new("count").description("Count to a number"), numbers, |count: Count| async move {
            Ok(format!("Count to {}.", count.number))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let client = Client::in_memory(&server(), &ClientOptions::default()).await?;

    let found = client.complete(Kind::Prompt, "review", "language", "py", None).await?;
    println!("language \"py\": {}", joined(&found));
    let found = client.complete(Kind::Prompt, "review", "tone", "", None).await?;
    println!("tone \"\": {}", joined(&found));
    for country in ["france", "england"] {
        let known = Map::from_iter([("country".to_owned(), json!(country))]);
        let template = "weather://{country}/{city}";
        let found = client.complete(Kind::ResourceTemplate, template, "city", "p", Some(&known)).await?;
        println!("city \"p\" in {country}: {}", joined(&found));
    }
    let found = client.complete(Kind::Prompt, "count", "number", "1", None).await?;
    let Completion { values, total, has_more, .. } = found.completion;
    let (total, more) = (total.unwrap_or_default(), has_more.unwrap_or_default());
    println!("number \"1\": {} of {total}, more: {more}", values.len());
    client.close().await;
    Ok(())
}

fn joined(found: &CompleteResult) -> String {
    found.completion.values.join(", ")
}
