//! A task that somebody waits for.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ears::Ears;
use super::patience::Broken;
use super::{Client, locked};
use crate::call::tasks::{self, Requestor};
use crate::call::{CallOptions, Done, Guard, in_scope};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::Task;
use crate::signal::Signal;

/// The most questions that one task asks at once.
const MAX_QUESTIONS: usize = 64;

/// An answer that is being made. Given up, another may make it.
struct Claim {
    client: Client,
    id: String,
    key: String,
    sent: bool,
}

impl Claim {
    fn task(&self) -> &str {
        &self.id
    }

    fn is_sent(&mut self) {
        self.sent = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.sent {
            self.client.connected.known.extended.give_back(&self.id, &self.key);
        }
    }
}

/// First failure of the answers that are being made, and the signal that is set when one is made.
#[derive(Default)]
struct Answering {
    failed: Mutex<Option<Error>>,
    wake: Mutex<Arc<Signal>>,
}

/// A task that is listened to, where its server tells of it, and looked at, until it is finished. Its questions are answered
/// until this is dropped.
pub(in crate::client) struct Following {
    client: Client,
    id: String,
    options: CallOptions,
    requestor: Requestor,
    /// Since before the last look, or a change right after it would be missed.
    news: Arc<Signal>,
    answering: Arc<Answering>,
    making: Vec<Guard>,
    broken: Broken,
    ears: Ears,
}

impl Following {
    /// `options` are for each look. `patience` is for how long the way to the server may be broken.
    pub(in crate::client) fn new(
        client: &Client,
        id: &str,
        requestor: Requestor,
        options: &CallOptions,
        patience: Option<Duration>,
    ) -> Self {
        Self {
            client: client.clone(),
            id: id.to_owned(),
            requestor,
            options: options.clone(),
            news: Arc::default(),
            answering: Arc::default(),
            making: Vec::new(),
            broken: Broken::new(patience),
            ears: Ears::Closed,
        }
    }

    /// Returns the task as it is now. Its questions are on their way to the handlers that answer them.
    ///
    /// # Errors
    /// As a look; what went wrong with an answer.
    pub(in crate::client) async fn look(&mut self) -> Result<(Task, Map<String, Value>)> {
        let extended = &self.client.connected.known.extended;
        let (task, rest) = loop {
            self.news = self.client.connected.known.news(&self.id);
            *locked(&self.answering.wake) = self.news.clone();
            if let Some(error) = locked(&self.answering.failed).take() {
                return Err(error);
            }
            match self.client.look(&self.id, &self.requestor, &self.options).await {
                Ok(seen) => break seen,
                // A connection that broke off is nothing to the task.
                Err(error) if matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout) => {
                    let Some(pause) = self.broken.pause(self.requestor.now()) else { return Err(error) };
                    self.client.connected.hub.over.unless(self.requestor.rest(pause)).await;
                }
                Err(error) => return Err(error),
            }
        };
        self.broken.mended();
        if task.status.is_terminal() {
            extended.over(&self.id);
            self.ears = Ears::Deaf;
            return Ok((task, rest));
        }
        if let Some(Value::Object(questions)) = rest.get("inputRequests").cloned() {
            if questions.len() > MAX_QUESTIONS {
                let message = format!("result of tasks/get: more than {MAX_QUESTIONS} questions at once");
                return Err(Error::new(ErrorKind::PeerMisbehaved, message));
            }
            for (key, question) in questions {
                if extended.claim(&self.id, &key)? {
                    let guard = self.answer(key, question);
                    self.making.push(guard);
                }
            }
        }
        Ok((task, rest))
    }

    /// Waits until it is time for the next look.
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed).
    pub(in crate::client) async fn pause(&mut self, task: &Task) -> Result<()> {
        self.ears.open(&self.client, &self.id, self.requestor.trace());
        let (over, told) = (&self.client.connected.hub.over, self.ears.hear());
        let (requestor, news) = (&self.requestor, &self.news);
        let pause = async {
            match told {
                true => requestor.pause_told(task, news).await,
                false => drop(requestor.pause(task, news, None).await),
            }
        };
        let paused = over.unless(tasks::first(pin!(self.ears.news(task)), pin!(pause))).await.map(drop);
        paused.ok_or_else(|| Error::closed("the connection ended while a task was followed"))
    }

    /// Has a task's question answered, and brings the answer to the server.
    fn answer(&self, key: String, question: Value) -> Guard {
        let (client, heard, link) = (self.client.clone(), self.answering.clone(), self.client.connected.link.clone());
        let mut claim = Claim { client: client.clone(), id: self.id.clone(), key: key.clone(), sent: false };
        let (requestor, each, mut broken) = (self.requestor.clone(), CallOptions::default(), self.broken.clone());
        let work = async move {
            let questions = Map::from_iter([(key, question)]);
            let responses = client.responses("tasks/get", &questions, requestor.trace(), requestor.origin()).await?;
            let responses: Value = serde_json::from_str(&responses).unwrap_or_default();
            let params = RawJson::from_value(&json!({"taskId": claim.task(), "inputResponses": responses}));
            broken.mended();
            loop {
                let Err(error) = requestor.ask("tasks/update", Some(params.clone()), &each).await else { break };
                match error.kind() {
                    // Nobody knows whether it has arrived; what was answered is not asked again, so it may twice.
                    ErrorKind::Transport | ErrorKind::Timeout => {
                        let Some(pause) = broken.pause(requestor.now()) else { return Err(error) };
                        client.connected.hub.over.unless(requestor.rest(pause)).await;
                    }
                    // It may have, and ended the task.
                    ErrorKind::Rpc if broken.has_been() && !client.asks(&claim, &requestor, &each).await? => break,
                    _ => return Err(error),
                }
            }
            claim.is_sent();
            Ok(RawJson::empty_object())
        };
        let done: Done = Box::new(move |outcome| {
            if let Err(error) = outcome {
                *locked(&heard.failed) = Some(error);
            }
            let wake = locked(&heard.wake).clone();
            wake.set();
        });
        // Spans of it belong to those of whoever follows the task.
        tasks::following(&link, in_scope(work), done)
    }
}

impl Client {
    /// True if the task still waits for this answer.
    async fn asks(&self, claim: &Claim, requestor: &Requestor, options: &CallOptions) -> Result<bool> {
        let (task, rest) = self.look(&claim.id, requestor, options).await?;
        let questions = rest.get("inputRequests").and_then(Value::as_object);
        Ok(!task.status.is_terminal() && questions.is_some_and(|questions| questions.contains_key(&claim.key)))
    }
}
