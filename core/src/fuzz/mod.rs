//! Fuzzing that needs no nightly compiler: what comes from a peer is read as it comes, then changed in many ways and
//! read again. A target is a property that has to hold whatever the input is.
//!
//! Each target goes through 1,000 inputs, or for `TRICORN_FUZZ_SECONDS`; `TRICORN_FUZZ_SEED` says where it begins, and
//! `TRICORN_FUZZ_INPUT` is the path of one input to try alone. An input that fails is kept in `target/fuzz`, and
//! belongs into `core/fuzz/corpus/<target>` from then on.

mod auth;
mod connection;
mod headers;
mod mutate;
mod schemas;
mod targets;
mod wire;

use std::any::Any;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use mutate::{Mutate, Random};

/// Default seed of the random numbers.
const SEED: u64 = 0x7472_6963_6f72_6e22;
/// Number of inputs without a given time: the same ones each time.
const INPUTS: usize = 1000;
/// The most inputs that are kept for more inputs to be made of.
const MAX_POOL: usize = 2000;
/// An input that takes so long will never end.
const STUCK: Duration = Duration::from_secs(120);
/// The longest that one input may take.
const SLOWEST: Duration = Duration::from_secs(2);

/// Something that reads what a peer sends.
struct Target {
    /// The folder of its corpus.
    name: &'static str,
    /// The property that has to hold. Gives what sort of outcome it was: inputs with new ones are worth changing further.
    property: fn(&[u8]) -> u64,
    mutate: Mutate,
    /// Words that mean something to it.
    words: &'static [&'static str],
    slowest: Duration,
}

/// Goes through the corpus, and through what is made of it until the time is over.
fn run(target: &Target) {
    let watch = Watch::new(target.name);
    if let Some(path) = std::env::var_os("TRICORN_FUZZ_INPUT").map(PathBuf::from) {
        let input = std::fs::read(&path).expect("TRICORN_FUZZ_INPUT can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.rsplit_once('-').is_some_and(|(name, _)| name == target.name) {
            attempt(target, &watch, &input);
        }
        return;
    }
    let mut pool = corpus(target.name);
    let mut seen = HashSet::new();
    for input in &pool {
        seen.insert(attempt(target, &watch, input));
    }
    let seconds: Option<f64> = std::env::var("TRICORN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("TRICORN_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    let mut random = Random::new(seed ^ digest(target.name.as_bytes()));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let mut left = INPUTS;
    while end.map_or(left > 0, |end| Instant::now() < end) {
        left = left.saturating_sub(1);
        let (one, other) = (random.pick(&pool), random.pick(&pool));
        let input = (target.mutate)(&mut random, one, other, target.words);
        if seen.insert(attempt(target, &watch, &input)) && pool.len() < MAX_POOL {
            pool.push(input);
        }
    }
}

/// The inputs of a target, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let inputs: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("an input")).collect();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

/// Tries one input.
///
/// # Panics
/// When the property does not hold, or it takes too long; the input is kept.
fn attempt(target: &Target, watch: &Watch, input: &[u8]) -> u64 {
    let once = || {
        watch.begin(input);
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.property)(input)));
        let took = begun.elapsed();
        watch.end();
        (outcome, took)
    };
    let (outcome, mut took) = once();
    let sort = match outcome {
        Ok(sort) => sort,
        Err(panicked) => {
            let path = keep(target.name, input);
            panic!("{}: {}\nthe input is {}", target.name, said(&*panicked), path.display());
        }
    };
    // The machine may have been busy with something else.
    for _ in 0..2 {
        if took > target.slowest {
            took = took.min(once().1);
        }
    }
    if took > target.slowest {
        let path = keep(target.name, input);
        panic!("{}: {took:?} for {} bytes\nthe input is {}", target.name, input.len(), path.display());
    }
    sort
}

fn said(panicked: &(dyn Any + Send)) -> String {
    let text = panicked.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panicked.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

/// Writes an input to where it is found again.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")).join("fuzz");
    let path = folder.join(format!("{name}-{:016x}", digest(input)));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
    path
}

/// FNV-1a: the same in every build.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The sort of an outcome that this text tells: without numbers, and without what is quoted of the input.
fn sort(text: &str) -> u64 {
    let (mut hasher, mut quoted) = (DefaultHasher::new(), false);
    for byte in text.bytes().take(400) {
        if byte == b'"' {
            quoted = !quoted;
        } else if !quoted && !byte.is_ascii_digit() {
            hasher.write_u8(byte);
        }
    }
    hasher.finish()
}

/// Runs something in a thread of its own, so that nothing which a thread remembers is left of the input before.
fn alone(run: impl FnOnce() -> u64 + Send) -> u64 {
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panicked| resume_unwind(panicked))
}

/// The beginning of a text, for a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(600).collect()
}

type Running = Mutex<Option<(Instant, Vec<u8>)>>;

/// Ends the process when an input takes for ever: no test says which one it was.
struct Watch(Arc<Running>);

impl Watch {
    fn new(name: &'static str) -> Self {
        let running = Arc::new(Running::default());
        let seen = Arc::downgrade(&running);
        std::thread::spawn(move || Self::look(name, &seen));
        Self(running)
    }

    fn begin(&self, input: &[u8]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), input.to_vec()));
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn look(name: &str, seen: &Weak<Running>) {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let Some(running) = seen.upgrade() else { return };
            let running = running.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((_, input)) = running.filter(|(begun, _)| begun.elapsed() > STUCK) {
                let path = keep(name, &input);
                crate::report::say(format_args!("fuzzing {name}: no end, the input is {}", path.display()));
                std::process::abort();
            }
        }
    }
}
