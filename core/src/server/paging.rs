//! Pages of lists, and the cursors between them.
//!
//! Several processes may answer for one server, and a page comes from any of them. They share the entries, and not the
//! order in which each of them was told. So a list that needs more than one page is in order of names, and a cursor is
//! the name after which the next page begins: whoever answers, nothing is lost or comes twice, and what is added or
//! removed meanwhile moves nothing else. A list that fits on one page is in order of registration, which its author
//! chose.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::listed::{Entry, Kind, Listed, Sizes, Table};
use crate::error::{Error, Result};
use crate::protocol::revision::Revision;

/// The longest name in bytes that a cursor holds as it is. Of a longer one it holds the beginning and a digest.
const MAX_NAME: usize = 256;
/// Longest beginning of a longer one.
const MAX_BEGINNING: usize = 224;

/// Returns the key that lists are sorted by: the name, of a long one its beginning and a digest, the same in every
/// process.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME {
        return Cow::Borrowed(name);
    }
    let mut end = MAX_BEGINNING;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let beginning = &name[..end];
    // FNV-1a: two names with one beginning and one digest would be the server's own doing.
    let digest = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Cow::Owned(format!("{beginning}{digest:016x}"))
}

/// The key as a cursor holds it.
pub(crate) fn sealed(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// Returns the key that [`sealed`] was given.
pub(crate) fn unsealed(text: &str) -> Option<String> {
    let key = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
    (!key.is_empty() && key.len() <= MAX_NAME).then_some(key)
}

/// One page of a list, from a server's own entries and those of one session, as `{"tools": […], "nextCursor"?}` without
/// the closing brace; whether it is the last; and what is to be put into it.
///
/// # Errors
/// −32602 for a cursor that was never given out.
pub(super) fn page<E: Entry>(
    kind: Kind,
    tables: [&Table<E>; 2],
    shown: impl Fn(&Listed, bool) -> bool,
    revision: Revision,
    cursor: Option<&str>,
    page_size: usize,
) -> Result<(String, bool, Sizes)> {
    let after = cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| read_cursor(kind, cursor)).transpose()?;
    let mut left = registered(tables, |listed, own| {
        after.as_deref().is_none_or(|after| *key(listed.name()) > *after) && shown(listed, own)
    });
    let is_last = left.len() <= page_size;
    let by_name = |a: &&Arc<E>, b: &&Arc<E>| key(a.listed().name()).cmp(&key(b.listed().name()));
    if !is_last {
        left.select_nth_unstable_by(page_size, by_name);
        left.truncate(page_size);
    }
    if !is_last || after.is_some() {
        left.sort_unstable_by(by_name);
    }
    let (mut text, mut sizes) = (format!("{{{:?}:[", kind.list_member()), Sizes::default());
    for (n, entry) in left.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(entry.listed().text(revision).get());
        sizes.note(&text, entry.listed());
    }
    text.push(']');
    if let Some(last) = left.last().filter(|_| !is_last) {
        let last = sealed(&key(last.listed().name()));
        text.push_str(&format!(",\"nextCursor\":\"{}-{last}\"", kind.letter()));
    }
    Ok((text, is_last, sizes))
}

/// The entries of both that are shown, in order of registration. One session's own stands before the server's of the same
/// name.
fn registered<E: Entry>([ours, own]: [&Table<E>; 2], shown: impl Fn(&Listed, bool) -> bool) -> Vec<&Arc<E>> {
    let (mut left_ours, mut left_own) = (ours.all(), own.all());
    let mut found = Vec::with_capacity(left_ours.len() + left_own.len());
    loop {
        let is_own = match (left_ours.first(), left_own.first()) {
            (Some(a), Some(b)) => b.listed().serial() <= a.listed().serial(),
            (ours, own) => ours.is_none() && own.is_some(),
        };
        let next = if is_own { &mut left_own } else { &mut left_ours };
        let Some((entry, rest)) = next.split_first() else { break };
        *next = rest;
        let hidden = !is_own && own.get(entry.listed().name()).is_some();
        if !hidden && shown(entry.listed(), is_own) {
            found.push(entry);
        }
    }
    found
}

fn read_cursor(kind: Kind, cursor: &str) -> Result<String> {
    let sealed = cursor.strip_prefix(kind.letter()).and_then(|rest| rest.strip_prefix('-'));
    sealed.and_then(unsealed).ok_or_else(bad_cursor)
}

pub(super) fn bad_cursor() -> Error {
    Error::invalid_params("\"cursor\": not one that this server gave out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_short_and_the_same_everywhere() {
        assert_eq!(key("add"), "add");
        let long = |end: &str| format!("{}{end}", "ä".repeat(200));
        let (one, other) = (long("1"), long("2"));
        let keys = [key(&one), key(&other)];
        assert_ne!(keys[0], keys[1]);
        for key in &keys {
            assert!(key.len() <= MAX_NAME && key.starts_with("ääää"), "{key}");
            assert_eq!(unsealed(&sealed(key)).as_deref(), Some(&**key));
        }
        // Written down, because another version of this must go on with it.
        assert_eq!(&key(&"a".repeat(300))[MAX_BEGINNING..], "ee7717eba7a17e21");
        for bad in ["", "7", "nonsense", "AAA=", "!"] {
            assert_eq!(unsealed(bad), None, "{bad}");
        }
    }
}
