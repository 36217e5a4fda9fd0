//! Scripts about tasks.

use super::*;
use crate::jsonrpc::RawJson;
use crate::model::{Task, TaskStatus};
use crate::store::redis::tasks::{Answered, Failed, Put, Written, task_name};
use crate::store::{Outcome, SharedTask};

const TTL: u64 = 60_000;

fn task(id: &str, status: TaskStatus, version: u64) -> SharedTask {
    let begun = Task::working(id, "2025-11-25T00:00:00Z");
    let task = Task { status, ttl: Some(TTL), poll_interval: Some(1000), ..begun };
    let outcome = (status == TaskStatus::Completed).then(|| Outcome::Result(RawJson::written("{\"a\":1.0}".into())));
    SharedTask { task, outcome, questions: None, version }
}

fn failed() -> Failed {
    Failed { stamp: "now".into(), message: "gone", outcome: r#"{"error":{"code":-32603,"message":"gone"}}"#.into() }
}

/// A process with a number.
struct Process {
    store: Arc<Redis>,
    id: &'static str,
    number: Arc<Number>,
    follower: Follower,
    heard: Vec<Heard>,
}

impl Process {
    async fn start(url: &str, id: &'static str) -> Self {
        let (store, number) = (at(url), Arc::new(Number::default()));
        assert!(store.keep_number(id, &number).await.unwrap(), "it is new");
        assert!(!store.keep_number(id, &number).await.unwrap() && number.is_sure());
        let mut follower = store.follow(id.into(), number.clone(), Arc::default());
        follower.begin().await.unwrap();
        Self { store, id, number, follower, heard: Vec::new() }
    }

    async fn put(&self, name: &str, session: Option<&str>, task: &SharedTask) -> Written {
        let (node, number) = (self.id, self.number.get());
        let put = Put { name, session, task, ttl: TTL, creates: true, node, number };
        self.store.put_task(&put).await.unwrap()
    }

    async fn look(&self, name: &str) -> Option<(SharedTask, bool)> {
        let looked = self.store.look_at_task(name, "t", self.number.get(), &failed()).await.unwrap();
        looked.map(|looked| (looked.task, looked.has_failed))
    }

    async fn status(&self, name: &str) -> TaskStatus {
        self.look(name).await.unwrap().0.task.status
    }

    async fn hears(&mut self) -> Heard {
        while self.heard.is_empty() {
            self.heard = self.follower.next().await.unwrap().into_iter().map(|(_, heard)| heard).collect();
        }
        self.heard.remove(0)
    }

    /// It has not been heard of for long.
    async fn lapses(&self, url: &str) {
        let _: usize = by_hand(url, &["DEL", &self.store.key(&format!("node:{}", self.number.get()), 1)]).await;
    }
}

/// Time goes on for a process that has been missed.
async fn later(url: &str, store: &Arc<Redis>, name: &str) {
    let _: usize = by_hand(url, &["HSET", &store.key(&format!("task:{name}"), 1), "f", "1"]).await;
}

#[tokio::test]
async fn an_end_stays_and_only_its_process_writes_a_task() {
    let running = Running::on_socket();
    let (a, mut b) = (Process::start(&running.url(), "a").await, Process::start(&running.url(), "b").await);
    let name = task_name("principal ada", "t");
    assert_ne!(name, task_name("principal eve", "t"));
    assert!(a.look(&name).await.is_none());
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Working, 1)).await, Written::Done);
    assert_eq!(b.status(&name).await, TaskStatus::Working);
    assert_eq!(b.put(&name, None, &task("t", TaskStatus::Completed, 9)).await, Written::Gone, "another's");
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::InputRequired, 3)).await, Written::Done);
    assert_eq!(b.hears().await, Heard::Task { name: name.to_string(), answers: None }, "it looked");
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Working, 2)).await, Written::Done, "what is older is nothing");
    assert_eq!(b.status(&name).await, TaskStatus::InputRequired);
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Completed, 4)).await, Written::Done);
    assert_eq!(b.hears().await, Heard::Task { name: name.to_string(), answers: None });
    let (found, has_failed) = b.look(&name).await.unwrap();
    assert_eq!((found.task, has_failed), (task("t", TaskStatus::Completed, 4).task, false));
    assert!(matches!(found.outcome, Some(Outcome::Result(result)) if result.get() == "{\"a\":1.0}"));
    for late in [TaskStatus::Failed, TaskStatus::Working, TaskStatus::Completed] {
        assert_eq!(a.put(&name, None, &task("t", late, 9)).await, Written::Over("completed"));
    }
    let (same, is_new) = b.store.cancel_task(&name, "t", "no more", "now".into()).await.unwrap().unwrap();
    assert!(same.task.status == TaskStatus::Completed && !is_new);
    b.store.forget_task(&name, None, b.id).await.unwrap();
    assert_eq!(b.status(&name).await, TaskStatus::Completed, "another's is not forgotten");
    a.store.forget_task(&name, None, a.id).await.unwrap();
    assert!(b.look(&name).await.is_none());
}

