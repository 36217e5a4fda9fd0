//! Logins at protected servers: in, out, whose they are, and a token for another program.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use tricorn::auth::Login as Stored;
use tricorn::client::{Auth, Browser, Client, ClientOptions, Events, Handlers, Target};
use tricorn::{BoxFuture, Error, ErrorKind};

use crate::arguments::{Login, Logins};
use crate::connection::runtime;
use crate::failure::{FAILED, Failure, INTERRUPTED, LOGIN, Outcome};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::logins::{newest, secret};
use crate::output::{Screen, one_line};
use crate::questions;
use crate::targets;

/// Action on a login.
#[derive(Clone, Copy)]
pub(super) enum Wish {
    LogOut,
    Show,
    Token,
}

/// Logs in at a server, and keeps the login.
pub(super) fn login(login: &Login, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let (name, target) = targets::remote(&login.url, launcher)?;
    let url = url_of(&target);
    let mut auth = Auth::new()
        .client_name("tricorn")
        // Several stand in one word where they were copied from a request.
        .scopes(login.scope.iter().flat_map(|given| given.split_whitespace()))
        .login_timeout(login.timeout)
        .browser(Asks { screen: screen.clone(), is_shown: login.no_browser || !screen.can_ask() });
    if let Some(id) = &login.client_id {
        auth = secret().into_iter().fold(auth.client_id(id), Auth::client_secret);
    }
    if let Some(issuer) = &login.issuer {
        auth = auth.issuer(issuer);
    }
    if let Some(port) = login.redirect_port {
        auth = auth.redirect_port(port);
    }
    let options = ClientOptions::new().restart(false).auth(auth.clone());
    let options = login.header.iter().fold(options, |options, (name, value)| options.header(name, value));
    let connected = in_time(screen, async {
        let handlers = Handlers::new().events(Arc::new(Warns(screen.clone())));
        let client = Client::connect_with(&target, &options, &handlers).await?;
        // Some servers ask for a login later than others.
        let asked = match auth.trace().is_empty() && client.capabilities().has("tools") {
            true => client.list_tools().await.map(drop),
            false => Ok(()),
        };
        client.close().await;
        match asked {
            Err(error) if error.kind() == ErrorKind::Auth => Err(error),
            _ => auth.logins(url).await,
        }
    });
    // The trace is there however it ended.
    for step in auth.trace() {
        let asked = [Some(step.step.to_owned()), step.url, step.status.map(|status| status.to_string())];
        let asked = asked.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let style = screen.error_style();
        screen.line(&format!("{} {}", style.dim(&one_line(&format!("{asked}:"))), one_line(&step.decision)));
    }
    let stored = connected?.map_err(|error| failed(&name, &error))?;
    let Some(own) = stored.first() else {
        if !auth.trace().is_empty() {
            return Err(Failure::new(FAILED, format!("{name}: the login was not kept")));
        }
        if login.json {
            screen.json(&json!({"needed": false}));
        } else {
            screen.print(&format!("{name} asks for no login"));
        }
        return Ok(0);
    };
    if login.json {
        screen.json(&shown(own, &name));
    } else {
        let again = if auth.trace().is_empty() { "already logged in" } else { "logged in" };
        screen.print(&format!("{again}: {}", card(own, &name)));
    }
    Ok(0)
}

/// Says what a login ended with.
fn failed(name: &str, error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::Auth => Failure::new(LOGIN, format!("{name}: {}", error.message())),
        _ => Failure::connecting(name, error),
    }
}

/// Does something with what is stored for a server.
pub(super) fn logins(wish: Wish, logins: &Logins, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let (name, target) = targets::remote(&logins.url, launcher)?;
    let url = url_of(&target).to_owned();
    let store = |error: Error| match error.kind() {
        ErrorKind::Misuse => Failure::misuse(error.message()),
        _ => Failure::new(FAILED, error.message()),
    };
    in_time(screen, async {
        match wish {
            Wish::LogOut => {
                let removed = Auth::new().log_out(&url).await.map_err(store)?;
                match (logins.json, removed) {
                    (true, _) => screen.json(&json!({"removed": removed})),
                    (false, true) => screen.print(&format!("logged out of {name}")),
                    (false, false) => screen.print(&format!("there was no login for {name}")),
                }
            }
            Wish::Show => {
                let stored = Auth::new().logins(&url).await.map_err(store)?;
                if stored.is_empty() {
                    return Err(none(&name));
                }
                if logins.json {
                    screen.json(&stored.iter().map(|login| shown(login, &name)).collect::<Vec<_>>());
                } else {
                    stored.iter().for_each(|login| screen.print(&card(login, &name)));
                }
            }
            Wish::Token => {
                let (mut login, auth) = newest(&url).await.map_err(store)?.ok_or_else(|| none(&name))?;
                refuse_bound(&name, &login)?;
                if login.is_stale(SystemTime::now()) && login.refreshes {
                    let options = ClientOptions::new().restart(false).auth(auth);
                    let client = Client::connect(&target, &options).await;
                    client.map_err(|error| Failure::connecting(&name, &error))?.close().await;
                    (login, _) = newest(&url).await.map_err(store)?.ok_or_else(|| none(&name))?;
                    refuse_bound(&name, &login)?;
                }
                let is_over = login.expires_at.is_some_and(|at| at <= SystemTime::now());
                let Some(token) = login.access_token().filter(|_| !is_over) else {
                    let why = "the stored token has expired, and cannot be refreshed";
                    return Err(Failure::new(LOGIN, format!("{name}: {why}: tricorn login {name}")));
                };
                if logins.json {
                    let mut answer = json!({"access_token": token.expose(), "token_type": "Bearer"});
                    if let Some(at) = login.expires_at {
                        answer["expires_at"] = seconds(at).into();
                    }
                    screen.json(&answer);
                } else {
                    screen.print(token.expose());
                }
            }
        }
        Ok(0)
    })?
}

