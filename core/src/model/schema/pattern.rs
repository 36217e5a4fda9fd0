//! Patterns: linear where that is possible, bounded in size, and bounded in time where it is not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_automata::{Anchored, Input};

/// The longest pattern of a peer, and of all patterns of one of its schemas, in bytes.
const MAX_LENGTH: usize = 4 << 10;
const MAX_LENGTHS: usize = 256 << 10;
/// The sizes that compiled patterns come in, in bytes, and how many of them one schema may have.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const MAX_SIZES: usize = 16 << 20;
/// The size of all parts of a pattern that looks around, in sizes of one that does not.
const PARTS: usize = 4;
/// The memory that matching may take beside that, for each schema.
const MAX_CACHES: usize = 8 << 20;
/// Times that a pattern's memory is filled before a match is judged by its speed; then it begins anew.
const FILLS: usize = 3;
/// The most attempts of a pattern with a look-around or a backreference, and the longest text that it is tried with.
const BACKTRACKS: usize = 10_000;
const MAX_BACKTRACKED: usize = 4 << 10;

#[derive(Debug)]
enum Engine {
    Linear(Box<Linear>),
    /// It looks around or back.
    Backtracking(fancy_regex::Regex),
}

/// A pattern without look-arounds. Its deterministic automaton is made as a text needs it: nearly every pattern has few
/// states. All states of the other automaton are followed at once where there are too many of these.
#[derive(Debug)]
struct Linear {
    quick: DFA,
    cache: Mutex<Option<Cache>>,
    slow: PikeVM,
    /// Memory of the cache, in bytes.
    capacity: usize,
}

/// Outcome of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The answer, and the steps that were taken beside those of the text.
    Is(bool, usize),
    /// It takes so many steps more, with [`Pattern::is_match_slowly`].
    Slow(usize),
    /// It would take too long.
    Endless,
}

#[derive(Debug)]
pub(super) struct Pattern {
    engine: Engine,
}

impl Pattern {
    /// Returns the steps that a match with a text of this length takes, but for [`Match::Slow`].
    pub(super) fn steps(&self, length: usize) -> usize {
        match self.engine {
            Engine::Linear(_) => 1 + length / 16,
            Engine::Backtracking(_) => 500 + length,
        }
    }

    pub(super) fn is_match(&self, text: &str) -> Match {
        match &self.engine {
            Engine::Linear(linear) => linear.is_match(text),
            Engine::Backtracking(_) if text.len() > MAX_BACKTRACKED => Match::Endless,
            Engine::Backtracking(regex) => regex.is_match(text).map_or(Match::Endless, |found| Match::Is(found, 0)),
        }
    }

    /// A match that is too much for the quick way.
    pub(super) fn is_match_slowly(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Linear(linear) => linear.slow.is_match(&mut linear.slow.create_cache(), text),
            Engine::Backtracking(_) => false,
        }
    }
}

impl Linear {
    fn new(nfa: &NFA, capacity: usize) -> Option<Self> {
        let states = nfa.states().len();
        let config = DFA::config()
            .cache_capacity(capacity)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(FILLS))
            // To make a state takes time for each state of the other automaton.
            .minimum_bytes_per_state(Some(states.max(10)));
        let quick = DFA::builder().configure(config).build_from_nfa(nfa.clone()).ok()?;
        let slow = PikeVM::builder().build_from_nfa(nfa.clone()).ok()?;
        Some(Self { quick, cache: Mutex::new(None), slow, capacity })
    }

    fn is_match(&self, text: &str) -> Match {
        let known = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known().take();
        let mut cache = kept.unwrap_or_else(|| self.quick.create_cache());
        if cache.clear_count() >= FILLS {
            // Filled by the texts of others.
            cache.reset(&self.quick);
        }
        let before = cache.clear_count();
        let input = Input::new(text).anchored(Anchored::No).earliest(true);
        let found = self.quick.try_search_fwd(&mut cache, &input);
        let taken = (cache.clear_count() - before).saturating_mul(self.capacity / 8);
        *known() = Some(cache);
        match found {
            Ok(found) => Match::Is(found.is_some(), taken),
            // It also stops at what it cannot decide, such as the boundary of a word that is not ASCII.
            Err(_) => Match::Slow(taken.saturating_add(text.len().saturating_mul(self.states()) / 8)),
        }
    }

    fn states(&self) -> usize {
        self.slow.get_nfa().states().len()
    }
}

