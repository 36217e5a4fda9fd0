//! Questions that a task waits for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

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
    /// The questions that are asked in one go, this one among them.
    pub(super) group: Option<Group>,
    /// It waits for others of its group, and the client does not see it.
    pub(super) is_hidden: bool,
    pub(super) done: Done,
}

/// Questions that are asked in one go: the same for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Number of them.
    size: usize,
    /// Hash of them all.
    hash: u64,
}

impl Group {
    /// `None` for a question that is asked alone.
    pub(super) fn of(together: &[(String, RawJson)]) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        together.iter().for_each(|(method, params)| (method, params.get()).hash(&mut hasher));
        (together.len() > 1).then(|| Self { size: together.len(), hash: hasher.finish() })
    }
}

/// Waiting function of a question, and its answer.
pub(super) type Answered = (Done, RawJson);

/// The questions of one task. A key is never used twice.
#[derive(Default)]
pub(in crate::call::tasks) struct Questions {
    last: u64,
    open: Vec<(u64, String, Question)>,
    /// Groups, and the number of their questions that have come. The client sees none before the others are there.
    gathering: Vec<(Group, usize)>,
    /// Groups of which some questions do not come.
    scattered: Vec<Group>,
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
        let group = question.group;
        self.open.push((place, key, question));
        self.gather(group);
        Ok(place)
    }

    /// Another question of a group has come.
    fn gather(&mut self, group: Option<Group>) {
        let Some(group) = group.filter(|group| !self.scattered.contains(group)) else { return };
        match self.gathering.iter_mut().find(|(known, _)| *known == group) {
            Some((_, came)) => *came += 1,
            None => self.gathering.push((group, 1)),
        }
        if let Some((.., question)) = self.open.last_mut() {
            question.is_hidden = true;
        }
        if self.gathering.iter().any(|(known, came)| *known == group && *came >= group.size) {
            self.release(group);
        }
    }

    /// Shows what has come of a group.
    fn release(&mut self, group: Group) {
        self.gathering.retain(|(known, _)| *known != group);
        let all = self.open.iter_mut().filter(|(.., question)| question.group == Some(group));
        all.for_each(|(.., question)| question.is_hidden = false);
    }

    /// Returns true if questions wait for others of their group.
    pub(super) fn is_gathering(&self, group: Option<Group>) -> bool {
        group.is_some_and(|group| self.gathering.iter().any(|(known, _)| *known == group))
    }

    /// The questions of a group wait for no others any more. Returns false if they did not.
    pub(super) fn scatter(&mut self, group: Option<Group>) -> bool {
        let Some(group) = group.filter(|group| self.is_gathering(Some(*group))) else { return false };
        self.release(group);
        if self.scattered.len() == MAX_PENDING {
            self.scattered.remove(0);
        }
        self.scattered.push(group);
        true
    }

    /// Questions that the client sees.
    fn seen(&self) -> impl Iterator<Item = &(u64, String, Question)> {
        self.open.iter().filter(|(.., question)| !question.is_hidden)
    }

    fn key(&mut self, method: &str) -> String {
        self.last += 1;
        format!("{}-{}", method.split('/').next().unwrap_or(method), self.last)
    }

    pub(super) fn remove(&mut self, place: u64) -> Option<Question> {
        let at = self.open.iter().position(|(own, ..)| *own == place)?;
        let question = self.open.remove(at).2;
        self.scatter(question.group);
        Some(question)
    }

    /// Takes what answers open questions. Says whether any of them is another now.
    pub(super) fn answer(&mut self, responses: &Map<String, Value>, answered: &mut Vec<Answered>) -> bool {
        let mut changed = false;
        for (place, key, question) in std::mem::take(&mut self.open) {
            let Some(response) = responses.get(&key).filter(|_| !question.is_hidden) else {
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
        if self.seen().next().is_none() { TaskStatus::Working } else { TaskStatus::InputRequired }
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
        self.seen().map(|(_, key, question)| (key.clone(), request(question))).collect()
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

    fn group(names: &[&str]) -> Option<Group> {
        let all: Vec<_> = names.iter().map(|name| ((*name).to_owned(), RawJson::empty_object())).collect();
        Group::of(&all)
    }

    fn question(group: Option<Group>) -> Question {
        Question {
            method: "elicitation/create",
            params: RawJson::empty_object(),
            rules: Revision::NEWEST.rules(),
            judged: true,
            group,
            is_hidden: false,
            done: Box::new(drop),
        }
    }

    /// The number of questions that are seen after another one has come.
    fn seen_after(questions: &mut Questions, group: Option<Group>) -> usize {
        assert!(questions.add(question(group)).is_ok());
        let seen = questions.requests().len();
        assert_eq!(questions.status() == TaskStatus::InputRequired, seen > 0);
        seen
    }

    #[test]
    fn questions_of_one_go_are_seen_together() {
        let (two, other, three) = (group(&["a", "b"]), group(&["c", "d"]), group(&["a", "b", "c"]));
        let mut questions = Questions::default();
        let order = [(two, 0), (other, 0), (three, 0), (two, 2), (three, 2), (None, 3), (three, 6), (other, 8)];
        for (group, seen) in order {
            assert_eq!(seen_after(&mut questions, group), seen);
        }
        // The same once more.
        assert_eq!(seen_after(&mut questions, two), 8);
        assert_eq!(seen_after(&mut questions, two), 10);
    }

    #[test]
    fn a_question_taken_back_is_waited_for_by_none_of_its_group() {
        let (two, other) = (group(&["a", "b"]), group(&["c", "d", "e"]));
        let mut questions = Questions::default();
        assert_eq!(seen_after(&mut questions, None), 1);
        assert_eq!(seen_after(&mut questions, two), 1);
        assert_eq!(seen_after(&mut questions, other), 1);
        assert_eq!(seen_after(&mut questions, other), 1);
        assert!(questions.remove(2).is_some());
        assert_eq!(questions.requests().len(), 1, "the others gather still");
        assert_eq!(seen_after(&mut questions, two), 2);
        assert!(questions.remove(3).is_some());
        assert_eq!(questions.requests().len(), 3, "nobody gathers");
    }
}
