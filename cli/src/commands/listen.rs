use serde_json::{Value, json};
use tricorn::client::Change;
use tricorn::model::SubscriptionFilter;

use crate::arguments::Listen;
use crate::connection::Session;
use crate::failure::{Failure, MISUSE, Outcome, UNREACHABLE};
use crate::output::one_line;

/// Tells of changes.
pub(super) async fn listen(session: &Session, listen: &Listen) -> Outcome<u8> {
    let (screen, client) = (&session.screen, &session.client);
    let has = |path: &str| client.capabilities().has(path);
    let all = listen.uri.is_empty() && listen.task.is_empty();
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = all && has("tools.listChanged");
    filter.prompts_list_changed = all && has("prompts.listChanged");
    filter.resources_list_changed = all && has("resources.listChanged");
    filter.resource_subscriptions.clone_from(&listen.uri);
    filter.task_ids.clone_from(&listen.task);
    if all && !(filter.tools_list_changed || filter.prompts_list_changed || filter.resources_list_changed) {
        let hint = "its lists do not change, as it says; name resources with --uri or tasks with --task";
        return Err(Failure::new(MISUSE, format!("there is nothing to listen to: {hint}")));
    }
    let mut listening = client.listen(filter).await.map_err(|error| Failure::requesting("listening", &error))?;
    screen.line(&screen.error_style().dim(&format!("listening to {}; Ctrl-C ends it", session.name)));
    let mut left = listen.count.unwrap_or(u64::MAX);
    while left > 0 {
        let ended = || Failure::new(UNREACHABLE, format!("{} has ended the stream", session.name));
        let change = listening.next().await.ok_or_else(ended)?;
        let change = change.map_err(|error| Failure::requesting("listening", &error))?;
        screen.print(&if listen.json { as_json(&change).to_string() } else { in_words(&change) });
        left -= 1;
    }
    Ok(0)
}

fn as_json(change: &Change) -> Value {
    json!({"method": change.method(), "params": change.params()})
}

fn in_words(change: &Change) -> String {
    match change {
        Change::ToolsListChanged => "the list of tools has changed".to_owned(),
        Change::PromptsListChanged => "the list of prompts has changed".to_owned(),
        Change::ResourcesListChanged => "the list of resources has changed".to_owned(),
        Change::ResourceUpdated(uri) => format!("{} has changed", one_line(uri)),
        Change::Task { task, .. } => super::tasks::line(task),
        other => one_line(&format!("{} {}", other.method(), other.params().get())),
    }
}
