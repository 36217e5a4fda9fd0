//! Logins that `tricorn login` has stored, for the connections of the other commands.

use std::time::SystemTime;

use tricorn::auth::Login;
use tricorn::client::{Auth, Callback, ClientOptions, Redirect, Target};
use tricorn::{BoxFuture, Error, ErrorKind, Result};

use crate::output::Screen;

/// The variable that has the secret of a client that was registered by hand.
pub(crate) const SECRET: &str = "TRICORN_CLIENT_SECRET";

/// Receiver of a browser that no command but `login` opens.
struct Nobody;

impl Redirect for Nobody {
    fn listen(&self) -> BoxFuture<Result<Callback>> {
        let why = "the stored login does not do any more, and only its user can get another";
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::Auth, why))))
    }
}

/// Options with the login that is stored for the target, if there is one and nothing else says who asks. No user is asked.
pub(crate) async fn with_login(options: ClientOptions, target: &Target, screen: &Screen) -> ClientOptions {
    let Target::Url { url, headers } = target else { return options };
    let is_said = |name: &str| name.eq_ignore_ascii_case("authorization");
    let given = headers.keys().chain(options.get_headers().keys()).any(|name| is_said(name));
    if given || has_user(url) || !url.starts_with("http") {
        return options;
    }
    match newest(url).await {
        Ok(Some((_, auth))) => options.auth(auth),
        Ok(None) => options,
        // The connection says so.
        Err(error) if error.kind() == ErrorKind::Misuse => options,
        Err(error) => {
            screen.warn(&format!("stored logins are not used: {}", error.message()));
            options
        }
    }
}

/// The newest stored login that can be used without anything else, and options that use it without a user.
pub(crate) async fn newest(url: &str) -> Result<Option<(Login, Auth)>> {
    let logins = Auth::new().logins(url).await?;
    // Those of a program that has several users are that program's.
    let usable = logins
        .into_iter()
        .filter(|login| login.user.is_none())
        .find_map(|login| login.auth().map(|auth| (login, auth)));
    Ok(usable.map(|(login, auth)| (login, without_user(auth))))
}

/// The access token of the stored login for a server, refreshed if need be. `None`: there is none that another program
/// could use.
pub(crate) async fn token(url: &str) -> Option<String> {
    let (mut login, auth) = newest(url).await.ok()??;
    if login.is_stale(SystemTime::now()) && login.refreshes {
        let options = ClientOptions::new().restart(false).auth(auth);
        let target = Target::from_text(url).ok()?;
        if let Ok(client) = tricorn::client::Client::connect(&target, &options).await {
            client.close().await;
        }
        (login, _) = newest(url).await.ok()??;
    }
    let is_of_use = !login.is_bound && login.expires_at.is_none_or(|at| at > SystemTime::now());
    login.access_token().filter(|_| is_of_use).map(|token| token.expose().to_owned())
}

fn without_user(mut auth: Auth) -> Auth {
    if let Some(secret) = secret().filter(|_| auth.lacks_secret()) {
        auth = auth.client_secret(secret);
    }
    auth.no_browser(true).redirect(Nobody)
}

/// The secret of the client, if the environment has it.
pub(crate) fn secret() -> Option<String> {
    std::env::var(SECRET).ok().filter(|secret| !secret.is_empty())
}

fn has_user(url: &str) -> bool {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    authority.is_some_and(|authority| authority.contains('@'))
}
