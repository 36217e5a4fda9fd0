use super::ClientOptions;
use crate::call::TraceSource;
use crate::model::TraceContext;

impl ClientOptions {
    /// Asks this for the trace that a request belongs to, for each one that the client makes once it is connected, on
    /// the thread that makes it. The request's own options and `_meta` come first; `None` is no trace.
    ///
    /// ```
    /// use tricorn::TraceContext;
    /// use tricorn::client::ClientOptions;
    ///
    /// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let options = ClientOptions::new().trace_context(move || TraceContext::new(Some(parent), None, None).ok());
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn trace_context(mut self, f: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.trace = TraceSource::new(f);
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn trace_source(&self) -> TraceSource {
        self.trace.clone()
    }
}
