//! A model of Redis: what the commands and scripts of this crate do to its keys, in Rust. Stores of programs are served by
//! it; a test holds it to a real one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use redis::Value;
use serde::{Deserialize, Serialize};

type Text = String;
/// The id of an entry of a stream.
type Place = (u64, u64);

/// One reply: a value, or that there is nothing to read yet.
#[derive(Debug)]
pub(crate) enum Said {
    Value(Value),
    /// Nothing has come on these streams; it waits for so many milliseconds.
    Waits(u64),
}

/// Entries of a log, at most, where each change writes all of them.
const LOG: u64 = 256;
/// Bytes of an inbox, about, where each message writes all of them.
const INBOX: usize = 4 << 20;

/// Value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kept {
    Text(Text),
    Hash(BTreeMap<String, Text>),
    List(VecDeque<Text>),
    Stream {
        entries: VecDeque<(Place, Vec<Text>)>,
        last: Place,
    },
    /// Names by their scores.
    Sorted(BTreeSet<(u64, String)>),
}

/// Value of a key, and the time at which it ends, in milliseconds since 1970.
pub(crate) type Entry = (Kept, Option<u64>);

/// Keys of a store.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Milliseconds since 1970.
    now: u64,
    keys: BTreeMap<String, Entry>,
    /// Changes so far, for those who wait for one.
    pub(crate) changes: u64,
    /// Keys whose values are known here. `None`: all of them.
    known: Option<BTreeSet<String>>,
    /// Keys that were needed and are not known.
    missing: RefCell<BTreeSet<String>>,
}

fn nil() -> Value {
    Value::Nil
}

