//! Marks that a client has just made, for its requests that came at the same time: each would make others, and only what
//! was asked for under the last ones would count.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::signal::Signal;

/// Approximate number of marks that are remembered.
const MAX: usize = 1000;

#[derive(Default)]
pub(super) struct Making {
    marks: BTreeMap<String, Mark>,
    /// Grows with everything that happens.
    moment: u64,
}

struct Mark {
    value: String,
    /// Set when the store has it, or will not have it.
    over: Arc<Signal>,
    is_made: bool,
    ended: Option<u64>,
}

impl Making {
    /// Returns the next moment: everything that happens from now on has a later one.
    pub(super) fn moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// The value of a mark that was not in the store for somebody who has asked it at `since`, if it is on its way there or
    /// came since; and what to wait for before it counts.
    pub(super) fn find(&self, mark: &str, since: u64) -> Option<(String, Arc<Signal>)> {
        let known = self.marks.get(mark).filter(|known| known.ended.is_none_or(|ended| ended > since))?;
        Some((known.value.clone(), known.over.clone()))
    }

    pub(super) fn begin(&mut self, mark: String, value: String) {
        if self.marks.len() >= 2 * MAX {
            let old = self.moment.saturating_sub(MAX as u64);
            self.marks.retain(|_, known| known.ended.is_none_or(|ended| ended > old));
        }
        self.marks.insert(mark, Mark { value, over: Arc::default(), is_made: false, ended: None });
    }

    /// The store has it, or will not have it; gives what is to be set for those who wait for that.
    pub(super) fn end(&mut self, mark: &str, is_made: bool) -> Option<Arc<Signal>> {
        let moment = self.moment();
        let known = self.marks.get_mut(mark)?;
        (known.ended, known.is_made) = (Some(moment), is_made);
        Some(known.over.clone())
    }

    /// Returns true if the store has this value.
    pub(super) fn is_made(&self, mark: &str, value: &str) -> bool {
        self.marks.get(mark).is_some_and(|known| known.is_made && known.value == value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_for_those_who_asked_before_it_was_there() {
        let mut making = Making::default();
        let before = making.moment();
        assert!(making.find("a", before).is_none());
        making.begin("a".into(), "1".into());
        let meanwhile = making.moment();
        let (value, over) = making.find("a", meanwhile).expect("on its way");
        assert!(value == "1" && !over.is_set());
        assert!(!making.is_made("a", "1"));
        making.end("a", true).expect("was on its way").set();
        assert!(making.is_made("a", "1") && !making.is_made("a", "0") && !making.is_made("b", "1"));
        assert!(over.is_set() && making.find("a", before).is_some() && making.find("a", meanwhile).is_some());
        // A search that begins later and finds nothing knows that it went.
        let after = making.moment();
        assert!(making.find("a", after).is_none());
    }

    #[test]
    fn so_many_are_remembered() {
        let mut making = Making::default();
        making.begin("under way".into(), "0".into());
        for n in 0..3 * MAX {
            making.begin(n.to_string(), n.to_string());
            making.end(&n.to_string(), false);
        }
        assert!(making.marks.len() <= 2 * MAX && making.find("under way", u64::MAX).is_some());
    }
}
