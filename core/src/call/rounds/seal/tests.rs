use super::*;
use serde_json::json;

const OLD: &str = "the first secret, of thirty-two bytes or more";
const NEW: &str = "the second secret, of thirty-two bytes or more";

fn sealer(keys: &[&str]) -> Sealer {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    options(&keys).expect("a sealer")
}

fn options(keys: &[String]) -> Result<Sealer> {
    named("server", keys, Duration::from_secs(600))
}

fn named(server: &str, keys: &[String], ttl: Duration) -> Result<Sealer> {
    let keys = Some(keys).filter(|keys| !keys.is_empty());
    Sealer::new(&SealOptions { server, keys, ttl, max_bytes: 16 * 1024 })
}

#[test]
fn what_is_sealed_can_be_read_by_those_with_a_key() {
    let (old, both, new) = (sealer(&[OLD]), sealer(&[NEW, OLD]), sealer(&[NEW]));
    let text = old.seal(b"request", b"answers").expect("sealed");
    assert_eq!(both.open(b"request", &text).expect("opened"), b"answers");
    assert!(new.open(b"request", &text).is_err());
    assert!(old.open(b"other", &text).is_err());
    let own = sealer(&[]);
    let text = own.seal(b"", b"x").expect("sealed");
    assert_eq!(own.open(b"", &text).expect("opened"), b"x");
    assert!(sealer(&[]).open(b"", &text).is_err());
}

#[test]
fn servers_of_other_names_do_not_open_it() {
    let of = |name| named(name, &[OLD.to_owned()], Duration::from_secs(600)).expect("a sealer");
    let text = of("shop").seal(b"r", b"x").expect("sealed");
    assert!(of("shop").open(b"r", &text).is_ok());
    for other in ["shop2", "Shop", ""] {
        assert_eq!(of(other).open(b"r", &text).expect_err("another server").code(), Some(-32602));
    }
}

#[test]
fn no_bit_and_no_byte_of_it_can_be_changed() {
    let it = sealer(&[OLD]);
    let text = it.seal(b"r", b"[1,2,3]").expect("sealed");
    let bytes = URL_SAFE_NO_PAD.decode(&text).expect("base64");
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(it.open(b"r", &URL_SAFE_NO_PAD.encode(changed)).is_err(), "bit {bit}");
    }
    for length in 0..text.len() {
        let error = it.open(b"r", &text[..length]).expect_err("cut");
        assert_eq!(error.code(), Some(-32602));
    }
    assert!(it.open(b"r", &format!("{text}A")).is_err());
}

fn code(outcome: &Result<Vec<u8>>) -> Option<i64> {
    outcome.as_ref().err().and_then(Error::code)
}

/// A request of a method for something by somebody, as [`Rounds`](super::super::Rounds) has it.
fn bound(tool: &str, n: u32, principal: &str) -> [u8; 32] {
    let params = json!({"name": tool, "arguments": {"order": n, "of": "x".repeat(n as usize % 40)}});
    super::digest(&json!(["tools/call", params, {"named": principal}]))
}

/// A state as rounds have it, with more or less in it.
fn body(n: u32) -> Vec<u8> {
    let answered: Vec<_> = (0..n % 3).map(|k| json!({"d": "c2hvcnQ", "w": "q", "r": {"k": k, "n": n}})).collect();
    let steps: Vec<_> = (0..n % 2).map(|k| json!(["paid", {"k": k}])).collect();
    json!({"n": n, "a": answered, "s": steps, "q": [{"k": "elicitation-1", "d": "ZGlnZXN0", "w": "w"}]})
        .to_string()
        .into_bytes()
}