fn int(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::BulkString(text.as_ref().to_vec())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn place(id: &str, without: u64) -> Place {
    let (time, count) = id.split_once('-').unwrap_or((id, ""));
    (number(time), count.parse().unwrap_or(without))
}

fn shown((time, count): Place) -> String {
    format!("{time}-{count}")
}

fn entry((at, fields): &(Place, Vec<Text>)) -> Value {
    Value::Array(vec![bulk(shown(*at)), Value::Array(fields.iter().map(bulk).collect())])
}

impl Model {
    /// The part of a store that is known, at this time.
    pub(crate) fn of(now: u64, known: BTreeSet<String>, keys: BTreeMap<String, Entry>) -> Self {
        let mut model = Self { keys, known: Some(known), ..Self::default() };
        model.at(now);
        model
    }

    /// The keys that are needed besides, if there are any. All else that was done means nothing then.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }

    /// The values of all keys.
    pub(crate) fn into_keys(self) -> BTreeMap<String, Entry> {
        self.keys
    }

    /// Time goes on, and keys end with theirs.
    pub(crate) fn at(&mut self, now: u64) {
        self.now = self.now.max(now);
        let now = self.now;
        self.keys.retain(|_, (_, until)| until.is_none_or(|until| until > now));
    }

    /// The names of all keys.
    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        self.keys.keys().cloned().collect()
    }

    /// The names of those that never end.
    #[cfg(test)]
    pub(crate) fn endless(&self) -> Vec<String> {
        self.keys.iter().filter(|(_, (_, until))| until.is_none()).map(|(name, _)| name.clone()).collect()
    }

    /// Does what one command says. `None`: it does not know that.
    pub(crate) fn ask(&mut self, command: &[Vec<u8>]) -> Option<Said> {
        let words: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let (name, rest) = words.split_first()?;
        Some(Said::Value(match (*name, rest) {
            ("PEXPIRE", [key, lives]) => int(self.lives(key, number(lives))),
            ("HMGET", [key, names @ ..]) => {
                Value::Array(names.iter().map(|name| self.field(key, name).map_or_else(nil, bulk)).collect())
            }
            ("XADD", [key, "MAXLEN", "~", most, "*", ..]) => {
                let fields: Vec<Text> = words[6..].iter().map(|word| (*word).to_owned()).collect();
                bulk(shown(self.add(key, Some(number(most)), &fields)))
            }
            ("XTRIM", [key, "MINID", "=", id]) => {
                let least = place(id, 0);
                let Some((Kept::Stream { entries, .. }, _)) = self.get_mut(key) else {
                    return Some(Said::Value(int(0)));
                };
                let before = entries.len();
                entries.retain(|(at, _)| *at >= least);
                int(before - entries.len())
            }
            ("XREAD", ["COUNT", most, "BLOCK", block, "STREAMS", streams @ ..]) => {
                let (keys, ids) = streams.split_at(streams.len() / 2);
                let mut read = Vec::new();
                for (key, id) in keys.iter().zip(ids) {
                    let after = place(id, 0);
                    let some: Vec<_> = self.entries(key).filter(|(at, _)| *at > after).map(entry).collect();
                    let some: Vec<_> = some.into_iter().take(usize::try_from(number(most)).unwrap_or(0)).collect();
                    if !some.is_empty() {
                        read.push(Value::Array(vec![bulk(key), Value::Array(some)]));
                    }
                }
                if read.is_empty() {
                    return Some(Said::Waits(number(block)));
                }
                Value::Array(read)
            }
            ("XRANGE", [key, from, to, rest @ ..]) => {
                let most = rest.get(1).map_or(usize::MAX, |most| usize::try_from(number(most)).unwrap_or(0));
                let (from, is_after) = from.strip_prefix('(').map_or((*from, false), |from| (from, true));
                let (from, to) = (place(from, 0), if *to == "+" { (u64::MAX, u64::MAX) } else { place(to, u64::MAX) });
                let fits = |at: Place| at <= to && if is_after { at > from } else { at >= from };
                Value::Array(self.entries(key).filter(|(at, _)| fits(*at)).take(most).map(entry).collect())
            }
            ("XREVRANGE", [key, "+", "-", "COUNT", "1"]) => {
                Value::Array(self.entries(key).last().map(entry).into_iter().collect())
            }
            ("EVAL", [script, count, rest @ ..]) => {
                let (keys, arguments) = rest.split_at(usize::try_from(number(count)).unwrap_or(0));
                return self.script(script, keys, arguments).map(Said::Value);
            }
            ("HSET", [key, name, value]) => {
                self.set(key, name, value);
                int(1)
            }
            ("DEL", keys) => int(self.delete(keys)),
            _ => return None,
        }))
    }

    fn script(&mut self, script: &str, keys: &[&str], arguments: &[&str]) -> Option<Value> {
        Some(match script {
            crate::store::redis::scripts::sessions::LOOK => self.look(keys[0], arguments),
            crate::store::redis::scripts::sessions::TELL => self.tell(keys, arguments),
            crate::store::redis::scripts::sessions::TOUCH => {
                for key in keys {
                    if self.shown_field(key, "v").as_deref() != Some("0") {
                        self.lives(key, number(arguments[0]));
                    }
                }
                int(1)
            }
            crate::store::redis::scripts::sessions::END => self.end(keys, arguments),
            crate::store::redis::scripts::sessions::UNUSED => {
                let left = self.left(keys[0]);
                // A document may have been used since it was written.
                let part = if self.known.is_some() { number(arguments[1]) / super::PART } else { 0 };
                let is_used = left < 0
                    || i128::from(number(arguments[1])) - i128::from(left) + 1000
                        < i128::from(number(arguments[0])) + i128::from(part);
                Value::Int(i64::from(!is_used))
            }
            crate::store::redis::scripts::sessions::PASS => Value::Int(self.pass(keys, arguments)),
            crate::store::redis::scripts::sessions::TAKE_UP => {
                if !self.is_session(keys[0]) {
                    return Some(Value::Array(Vec::new()));
                }
                self.set(keys[0], "u", arguments[0]);
                Value::Array(self.take_list(keys[1]).iter().map(bulk).collect())
            }
            crate::store::redis::scripts::sessions::OPEN => self.open(keys, arguments),
            crate::store::redis::scripts::sessions::CLOSE => {
                if self.shown_field(keys[0], "g").as_deref() == Some(arguments[0]) {
                    self.remove(keys[0], "n");
                    if let Some(at) = arguments.get(4) {
                        self.set(keys[0], "at", at);
                    }
                    self.count(keys[0], "v");
                    self.changed(keys[1], arguments[1], arguments[2], arguments[3]);
                }
                Value::Int(1)
            }
            crate::store::redis::scripts::nodes::TAKE => match self.text(keys[0]) {
                Some(owner) if owner != arguments[0] => Value::Int(0),
                Some(_) => int(self.lives(keys[0], number(arguments[1]))),
                None => {
                    self.put(keys[0], Kept::Text(arguments[0].into()), Some(number(arguments[1])));
                    Value::Int(2)
                }
            },
            crate::store::redis::scripts::nodes::LEAVE => {
                let is_own = self.text(keys[0]).is_some_and(|owner| owner == arguments[0]);
                int(if is_own { self.delete(keys) } else { 0 })
            }
            crate::store::redis::scripts::nodes::SEND => self.post(keys, arguments),
            pair if pair.strip_prefix(crate::store::redis::scripts::nodes::IS_PAIR)
                == Some(crate::store::redis::scripts::nodes::SEND) =>
            {
                if self.shown_field(keys[3], "o").as_deref() != Some(arguments[7]) {
                    return Some(Value::Int(3));
                }
                self.post(keys, arguments)
            }
            crate::store::redis::scripts::bus::PUBLISH => {
                let known = self.text(keys[1]).map_or(0, |known| number(&known));
                if known >= number(arguments[0]) {
                    return Some(Value::Int(0));
                }
                for of in arguments[4..].chunks(4) {
                    let fields = ["n", of[0], of[1], of[2], "by", of[3]].map(Text::from);
                    self.add(keys[0], Some(number(arguments[2])), &fields);
                }
                self.lives(keys[0], number(arguments[3]));
                self.put(keys[1], Kept::Text(arguments[0].into()), Some(number(arguments[1])));
                Value::Int(1)
            }
            crate::store::redis::scripts::keys::READ => {
                let kept = self.text(keys[0]).unwrap_or_default();
                self.lives(keys[0], number(arguments[0]));
                Value::Array(vec![Value::Int(i64::try_from(self.now).unwrap_or(0)), bulk(kept)])
            }
            crate::store::redis::scripts::keys::SWAP => {
                let kept = self.text(keys[0]).unwrap_or_default();
                if kept != arguments[0] {
                    return Some(bulk(kept));
                }
                self.put(keys[0], Kept::Text(arguments[1].into()), Some(number(arguments[2])));
                bulk(arguments[1])
            }
            crate::store::redis::scripts::tasks::FORGET => {
                if self.shown_field(keys[0], "p").as_deref() != Some(arguments[0]) {
                    return Some(Value::Int(0));
                }
                if keys[1] != keys[0] {
                    self.unrank(keys[1], arguments[1]);
                }
                int(self.delete(&keys[..1]))
            }
            crate::store::redis::scripts::limits::RATE => self.rate(keys[0], arguments),
            crate::store::redis::scripts::limits::ENTER => self.enter(keys, arguments),
            crate::store::redis::scripts::limits::LEAVE => {
                keys.iter().for_each(|key| self.unrank(key, arguments[0]));
                Value::Int(1)
            }
            crate::store::redis::scripts::limits::RENEW => {
                let until = self.now + number(arguments[0]);
                arguments[1..].iter().for_each(|request| self.rank(keys[0], until, request));
                self.lives(keys[0], number(arguments[0]));
                Value::Int(1)
            }
            script => match script.strip_prefix(crate::store::redis::scripts::tasks::COMMON)? {
                crate::store::redis::scripts::tasks::PUT => self.put_task(keys, arguments)?,
                crate::store::redis::scripts::tasks::LOOK => self.look_at_task(keys[0], arguments),
                crate::store::redis::scripts::tasks::CANCEL => self.cancel_task(keys[0], arguments),
                crate::store::redis::scripts::tasks::ANSWER => self.answer_task(keys[0], arguments),
                crate::store::redis::scripts::tasks::LIST => self.list_tasks(keys[0], arguments)?,
                _ => return None,
            },
        })
    }

    /// Puts a message into an inbox.
    fn post(&mut self, keys: &[&str], arguments: &[&str]) -> Value {
        if !self.has(keys[0]) {
            if arguments[5] == "1" {
                return Value::Int(0);
            }
            let size = arguments[3].len() as u64 + 1024;
            let until = self.get(keys[2]).and_then(|(_, until)| *until);
            let sent = size + self.text(keys[2]).map_or(0, |sent| number(&sent));
            let until = if sent == size { Some(self.now + number(arguments[1])) } else { until };
            self.keys.insert(keys[2].to_owned(), (Kept::Text(sent.to_string()), until));
            if sent > number(arguments[6]) {
                return Value::Int(0);
            }
        }
        if self.is_full(keys[1], number(arguments[0])) {
            return Value::Int(2);
        }
        self.add(keys[1], None, &["session", arguments[2], arguments[4], arguments[3]].map(Text::from));
        self.lives(keys[1], number(arguments[1]));
        Value::Int(1)
    }

    // ---- keys ---------------------------------------------------------------------------------------------------

    /// Notes that a key is needed.
    fn needs(&self, key: &str) {
        if self.known.as_ref().is_some_and(|known| !known.contains(key)) {
            self.missing.borrow_mut().insert(key.to_owned());
        }
    }

    fn get(&self, key: &str) -> Option<&Entry> {
        self.needs(key);
        self.keys.get(key)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.needs(key);
        self.keys.get_mut(key)
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key, made if it is not there.
    fn get_or(&mut self, key: &str, empty: Kept) -> &mut Kept {
        self.needs(key);
        &mut self.keys.entry(key.to_owned()).or_insert((empty, None)).0
    }

    fn put(&mut self, key: &str, kept: Kept, lives: Option<u64>) {
        self.needs(key);
        self.keys.insert(key.to_owned(), (kept, lives.map(|lives| self.now + lives)));
    }

    fn lives(&mut self, key: &str, lives: u64) -> usize {
        let until = self.now + lives;
        self.get_mut(key).map_or(0, |(_, end)| {
            *end = Some(until);
            1
        })
    }

    /// Time that a key has left. −2: it is not there. −1: it has no end.
    fn left(&self, key: &str) -> i64 {
        let Some((_, until)) = self.get(key) else { return -2 };
        until.map_or(-1, |until| i64::try_from(until - self.now).unwrap_or(i64::MAX))
    }

    fn delete(&mut self, keys: &[&str]) -> usize {
        keys.iter().filter(|key| self.take(key).is_some()).count()
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        self.needs(key);
        self.keys.remove(key)
    }

    fn text(&self, key: &str) -> Option<Text> {
        match self.get(key) {
            Some((Kept::Text(text), _)) => Some(text.clone()),
            _ => None,
        }
    }

    fn hash(&self, key: &str) -> Option<&BTreeMap<String, Text>> {
        match self.get(key) {
            Some((Kept::Hash(fields), _)) => Some(fields),
            _ => None,
        }
    }

    fn field(&self, key: &str, name: &str) -> Option<&Text> {
        self.hash(key)?.get(name)
    }

    fn shown_field(&self, key: &str, name: &str) -> Option<String> {
        self.field(key, name).cloned()
    }

    fn set(&mut self, key: &str, name: &str, value: impl AsRef<str>) {
        if let Kept::Hash(fields) = self.get_or(key, Kept::Hash(BTreeMap::new())) {
            fields.insert(name.to_owned(), value.as_ref().to_owned());
        }
    }

    fn remove(&mut self, key: &str, name: &str) {
        let is_empty = match self.get_mut(key) {
            Some((Kept::Hash(fields), _)) => {
                fields.remove(name);
                fields.is_empty()
            }
            _ => false,
        };
        if is_empty {
            self.keys.remove(key);
        }
    }

    fn count(&mut self, key: &str, name: &str) -> u64 {
        let next = self.shown_field(key, name).map_or(0, |value| number(&value)) + 1;
        self.set(key, name, next.to_string());
        next
    }

    fn all_fields(&self, key: &str) -> Value {
        let fields = self.hash(key).into_iter().flatten();
        Value::Array(fields.flat_map(|(name, value)| [bulk(name), bulk(value)]).collect())
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = &(Place, Vec<Text>)> {
        let entries = match self.get(key) {
            Some((Kept::Stream { entries, .. }, _)) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten()
    }

    /// Says whether an inbox has no room for another message.
    fn is_full(&self, key: &str, room: u64) -> bool {
        let bytes = |(_, fields): &(Place, Vec<Text>)| fields.iter().map(String::len).sum::<usize>();
        self.entries(key).count() as u64 >= room
            || (self.known.is_some() && self.entries(key).map(bytes).sum::<usize>() >= INBOX)
    }

    /// Adds an entry to a stream. Those beyond `most` go in hundreds, as they are kept.
    fn add(&mut self, key: &str, most: Option<u64>, fields: &[Text]) -> Place {
        let now = self.now;
        let most = if self.known.is_some() { most.map(|most| most.min(LOG)) } else { most };
        self.changes += 1;
        let empty = Kept::Stream { entries: VecDeque::new(), last: (0, 0) };
        let Kept::Stream { entries, last } = self.get_or(key, empty) else { return (0, 0) };
        *last = if now > last.0 { (now, 0) } else { (last.0, last.1 + 1) };
        entries.push_back((*last, fields.to_vec()));
        if most.is_some_and(|most| entries.len() as u64 >= most + 100) {
            entries.drain(..100);
        }
        *last
    }

    fn take_list(&mut self, key: &str) -> Vec<Text> {
        match self.take(key) {
            Some((Kept::List(all), _)) => all.into(),
            _ => Vec::new(),
        }
    }

    fn ranked(&self, key: &str) -> Vec<(u64, String)> {
        match self.get(key) {
            Some((Kept::Sorted(all), _)) => all.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    fn rank(&mut self, key: &str, score: u64, name: &str) {
        if let Kept::Sorted(all) = self.get_or(key, Kept::Sorted(BTreeSet::new())) {
            all.retain(|(_, other)| other != name);
            all.insert((score, name.to_owned()));
        }
    }

    fn unrank(&mut self, key: &str, name: &str) {
        let is_empty = match self.get_mut(key) {
            Some((Kept::Sorted(all), _)) => {
                all.retain(|(_, other)| other != name);
                all.is_empty()
            }
            _ => false,
        };
        if is_empty {
            self.keys.remove(key);
        }
    }

    // ---- sessions -----------------------------------------------------------------------------------------------

    fn is_session(&self, key: &str) -> bool {
        self.shown_field(key, "v").is_some_and(|version| version != "0")
    }

    fn changed(&mut self, log: &str, node: &str, session: &str, most: &str) {
        self.add(log, Some(number(most)), &["n", node, "session", session].map(Text::from));
        self.lives(log, 604_800_000);
    }

    fn look(&mut self, key: &str, arguments: &[&str]) -> Value {
        let Some(version) = self.shown_field(key, "v") else { return nil() };
        if version == "0" {
            return bulk(version);
        }
        self.lives(key, number(arguments[0]));
        if version == arguments[1] { bulk(version) } else { self.all_fields(key) }
    }

    fn tell(&mut self, keys: &[&str], arguments: &[&str]) -> Value {
        let version = self.shown_field(keys[0], "v");
        let is_new = arguments[3] == "new";
        if version.as_deref() == Some("0") || (version.is_none() && !is_new) {
            return Value::Int(0);
        }
        let mut edits = arguments[5..].iter();
        while let Some(edit) = edits.next() {
            let name = edits.next().copied().unwrap_or_default();
            match *edit {
                "+" => self.set(keys[0], name, edits.next().copied().unwrap_or_default()),
                _ => self.remove(keys[0], name),
            }
        }
        if is_new {
            let before = version.map_or(0, |version| number(&version));
            self.set(keys[0], "v", self.now.max(before).to_string());
        } else {
            self.changed(keys[1], arguments[1], arguments[2], arguments[4]);
        }
        self.lives(keys[0], number(arguments[0]));
        let version = self.count(keys[0], "v");
        Value::Int(i64::try_from(version).unwrap_or(0))
    }

    fn end(&mut self, keys: &[&str], arguments: &[&str]) -> Value {
        for (_, task) in self.ranked(keys[3]) {
            let task = format!("{}{task}{}", arguments[4], arguments[5]);
            self.delete(&[&task]);
        }
        self.delete(&[keys[0], keys[2], keys[3]]);
        self.set(keys[0], "v", "0");
        self.lives(keys[0], number(arguments[0]));
        self.changed(keys[1], arguments[1], arguments[2], arguments[3]);
        Value::Int(1)
    }

    fn pass(&mut self, keys: &[&str], arguments: &[&str]) -> i64 {
        let [named, own, room, inbox_lives, session, message, idle, waiting, waits, up] = arguments else { return 1 };
        if !self.is_session(keys[0]) {
            return 1;
        }
        let field = |model: &Self, name| model.shown_field(keys[0], name).unwrap_or_else(|| "0".to_owned());
        let mut holder = field(self, "n");
        if holder == "0" || holder == *own {
            let takes_up = field(self, "u");
            holder = "0".to_owned();
            if *up == "1" {
                holder = takes_up;
            } else if takes_up == *own {
                self.remove(keys[0], "u");
            }
        }
        if holder != *named {
            return 0;
        }
        if holder != "0" && holder == *own {
            return 3;
        }
        if self.has(keys[2]) {
            if self.is_full(keys[3], number(room)) {
                return 2;
            }
            self.add(keys[3], None, &["session", session, "to", message].map(Text::from));
            self.lives(keys[3], number(inbox_lives));
            return 1;
        }
        if *waits == "0" {
            return 1;
        }
        let is_document = self.known.is_some();
        if let Kept::List(all) = self.get_or(keys[1], Kept::List(VecDeque::new())) {
            all.push_back(Text::from(*message));
            let most = usize::try_from(waiting.trim_start_matches('-').parse::<u64>().unwrap_or(0)).unwrap_or(0);
            let bytes = |all: &VecDeque<Text>| all.iter().map(String::len).sum::<usize>();
            while all.len() > most || (is_document && all.len() > 1 && bytes(all) > INBOX) {
                all.pop_front();
            }
        }
        self.lives(keys[1], number(idle));
        1
    }

    fn open(&mut self, keys: &[&str], arguments: &[&str]) -> Value {
        if !self.is_session(keys[0]) {
            return Value::Array(vec![bulk(""), Value::Array(Vec::new()), Value::Int(0)]);
        }
        let at = self.shown_field(keys[0], "at").unwrap_or_default();
        if self.shown_field(keys[0], "n").is_some_and(|other| other != arguments[0]) {
            self.count(keys[0], "v");
            self.changed(keys[2], arguments[2], arguments[3], arguments[4]);
        }
        self.set(keys[0], "n", arguments[0]);
        self.set(keys[0], "at", arguments[1]);
        let waiting = self.take_list(keys[1]);
        let generation = self.count(keys[0], "g");
        let waiting = Value::Array(waiting.iter().map(bulk).collect());
        Value::Array(vec![bulk(at), waiting, Value::Int(i64::try_from(generation).unwrap_or(0))])
    }

    // ---- tasks --------------------------------------------------------------------------------------------------

    fn is_over(&self, key: &str) -> bool {
        self.shown_field(key, "s").is_some_and(|status| is_over(&status))
    }

    fn send(&mut self, arguments: &[&str], to: &str, room: Option<u64>, message: &[&str]) -> i64 {
        let of = |kind: &str| format!("{}{kind}:{to}{}", arguments[0], arguments[1]);
        if !self.has(&of("node")) {
            return 0;
        }
        let inbox = of("inbox");
        if room.is_some_and(|room| self.is_full(&inbox, room)) {
            return 2;
        }
        let fields: Vec<_> = ["task"].iter().chain(message).map(|field| Text::from(*field)).collect();
        self.add(&inbox, None, &fields);
        self.lives(&inbox, number(arguments[3]));
        1
    }

    fn tell_watchers(&mut self, key: &str, arguments: &[&str], name: &str) {
        let watchers = self.shown_field(key, "w").unwrap_or_default();
        for watcher in watchers.split(',').filter(|watcher| !watcher.is_empty()) {
            self.send(arguments, watcher, Some(number(arguments[2]) / 2), &[name]);
        }
    }

    fn lives_on(&self, key: &str, arguments: &[&str]) -> bool {
        let process = self.shown_field(key, "n").unwrap_or_default();
        let owner = self.text(&format!("{}node:{process}{}", arguments[0], arguments[1]));
        owner.is_some() && owner.as_ref() == self.field(key, "p")
    }

    fn judge(&mut self, key: &str, arguments: &[&str], name: &str) -> i64 {
        if self.is_over(key) {
            return 0;
        }
        let missed = self.shown_field(key, "f");
        if self.lives_on(key, arguments) {
            self.remove(key, "f");
            return 0;
        }
        let Some(missed) = missed else {
            self.set(key, "f", self.now.to_string());
            return 0;
        };
        if self.now.saturating_sub(number(&missed)) < number(arguments[4]) {
            return 0;
        }
        for (name, value) in [("s", "failed"), ("u", arguments[5]), ("m", arguments[6]), ("x", arguments[7])] {
            self.set(key, name, value);
        }
        self.remove(key, "q");
        self.tell_watchers(key, arguments, name);
        1
    }

    fn put_task(&mut self, keys: &[&str], arguments: &[&str]) -> Option<Value> {
        let fate = |fate: i64, status: &str| Some(Value::Array(vec![Value::Int(fate), bulk(status)]));
        let [name, ttl, process, at, version, creates, listed, begins, ends, fields @ ..] = &arguments[8..] else {
            return None;
        };
        let was = self.shown_field(keys[0], "s");
        match &was {
            Some(status) if is_over(status) => return fate(2, status),
            Some(status) if self.shown_field(keys[0], "p").as_deref() != Some(process) => return fate(4, status),
            Some(status) if self.shown_field(keys[0], "v").is_some_and(|known| number(&known) >= number(version)) => {
                return fate(0, status);
            }
            Some(_) => {}
            None if *creates != "1" => return fate(3, ""),
            None if keys[1] != keys[0] && self.shown_field(keys[2], "v").as_deref() == Some("0") => return fate(3, ""),
            None => {}
        }
        for (name, value) in [("p", process), ("n", at), ("v", version)] {
            self.set(keys[0], name, value);
        }
        for pair in fields.chunks(2) {
            if pair[1].is_empty() { self.remove(keys[0], pair[0]) } else { self.set(keys[0], pair[0], pair[1]) }
        }
        self.lives(keys[0], number(ttl));
        if was.is_some() {
            self.remove(keys[0], "f");
            self.tell_watchers(keys[0], arguments, name);
        } else if keys[1] != keys[0] {
            let last = self.ranked(keys[1]).last().map_or(0, |(score, _)| score + 1);
            self.rank(keys[1], last.max(self.now * 1000), name);
            if self.left(keys[1]) < i64::try_from(number(ttl)).unwrap_or(i64::MAX) {
                self.lives(keys[1], number(ttl));
            }
            while self.ranked(keys[1]).len() as u64 > number(listed) {
                let Some((_, oldest)) = self.ranked(keys[1]).into_iter().next() else { break };
                self.unrank(keys[1], &oldest);
                let key = format!("{begins}{oldest}{ends}");
                if self.is_over(&key) {
                    self.delete(&[&key]);
                }
            }
        }
        fate(1, fields[1])
    }

    fn look_at_task(&mut self, key: &str, arguments: &[&str]) -> Value {
        if !self.has(key) {
            return nil();
        }
        let failed = self.judge(key, arguments, arguments[8]);
        let watcher = arguments[9];
        if watcher != "0" && !self.is_over(key) {
            let known = self.shown_field(key, "w").unwrap_or_else(|| ",".to_owned());
            if known.len() < 512 && !known.contains(&format!(",{watcher},")) {
                self.set(key, "w", format!("{known}{watcher},"));
            }
        }
        Value::Array(vec![Value::Int(failed), self.all_fields(key), Value::Int(self.left(key))])
    }

    fn cancel_task(&mut self, key: &str, arguments: &[&str]) -> Value {
        if self.field(key, "s").is_none() {
            return nil();
        }
        if self.is_over(key) {
            return Value::Array(vec![Value::Int(0), self.all_fields(key)]);
        }
        for (name, value) in [("s", "cancelled"), ("u", arguments[5]), ("m", arguments[9])] {
            self.set(key, name, value);
        }
        self.remove(key, "q");
        self.tell_watchers(key, arguments, arguments[8]);
        if self.lives_on(key, arguments) {
            let process = self.shown_field(key, "n").unwrap_or_default();
            self.send(arguments, &process, None, &[arguments[8]]);
        }
        Value::Array(vec![Value::Int(1), self.all_fields(key)])
    }

    fn answer_task(&mut self, key: &str, arguments: &[&str]) -> Value {
        if self.field(key, "s").is_none() {
            return Value::Int(3);
        }
        if self.is_over(key) {
            return Value::Int(4);
        }
        if !self.lives_on(key, arguments) {
            return Value::Int(0);
        }
        let process = self.shown_field(key, "n").unwrap_or_default();
        let message = [arguments[8], "answers", arguments[9]];
        Value::Int(self.send(arguments, &process, Some(number(arguments[2])), &message))
    }

    fn list_tasks(&mut self, set: &str, arguments: &[&str]) -> Option<Value> {
        let [after, most, begins, ends] = &arguments[8..] else { return None };
        let most = usize::try_from(number(most)).unwrap_or(0);
        let (mut out, mut unknown) = (Vec::new(), 0);
        for (score, name) in self.ranked(set) {
            if score <= number(after) || out.len() + unknown >= most {
                continue;
            }
            let key = format!("{begins}{name}{ends}");
            if !self.has(&key) {
                // Those that are not known here are read next, and no more than are wanted.
                unknown += usize::from(self.known.as_ref().is_some_and(|known| !known.contains(&key)));
                self.unrank(set, &name);
                continue;
            }
            self.judge(&key, arguments, &name);
            let fields = ["d", "s", "m", "c", "u", "t", "i"];
            let fields = fields.iter().map(|field| self.field(&key, field).map_or_else(nil, bulk)).collect();
            out.push(Value::Array(vec![bulk(score.to_string()), Value::Array(fields)]));
        }
        Some(Value::Array(out))
    }

    // ---- limits -------------------------------------------------------------------------------------------------

    /// Forgets names whose scores are not above this one.
    fn unrank_until(&mut self, key: &str, score: u64) {
        let is_empty = match self.get_mut(key) {
            Some((Kept::Sorted(all), _)) => {
                all.retain(|(other, _)| *other > score);
                all.is_empty()
            }
            _ => false,
        };
        if is_empty {
            self.keys.remove(key);
        }
    }

    fn score(&self, key: &str, name: &str) -> Option<u64> {
        self.ranked(key).into_iter().find(|(_, other)| other == name).map(|(score, _)| score)
    }

    fn rate(&mut self, key: &str, arguments: &[&str]) -> Value {
        let (now, apart, room) = (self.now * 1000, number(arguments[0]), number(arguments[1]));
        self.unrank_until(key, now);
        let mut client = arguments[2];
        if self.score(key, client).is_none() && self.ranked(key).len() as u64 >= number(arguments[3]) {
            client = "";
        }
        let due = self.score(key, client).unwrap_or(0).clamp(now, now + room + apart);
        if due - now > room {
            return Value::Int(i64::try_from(due - now - room).unwrap_or(i64::MAX));
        }
        self.rank(key, due + apart, client);
        self.lives(key, (room + apart).div_ceil(1000));
        Value::Int(0)
    }

    fn enter(&mut self, keys: &[&str], arguments: &[&str]) -> Value {
        let now = self.now;
        let ([running, waiting, looked], [most, lives, request, waits, stays]) = (keys, arguments) else {
            return Value::Int(0);
        };
        self.unrank_until(running, now);
        for (_, gone) in self.ranked(looked).into_iter().filter(|(until, _)| *until <= now) {
            self.unrank(waiting, &gone);
            self.unrank(looked, &gone);
        }
        let queue = self.ranked(waiting);
        let before = queue.iter().position(|(_, other)| other == request).unwrap_or(queue.len()) as u64;
        if number(most) > self.ranked(running).len() as u64 + before {
            self.unrank(waiting, request);
            self.unrank(looked, request);
            self.rank(running, now + number(lives), request);
            self.lives(running, number(lives));
            return Value::Int(1);
        }
        if *waits == "1" {
            if self.score(waiting, request).is_none() {
                self.rank(waiting, now, request);
            }
            self.rank(looked, now + number(stays), request);
            self.lives(waiting, number(stays));
            self.lives(looked, number(stays));
        }
        Value::Int(0)
    }
}

fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
