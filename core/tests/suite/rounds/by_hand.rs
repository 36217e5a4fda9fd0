//! Rounds that a handler keeps by hand.

use super::*;

#[tokio::test]
async fn rounds_may_be_kept_by_hand() {
    let server = Server::new("asks").tool("name", "", |_: Nothing, cx: Context| async move {
        let (round, answers) = (cx.request_state::<u32>()?.unwrap_or(0), cx.input_responses()?);
        let Some(answer) = answers.get("who").filter(|_| round == 2) else {
            let question = Question::elicit(&format!("name {round}?"), &form("name"));
            return Err(InputRequired::new().ask("who", question).state(&(round + 1)).into());
        };
        Ok(format!("{round}: {}", answer["content"]["name"]))
    });
    for revision in REVISIONS {
        let user = User::new(|message| json!({"action": "accept", "content": {"name": message}}));
        let client = connected(&server, revision, &user).await;
        let result = client.call_tool("name", json!({})).await.unwrap();
        assert_eq!(result.text(), "2: \"name 1?\"", "{revision}");
        assert_eq!(user.asked(), ["name 0?", "name 1?"], "{revision}");
        // Nobody to ask: said in the words of every other question.
        let options = ClientOptions::new().revision(revision);
        let deaf = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
        let said = match deaf.call_tool("name", json!({})).await {
            Ok(result) if result.is_error => result.text(),
            Ok(other) => panic!("{revision}: {}", other.text()),
            Err(error) => error.message().to_owned(),
        };
        assert!(said.contains("elicitation"), "{revision}: {said}");
    }
}

#[tokio::test]
async fn a_request_may_come_back_with_its_state_alone() {
    let server = Server::new("busy").tool("later", "", |_: Nothing, cx: Context| async move {
        match cx.request_state::<u32>()?.unwrap_or(0) {
            2 => Ok("done".to_owned()),
            round => Err(InputRequired::new().state(&(round + 1)).into()),
        }
    });
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
        assert_eq!(client.call_tool("later", json!({})).await.unwrap().text(), "done", "{revision}");
    }
}

/// The time is the runtime's, which goes on by itself when there is nothing to do.
#[tokio::test(start_paused = true)]
async fn a_request_that_comes_back_with_its_state_alone_is_made_again_after_longer_and_longer() {
    const WAITS: [u128; 9] = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000];
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let runs = Arc::<Mutex<Vec<tokio::time::Instant>>>::default();
        let ran = runs.clone();
        let server = Server::new("busy").tool("later", "", move |_: Nothing, cx: Context| {
            ran.lock().unwrap().push(tokio::time::Instant::now());
            async move {
                match cx.request_state::<usize>()?.unwrap_or(0) {
                    9 => Ok("done".to_owned()),
                    round => Err(InputRequired::new().state(&(round + 1)).into()),
                }
            }
        });
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory_with(&server, &options, &Handlers::new()).await.unwrap();
        assert_eq!(client.call_tool("later", json!({})).await.unwrap().text(), "done", "{revision}");
        let waits: Vec<_> = runs.lock().unwrap().windows(2).map(|two| (two[1] - two[0]).as_millis()).collect();
        // A timer of the runtime rings at the next whole millisecond.
        let is_so = waits.len() == WAITS.len() && waits.iter().zip(WAITS).all(|(wait, due)| wait.abs_diff(due) <= 1);
        assert!(is_so, "{revision}: {waits:?}");
    }
}

/// Questions by hand stay answered for as long as the handler asks by the context, in every revision.
#[tokio::test]
async fn what_was_asked_by_hand_stays_answered() {
    let server = Server::new("asks").tool("both", "", |_: Nothing, cx: Context| async move {
        let mut own = cx.request_state::<Vec<String>>()?.unwrap_or_default();
        let answers = cx.input_responses()?;
        if own.is_empty() {
            let first = cx.elicit("first?", &form("name")).await?;
            own.push(first.content["name"].to_string());
        }
        let answer = |key: &str| answers.get(key).map(|answer| answer["content"]["name"].to_string());
        match (answer("second"), answer("fourth")) {
            (None, None) => {
                let second = Question::elicit("second?", &form("name"));
                Err(InputRequired::new().ask("second", second).state(&own).into())
            }
            (Some(second), _) => {
                let third = cx.elicit("third?", &form("name")).await?;
                own.extend([second, third.content["name"].to_string()]);
                let fourth = Question::elicit("fourth?", &form("name"));
                Err(InputRequired::new().ask("fourth", fourth).state(&own).into())
            }
            (None, Some(fourth)) => {
                let fifth = cx.elicit("fifth?", &form("name")).await?;
                own.extend([fourth, fifth.content["name"].to_string()]);
                Ok(own.join(" "))
            }
        }
    });
    for revision in REVISIONS {
        let user = User::new(|message| json!({"action": "accept", "content": {"name": message}}));
        let client = connected(&server, revision, &user).await;
        let result = client.call_tool("both", json!({})).await.unwrap();
        let all = ["first?", "second?", "third?", "fourth?", "fifth?"];
        assert_eq!(result.text(), all.map(|text| format!("{text:?}")).join(" "), "{revision}");
        assert_eq!(user.asked(), all, "{revision}");
    }
}

/// A handler that asks by hand runs again from its beginning, where the context has asked already.
#[tokio::test]
async fn what_the_context_has_asked_before_is_not_asked_again() {
    let server = Server::new("asks").tool("both", "", |_: Nothing, cx: Context| async move {
        let charged = cx.step("charge", async { 1 }).await?;
        let mut given = vec![charged.to_string()];
        // The same question twice is two questions.
        for message in ["first?", "first?", "other?"] {
            given.push(cx.elicit(message, &form("name")).await?.content["name"].to_string());
        }
        match cx.input_responses()?.get("hand") {
            None => Err(InputRequired::new().ask("hand", Question::elicit("first?", &form("name"))).into()),
            Some(answer) => Ok(format!("{} {}", given.join(" "), answer["content"]["name"])),
        }
    });
    for revision in REVISIONS {
        let user = User::new(|message| json!({"action": "accept", "content": {"name": message}}));
        let client = connected(&server, revision, &user).await;
        let result = client.call_tool("both", json!({})).await.unwrap();
        assert_eq!(result.text(), r#"1 "first?" "first?" "other?" "first?""#, "{revision}");
        assert_eq!(user.asked(), ["first?", "first?", "other?", "first?"], "{revision}");
    }
}
