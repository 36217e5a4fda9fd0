//! Writing server-sent events.

use std::fmt::Write;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use crate::store::EventId;

const START: &[u8] = b"event: message\ndata: ";
const END: &[u8] = b"\n\n";
/// Up to here a copy is cheaper than three writes.
const SMALL: usize = 16 << 10;

/// A comment: keeps intermediaries from closing a silent stream.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// The longest `id` line.
const ID: usize = 48;

/// One message as an event, in chunks. The message is one line of JSON, so it needs one `data` field.
pub(crate) fn event(id: Option<EventId>, message: Bytes) -> SmallVec<[Bytes; 3]> {
    let large = message.len() > SMALL;
    let mut text = BytesMut::with_capacity(ID + START.len() + END.len() + if large { 0 } else { message.len() });
    if let Some(id) = id {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "id: {id}");
    }
    text.put_slice(START);
    if large {
        return SmallVec::from_buf([text.freeze(), message, Bytes::from_static(END)]);
    }
    text.put_slice(&message);
    text.put_slice(END);
    SmallVec::from_iter([text.freeze()])
}

/// An event without data: from now on the stream can be resumed, after `retry`.
pub(crate) fn priming(id: EventId, retry: Duration) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()))
}

/// Returns the event that tells a client of the oldest transport the address of its messages.
pub(crate) fn endpoint(target: &str) -> Bytes {
    Bytes::from(format!("event: endpoint\ndata: {target}\n\n"))
}

/// A comment with a reason, for people who look at the stream.
pub(crate) fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {}\n\n", text.replace(['\r', '\n'], " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Stream;

    #[test]
    fn a_message_is_one_event_whatever_its_size() {
        for size in [2, SMALL, SMALL + 1, 1 << 20] {
            let message = Bytes::from(vec![b'x'; size]);
            let written = event(None, message.clone()).concat();
            assert_eq!(written, [START, &message, END].concat(), "{size}");
            let id = EventId { stream: Stream::Request(1), number: 2, place: 0 };
            let written = event(Some(id), message.clone()).concat();
            assert_eq!(written, [b"id: r1-2\n", START, &message, END].concat(), "{size}");
        }
        assert_eq!(comment("a\nb"), ": a b\n\n");
    }
}
