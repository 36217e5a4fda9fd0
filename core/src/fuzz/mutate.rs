//! Inputs made of other inputs: bytes are changed whatever they mean, JSON by its structure, cassettes line by line.

use std::ops::Range;

use serde_json::{Map, Value, json};

/// The longest input.
pub(super) const MAX_INPUT: usize = 64 << 10;

/// Makes an input of one input, with parts of another and with the words that mean something to a target.
pub(super) type Mutate = fn(&mut Random, &[u8], &[u8], &[&str]) -> Vec<u8>;

/// Numbers that are the same each time (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number that is less than `most`, or 0.
    pub(super) fn below(&mut self, most: usize) -> usize {
        let most = most.max(1) as u64;
        usize::try_from(self.number() % most).unwrap_or_default()
    }

    /// One of several, of which there has to be one at least.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[3]
    }
}

/// Bytes that mean something in most texts.
const SIGNS: &[u8] = b"\0\t\n\r \"\\{}[](),:;=/%&?#+-.*'<>@|~\x7f\x80\xc3\xed\xef\xf4\xff";

/// Numbers that are hard to hold.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1.0",
    "0.1",
    "1e400",
    "-1e400",
    "1e-400",
    "1E2",
    "00",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "99999999999999999999999999999999999999999999",
];

/// Texts, as JSON, that are hard to take.
const TEXTS: &[&str] = &[
    r#""""#,
    r#"" ""#,
    r#""\u0000""#,
    r#""a\u0000b""#,
    r#""\ud800""#,
    r#""\udfff\ud800""#,
    r#""\"\\\/\b\f\n\r\t""#,
    r#""\u202e\ufeff\u2028""#,
    r#""__proto__""#,
    r#""0""#,
    r#""-1""#,
    r#""null""#,
    r#""${HOME:-x}${""#,
    r#""%00%ff%2e%2e%2f%""#,
    r#""../../etc/passwd""#,
    r##""#/$defs/a""##,
    r#""https://other.example/""#,
    r#""https://user:pw@other.example:99999/?q#f""#,
    r#""http://127.0.0.1:1/x""#,
    r#""http://[::1]:80/""#,
    r#""javascript:alert(1)""#,
    r#""file:///x""#,
    r#""data:text/html,x""#,
];

/// Changes bytes, one to four times.
pub(super) fn bytes(random: &mut Random, input: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(4) {
        change_bytes(random, &mut out, other, words);
    }
    out.truncate(MAX_INPUT);
    out
}

fn span(random: &mut Random, length: usize) -> Range<usize> {
    let start = random.below(length + 1);
    let most = match random.below(4) {
        0 => 1,
        1 => 4,
        2 => 32,
        _ => length,
    };
    start..(start + random.below(most + 1)).min(length)
}

fn insert(out: &mut Vec<u8>, at: usize, part: &[u8]) {
    drop(out.splice(at..at, part.iter().copied()));
}

fn word<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    if words.is_empty() { "\0" } else { random.pick::<&str>(words) }
}

fn change_bytes(random: &mut Random, out: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let length = out.len();
    let at = random.below(length + 1);
    match random.below(13) {
        0 if length > 0 => out[at % length] ^= 1u8 << random.below(8),
        1 if length > 0 => out[at % length] = *random.pick(SIGNS),
        2 => {
            let fresh: Vec<u8> = (0..=random.below(8)).map(|_| random.byte()).collect();
            insert(out, at, &fresh);
        }
        3 => {
            let gone = span(random, length);
            drop(out.drain(gone));
        }
        4 => {
            let copied = out[span(random, length)].to_vec();
            insert(out, at, &copied);
        }
        5 => {
            out.truncate(at);
            let from = random.below(other.len() + 1);
            out.extend_from_slice(&other[from..]);
        }
        6 | 7 => {
            let part = word(random, words);
            insert(out, at, part.as_bytes());
        }
        8 => {
            let found = numbers(out);
            if !found.is_empty() {
                let place = random.pick(&found).clone();
                let number = random.pick(NUMBERS);
                drop(out.splice(place, number.bytes()));
            }
        }
        9 => {
            let copied = out[span(random, length)].to_vec();
            let room = MAX_INPUT.saturating_sub(length) / copied.len().max(1);
            let times = (1 + random.below(1000)).min(room);
            insert(out, at, &copied.repeat(times));
        }
        10 => out.truncate(at),
        11 => insert(out, at, &[*random.pick(SIGNS)]),
        _ => {
            let place = span(random, length);
            let part = word(random, words);
            drop(out.splice(place, part.bytes()));
        }
    }
}

