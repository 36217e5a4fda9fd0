//! URLs that the server wants the user to visit.

use console::Term;
use dialoguer::Confirm;
use serde_json::Value;
use tricorn::Error;
use tricorn::jsonrpc::RawJson;

use super::form::theme;
use crate::browser;
use crate::output::{Screen, one_line, wrapped};

/// The protocol's code for a request that has to wait until the user has visited URLs.
const REQUIRED: i64 = -32042;

/// Asks if a URL may be opened, and opens it. True once its page was shown, or the user says so.
///
/// # Errors
/// The terminal is gone, or the user cancels.
pub(super) fn ask(screen: &Screen, message: &str, url: &str) -> dialoguer::Result<bool> {
    // Nothing but a page is opened, whatever else the system has programs for.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Ok(false);
    }
    // Browsers read a backslash as a slash, and leave out other letters: the host would be another one than it seems.
    if url.contains(|letter: char| letter == '\\' || letter.is_whitespace() || letter.is_control()) {
        screen.warn(&format!("the server wants a page visited whose address is no URL: {url}"));
        return Ok(false);
    }
    let style = screen.error_style();
    let text = wrapped(screen, message, "  ");
    let head = format!("{}\n{text}", style.bold("The server asks to visit a page:"));
    match confirmed(screen, &head, url)? {
        Visit::Refused => Ok(false),
        Visit::Opened => Ok(true),
        Visit::Unopened => {
            let prompt = "Have you visited the page?";
            Confirm::with_theme(&*theme(screen)).with_prompt(prompt).default(false).interact_on(&Term::stderr())
        }
    }
}

/// Outcome of the question for a page.
#[derive(PartialEq, Eq)]
enum Visit {
    Refused,
    Opened,
    /// Its address is shown, as there is no browser.
    Unopened,
}

/// Asks whether the page of a login may be opened, and opens it.
///
/// # Errors
/// The terminal is gone, or the user cancels.
pub(crate) fn visit_login(screen: &Screen, url: &str) -> dialoguer::Result<bool> {
    let _held = screen.hold();
    // A login hears of a visit, however the page was opened.
    let visit = confirmed(screen, &screen.error_style().bold("To log in, a page has to be visited:"), url)?;
    Ok(visit != Visit::Refused)
}

fn confirmed(screen: &Screen, head: &str, url: &str) -> dialoguer::Result<Visit> {
    let term = Term::stderr();
    term.write_line(&format!("{head}\n  {}", screen.error_style().name(&one_line(url))))?;
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or(url);
    // What stands before an @ is no host.
    let host = one_line(host.rsplit('@').next().unwrap_or(host));
    let theme = theme(screen);
    let prompt = format!("Open {host} in the browser?");
    let yes = Confirm::with_theme(&*theme).with_prompt(prompt).default(false).interact_on(&term)?;
    if !yes {
        return Ok(Visit::Refused);
    }
    match browser::open(url) {
        Ok(()) => Ok(Visit::Opened),
        Err(error) => {
            term.write_line(&format!("no browser was opened ({error}): open this page yourself\n  {}", one_line(url)))?;
            Ok(Visit::Unopened)
        }
    }
}

/// Offers the pages that a request has to wait for.
pub(crate) async fn visit(screen: &Screen, error: &Error) {
    if error.code() != Some(REQUIRED) {
        return;
    }
    let Some(Ok(data)) = error.data().map(RawJson::to::<Value>) else { return };
    for page in data["elicitations"].as_array().into_iter().flatten() {
        let (Some(url), message) = (page["url"].as_str(), page["message"].as_str().unwrap_or_default()) else {
            continue;
        };
        if !screen.can_ask() {
            screen.line(&format!("visit this page, then try again: {}", one_line(url)));
            continue;
        }
        let (screen, url, message) = (screen.clone(), url.to_owned(), message.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let _held = screen.hold();
            ask(&screen, &message, &url)
        });
        if !matches!(asked.await, Ok(Ok(true))) {
            return;
        }
    }
}
