//! Questions that a task waits for.

use serde_json::{Map, Value, json};

use crate::call::request::Done;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::TaskStatus;
use crate::protocol::revision::{Rules, ask};

/// The most questions of one task that wait at the same time.
const MAX_PENDING: usize = 64;

/// The most bytes of them.
const MAX_BYTES: usize = 1 << 20;

/// A question to the client.
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) params: RawJson,
    pub(super) rules: &'static Rules,
    /// Somebody else judges a form's answer.
    pub(super) judged: bool,
    /// All that are asked in one go, this one among them.
    pub(super) together: usize,
    pub(super) done: Done,
}

/// Waiting function of a question, and its answer.
pub(super) type Answered = (Done, RawJson);

/// The questions of one task. A key is never used twice.
#[derive(Default)]
pub(in crate::call::tasks) struct Questions {
    last: u64,
    open: Vec<(u64, String, Question)>,
    /// Questions that are asked in one go, by their number: how many of them have come. The client sees none before the
    /// others are there.
    gathering: Vec<(usize, usize)>,
    /// Some of them do not come.
    scattered: bool,
}

impl Questions {
    /// Says the question's place, which stays although its key may change.
    ///
    /// # Errors
    /// Gives the question back when too many wait.
    pub(super) fn add(&mut self, question: Question) -> Result<u64, (Question, Error)> {
        if self.open.len() >= MAX_PENDING {
            return Err((question, Error::misuse(format!("{MAX_PENDING} questions wait for the client already"))));
        }
        let held: usize = self.open.iter().map(|(.., question)| question.params.get().len()).sum();
        if held + question.params.get().len() > MAX_BYTES {
            let message = format!("the questions of a task that wait for the client have {MAX_BYTES} bytes at most");
            return Err((question, Error::misuse(message)));
        }
        let place = self.last + 1;
        let key = self.key(question.method);
        self.gather(question.together);
        self.open.push((place, key, question));
        Ok(place)
    }

    fn gather(&mut self, together: usize) {
        if self.scattered || together < 2 {
            return;
        }
        match self.gathering.iter_mut().find(|(number, _)| *number == together) {
            Some((_, came)) => *came += 1,
            None => self.gathering.push((together, 1)),
        }
        self.gathering.retain(|(number, came)| came < number);
    }

    /// Returns true if questions wait for others that are asked with them.
    pub(super) fn is_gathering(&self) -> bool {
        !self.gathering.is_empty()
    }

    /// Questions wait for no others any more.
    pub(super) fn scatter(&mut self) {
        self.scattered |= self.is_gathering();
        self.gathering.clear();
    }

    fn key(&mut self, method: &str) -> String {
        self.last += 1;
        format!("{}-{}", method.split('/').next().unwrap_or(method), self.last)
    }

    pub(super) fn remove(&mut self, place: u64) -> Option<Question> {
        let at = self.open.iter().position(|(own, ..)| *own == place)?;
        self.scatter();
        Some(self.open.remove(at).2)
    }

    /// Takes what answers open questions. Says whether any of them is another now.
    pub(super) fn answer(&mut self, responses: &Map<String, Value>, answered: &mut Vec<Answered>) -> bool {
        let mut changed = false;
        for (place, key, question) in std::mem::take(&mut self.open) {
            let Some(response) = responses.get(&key) else {
                self.open.push((place, key, question));
                continue;
            };
            changed = true;
            let Question { method, params, rules, judged, .. } = &question;
            match ask::received(rules, method, Some(params), RawJson::from_value(response), *judged) {
                Ok(result) => answered.push((question.done, result)),
                Err(_) => {
                    let key = self.key(method);
                    self.open.push((place, key, question));
                }
            }
        }
        changed
    }

    /// Returns the status of the task.
    pub(super) fn status(&self) -> TaskStatus {
        if self.open.is_empty() || self.is_gathering() { TaskStatus::Working } else { TaskStatus::InputRequired }
    }

    /// The questions as `inputRequests`.
    pub(in crate::call::tasks) fn requests(&self) -> Map<String, Value> {
        let request = |question: &Question| {
            let mut request = json!({"method": question.method});
            if question.method != "roots/list" || question.params.get() != "{}" {
                request["params"] = question.params.to().unwrap_or_default();
            }
            request
        };
        self.open.iter().map(|(_, key, question)| (key.clone(), request(question))).collect()
    }

    /// The task is over.
    pub(in crate::call::tasks) fn end(self, error: &Error) {
        for (_, _, question) in self.open {
            (question.done)(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;

    fn question(together: usize) -> Question {
        Question {
            method: "elicitation/create",
            params: RawJson::empty_object(),
            rules: Revision::NEWEST.rules(),
            judged: true,
            together,
            done: Box::new(drop),
        }
    }

    fn status_after(questions: &mut Questions, together: usize) -> TaskStatus {
        assert!(questions.add(question(together)).is_ok());
        questions.status()
    }

    #[test]
    fn questions_of_one_go_are_seen_together() {
        let mut questions = Questions::default();
        assert_eq!(status_after(&mut questions, 2), TaskStatus::Working);
        assert_eq!(status_after(&mut questions, 3), TaskStatus::Working);
        assert_eq!(status_after(&mut questions, 2), TaskStatus::Working);
        assert_eq!(status_after(&mut questions, 3), TaskStatus::Working);
        assert_eq!(status_after(&mut questions, 3), TaskStatus::InputRequired);
        assert_eq!(questions.requests().len(), 5);
    }

    #[test]
    fn a_question_taken_back_is_waited_for_by_none() {
        let mut questions = Questions::default();
        assert_eq!(status_after(&mut questions, 1), TaskStatus::InputRequired);
        assert_eq!(status_after(&mut questions, 2), TaskStatus::Working);
        assert!(questions.remove(2).is_some());
        assert_eq!(questions.status(), TaskStatus::InputRequired);
        assert_eq!(status_after(&mut questions, 2), TaskStatus::InputRequired);
    }
}
