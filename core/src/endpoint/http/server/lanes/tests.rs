use crate::endpoint::http::server::lanes::*;
use crate::endpoint::http::server::outlet::Next;

const BOTH: Accepts = Accepts { json: true, events: true };

fn lanes(events: usize) -> Lanes {
    let room = Room { events, bytes: 1000 };
    let lanes =
        Lanes::new(2, (events > 0).then_some(Resumption { room, retry: Duration::from_secs(1) }), Owner::UNKNOWN);
    lanes.primes(true);
    lanes
}

fn notification(text: &'static str) -> Outbound {
    outbound(text, None, Sent::Notification)
}

fn outbound(text: &'static str, route: Option<Route>, sent: Sent) -> Outbound {
    Outbound { frame: Bytes::from_static(text.as_bytes()), related: None, route, sent, origin: None }
}

fn request(text: &'static str, route: Route) -> Outbound {
    let revision = crate::protocol::revision::Revision::NEWEST_LEGACY;
    let sent = Sent::Request { id: 1.into(), method: "ping".into(), revision, params: None, idempotent: true };
    outbound(text, Some(route), sent)
}

/// Returns the events that a reader gets, with ids where there are some.
fn events(outlet: &Outlet) -> Vec<String> {
    let text = |next| {
        let (id, text) = match next {
            Next::Message(event) => (event.id, event.text),
            Next::Answer(answer) => (answer.id, answer.text),
            Next::End(_) => return None,
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        Some(id.map_or_else(|| text.clone(), |id| format!("{id} {text}")))
    };
    std::iter::from_fn(|| outlet.next().and_then(text)).collect()
}

fn read(outlet: &Outlet) -> Vec<String> {
    events(outlet).into_iter().map(|event| event.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
}

fn resume(lanes: &Lanes, id: &str) -> Result<Arc<Outlet>, Refused> {
    lanes.resume(EventId::parse(id).expect("an id")).map(|resumed| match resumed {
        Resumed::Request(_, outlet) | Resumed::Standalone(_, outlet) => outlet,
    })
}

fn ended(outlet: &Outlet) -> Option<End> {
    match outlet.next() {
        Some(Next::End(end)) => Some(end),
        _ => None,
    }
}

#[test]
fn messages_without_a_stream_wait_for_one_and_are_not_repeated() {
    for kept in [0, 9] {
        let lanes = lanes(kept);
        lanes.send(vec![notification("changed"), notification("a"), notification("changed"), notification("b")]);
        let (key, stream) = lanes.open_stream().expect("room");
        assert_eq!(read(&stream), ["a", "b"], "the oldest had to go");
        lanes.send(vec![notification("changed"), notification("changed")]);
        let (_, other) = lanes.open_stream().expect("room");
        assert_eq!((read(&stream), read(&other)), (vec!["changed".to_owned()], vec![]), "one stream, once");
        // Messages that a stream's reader left behind are the next one's.
        lanes.send(vec![notification("left")]);
        lanes.close_stream(key, &stream);
        assert_eq!(read(&other), ["left"]);
    }
}

#[test]
fn a_reader_that_is_too_slow_loses_its_stream() {
    for kept in [0, 9] {
        let lanes = lanes(kept);
        let (_, slow) = lanes.open_stream().expect("room");
        lanes.send(vec![notification("1"), notification("2"), notification("3")]);
        assert_eq!(ended(&slow), Some(End::TooSlow));
        let (_, next) = lanes.open_stream().expect("room");
        assert_eq!(read(&next), ["2", "3"]);
    }
}

#[test]
fn each_answer_goes_its_own_way_and_is_lost_with_it() {
    let lanes = lanes(9);
    let (one, two) = (Arc::new(Outlet::new(2, Owner::UNKNOWN)), Arc::new(Outlet::new(2, Owner::UNKNOWN)));
    let (first, second) =
        (lanes.open(one.clone(), BOTH, Asked::One(1.into())), lanes.open(two.clone(), BOTH, Asked::One(1.into())));
    let (_, stream) = lanes.open_stream().expect("room");
    lanes.send(vec![
        outbound("progress", Some(second), Sent::Notification),
        outbound("two", Some(second), Sent::Response(None)),
        outbound("late", Some(second), Sent::Notification),
    ]);
    // Its client has seen nothing, so there is nothing to come back for.
    lanes.leave(first, &one);
    lanes.send(vec![outbound("one", Some(first), Sent::Response(None))]);
    assert_eq!((read(&one), read(&two), read(&stream)), (vec![], vec!["progress".into(), "two".into()], vec![]));
    assert!(lanes.is_open());
    lanes.end(End::SessionEnded);
    assert_eq!(ended(&stream), Some(End::SessionEnded));
    assert!(!lanes.is_open() && lanes.lock().store.is_none(), "nothing is left of it");
}

#[test]
fn an_answer_alone_is_not_kept() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(2, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.send(vec![outbound("answer", Some(route), Sent::Response(None))]);
    assert_eq!(events(&outlet), ["answer"]);
    assert!(lanes.lock().store.is_none(), "nothing is allocated for it");
}

#[test]
fn a_request_finds_a_reader_where_its_own_stream_is_none() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(0, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), Accepts { json: true, events: false }, Asked::One(1.into()));
    let (_, stream) = lanes.open_stream().expect("room");
    lanes.send(vec![request("ask", route), outbound("progress", Some(route), Sent::Notification)]);
    assert_eq!((read(&outlet), read(&stream)), (vec![], vec!["ask".to_owned()]));
}

