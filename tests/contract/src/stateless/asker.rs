//! A client of the stateless revision that asks one thing after the other, and remembers which process answered.

use super::front::ANSWERED_BY;
use crate::Outcome;
use crate::leaks::http::Client;
use crate::pattern::brief;
use crate::wire::http::Endpoint;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Results of all requests.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Number of requests that each process answered, by the name that the proxy gives it.
    by: BTreeMap<String, usize>,
    /// Requests that carried answers to questions.
    retries: usize,
    /// Those of them that another process got than the one that had asked.
    elsewhere: usize,
    /// Reservations that the step of `step_once` made, and the process that ran it.
    reservations: Vec<(String, usize)>,
}

impl Seen {
    pub(super) fn requests(&self) -> usize {
        self.by.values().sum()
    }

    pub(super) fn add(&mut self, other: Self) {
        for (process, count) in other.by {
            *self.by.entry(process).or_default() += count;
        }
        self.retries += other.retries;
        self.elsewhere += other.elsewhere;
        self.reservations.extend(other.reservations);
    }

    /// Every retry went to the process that had not asked.
    pub(super) fn all_elsewhere(&self) -> Outcome {
        if self.by.len() == 2 && self.retries > 0 && self.elsewhere == self.retries {
            return Ok(());
        }
        Err(format!("not every retry went to the other process: {self}"))
    }

    /// Two processes answered, and as many requests each; a request of each client may have been under way.
    pub(super) fn evenly(&self, clients: usize) -> Outcome {
        let counts: Vec<usize> = self.by.values().copied().collect();
        match counts[..] {
            [one, other] if one.abs_diff(other) <= clients => Ok(()),
            _ => Err(format!("they did not take turns: {self}")),
        }
    }

    /// Checks that a step which must run once ran once: the reservations of a process are numbered, and a call knows
    /// each of them.
    pub(super) fn once(&self) -> Outcome {
        let mut made: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (process, number) in &self.reservations {
            made.entry(process).or_default().push(*number);
        }
        for (process, mut numbers) in made {
            numbers.sort_unstable();
            if !numbers.iter().copied().eq(1..=numbers.len()) {
                return Err(format!("{process} reserved {numbers:?}: a step was done twice, or lost"));
            }
        }
        if self.reservations.is_empty() { Err("nothing was reserved".into()) } else { Ok(()) }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by: Vec<String> = self.by.iter().map(|(process, count)| format!("{count} by {process}")).collect();
        write!(
            formatter,
            "{} requests ({}), {} retries, {} of them to another process, {} reservations",
            self.requests(),
            by.join(", "),
            self.retries,
            self.elsewhere,
            self.reservations.len()
        )
    }
}

/// One client.
pub(super) struct Asker {
    client: Client,
    limit: Duration,
    /// Process that answered last.
    process: String,
    /// Address that it connects to: that of the process when there is no proxy.
    authority: String,
    pub(super) seen: Seen,
}

impl Asker {
    pub(super) fn to(endpoint: &Endpoint, limit: Duration) -> Outcome<Self> {
        let (client, authority) = (Client::open(endpoint, true, limit)?, endpoint.authority.clone());
        Ok(Self { client, limit, process: String::new(), authority, seen: Seen::default() })
    }

