//! Questions in every revision that has them: one handler, asked by requests or in rounds.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod asked;
mod behind;
mod by_hand;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers, Roots};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::model::{Prompt, Resource};
use tricorn::prelude::*;
use tricorn::server::{ElicitAction, ElicitResult, InputRequired, ListRootsResult, Question};
use tricorn::{Handler, Reply};

const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Answers with what it is given for a message, and keeps the messages.
struct User {
    answers: fn(&str) -> Value,
    asked: Mutex<Vec<String>>,
}

impl User {
    fn new(answers: fn(&str) -> Value) -> Arc<Self> {
        Arc::new(Self { answers, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Handler for User {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let params: Value = params.to().unwrap();
        let message = params["message"].as_str().unwrap();
        self.asked.lock().unwrap().push(message.to_owned());
        reply.value(RawJson::from_value(&(self.answers)(message)));
    }
}

async fn connected(server: &Server, revision: &str, user: &Arc<User>) -> Client {
    let options = ClientOptions::new().revision(revision);
    Client::in_memory_with(server, &options, &Handlers::new().elicitation(user.clone())).await.unwrap()
}

fn form(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

#[tokio::test]
async fn one_question_is_accepted_declined_or_cancelled() {
    let server = Server::new("asks").tool("name", "", |_: Nothing, cx: Context| async move {
        let answer = cx.elicit("name?", &form("name")).await?;
        Ok(match answer.action {
            ElicitAction::Accept => format!("hello {}", answer.content["name"].as_str().unwrap_or("?")),
            other => format!("{other:?}"),
        })
    });
    for revision in REVISIONS {
        type Answers = fn(&str) -> Value;
        let answers: [(Answers, &str); 3] = [
            (|_| json!({"action": "accept", "content": {"name": "Ada"}}), "hello Ada"),
            (|_| json!({"action": "decline"}), "Decline"),
            (|_| json!({"action": "cancel"}), "Cancel"),
        ];
        for (answer, expected) in answers {
            let user = User::new(answer);
            let client = connected(&server, revision, &user).await;
            let result = client.call_tool("name", json!({})).await.unwrap();
            assert_eq!(result.text(), expected, "{revision}");
            assert_eq!(user.asked(), ["name?"], "{revision}");
        }
    }
}

#[tokio::test]
async fn questions_follow_one_another_and_a_step_is_done_once() {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let server = Server::new("asks").tool("three", "", move |_: Nothing, cx: Context| {
        let steps = counted.clone();
        async move {
            let mut given = Vec::new();
            let ordered = cx.step("order", async { steps.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            // The same question twice is two questions.
            for name in ["a", "b", "b"] {
                let answer = cx.elicit(&format!("{name}?"), &form(name)).await?;
                given.push(answer.content[name].as_str().unwrap_or_default().to_owned());
            }
            Ok(format!("{ordered}: {}", given.join(" ")))
        }
    });
    for revision in REVISIONS {
        steps.store(0, Ordering::SeqCst);
        let user = User::new(|message| {
            let name = message.trim_end_matches('?');
            json!({"action": "accept", "content": {name: format!("<{name}>")}})
        });
        let client = connected(&server, revision, &user).await;
        let result = client.call_tool("three", json!({})).await.unwrap();
        assert_eq!(result.text(), "1: <a> <b> <b>", "{revision}");
        assert_eq!(user.asked(), ["a?", "b?", "b?"], "{revision}");
        assert_eq!(steps.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[tokio::test]
async fn two_questions_at_once_are_one_round() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let server = Server::new("asks").tool("both", "", move |_: Nothing, cx: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let (a, b) = (form("a"), form("b"));
            let (a, b) = tokio::join!(cx.elicit("a?", &a), cx.elicit("b?", &b));
            Ok(format!("{} {}", a?.content["a"], b?.content["b"]))
        }
    });
    for revision in REVISIONS {
        runs.store(0, Ordering::SeqCst);
        let user = User::new(|message| {
            let name = message.trim_end_matches('?');
            json!({"action": "accept", "content": {name: name}})
        });
        let client = connected(&server, revision, &user).await;
        assert_eq!(client.call_tool("both", json!({})).await.unwrap().text(), "\"a\" \"b\"", "{revision}");
        let mut asked = user.asked();
        asked.sort();
        assert_eq!(asked, ["a?", "b?"], "{revision}");
        assert_eq!(runs.load(Ordering::SeqCst), if revision == "2026-07-28" { 2 } else { 1 }, "{revision}");
    }
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let server = Server::new("asks")
        .prompt(Prompt::new("letter"), |_: Nothing, cx: Context| async move {
            let answer = cx.elicit("to whom?", &form("to")).await?;
            Ok(format!("a letter to {}", answer.content["to"].as_str().unwrap_or("?")))
        })
        .resource(Resource::new("memo://x", "memo"), |_: Nothing, cx: Context| async move {
            let answer = cx.elicit("which?", &form("which")).await?;
            Ok(format!("memo {}", answer.content["which"].as_str().unwrap_or("?")))
        });
    for revision in REVISIONS {
        let user = User::new(|message| match message {
            "to whom?" => json!({"action": "accept", "content": {"to": "Bob"}}),
            _ => json!({"action": "accept", "content": {"which": "7"}}),
        });
        let client = connected(&server, revision, &user).await;
        let prompt = client.get_prompt("letter", json!({})).await.unwrap();
        assert!(json!(prompt).to_string().contains("a letter to Bob"), "{revision}");
        assert_eq!(client.read_resource("memo://x").await.unwrap().text(), "memo 7", "{revision}");
    }
}

#[tokio::test]
async fn a_handler_that_asks_something_else_is_told_of_both() {
    let runs = Arc::new(AtomicUsize::new(0));
    let server = Server::new("asks").tool("odd", "", move |_: Nothing, cx: Context| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            let answer = cx.elicit(&format!("question {run}?"), &form("x")).await?;
            Ok(answer.content["x"].to_string())
        }
    });
    let user = User::new(|_| json!({"action": "accept", "content": {"x": "y"}}));
    let client = connected(&server, "2026-07-28", &user).await;
    let error = client.call_tool("odd", json!({})).await.unwrap_err();
    assert_eq!(error.code(), Some(-32603));
    let message = error.message();
    assert!(message.contains("question 0?") && message.contains("question 1?"), "{message}");
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let server = Server::new("asks").tool("name", "", |_: Nothing, cx: Context| async move {
        Ok(cx.elicit("name?", &form("name")).await?.content["name"].to_string())
    });
    for revision in REVISIONS {
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
        match client.call_tool("name", json!({})).await {
            // What it is called in the revision that has a code for it.
            Err(error) if revision == "2026-07-28" => {
                assert_eq!(error.code(), Some(-32021));
                let data: Value = error.data().unwrap().to().unwrap();
                assert_eq!(data, json!({"requiredCapabilities": {"elicitation": {}}}));
            }
            outcome => {
                let result = outcome.unwrap();
                assert!(result.is_error && result.text().contains("\"elicitation\""), "{revision}: {}", result.text());
            }
        }
    }
}

#[tokio::test]
async fn a_refused_question_is_known_whatever_its_words() {
    let form_of = |name: &'static str| Question::elicit("name?", &form(name));
    let server = Server::new("asks")
        .tool("reworded", "", |_: Nothing, cx: Context| async move {
            let asked = cx.elicit("name?", &form("name")).await;
            let answer = asked.map_err(|e| Error::new(e.kind(), format!("booking: {}", e.message())))?;
            Ok(answer.content["name"].to_string())
        })
        .tool("second", "", move |_: Nothing, cx: Context| async move {
            let _ = cx.ask_all([form_of("x")]).await;
            cx.ask_all([Question::list_roots()]).await?;
            Ok("asked".to_owned())
        })
        .tool("other", "", |_: Nothing, cx: Context| async move {
            let _ = cx.elicit("name?", &form("name")).await;
            Err::<String, _>(HandlerError::new("there is no room"))
        });
    let options = ClientOptions::new().revision("2026-07-28");
    let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
    for (tool, required) in [("reworded", json!({"elicitation": {}})), ("second", json!({"roots": {}}))] {
        let error = client.call_tool(tool, json!({})).await.unwrap_err();
        assert_eq!(error.code(), Some(-32021), "{tool}: {error}");
        assert_eq!(error.data().unwrap().to::<Value>().unwrap(), json!({"requiredCapabilities": required}), "{tool}");
    }
    assert_eq!(client.call_tool("other", json!({})).await.unwrap().text(), "there is no room");
    let options = ClientOptions::new().revision("2025-11-25");
    let older = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
    let result = older.call_tool("reworded", json!({})).await.unwrap();
    assert!(result.is_error && result.text().starts_with("booking: "), "{}", result.text());
}

#[tokio::test]
async fn all_that_cannot_be_asked_is_named() {
    let questions = || [Question::elicit("name?", &form("name")), Question::list_roots()];
    let server = Server::new("asks")
        .tool("all", "", move |_: Nothing, cx: Context| async move {
            cx.ask_all(questions()).await?;
            Ok("asked".to_owned())
        })
        .tool("by hand", "", move |_: Nothing, _: Context| async move {
            let [name, roots] = questions();
            Err::<String, _>(InputRequired::new().ask("name", name).ask("roots", roots).into())
        });
    let options = ClientOptions::new().revision("2026-07-28");
    let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
    for tool in ["all", "by hand"] {
        let error = client.call_tool(tool, json!({})).await.unwrap_err();
        let data: Value = error.data().unwrap().to().unwrap();
        assert_eq!(data, json!({"requiredCapabilities": {"elicitation": {}, "roots": {}}}), "{tool}");
        assert!(error.message().contains("capabilities \"elicitation\", \"roots\""), "{error}");
    }
}

#[tokio::test]
async fn several_questions_of_any_kind_are_asked_at_once() {
    let server = Server::new("asks").tool("all", "", |_: Nothing, cx: Context| async move {
        let answers = cx.ask_all([Question::elicit("name?", &form("name")), Question::list_roots()]).await?;
        let (name, roots): (ElicitResult, ListRootsResult) = (answers[0].to()?, answers[1].to()?);
        Ok(format!("{} {}", name.content["name"], roots.roots.len()))
    });
    for revision in REVISIONS {
        let user = User::new(|_| json!({"action": "accept", "content": {"name": "Ada"}}));
        let options = ClientOptions::new().revision(revision);
        let roots = Roots::new([json!("file:///a"), json!("file:///b")]).unwrap();
        let handlers = Handlers::new().elicitation(user.clone()).roots(&roots);
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        assert_eq!(client.call_tool("all", json!({})).await.unwrap().text(), "\"Ada\" 2", "{revision}");
    }
}

#[tokio::test]
async fn a_question_without_end_ends() {
    let server = Server::new("nags").tool("nag", "", |_: Nothing, cx: Context| async move {
        let _ = cx.input_responses()?;
        Err::<String, _>(InputRequired::new().ask("again", Question::elicit("again?", &form("x"))).into())
    });
    for revision in REVISIONS {
        let user = User::new(|_| json!({"action": "decline"}));
        let client = connected(&server, revision, &user).await;
        let error = client.call_tool("nag", json!({})).await.unwrap_err();
        assert!(error.message().contains("32 rounds"), "{revision}: {error}");
        assert!(user.asked().len() < 32, "{revision}");
    }
}

/// A question that middleware asks and one of the handler are answered one after the other.
#[tokio::test]
async fn middleware_asks_too() {
    let asks = |request: Request, cx: Context, next: Next| async move {
        if request.method == "tools/call" {
            let sure = cx.elicit("sure?", &form("sure")).await?;
            if sure.action != ElicitAction::Accept {
                return Err(Error::rpc(-1, "not sure"));
            }
        }
        next.run(request, &cx).await
    };
    let server = Server::new("asks").middleware(asks).tool("name", "", |_: Nothing, cx: Context| async move {
        Ok(cx.elicit("name?", &form("name")).await?.content["name"].to_string())
    });
    for revision in REVISIONS {
        let user = User::new(|message| match message {
            "sure?" => json!({"action": "accept", "content": {"sure": "yes"}}),
            _ => json!({"action": "accept", "content": {"name": "Ada"}}),
        });
        let client = connected(&server, revision, &user).await;
        assert_eq!(client.call_tool("name", json!({})).await.unwrap().text(), "\"Ada\"", "{revision}");
        assert_eq!(user.asked(), ["sure?", "name?"], "{revision}");
    }
}

/// Nobody is told of a failure when a run ends at a question, whatever the handler made of it.
#[tokio::test]
async fn a_run_that_ends_at_a_question_has_not_failed() {
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let server = Server::new("asks")
        .tool("name", "", |_: Nothing, cx: Context| async move {
            let answer = cx.elicit("name?", &form("name")).await.map_err(|_| std::fmt::Error)?;
            Ok(answer.content["name"].to_string())
        })
        .on_error(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
        });
    let user = User::new(|_| json!({"action": "accept", "content": {"name": "Ada"}}));
    let client = connected(&server, "2026-07-28", &user).await;
    assert_eq!(client.call_tool("name", json!({})).await.unwrap().text(), "\"Ada\"");
    assert_eq!(failures.load(Ordering::SeqCst), 0);
}

/// An answer that does not fit what was asked is asked for again.
#[tokio::test]
async fn a_wrong_answer_is_not_taken() {
    let server = Server::new("asks").tool("name", "", |_: Nothing, cx: Context| async move {
        Ok(cx.elicit("name?", &form("name")).await?.content["name"].to_string())
    });
    let answers = Arc::new(AtomicUsize::new(0));
    struct Slips(Arc<AtomicUsize>);
    impl Handler for Slips {
        fn call(&self, _: Context, _: RawJson, reply: Reply) {
            let content = match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => json!({"name": 7}),
                _ => json!({"name": "Ada"}),
            };
            reply.value(RawJson::from_value(&json!({"action": "accept", "content": content})));
        }
    }
    let options = ClientOptions::new().revision("2026-07-28");
    let handlers = Handlers::new().elicitation(Arc::new(Slips(answers.clone())));
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    // The client's own check of its user's answer comes first.
    let outcome = client.call_tool("name", json!({})).await;
    assert!(outcome.is_err_and(|error| error.message().contains("name")), "the client checks, too");
    assert_eq!(answers.load(Ordering::SeqCst), 1);
}

/// One question that fails is the end of its round: nobody waits for the others.
#[tokio::test]
async fn the_first_question_that_fails_ends_the_call() {
    let server = Server::new("asks").tool("both", "", |_: Nothing, cx: Context| async move {
        let (left, right) = (Question::elicit("wait", &form("a")), Question::elicit("fail", &form("b")));
        cx.ask_all([left, right]).await.map(|answers| answers.len()).map_err(HandlerError::from)
    });
    struct Waits(Mutex<Vec<Reply>>);
    impl Handler for Waits {
        fn call(&self, _: Context, params: RawJson, reply: Reply) {
            if params.get().contains("fail") {
                return reply.error(Error::rpc(-7, "nobody is here"));
            }
            self.0.lock().unwrap().push(reply);
        }
    }
    let options = ClientOptions::new().revision("2026-07-28");
    let handlers = Handlers::new().elicitation(Arc::new(Waits(Mutex::default())));
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    let call = client.call_tool("both", json!({}));
    let error = tokio::time::timeout(std::time::Duration::from_secs(20), call).await.unwrap().unwrap_err();
    assert!(error.code() == Some(-7) && error.message().contains("nobody is here"), "{error}");
}

/// Middleware may try once more, and answer otherwise, as in older revisions.
#[tokio::test]
async fn middleware_tries_again_and_has_the_last_word() {
    let runs = Arc::new(AtomicUsize::new(0));
    let (counted, steps) = (runs.clone(), Arc::new(AtomicUsize::new(0)));
    let stepped = steps.clone();
    let again = |request: Request, cx: Context, next: Next| async move {
        let first = next.run(request.clone(), &cx).await?;
        if first.get().contains("once more") { next.run(request, &cx).await } else { Ok(first) }
    };
    let server = Server::new("asks").middleware(again).tool("name", "", move |_: Nothing, cx: Context| {
        let (run, stepped) = (counted.fetch_add(1, Ordering::SeqCst), stepped.clone());
        async move {
            let number = cx.step("count", async { stepped.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let name = cx.elicit("name?", &form("name")).await?.content["name"].to_string();
            if run < 2 { Err(HandlerError::new("once more")) } else { Ok(format!("{number} {name}")) }
        }
    });
    for revision in ["2025-11-25", "2026-07-28"] {
        runs.store(0, Ordering::SeqCst);
        steps.store(0, Ordering::SeqCst);
        let user = User::new(|_| json!({"action": "accept", "content": {"name": "Ada"}}));
        let client = connected(&server, revision, &user).await;
        let text = client.call_tool("name", json!({})).await.unwrap().text();
        if revision == "2026-07-28" {
            assert_eq!(text, "1 \"Ada\"");
            // Asked once: the runs of one request see the same answers.
            assert_eq!((user.asked().len(), steps.load(Ordering::SeqCst)), (1, 1));
        }
    }
    let denies = |request: Request, cx: Context, next: Next| async move {
        let method = request.method.clone();
        let result = next.run(request, &cx).await?;
        if method == "tools/call" { Err(Error::rpc(-9, "not here")) } else { Ok(result) }
    };
    let server = Server::new("asks").middleware(denies).tool("name", "", |_: Nothing, cx: Context| async move {
        Ok(cx.elicit("name?", &form("name")).await?.content["name"].to_string())
    });
    for revision in REVISIONS {
        let user = User::new(|_| json!({"action": "accept", "content": {"name": "Ada"}}));
        let client = connected(&server, revision, &user).await;
        assert_eq!(client.call_tool("name", json!({})).await.unwrap_err().code(), Some(-9), "{revision}");
    }
}

/// Holds what it is asked.
#[derive(Default)]
struct Holds(Mutex<Vec<(Context, Reply)>>, tokio::sync::Notify);

impl Handler for Holds {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        self.0.lock().unwrap().push((cx, reply));
        self.1.notify_one();
    }
}

/// Nobody waits for a user whose answer nobody can hear.
#[tokio::test]
async fn a_connection_that_ends_between_two_rounds_ends_the_call() {
    let server = Server::new("asks").tool("name", "", |_: Nothing, cx: Context| async move {
        Ok(cx.elicit("name?", &form("name")).await?.content["name"].to_string())
    });
    for revision in REVISIONS {
        let user = Arc::new(Holds::default());
        let options = ClientOptions::new().revision(revision);
        let handlers = Handlers::new().elicitation(user.clone());
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        let calls = client.clone();
        let call = tokio::spawn(async move { calls.call_tool("name", json!({})).await });
        user.1.notified().await;
        client.close().await;
        let ended = tokio::time::timeout(std::time::Duration::from_secs(20), call).await;
        let error = ended.unwrap().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{revision}: {error}");
        let (cx, _reply) = user.0.lock().unwrap().pop().unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(20), cx.cancelled()).await.unwrap();
    }
}

/// Questions by hand are taken back with the call, and the handler does not run again.
#[tokio::test]
async fn a_call_that_is_cancelled_takes_its_questions_back() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let server = Server::new("asks").tool("name", "", move |_: Nothing, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let question = Question::elicit("name?", &form("name"));
            Err::<String, _>(InputRequired::new().ask("name", question).into())
        }
    });
    for revision in REVISIONS {
        runs.store(0, Ordering::SeqCst);
        let user = Arc::new(Holds::default());
        let options = ClientOptions::new().revision(revision);
        let handlers = Handlers::new().elicitation(user.clone());
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        let calls = client.clone();
        let call = tokio::spawn(async move { calls.call_tool("name", json!({})).await });
        user.1.notified().await;
        call.abort();
        let (cx, reply) = user.0.lock().unwrap().pop().unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(20), cx.cancelled()).await.unwrap();
        reply.value(RawJson::from_value(&json!({"action": "decline"})));
        client.ping().await.unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{revision}");
    }
}

/// Questions follow the capabilities that a client declares, whatever it could do.
#[tokio::test]
async fn what_is_declared_is_what_is_answered() {
    let server = Server::new("asks").tool("visit", "", |_: Nothing, cx: Context| async move {
        let answer = cx.elicit_url("visit", "https://example.com/", "e-1").await?;
        Ok(format!("{:?}", answer.action))
    });
    for revision in ["2025-11-25", "2026-07-28"] {
        let user = User::new(|_| json!({"action": "accept"}));
        let declared = RawJson::trusted(r#"{"elicitation":{"form":{},"url":{}}}"#);
        let options = ClientOptions::new().revision(revision).capabilities(declared);
        let handlers = Handlers::new().elicitation(user.clone());
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        assert_eq!(client.call_tool("visit", json!({})).await.unwrap().text(), "Accept", "{revision}");
    }
}