#[test]
fn a_lost_stream_of_a_request_goes_on_where_it_was_lost() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.send(vec![outbound("a", Some(route), Sent::Notification), outbound("b", Some(route), Sent::Notification)]);
    assert_eq!(events(&outlet), ["r1-2 a", "r1-3 b"]);
    lanes.leave(route, &outlet);
    assert!(!lanes.is_open());
    lanes.send(vec![request("ask", route)]);
    let (_, other) = lanes.open_stream().expect("room");
    let resumed = resume(&lanes, "r1-2").expect("kept");
    assert_eq!(events(&resumed), ["r1-3 b", "r1-4 ask"]);
    lanes.send(vec![outbound("c", Some(route), Sent::Notification)]);
    // The old reader is late to go.
    lanes.leave(route, &outlet);
    lanes.send(vec![outbound("answer", Some(route), Sent::Response(None))]);
    assert_eq!(events(&resumed), ["r1-6 c", "r1-7 answer"]);
    // Also when the answer is long given, and only as long as there is something left.
    let again = resume(&lanes, "r1-6").expect("kept");
    assert_eq!((events(&again), ended(&again)), (vec!["r1-7 answer".to_owned()], Some(End::Answered)));
    assert_eq!(resume(&lanes, "r1-7").err(), Some(Refused::Over));
    assert_eq!(read(&other), Vec::<String>::new(), "no other stream gets any of it");
    for unknown in ["r1-8", "r9-9", "s0-1", "r7-6"] {
        assert_eq!(resume(&lanes, unknown).err(), Some(Refused::Unknown), "{unknown}");
    }
}

#[test]
fn a_reader_that_is_still_there_gets_no_more() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.send(vec![outbound("a", Some(route), Sent::Notification)]);
    let (key, stream) = lanes.open_stream().expect("room");
    lanes.send(vec![notification("x")]);
    let moved = resume(&lanes, "r1-1").expect("kept");
    let other = resume(&lanes, &format!("s{key}-{key}")).expect("kept");
    assert_eq!((ended(&outlet), ended(&stream)), (Some(End::Moved), Some(End::Moved)));
    assert_eq!((events(&moved), events(&other)), (vec!["r1-2 a".to_owned()], vec!["s3-4 x".to_owned()]));
    lanes.close_stream(key, &stream);
    lanes.send(vec![notification("y")]);
    assert_eq!(events(&other), ["s3-5 y"]);
}

#[test]
fn what_a_standalone_stream_has_sent_is_for_its_own_client_only() {
    let lanes = lanes(9);
    let (key, stream) = lanes.open_stream().expect("room");
    lanes.send(vec![notification("a"), notification("b")]);
    assert!(matches!(stream.next(), Some(Next::Message(event)) if event.text == "a"));
    lanes.close_stream(key, &stream);
    lanes.send(vec![notification("c")]);
    // "a" may have been lost on the way, "b" was never sent.
    let (_, fresh) = lanes.open_stream().expect("room");
    assert_eq!(events(&fresh), ["s4-5 b", "s4-6 c"]);
    let resumed = resume(&lanes, "s1-1").expect("a stream");
    assert_eq!(events(&resumed), ["s1-2 a"]);
}