    /// One request and its result.
    pub(super) fn ask(&mut self, method: &str, mut params: Value) -> Outcome<Value> {
        params["_meta"] =
            json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}}});
        let mut exchange = self.client.send(method, params, true)?;
        let head = exchange.head(self.limit)?;
        let process = head.get(ANSWERED_BY).unwrap_or(&self.authority).to_owned();
        let status = head.status;
        let answer = exchange.next(self.limit)?.ok_or_else(|| format!("{method} was not answered: {status}"))?;
        self.client.done(exchange)?;
        *self.seen.by.entry(process.clone()).or_default() += 1;
        self.process = process;
        answer.get("result").cloned().ok_or_else(|| format!("{method}: {}", brief(&answer)))
    }

    /// Something that asks: its questions are answered in requests of their own. The result that it ends with, and the
    /// process that had the first of them.
    fn converse(&mut self, method: &str, mut params: Value, content: &Value) -> Outcome<(Value, String)> {
        let what = params.get("name").or_else(|| params.get("uri")).cloned().unwrap_or_default();
        let mut result = self.ask(method, params.clone())?;
        let first = self.process.clone();
        for _ in 0..8 {
            if result["resultType"] == "complete" {
                return Ok((result, first));
            }
            let asked_by = std::mem::take(&mut self.process);
            answer(&mut params, &result, content)?;
            result = self.ask(method, params.clone())?;
            self.seen.retries += 1;
            self.seen.elsewhere += usize::from(self.process != asked_by);
        }
        Err(format!("{what} asks and asks"))
    }

    /// A tool that asks, and the text it ends with.
    fn call(&mut self, tool: &str, content: &Value) -> Outcome<(String, String)> {
        // Of the tools that ask, one takes an argument.
        let arguments = if tool == "test_sampling" { json!({"prompt": "Where?"}) } else { json!({}) };
        let params = json!({"name": tool, "arguments": arguments});
        let (result, first) = self.converse("tools/call", params, content)?;
        Ok((text(&result)?, first))
    }

    /// One of each kind of request.
    pub(super) fn round(&mut self, number: usize) -> Outcome {
        let content = json!({"a": format!("a{number}"), "b": "b", "c": "c", "left": "l", "right": number.to_string(), "confirm": true});
        let sum = self.ask("tools/call", json!({"name": "add", "arguments": {"a": number, "b": 1}}))?;
        expect("add", &text(&sum)?, &(number + 1).to_string())?;
        expect("three_questions", &self.call("three_questions", &content)?.0, &format!("a{number} b c"))?;
        expect("two_questions", &self.call("two_questions", &content)?.0, &format!("l {number}"))?;
        expect("three_questions", &self.call("three_questions", &Value::Null)?.0, "First?: decline")?;
        let (said, first) = self.call("step_once", &content)?;
        let reserved = said.strip_prefix("reservation ").and_then(|rest| rest.strip_suffix(": true"));
        let reserved = reserved.and_then(|number| number.parse().ok()).ok_or_else(|| format!("step_once: {said}"))?;
        self.seen.reservations.push((first, reserved));
        let (named, three) = (json!({"name": number.to_string()}), "test_input_required_result_multiple_inputs");
        expect("test_sampling", &self.call("test_sampling", &content)?.0, &format!("LLM response: {SAID}"))?;
        expect("roots", &self.call("roots", &content)?.0, ROOT)?;
        expect(three, &self.call(three, &named)?.0, &format!("{number} {SAID} {ROOT}"))?;
        let failed = self.ask("tools/call", json!({"name": "fail", "arguments": {"kind": "tool"}}))?;
        expect("fail", &text(&failed)?, "the tool says no")?;
        for (method, member) in [
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            let result = self.ask(method, json!({}))?;
            if result[member].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{method}: {}", brief(&result)));
            }
        }
        let uri = format!("test://template/{number}/data");
        let read = self.ask("resources/read", json!({"uri": uri}))?;
        if !read["contents"][0]["text"].as_str().is_some_and(|text| text.contains(&number.to_string())) {
            return Err(format!("resources/read: {}", brief(&read)));
        }
        let arguments = json!({"arg1": number.to_string(), "arg2": "y"});
        let prompt = self.ask("prompts/get", json!({"name": "test_prompt_with_arguments", "arguments": arguments}))?;
        if prompt["messages"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!("prompts/get: {}", brief(&prompt)));
        }
        let asking = json!({"name": "test_input_required_result_prompt"});
        let (prompt, _) = self.converse("prompts/get", asking, &json!({"context": "here"}))?;
        if prompt["messages"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!("prompts/get with a question: {}", brief(&prompt)));
        }
        let word = json!({"word": number.to_string()});
        let (read, _) = self.converse("resources/read", json!({"uri": "ask://word"}), &word)?;
        let read = read["contents"][0]["text"].as_str().unwrap_or_default();
        expect("resources/read with a question", read, &format!("the word is {number}"))?;
        let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
        let argument = json!({"name": "arg1", "value": "par"});
        let values = self.ask("completion/complete", json!({"ref": reference, "argument": argument}))?;
        expect("completion/complete", &values["completion"]["total"].to_string(), "3")?;
        self.ask("server/discover", json!({})).map(drop)
    }
}

