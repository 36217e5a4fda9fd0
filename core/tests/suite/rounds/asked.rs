//! Tests of a client's answers to questions that it cannot be asked.

use tricorn::ErrorKind;
use tricorn::client::Target;
use tricorn::model::Content;
use tricorn::server::CreateMessageRequestParams;

use super::*;
use crate::http_client::server::{self, modern, result};

#[tokio::test]
async fn a_question_that_this_client_never_said_it_answers_is_the_servers_fault() {
    let url = json!({"mode": "url", "message": "go", "url": "https://example.com/", "elicitationId": "1"});
    for (question, why) in [
        (json!({"method": "roots/list"}), "the client does not declare what \"roots/list\" needs"),
        (json!({"method": "elicitation/create", "params": url}), "does not declare what \"elicitation/create\" needs"),
        (json!({"method": "elicitation/create", "params": [1]}), "\"params\": expected an object"),
        (json!({"method": "tools/list"}), "is no question"),
    ] {
        let server = server::Server::new(move |seen| {
            let asked = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"k": question}});
            modern(seen).unwrap_or_else(|| result(seen, &asked))
        })
        .await;
        let user = User::new(|_| json!({"action": "decline"}));
        let target = Target::from_text(&server.url()).unwrap();
        let handlers = Handlers::new().elicitation(user.clone());
        let client = Client::connect_with(&target, &ClientOptions::new(), &handlers).await.unwrap();
        let error = client.call_tool("t", json!({})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{error}");
        assert!(error.message().contains("\"inputRequests\": \"k\"") && error.message().contains(why), "{error}");
        assert!(user.asked().is_empty());
    }
}

/// Questions that go out together are all held back when one of them cannot be asked, whatever their order.
#[tokio::test]
async fn who_cannot_be_asked_everything_is_asked_nothing() {
    let questions = |turned: bool| {
        let prompt = CreateMessageRequestParams::new(5).user(&Content::text("hm?"));
        let mut all =
            vec![Question::elicit("name?", &form("name")), Question::sample(&prompt), Question::sample(&prompt)];
        if turned {
            all.reverse();
        }
        all
    };
    let server =
        Server::new("asks")
            .tool("all", "", move |_: Nothing, cx: Context| async move {
                cx.ask_all(questions(false)).await?;
                Ok("asked".to_owned())
            })
            .tool("turned", "", move |_: Nothing, cx: Context| async move {
                cx.ask_all(questions(true)).await?;
                Ok("asked".to_owned())
            })
            .tool("caught", "", move |_: Nothing, cx: Context| async move {
                Ok(cx.ask_all(questions(false)).await.is_err())
            })
            .tool("by hand", "", move |_: Nothing, _: Context| async move {
                let all = questions(false).into_iter().enumerate();
                let asked = all.fold(InputRequired::new(), |asked, (n, question)| asked.ask(n.to_string(), question));
                Err::<String, _>(asked.into())
            });
    for revision in REVISIONS {
        let user = User::new(|_| json!({"action": "accept", "content": {"name": "Ada"}}));
        let client = connected(&server, revision, &user).await;
        for tool in ["all", "turned", "by hand"] {
            let said = match client.call_tool(tool, json!({})).await {
                Ok(result) if result.is_error => result.text(),
                Ok(other) => panic!("{revision} {tool}: {}", other.text()),
                Err(error) => error.message().to_owned(),
            };
            assert_eq!(said.matches("\"sampling\"").count(), 1, "{revision} {tool}: {said}");
            assert!(user.asked().is_empty(), "{revision} {tool}");
        }
        assert_eq!(client.call_tool("caught", json!({})).await.unwrap().text(), "true", "{revision}");
        assert!(user.asked().is_empty(), "{revision}");
    }
}

#[tokio::test]
async fn pages_that_are_none_are_no_question() {
    let server = Server::new("asks").tool("visit", "", |_: Nothing, _: Context| async move {
        let error =
            tricorn::Error::rpc(-32042, "a page, please").with_data(RawJson::from_value(&json!({"elicitations": []})));
        Err::<String, _>(error.into())
    });
    let user = User::new(|_| json!({"action": "accept"}));
    let error = connected(&server, "2026-07-28", &user).await.call_tool("visit", json!({})).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some(-32603), "a page, please"));
}
