//! Estimate of the memory that a JSON text will take, before any of it is decoded. Nothing here allocates.

/// The memory that a decoded value takes in its array or object, about.
const VALUE: usize = 128;
/// Memory of a member besides: its name, and its place among the others.
const MEMBER: usize = 96;
/// Memory of an array besides, if it has elements: there is room for four at least.
const ARRAY: usize = 224;
/// Memory of an object besides, if it has members.
const OBJECT: usize = 384;
/// Memory of a text besides its bytes.
const TEXT: usize = 32;
/// A number of so many digits is a long one. Some languages read and write it in a time that grows with their square: it
/// weighs the square over [`DIGITS`], so that a message has some fifty numbers of 4300 digits.
const LONG: usize = 512;
const DIGITS: usize = 16;
/// No JSON takes more memory for each of its bytes than that: `{"":{"":…`.
const WORST: usize = VALUE + MEMBER + OBJECT;

/// Counts of the signs in a text that values are made of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Signs {
    /// Arrays and objects.
    open: usize,
    objects: usize,
    commas: usize,
    colons: usize,
    quotes: usize,
    /// The weight of long numbers.
    digits: usize,
}

impl Signs {
    fn weight(self) -> usize {
        // The first value in each array and object has no comma before it, nor has the one that stands alone.
        let values = (1 + self.open + self.commas) * VALUE + self.quotes / 2 * TEXT;
        values + self.colons * MEMBER + self.objects * OBJECT + (self.open - self.objects) * ARRAY + self.digits
    }

    /// Counts digits in a row.
    fn run(&mut self, digits: usize) {
        if digits > LONG {
            self.digits = self.digits.saturating_add(digits.saturating_mul(digits) / DIGITS);
        }
    }

    /// Counts the signs in all bytes, inside and outside of texts: no fewer than there are. The compiler makes vectors
    /// of it.
    fn most(text: &[u8]) -> Self {
        const PART: usize = u8::MAX as usize;
        let (mut all, mut full) = (Self::default(), 0);
        for part in text.chunks(PART) {
            let (mut open, mut objects, mut commas, mut colons, mut quotes, mut digits) =
                (0u8, 0u8, 0u8, 0u8, 0u8, 0u8);
            for byte in part {
                open += u8::from(matches!(byte, b'{' | b'['));
                objects += u8::from(*byte == b'{');
                commas += u8::from(*byte == b',');
                colons += u8::from(*byte == b':');
                quotes += u8::from(*byte == b'"');
                digits += u8::from(byte.is_ascii_digit());
            }
            if usize::from(digits) == PART {
                full += 1;
            } else {
                // The run may have begun in the part before, and ends in this one.
                all.run(if full == 0 { 0 } else { (full + 2) * PART });
                full = 0;
            }
            all.open += usize::from(open);
            all.objects += usize::from(objects);
            all.commas += usize::from(commas);
            all.colons += usize::from(colons);
            all.quotes += usize::from(quotes);
        }
        all.run(if full == 0 { 0 } else { (full + 2) * PART });
        all
    }

    /// Counts the signs outside of texts.
    fn exact(text: &[u8]) -> Self {
        let (mut all, mut digits) = (Self::default(), 0);
        walk(text, |byte| {
            if byte.is_ascii_digit() {
                digits += 1;
                return true;
            }
            all.run(std::mem::take(&mut digits));
            match byte {
                b'{' => {
                    all.open += 1;
                    all.objects += 1;
                }
                b'[' => all.open += 1,
                b',' => all.commas += 1,
                b':' => all.colons += 1,
                b'"' => all.quotes += 2,
                _ => {}
            }
            true
        });
        all.run(digits);
        all
    }
}

/// Tells of each byte that is no part of a text, of a text by its first quote, for as long as it is wanted.
fn walk(text: &[u8], mut tell: impl FnMut(u8) -> bool) {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if !tell(*byte) {
            return;
        }
        at += 1;
        if *byte == b'"' {
            at = after_text(text, at);
        }
    }
}

/// Returns the end of a text that begins here, behind its quote.
fn after_text(text: &[u8], mut at: usize) -> usize {
    loop {
        match memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
            None => return text.len(),
            Some(found) if text[at + found] == b'"' => return at + found + 1,
            Some(found) => at += found + 2,
        }
    }
}

/// The memory that the values of this text would take, decoded, where that is more than `max`. An estimate, without what
/// texts are long.
pub(crate) fn heavier_than(text: &[u8], max: usize) -> Option<usize> {
    // Whatever it is, it is not so much.
    if text.len() <= max / WORST && text.len().saturating_mul(text.len()) / DIGITS <= max {
        return None;
    }
    if Signs::most(text).weight() <= max {
        return None;
    }
    Some(Signs::exact(text).weight()).filter(|weight| *weight > max)
}