/// Finds the ranges of digits.
fn numbers(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let start = at;
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at > start {
            found.push(start..at);
        }
        at += 1;
    }
    found
}

/// Changes the structure of what is JSON, and bytes of what is none; now and then of what is JSON, too.
pub(super) fn json_text(random: &mut Random, input: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
    let changed = if random.below(4) > 0 { structure(random, input, other, words) } else { None };
    match changed {
        Some(changed) => changed,
        None => bytes(random, input, other, words),
    }
}

/// `None` for what is no JSON that a value can hold, and for what becomes too long.
fn structure(random: &mut Random, input: &[u8], other: &[u8], words: &[&str]) -> Option<Vec<u8>> {
    let mut root: Value = serde_json::from_slice(input).ok()?;
    let donor: Option<Value> = serde_json::from_slice(other).ok();
    let mut raws = Vec::new();
    for _ in 0..=random.below(3) {
        change_value(random, &mut root, donor.as_ref(), words, &mut raws);
    }
    let text = written(&root.to_string(), &raws);
    (text.len() <= MAX_INPUT).then(|| text.into_bytes())
}

/// Stands around the number of a text that no value holds.
const RAW: char = '\u{e000}';
/// Stands around what makes the name of a member another one, so that it can be there twice.
const TWICE: char = '\u{e001}';

/// A value that is written as this text.
fn raw(text: &str, raws: &mut Vec<String>) -> Value {
    raws.push(text.to_owned());
    Value::String(format!("{RAW}{}{RAW}", raws.len() - 1))
}

/// Puts texts that no value holds where they belong.
fn written(text: &str, raws: &[String]) -> String {
    let (begin, end) = (format!("\"{RAW}"), format!("{RAW}\""));
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(&begin) {
        out.push_str(before);
        rest = after;
        if let Some((number, left)) = after.split_once(&end) {
            let found = number.parse::<usize>().ok().and_then(|number| raws.get(number));
            out.push_str(found.map_or("null", String::as_str));
            rest = left;
        }
    }
    out.push_str(rest);
    out.split(TWICE).step_by(2).collect()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(members) => members.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The value at this place, counted from the outermost one.
fn nth<'v>(value: &'v Value, at: &mut usize) -> Option<&'v Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter().find_map(|item| nth(item, at)),
        Value::Object(members) => members.values().find_map(|member| nth(member, at)),
        _ => None,
    }
}

/// As [`nth`], to be changed.
fn nth_mut<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth_mut(item, at)),
        Value::Object(members) => members.values_mut().find_map(|member| nth_mut(member, at)),
        _ => None,
    }
}

fn change_value(random: &mut Random, root: &mut Value, donor: Option<&Value>, words: &[&str], raws: &mut Vec<String>) {
    let given = donor.and_then(|donor| nth(donor, &mut random.below(count(donor)))).cloned();
    let mut at = random.below(count(root));
    let Some(node) = nth_mut(root, &mut at) else { return };
    match random.below(14) {
        0 => {
            *node = match random.below(9) {
                0 => Value::Null,
                1 => json!(true),
                2 => json!(false),
                3 => json!(0),
                4 => json!(1.5),
                5 => json!(""),
                6 => json!([]),
                7 => json!([[], {}, null, "a", 1]),
                _ => json!({}),
            };
        }
        1 | 2 => *node = raw(random.pick::<&str>(TEXTS), raws),
        3 => *node = raw(random.pick::<&str>(NUMBERS), raws),
        4 => {
            let part = word(random, words);
            let times = 1 + random.below(6000 / part.len().max(1));
            *node = Value::String(part.repeat(times));
        }
        5 => swap(random, node),
        6 => double(random, node),
        7 => {
            let depth = *random.pick(&[1, 2, 10, 60, 120, 200]);
            let name = word(random, words);
            let is_list = random.below(2) == 0;
            let mut inner = node.take();
            for _ in 0..depth {
                inner = match is_list {
                    true => Value::Array(vec![inner]),
                    false => Value::Object(Map::from_iter([(name.to_owned(), inner)])),
                };
            }
            *node = inner;
        }
        8 => remove(random, node),
        9 | 10 => {
            let given = given.unwrap_or_else(|| json!({"a": 1}));
            let name = word(random, words);
            match node {
                Value::Object(members) => drop(members.insert(name.to_owned(), given)),
                Value::Array(items) => items.insert(random.below(items.len() + 1), given),
                other => *other = given,
            }
        }
        11 => {
            let name = word(random, words);
            rename(random, node, name);
        }
        12 => {
            if let Value::Array(items) = node
                && !items.is_empty()
            {
                let copied = random.pick(items).clone();
                items.extend(vec![copied; random.below(300)]);
            }
        }
        _ => *node = Value::String(word(random, words).to_owned()),
    }
}

