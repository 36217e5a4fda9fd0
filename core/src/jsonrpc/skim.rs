//! One pass over an object's text that finds its members and checks that it is JSON: the everyday case of decoding.
//! What is out of the ordinary is left to serde, which also knows how to say what is wrong.

/// Deeper than this is out of the ordinary.
const LEVELS: usize = 128;

/// Reads an object's members as they stand in the text: keys without their quotation marks, values as JSON.
///
/// `None` when `text` is anything but one JSON object on one line, nested at most `levels` deep, whose own keys have no
/// escapes. By then `member` may have been called.
pub(crate) fn object<'a>(text: &'a str, levels: usize, mut member: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let mut at = Reader { text: text.as_bytes(), at: 0 };
    if levels == 0 || !at.eat(b'{') {
        return None;
    }
    at.skip_space();
    if !at.eat(b'}') {
        loop {
            let key = at.string()?;
            let key = text.get(key.0..key.1).filter(|key| !key.as_bytes().contains(&b'\\'))?;
            at.colon()?;
            let start = at.at;
            at.value(levels - 1)?;
            member(key, text.get(start..at.at)?);
            at.skip_space();
            if at.eat(b'}') {
                break;
            }
            at.comma()?;
        }
    }
    (at.at == text.len()).then_some(())
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// White space that is no line break.
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn comma(&mut self) -> Option<()> {
        let there = self.eat(b',');
        self.skip_space();
        there.then_some(())
    }

    fn colon(&mut self) -> Option<()> {
        self.skip_space();
        let there = self.eat(b':');
        self.skip_space();
        there.then_some(())
    }

    /// A string; where its inside starts and ends.
    fn string(&mut self) -> Option<(usize, usize)> {
        if !self.eat(b'"') {
            return None;
        }
        let start = self.at;
        loop {
            self.skip_plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some((start, self.at - 1));
                }
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Goes on while there is nothing to look at within a string, as far as whole words reach.
    fn skip_plain(&mut self) {
        const LOW: u64 = every(0x01);
        const HIGH: u64 = every(0x80);
        let mut words = 0;
        while let Some(word) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*word);
            let (quote, slash) = (word ^ every(b'"'), word ^ every(b'\\'));
            let found = (quote.wrapping_sub(LOW) & !quote | slash.wrapping_sub(LOW) & !slash) & HIGH;
            let found = found | word.wrapping_sub(every(0x20)) & !word & HIGH;
            if found != 0 {
                // The lowest mark is exact; those above it may come from a borrow.
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
            words += 1;
            if words == 8 {
                self.skip_plain_fast();
            }
        }
    }

    /// The same for long strings, in strides that the compiler makes vectors of.
    fn skip_plain_fast(&mut self) {
        while let Some(stride) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<64>()) {
            let marks = stride
                .iter()
                .fold(0u8, |marks, b| marks | u8::from(*b == b'"') | u8::from(*b == b'\\') | u8::from(*b < 0x20));
            if marks != 0 {
                return;
            }
            self.at += 64;
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.text.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.text.get(self.at + 2..self.at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn literal(&mut self, word: &[u8]) -> Option<()> {
        let there = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        there.then_some(())
    }

    /// A value of any kind, whose arrays and objects are nested at most `levels` deep.
    fn value(&mut self, levels: usize) -> Option<()> {
        let levels = levels.min(LEVELS);
        // One bit for each open level, the innermost lowest: whether it is an object.
        let (mut open, mut depth) = (0u128, 0usize);
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                kind @ (b'{' | b'[') => {
                    if depth == levels {
                        return None;
                    }
                    let is_object = kind == b'{';
                    self.at += 1;
                    self.skip_space();
                    if !self.eat(kind + 2) {
                        depth += 1;
                        open = open << 1 | u128::from(is_object);
                        if is_object {
                            self.string()?;
                            self.colon()?;
                        }
                        continue;
                    }
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => self.number()?,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.skip_space();
                let is_object = open & 1 == 1;
                if self.eat(if is_object { b'}' } else { b']' }) {
                    open >>= 1;
                    depth -= 1;
                } else {
                    self.comma()?;
                    if is_object {
                        self.string()?;
                        self.colon()?;
                    }
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn skim(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut members = Vec::new();
        object(text, LEVELS, |key, value| members.push((key, value)))?;
        Some(members)
    }

    #[test]
    fn members_are_found_as_they_stand() {
        let text = r#"{ "a" : 1 ,"b":{"c":[true,{}]}, "":"x\"}","d":-0.5e+3	}"#;
        assert_eq!(
            skim(text),
            Some(vec![("a", "1"), ("b", r#"{"c":[true,{}]}"#), ("", r#""x\"}""#), ("d", "-0.5e+3")])
        );
        assert_eq!(skim("{}"), Some(vec![]));
        for text in ["", "{", "[]", "1", "{} ", "{\n}", r#"{"a\u0062":1}"#, r#"{"a":1}{"#, r#"{"a":1,}"#, r#"{,"a":1}"#]
        {
            assert_eq!(skim(text), None, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        for levels in [1, 2, 5, 127, 128] {
            assert!(object(&nested(levels - 1), levels, |_, _| {}).is_some(), "{levels}");
            assert!(object(&nested(levels), levels, |_, _| {}).is_none(), "{levels}");
        }
        assert!(object(&nested(500), usize::MAX, |_, _| {}).is_none(), "left to others");
        assert!(object("{}", 0, |_, _| {}).is_none());
    }

    /// What is skimmed is what serde reads: on texts made by cutting, joining and spoiling pieces of JSON.
    #[test]
    fn agrees_with_serde() {
        const PIECES: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\"",
            "\"k\":",
            "1",
            "0",
            "-",
            "01",
            "-0",
            "1.5",
            "1.",
            ".5",
            "1e5",
            "1e",
            "1E-2",
            "true",
            "false",
            "null",
            "nul",
            " ",
            "\t",
            "\n",
            "\\",
            "\"\\u00e9\"",
            "\"\\u00g9\"",
            "\"\\x\"",
            "\"é☃\"",
            "\"\u{1}\"",
            "\"a b c d e f g h i j k l m n o p q r s t u v w x y z\"",
            "\"\\ud800\"",
            "\"",
            "x",
            "\"\u{7f}\u{80}\"",
            "{\"n\":{\"n\":[1,{\"n\":2}]}}",
        ];
        // A generator of its own: the same texts every time.
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).expect("small")
        };
        let (mut taken, mut both) = (0, 0);
        for round in 0..200_000 {
            let mut text = String::from("{");
            if round % 2 == 0 {
                // Mostly right.
                for n in 0..random(4) {
                    text.push_str(&format!("{}\"k{n}\":", if n > 0 { "," } else { "" }));
                    (0..=random(2)).for_each(|_| text.push_str(PIECES[random(PIECES.len())]));
                }
            } else {
                (0..random(12)).for_each(|_| text.push_str(PIECES[random(PIECES.len())]));
            }
            text.push('}');
            let serde = serde_json::from_str::<BTreeMap<String, &RawValue>>(&text);
            both += usize::from(serde.is_ok());
            let Some(members) = skim(&text) else { continue };
            taken += 1;
            let serde = serde.unwrap_or_else(|e| panic!("{text}: {e}"));
            // Of a key that is there twice, both keep the last.
            let skimmed: BTreeMap<String, &str> = members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
            let serde: BTreeMap<String, &str> = serde.into_iter().map(|(k, v)| (k, v.get())).collect();
            assert_eq!(skimmed, serde, "{text}");
        }
        assert!(taken > 20_000 && taken * 10 > both * 8, "{taken} of {both}");
    }

    #[test]
    fn strings_end_where_they_end_wherever_that_is() {
        for length in 0..200 {
            for inside in ["", "\\\"", "\\\\", "é", "\u{7f}"] {
                let value = format!("\"{}{inside}{}\"", "x".repeat(length), "y".repeat(length % 9));
                let text = format!("{{\"k\":{value},\"z\":0}}");
                assert_eq!(skim(&text), Some(vec![("k", value.as_str()), ("z", "0")]), "{text}");
            }
            for bad in ["\u{1f}", "\\", "\\u12"] {
                let text = format!("{{\"k\":\"{}{bad}\"}}", "x".repeat(length));
                assert_eq!(skim(&text), None, "{text}");
            }
        }
    }
}