/// A thousand states, and everything that the specification says is refused of each: every bit of what is sealed, every
/// length, its time, its user, its tool and its arguments; and every bit of its letters, which is what a client has.
#[test]
fn of_a_hundred_states_none_can_be_changed_or_used_elsewhere() {
    const ISSUED: u64 = 10_000;
    let (mut it, mut late, mut early) = (sealer(&[OLD]), sealer(&[OLD]), sealer(&[OLD]));
    it.now = || ISSUED;
    late.now = || ISSUED + 601;
    early.now = || ISSUED - MAX_SKEW - 1;
    let other = named("other", &[OLD.to_owned()], Duration::from_secs(600)).expect("a sealer");
    let mut refused = 0_u64;
    for n in 0..100 {
        let (own, body) = (bound("pay", n, "ada"), body(n));
        let text = it.seal(&own, &body).expect("sealed");
        assert_eq!(it.open(&own, &text).expect("opened"), body);
        let mut refuses = |it: &Sealer, bound: &[u8], text: &str, what: &dyn std::fmt::Display| {
            assert_eq!(code(&it.open(bound, text)), Some(-32602), "{n}: {what}");
            refused += 1;
        };
        let mut sealed = URL_SAFE_NO_PAD.decode(&text).expect("base64");
        for bit in 0..sealed.len() * 8 {
            sealed[bit / 8] ^= 1 << (bit % 8);
            refuses(&it, &own, &URL_SAFE_NO_PAD.encode(&sealed), &bit);
            sealed[bit / 8] ^= 1 << (bit % 8);
        }
        let mut letters = text.clone().into_bytes();
        // With the eighth bit it is no text, and no message that it could be in.
        for bit in (0..letters.len() * 8).filter(|bit| bit % 8 < 7) {
            letters[bit / 8] ^= 1 << (bit % 8);
            refuses(&it, &own, std::str::from_utf8(&letters).expect("ASCII"), &format_args!("bit {bit} of the text"));
            letters[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..text.len() {
            refuses(&it, &own, &text[..length], &format_args!("the first {length}"));
        }
        for more in ["A", "=", "AA", " ", "AAAA"] {
            refuses(&it, &own, &format!("{text}{more}"), &more);
        }
        refuses(&late, &own, &text, &"expired");
        refuses(&early, &own, &text, &"of a clock that is ahead");
        refuses(&other, &own, &text, &"another server");
        refuses(&it, &bound("pay", n, "bob"), &text, &"another user");
        refuses(&it, &bound("refund", n, "ada"), &text, &"another tool");
        refuses(&it, &bound("pay", n + 1, "ada"), &text, &"other arguments");
    }
    assert!(refused > 250_000, "{refused}");
}

#[test]
fn whatever_comes_is_refused_and_what_was_sealed_opens() {
    // SplitMix64: the same inputs every time.
    let mut seed = 0x5EA1_ED57_A7E5_u64;
    let mut random = move || {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ .{\"";
    let mut data = Vec::new();
    for n in 0..100_000 {
        let length = (random() % [4, 40, 100, 400][n % 4]) as usize;
        data.clear();
        match n % 3 {
            0 => data.extend((0..length).map(|_| random() as u8)),
            1 => data.extend((0..length).map(|_| letters[random() as usize % letters.len()])),
            // Ours at first sight.
            _ => {
                data.extend_from_slice(&fuzz::head());
                data.extend((0..length).map(|_| random() as u8));
            }
        }
        fuzz::request_state(&data);
    }
}

#[test]
fn it_expires_and_clocks_may_differ_a_little() {
    let mut it = sealer(&[OLD]);
    it.now = || 10_000;
    let text = it.seal(b"r", b"x").expect("sealed");
    let opened = |now| {
        let mut later = sealer(&[OLD]);
        later.now = now;
        later.open(b"r", &text).is_ok()
    };
    assert!(opened(|| 10_600));
    assert!(!opened(|| 10_601));
    assert!(opened(|| 9_940));
    assert!(!opened(|| 9_939));
    let mut brief = named("server", &[OLD.to_owned()], Duration::from_millis(1200)).expect("a sealer");
    brief.now = || 10_002;
    assert!(brief.open(b"r", &text).is_ok(), "of seconds that have begun");
}

#[test]
fn bad_options_and_long_states_are_said() {
    let short = options(&["short".to_owned()]);
    assert!(short.is_err_and(|error| error.message().contains("request_state_keys")));
    let none = SealOptions { server: "s", keys: Some(&[]), ttl: Duration::from_secs(1), max_bytes: 1000 };
    assert!(Sealer::new(&none).is_err_and(|error| error.message().contains("got none")), "a setting that was lost");
    let error = sealer(&[]).seal(b"", &[0; 20_000]).expect_err("long");
    assert!(error.message().contains("max_request_state_bytes"), "{error}");
}

#[test]
fn equal_values_have_equal_digests() {
    let digest = |text: &str| super::digest(&serde_json::from_str(text).expect("json"));
    assert_eq!(digest(r#"{"a": 1, "b": [{"c": null, "d": "x"}]}"#), digest(r#"{"b":[{"d":"x","c":null}],"a":1}"#));
    assert_ne!(digest(r#"["a","b"]"#), digest(r#"["a,b"]"#));
    assert_ne!(digest(r#"{"a":{"b":1}}"#), digest(r#"{"a":{},"b":1}"#));
    assert_ne!(super::digest(&json!("1")), super::digest(&json!(1)));
}

#[test]
fn integers_that_are_equal_as_floats_are_told_apart() {
    let (one, other) = ("18446744073709551617", "18446744073709551618");
    let text = format!(r#"{{"a":[{one},-{other}],"{one}":"\\\"{other}\\\\"}}"#);
    assert_eq!(long_integers(&text), [one, &format!("-{other}")]);
    assert_eq!(long_integers(r#"[1,-1,0.5,1e30,18446744073709551615,-9223372036854775808,"unfinished"#), [""; 0]);
    assert_eq!(long_integers(one), [one]);
    assert_eq!(long_integers("\"a\\"), [""; 0]);
}
