//! Requests for results that wait.

use super::*;

#[test]
fn a_request_for_a_result_can_be_cancelled_and_the_task_goes_on() {
    let mut it = Table::new(TaskOptions::new());
    let id = it.start(json!({})).expect("a task");
    let call = it.call("tasks/result", json!({"taskId": id}));
    let link: Arc<dyn Link> = it.wire.clone();
    let waits = Arc::new(serve::Waits { tasks: it.tasks.clone(), owner: owner_of(&*link), id: id.clone() });
    let cx = Context::new(call.id, call.context, link, waits.clone());
    waits.call(cx.clone(), RawJson::empty_object(), Reply::new(cx.clone(), None));
    assert!(it.tasks.result_call(&*it.wire, &id).is_some());
    cx.cancel(None);
    assert_eq!(
        (it.tasks.result_call(&*it.wire, &id), it.slow.cancelled(), it.status(&id)),
        (None, 0, Ok("working".into()))
    );
}

#[test]
fn messages_go_out_with_the_newest_request_for_the_result_that_is_read() {
    let mut it = Table::new(TaskOptions::new());
    let id = it.start(json!({})).expect("a task");
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            assert!(it.result(&id).is_none());
            it.last
        })
        .collect();
    let newest = |it: &Table| it.tasks.result_call(&*it.wire, &id).map(|call| call.0);
    assert_eq!(newest(&it), Some(waiting[2]));
    it.wire.left.lock().expect("lock").push(waiting[2]);
    assert_eq!(newest(&it), Some(waiting[1]));
    it.wire.left.lock().expect("lock").extend(&waiting);
    assert_eq!(newest(&it), None);
}

#[test]
fn requests_for_results_that_nobody_reads_are_given_up_when_there_are_many() {
    let mut it = Table::new(TaskOptions::new());
    let ids: Vec<_> = (0..2).map(|_| it.start(json!({})).expect("a task")).collect();
    let read = it.last + 1;
    assert!(it.result(&ids[0]).is_none());
    for n in 0..40 {
        assert!(it.result(&ids[n % 2]).is_none());
        it.wire.left.lock().expect("lock").push(it.last);
    }
    let waiting = || it.tasks.lock().running.values().map(|running| running.waiters.len()).sum::<usize>();
    assert_eq!(waiting(), 18, "16 that nobody reads, the newest of them, and the one that is read");
    assert!(it.wire.answer(read + 1).expect("given up").is_err());
    it.slow.next().1.text("done");
    assert!(it.wire.answer(read).expect("answered").is_ok());
}
