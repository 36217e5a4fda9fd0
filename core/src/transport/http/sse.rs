//! Writing server-sent events.

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

const START: &[u8] = b"event: message\ndata: ";
const END: &[u8] = b"\n\n";
/// Up to here a copy is cheaper than three writes.
const SMALL: usize = 16 << 10;

/// A comment: keeps intermediaries from closing a silent stream.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// One message as an event, in chunks. The message is one line of JSON, so it needs one `data` field.
pub(super) fn event(message: Bytes) -> SmallVec<[Bytes; 3]> {
    if message.len() > SMALL {
        return SmallVec::from_buf([Bytes::from_static(START), message, Bytes::from_static(END)]);
    }
    let mut text = BytesMut::with_capacity(START.len() + message.len() + END.len());
    text.put_slice(START);
    text.put_slice(&message);
    text.put_slice(END);
    SmallVec::from_iter([text.freeze()])
}

/// A comment with a reason, for people who look at the stream.
pub(super) fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {}\n\n", text.replace(['\r', '\n'], " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event_whatever_its_size() {
        for size in [2, SMALL, SMALL + 1, 1 << 20] {
            let message = Bytes::from(vec![b'x'; size]);
            let written = event(message.clone()).concat();
            assert_eq!(written, [START, &message, END].concat(), "{size}");
        }
        assert_eq!(comment("a\nb"), ": a b\n\n");
    }
}
