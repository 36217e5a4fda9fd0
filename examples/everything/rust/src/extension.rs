//! An extension of the protocol: requests, a type of results and a notification of its own.

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::{Extension, HandlerError};

const SEARCH: &str = "com.example/search";
const FOUND: &str = "notifications/com.example/found";

#[derive(Deserialize, JsonSchema)]
struct Query {
    query: String,
}

/// `server` is what `app` will be.
pub(crate) fn search(app: Server, server: &Server) -> Server {
    let server = server.clone();
    let search = Extension::new(SEARCH)
        .settings(json!({"languages": ["en"]}))
        .idempotent_method(SEARCH, async |asked: Query, cx: Context| {
            let wanted: Option<Value> = cx.extension(SEARCH).map(|settings| settings.to()).transpose()?;
            Ok::<_, HandlerError>(json!({"found": [asked.query], "wanted": wanted}))
        })
        .method("com.example/later", async || {
            Ok::<_, HandlerError>(json!({"resultType": "com.example/later", "at": 7}))
        })
        .method("com.example/fails", async || Err::<Value, _>(Error::rpc(-31050, "no such index").into()))
        .method("com.example/announce", move |asked: Query| {
            let server = server.clone();
            async move {
                let params = RawJson::from_value(&json!({"query": asked.query}));
                server.notify(FOUND, Some(params), Some(&asked.query))?;
                Ok(json!({}))
            }
        })
        .notification(FOUND, "com.example/queries");
    app.extension(search)
}