#[test]
fn a_standalone_stream_of_which_little_is_kept_goes_on() {
    let lanes = lanes(1);
    let (key, stream) = lanes.open_stream().expect("room");
    lanes.send(vec![notification("a"), notification("b")]);
    assert_eq!(events(&stream), ["s1-2 a", "s1-3 b"]);
    lanes.close_stream(key, &stream);
    lanes.send(vec![notification("c")]);
    assert_eq!(events(&resume(&lanes, "s1-1").expect("a stream")), ["s1-3 b", "s1-4 c"]);
}

#[test]
fn an_answer_that_is_too_long_to_wait_says_so() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.pause(route);
    lanes.leave(route, &outlet);
    let frame = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{}"}}}}"#, "x".repeat(2000)));
    lanes.send(vec![Outbound { frame, related: None, route: Some(route), sent: Sent::Response(None), origin: None }]);
    let kept = events(&resume(&lanes, "r1-1").expect("kept"));
    assert!(kept.len() == 1 && kept[0].contains(r#""id":7"#) && kept[0].contains("max_event_bytes"), "{kept:?}");
}

#[test]
fn a_paused_answer_waits_for_its_client() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.pause(route);
    assert_eq!(ended(&outlet), Some(End::Paused));
    lanes.leave(route, &outlet);
    lanes.send(vec![outbound("answer", Some(route), Sent::Response(None))]);
    assert_eq!(events(&resume(&lanes, "r1-1").expect("kept")), ["r1-2 answer"]);
    // Where the client would not come back, nothing happens.
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), Accepts { json: true, events: false }, Asked::One(1.into()));
    lanes.pause(route);
    lanes.primes(false);
    let other = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let second = lanes.open(other.clone(), BOTH, Asked::One(1.into()));
    lanes.pause(second);
    assert_eq!((ended(&outlet), ended(&other)), (None, None));
}

#[test]
fn what_waits_goes_out_with_a_stream_that_takes_it_up_also_when_it_comes_back() {
    let lanes = lanes(9);
    let outlet = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let route = lanes.open(outlet.clone(), BOTH, Asked::One(1.into()));
    lanes.send(vec![notification("a")]);
    lanes.take_up(route);
    assert_eq!((events(&outlet), lanes.is_read(route)), (vec!["r1-2 a".to_owned()], true));
    lanes.leave(route, &outlet);
    assert!(!lanes.is_read(route));
    lanes.send(vec![notification("b")]);
    let resumed = resume(&lanes, "r1-2").expect("kept");
    assert_eq!((events(&resumed), lanes.is_read(route)), (vec!["r1-3 b".to_owned()], true));
    // Any other request's stream is for what belongs to it.
    let other = Arc::new(Outlet::new(9, Owner::UNKNOWN));
    let second = lanes.open(other.clone(), BOTH, Asked::One(1.into()));
    lanes.send(vec![outbound("own", Some(second), Sent::Notification)]);
    lanes.leave(second, &other);
    lanes.send(vec![notification("c")]);
    let resumed = resume(&lanes, &format!("r{0}-{0}", second.0)).expect("kept");
    assert_eq!(read(&resumed), ["own"]);
}

#[test]
fn what_was_taken_before_the_end_is_answered() {
    let lanes = lanes(0);
    let text = |outlet: &Outlet| match outlet.next() {
        Some(Next::Answer(answer)) => String::from_utf8_lossy(&answer.text).into_owned(),
        other => format!("{other:?}"),
    };
    let outlets: Vec<_> = (0..4).map(|_| Arc::new(Outlet::new(2, Owner::UNKNOWN))).collect();
    lanes.open(outlets[0].clone(), BOTH, Asked::One(7.into()));
    lanes.open(outlets[1].clone(), BOTH, Asked::Batch([1.into(), "a".into()].into()));
    lanes.open(outlets[2].clone(), BOTH, Asked::Nothing);
    let (_, stream) = lanes.open_stream().expect("room");
    lanes.end(End::SessionEnded);
    let error = r#""error":{"code":-32603,"message":"the session has ended"}}"#;
    assert_eq!(text(&outlets[0]), format!(r#"{{"jsonrpc":"2.0","id":7,{error}"#));
    assert_eq!(text(&outlets[1]), format!(r#"[{{"jsonrpc":"2.0","id":1,{error},{{"jsonrpc":"2.0","id":"a",{error}]"#));
    assert_eq!((ended(&outlets[2]), ended(&stream)), (Some(End::SessionEnded), Some(End::SessionEnded)));
    // A request after the end is told that there is no such session.
    lanes.open(outlets[3].clone(), BOTH, Asked::One(8.into()));
    assert_eq!(ended(&outlets[3]), Some(End::SessionEnded));
}
