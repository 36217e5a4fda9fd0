//! {{name}}, a server of the Model Context Protocol: standard streams, or HTTP with `--http 127.0.0.1:8000`.

use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn server() -> Server {
    Server::new("{{name}}").version("0.1.0").tool(
        "add",
        "Add two numbers",
        |Add { a, b }: Add, _: Context| async move { Ok(a + b) },
    )
}

#[tokio::main]
async fn main() -> tricorn::Result<ExitCode> {
    server().run().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn adds() -> tricorn::Result<()> {
        let client = Client::in_memory(&server(), &ClientOptions::default()).await?;
        assert_eq!(client.call_tool("add", json!({"a": 1, "b": 2})).await?.text(), "3");
        let wrong = client.call_tool("add", json!({"a": "one", "b": 2})).await?;
        assert!(wrong.is_error && wrong.text().contains("expected integer"), "{}", wrong.text());
        client.close().await;
        Ok(())
    }
}
