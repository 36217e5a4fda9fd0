//! Outline of a message that cannot be read: too long, or no JSON.

use super::Id;

/// The longest name of a member, and the longest id, of which a copy is made.
const KEPT: usize = 1024;

/// The members that stand at the top level of a message, seen without reading it: it may come in pieces, be longer than
/// anything that is kept, hold what is no UTF-8 or no JSON (`NaN`, a raw control character), and break off.
///
/// Bounded by [`KEPT`], and linear.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    state: State,
    /// The name or the id that is being read, as it stands in the text.
    kept: Vec<u8>,
    /// There is more of it than is kept.
    cut: bool,
    member: Member,
    id: Option<Id>,
    has_method: bool,
    answers: bool,
    /// It is an array of messages, and what is seen is the one after the other.
    many: bool,
    /// Ids that finished messages of the array answer.
    answered: Vec<Id>,
}

/// The most messages of an array whose ids are kept.
const MOST: usize = 256;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first brace.
    #[default]
    Start,
    /// Before a name, or the end.
    Name,
    InName {
        escaped: bool,
    },
    Colon,
    Value,
    InText {
        escaped: bool,
    },
    /// A number, a word, or what is none of both.
    Bare,
    /// Within an array or object.
    Inside {
        depth: usize,
        quoted: bool,
        escaped: bool,
    },
    After,
    /// The end, or something after which nothing can be told any more.
    Over,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Member {
    Id,
    #[default]
    Other,
}

