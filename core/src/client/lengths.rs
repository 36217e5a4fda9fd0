use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::budget;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;

/// The most bytes of one list, over all of its pages.
const MAX_BYTES: usize = 128 << 20;

/// Number of bytes of pages that are worth giving their memory back.
const SOME: usize = 512 << 10;

/// The longest that a server may take for one list: for all of its pages, without the time between them, which is the
/// caller's.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Methods whose results come in pages.
const LISTS: [&str; 5] = ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list"];

/// Amount of each list that a server has sent since its first page was last asked for. A server whose lists have no end
/// would otherwise fill the memory of whoever reads them whole, in any language.
#[derive(Default)]
pub(crate) struct Lengths(Mutex<[Length; LISTS.len()]>);

#[derive(Debug, Default, Clone, Copy)]
struct Length {
    bytes: usize,
    took: Duration,
    /// Time of the request for the last page.
    asked: Duration,
}

impl Lengths {
    /// The place of a list; `None` for all other methods.
    pub(super) fn place(method: &str) -> Option<usize> {
        LISTS.iter().position(|list| *list == method)
    }

    /// A page is asked for: the first, or another.
    pub(super) fn asked(&self, list: usize, params: Option<&RawJson>, now: Duration) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            cursor: Option<&'a RawValue>,
        }
        let at = |params: &RawJson| params.borrow::<Params<'_>>().is_ok_and(|params| params.cursor.is_some());
        let continues = params.is_some_and(at);
        let length = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[list];
        *length = if continues { Length { asked: now, ..*length } } else { Length { asked: now, ..Length::default() } };
    }

    /// A page has come.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when that is more than a list may be, or takes too long.
    pub(super) fn came(&self, list: usize, page: RawJson, now: Duration) -> Result<RawJson> {
        let mut lengths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = &mut lengths[list];
        length.bytes = length.bytes.saturating_add(page.get().len());
        length.took = length.took.saturating_add(now.saturating_sub(length.asked));
        // Each page may be short, and the memory of all of them is not.
        if length.bytes / SOME > (length.bytes - page.get().len()) / SOME {
            budget::worked(SOME);
        }
        let why = if length.bytes > MAX_BYTES {
            format!("its pages have more than {} MiB", MAX_BYTES >> 20)
        } else if length.took > MAX_TIME {
            format!("its pages take more than {} s", MAX_TIME.as_secs())
        } else {
            return Ok(page);
        };
        drop(lengths);
        Err(Error::new(ErrorKind::PeerMisbehaved, format!("{} never ends: {why}", LISTS[list])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> RawJson {
        RawJson::trusted(format!("\"{}\"", "x".repeat(bytes - 2)))
    }

    #[test]
    fn a_list_has_an_end_in_bytes_and_in_time() {
        let (lengths, second) = (Lengths::default(), Duration::from_secs(1));
        let (tools, prompts) =
            (Lengths::place("tools/list").expect("a list"), Lengths::place("prompts/list").expect("a list"));
        assert_eq!(Lengths::place("tools/call"), None);
        let next = RawJson::trusted(r#"{"cursor":"2"}"#);
        lengths.asked(tools, None, second);
        for _ in 0..4 {
            lengths.asked(tools, Some(&next), second);
            assert!(lengths.came(tools, page(MAX_BYTES / 4), second).is_ok());
        }
        assert!(lengths.came(prompts, page(2), second).is_ok());
        let error = lengths.came(tools, page(2), second).expect_err("too much");
        assert_eq!(error.message(), "tools/list never ends: its pages have more than 128 MiB");
        // The time between two pages is the caller's.
        lengths.asked(tools, None, second);
        assert!(lengths.came(tools, page(2), second + MAX_TIME / 2).is_ok());
        let later = second + MAX_TIME * 3;
        lengths.asked(tools, Some(&next), later);
        assert!(lengths.came(tools, page(2), later + MAX_TIME / 2).is_ok());
        lengths.asked(tools, Some(&next), later);
        let error = lengths.came(tools, page(2), later + second).expect_err("too much");
        assert_eq!(error.message(), "tools/list never ends: its pages take more than 600 s");
    }
}
