//! The bridge: one queue from the engine to Python, one wake-up per batch through a file descriptor or a socket.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use tricorn::bridge::{self, Answer, Delivery, Host};
use tricorn::jsonrpc::RawJson;
use tricorn::{Error, ErrorKind};

use crate::error;
use crate::local::{Local, guarded};
use crate::wake::Wake;

/// Batches that one `poll` hands over before the event loop gets its turn again.
const ROUNDS: usize = 2;

/// The kinds of error that have no code.
const KINDS: [ErrorKind; 9] = [
    ErrorKind::PeerMisbehaved,
    ErrorKind::Unsupported,
    ErrorKind::Timeout,
    ErrorKind::Cancelled,
    ErrorKind::Closed,
    ErrorKind::Transport,
    ErrorKind::Auth,
    ErrorKind::Misuse,
    ErrorKind::InputRequired,
];

struct Waker(Arc<Wake>);

impl Host for Waker {
    fn wake(&self) {
        self.0.set();
    }
}

/// Everything that crosses between the engine and Python handlers and waiting calls.
#[pyclass(frozen, module = "tricorn._core")]
pub(crate) struct Bridge {
    pub(crate) inner: Local<bridge::Bridge>,
    wake: Local<Arc<Wake>>,
    /// The contexts that operations were started in, by their numbers: of all bridges.
    origins: Py<PyDict>,
}

/// JSON text from Python: `bytes` or `str` on one line, as msgspec writes it.
pub(crate) fn json(text: &Bound<'_, PyAny>) -> PyResult<RawJson> {
    if let Ok(bytes) = text.cast::<PyBytes>() {
        return Ok(RawJson::trusted(Bytes::copy_from_slice(bytes.as_bytes())));
    }
    if let Ok(string) = text.cast::<PyString>() {
        return Ok(RawJson::trusted(Bytes::copy_from_slice(string.to_str()?.as_bytes())));
    }
    Err(PyTypeError::new_err("JSON text must be bytes or str"))
}

/// Functions of Python for each kind of delivery.
struct Callbacks<'a, 'py> {
    table: &'a Bound<'py, PyAny>,
    cancel: &'a Bound<'py, PyAny>,
    settle: &'a Bound<'py, PyAny>,
    progress: &'a Bound<'py, PyAny>,
    event: &'a Bound<'py, PyAny>,
    origins: &'a Bound<'py, PyDict>,
}

impl<'py> Callbacks<'_, 'py> {
    /// Calls a function in a copy of the context that an operation was started in, where that is known.
    fn within(
        &self,
        origin: u64,
        function: &Bound<'py, PyAny>,
        arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        let arguments = arguments.into_pyobject(py)?;
        let context = if origin == 0 { None } else { self.origins.get_item(origin)? };
        let Some(context) = context else { return function.call1(arguments) };
        let copy = context.call_method0(intern!(py, "copy"))?;
        let mut all = vec![function.clone()];
        all.extend(arguments.iter());
        copy.call_method1(intern!(py, "run"), PyTuple::new(py, all)?)
    }

    fn deliver(&self, py: Python<'py>, delivery: Delivery) -> PyResult<()> {
        match delivery {
            Delivery::Call { key, handler, params, origin } => {
                let entry = self.table.get_item(handler)?;
                self.within(origin, &entry, (PyBytes::new(py, params.bytes()), key))?
            }
            Delivery::Cancel { key, reason } => self.cancel.call1((key, reason))?,
            Delivery::Settle { op, outcome: Ok(value) } => {
                self.settle.call1((op, PyBytes::new(py, value.bytes()), py.None()))?
            }
            Delivery::Settle { op, outcome: Err(error) } => {
                self.settle.call1((op, py.None(), error::instance(py, &error)?))?
            }
            Delivery::Progress { op, params } => {
                self.within(op, self.progress, (op, PyBytes::new(py, params.bytes())))?
            }
            Delivery::Event { source, name, params, origin } => {
                self.within(origin, self.event, (source, name, PyBytes::new(py, params.bytes())))?
            }
            // A kind of delivery newer than this binding: nobody here can have asked for it.
            _ => return Ok(()),
        };
        Ok(())
    }
}

