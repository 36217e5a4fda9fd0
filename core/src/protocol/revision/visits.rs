//! Pages that users are asked to visit, by the names of the visits.

use serde_json::{Value, json};

use super::ask::check_url;
use crate::error::{Error, URL_ELICITATION_REQUIRED, shortened};
use crate::jsonrpc::RawJson;

impl Error {
    /// The request needs the user to visit these URLs first (−32042, not in every revision): each `{"mode": "url",
    /// "elicitationId", "url", "message"}`, `url` with http or https. The client sends the request again when they are
    /// done. In revision 2026-07-28 each is a question of the call, and the handler runs again, more and more seldom, until
    /// it no longer fails with this; a user who declines ends it (−32603). [`Misuse`](crate::ErrorKind::Misuse) instead,
    /// when there is no page or one is not like that.
    pub fn url_elicitation_required(elicitations: &[Value]) -> Self {
        match check(elicitations) {
            Ok(()) => Self::rpc(URL_ELICITATION_REQUIRED, "the user has to visit a page first")
                .with_data(RawJson::from_value(&json!({"elicitations": elicitations}))),
            Err(why) => Self::misuse(why),
        }
    }
}

/// Checks that a user can be sent to these pages.
///
/// # Errors
/// The fault, with the place of the page.
pub(crate) fn check(elicitations: &[Value]) -> Result<(), String> {
    if elicitations.is_empty() {
        return Err("elicitations: expected at least one page that the user has to visit".to_owned());
    }
    for (place, page) in elicitations.iter().enumerate() {
        check_page(page).map_err(|why| format!("elicitations[{place}]: {why}"))?;
    }
    Ok(())
}

fn check_page(page: &Value) -> Result<(), String> {
    let got = |member: &str| shortened(&page[member].to_string(), 60).into_owned();
    if page["mode"] != "url" {
        return Err(format!("\"mode\": expected url, got {}", got("mode")));
    }
    for member in ["elicitationId", "message"] {
        if !page[member].is_string() {
            return Err(format!("{member:?}: expected a string, got {}", got(member)));
        }
    }
    check_url(&page["url"])
}

/// The name of the visit that a question to the user is for.
pub(crate) fn one(params: &RawJson) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Question {
        elicitation_id: Option<String>,
    }
    params.to::<Question>().ok()?.elicitation_id
}

/// The names of the visits that an error's `data` says have to be made first.
pub(crate) fn all(data: Option<&RawJson>) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Data {
        elicitations: Vec<RawJson>,
    }
    let data = data.and_then(|data| data.to::<Data>().ok());
    data.map(|data| data.elicitations.iter().filter_map(one).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_sent_to_web_pages_only() {
        let page = |url: &str| json!({"mode": "url", "elicitationId": "1", "url": url, "message": "m"});
        let error = Error::url_elicitation_required(&[page("https://h/"), page("http://h/x?y")]);
        assert_eq!(error.code(), Some(URL_ELICITATION_REQUIRED));
        assert_eq!(all(error.data()), ["1", "1"]);
        let said = |pages: &[Value]| {
            let error = Error::url_elicitation_required(pages);
            format!("{}: {}", error.kind().as_str(), error.message())
        };
        assert!(said(&[]).starts_with("misuse: elicitations: expected at least one page"));
        for (bad, why) in [
            (page("javascript:alert(1)"), "\"url\": expected an http or https URL, got \"javascript:alert(1)\""),
            (page(""), "\"url\": expected an http"),
            (page("https:///x"), "\"url\": expected an http"),
            (page("https://a b/"), "\"url\": expected an http"),
            (json!("https://h/"), "\"mode\": expected url, got null"),
            (json!({"mode": "url", "url": "https://h/", "message": "m"}), "\"elicitationId\": expected a string"),
            (json!({"mode": "url", "url": "https://h/", "elicitationId": "1"}), "\"message\": expected a string"),
        ] {
            let said = said(&[page("https://h/"), bad]);
            assert!(said.starts_with(&format!("misuse: elicitations[1]: {why}")), "{said}");
        }
    }
}