#[tokio::test]
async fn a_task_fails_with_its_process_and_not_at_once() {
    let running = Running::on_socket();
    let (a, b) = (Process::start(&running.url(), "a").await, Process::start(&running.url(), "b").await);
    let name = task_name("principal ada", "t");
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Working, 1)).await, Written::Done);
    a.lapses(&running.url()).await;
    assert_eq!(b.status(&name).await, TaskStatus::Working, "it may be on its way back");
    a.store.keep_number(a.id, &a.number).await.unwrap();
    assert_eq!(b.status(&name).await, TaskStatus::Working);
    a.lapses(&running.url()).await;
    assert_eq!(b.status(&name).await, TaskStatus::Working, "nor is the time before counted");
    // Somebody else has its number.
    let key = a.store.key(&format!("node:{}", a.number.get()), 1);
    let _: () = by_hand(&running.url(), &["SET", &key, "c"]).await;
    later(&running.url(), &a.store, &name).await;
    let (found, has_failed) = b.look(&name).await.unwrap();
    assert!(has_failed && found.task.status == TaskStatus::Failed);
    assert_eq!((found.task.status_message.as_deref(), found.task.last_updated_at.as_str()), (Some("gone"), "now"));
    assert!(matches!(found.outcome, Some(Outcome::Error(error)) if error.message() == "gone"));
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Completed, 5)).await, Written::Over("failed"));
    assert!(!b.look(&name).await.unwrap().1, "once");
}

#[tokio::test]
async fn a_cancellation_and_answers_reach_the_process_that_works() {
    let running = Running::on_socket();
    let (mut a, b) = (Process::start(&running.url(), "a").await, Process::start(&running.url(), "b").await);
    let name = task_name("principal ada", "t");
    assert_eq!(b.store.answer_task(&name, &"{}".into()).await.unwrap(), Answered::Unknown);
    let asking = SharedTask {
        questions: Some(RawJson::written("{\"k\":{\"method\":\"roots/list\"}}".into())),
        ..task("t", TaskStatus::InputRequired, 1)
    };
    assert_eq!(a.put(&name, None, &asking).await, Written::Done);
    assert!(b.look(&name).await.unwrap().0.questions.is_some());
    assert_eq!(b.store.answer_task(&name, &"{\"k\":{}}".into()).await.unwrap(), Answered::Sent);
    assert_eq!(a.hears().await, Heard::Task { name: name.to_string(), answers: Some("{\"k\":{}}".into()) });
    let (found, is_new) = b.store.cancel_task(&name, "t", "no more", "now".into()).await.unwrap().unwrap();
    assert!(is_new && found.task.status == TaskStatus::Cancelled && found.questions.is_none());
    assert_eq!(b.store.answer_task(&name, &"{}".into()).await.unwrap(), Answered::Over);
    assert_eq!(a.hears().await, Heard::Task { name: name.to_string(), answers: None });
    assert_eq!(a.put(&name, None, &task("t", TaskStatus::Completed, 2)).await, Written::Over("cancelled"));
    // One that does not read takes so many, and one that is gone none.
    assert_eq!(a.put("other", None, &task("t", TaskStatus::Working, 1)).await, Written::Done);
    let mut sent = 0;
    while b.store.answer_task("other", &"{}".into()).await.unwrap() == Answered::Sent {
        sent += 1;
    }
    assert!((1000..=1024).contains(&sent), "{sent}");
    a.lapses(&running.url()).await;
    assert_eq!(b.store.answer_task("other", &"{}".into()).await.unwrap(), Answered::Refused);
}