fn make() -> PyResult<(bridge::Bridge, Arc<Wake>)> {
    // A wake-up must not stand where a standard stream is looked for.
    #[cfg(unix)]
    bridge::occupy_streams();
    let wake = Arc::new(Wake::new()?);
    Ok((bridge::Bridge::new(Waker(Arc::clone(&wake))), wake))
}

/// An event loop lets these two out. Any other exception, CancelledError too, is the callback's own affair.
fn ends_the_loop(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py)
}

#[pymethods]
impl Bridge {
    #[new]
    #[pyo3(signature = (origins=None))]
    fn new(py: Python<'_>, origins: Option<Py<PyDict>>) -> PyResult<Self> {
        let origins = origins.unwrap_or_else(|| PyDict::new(py).unbind());
        guarded(|| {
            let (inner, wake) = make()?;
            Ok(Self { inner: Local::new(inner), wake: Local::new(wake), origins })
        })
    }

    /// Begins anew in a forked child: nothing of the parent's is under way here.
    fn renew(&self) -> PyResult<()> {
        guarded(|| {
            let (inner, wake) = make()?;
            self.wake.renew(wake);
            self.inner.renew(inner);
            Ok(())
        })
    }

    /// The descriptor that becomes readable when deliveries wait; -1 after `close_descriptor`, and on Windows.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.wake.get()?.descriptor())
    }

    /// The descriptor of a socket that becomes readable in place of `fileno`, until `unpair`; it is the caller's to close.
    /// None after `close_descriptor`.
    fn pair<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| match self.wake.get()?.pair()? {
            Some(near) => Ok(Some(near.into_pyobject(py)?.into_any())),
            None => Ok(None),
        })
    }

    /// Nobody listens to the socket of `pair` any more.
    fn unpair(&self) -> PyResult<()> {
        self.wake.get()?.unpair();
        Ok(())
    }

    /// Closes the descriptor of a bridge that is closed, once no event loop looks at it.
    fn close_descriptor(&self) -> PyResult<()> {
        self.wake.get()?.close();
        Ok(())
    }

    /// Called by the event loop when the descriptor is readable: takes the wake-up back and does what `poll` does;
    /// calls `again()` when there may be more.
    #[expect(clippy::too_many_arguments, reason = "one callback per kind of delivery")]
    fn ready(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        cancel: &Bound<'_, PyAny>,
        settle: &Bound<'_, PyAny>,
        progress: &Bound<'_, PyAny>,
        event: &Bound<'_, PyAny>,
        again: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.wake.get()?.clear();
        if self.poll(py, table, cancel, settle, progress, event)? {
            again.call0()?;
        }
        Ok(())
    }

    /// Hands over what is queued; False when nothing was left, which also re-arms the wake-up.
    ///
    /// `table[handler](params, key)`, `cancel(key, reason)`, `settle(op, value, error)`, `progress(op, params)`,
    /// `event(source, name, params)`; each in a copy of the context that its cause was started in, where `origins` has
    /// that. When one of them raises KeyboardInterrupt or SystemExit the rest stays queued,
    /// and the wake-up is armed for a loop that goes on all the same.
    fn poll(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        cancel: &Bound<'_, PyAny>,
        settle: &Bound<'_, PyAny>,
        progress: &Bound<'_, PyAny>,
        event: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let origins = self.origins.bind(py);
        let callbacks = Callbacks { table, cancel, settle, progress, event, origins };
        guarded(|| {
            let bridge = self.inner.get()?;
            for _ in 0..ROUNDS {
                let batch = bridge.take();
                if batch.is_empty() {
                    return Ok(false);
                }
                let mut rest = batch.into_iter();
                while let Some(delivery) = rest.next() {
                    match callbacks.deliver(py, delivery) {
                        Ok(()) => {}
                        Err(error) if ends_the_loop(py, &error) => {
                            bridge.put_back(rest.collect());
                            self.wake.get()?.set();
                            return Err(error);
                        }
                        // One broken callback must not cost the others their delivery.
                        Err(error) => error.write_unraisable(py, None),
                    }
                }
            }
            Ok(true)
        })
    }

    /// Answers a call with a complete result object.
    fn result(&self, key: u64, result: &Bound<'_, PyAny>) -> PyResult<bool> {
        let result = json(result)?;
        self.answer(key, Answer::Result(result))
    }

    /// Answers a call with a plain value, from which the engine makes content and structured content.
    fn value(&self, key: u64, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let value = json(value)?;
        self.answer(key, Answer::Value(value))
    }

    /// Answers a call with one text block.
    fn text(&self, key: u64, text: String) -> PyResult<bool> {
        self.answer(key, Answer::Text(text))
    }

    /// Answers a call with a failed result that shows `text` to the model.
    fn failed(&self, key: u64, text: String) -> PyResult<bool> {
        self.answer(key, Answer::Failed(text))
    }

    /// Answers a call with a JSON-RPC error; without a code it is an internal error to the peer, and of this `kind` to
    /// the middleware around the call.
    /// `refusal` is that of an exception of a question that was not sent.
    #[pyo3(signature = (key, message, code=None, data=None, kind=None, refusal=None))]
    fn error(
        &self,
        key: u64,
        message: String,
        code: Option<i64>,
        data: Option<&Bound<'_, PyAny>>,
        kind: Option<&str>,
        refusal: Option<u64>,
    ) -> PyResult<bool> {
        let kind = KINDS.into_iter().find(|known| Some(known.as_str()) == kind);
        let mut error = match code {
            Some(code) => Error::rpc(code, message),
            None => Error::new(kind.unwrap_or(ErrorKind::Closed), message),
        };
        if let Some(data) = data {
            error = error.with_data(json(data)?);
        }
        self.answer(key, Answer::Error(error.with_refusal(refusal)))
    }

    /// Answers a call whose handler was removed while it was on its way.
    fn gone(&self, key: u64) -> PyResult<bool> {
        self.answer(key, Answer::Gone)
    }

    /// Answers a call with what its client has to answer first: `{"inputRequests"?, "state"?}`.
    fn input_required(&self, key: u64, required: &Bound<'_, PyAny>) -> PyResult<bool> {
        let required = json(required)?;
        self.answer(key, Answer::InputRequired(required))
    }

    /// Answers to the last round of a running call that its handler asked by hand: `{"inputResponses", "state"?}`; None
    /// when the call is over.
    fn input<'py>(&self, py: Python<'py>, key: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guarded(|| Ok(error::checked(self.inner.get()?.input(key))?.map(|input| PyBytes::new(py, input.bytes()))))
    }

    /// The result of a step that was done in an earlier round of a running call.
    fn step<'py>(&self, py: Python<'py>, key: u64, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guarded(|| Ok(error::checked(self.inner.get()?.step(key, name))?.map(|done| PyBytes::new(py, done.bytes()))))
    }

    /// A step of a running call is done.
    fn stepped(&self, key: u64, name: &str, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let result = json(result)?;
        guarded(|| error::checked(self.inner.get()?.stepped(key, name, result)))
    }

    /// Goes on with the request that middleware was called about, with other parameters where some are given; `op`
    /// settles with the result object. `trace` is the trace that it belongs to from here on, as JSON.
    #[pyo3(signature = (key, op, params=None, trace=""))]
    fn next(&self, key: u64, op: u64, params: Option<&Bound<'_, PyAny>>, trace: &str) -> PyResult<()> {
        let params = params.map(json).transpose()?;
        guarded(|| {
            self.inner.get()?.next(key, op, params, trace);
            Ok(())
        })
    }

    /// The request context of a running call as JSON; None when the call is over.
    fn context<'py>(&self, py: Python<'py>, key: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guarded(|| Ok(self.inner.get()?.context(key).map(|context| PyBytes::new(py, context.bytes()))))
    }

    /// Reports progress of a running call; False when the call is over.
    #[pyo3(signature = (key, progress, total=None, message=None))]
    fn progress(&self, key: u64, progress: f64, total: Option<f64>, message: Option<&str>) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.progress(key, progress, total, message)))
    }

    /// Says what a running call is doing, for who looks at its task; False when the call is over.
    fn set_status(&self, key: u64, message: &str) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.set_status(key, message)))
    }

    /// Lets a running call go on as a task; False when its client takes none, or the server has none.
    fn run_as_task(&self, key: u64) -> PyResult<bool> {
        guarded(|| error::checked(self.inner.get()?.run_as_task(key)))
    }

    /// Sends a log message of a running call; False when the client's level filters it out.
    fn log(&self, key: u64, level: &str, logger: Option<&str>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let data = json(data)?;
        guarded(|| error::checked(self.inner.get()?.log(key, level, logger, &data)))
    }

    /// Raises the protocol error to pass on when the client did not declare `capability`.
    fn require(&self, key: u64, capability: &str) -> PyResult<()> {
        guarded(|| error::checked(self.inner.get()?.require(key, capability)))
    }

    /// Sends a request to the client of a running call, as part of it; `op` settles with the result object.
    #[pyo3(signature = (key, op, method, params=None, options=""))]
    fn ask(&self, key: u64, op: u64, method: &str, params: Option<&Bound<'_, PyAny>>, options: &str) -> PyResult<()> {
        let params = params.map(json).transpose()?;
        guarded(|| {
            self.inner.get()?.ask(key, op, method, params, options);
            Ok(())
        })
    }

    /// Sends a notification to the client of a running call; False when the call is over.
    #[pyo3(signature = (key, method, params=None))]
    fn notify(&self, key: u64, method: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let params = params.map(json).transpose()?;
        guarded(|| error::checked(self.inner.get()?.notify(key, method, params)))
    }

    /// Ends the stream that a running call's answer goes on; its client comes back for the rest. False when the call is
    /// over.
    fn close_stream(&self, key: u64) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.close_stream(key)))
    }

    /// Adds something for the client of a running call alone, as `Server.add`.
    fn session_add(&self, key: u64, kind: &str, definition: &str, options: &str, handler: u32) -> PyResult<()> {
        guarded(|| error::checked(self.inner.get()?.session_add(key, kind, definition, options, handler)))
    }

    /// Removes what was added for the client of a running call alone; False when there is none.
    fn session_remove(&self, key: u64, kind: &str, name: &str) -> PyResult<bool> {
        guarded(|| error::checked(self.inner.get()?.session_remove(key, kind, name)))
    }

    /// Shows or hides something from the client of a running call alone; False when that changed nothing.
    fn set_enabled(&self, key: u64, kind: &str, name: &str, yes: bool) -> PyResult<bool> {
        guarded(|| error::checked(self.inner.get()?.set_enabled(key, kind, name, yes)))
    }

    /// Python no longer waits for `op`; an unanswered request is cancelled at the peer. True: something still runs for
    /// it, and the event `freed` says when that is over.
    fn settle(&self, op: u64) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.settle(op)))
    }

    /// Panics. For the test that a panic is an ordinary error on the other side.
    fn panic(&self, message: &str) -> PyResult<()> {
        guarded(|| panic!("{message}"))
    }

    /// The host is gone: every call gets an error, every operation is dropped, no more wake-ups.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            let bridge = self.inner.get()?;
            py.detach(|| bridge.close());
            Ok(())
        })
    }
}

impl Bridge {
    fn answer(&self, key: u64, answer: Answer) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.complete(key, answer)))
    }
}
