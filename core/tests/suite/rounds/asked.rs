//! What a client says of questions that it cannot be asked.

use tricorn::ErrorKind;
use tricorn::client::Target;

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
