//! Rounds in a handler's context.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Answer, Input, Rounds, ask, lacking, no_rounds, refused, undeclared};
use crate::call::{Context, Done, Guard};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::jsonrpc::RawJson;
use crate::model::TraceContext;
use crate::protocol::revision::{Era, Method};
use crate::protocol::{Payload, Role};

impl Context {
    /// Returns true if the question goes out with this request's answer, as the revision's servers send no requests.
    pub(in crate::call) fn asks_by_rounds(&self, method: &str) -> bool {
        let modern = self.request().revision.era() == Era::Modern && self.link().role() == Role::Server;
        modern && !self.link().is_detached() && Method::find(method).is_some_and(Method::is_question)
    }

    /// Returns true if the principal of the request matters: it may ask its client in rounds, or is about tasks.
    pub(crate) fn needs_principal(&self) -> bool {
        let request = self.request();
        let is_of_tasks = request.method.starts_with("tasks/") || request.method == "subscriptions/listen";
        request.rounds.is_some() || (is_of_tasks && request.revision.era() == Era::Modern)
    }

    /// A run of its handler begins: takes up the rounds that the request goes on with, if it does.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    pub(crate) fn resume(&self) -> Result<()> {
        let Some(request) = &self.request().rounds else { return Ok(()) };
        if request.goes_on {
            self.rounds()?;
        }
        if let Some(rounds) = request.kept.get().and_then(|kept| kept.downcast_ref::<Rounds>()) {
            rounds.begin();
        }
        request.has_run.store(true, Ordering::Release);
        Ok(())
    }

    /// Its handler is about to run once more.
    pub(in crate::call) fn begin_again(&self) {
        let kept = self.request().rounds.as_ref().and_then(|request| request.kept.get());
        if let Some(rounds) = kept.and_then(|kept| kept.downcast_ref::<Rounds>()) {
            rounds.begin();
        }
    }

    /// Checks that the client can be asked this: what goes out together is checked before anything of it does.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the revision has no such question, or the client does not declare
    /// what it needs; as [`Rounds::check`].
    pub(in crate::call) fn can_ask(&self, method: &str, params: Option<&RawJson>) -> Result<()> {
        let (request, Some(row)) = (self.request(), Method::find(method).filter(|row| row.is_question())) else {
            return Ok(());
        };
        let declared = &request.peer.capabilities;
        // In a task, too, the request is answered as the revision has it when a question is refused.
        if request.revision.era() == Era::Modern && self.link().role() == Role::Server {
            return match self.rounds()? {
                Some(rounds) => rounds.check(method, params, declared).map(drop),
                None => Ok(()),
            };
        }
        if self.link().role() == Role::Client {
            return Ok(());
        }
        let (rules, empty) = (request.revision.rules(), RawJson::empty_object());
        if !row.exists_in(request.revision) {
            let message = format!("{method:?} does not exist in revision {}", request.revision);
            return Err(Error::new(ErrorKind::Unsupported, message).because(Reason::NotInRevision));
        }
        let (_, needed) = ask::prepared(rules, row.name, params.unwrap_or(&empty))?;
        let mut missing = lacking(row.capability.into_iter().chain(needed), declared);
        missing.next().map_or(Ok(()), |first| Err(undeclared(row.name, first)))
    }

    /// Returns the digest of a question that goes out as a request, and may be come to again: its handler runs once
    /// more when it asks by hand.
    pub(in crate::call) fn question(&self, method: &str, params: Option<&RawJson>) -> Option<[u8; 32]> {
        let is_asked = Method::find(method).is_some_and(Method::is_question) && self.link().role() == Role::Server;
        (is_asked && super::may_ask(self.request())).then(|| super::known_by(method, params))
    }

    /// The rounds of questions of this request, which can have some.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    pub(crate) fn rounds(&self) -> Result<Option<&Rounds>> {
        let Some(request) = &self.request().rounds else { return Ok(None) };
        if request.kept.get().is_none() {
            let Some(sealer) = self.state() else { return Ok(None) };
            let rounds = Rounds::of(sealer, self, &request.params)?;
            if request.has_run.load(Ordering::Acquire) {
                rounds.begin();
            }
            let _ = request.kept.set(Arc::new(rounds));
        }
        Ok(request.kept.get().and_then(|kept| kept.downcast_ref()))
    }

    /// The handler asks its client itself. Gives back what is to be asked by requests, where there are no rounds.
    ///
    /// # Errors
    /// −32603 for a method that cannot ask; as [`Rounds::own`].
    pub(in crate::call) fn require_input(&self, input: Input) -> Result<Option<Input>> {
        if self.link().is_detached() {
            return Ok(Some(input));
        }
        match self.rounds()? {
            Some(rounds) => {
                let trace = self.trace_context();
                rounds.own(input, trace.as_ref(), &self.request().peer.capabilities).map(|()| None)
            }
            None if self.request().revision.era() == Era::Legacy => Ok(Some(input)),
            None => Err(no_rounds(self.request())),
        }
    }

    /// The answers to what the handler asked by hand in the last round, by its keys.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    pub(crate) fn responses(&self) -> Result<Map<String, Value>> {
        Ok(match (self.asked_by_hand(), self.rounds()?) {
            (Some(by_hand), _) => by_hand.responses(),
            (None, Some(rounds)) => rounds.by_hand().clone(),
            (None, None) => Map::new(),
        })
    }

    /// Returns the state that the handler, which asks by hand, gave itself in the last round.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    pub(crate) fn own_state(&self) -> Result<Option<RawJson>> {
        Ok(match (self.asked_by_hand(), self.rounds()?) {
            (Some(by_hand), _) => by_hand.state(),
            (None, rounds) => rounds.and_then(Rounds::own_state),
        })
    }

    /// Returns the answer that replaces this one, because of the questions that the handler has asked its client.
    /// `refused`: it ended with the error of a question that was not sent, and the number of that, if it is known.
    pub(in crate::call) fn instead(
        &self,
        outcome: &Result<Payload>,
        refused: Option<Option<u64>>,
    ) -> Option<Result<Payload>> {
        let rounds: &Rounds = self.request().rounds.as_ref()?.kept.get()?.downcast_ref()?;
        // Answers that were meant, and not failures on the way.
        let (refused, meant) = match outcome {
            Ok(Payload::Failed(_)) => (refused, false),
            Ok(_) => (refused, true),
            Err(error) if error.kind() == ErrorKind::Unsupported => (Some(error.refusal()), false),
            Err(error) => (refused, error.code().is_some()),
        };
        // A client that cannot be asked everything is asked nothing.
        let refused = refused.and_then(|number| rounds.refusal(number)).map(Err);
        refused.or_else(|| rounds.outcome(meant))
    }

    /// Returns true if the run of the handler ends at a question.
    pub(in crate::call) fn has_asked(&self) -> bool {
        let kept = self.request().rounds.as_ref().and_then(|request| request.kept.get());
        kept.and_then(|kept| kept.downcast_ref::<Rounds>()).is_some_and(Rounds::has_asked)
    }

    pub(in crate::call) fn ask_by_rounds(
        &self,
        method: &str,
        params: Option<RawJson>,
        trace: Option<TraceContext>,
        judged: bool,
        done: Done,
    ) -> Guard {
        let answer = match self.rounds() {
            Ok(Some(rounds)) => rounds.ask(method, params.as_ref(), trace, &self.request().peer.capabilities, judged),
            Ok(None) => Err(refused(method, self.request())),
            Err(error) => Err(error),
        };
        match answer {
            Ok(Answer::Now(result)) => done(Ok(result)),
            Err(error) => done(Err(error)),
            // Later, so that what is asked at the same time is asked, too.
            Ok(Answer::Later) => self.link().spawn(Box::pin(async move {
                tokio::task::yield_now().await;
                done(Err(Error::input_required()));
            })),
        }
        Box::new(())
    }

    /// Does something once, in whichever round the handler comes to it first, and gives its result in every round: what
    /// must not happen again when the handler runs again, after a question of revision 2026-07-28. The result travels in
    /// the request's sealed state, so it has to be small. In other revisions a handler runs once, unless it keeps its rounds
    /// itself.
    ///
    /// `work` runs where this is awaited: dropped before its end, as by `try_join!` with a question that ends the run, it is
    /// not done, and begins anew when the handler runs again. `tokio::join!` lets it come to its end.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a second step of this name in the request, or a result that is no JSON.
    pub async fn step<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        name: &str,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        if let Some(done) = self.step_result(name)? {
            return done.to().map_err(|e| Error::misuse(format!("step {name:?}: its result of an earlier round: {e}")));
        }
        let result = work.await;
        let text = serde_json::to_string(&result).map_err(|e| Error::misuse(format!("step {name:?}: {e}")))?;
        self.step_done(name, RawJson::written(text))?;
        Ok(result)
    }

    /// The result of a step of this name that was done in an earlier round.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a second step of this name in this run.
    pub(crate) fn step_result(&self, name: &str) -> Result<Option<RawJson>> {
        match self.rounds()? {
            Some(rounds) => rounds.step(name),
            None => self.by_hand().step(name),
        }
    }

    /// A step is done.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    pub(crate) fn step_done(&self, name: &str, result: RawJson) -> Result<()> {
        match self.rounds()? {
            Some(rounds) => rounds.stepped(name, result),
            None => self.by_hand().stepped(name, result),
        }
        Ok(())
    }
}