/// The memory that matching takes for each of so many patterns of a schema.
pub(super) fn cache(count: usize) -> usize {
    (MAX_CACHES / count.max(1)).clamp(16 << 10, 1 << 20)
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
        Self { known: HashMap::new(), lengths: 0, sizes: 0, cache: cache(count), is_foreign }
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
        let mut why = None;
        for size in SIZES {
            match self.of_size(&rust, size)? {
                Ok(engine) => {
                    self.sizes += if matches!(engine, Engine::Linear(_)) { size } else { PARTS * size };
                    if self.sizes > MAX_SIZES {
                        return Err(format!("patterns that take more than {} MiB together", MAX_SIZES >> 20));
                    }
                    return Ok(Pattern { engine });
                }
                Err(larger) => why = Some(larger),
            }
        }
        let largest = SIZES[SIZES.len() - 1] >> 10;
        Err(why.flatten().unwrap_or_else(|| format!("a pattern that takes more than {largest} KiB")))
    }

    /// The inner error: it is larger than that, or is no pattern for a reason that is found late.
    fn of_size(&self, rust: &str, size: usize) -> Result<Result<Engine, Option<String>>, String> {
        let config = Config::new().nfa_size_limit(Some(size)).which_captures(WhichCaptures::None);
        match Compiler::new().configure(config).build(rust) {
            Ok(nfa) => {
                if let Some(linear) = Linear::new(&nfa, self.cache) {
                    return Ok(Ok(Engine::Linear(Box::new(linear))));
                }
            }
            Err(error) if error.size_limit().is_some() => return Ok(Err(None)),
            Err(_) => {}
        }
        // Each of its parts is compiled apart.
        let made = fancy_regex::RegexBuilder::new(rust)
            .backtrack_limit(BACKTRACKS)
            .delegate_size_limit(PARTS * size / parts(rust))
            .delegate_dfa_size_limit(self.cache / parts(rust))
            .build();
        let no_pattern = |error: &fancy_regex::Error| format!("not a regular expression: {error}");
        match made {
            Ok(regex) => Ok(Ok(Engine::Backtracking(regex))),
            Err(error) => match &error {
                fancy_regex::Error::CompileError(inner) => match &**inner {
                    fancy_regex::CompileError::InnerError(inner) if inner.size_limit().is_some() => Ok(Err(None)),
                    fancy_regex::CompileError::InnerError(_) => Ok(Err(Some(no_pattern(&error)))),
                    _ => Err(no_pattern(&error)),
                },
                _ => Err(no_pattern(&error)),
            },
        }
    }
}

/// The most parts that a pattern with look-arounds or backreferences has: one before and one after each.
fn parts(pattern: &str) -> usize {
    let splits = |pair: &[u8]| match pair {
        [b'(', b'?'] => true,
        [b'\\', next] => next.is_ascii_digit() || matches!(next, b'k' | b'g' | b'K' | b'G'),
        _ => false,
    };
    1 + 2 * pattern.as_bytes().windows(2).filter(|pair| splits(pair)).count()
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
        assert_eq!(pattern.is_match("aaa"), Match::Is(true, 0));
        assert_eq!(pattern.is_match(&"a".repeat(40)), Match::Endless);
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        let email = Patterns::new(1, true).compile(email).expect("a pattern");
        assert_eq!(email.is_match("somebody.else@example.com"), Match::Is(true, 0));
        assert_eq!(email.is_match("..@example"), Match::Is(false, 0));
    }

    #[test]
    fn what_has_too_many_states_is_counted_by_them() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if state >> 40 & 1 == 0 { 'a' } else { 'b' }
        };
        let text: String = (0..30_000).map(|_| next()).collect();
        for pattern in ["[ab]{0,8000}c", "a[ab]{2000}c", r"(?i)[a-z]{0,3000}\d"] {
            let compiled = Patterns::new(1, true).compile(pattern).expect("a pattern");
            let Match::Slow(steps) = compiled.is_match(&text) else { panic!("{pattern} is quick") };
            assert!(steps > 5_000_000, "{pattern}: {steps}");
        }
        // Patterns that people write are quick, however long the text.
        let long = "Zm9vYmFy".repeat(100_000);
        let quick = [r"^[A-Za-z0-9+/]*={0,2}$", r"^[ -~]{1,9000}", r"\bZm9v\w", "^(?:[A-Za-z0-9]{4})+$"];
        for pattern in quick {
            let compiled = Patterns::new(1, true).compile(pattern).expect("a pattern");
            assert!(matches!(compiled.is_match(&long), Match::Is(true, _)), "{pattern}");
            assert!(compiled.is_match_slowly(&long[..8000]), "{pattern}");
        }
        // A boundary in a text that is not ASCII.
        let compiled = Patterns::new(1, true).compile(r"\bfoo\b").expect("a pattern");
        let both = |text: &str| match compiled.is_match(text) {
            Match::Slow(_) => compiled.is_match_slowly(text),
            found => matches!(found, Match::Is(true, _)),
        };
        assert!(both("größe foo") && both("foo") && !both("größefoob"));
    }

    #[test]
    fn parts_of_a_pattern_that_looks_around_are_bounded_together() {
        let all = r"(?=\p{L}{5}k)".repeat(180);
        let why = Patterns::new(1, true).compile(&all).expect_err("too large");
        assert!(why.contains("1024 KiB"), "{why}");
        let usual = r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?=.*[^\w\s]).{8,64}$";
        assert_eq!(Patterns::new(1, true).compile(usual).expect("a pattern").is_match("Passw0rd!"), Match::Is(true, 0));
        for usual in [
            r"^(?=.*\p{L})(?=.*\p{N}).{1,20}$",
            r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?=.*[^\w\s]).{8,255}$",
            r#"^(?!.*[\\\/\:\*\?\"\<\>\|])[^\\\/\:\*\?\"\<\>\|]{1,255}$"#,
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
        ] {
            let mut patterns = Patterns::new(40, true);
            assert!(patterns.compile(usual).is_ok(), "{usual}: {:?}", patterns.compile(usual));
        }
    }

    #[test]
    fn texts_of_others_make_no_pattern_slow_for_good() {
        let compiled = Patterns::new(1, true).compile("a[ab]{30}c").expect("a pattern");
        let mut state = 7u64;
        for _ in 0..50 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if state >> 40 & 1 == 0 { 'a' } else { 'b' }
            };
            let text: String = (0..10_000).map(|_| next()).collect();
            compiled.is_match(&text);
        }
        let short = format!("a{}c", "b".repeat(30));
        let steps = match compiled.is_match(&short) {
            Match::Is(true, steps) | Match::Slow(steps) => steps,
            other => panic!("{other:?}"),
        };
        assert!(steps < 50_000, "{steps}");
    }
}
