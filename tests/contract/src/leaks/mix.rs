//! Actions of a session with every capability, over and over: `tests/leaks.json`, the same for every language and
//! transport. Its rows are requests in order, each with the answer that has to come; `question` is the server's
//! question meanwhile, `reply` the answer to it; with `cancel` the request is cancelled while the question is open, and
//! the reply comes too late. `hears` is a notification that has to come, `${NAME}` a captured value, `round` a number.

use crate::pattern::{self, Captures, Strictness, brief};
use crate::{Outcome, launch};
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the capabilities that the client declares, so that it can be asked everything.
pub(super) fn capabilities() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

/// The rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mix {
    /// A round.
    round: Vec<Row>,
    /// Before a session is left, so that something is left behind.
    leaving: Vec<Row>,
    /// Questions in the middle of which a client leaves.
    pub(super) unanswered: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Row {
    Ask(Box<Ask>),
    Tell { tell: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    ask: String,
    #[serde(default = "no_params")]
    params: Value,
    result: Option<Value>,
    error: Option<Value>,
    question: Option<String>,
    reply: Option<Value>,
    #[serde(default)]
    cancel: bool,
    hears: Option<String>,
}

fn no_params() -> Value {
    json!({})
}

/// A legacy session on some transport.
pub(super) trait Line {
    /// A request that is under way.
    type Asked;

    /// Send a request; its id.
    fn ask(&mut self, method: &str, params: &str) -> Outcome<(u64, Self::Asked)>;
    /// Send what has no answer.
    fn tell(&mut self, message: Value) -> Outcome;
    /// The next message while the request is under way.
    fn hear(&mut self, asked: &mut Self::Asked) -> Outcome<Option<Value>>;
    /// The next message that belongs to no request.
    fn overhear(&mut self) -> Outcome<Value>;
    /// The request was answered.
    fn done(&mut self, asked: Self::Asked) -> Outcome;
    /// The request was cancelled: it must not be answered.
    fn cancelled(&mut self, id: u64, asked: Self::Asked) -> Outcome;
}

impl Mix {
    pub(super) fn read() -> Outcome<Self> {
        let path = launch::root()?.join("tests/leaks.json");
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// One round.
    pub(super) fn round<L: Line>(&self, line: &mut L, number: usize) -> Outcome {
        let mut captures = Captures::from([("round".to_owned(), number.into())]);
        self.round.iter().try_for_each(|row| row.play(line, &mut captures))
    }

    /// Leave things behind: every so many rounds, and before a session is left.
    pub(super) fn leave<L: Line>(&self, line: &mut L) -> Outcome {
        self.leaving.iter().try_for_each(|row| row.play(line, &mut Captures::new()))
    }
}

/// Number of rounds that a session has before it is left.
pub(super) const SESSION: usize = 8;

impl Row {
    fn play<L: Line>(&self, line: &mut L, captures: &mut Captures) -> Outcome {
        match self {
            Self::Ask(row) => {
                row.play(line, captures).map_err(|reason| format!("{} {}: {reason}", row.ask, row.params))
            }
            Self::Tell { tell } => line.tell(json!({"jsonrpc": "2.0", "method": tell})),
        }
    }

    /// Send it and come back when the server has asked.
    pub(super) fn until_asked<L: Line>(&self, line: &mut L) -> Outcome<L::Asked> {
        let Self::Ask(row) = self else { return Err("not a request".into()) };
        let (_, mut asked) = line.ask(&row.ask, &row.params.to_string())?;
        loop {
            let message = line.hear(&mut asked)?.ok_or("the answer ended without a question")?;
            match message["method"].as_str() {
                Some(method) if message.get("id").is_some() && row.question.as_deref() == Some(method) => {
                    return Ok(asked);
                }
                Some(_) if message.get("id").is_none() => {}
                _ => return Err(format!("expected a question, got {}", brief(&message))),
            }
        }
    }
}

impl Ask {
    fn play<L: Line>(&self, line: &mut L, captures: &mut Captures) -> Outcome {
        let params = pattern::fill_text(&self.params.to_string(), captures)?;
        let (id, mut asked) = line.ask(&self.ask, &params)?;
        let mut heard: Vec<String> = Vec::new();
        let mut open = self.question.as_deref();
        loop {
            let message = line.hear(&mut asked)?.ok_or("the answer ended without the answer")?;
            let method = message["method"].as_str();
            match (method, message.get("id")) {
                (Some(method), None) => heard.push(method.to_owned()),
                (Some(method), Some(question)) if open == Some(method) => {
                    open = None;
                    if self.cancel {
                        line.tell(
                            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
                        )?;
                        line.tell(self.reply(question))?;
                        return line.cancelled(id, asked);
                    }
                    line.tell(self.reply(question))?;
                }
                (None, Some(answered)) if *answered == id && open.is_none() => {
                    self.check(&message, captures)?;
                    break;
                }
                _ => return Err(format!("not expected here: {}", brief(&message))),
            }
        }
        line.done(asked)?;
        let Some(wanted) = &self.hears else { return Ok(()) };
        while !heard.contains(wanted) {
            let message = line.overhear().map_err(|reason| format!("no {wanted}: {reason}"))?;
            heard.extend(message["method"].as_str().map(str::to_owned));
        }
        Ok(())
    }

    fn reply(&self, question: &Value) -> Value {
        let mut reply = self.reply.clone().unwrap_or_else(|| json!({"result": {}}));
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = question.clone();
        reply
    }

    fn check(&self, message: &Value, captures: &mut Captures) -> Outcome {
        let (member, wanted) = match (&self.result, &self.error) {
            (Some(result), None) => ("result", result),
            (None, Some(error)) => ("error", error),
            _ => return Err("a row has either a result or an error".into()),
        };
        let got = message.get(member).ok_or_else(|| format!("no {member}: {}", brief(message)))?;
        pattern::check(wanted, got, Strictness::Subset, captures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers from a list and remembers what it was sent.
    #[derive(Default)]
    struct Script {
        says: std::collections::VecDeque<Value>,
        sent: Vec<Value>,
    }

    impl Line for Script {
        type Asked = ();

        fn ask(&mut self, method: &str, params: &str) -> Outcome<(u64, ())> {
            let params: Value = serde_json::from_str(params).map_err(|error| error.to_string())?;
            self.sent.push(json!({"method": method, "params": params}));
            Ok((1, ()))
        }
        fn tell(&mut self, message: Value) -> Outcome {
            self.sent.push(message);
            Ok(())
        }
        fn hear(&mut self, (): &mut ()) -> Outcome<Option<Value>> {
            Ok(self.says.pop_front())
        }
        fn overhear(&mut self) -> Outcome<Value> {
            self.says.pop_front().ok_or_else(|| "nothing".into())
        }
        fn done(&mut self, (): ()) -> Outcome {
            Ok(())
        }
        fn cancelled(&mut self, _: u64, (): ()) -> Outcome {
            Ok(())
        }
    }

    fn play(row: Value, says: &[Value]) -> (Outcome, Vec<Value>) {
        let row: Row = serde_json::from_value(row).expect("a row");
        let mut line = Script { says: says.iter().cloned().collect(), sent: Vec::new() };
        let outcome = row.play(&mut line, &mut Captures::from([("round".to_owned(), 7.into())]));
        (outcome, line.sent)
    }

    #[test]
    fn the_file_can_be_read() {
        let mix = Mix::read().expect("tests/leaks.json");
        assert!(!mix.round.is_empty() && !mix.leaving.is_empty() && !mix.unanswered.is_empty());
    }

    #[test]
    fn a_question_is_answered_and_what_is_not_asked_or_not_heard_is_told() {
        let row = json!({"ask": "a", "params": {"n": "${round}"}, "question": "q", "reply": {"result": {"x": 1}}, "result": {"ok": true}, "hears": "note"});
        let (question, answer) = (json!({"id": 5, "method": "q"}), json!({"id": 1, "result": {"ok": true}}));
        let note = json!({"method": "note"});
        let (outcome, sent) = play(row.clone(), &[question.clone(), answer.clone(), note.clone()]);
        outcome.expect("as the row says");
        assert_eq!(
            sent,
            [json!({"method": "a", "params": {"n": "7"}}), json!({"jsonrpc": "2.0", "id": 5, "result": {"x": 1}})]
        );
        assert!(play(row.clone(), &[answer.clone(), note]).0.is_err(), "answered without the question");
        assert!(play(row, &[question, answer]).0.is_err(), "no notification");
    }

    #[test]
    fn a_wrong_answer_is_told() {
        let row = json!({"ask": "a", "error": {"code": -32602}});
        assert!(play(row.clone(), &[json!({"id": 1, "error": {"code": -32602, "message": "m"}})]).0.is_ok());
        assert!(play(row.clone(), &[json!({"id": 1, "result": {}})]).0.is_err());
        assert!(play(row, &[json!({"id": 2, "error": {"code": -32602}})]).0.is_err());
    }
}
