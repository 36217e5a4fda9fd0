//! The search for secrets in a cassette.

use super::likeness::spellings;
use crate::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Says in which line of the file a secret is: as it is, as JSON spells it, percent-encoded, or in base64.
pub(super) fn absent(file: &Path, secrets: &BTreeMap<String, String>) -> Outcome {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if !text.starts_with("{\"cassette\":1") {
        return Err(format!("{}: it does not begin as a cassette does", file.display()));
    }
    for (number, line) in text.lines().enumerate() {
        for (name, secret) in secrets {
            if let Some(form) = forms(secret).into_iter().find(|form| line.contains(form)) {
                return Err(format!("line {}: it has the secret {name:?} as {form:?}", number + 1));
            }
        }
    }
    Ok(())
}

fn forms(secret: &str) -> Vec<String> {
    let mut all = spellings(secret);
    all.push(secret.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    }));
    // A secret in the middle of what is encoded has three forms: the bytes before it move its bits.
    for skipped in 0..3 {
        let encoded = base64(&[&b"   "[..skipped], secret.as_bytes()].concat());
        let cut = &encoded[if skipped == 0 { 0 } else { skipped + 1 }..];
        let whole = cut.len() - cut.len() % 4;
        let cut = &cut[..whole.saturating_sub(4)];
        all.push(cut.to_owned());
        // The letters of URLs.
        all.push(cut.replace('+', "-").replace('/', "_"));
    }
    all
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            out.push(char::from(LETTERS[((word >> (18 - 6 * at)) & 63) as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form() {
        let file = std::env::temp_dir().join(format!("contract-secrets-{}.jsonl", std::process::id()));
        let secrets = BTreeMap::from([("token".to_owned(), "hush/\"hush 01234".to_owned())]);
        let around = |what: &str| {
            std::fs::write(&file, format!("{{\"cassette\":1}}\n{{\"msg\":\"x{what}y\"}}\n")).unwrap();
            absent(&file, &secrets)
        };
        assert_eq!(around("hush <secret-1>"), Ok(()));
        let forms = ["hush/\\\"hush 01234", "hush/\\\\\\\"hush 01234", "hush%2F%22hush%2001234"];
        let encoded = ["", "a", "ab", "user:"].map(|before| base64(format!("{before}hush/\"hush 01234&").as_bytes()));
        for form in forms.into_iter().map(str::to_owned).chain(encoded) {
            let reason = around(&form).unwrap_err();
            assert!(reason.starts_with("line 2: it has the secret \"token\""), "{reason}");
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn base64_is_that_of_everybody() {
        assert_eq!(base64(b"Man"), "TWFu");
        assert_eq!(base64(b"Ma"), "TWE");
        assert_eq!(base64(b"M"), "TQ");
    }
}
