//! Patterns: linear where that is possible, bounded in size, and bounded in time where it is not.

use std::collections::HashMap;
use std::sync::Arc;

/// The longest pattern of a peer, and of all patterns of one of its schemas, in bytes.
const MAX_LENGTH: usize = 4 << 10;
const MAX_LENGTHS: usize = 256 << 10;
/// The sizes that compiled patterns come in, in bytes, and how many of them one schema may have.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const MAX_SIZES: usize = 16 << 20;
/// The memory that matching may take beside that, for each schema.
const MAX_CACHES: usize = 8 << 20;
/// The most attempts of a pattern with a look-around or a backreference, and the longest text that it is tried with.
const BACKTRACKS: usize = 10_000;
const MAX_BACKTRACKED: usize = 4 << 10;

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    /// It looks around or back.
    Backtracking(fancy_regex::Regex),
}

#[derive(Debug)]
pub(super) struct Pattern {
    engine: Engine,
    size: usize,
}

impl Pattern {
    /// Returns the most steps that a match with a text of this length takes.
    pub(super) fn steps(&self, length: usize) -> usize {
        match self.engine {
            Engine::Linear(_) => 1 + length.saturating_mul(self.size) / (16 << 10),
            Engine::Backtracking(_) => 500 + length,
        }
    }

    /// `None`: that would take too long.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        match &self.engine {
            Engine::Linear(regex) => Some(regex.is_match(text)),
            Engine::Backtracking(_) if text.len() > MAX_BACKTRACKED => None,
            Engine::Backtracking(regex) => regex.is_match(text).ok(),
        }
    }
}

/// The patterns of one schema.
pub(super) struct Patterns {
    known: HashMap<String, Arc<Pattern>>,
    lengths: usize,
    sizes: usize,
    cache: usize,
    is_foreign: bool,
}

impl Patterns {
    /// `count`: how many there will be at most.
    pub(super) fn new(count: usize, is_foreign: bool) -> Self {
        let cache = (MAX_CACHES / count.max(1)).clamp(16 << 10, 1 << 20);
        Self { known: HashMap::new(), lengths: 0, sizes: 0, cache, is_foreign }
    }

    /// # Errors
    /// The bound that it is over, or why it is none.
    pub(super) fn compile(&mut self, pattern: &str) -> Result<Arc<Pattern>, String> {
        if let Some(known) = self.known.get(pattern) {
            return Ok(known.clone());
        }
        self.lengths += pattern.len();
        if self.is_foreign && pattern.len() > MAX_LENGTH {
            return Err(format!("a pattern of more than {MAX_LENGTH} bytes"));
        }
        if self.is_foreign && self.lengths > MAX_LENGTHS {
            return Err(format!("patterns of more than {MAX_LENGTHS} bytes together"));
        }
        let made = Arc::new(self.make(pattern)?);
        self.known.insert(pattern.to_owned(), made.clone());
        Ok(made)
    }

    fn make(&mut self, pattern: &str) -> Result<Pattern, String> {
        let rust = jsonschema_regex::to_rust_regex(pattern).map_err(|()| "not a regular expression".to_owned())?;
        let largest = SIZES[SIZES.len() - 1];
        for size in SIZES {
            let made = regex::RegexBuilder::new(&rust).size_limit(size).dfa_size_limit(self.cache).build();
            match made {
                Ok(regex) => {
                    self.sizes += size;
                    if self.sizes > MAX_SIZES {
                        return Err(format!("patterns that take more than {} MiB together", MAX_SIZES >> 20));
                    }
                    return Ok(Pattern { engine: Engine::Linear(regex), size });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => {
                    let regex = fancy_regex::RegexBuilder::new(&rust)
                        .backtrack_limit(BACKTRACKS)
                        .delegate_size_limit(SIZES[3])
                        .delegate_dfa_size_limit(self.cache)
                        .build()
                        .map_err(|e| format!("not a regular expression: {e}"))?;
                    self.sizes += SIZES[2];
                    if self.sizes > MAX_SIZES {
                        return Err(format!("patterns that take more than {} MiB together", MAX_SIZES >> 20));
                    }
                    return Ok(Pattern { engine: Engine::Backtracking(regex), size: SIZES[2] });
                }
            }
        }
        Err(format!("a pattern that takes more than {} KiB", largest >> 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_small_or_refused() {
        let mut patterns = Patterns::new(300, true);
        let why = patterns.compile(r"^[\p{L}\p{N}\p{S}]{90}xN$").expect_err("6 MB");
        assert!(why.contains("1024 KiB"), "{why}");
        let mut patterns = Patterns::new(300, true);
        let all = (0..300).try_for_each(|n| patterns.compile(&format!(r"^[\p{{L}}\p{{N}}]{{9}}x{n}$")).map(drop));
        assert!(all.expect_err("too many").contains("16 MiB together"));
        assert!(Patterns::new(1, true).compile(&"a".repeat(5000)).expect_err("long").contains("4096 bytes"));
        assert!(Patterns::new(1, true).compile("(").expect_err("open").contains("not a regular expression"));
    }

    #[test]
    fn what_looks_around_is_given_up_in_time() {
        let pattern = Patterns::new(1, true).compile(r"^(?:(?:(?=a)a+)+!|a+)$").expect("a pattern");
        assert_eq!(pattern.is_match("aaa"), Some(true));
        assert_eq!(pattern.is_match(&"a".repeat(40)), None);
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        let email = Patterns::new(1, true).compile(email).expect("a pattern");
        assert_eq!(email.is_match("somebody.else@example.com"), Some(true));
        assert_eq!(email.is_match("..@example"), Some(false));
    }
}