fn refuse_bound(name: &str, login: &Stored) -> Outcome<()> {
    if !login.is_bound {
        return Ok(());
    }
    let why = "its token is bound to a key (DPoP), which each request has to prove: of no use to another program";
    Err(Failure::new(FAILED, format!("{name}: {why}; the other commands of tricorn use it by themselves")))
}

fn none(name: &str) -> Failure {
    Failure::new(LOGIN, format!("there is no login for {name}: tricorn login {name}"))
}

fn url_of(target: &Target) -> &str {
    match target {
        Target::Url { url, .. } => url,
        _ => "",
    }
}

/// Works until it is done, or Ctrl-C.
fn in_time<T>(screen: &Screen, work: impl Future<Output = T>) -> Outcome<T> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async { Interrupts::new().first(work).await });
    // A thread may wait for the terminal.
    runtime.shutdown_background();
    outcome.ok_or_else(|| {
        screen.line("interrupted");
        Failure::silent(INTERRUPTED)
    })
}

/// A login for programs. Its server is named as for people, as the query of a URL may be a secret.
fn shown(login: &Stored, name: &str) -> Value {
    let mut shown = json!(login);
    shown["server"] = name.into();
    shown
}

/// Describes a login to people, without anything secret.
fn card(login: &Stored, name: &str) -> String {
    let mut card = one_line(name);
    let mut row = |name: &str, value: &str| {
        let _ = write!(card, "\n  {name:<8} {}", one_line(value));
    };
    row("issuer", &login.issuer);
    row("subject", login.subject.as_deref().unwrap_or("not said by the token"));
    if let Some(user) = &login.user {
        row("user", user);
    }
    let scopes = login.scopes.join(" ");
    row("scopes", if scopes.is_empty() { "none" } else { &scopes });
    row("token", &life(login, SystemTime::now()));
    row("client", &login.client_id);
    card
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Lifetime of a token, and its renewal.
fn life(login: &Stored, now: SystemTime) -> String {
    let kind = if login.is_bound { "bound to a key (DPoP), " } else { "" };
    let end = match login.expires_at {
        None => "with no end that is known".to_owned(),
        Some(at) if at <= now => "expired".to_owned(),
        Some(at) => format!("until {}", humantime::format_rfc3339_seconds(at)),
    };
    let then = if login.refreshes { ", refreshed when it is used" } else { ", not refreshed" };
    format!("{kind}{end}{then}")
}

/// Asks before a browser is opened, or shows the address alone.
struct Asks {
    screen: Screen,
    is_shown: bool,
}

impl Browser for Asks {
    fn open(&self, url: &str) -> BoxFuture<tricorn::Result<()>> {
        let (screen, url) = (self.screen.clone(), url.to_owned());
        if self.is_shown {
            screen.line("to log in, open this address in a browser:");
            // A line of its own, for programs that look for it.
            screen.line(&url);
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || questions::visit_login(&screen, &url)).await;
            match asked {
                Ok(Ok(true)) => Ok(()),
                Ok(Ok(false)) => Err(Error::new(ErrorKind::Auth, "you did not want the page opened")),
                _ => Err(Error::new(ErrorKind::Auth, "the terminal is gone")),
            }
        })
    }
}

/// Shows what the client warns of.
struct Warns(Screen);

impl Events for Warns {
    fn warning(&self, message: &str) {
        self.0.warn(message);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::Duration;

    use tricorn::auth::{MemoryStore, TokenKey, TokenStore};

    use super::*;

    async fn stored(token: &Value) -> Stored {
        let store = MemoryStore::new();
        let login = json!({"logins": [{
            "issuer": "https://as", "token_endpoint": "https://as/token", "since": 1, "scopes": ["a", "b"],
            "client": {"client_id": "c\u{1b}[2J", "known_by": "registration"}, "token": token,
        }]});
        let key = TokenKey::new("https://as", "https://h/mcp");
        let mut reserved = store.reserve(&key, Duration::from_secs(9)).await.unwrap();
        reserved.save(&login.to_string().into()).await.unwrap();
        drop(reserved);
        Auth::new().store(store).logins("https://h/mcp").await.unwrap().remove(0)
    }

    #[tokio::test]
    async fn a_login_is_described_without_its_secrets() {
        let token =
            json!({"access_token": "hidden", "token_type": "Bearer", "expires_at": 1_000, "refresh_token": "too"});
        let login = stored(&token).await;
        assert_eq!(
            card(&login, "https://h/mcp"),
            "https://h/mcp\n  issuer   https://as\n  subject  not said by the token\n  scopes   a b\n  \
             token    expired, refreshed when it is used\n  client   c\\u{1b}[2J"
        );
        assert_eq!(
            life(&login, SystemTime::UNIX_EPOCH + Duration::from_secs(999)),
            "until 1970-01-01T00:16:40Z, refreshed when it is used"
        );
        assert!(refuse_bound("h", &login).is_ok());
    }

    #[tokio::test]
    async fn a_token_that_is_bound_is_not_given_away() {
        let login = stored(&json!({"access_token": "hidden", "token_type": "DPoP"})).await;
        let failure = refuse_bound("https://h/mcp", &login).unwrap_err();
        assert!(failure.status == FAILED && failure.message.contains("DPoP"), "{}", failure.message);
        assert_eq!(
            life(&login, SystemTime::UNIX_EPOCH),
            "bound to a key (DPoP), with no end that is known, not refreshed"
        );
    }
}
