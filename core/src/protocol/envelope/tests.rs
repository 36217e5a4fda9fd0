use super::*;
use crate::protocol::revision::modern;

const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion": "2026-07-28""#;
const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities": {"roots": {}}"#;
const INFO: &str = r#""io.modelcontextprotocol/clientInfo": {"name": "ü", "version": "1"}"#;

fn meta() -> String {
    format!("{{{VERSION},{CAPABILITIES} , {INFO}}}")
}

fn forget() {
    MEMORY.set(Memory::default());
}

/// Makes this the text that is known.
fn learn(meta: &str) {
    forget();
    meta_of(&RawJson::parse(meta.to_owned()).expect("JSON")).expect("an envelope");
}

/// All that a frame says, read without what is known, or why it is no message.
fn slowly(frame: &Bytes, limits: &Limits) -> Result<(Decoded, Option<String>), String> {
    let decoded = jsonrpc::decode(frame, limits).map_err(|error| format!("{error:?}"))?;
    let head = match &decoded {
        Decoded::One(Message::Request { params, .. }) => Some(shown(Head::read(params.as_ref()))),
        _ => None,
    };
    Ok((decoded, head))
}

/// The same with what is known, and whether that helped.
fn quickly(frame: &Bytes, limits: &Limits) -> (bool, Result<(Decoded, Option<String>), String>) {
    match decode(frame, limits) {
        Err(error) => (false, Err(format!("{error:?}"))),
        Ok((decoded, Some(head))) => (true, Ok((decoded, Some(shown(Ok(head)))))),
        Ok((decoded, None)) => {
            let head = match &decoded {
                Decoded::One(Message::Request { params, .. }) => Some(shown(Head::read(params.as_ref()))),
                _ => None,
            };
            (false, Ok((decoded, head)))
        }
    }
}

fn shown(head: Result<Box<Head>>) -> String {
    head.map_or_else(
        |error| error.to_string(),
        |head| {
            let envelope = head.envelope.as_ref().map(|e| (&e.version, &e.capabilities, &e.info, &e.log_level));
            let checked = modern::envelope(&head).map(|c| format!("{c:?}")).map_err(|error| error.to_string());
            let Head { name, uri, arguments, task, goes_on, meta, progress_token, .. } = &*head;
            format!(
                "{name:?} {uri:?} {arguments:?} {task:?} {goes_on} {meta:?} {progress_token:?} {envelope:?} {checked:?}"
            )
        },
    )
}

/// Messages with the envelope where clients put it.
fn frames(meta: &str) -> Vec<String> {
    [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":[2]},"_meta":M}}"#,
        r#"{"method":"tools/call","params":{"_meta":M,"name":"é","uri":"x:/y"},"jsonrpc":"2.0","id":"\"ü"}"#,
        "\t{ \"params\" : { \"task\": {} , \"_meta\" :M , \"x\":{\"_meta\":1} },\"id\":-5, \"jsonrpc\":\"2.0\",\"method\":\"m\" } ",
        r#"{"jsonrpc":"2.0","id":8,"method":"m","params":{"_meta":M}}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"m","params":{"_meta":M,"requestState":null}}"#,
    ]
    .map(|frame| frame.replace('M', meta))
    .to_vec()
}

#[test]
fn what_is_known_says_what_it_said_before() {
    let limits = Limits::default();
    for meta in [meta(), format!("{{{VERSION}}}"), format!(r#"{{"traceparent": "é\"", {CAPABILITIES}, {VERSION}}}"#)] {
        for frame in frames(&meta) {
            forget();
            let frame = Bytes::from(frame);
            let slow = slowly(&frame, &limits);
            learn(&meta);
            for _ in 0..2 {
                assert_eq!(quickly(&frame, &limits), (true, slow.clone()), "{frame:?}");
            }
        }
    }
}

#[test]
fn what_only_looks_like_it_is_read_as_it_is() {
    let (limits, meta) = (Limits::default(), meta());
    for frame in [
        // Somewhere else, twice, or under a name with escapes.
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"_meta":M}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"_meta":M},"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":M,"_meta":M}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":M,"_meta":null}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","_meta":M,"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"\u005fmeta":{},"_meta":M}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x\"_meta":M}}"#,
        // More of a value than that.
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":M1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":M.5}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":Me1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":-M}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":1M}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[M]}}"#,
        // Inside of a string.
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"M","_meta":0}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"\M"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":"M"}}"#,
        // No request of its kind.
        r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":M}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":M}}]"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":M}}"#,
        "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":M}}",
    ] {
        let frame = Bytes::from(frame.replace('M', &meta));
        learn(&meta);
        let slow = slowly(&frame, &limits);
        learn(&meta);
        assert_eq!(quickly(&frame, &limits), (false, slow), "{frame:?}");
    }
}

