//! Rounds of questions on the wire: what the state between them is bound to, and servers that share a secret.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tricorn::BoxFuture;
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::prelude::*;

const KEY: &str = "a secret for tests, longer than thirty-two bytes";
const NEXT: &str = "the secret after that, longer than thirty-two, too";

#[derive(Deserialize, JsonSchema)]
struct Who {
    #[allow(dead_code, reason = "what the state is bound to")]
    whom: String,
}

fn server(name: &str, keys: &[&str]) -> Server {
    let form = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let ask = move |_: Who, cx: Context| async move {
        let first = cx.elicit("first?", &form("a")).await?;
        let second = cx.elicit("second?", &form("b")).await?;
        Ok(format!("{} {}", first.content["a"], second.content["b"]))
    };
    let server = Server::new(name).tool("ask", "", ask).tool("other", "", ask);
    if keys.is_empty() { server } else { server.request_state_keys(keys.iter().copied()) }
}

fn endpoint(keys: &[&str]) -> Endpoint {
    server("asks", keys).endpoint(HttpOptions::default()).unwrap()
}

fn params(tool: &str, whom: &str) -> Value {
    json!({"name": tool, "arguments": {"whom": whom}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }})
}

async fn post(endpoint: &Endpoint, authorization: Option<&str>, params: &Value) -> Value {
    let header = authorization.map(|authorization| ("Authorization", authorization));
    post_with(endpoint, header.as_slice(), params).await
}

async fn post_with(endpoint: &Endpoint, headers: &[(&str, &str)], params: &Value) -> Value {
    post_raw(endpoint, headers, params["name"].as_str().unwrap(), &params).await
}

async fn post_raw(endpoint: &Endpoint, headers: &[(&str, &str)], name: &str, params: &impl Serialize) -> Value {
    let params = serde_json::to_string(params).unwrap();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let mut request = http::Request::post("/mcp")
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", name);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = endpoint.handle(request.body(Full::new(Bytes::from(body))).unwrap()).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// The next request, with an answer to what `answer` asks.
fn retry(mut params: Value, answer: &Value, content: &Value) -> Value {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let responses: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), json!({"action": "accept", "content": content}))).collect();
    params["inputResponses"] = responses.into();
    params["requestState"] = result["requestState"].clone();
    params
}

fn refused(answer: &Value) -> bool {
    answer["error"]["code"] == -32602 && answer["error"]["message"].as_str().unwrap().contains("requestState")
}

