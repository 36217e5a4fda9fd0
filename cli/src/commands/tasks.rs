use serde_json::Value;
use tricorn::bridge::Reason;
use tricorn::model::Task;

use super::call::finish;
use crate::arguments::Tasks;
use crate::connection::Session;
use crate::failure::{Failure, Outcome};
use crate::output::{Place, Table, one_line, pretty};

/// Lists tasks, tells of one, waits for it or cancels it.
pub(super) async fn tasks(session: &Session, tasks: &Tasks) -> Outcome<u8> {
    let screen = &session.screen;
    let Some(id) = &tasks.id else { return list(session, tasks).await };
    let handle = session.client.task(id);
    let failed = |error: &tricorn::Error| Failure::requesting(&format!("task {id}"), error);
    if tasks.result {
        let result = match handle.result().await {
            Ok(result) => result,
            Err(error) => return Err(session.failed(&format!("task {id}"), &error).await),
        };
        let result: Value = serde_json::to_value(&result).unwrap_or_default();
        let place = tasks.output.clone().map_or(Place::Temporary, Place::Folder);
        return finish(screen, &format!("task {id}"), &result, &place, tasks.json);
    }
    let task = if tasks.cancel { handle.cancel().await } else { handle.status().await };
    let task = task.map_err(|error| failed(&error))?;
    screen.print(&if tasks.json { pretty(&task) } else { line(&task) });
    Ok(0)
}

async fn list(session: &Session, tasks: &Tasks) -> Outcome<u8> {
    let screen = &session.screen;
    let all = session.client.tasks().await.map_err(|error| {
        let mut failure = Failure::requesting("listing tasks", &error);
        if error.reason() == Some(Reason::NotInRevision) {
            failure.message.push_str("; name a task, or list them with --revision 2025-11-25");
        }
        failure
    })?;
    if tasks.json {
        screen.json(&all);
        return Ok(0);
    }
    let mut table = Table::new(screen);
    for task in &all {
        let message = task.status_message.as_deref().unwrap_or_default();
        table.row([&task.task_id, &status(task), &format!("{} {message}", task.created_at)]);
    }
    screen.print(&if table.is_empty() { "no tasks".to_owned() } else { table.text() });
    Ok(0)
}

fn status(task: &Task) -> String {
    let status = serde_json::to_value(task.status).unwrap_or_default();
    status.as_str().unwrap_or_default().replace('_', " ")
}

/// A task on one line.
pub(super) fn line(task: &Task) -> String {
    let message = task.status_message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    one_line(&format!("task {} {}{message}", task.task_id, status(task)))
}
