//! Text of a server on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The longest text of a server on one line, in characters.
const LINE: usize = 2000;

/// Makes a text harmless for a terminal: line breaks and tabs stay, other control characters are written as escapes, and
/// so are those that change the direction of what follows.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // The line breaks of Windows.
            '\r' if characters.peek() == Some(&'\n') => {}
            _ if is_harmful(character) => {
                let _ = write!(safe, "{}", character.escape_unicode());
            }
            _ => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// JSON in which harmful characters are escapes.
pub(super) fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        if is_harmful(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

fn is_harmful(character: char) -> bool {
    let turns =
        matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    (character.is_control() && character != '\n' && character != '\t') || turns || character == '\u{feff}'
}

/// Makes one harmless line of a text, however long it is.
pub(crate) fn one_line(text: &str) -> String {
    let cut: String = text.chars().take(LINE).collect();
    let words: Vec<_> = cut.split_whitespace().collect();
    let mut line = shown(&words.join(" ")).into_owned();
    if text.chars().nth(LINE).is_some() {
        line.push('…');
    }
    line
}

/// The first line of a text that has one.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colours: bool,
}

impl Style {
    fn with(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Heads a part.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Names something.
    pub(crate) fn name(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Stands back.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Tells of an error.
    pub(crate) fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// Tells of a warning.
    pub(crate) fn warning(self, text: &str) -> String {
        self.with("33", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escapes() {
        assert_eq!(shown("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(shown("a\u{1b}[31mb\r\nc\rd\u{9b}e\u{202e}f"), "a\\u{1b}[31mb\nc\\u{d}d\\u{9b}e\\u{202e}f");
        assert_eq!(escaped("[\"a\u{9b}2J\u{202e}\"]"), "[\"a\\u009b2J\\u202e\"]");
        assert_eq!(one_line("  one\n two\u{7} "), "one two\\u{7}");
        assert_eq!(first_line("\n  the first\nsecond"), "the first");
    }
}
