use crate::budget;
use crate::endpoint::http::server::feeds::*;

fn reading() -> Reading {
    let outlet = Arc::new(Outlet::new(8, budget::Owner::UNKNOWN));
    let state =
        Read { outcome: None, last: 0, taken: 0, bytes: 0, heard: Instant::now(), has_left: false, is_over: false };
    Reading { ticket: 1, outlet, state: Mutex::new(state), news: Notify::new(), answered: Signal::default() }
}

fn event(number: u64, is_last: bool) -> Kind {
    Kind::Event { number, id: Some(format!("r1-{}", number + 1)), is_last }
}

/// Returns what the client of a stream gets, and how it ends.
fn read(reading: &Reading) -> (Vec<String>, Option<End>) {
    let mut texts = Vec::new();
    loop {
        match reading.outlet.next() {
            Some(Next::Message(Event { id, text })) => {
                texts.push(format!(
                    "{} {}",
                    id.map_or_else(String::new, |id| id.to_string()),
                    String::from_utf8_lossy(&text)
                ));
            }
            Some(Next::Answer(_)) => {}
            Some(Next::End(end)) => return (texts, Some(end)),
            None => return (texts, None),
        }
    }
}

#[test]
fn notes_are_read_as_they_are_written() {
    for kind in [
        Kind::Ask("r1-2".into()),
        Kind::Took(7),
        Kind::Stop,
        Kind::Yes,
        Kind::No(Why::Over),
        event(3, true),
        Kind::Event { number: 1, id: None, is_last: false },
        Kind::Beat,
        Kind::End(4, Why::Moved),
    ] {
        let note = Note { ticket: u64::MAX, process: 2047, kind: kind.clone() };
        let (read, text) = Note::read(&note.written(b"{\"a\":\"\\n\"}")).expect("a note");
        assert_eq!((read, &text[..]), (note, &b"{\"a\":\"\\n\"}"[..]), "{kind:?}");
    }
    let later = Note::read(&Bytes::from_static(b"{\"t\":1,\"n\":2,\"k\":{\"End\":[0,\"Later\"]}}\n"));
    assert_eq!(later.expect("a note").0.kind, Kind::End(0, Why::Other));
    for foreign in
        [&b""[..], b"x", b"{}\n", b"{\"t\":1,\"n\":2,\"k\":\"Later\"}\n", b"{\"t\":1,\"n\":2,\"k\":\"Stop\"}"]
    {
        assert!(Note::read(&Bytes::copy_from_slice(foreign)).is_none(), "{foreign:?}");
    }
}

#[tokio::test]
async fn a_message_that_was_sent_again_comes_once_and_a_gap_ends_the_stream() {
    let one = reading();
    one.heard(Kind::Yes, Bytes::new());
    assert!(matches!(one.lock().outcome, Some(Outcome::Begun)));
    for number in [1, 1, 2, 1, 2, 3] {
        one.heard(event(number, number == 3), Bytes::from(number.to_string()));
    }
    one.heard(event(4, false), "late".into());
    assert_eq!(read(&one), (vec!["r1-2 1".into(), "r1-3 2".into(), "r1-4 3".into()], Some(End::Answered)));
    let gap = reading();
    gap.heard(event(1, false), "1".into());
    gap.heard(event(3, false), "3".into());
    assert_eq!(read(&gap), (vec!["r1-2 1".into()], Some(End::Unheard)));
    let gap = reading();
    gap.heard(Kind::End(1, Why::Answered), Bytes::new());
    assert_eq!(read(&gap), (vec![], Some(End::Unheard)), "the message before the end is missing");
    let refused = reading();
    refused.heard(Kind::No(Why::Over), Bytes::new());
    assert!(matches!(refused.lock().outcome, Some(Outcome::Refused(Refused::Over))));
}

#[tokio::test]
async fn few_messages_are_ahead_of_what_was_taken() {
    let mut ahead = Ahead { last: 0, sizes: VecDeque::new(), since: Instant::now() };
    let mut sent = 0;
    while ahead.has_room() {
        ahead.sent(10);
        sent += 1;
    }
    assert_eq!(sent, AHEAD);
    ahead.taken(1);
    assert!(ahead.has_room());
    // Heard in another order, or of more than was sent.
    ahead.taken(0);
    assert_eq!(ahead.sizes.len(), AHEAD - 1);
    ahead.taken(u64::MAX);
    assert!(ahead.sizes.is_empty());
    ahead.sent(AHEAD_BYTES);
    assert!(!ahead.has_room(), "a long one is alone");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_after_a_while() {
    let mut ahead = Ahead { last: 0, sizes: VecDeque::new(), since: Instant::now() };
    tokio::time::advance(STALL * 2).await;
    assert!(!ahead.is_stalled(), "there is nothing to take");
    (0..AHEAD).for_each(|_| ahead.sent(10));
    tokio::time::advance(STALL - LOOK).await;
    assert!(!ahead.is_stalled());
    ahead.taken(1);
    ahead.sent(10);
    tokio::time::advance(STALL - LOOK).await;
    assert!(!ahead.is_stalled(), "it has taken one meanwhile");
    tokio::time::advance(LOOK).await;
    assert!(ahead.is_stalled());
}
