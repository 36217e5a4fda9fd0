//! How a group reaches its servers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::client::{Client, ClientOptions, Connect, Handlers, Target};
use crate::driver::runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::server::Server;

type Connecting = Pin<Box<dyn Future<Output = Result<Client>> + Send>>;

impl Connect for Target {
    fn connect(&self, options: ClientOptions, handlers: Handlers, within: Duration) -> Connecting {
        let target = self.clone();
        deadline(within, async move { Client::connect_with(&target, &options, &handlers).await })
    }
}

impl Connect for Server {
    fn connect(&self, options: ClientOptions, handlers: Handlers, within: Duration) -> Connecting {
        let server = self.clone();
        deadline(within, async move { Client::in_memory_with(&server, &options, &handlers).await })
    }
}

/// Runs a future as a task, whatever the caller's runtime is, and gives it up after this time.
fn deadline(within: Duration, future: impl Future<Output = Result<Client>> + Send + 'static) -> Connecting {
    Box::pin(async move {
        let task = runtime::spawn(async move {
            if within.is_zero() {
                return future.await;
            }
            tokio::time::timeout(within, future).await.unwrap_or_else(|_| {
                let seconds = within.as_secs_f64();
                Err(Error::new(ErrorKind::Timeout, format!("the server was not connected within {seconds} s")))
            })
        });
        let mut task = Task(task);
        (&mut task.0).await.unwrap_or_else(|e| Err(Error::new(ErrorKind::Transport, format!("connecting failed: {e}"))))
    })
}

/// Ends with whoever waits for it.
struct Task(tokio::task::JoinHandle<Result<Client>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