/// Answer of the client's model, whatever it is asked.
const SAID: &str = "Paris";

/// The client's only root.
const ROOT: &str = "file:///one";

/// The state goes back with an answer to each question; no content is a refusal of what a user is asked.
pub(crate) fn answer(params: &mut Value, result: &Value, content: &Value) -> Outcome {
    let asked = result["inputRequests"].as_object().ok_or_else(|| format!("no questions: {}", brief(result)))?;
    let mut answers = serde_json::Map::new();
    for (key, question) in asked {
        let said = match question["method"].as_str().unwrap_or_default() {
            "elicitation/create" if content.is_null() => json!({"action": "decline"}),
            "elicitation/create" => json!({"action": "accept", "content": content}),
            "sampling/createMessage" => {
                json!({"role": "assistant", "content": {"type": "text", "text": SAID}, "model": "m"})
            }
            "roots/list" => json!({"roots": [{"uri": ROOT}]}),
            other => return Err(format!("a question of no kind there is: {other:?}")),
        };
        answers.insert(key.clone(), said);
    }
    params["inputResponses"] = answers.into();
    match result.get("requestState") {
        Some(state) => params["requestState"] = state.clone(),
        None => drop(params.as_object_mut().and_then(|members| members.remove("requestState"))),
    }
    Ok(())
}

/// The text that a tool ends with.
pub(super) fn text(result: &Value) -> Outcome<String> {
    let text = result["content"][0]["text"].as_str();
    text.map(str::to_owned).ok_or_else(|| format!("no text: {}", brief(result)))
}

fn expect(what: &str, got: &str, expected: &str) -> Outcome {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(by: &[(&str, usize)], retries: usize, elsewhere: usize, reservations: &[(&str, usize)]) -> Seen {
        let by = by.iter().map(|(process, count)| ((*process).to_owned(), *count)).collect();
        let reservations = reservations.iter().map(|(process, number)| ((*process).to_owned(), *number)).collect();
        Seen { by, retries, elsewhere, reservations }
    }

    #[test]
    fn what_does_not_hold_is_seen() {
        assert!(seen(&[("a", 5), ("b", 5)], 3, 3, &[]).all_elsewhere().is_ok());
        assert!(seen(&[("a", 5), ("b", 5)], 3, 2, &[]).all_elsewhere().is_err());
        assert!(seen(&[("a", 5), ("b", 5)], 0, 0, &[]).all_elsewhere().is_err());
        assert!(seen(&[("a", 10)], 3, 3, &[]).all_elsewhere().is_err());
        assert!(seen(&[("a", 9), ("b", 5)], 0, 0, &[]).evenly(4).is_ok());
        assert!(seen(&[("a", 10), ("b", 5)], 0, 0, &[]).evenly(4).is_err());
        assert!(seen(&[("a", 10)], 0, 0, &[]).evenly(4).is_err());
        assert!(seen(&[], 0, 0, &[("a", 2), ("b", 1), ("a", 1)]).once().is_ok());
        for wrong in [&[][..], &[("a", 1), ("a", 3)], &[("a", 2)], &[("a", 1), ("a", 1)]] {
            assert!(seen(&[], 0, 0, wrong).once().is_err(), "{wrong:?}");
        }
    }
}
