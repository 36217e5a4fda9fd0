//! A server that asks another one.

use tricorn::server::{IntoHandler, Kind};

use super::*;

#[tokio::test]
async fn rounds_of_one_server_are_nothing_to_the_one_behind_it() {
    let asks = |_: Nothing, cx: Context| async move {
        let answer = cx.elicit("inner?", &form("inner")).await?;
        Ok(answer.content["inner"].as_str().unwrap_or_default().to_owned())
    };
    let behind = Server::new("behind").tool("far", "", asks).prompt(Prompt::new("far"), asks);
    let user = User::new(|message| {
        let name = message.trim_end_matches('?');
        json!({"action": "accept", "content": {name: format!("<{name}>")}})
    });
    let inner = connected(&behind, "2026-07-28", &user).await;
    let server = Server::new("before");
    for (kind, method) in [(Kind::Tool, "tools/call"), (Kind::Prompt, "prompts/get")] {
        let inner = inner.clone();
        let get = move |params: Value, cx: Context| {
            let inner = inner.clone();
            async move {
                cx.elicit("outer?", &form("outer")).await?;
                assert!(params.get("requestState").is_none() && params.get("inputResponses").is_none(), "{params}");
                let result = inner.request(method, Some(RawJson::from_value(&params)), &CallOptions::new()).await?;
                Ok(result.to::<Value>().unwrap())
            }
        };
        server.set_source(kind, None, Some(get.into_handler()));
    }
    let client = connected(&server, "2026-07-28", &user).await;
    for method in ["tools/call", "prompts/get"] {
        let params = json!({"name": "far", "requestState": "another's", "inputResponses": {"a": 1}});
        // Those that the parameters have are not of this request either.
        let result = client.request(method, Some(RawJson::from_value(&params)), &CallOptions::new()).await.unwrap();
        assert!(result.get().contains("<inner>"), "{result}");
        assert_eq!(user.asked(), ["outer?", "inner?"], "{method}");
    }
}