#[tokio::test]
async fn any_server_with_the_secret_goes_on_and_secrets_may_change() {
    let (old, both, new) = (endpoint(&[KEY]), endpoint(&[NEXT, KEY]), endpoint(&[NEXT]));
    let params = params("ask", "Ada");
    let first = post(&old, None, &params).await;
    let request = &first["result"]["inputRequests"].as_object().unwrap()["elicitation-1"];
    assert_eq!((&request["method"], &request["params"]["message"]), (&json!("elicitation/create"), &json!("first?")));
    let again = retry(params.clone(), &first, &json!({"a": "x"}));
    assert!(refused(&post(&new, None, &again).await), "a server that never had the secret");
    let second = post(&both, None, &again).await;
    let last = retry(params.clone(), &second, &json!({"b": "y"}));
    assert!(refused(&post(&old, None, &last).await), "sealed with the new secret");
    let done = post(&new, None, &last).await;
    assert_eq!(done["result"]["content"][0]["text"], "\"x\" \"y\"", "{done}");
    // A process of its own, without a secret, has one that nobody else has.
    let (alone, other) = (endpoint(&[]), endpoint(&[]));
    let again = retry(params.clone(), &post(&alone, None, &params).await, &json!({"a": "x"}));
    assert!(refused(&post(&other, None, &again).await));
    assert_eq!(post(&alone, None, &again).await["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn the_state_belongs_to_one_request_of_one_user() {
    let endpoint = endpoint(&[KEY]);
    let token = |subject: &str, n: u32| {
        use base64::Engine;
        let claims = json!({"iss": "https://issuer.example", "sub": subject, "jti": n}).to_string();
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
        format!("Bearer e30.{claims}.c2ln")
    };
    let ada = token("ada", 1);
    let asked = params("ask", "Ada");
    let first = post(&endpoint, Some(&ada), &asked).await;
    let again = retry(asked, &first, &json!({"a": "x"}));
    let carried = |tool: &str, whom: &str| {
        let mut other = params(tool, whom);
        other["inputResponses"] = again["inputResponses"].clone();
        other["requestState"] = again["requestState"].clone();
        other
    };
    assert!(refused(&post(&endpoint, Some(&token("bob", 1)), &again).await), "of another user");
    assert!(refused(&post(&endpoint, None, &again).await), "of nobody");
    assert!(refused(&post(&endpoint, Some(&ada), &carried("other", "Ada")).await), "of another tool");
    assert!(refused(&post(&endpoint, Some(&ada), &carried("ask", "Bob")).await), "of other arguments");
    // A renewed token is the same user's, and `_meta` is the envelope's and not what was asked.
    let mut renewed = carried("ask", "Ada");
    renewed["_meta"]["example.com/trace"] = json!("other");
    let answer = post(&endpoint, Some(&token("ada", 2)), &renewed).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}

#[tokio::test]
async fn arguments_that_no_float_tells_apart_are_others() {
    let endpoint = endpoint(&[KEY]);
    // `Value` has no such integers: put into the text.
    let post = async |params: &Value, number: &str| {
        let mut text = params.clone();
        text["arguments"]["number"] = json!("NUMBER");
        let text = text.to_string().replace("\"NUMBER\"", number);
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(&text).unwrap();
        post_raw(&endpoint, &[], "ask", &raw).await
    };
    let (one, other) = ("18446744073709551617", "18446744073709551618");
    let first = post(&params("ask", "Ada"), one).await;
    let again = retry(params("ask", "Ada"), &first, &json!({"a": "x"}));
    assert!(refused(&post(&again, other).await));
    assert_eq!(post(&again, one).await["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn a_server_of_another_name_does_not_go_on() {
    let other = server("asks, too", &[KEY]).endpoint(HttpOptions::default()).unwrap();
    let params = params("ask", "Ada");
    let again = retry(params.clone(), &post(&endpoint(&[KEY]), None, &params).await, &json!({"a": "x"}));
    assert!(refused(&post(&other, None, &again).await));
    assert_eq!(post(&endpoint(&[KEY]), None, &again).await["result"]["resultType"], "input_required");
}

struct User(String);

/// Middleware that finds out the user of a request.
fn knows(request: Request, cx: Context, next: Next) -> BoxFuture<tricorn::Result<RawJson>> {
    let headers = cx.request().transport.headers();
    let user = headers.into_iter().find(|(name, _)| name == "x-api-key").map(|(_, key)| User(format!("user of {key}")));
    Box::pin(async move {
        match user {
            Some(user) => next.run(request, &cx.with_state(user)).await,
            None => next.run(request, &cx).await,
        }
    })
}

#[tokio::test]
async fn a_server_may_say_whose_a_request_is() {
    let server = server("asks", &[KEY]).middleware(knows).principal(|cx| cx.state::<User>().map(|user| user.0.clone()));
    let known = server.endpoint(HttpOptions::default()).unwrap();
    let (ada, bob) = (("x-api-key", "ada"), ("x-api-key", "bob"));
    let params = params("ask", "Ada");
    let first = post_with(&known, &[ada, ("authorization", "Bearer 1")], &params).await;
    let again = retry(params.clone(), &first, &json!({"a": "x"}));
    assert!(refused(&post_with(&known, &[bob], &again).await), "of another user");
    assert!(refused(&post_with(&known, &[], &again).await), "of nobody");
    // What the function does not look at does not count.
    let answer = post_with(&known, &[ada, ("authorization", "Bearer 2")], &again).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    // A header that looks like what a token or a function says is neither.
    let (plain, claims) = (endpoint(&[KEY]), r#"["named","user of ada"]"#);
    assert!(refused(&post_with(&plain, &[("authorization", claims)], &again).await));
}

#[tokio::test]
async fn a_function_that_cannot_say_whose_a_request_is_ends_it() {
    let panics = server("asks", &[KEY]).principal(|_| panic!("no idea"));
    let asks = server("asks", &[KEY]).principal(|cx| {
        drop(cx.elicit("who?", &json!({"type": "object", "properties": {}})));
        drop(cx.ask("roots/list", None, &CallOptions::default()));
        Some("me".into())
    });
    for (server, expected) in [(panics, Some("panicked")), (asks, None)] {
        let endpoint = server.endpoint(HttpOptions::default()).unwrap();
        let answer = post(&endpoint, None, &params("ask", "Ada")).await;
        match expected {
            Some(why) => assert!(answer.to_string().contains(why), "{answer}"),
            None => assert_eq!(answer["result"]["resultType"], "input_required", "{answer}"),
        }
    }
}

#[tokio::test]
async fn answers_that_are_missing_or_wrong_are_asked_for_again() {
    let endpoint = endpoint(&[KEY]);
    let asked = params("ask", "Ada");
    let first = post(&endpoint, None, &asked).await;
    let again = retry(asked.clone(), &first, &json!({"a": "x"}));
    let question = &first["result"]["inputRequests"];
    for wrong in [
        json!({}),
        json!({"elicitation-1": {"action": "accept", "content": {"a": 1}}}),
        json!({"elicitation-1": 7}),
        json!({"stale": {}}),
    ] {
        let mut params = again.clone();
        params["inputResponses"] = wrong.clone();
        let answer = post(&endpoint, None, &params).await;
        assert_eq!(answer["result"]["inputRequests"], *question, "{wrong}: {answer}");
    }
    for (member, wrong) in [("inputResponses", json!([])), ("inputResponses", json!("x")), ("requestState", json!(7))] {
        let mut params = again.clone();
        params[member] = wrong;
        let answer = post(&endpoint, None, &params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(member), "{answer}");
    }
    // What was answered once is not asked again, and stays what it was.
    let mut second = post(&endpoint, None, &again).await;
    second["result"]["inputRequests"]["elicitation-1"] = json!({});
    let last = retry(asked, &second, &json!({"b": "y", "a": "changed"}));
    let done = post(&endpoint, None, &last).await;
    assert_eq!(done["result"]["content"][0]["text"], "\"x\" \"y\"", "{done}");
}

/// A thousand states on the wire; of each some bits, of one all (all bits of all are in `seal/tests.rs`), and another user,
/// another tool, other arguments.
#[tokio::test]
async fn no_state_can_be_changed_or_used_elsewhere() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let endpoint = endpoint(&[KEY]);
    for n in 0..1000_usize {
        let asked = params("ask", &format!("user {n}"));
        let first = post(&endpoint, None, &asked).await;
        let state = first["result"]["requestState"].as_str().unwrap();
        let sealed = URL_SAFE_NO_PAD.decode(state).unwrap();
        let again = retry(asked, &first, &json!({"a": "x"}));
        let bits: Vec<usize> = match n {
            0 => (0..sealed.len() * 8).collect(),
            // So that all places are flipped in some of them.
            _ => (0..3).map(|k| (n * 3 + k) * 7919 % (sealed.len() * 8)).collect(),
        };
        let flipped = bits.iter().map(|bit| {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            URL_SAFE_NO_PAD.encode(changed)
        });
        let cut = [state[..n % state.len()].to_owned(), format!("{state}A"), format!("{state}=")];
        for changed in flipped.chain(cut) {
            let mut params = again.clone();
            params["requestState"] = changed.clone().into();
            let answer = post(&endpoint, None, &params).await;
            assert!(refused(&answer), "{n}: {changed}: {answer}");
        }
        assert!(refused(&post(&endpoint, Some("Bearer bob"), &again).await), "{n}: of another user");
        for (tool, whom) in [("other", format!("user {n}")), ("ask", format!("user {}", n + 1))] {
            let mut other = params(tool, &whom);
            other["inputResponses"] = again["inputResponses"].clone();
            other["requestState"] = again["requestState"].clone();
            assert!(refused(&post(&endpoint, None, &other).await), "{n}: {tool} {whom}");
        }
    }
}
