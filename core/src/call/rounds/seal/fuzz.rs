//! Properties of `requestState` that hold for any input: for the tests, and for `core/fuzz`.

use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{SealOptions, Sealer};

const BOUND: &[u8] = b"a request";

static SEALER: LazyLock<Sealer> = LazyLock::new(|| {
    let keys = ["a secret for fuzzing, of thirty-two bytes or more".to_owned()];
    let options =
        SealOptions { server: "fuzz", keys: Some(&keys), ttl: Duration::from_secs(600), max_bytes: 16 * 1024 };
    let sealer = Sealer::new(&options).expect("a sealer");
    Sealer { now: || 1_000_000, ..sealer }
});

/// The first bytes of everything that is sealed here.
#[cfg(test)]
pub(super) fn head() -> Vec<u8> {
    [&[super::VERSION], &SEALER.keys.read().expect("a lock")[0].id[..]].concat()
}

fn refused(bound: &[u8], text: &str) {
    match SEALER.open(bound, text) {
        Ok(body) => panic!("{text:?} was never sealed, and opens: {body:?}"),
        Err(error) => assert_eq!(error.code(), Some(-32602), "{error}"),
    }
}

/// Takes `data` for a state as it comes, for the bytes of one, for what is sealed, and for changes of what is sealed.
///
/// # Panics
/// When something opens that was not sealed, something that was sealed does not, or the error is not −32602.
#[cfg_attr(not(fuzzing), expect(unreachable_pub, reason = "it is exported to the fuzzer"))]
pub fn request_state(data: &[u8]) {
    refused(BOUND, &String::from_utf8_lossy(data));
    refused(BOUND, &URL_SAFE_NO_PAD.encode(data));
    let Ok(text) = SEALER.seal(BOUND, data) else {
        assert!(data.len() > 8 * 1024, "{} bytes cannot be sealed", data.len());
        return;
    };
    assert_eq!(SEALER.open(BOUND, &text).expect("what was sealed"), data);
    if data != BOUND {
        refused(data, &text);
    }
    let sealed = URL_SAFE_NO_PAD.decode(&text).expect("base64");
    // Each pair of bytes changes one byte.
    let (mut bytes, mut letters) = (sealed.clone(), text.clone().into_bytes());
    for pair in data.chunks_exact(2) {
        let at = usize::from(pair[0]);
        let (place, letter) = (at % bytes.len(), at % letters.len());
        bytes[place] ^= pair[1];
        letters[letter] = pair[1] & 0x7F;
    }
    if bytes != sealed {
        refused(BOUND, &URL_SAFE_NO_PAD.encode(&bytes));
    }
    let letters = String::from_utf8_lossy(&letters);
    if letters != text {
        refused(BOUND, &letters);
    }
    // The end of one behind the beginning of another.
    let cut = data.first().map_or(0, |at| usize::from(*at)) % sealed.len();
    let other = SEALER.seal(b"another request", data).expect("as long");
    let other = URL_SAFE_NO_PAD.decode(other).expect("base64");
    let spliced = [&sealed[..cut], &other[cut..]].concat();
    if spliced != sealed {
        refused(BOUND, &URL_SAFE_NO_PAD.encode(spliced));
    }
}
