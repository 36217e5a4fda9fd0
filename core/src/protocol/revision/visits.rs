//! Pages that users are asked to visit, by the names of the visits.

use crate::jsonrpc::RawJson;

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