#[tokio::test]
async fn tasks_of_a_session_are_listed_and_end_with_it() {
    let running = Running::on_socket();
    let (a, b) = (Process::start(&running.url(), "a").await, Process::start(&running.url(), "b").await);
    let session = SharedSession { revision: "2025-11-25".into(), params: "{}".into(), ..SharedSession::default() };
    a.store.begin_session("a", "s", &session, 0, 60_000).await.unwrap();
    let names: Vec<_> = (0..5).map(|n| task_name("session s", &n.to_string())).collect();
    for (n, name) in names.iter().enumerate() {
        let by = if n % 2 == 0 { &a } else { &b };
        assert_eq!(by.put(name, Some("s"), &task(&n.to_string(), TaskStatus::Working, 1)).await, Written::Done);
    }
    let ids =
        |listed: &[(u64, SharedTask)]| listed.iter().map(|(_, task)| task.task.task_id.clone()).collect::<Vec<_>>();
    let first = b.store.list_tasks("s", 0, 2, &failed()).await.unwrap();
    assert_eq!(ids(&first), ["0", "1"]);
    // One is gone with its time: it is no place any more.
    let _: usize = by_hand(&running.url(), &["DEL", &a.store.key(&format!("task:{}", names[2]), 1)]).await;
    let rest = a.store.list_tasks("s", first[1].0, 9, &failed()).await.unwrap();
    assert_eq!(ids(&rest), ["3", "4"]);
    let set = a.store.key("tasks:s", 1);
    assert_eq!(by_hand::<usize>(&running.url(), &["ZCARD", &set]).await, 4);
    let lives: i64 = by_hand(&running.url(), &["PTTL", &set]).await;
    assert!((1..=60_000).contains(&lives), "{lives}");
    a.store.forget_task(&names[4], Some("s"), "a").await.unwrap();
    assert_eq!(ids(&a.store.list_tasks("s", 0, 9, &failed()).await.unwrap()), ["0", "1", "3"]);
    assert!(a.store.list_tasks("another", 0, 9, &failed()).await.unwrap().is_empty());
    b.store.end_session("b", "s").await.unwrap();
    assert_eq!(by_hand::<usize>(&running.url(), &["EXISTS", &set]).await, 0);
    for name in &names {
        assert!(a.look(name).await.is_none());
        assert_eq!(a.put(name, Some("s"), &task("t", TaskStatus::Working, 9)).await, Written::Gone, "it has ended");
    }
}

#[tokio::test]
async fn a_session_lists_a_bounded_number_of_tasks() {
    let running = Running::on_socket();
    let a = Process::start(&running.url(), "a").await;
    for n in 0..1005 {
        let status = if n == 0 { TaskStatus::Working } else { TaskStatus::Completed };
        let id = n.to_string();
        assert_eq!(a.put(&task_name("session s", &id), Some("s"), &task(&id, status, 1)).await, Written::Done);
    }
    let listed = a.store.list_tasks("s", 0, 2000, &failed()).await.unwrap();
    assert_eq!((listed.len(), listed[0].1.task.task_id.as_str()), (1000, "5"));
    assert!(a.look(&task_name("session s", "1")).await.is_none(), "what has ended makes room");
    assert_eq!(a.status(&task_name("session s", "0")).await, TaskStatus::Working, "what runs is there, and not listed");
}

#[tokio::test]
async fn a_task_that_is_not_ours_is_not_used() {
    let running = Running::on_socket();
    let a = Process::start(&running.url(), "a").await;
    let key = a.store.key("task:x", 1);
    let _: () = by_hand(&running.url(), &["SET", &key, "garbage"]).await;
    assert_eq!(a.store.look_at_task("x", "t", 0, &failed()).await.unwrap_err().ill, Ill::Garbled);
    let _: usize = by_hand(&running.url(), &["DEL", &key]).await;
    let _: usize = by_hand(&running.url(), &["HSET", &key, "s", "asleep"]).await;
    assert_eq!(a.store.look_at_task("x", "t", 0, &failed()).await.unwrap_err().ill, Ill::Garbled);
}