impl Outline {
    /// Returns the outline of a whole text.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut outline = Self::default();
        outline.feed(text);
        outline
    }

    /// The id, where one was seen that is a text or an integer. Of several it is the last, as for most readers of JSON.
    pub(crate) fn id(&self) -> Option<&Id> {
        self.id.as_ref().filter(|_| !self.many)
    }

    /// Returns true if it is a request, or a notification.
    pub(crate) fn has_method(&self) -> bool {
        self.has_method && !self.many
    }

    /// Returns true if it has a result or an error.
    pub(crate) fn answers(&self) -> bool {
        self.answers && !self.has_method && !self.many
    }

    /// The ids of all requests that it answers, an array more than one.
    #[cfg(feature = "stdio")]
    pub(crate) fn answered(&self) -> impl Iterator<Item = Id> {
        self.answered.iter().chain(self.id().filter(|_| self.answers())).cloned()
    }

    /// Returns true if it is an array of messages.
    #[cfg(feature = "stdio")]
    pub(crate) fn is_many(&self) -> bool {
        self.many
    }

    /// Returns true if it has begun, and goes on with the next piece.
    #[cfg(feature = "stdio")]
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Start | State::Over)
    }

    /// Returns true if the next piece begins within a text.
    #[cfg(feature = "stdio")]
    pub(crate) fn is_in_text(&self) -> bool {
        matches!(self.state, State::InName { .. } | State::InText { .. } | State::Inside { quoted: true, .. })
    }

    /// The next piece of the text.
    pub(crate) fn feed(&mut self, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() && self.state != State::Over {
            rest = self.step(rest);
        }
    }

    /// Takes at least one byte. Gives what is left.
    fn step<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let (first, rest) = (text[0], &text[1..]);
        let is_space = matches!(first, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Start => match first {
                b'{' => self.state = State::Name,
                b'[' if !self.many => self.many = true,
                b',' if self.many => {}
                // A byte order mark.
                0xef | 0xbb | 0xbf => {}
                _ if is_space => {}
                _ => self.state = State::Over,
            },
            State::Name => match first {
                b'"' => {
                    self.state = State::InName { escaped: false };
                    self.begin();
                }
                b',' => {}
                b'}' => self.end(),
                _ if is_space => {}
                _ => self.state = State::Over,
            },
            State::InName { escaped } => {
                let (part, escaped, rest) = quoted(text, escaped);
                self.keep(part);
                self.state = match escaped {
                    Some(escaped) => State::InName { escaped },
                    None => {
                        self.named();
                        State::Colon
                    }
                };
                return rest;
            }
            State::Colon => match first {
                b':' => self.state = State::Value,
                _ if is_space => {}
                _ => self.state = State::Over,
            },
            State::Value => {
                if is_space {
                    return rest;
                }
                self.begin();
                self.keep_id(&text[..1]);
                self.state = match first {
                    b'"' => State::InText { escaped: false },
                    b'{' | b'[' => State::Inside { depth: 1, quoted: false, escaped: false },
                    b',' | b'}' | b']' => State::Over,
                    _ => State::Bare,
                };
            }
            State::InText { escaped } => {
                let (part, escaped, rest) = quoted(text, escaped);
                self.keep_id(part);
                self.state = match escaped {
                    Some(escaped) => State::InText { escaped },
                    None => {
                        self.keep_id(b"\"");
                        self.valued();
                        State::After
                    }
                };
                return rest;
            }
            State::Bare => {
                let end = text.iter().position(|b| matches!(b, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'));
                let end = end.unwrap_or(text.len());
                self.keep_id(&text[..end]);
                if end < text.len() {
                    self.valued();
                    self.state = State::After;
                }
                return &text[end..];
            }
            State::Inside { depth, quoted, escaped } => return self.inside(text, depth, quoted, escaped),
            State::After => match first {
                b',' => self.state = State::Name,
                b'}' => self.end(),
                _ if is_space => {}
                _ => self.state = State::Over,
            },
            State::Over => {}
        }
        rest
    }

    fn inside<'a>(&mut self, text: &'a [u8], mut depth: usize, in_text: bool, escaped: bool) -> &'a [u8] {
        let mut rest = text;
        if in_text {
            let (_, still, after) = quoted(rest, escaped);
            rest = after;
            if let Some(escaped) = still {
                self.state = State::Inside { depth, quoted: true, escaped };
                return rest;
            }
        }
        for (at, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.state = State::Inside { depth, quoted: true, escaped: false };
                    return &rest[at + 1..];
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.valued();
                        self.state = State::After;
                        return &rest[at + 1..];
                    }
                }
                _ => {}
            }
        }
        self.state = State::Inside { depth, quoted: false, escaped: false };
        &[]
    }

    /// A message has ended.
    fn end(&mut self) {
        if !self.many {
            self.state = State::Over;
            return;
        }
        let id = self.id.take().filter(|_| self.answers && !self.has_method);
        if self.answered.len() < MOST {
            self.answered.extend(id);
        }
        (self.answers, self.has_method, self.state) = (false, false, State::Start);
    }

    fn begin(&mut self) {
        self.kept.clear();
        self.cut = false;
    }

    fn keep(&mut self, part: &[u8]) {
        let room = KEPT - self.kept.len().min(KEPT);
        self.cut |= part.len() > room;
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn keep_id(&mut self, part: &[u8]) {
        if self.member == Member::Id {
            self.keep(part);
        }
    }

    /// A name has ended.
    fn named(&mut self) {
        self.member = Member::Other;
        if self.cut {
            return;
        }
        self.kept.insert(0, b'"');
        self.kept.push(b'"');
        let Ok(raw) = std::str::from_utf8(&self.kept) else { return };
        match super::unquoted(raw).as_deref() {
            Some("id") => self.member = Member::Id,
            Some("method") => self.has_method = true,
            Some("result" | "error") => self.answers = true,
            _ => {}
        }
    }

    /// A value has ended.
    fn valued(&mut self) {
        if self.member == Member::Id {
            let raw = std::str::from_utf8(&self.kept).ok().filter(|_| !self.cut);
            self.id = raw.and_then(Id::read);
            self.kept = Vec::new();
        }
    }
}

