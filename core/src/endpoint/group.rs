//! Connections of a group to its servers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::client::{Client, ClientOptions, Connect, Handlers, Target};
use crate::driver::runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::server::Server;

type Connecting = Pin<Box<dyn Future<Output = Result<Client>> + Send>>;

impl Connect for Target {
    #[cfg_attr(not(feature = "auth"), expect(unused_mut, reason = "of auth"))]
    fn connect(&self, mut options: ClientOptions, handlers: Handlers, within: Duration) -> Connecting {
        let target = self.clone();
        let users = watched(&mut options);
        deadline(within, users, async move { Client::connect_with(&target, &options, &handlers).await })
    }
}

impl Connect for Server {
    fn connect(&self, options: ClientOptions, handlers: Handlers, within: Duration) -> Connecting {
        let server = self.clone();
        deadline(within, nobody(), async move { Client::in_memory_with(&server, &options, &handlers).await })
    }
}

fn nobody() -> watch::Receiver<usize> {
    watch::channel(0).1
}

/// Watches the number of users that are logging in for a connection with these options.
#[cfg(feature = "auth")]
fn watched(options: &mut ClientOptions) -> watch::Receiver<usize> {
    let Some((auth, users)) = options.auth.as_ref().map(crate::client::Auth::watched) else { return nobody() };
    options.auth = Some(auth);
    users
}

#[cfg(not(feature = "auth"))]
fn watched(_: &mut ClientOptions) -> watch::Receiver<usize> {
    nobody()
}

/// Runs a future as a task, whatever the caller's runtime is, and gives it up after this time.
fn deadline(
    within: Duration,
    users: watch::Receiver<usize>,
    future: impl Future<Output = Result<Client>> + Send + 'static,
) -> Connecting {
    Box::pin(async move {
        let mut task = Task(runtime::spawn(async move {
            if within.is_zero() {
                return future.await;
            }
            in_time(within, users, future).await.unwrap_or_else(|| {
                let time = crate::idiom::time(within);
                Err(Error::new(ErrorKind::Timeout, format!("the server was not connected within {time}")))
            })
        }));
        (&mut task.0).await.unwrap_or_else(|e| Err(Error::new(ErrorKind::Transport, format!("connecting failed: {e}"))))
    })
}

/// Returns the output of a future within this time, without the time that users take to log in: that has a limit of its
/// own.
async fn in_time<T>(within: Duration, mut users: watch::Receiver<usize>, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = within;
    loop {
        let begun = Instant::now();
        tokio::select! {
            biased;
            outcome = &mut future => return Some(outcome),
            () = until(&mut users, |users| users > 0) => left = left.saturating_sub(begun.elapsed()),
            () = sleep(left) => return None,
        }
        tokio::select! {
            biased;
            outcome = &mut future => return Some(outcome),
            () = until(&mut users, |users| users == 0) => {}
        }
    }
}

async fn until(users: &mut watch::Receiver<usize>, is_so: impl Fn(usize) -> bool) {
    if users.wait_for(|users| is_so(*users)).await.is_err() {
        // Nobody is left who could say so.
        std::future::pending::<()>().await;
    }
}

/// Ends with whoever waits for it.
struct Task(tokio::task::JoinHandle<Result<Client>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn what_users_take_to_log_in_does_not_count() {
        let (users, watched) = watch::channel(0_usize);
        let connecting = async {
            users.send_modify(|users| *users += 1);
            sleep(SHORT * 5).await;
            users.send_modify(|users| *users -= 1);
        };
        assert_eq!(in_time(SHORT, watched, connecting).await, Some(()));
    }

    #[tokio::test]
    async fn but_the_rest_does() {
        let (users, watched) = watch::channel(0_usize);
        let connecting = async {
            users.send_modify(|users| *users += 1);
            sleep(SHORT).await;
            users.send_modify(|users| *users -= 1);
            std::future::pending::<()>().await;
        };
        assert_eq!(in_time(SHORT, watched, connecting).await, None);
        assert_eq!(in_time(SHORT, nobody(), std::future::pending::<()>()).await, None);
    }
}
