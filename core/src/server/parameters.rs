//! Variables of resource templates and arguments of prompts.

use std::sync::Arc;

use serde_json::Value;

use super::IntoHandler;
use crate::call::Handler;

/// Properties of a resource template or a prompt that its definition does not have.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
/// use tricorn::server::{Kind, Parameters};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Asked { argument: Begun }
/// #[derive(Deserialize, JsonSchema)]
/// struct Begun { value: String }
/// #[derive(Deserialize, JsonSchema)]
/// struct Place { city: String }
///
/// let cities = Parameters::default().complete("city", async |Asked { argument }: Asked| {
///     let all = ["london", "lyon", "rome"].into_iter();
///     Ok(all.filter(|city| city.starts_with(&argument.value)).collect::<Vec<_>>())
/// });
/// let weather = ResourceTemplate::new("weather://{city}", "weather");
/// let server = Server::new("weather")
///     .resource_template_with(weather, cities, async |Place { city }: Place| Ok(format!("Rain in {city}")));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// # let found = client.complete(Kind::ResourceTemplate, "weather://{city}", "city", "l", None).await?;
/// # assert_eq!(found.completion.values, ["london", "lyon"]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct Parameters {
    /// JSON Schema (an object's) of the variables or arguments. They come as text; what the schema wants otherwise is
    /// read as JSON, and all of it is checked before the handler runs. Default: text.
    pub schema: Option<Value>,
    /// Completion handlers, by the names of the variables or arguments. A handler gets the parameters of
    /// `completion/complete`, and answers with an array of strings or `{"values", "total"?, "hasMore"?}`. An `enum` of
    /// the schema completes itself.
    pub completions: Vec<(String, Arc<dyn Handler>)>,
    /// True if the handler checks the variables or arguments itself, as one does that was made of a type by a library which
    /// knows more than its JSON Schema says. They are still made of text as `schema` says. Default: false.
    pub judged: bool,
}

impl Parameters {
    /// With this schema.
    #[must_use]
    pub fn of(schema: Option<Value>) -> Self {
        Self { schema, ..Self::default() }
    }

    /// Completes the one called `name`.
    #[must_use]
    pub fn complete<M, F: IntoHandler<M>>(mut self, name: &str, function: F) -> Self {
        self.completions.push((name.to_owned(), function.into_handler()));
        self
    }
}