#[test]
fn limits_are_those_of_the_whole_message() {
    let meta = format!(r#"{{{VERSION}, {CAPABILITIES}, "x": [[[]]]}}"#);
    let frame = Bytes::from(frames(&meta).remove(0));
    let short = Limits { max_message_bytes: frame.len() - 1, ..Limits::default() };
    for limits in [short, Limits { max_nesting: 5, ..Limits::default() }] {
        learn(&meta);
        assert!(quickly(&frame, &limits).1.is_err() && slowly(&frame, &limits).is_err());
    }
    let wide = Limits { max_message_bytes: frame.len(), max_nesting: 6, ..Limits::default() };
    assert!(quickly(&frame, &wide).0);
    let deep = frames(&meta).remove(0).replace("[2]", "[[[[[2]]]]]");
    assert!(!quickly(&Bytes::from(deep), &wide).0);
}

#[test]
fn only_what_comes_again_is_kept() {
    let limits = Limits::default();
    let long = format!("{{{VERSION}, {CAPABILITIES}, \"x\": \"{}\"}}", "y".repeat(MAX_KEPT));
    for meta in [format!(r#"{{{VERSION}, "progressToken": 7}}"#), format!("{{{CAPABILITIES}}}"), "{}".into(), long] {
        learn(&meta);
        assert!(!quickly(&Bytes::from(frames(&meta).remove(0)), &limits).0, "{meta}");
    }
    for wrong in ["[]", "7", &format!("{{{VERSION}, {VERSION}}}")] {
        forget();
        assert!(meta_of(&RawJson::trusted(wrong.to_owned())).is_err(), "{wrong}");
    }
}

#[test]
fn what_never_comes_again_is_kept_seldom() {
    let limits = Limits::default();
    forget();
    let mut kept = 0;
    for n in 0..1000 {
        let frame = Bytes::from(frames(&format!(r#"{{{VERSION},"traceparent":"{n}"}}"#)).remove(0));
        assert!(!quickly(&frame, &limits).0);
        kept += usize::from(MEMORY.with_borrow(|memory| memory.kept.is_some()));
    }
    assert!((1..=25).contains(&kept), "{kept} of 1000 were kept");
    let again = Bytes::from(frames(&meta()).remove(0));
    let first = (0..200).position(|_| quickly(&again, &limits).0).expect("kept in the end");
    assert!(first <= 70 && quickly(&again, &limits).0, "{first} were let pass");
}

/// Messages that differ a little from good ones, thousands of them, the same in each run.
#[test]
fn whatever_is_wrong_is_said_in_the_same_words() {
    let (limits, meta) = (Limits::default(), meta());
    let mut last = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |bound: usize| {
        last ^= last << 13;
        last ^= last >> 7;
        last ^= last << 17;
        usize::try_from(last % u64::try_from(bound.max(1)).expect("a count")).expect("a place")
    };
    let pieces = [
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "0",
        "1",
        ".",
        "e",
        "-",
        " ",
        "\n",
        "null",
        "\"_meta\":",
        "é",
        "\"id\":2,",
        "\"name\":\"n\",",
        ",\"params\":{}",
        "{\"a\":1}",
        &meta,
    ];
    let mut helped = 0;
    for round in 0..20_000 {
        let mut text = frames(&meta).remove(round % 5).into_bytes();
        for _ in 0..=below(2) {
            let at = below(text.len());
            match below(3) {
                0 => drop(text.drain(at..(at + 1 + below(3)).min(text.len()))),
                1 => drop(text.splice(at..at, pieces[below(pieces.len())].bytes())),
                _ => drop(text.splice(at..(at + 1).min(text.len()), pieces[below(pieces.len())].bytes())),
            }
        }
        let frame = Bytes::from(text);
        learn(&meta);
        let slow = slowly(&frame, &limits);
        learn(&meta);
        let (quick, found) = quickly(&frame, &limits);
        assert_eq!(found, slow, "{frame:?}");
        helped += usize::from(quick);
    }
    assert!(helped > 400, "only {helped} were read quickly");
}
