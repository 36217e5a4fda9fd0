//! Pages that have to be visited first, where there is no error that says so.

use serde::Deserialize;

use super::{Input, may_ask};
use crate::call::Context;
use crate::error::{Error, URL_ELICITATION_REQUIRED};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::Era;

/// Returns the questions of an error that names pages, in a revision that has no such error: one for each page. The
/// handler runs again when the user has agreed to them all; from then on nothing more is asked, and the client comes
/// back after some time. A user who does not agree is not asked again: the error stays one.
pub(crate) fn pages(context: &Context, error: &Error) -> Option<Input> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<RawJson>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        elicitation_id: String,
    }
    let request = context.request();
    if error.code() != Some(URL_ELICITATION_REQUIRED) || request.revision.era() == Era::Legacy || !may_ask(request) {
        return None;
    }
    let Data { elicitations } = error.data()?.to().ok()?;
    if elicitations.is_empty() {
        return None;
    }
    let mut questions: Vec<(String, &str, RawJson)> = Vec::with_capacity(elicitations.len());
    for page in elicitations {
        let key = page.to::<Page>().ok()?.elicitation_id;
        // Two pages of one visit are two questions.
        let place = questions.len();
        let taken = questions.iter().any(|(other, ..)| *other == key);
        questions.push((if taken { format!("{key} {place}") } else { key }, "elicitation/create", page));
    }
    let given = context.responses().ok()?;
    let action = |key: &String| given.get(key).and_then(|answer| answer["action"].as_str());
    if questions.iter().any(|(key, ..)| matches!(action(key), Some("decline" | "cancel"))) {
        return None;
    }
    let waits = !questions.is_empty() && questions.iter().all(|(key, ..)| action(key) == Some("accept"));
    if waits {
        questions.clear();
    }
    Some(Input { questions, state: context.own_state().ok().flatten(), waits })
}
