//! Bytes that no JSON writer would produce.

use crate::Outcome;

/// The bytes of a `>raw` line: `{{fill N TEXT}}` repeats, `{{nest N}}` is N arrays inside each
/// other, `{{hex FF 00}}` bytes; everything else is itself.
pub fn raw_bytes(text: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let end = rest[start..].find("}}").ok_or("unclosed {{")? + start;
        bytes.extend_from_slice(&rest.as_bytes()[..start]);
        let mut words = rest[start + 2..end].split_whitespace();
        let kind = words.next().unwrap_or_default();
        let number = |word: Option<&str>| {
            word.and_then(|word| word.parse::<usize>().ok()).ok_or_else(|| format!("{{{{{kind} NUMBER …}}}}"))
        };
        match kind {
            "fill" => {
                let count = number(words.next())?;
                bytes.extend_from_slice(words.next().unwrap_or("x").repeat(count).as_bytes());
            }
            "nest" => {
                let depth = number(words.next())?;
                bytes.extend(std::iter::repeat_n(b'[', depth));
                bytes.extend(std::iter::repeat_n(b']', depth));
            }
            "hex" => {
                for word in words {
                    bytes.push(u8::from_str_radix(word, 16).map_err(|_| format!("not hex: {word:?}"))?);
                }
            }
            _ => return Err(format!("unknown {{{{{kind}}}}}")),
        }
        rest = &rest[end + 2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}
