//! Resources, prompts, completion and questions to the client, as the official suite asks for them.

use std::time::Duration;

use serde_json::json;
use tricorn::Server;
use tricorn::model::{CacheHints, CacheScope, ReadResourceResult};
use tricorn::prelude::*;
use tricorn::server::{CreateMessageRequestParams, Parameters};

use crate::official::{Nothing, PNG};
use crate::questions::answered;

fn png() -> ResourceContents {
    // Base64 already.
    ResourceContents::blob([]).with("blob", PNG.into())
}

pub(crate) fn resources(app: Server, cached: bool) -> Server {
    #[derive(Deserialize, JsonSchema)]
    struct Variables {
        id: String,
    }
    let text = Resource::new("test://static-text", "static-text").mime_type("text/plain").description("A text");
    let own = CacheHints::new().ttl(Duration::from_secs(5)).scope(CacheScope::Public);
    let text = if cached { text.cache(own) } else { text };
    let binary = Resource::new("test://static-binary", "static-binary").mime_type("image/png").description("An image");
    let watched = Resource::new("test://watched-resource", "watched-resource").mime_type("text/plain");
    let several = Resource::new("test://several", "several").description("Two texts at once");
    let word = Resource::new("ask://word", "word").mime_type("text/plain");
    let template = ResourceTemplate::new("test://template/{id}/data", "template").mime_type("application/json");
    app.resource(text, || async { Ok("This is the content of the static text resource.") })
        .resource(binary, || async { Ok(png()) })
        .resource(watched, || async { Ok("This resource can be watched.") })
        .resource(several, || async {
            Ok(ReadResourceResult::new([
                ResourceContents::text("one").uri("test://several/1"),
                ResourceContents::text("two").uri("test://several/2").mime_type("text/markdown"),
            ]))
        })
        .resource(word, |_: Nothing, ctx: Context| async move {
            let form = json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]});
            let answer = ctx.elicit("Which word?", &form).await?;
            Ok(answered(&answer, "word", |word| format!("the word is {word}")))
        })
        .resource_template(template, |variables: Variables| async move {
            let id = variables.id;
            Ok(json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}))
        })
}

pub(crate) fn prompts(app: Server) -> Server {
    #[derive(Deserialize, JsonSchema)]
    struct Two {
        /// The first
        arg1: String,
        /// The second
        arg2: String,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Embedded {
        /// Whose contents to embed
        resource_uri: String,
    }
    #[derive(Deserialize)]
    struct Asked {
        argument: Argument,
    }
    #[derive(Deserialize)]
    struct Argument {
        value: String,
    }
    let complete = |asked: serde_json::Value| async move {
        let asked: Asked = serde_json::from_value(asked)?;
        let all = ["paris", "park", "party", "test"];
        Ok(all.into_iter().filter(|one| one.starts_with(&asked.argument.value)).map(str::to_owned).collect::<Vec<_>>())
    };
    let simple = Prompt::new("test_simple_prompt").description("Say one thing");
    let two = Prompt::new("test_prompt_with_arguments").description("Say two things");
    let embedded = Prompt::new("test_prompt_with_embedded_resource").description("Embed a resource");
    let image = Prompt::new("test_prompt_with_image").description("Show an image");
    app.prompt(simple, || async { Ok("This is a simple prompt for testing.") })
        .prompt_with(two, Parameters::default().complete("arg1", complete), |two: Two| async move {
            Ok(format!("Prompt with arguments: arg1='{}', arg2='{}'", two.arg1, two.arg2))
        })
        .prompt(embedded, |embedded: Embedded| async move {
            let text = "Embedded resource content for testing.";
            Ok(GetPromptResult::new([
                PromptMessage::user(Content::resource_text(embedded.resource_uri, "text/plain", text)),
                PromptMessage::user(Content::text("Please process the embedded resource above.")),
            ]))
        })
        .prompt(image, || async {
            Ok(GetPromptResult::new([
                PromptMessage::user(Content::image(PNG, "image/png")),
                PromptMessage::user(Content::text("Please analyze the image above.")),
            ]))
        })
}

/// Tools that ask their client.
pub(crate) fn questions(app: Server) -> Server {
    #[derive(Deserialize, JsonSchema)]
    struct ToModel {
        prompt: String,
    }
    #[derive(Deserialize, JsonSchema)]
    struct ToUser {
        message: String,
    }
    let defaults = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
    });
    let titled = json!([{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]);
    let enums = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    });
    app.tool("test_sampling", "Ask the client's model", |ask: ToModel, ctx: Context| async move {
        let question = CreateMessageRequestParams::new(100).user(&Content::text(ask.prompt));
        Ok(format!("LLM response: {}", ctx.sample(&question).await?.text()))
    })
    .tool("test_elicitation", "Ask the user", |ask: ToUser, ctx: Context| async move {
        let form = json!({
            "type": "object",
            "properties": {"username": {"type": "string"}, "email": {"type": "string", "format": "email"}},
            "required": ["username", "email"],
        });
        Ok(answer(&ctx.elicit(&ask.message, &form).await?))
    })
    .tool("test_reconnection", "End the stream before the answer", |_: Nothing, ctx: Context| async move {
        ctx.close_stream();
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok("Reconnection test completed successfully")
    })
    .tool("test_elicitation_sep1034_defaults", "Ask the user, with defaults", move |_: Nothing, ctx: Context| {
        let form = defaults.clone();
        async move { Ok(answer(&ctx.elicit("Please review these", &form).await?)) }
    })
    .tool("test_elicitation_sep1330_enums", "Let the user choose", move |_: Nothing, ctx: Context| {
        let form = enums.clone();
        async move { Ok(answer(&ctx.elicit("Please choose", &form).await?)) }
    })
}

fn answer(result: &tricorn::server::ElicitResult) -> String {
    let action = format!("{:?}", result.action).to_lowercase();
    format!("User response: action={action}, content={}", serde_json::Value::Object(result.content.clone()))
}