/// Splits this text into the part that belongs to a text that has begun, and the rest after its quote. `Some` where it
/// goes on: true if the next byte is escaped.
fn quoted(text: &[u8], escaped: bool) -> (&[u8], Option<bool>, &[u8]) {
    let mut at = usize::from(escaped);
    loop {
        match memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
            None => return (text, Some(at > text.len()), &[]),
            Some(found) if text[at + found] == b'"' => return (&text[..at + found], None, &text[at + found + 1..]),
            Some(found) => at += found + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &[u8]) -> (Option<Id>, bool, bool) {
        let whole = Outline::of(text);
        let mut pieces = Outline::default();
        text.chunks(1).for_each(|piece| pieces.feed(piece));
        let read = |o: &Outline| (o.id().cloned(), o.has_method(), o.answers());
        assert_eq!(read(&whole), read(&pieces), "in pieces: {}", String::from_utf8_lossy(text));
        read(&whole)
    }

    #[test]
    fn the_id_is_found_wherever_it_stands_at_the_top() {
        let seven = Some(Id::from(7));
        for (text, id, has_method, answers) in [
            (&br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#[..], seven.clone(), false, true),
            (br#"{"result":{"id":1,"x":["}",{"id":2}]},"jsonrpc":"2.0","id":7}"#, seven.clone(), false, true),
            (br#"{"params":{"id":1},"method":"tools/call","id":"a\"b"}"#, Some(Id::from("a\"b")), true, false),
            (br#" { "method" : "m" , "id" : 7 , "params" : {"a":"\\"} } "#, seven.clone(), true, false),
            (b"\xef\xbb\xbf{\"id\":7,\"result\":{}}", seven.clone(), false, true),
            (br#"{"result":{"a":NaN,"b":-Infinity},"id":7}"#, seven.clone(), false, true),
            (b"{\"result\":{\"a\":\"\xff\xfe\t\"},\"id\":7}", seven.clone(), false, true),
            (br#"{"id":1,"error":{"code":1},"id":7}"#, seven.clone(), false, true),
            (br#"{"\u0069d":7,"result":{}}"#, seven.clone(), false, true),
            (br#"{"x":NaN,"id":7,"method":"m"}"#, seven, true, false),
            (br#"{"id":null,"error":{}}"#, None, false, true),
            (br#"{"id":1.5,"result":{}}"#, None, false, true),
            (br#"{"id":{"a":1},"result":{}}"#, None, false, true),
            (br#"{"result":{"id":7,"text":""#, None, false, true),
            (br#"{"id":7"#, None, false, false),
            (br#"[{"id":7,"result":{}}]"#, None, false, false),
            (br#"{"id" 7,"result":{}}"#, None, false, false),
            (b"no JSON", None, false, false),
            (b"", None, false, false),
        ] {
            assert_eq!(seen(text), (id, has_method, answers), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_long_id_is_none_and_keeps_nothing() {
        let long = format!(r#"{{"result":{{}},"id":"{}"}}"#, "x".repeat(KEPT));
        let outline = Outline::of(long.as_bytes());
        assert_eq!((outline.id(), outline.answers(), outline.kept.capacity()), (None, true, 0));
        let name = format!(r#"{{"{}id":1,"id":2,"method":"m"}}"#, "x".repeat(1 << 20));
        let outline = Outline::of(name.as_bytes());
        assert_eq!(outline.id(), Some(&Id::from(2)));
    }

    #[cfg(feature = "stdio")]
    #[test]
    fn an_array_answers_all_that_its_messages_answer() {
        let text =
            br#"[ {"id":1,"result":{"id":9}} , {"id":2,"method":"m"},{"error":{"x":NaN},"id":"a"}, {"id":3,"result":"#;
        let mut pieces = Outline::default();
        text.chunks(1).for_each(|piece| pieces.feed(piece));
        for outline in [Outline::of(text), pieces] {
            assert_eq!(outline.answered().collect::<Vec<_>>(), [Id::from(1), Id::from("a")]);
            assert_eq!((outline.id(), outline.answers(), outline.has_method()), (None, false, false));
        }
        let one = Outline::of(br#"{"id":1,"result":{}}"#);
        assert_eq!(one.answered().collect::<Vec<_>>(), [Id::from(1)]);
    }

    #[cfg(feature = "stdio")]
    #[test]
    fn what_goes_on_is_told_from_what_is_over() {
        for (text, open, in_text) in [
            ("{", true, false),
            (r#"{"id":1,"result":{"a":"#, true, false),
            (r#"{"id":1,"result":{"a":"x"#, true, true),
            (r#"{"id":1,"resu"#, true, true),
            (r#"{"id":1,"result":{}"#, true, false),
            (r#"{"id":1,"result":{}}"#, false, false),
            ("{}", false, false),
            ("{ port: 1", false, false),
            ("", false, false),
            ("text", false, false),
        ] {
            let outline = Outline::of(text.as_bytes());
            assert_eq!((outline.is_open(), outline.is_in_text()), (open, in_text), "{text}");
        }
    }
}