fn swap(random: &mut Random, node: &mut Value) {
    match node {
        Value::Array(items) if items.len() > 1 => {
            let (one, other) = (random.below(items.len()), random.below(items.len()));
            items.swap(one, other);
        }
        Value::Object(members) if members.len() > 1 => {
            let mut values: Vec<Value> = members.values().cloned().collect();
            let (one, other) = (random.below(values.len()), random.below(values.len()));
            values.swap(one, other);
            for (member, value) in members.values_mut().zip(values) {
                *member = value;
            }
        }
        other => *other = Value::Null,
    }
}

fn double(random: &mut Random, node: &mut Value) {
    match node {
        Value::Array(items) if !items.is_empty() => {
            let copied = random.pick(items).clone();
            items.push(copied);
        }
        Value::Object(members) => {
            let place = random.below(members.len());
            let found = members.iter().nth(place).map(|(name, value)| (name.clone(), value.clone()));
            if let Some((name, value)) = found {
                let value = if random.below(2) == 0 { value } else { Value::Null };
                let mark = random.below(100_000);
                members.insert(format!("{TWICE}{mark}{TWICE}{name}"), value);
            }
        }
        _ => {}
    }
}

fn remove(random: &mut Random, node: &mut Value) {
    match node {
        Value::Array(items) if !items.is_empty() => {
            items.remove(random.below(items.len()));
        }
        Value::Object(members) => {
            let name = members.keys().nth(random.below(members.len())).cloned();
            if let Some(name) = name {
                members.remove(&name);
            }
        }
        _ => {}
    }
}

fn rename(random: &mut Random, node: &mut Value, to: &str) {
    if let Value::Object(members) = node {
        let name = members.keys().nth(random.below(members.len())).cloned();
        if let Some(value) = name.and_then(|name| members.remove(&name)) {
            members.insert(to.to_owned(), value);
        }
    }
}

/// Drops, doubles, reorders and changes lines, and takes some from another input.
pub(super) fn lines(random: &mut Random, input: &[u8], other: &[u8], words: &[&str]) -> Vec<u8> {
    let split = |text: &[u8]| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (mut lines, others) = (split(input), split(other));
    for _ in 0..=random.below(5) {
        let at = random.below(lines.len());
        let to = random.below(lines.len() + 1);
        match random.below(11) {
            0 | 1 if lines.len() > 1 => drop(lines.remove(at)),
            2 => {
                let line = lines[at].clone();
                lines.insert(to, line);
            }
            3 => {
                let line = lines.remove(at);
                lines.insert(random.below(lines.len() + 1), line);
            }
            4 => lines.insert(to, random.pick(&others).clone()),
            5 => {
                lines.truncate(to.max(1));
                lines.extend_from_slice(&others[random.below(others.len())..]);
            }
            6 => lines.insert(to, word(random, words).as_bytes().to_vec()),
            7 => {
                let copies = vec![lines[at].clone(); 1 + random.below(64)];
                drop(lines.splice(to..to, copies));
            }
            8 => lines[at] = bytes(random, &lines[at], random_line(&others, to), words),
            _ => lines[at] = json_text(random, &lines[at], random_line(&others, to), words),
        }
    }
    let mut out = lines.join(&b'\n');
    out.truncate(MAX_INPUT);
    out
}

fn random_line(lines: &[Vec<u8>], at: usize) -> &[u8] {
    lines.get(at % lines.len().max(1)).map_or(&[], Vec::as_slice)
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let (one, other) = (br#"{"a":[1,"b"],"c":{}}"#, br#"[{"d":null}]"#);
    let all = |mutate: Mutate| {
        let mut random = Random::new(7);
        (0..500).map(|_| mutate(&mut random, one, other, &["word"])).collect::<Vec<_>>()
    };
    for mutate in [bytes as Mutate, json_text, lines] {
        let made = all(mutate);
        assert_eq!(made, all(mutate));
        assert!(made.iter().all(|input| input.len() <= MAX_INPUT));
        assert!(made.iter().filter(|input| input.as_slice() != one).count() > 250);
    }
    let mut raws = Vec::new();
    let value = json!([raw("1e400", &mut raws), {"\u{e001}1\u{e001}a": 1}]);
    assert_eq!(written(&value.to_string(), &raws), r#"[1e400,{"a":1}]"#);
}