/// The elements of an array, each as it stands in the text, which need not be JSON.
pub(crate) fn elements(array: &[u8]) -> Elements<'_> {
    let start = array.iter().position(|byte| *byte == b'[').map_or(array.len(), |at| at + 1);
    Elements { rest: &array[start..] }
}

/// See [`elements`].
pub(crate) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut depth, mut at, text) = (0usize, 0, self.rest);
        loop {
            let Some(byte) = text.get(at) else {
                self.rest = &[];
                let left = text.trim_ascii();
                return (!left.is_empty()).then_some(left);
            };
            match byte {
                b'"' => {
                    at = after_text(text, at + 1);
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b']' => {
                    self.rest = &[];
                    let last = text[..at].trim_ascii();
                    return (!last.is_empty()).then_some(last);
                }
                b',' if depth == 0 => {
                    self.rest = &text[at + 1..];
                    return Some(text[..at].trim_ascii());
                }
                _ => {}
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_text_weighs_nothing() {
        let signs = |text: &str| Signs::exact(text.as_bytes());
        assert_eq!(
            signs(r#"{"a,:[{\"":[1,2,{"b":"]]},"}]}"#),
            Signs { open: 3, objects: 2, commas: 2, colons: 2, quotes: 6, digits: 0 }
        );
        let long = format!("[\"{}\"]", "[{\\\",:}]".repeat(1 << 20));
        assert_eq!(heavier_than(long.as_bytes(), 1 << 20), None);
        assert_eq!(signs("\"open").quotes, 2);
        assert_eq!(signs("\"open\\").quotes, 2);
    }

    #[test]
    fn the_exact_weight_is_never_more_than_what_is_guessed() {
        for text in ["", "1", "[]", "[1,[2,3],{}]", r#"{"a":{"b":"c,d:e"},"f":[1,2,3]}"#, r#"["\"",{"a\\":1}]"#] {
            let (exact, most) = (Signs::exact(text.as_bytes()).weight(), Signs::most(text.as_bytes()).weight());
            assert!(exact <= most, "{text}");
            assert!(exact <= VALUE + text.len() * WORST, "{text}");
            assert_eq!(heavier_than(text.as_bytes(), exact), None, "{text}");
        }
    }

    #[test]
    fn what_expands_is_heavy() {
        let max = 64 << 20;
        for part in ["1,", "[],", "{},", "\"\",", r#"{"a":0},"#, r#"{"":{"":0}},"#, "null,", "[1,2],", "[[[[", "[0.5,"]
        {
            let text = format!("[{}0]", part.repeat((4 << 20) / part.len()));
            let weight = heavier_than(text.as_bytes(), max);
            assert!(weight.is_some_and(|weight| weight > max), "{part} {weight:?}");
            assert_eq!(heavier_than(&text.as_bytes()[..64 << 10], max), None, "{part}");
        }
        let text = format!("[{}]", vec!["-12.345678901"; 300_000].join(","));
        assert_eq!(heavier_than(text.as_bytes(), max), None, "{} bytes of numbers", text.len());
    }

    #[test]
    fn long_numbers_are_heavy_and_a_few_are_not() {
        let max = 64 << 20;
        let numbers = |digits: usize, count: usize| format!("[{}]", vec!["7".repeat(digits); count].join(","));
        for (digits, count, is_heavy) in [
            (4300, 50, false),
            (4300, 100, true),
            (1000, 500, false),
            (500, 8000, false),
            (100_000, 1, true),
            (1 << 20, 1, true),
        ] {
            let text = numbers(digits, count);
            assert_eq!(heavier_than(text.as_bytes(), max).is_some(), is_heavy, "{count} numbers of {digits} digits");
            let quoted = format!("\"{}\"", text.replace(['[', ']', ','], ""));
            assert_eq!(heavier_than(quoted.as_bytes(), max), None, "a text of {} digits", quoted.len());
        }
    }

    #[test]
    fn elements_are_found_without_reading_them() {
        let found = |text: &'static str| {
            elements(text.as_bytes()).map(|part| std::str::from_utf8(part).expect("text")).collect::<Vec<_>>()
        };
        assert_eq!(found(r#" [1, {"a":[2,3]} ,"],", [] ] "#), ["1", r#"{"a":[2,3]}"#, r#""],""#, "[]"]);
        assert!(found("[]").is_empty() && found("[ ").is_empty() && found("").is_empty() && found("{}").is_empty());
        assert_eq!(found("[1,"), ["1"]);
        assert_eq!(found("[1,,2"), ["1", "", "2"]);
        assert_eq!(found("[\"open, 1"), ["\"open, 1"]);
    }
}
