//! The model and a real store, asked the same.

use std::fmt::Debug;

use bytes::Bytes;

use super::super::nodes::Number;
use super::super::sessions::{Edit, Look, SharedSession};
use super::super::tasks::{Failed, Put, task_name};
use super::super::tests::running::Running;
use super::super::*;
use super::Store;
use crate::jsonrpc::RawJson;
use crate::model::{Task, TaskStatus};
use crate::simulated::{Machine, chance, random, sow};
use crate::store::{Change, Outcome, SharedTask};

const LIVES: u64 = 60_000;

/// One of the two stores, as two processes know it.
struct Side {
    processes: Vec<(Arc<Redis>, &'static str, Arc<Number>, Follower)>,
    versions: Vec<u64>,
    places: Vec<u64>,
    generations: Vec<u64>,
    listed: Vec<u64>,
}

/// The text of an answer without times, which are no two stores' alike.
fn shown(answer: &impl Debug) -> String {
    let text = format!("{answer:?}");
    let mut out = String::with_capacity(text.len());
    let mut digits = String::new();
    for letter in text.chars().chain(['.']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        out.push_str(if digits.len() >= 12 { "T" } else { &digits });
        digits.clear();
        out.push(letter);
    }
    out
}

fn failed() -> Failed {
    Failed { stamp: "now".into(), message: "gone", outcome: r#"{"error":{"code":-32603,"message":"gone"}}"#.into() }
}

fn task(id: &str, status: TaskStatus, version: u64) -> SharedTask {
    let task = Task { status, ttl: Some(LIVES), ..Task::working(id, "2025-11-25T00:00:00Z") };
    let outcome = (status == TaskStatus::Completed).then(|| Outcome::Result(RawJson::written("{}".into())));
    let questions = (status == TaskStatus::InputRequired).then(|| RawJson::written("{\"k\":{}}".into()));
    SharedTask { task, outcome, questions, version }
}

impl Side {
    async fn begin(options: [StoreOptions; 2], seed: u64) -> Self {
        let mut processes = Vec::new();
        for (options, name) in options.into_iter().zip(["a", "b"]) {
            let store = Arc::new(Redis::new(&options, "s").expect("a store"));
            let number = Arc::new(Number::default());
            // The same number on both sides.
            sow(seed + processes.len() as u64);
            assert!(store.keep_number(name, &number).await.expect("a number"));
            let mut follower = store.follow(name.into(), number.clone(), Arc::default());
            follower.begin().await.expect("a place");
            processes.push((store, name, number, follower));
        }
        Self { processes, versions: vec![0], places: vec![0], generations: vec![1], listed: vec![0] }
    }

    /// Does the operation that these numbers say.
    async fn does(&mut self, what: [usize; 4]) -> String {
        let [what, by, which, more] = what;
        let (store, node, number) = {
            let (store, node, number, _) = &self.processes[by % 2];
            (store.clone(), *node, number.get())
        };
        let other = self.processes[(by + 1) % 2].2.get();
        let session = ["s", "t"][which % 2];
        let name = task_name("o", ["1", "2", "3"][more % 3]);
        let of = |all: &Vec<u64>| all[more % all.len()];
        let message = Bytes::from(format!("m{more}"));
        match what {
            0 => {
                let look = store.session(session, of(&self.versions), LIVES).await;
                if let Ok(Look::Session(session)) = &look {
                    self.versions.push(session.version);
                }
                shown(&look)
            }
            1 => {
                let told = SharedSession { revision: "r".into(), params: "{}".into(), ..SharedSession::default() };
                shown(&store.begin_session(node, session, &told, of(&self.places), LIVES).await)
            }
            2 => {
                let edits = if more.is_multiple_of(2) {
                    vec![Edit::Set("l".into(), more.to_string()), Edit::Set("s:a".into(), String::new())]
                } else {
                    vec![Edit::Remove("s:a".into())]
                };
                shown(&store.edit_session(node, session, &edits, LIVES).await)
            }
            3 if more.is_multiple_of(3) => shown(&store.end_session(node, session).await),
            3 => shown(&store.end_unused(node, session, [0, LIVES][more % 2], LIVES).await),
            4 => {
                let flags = (more.is_multiple_of(2), more.is_multiple_of(3));
                shown(&store.to_client(session, &message, number, LIVES, flags).await)
            }
            5 => shown(&store.take_up(session, number).await),
            6 => {
                let opened = store.open_stream(node, session, number, of(&self.places)).await;
                if let Ok((_, _, generation)) = &opened {
                    self.generations.push(*generation);
                }
                shown(&opened)
            }
            7 => {
                let place = (more.is_multiple_of(2)).then(|| of(&self.places));
                shown(&store.close_stream(node, session, of(&self.generations), place).await)
            }
            8 => shown(&store.to_all(node, session, &message).await),
            9 => shown(
                &store
                    .publish(node, store.next_batch(), &[(Change::Resource(more.to_string()), more.is_multiple_of(2))])
                    .await,
            ),
            10 => {
                let changes = store.changes_after(of(&self.places)).await;
                if let Ok((_, last)) = &changes {
                    self.places.push(*last);
                }
                shown(&changes)
            }
            11 => shown(&(store.post(other, session, &message).await, store.note(other, session, &message).await)),
            12 => shown(&store.keep_number(node, &self.processes[by % 2].2).await),
            13 | 14 => {
                let all = [TaskStatus::Working, TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Completed];
                let task = task("t", all[more % 4], (more / 2) as u64);
                let session = (more.is_multiple_of(3)).then_some(session);
                let creates = !more.is_multiple_of(5);
                let put = Put { name: &name, session, task: &task, ttl: LIVES, creates, node, number };
                shown(&store.put_task(&put).await)
            }
            15 | 16 => {
                let looked = store.look_at_task(&name, "t", [0, number][which % 2], &failed()).await;
                let looked = looked.map(|looked| looked.map(|looked| (looked.task, looked.has_failed)));
                shown(&looked)
            }
            17 => shown(&store.cancel_task(&name, "t", "no more", "now".into()).await),
            18 => shown(&store.answer_task(&name, &message).await),
            19 => {
                let after = of(&self.listed);
                let listed = store.list_tasks(session, after, 1 + more % 3, &failed()).await;
                if let Ok(listed) = &listed {
                    self.listed.extend(listed.iter().map(|(place, _)| *place));
                }
                shown(&listed)
            }
            // Says that there is room or none, and not for how long: their clocks differ.
            21 | 22 => {
                let apart = Duration::from_secs(1000);
                let waits = store.rate("l", ["", "c"][which % 2], apart, [1, 2, 4][more % 3]).await;
                shown(&waits.map(|wait| wait.is_some()))
            }
            23 | 24 => {
                let request = format!("r{}", more % 5);
                shown(&store.enter("l", 2, &request, which == 1).await)
            }
            25 => shown(&store.leave("l", &format!("r{}", more % 5)).await),
            26 => shown(&store.renew("l", &[format!("r{}", more % 5), "r9".into()]).await),
            27 => {
                let pairs = [(Arc::from("p"), ["ann", "bob"][which % 2].to_owned())];
                shown(&store.keep_pairs(&pairs, LIVES).await)
            }
            28 if more.is_multiple_of(4) => shown(&store.drop_pair("p").await),
            28 => shown(&store.post_to_pair(other, "p", ["ann", "bob"][which % 2], &message).await),
            _ => shown(&store.forget_task(&name, more.is_multiple_of(3).then_some(session), node).await),
        }
    }

    /// Everything that the processes hear.
    async fn hears(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for by in 0..2 {
            let number = self.processes[by].2.get();
            self.processes[1 - by].0.post(number, "s", &"last".into()).await.expect("posted");
            self.processes[1 - by]
                .0
                .publish("c", u64::MAX, &[(Change::List("last".into()), false)])
                .await
                .expect("published");
            let (mut log, mut inbox) = (Vec::new(), Vec::new());
            let is_last = |all: &[Heard]| all.last().is_some_and(|last| format!("{last:?}").contains("last"));
            while !is_last(&log) || !is_last(&inbox) {
                for (place, heard) in self.processes[by].3.next().await.expect("news") {
                    if place > 0 { log.push(heard) } else { inbox.push(heard) }
                }
            }
            all.push(shown(&(log, inbox)));
        }
        all
    }
}

#[tokio::test]
async fn the_model_answers_as_a_real_store_does() {
    let seeds = std::env::var("TRICORN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60) / 30;
    let running = Running::on_socket();
    for seed in 0..seeds {
        let _: () = super::super::tests::by_hand(&running.url(), &["FLUSHALL"]).await;
        // Every second one is a store of the program.
        let (_machine, store) = (Machine::begin(seed), Store::begin(0, false, seed % 2 == 1));
        let mut real = Side::begin([running.url().into(), running.url().into()], seed).await;
        let mut model = Side::begin(["a", "b"].map(|name| store.options(name)), seed).await;
        sow(seed);
        let mut trace = Vec::new();
        for _ in 0..160 {
            let number = |below: u64| usize::try_from(random(below)).unwrap_or(0);
            let what = [if chance(10) { 2 } else { number(30) }, number(2), number(2), number(30)];
            let (expected, found) = (real.does(what).await, model.does(what).await);
            trace.push(format!("{what:?}: {expected}"));
            assert_eq!(found, expected, "seed {seed}, {what:?}, after\n{}", trace.join("\n"));
        }
        assert_eq!(model.hears().await, real.hears().await, "seed {seed}, after\n{}", trace.join("\n"));
        Store::end();
    }
}
