//! The programs of the guides: `guides TOPIC`. Each module is a program of its own.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![allow(clippy::print_stdout, reason = "what the guides show")]

mod apps;
mod authorization;
mod caching;
mod capabilities_and_versions;
mod completion;
mod dynamic_servers;
mod elicitation;
mod errors;
mod extensions;
mod http_sse;
mod json_schema;
mod lifespan;
mod log_in;
mod log_messages;
mod log_routing;
mod many_servers;
mod middleware;
mod pagination;
mod ping;
mod progress_and_cancellation;
mod prompts;
mod protected_server;
mod resources;
mod resumption;
mod roots;
mod sampling;
mod shared_cache;
mod stdio;
mod streamable_http;
mod subscriptions;
mod tasks;
mod testing;
mod tools;
mod tracing;
mod web_frameworks;

fn main() -> tricorn::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("apps") => apps::main(),
        Some("authorization") => authorization::main(),
        Some("caching") => caching::main(),
        Some("capabilities-and-versions") => capabilities_and_versions::main(),
        Some("completion") => completion::main(),
        Some("dynamic-servers") => dynamic_servers::main(),
        Some("elicitation") => elicitation::main(),
        Some("errors") => errors::main(),
        Some("extensions") => extensions::main(),
        Some("http-sse") => http_sse::main(),
        Some("json-schema") => json_schema::main(),
        Some("lifespan") => lifespan::main(),
        Some("log-in") => log_in::main(),
        Some("log-messages") => log_messages::main(),
        Some("log-routing") => log_routing::main(),
        Some("many-servers") => many_servers::main(),
        Some("middleware") => middleware::main(),
        Some("pagination") => pagination::main(),
        Some("ping") => ping::main(),
        Some("progress-and-cancellation") => progress_and_cancellation::main(),
        Some("prompts") => prompts::main(),
        Some("protected-server") => protected_server::main(),
        Some("resources") => resources::main(),
        Some("resumption") => resumption::main(),
        Some("roots") => roots::main(),
        Some("sampling") => sampling::main(),
        Some("shared-cache") => shared_cache::main(),
        Some("stdio") => stdio::main(),
        Some("streamable-http") => streamable_http::main(),
        Some("subscriptions") => subscriptions::main(),
        Some("tasks") => tasks::main(),
        Some("testing") => testing::main(),
        Some("tools") => tools::main(),
        Some("tracing") => tracing::main(),
        Some("web-frameworks") => web_frameworks::main(),
        other => Err(tricorn::Error::misuse(format!("no topic {other:?}"))),
    }
}
