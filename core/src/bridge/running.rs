//! Operations of a host on a running call: answer it, tell and ask its client.

use std::sync::Arc;

use super::middleware::Through;
use super::origin::Entered;
use super::{Answer, Bridge, Delivery, Running, lock, server};
use crate::call::{CallOptions, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::object;
use crate::protocol::{LogLevel, Origin};

impl Bridge {
    /// Answers a call. `false`: it was cancelled, answered before or never made.
    pub fn complete(&self, key: u64, answer: Answer) -> bool {
        let Some(Running { context, reply, next }) = lock(&self.0.calls).remove(&key) else {
            return false;
        };
        let next_is_none = next.is_none();
        drop(next);
        let _entered = Entered::new(context.request().origin.clone());
        self.hold(&context);
        match answer {
            Answer::Result(object) => reply.result(object),
            Answer::Value(value) => reply.value(value),
            Answer::Text(text) => reply.text(text),
            Answer::Failed(text) => reply.failed(text),
            // For a function of the user's; the layers around it pass the error on.
            Answer::Error(error) if next_is_none && error.kind() == ErrorKind::Unsupported => reply.unsupported(&error),
            Answer::Error(error) => reply.error(error),
            Answer::Gone => reply.gone(),
            #[cfg(feature = "runtime")]
            Answer::InputRequired(text) => match super::input::read(&text) {
                Ok(input) => reply.input_required(input),
                Err(error) => reply.error(error),
            },
            #[cfg(not(feature = "runtime"))]
            Answer::InputRequired(_) => reply.error(Error::misuse("InputRequired needs a runtime")),
        }
        true
    }

    pub(super) fn running(&self, key: u64) -> Option<Context> {
        lock(&self.0.calls).get(&key).map(|running| running.context.clone())
    }

    /// Returns the facts of a running call, as JSON: `{"requestId", "method", "protocolVersion", "era", "clientInfo"?,
    /// "clientCapabilities", "progressToken"?, "logLevel"?, "meta"?, "taskId"?, "transport", "sessionId"?,
    /// "headers"?}`, `"through"?`: the call of the innermost middleware of this host that the request came through, and
    /// `"origin"?`: the operation that caused it, as [`Delivery::Call`] says.
    #[must_use]
    pub fn context(&self, key: u64) -> Option<RawJson> {
        self.running(key).map(|context| {
            let facts = context.request().to_json();
            let through = context.state::<Through>().map(|through| through.0);
            let origin = context.request().origin.as_ref().map(Origin::number);
            if through.is_none() && origin.is_none() {
                return facts;
            }
            let mut text = facts.get().to_owned();
            text.pop();
            for (name, number) in [("through", through), ("origin", origin)] {
                if let Some(number) = number {
                    object::push_member(&mut text, name, &number.to_string());
                }
            }
            text.push('}');
            RawJson::written(text)
        })
    }

    /// Reports progress of a running call. `false`: it is not running any more.
    pub fn progress(&self, key: u64, progress: f64, total: Option<f64>, message: Option<&str>) -> bool {
        self.running(key).is_some_and(|context| {
            context.progress(progress, total, message);
            true
        })
    }

    /// Sets the status of a running call, for readers of its task. `false`: it is not running any more.
    pub fn set_status(&self, key: u64, message: &str) -> bool {
        self.running(key).is_some_and(|context| {
            context.set_status(message);
            true
        })
    }

    /// Lets a running call go on as a task. `Ok(false)`: its client takes none, or the server has none, and nothing has
    /// changed. Its questions from now on settle as any others.
    ///
    /// # Errors
    /// As [`Context::run_as_task`]; [`Cancelled`](crate::ErrorKind::Cancelled): the call is not running any more.
    pub fn run_as_task(&self, key: u64) -> Result<bool> {
        match self.running(key) {
            Some(context) => context.run_as_task(),
            None => Err(Error::cancelled("the call is not running any more")),
        }
    }

    /// Sends a log message of a running call. `Ok(false)`: nobody wants it.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown level.
    #[expect(deprecated, reason = "hosts mark it in their languages")]
    pub fn log(&self, key: u64, level: &str, logger: Option<&str>, data: &RawJson) -> Result<bool> {
        let level: LogLevel = level.parse().map_err(|error: Error| Error::misuse(error.message()))?;
        Ok(self.running(key).is_some_and(|context| context.log(level, logger, data)))
    }

    /// Fails when the client of a running call does not declare `capability`, such as `sampling` or `elicitation.url`.
    ///
    /// # Errors
    /// The JSON-RPC error to answer the call with.
    pub fn require(&self, key: u64, capability: &str) -> Result<()> {
        match self.running(key) {
            Some(context) => context.require(capability),
            None => Err(Error::cancelled("the call is not running any more")),
        }
    }

    /// Sends a request to the client of a running call, as part of it, such as `elicitation/create`; settles its result.
    /// `options` are `{"timeout"?, "max_timeout"?, "progress"?, "task"?: {"ttl"?: milliseconds}}` or ""; with `task` it runs
    /// as a task of the client, of which the result is settled. Settling `op` early cancels it.
    pub fn ask(&self, key: u64, op: u64, method: &str, params: Option<RawJson>, options: &str) {
        let prepared = match self.running(key) {
            Some(context) => CallOptions::parse(options).map(|options| (context, options)),
            None => Err(Error::cancelled("the call is not running any more")),
        };
        let bridge = self.clone();
        self.operation(op, |finish| match prepared {
            Err(error) => {
                finish.with(Err(error));
                Box::new(())
            }
            Ok((context, (mut options, progress))) => {
                if progress {
                    options.progress = Some(Arc::new(move |params| bridge.offer(Delivery::Progress { op, params })));
                }
                context.start(method, params, &options, Box::new(move |outcome| finish.with(outcome)))
            }
        });
    }

    /// Sends a notification to the client of a running call, as part of it. `Ok(false)`: it is not running any more.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a method that a server does not notify in this revision.
    pub fn notify(&self, key: u64, method: &str, params: Option<RawJson>) -> Result<bool> {
        self.running(key).map_or(Ok(false), |context| context.notify(method, params).map(|()| true))
    }

    /// Ends the event stream that the answer of a running call goes on; its client comes back for the rest. `false`: it
    /// is not running any more.
    pub fn close_stream(&self, key: u64) -> bool {
        self.running(key).is_some_and(|context| {
            context.close_stream();
            true
        })
    }

    /// Adds a tool, a resource, a resource template or a prompt for the client of a running call alone; the arguments are
    /// those of [`Server::add`](super::Server::add). When nothing will call a handler any more that was taken, the host is
    /// told by the event `released` `{"handler"}` of source 0. When this fails, none will be called.
    ///
    /// # Errors
    /// As [`Server::add`](super::Server::add); [`Unsupported`](crate::ErrorKind::Unsupported) in revisions without
    /// sessions, and when the client was not told of such things as it connected.
    pub fn session_add(&self, key: u64, kind: &str, definition: &str, options: &str, handler: u32) -> Result<()> {
        let session = self.session(key)?;
        server::add(self, &server::Place::Session(session), kind, definition, options, handler)
    }

    /// Removes what was added for the client of a running call alone. Says whether there was something.
    ///
    /// # Errors
    /// As [`set_enabled`](Self::set_enabled).
    pub fn session_remove(&self, key: u64, kind: &str, name: &str) -> Result<bool> {
        let kind = server::kind_of(kind)?;
        self.session(key)?.remove(kind, name)
    }

    fn session(&self, key: u64) -> Result<crate::server::Session> {
        match self.running(key) {
            Some(context) => context.session(),
            None => Err(Error::cancelled("the call is not running any more")),
        }
    }

    /// Shows or hides something from the client of a running call alone. Says whether that changed anything.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in revisions without sessions,
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown kind.
    pub fn set_enabled(&self, key: u64, kind: &str, name: &str, yes: bool) -> Result<bool> {
        let kind = server::kind_of(kind)?;
        self.session(key)?.set_enabled(kind, name, yes)
    }
}
