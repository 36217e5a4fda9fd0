//! Steps of the tests of each language.

use super::parse::Reader;
use super::{Lane, cargo_has, present};
use crate::place::{self, Lang};
use crate::{setup, stamp, surface, tool};
use anyhow::Context;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(60);

/// One command and how its output is read; or why it is skipped.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) what: Result<(Command, Duration, Reader), String>,
}

fn step(name: &str, command: Command, minutes: u32, reader: Reader) -> Step {
    Step { name: name.to_owned(), what: Ok((command, MINUTES * minutes, reader)) }
}

fn skip(name: &str, why: impl Into<String>) -> Step {
    Step { name: name.to_owned(), what: Err(why.into()) }
}

fn program(path: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
    let mut command = tool::command(path);
    command.args(args);
    command
}

/// Steps that compile, and run nothing that is measured or has to answer in time.
pub(super) fn compiled(lang: Lang) -> Vec<Step> {
    if lang == Lang::Rust { rust_compiled() } else { Vec::new() }
}

/// Steps that look at the dependencies alone.
pub(super) fn unbuilt() -> Vec<Step> {
    vec![no_runtime()]
}

/// The other checks and tests that belong to a language.
pub(super) fn of(lang: Lang, lane: Lane) -> Vec<Step> {
    match lang {
        Lang::Rust => rust(lane),
        Lang::Python => python(),
        Lang::Node => node(),
        Lang::Swift => swift(),
    }
}

/// The protocol alone.
const BARE: [&str; 8] =
    ["clippy", "--release", "--package", "tricorn", "--no-default-features", "--", "-D", "warnings"];

/// The packages with tests that cargo runs. The others would be compiled once more, for nothing: extension modules link
/// only into their hosts, whose own runners test them.
const TESTED: [&str; 5] = ["tricorn", "tricorn-cli", "xtask", "xtask-gen-types", "contract"];

const PYTEST: [&str; 7] = ["-m", "pytest", "-q", "-ra", "--color=no", "-p", "no:cacheprovider"];

fn cargo_tests() -> Command {
    let mut tests = tool::cargo(&["test", "--release", "--no-fail-fast"]);
    for package in TESTED {
        tests.args(["--package", package]);
    }
    tests.args(["--features", "tricorn/redis"]);
    // To compile the core and its tests takes longer than running them.
    tests.args(["--config", "profile.release.package.tricorn.opt-level=0"]);
    tests
}

/// The command `tricorn` as a language's package has it.
pub(super) fn commands(lang: Lang) -> Vec<Step> {
    match lang {
        Lang::Rust => vec![inspect(), doctor(), foreign()],
        Lang::Python => vec![command("python", &[place::target("package/python/venv/bin/tricorn")]), zoo()],
        Lang::Node => vec![command("node", &["node".into(), place::root().join("bindings-node/dist/command.js")])],
        Lang::Swift => Vec::new(),
    }
}

/// The suite of the command, against that of a package.
fn command(lang: &str, words: &[std::path::PathBuf]) -> Step {
    let mut tests = cargo_tests();
    tests.args(["--test", "command"]);
    tests.env("TRICORN_COMMAND", words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "));
    step(&format!("{lang} command"), tests, 15, Reader::Cargo)
}

fn rust_compiled() -> Vec<Step> {
    let check = |name: &str, args: &[&str], minutes| step(name, tool::cargo(args), minutes, Reader::Status);
    let mut docs = tool::cargo(&surface::DOCUMENTATION);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let mut tests = cargo_tests();
    tests.arg("--no-run");
    vec![
        check("rust format", &["fmt", "--all", "--check"], 2),
        check("rust format of benches", &["fmt", "--all", "--check", "--manifest-path", "benches/Cargo.toml"], 2),
        check("rust format of fuzz targets", &["fmt", "--check", "--manifest-path", "core/fuzz/Cargo.toml"], 2),
        check("rust format of peers", &["fmt", "--check", "--manifest-path", "tests/interop/rmcp/Cargo.toml"], 2),
        check("rust clippy", &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"], 20),
        step("rust tests compiled", tests, 30, Reader::Status),
        step("rust documentation for rust surface", docs, 10, Reader::Status),
        match surface::rust(false) {
            Ok(command) => step("rust surface", command, 2, Reader::Status),
            Err(why) => skip("rust surface", why.to_string()),
        },
        check("rust without features", &BARE, 10),
    ]
}

fn rust(lane: Lane) -> Vec<Step> {
    let mut tests = cargo_tests();
    // Two minutes of fuzzing for all its targets, the same inputs each time.
    tests.env("TRICORN_FUZZ_SECONDS", if lane == Lane::Fast { "1" } else { "7" });
    setup::valkey();
    vec![step("rust cargo test", tests, 30, Reader::Cargo), no_runtime(), deny()]
}

/// Many processes of the fixture server with a store that they share.
pub(super) fn many(lang: Lang) -> Vec<Step> {
    let name = format!("{lang} many processes");
    // A language alone is tested without the Python environment otherwise.
    if let Err(error) = setup::python_tools() {
        return vec![skip(&name, format!("there is no Python environment: {error:#}"))];
    }
    setup::valkey();
    setup::nginx();
    let ours = |words: &[&str]| {
        let mut tests = program(tool::venv("python"), &PYTEST);
        tests.args(words).args(["--lang", lang.name()]);
        tests
    };
    let alone = ["test_stateless", "test_suites", "test_chaos"].map(|name| format!("--ignore=tests/scale/{name}.py"));
    let mut tests = ours(&["tests/scale"]);
    tests.args(alone);
    if lang != Lang::Rust {
        // Leases, events and faults of the store are the engine's: Rust's are enough.
        tests.args(["-m", "not slow and not engine"]);
        let mut all = vec![step(&name, tests, 15, Reader::Pytest)];
        if lang == Lang::Python {
            // The model below such a store is the engine's: one language is enough.
            setup::postgres();
            let both = ["tests/scale/test_sessions.py", "tests/scale/test_questions.py"];
            for (name, sharing, files) in
                [("own store", "documents", &both[..]), ("PostgreSQL", "postgres", &both[..1])]
            {
                let mut own = ours(files);
                own.args(["-m", "not slow", "--sharing", sharing]);
                all.push(step(&format!("python many processes: {name}"), own, 10, Reader::Pytest));
            }
        }
        return all;
    }
    // Without the official suite they fail.
    if let Err(error) = setup::conformance().and_then(|_| setup::newest_node()) {
        eprintln!("no official suite: {error:#}");
    }
    let suites = step("rust many processes: suites", ours(&["tests/scale/test_suites.py"]), 15, Reader::Pytest);
    let chaos = step("rust many processes: chaos", ours(&["tests/scale/test_chaos.py"]), 10, Reader::Pytest);
    vec![suites, step(&name, tests, 15, Reader::Pytest), chaos]
}

/// The page of `tricorn inspect`, in a browser without a screen.
fn inspect() -> Step {
    const NAME: &str = "rust inspect in a browser";
    let Some(browser) = setup::chromium() else { return skip(NAME, "there is no Chromium") };
    let mut tests = program("node", &["--test", "--test-reporter=tap", "tests/inspect/inspect.test.mjs"]);
    tests.env("CHROMIUM", browser);
    tests.env("TRICORN_COMMAND", place::built("tricorn"));
    tests.env("TRICORN_EVERYTHING", place::built("example-everything"));
    step(NAME, tests, 10, Reader::Tap)
}

/// Tests of what `tricorn doctor` finds in servers that are broken on purpose.
fn doctor() -> Step {
    const NAME: &str = "rust doctor";
    // Rust alone is tested without the Python environment otherwise.
    if let Err(error) = setup::python_tools() {
        return skip(NAME, format!("there is no Python environment: {error:#}"));
    }
    let mut tests = broken_servers("test_doctor.py");
    tests.env("TRICORN_COMMAND", place::built("tricorn"));
    tests.env("TRICORN_EVERYTHING", place::built("example-everything"));
    step(NAME, tests, 10, Reader::Pytest)
}

/// Tests of `tricorn list` and `tricorn call` with servers that others wrote, which they install.
fn foreign() -> Step {
    const NAME: &str = "rust command with others' servers";
    // Rust alone is tested without the Python environment otherwise.
    if let Err(error) = setup::python_tools() {
        return skip(NAME, format!("there is no Python environment: {error:#}"));
    }
    let mut tests = program(tool::venv("python"), &PYTEST);
    tests.arg(place::root().join("tests/cli/test_foreign.py"));
    tests.env("TRICORN_COMMAND", place::built("tricorn"));
    step(NAME, tests, 20, Reader::Pytest)
}

/// Tests that these servers are broken as they should be, and of what our client makes of them.
fn zoo() -> Step {
    step("python zoo of doctor", broken_servers("test_zoo.py"), 10, Reader::Pytest)
}

fn broken_servers(file: &str) -> Command {
    let mut tests = program(tool::venv("python"), &PYTEST);
    tests.arg(place::root().join("tests/doctor").join(file));
    tests
}

/// The protocol needs no runtime: without features there is none in the graph.
fn no_runtime() -> Step {
    let tree = ["tree", "--package", "tricorn", "--no-default-features", "--edges", "normal", "--prefix", "none"];
    let script = format!(
        "list=$(\"$0\" {}) || exit 1; if echo \"$list\" | grep -E '^(tokio|hyper|mio) '; then exit 1; fi",
        tree.join(" ")
    );
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    step("rust no runtime without features", program("sh", &["-c", &script, &cargo]), 2, Reader::Status)
}

/// Features that a program may want alone.
const APART: [&str; 3] = ["http", "stdio", "redis"];

/// That the code compiles for platforms that this machine is not, and with one feature alone.
pub(super) fn platforms() -> Vec<Step> {
    let check =
        |one: &setup::Platform| step(&format!("rust for {}", one.name), setup::check_for(one), 30, Reader::Status);
    let alone = |feature: &&str| {
        let args = ["clippy", "--release", "--package", "tricorn", "--no-default-features", "--features", feature];
        let mut clippy = tool::cargo(&args);
        clippy.args(["--", "-D", "warnings"]);
        step(&format!("rust with {feature} alone"), clippy, 10, Reader::Status)
    };
    setup::PLATFORMS.iter().map(check).chain(APART.iter().map(alone)).collect()
}

/// Windows programs, and what runs them; `check`: the packages' layers are compiled, too.
pub(super) fn windows(made: &setup::Windows, wine: &Path, check: bool) -> anyhow::Result<Vec<Step>> {
    let build = made.cargo("build", &["example-everything", "case-runner"])?;
    let layers = made.cargo("check", &["tricorn-python", "tricorn-node"])?;
    let (path, _) = tool::python().context("no python3 >= 3.10")?;
    let mut smoke = program(path, &["tests/windows/smoke.py"]);
    smoke.arg(setup::Windows::programs()).arg(wine);
    let layers = check.then(|| step("windows check", layers, 20, Reader::Status));
    let programs = step("windows build", build, 40, Reader::Status);
    Ok([programs].into_iter().chain(layers).chain([step("windows smoke", smoke, 15, Reader::Own)]).collect())
}

fn deny() -> Step {
    const NAME: &str = "rust cargo deny";
    if !cargo_has("deny") {
        return skip(NAME, "cargo-deny is not installed: cargo install --locked cargo-deny");
    }
    let args = ["deny", "--offline", "--all-features", "check", "bans", "licenses", "sources"];
    step(NAME, tool::cargo(&args), 5, Reader::Status)
}

fn python() -> Vec<Step> {
    setup::postgres();
    let at = |name: &str| tool::venv(name);
    let check = |name: &str, path, args: &[&str]| step(name, program(path, args), 5, Reader::Status);
    let interpreter = at("python").to_string_lossy().into_owned();
    let pyright = tool::checker("pyright");
    vec![
        check("python format", at("ruff"), &["format", "--check"]),
        check("python ruff", at("ruff"), &["check"]),
        check("python mypy", at("mypy"), &[]),
        match present(&pyright, "pyright is not installed in target/tools: it needs npm") {
            Ok(()) => check("python pyright", pyright, &["--pythonpath", &interpreter]),
            Err(why) => skip("python pyright", why),
        },
        check("python stubtest", at("stubtest"), &["tricorn._core", "--mypy-config-file", "pyproject.toml"]),
        match surface::python(false) {
            Ok(command) => step("python surface", command, 2, Reader::Status),
            Err(why) => skip("python surface", why.to_string()),
        },
        step("python wrong uses", program(at("python"), &["tests/cases/misuse_check.py"]), 5, Reader::Status),
        stateless(),
        package("python", "pytest"),
        // Tests run against the package that a user installs.
        step("python pytest", program(place::target("package/python/venv/bin/python"), &PYTEST), 10, Reader::Pytest),
    ]
}

/// Processes that share nothing, with the option `stateless`.
fn stateless() -> Step {
    setup::nginx();
    let mut tests = program(tool::venv("python"), &PYTEST);
    tests.args(["tests/scale/test_stateless.py", "--lang", "python", "--sharing", "nothing"]);
    step("python stateless processes", tests, 5, Reader::Pytest)
}

fn node() -> Vec<Step> {
    let bin = |name: &str| place::root().join("node_modules/.bin").join(name);
    let check = |name: &str, path, args: &[&str]| step(name, program(path, args), 5, Reader::Status);
    // Tests run against the package that a user installs.
    let mut tests = program("node", &["tests/packages/node-suite.mjs"]);
    tests.arg(place::target("package/node"));
    vec![
        check("node biome", bin("biome"), &["check"]),
        check("node types", bin("tsc"), &["-p", "bindings-node", "--noEmit"]),
        check("node types of tests", bin("tsc"), &["-p", "bindings-node/test", "--noEmit"]),
        check("node types of guides", bin("tsc"), &["-p", "examples/guides/node", "--noEmit"]),
        step("node surface", surface::node(false), 2, Reader::Status),
        step("node wrong uses", program("node", &["tests/cases/misuse_check.mjs"]), 5, Reader::Status),
        package("node", "test"),
        step("node test", tests, 10, Reader::Tap),
    ]
}

/// The files of Node's tests, named one by one: what a folder means differs between versions of Node.
pub(crate) fn node_tests() -> Vec<std::path::PathBuf> {
    let found = stamp::sources(&place::root().join("bindings-node/test")).unwrap_or_default();
    found.into_iter().filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect()
}

/// The package that a user installs, from what is compiled already. It has the name of the tests that run against it: who
/// asks for these alone needs it, too.
fn package(lang: &str, tests: &str) -> Step {
    let script = program(place::root().join("xtask/package-check.sh"), &[lang]);
    step(&format!("{lang} package for {lang} {tests}"), script, 10, Reader::Status)
}

fn swift() -> Vec<Step> {
    let swift = |args: &[&str]| setup::swift_command(args);
    let places = [
        "Package.swift",
        "bindings-swift/Sources/Tricorn",
        "bindings-swift/Sources/TricornURLSession",
        "bindings-swift/Sources/TricornCore/NSLock.swift",
        "bindings-swift/Tests",
        "examples",
        "tests/cases/runners/swift",
        "tests/hostile/victims/swift",
        "tests/interop/ours/swift",
    ];
    let format = [&["swift", "format", "lint", "--strict", "--recursive"][..], &places].concat();
    let tests = ["swift", "test", "-c", "release", "--skip-build", "--no-parallel"];
    vec![
        step("swift generated sources", program("bindings-swift/regen.sh", &["--stamp"]), 2, Reader::Status),
        match tool::ask(swift(&["swift", "format", "--version"])) {
            Some(_) => step("swift format", swift(&format), 5, Reader::Status),
            None => skip("swift format", "this toolchain has no swift-format"),
        },
        step("swift tests compiled", setup::build_of_swift_tests(), 20, Reader::Status),
        // One after the other: a test that computes would starve those that wait for answers within a time.
        step("swift test", with_store(&swift(&tests)), 10, Reader::Swift),
        match surface::swift_graph() {
            Ok(command) => step("swift symbol graph for swift surface", command, 5, Reader::Status),
            Err(why) => skip("swift symbol graph for swift surface", why.to_string()),
        },
        match surface::swift(false) {
            Ok(command) => step("swift surface", command, 2, Reader::Status),
            Err(why) => skip("swift surface", why.to_string()),
        },
    ]
}

/// A command that has a store, which its root may lack.
fn with_store(inner: &Command) -> Command {
    let mut command = program(place::root().join("xtask/with-store.sh"), &[]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A third of the load that looks for leaks: one object of a host takes a hundred bytes and more. The engine's own leaks,
/// which may be smaller, are looked for with Rust and the whole load.
const LESS: [&str; 14] = [
    "--calls",
    "30000",
    "--cancels",
    "3000",
    "--sessions",
    "2000",
    "--rounds",
    "200",
    "--kills",
    "300",
    "--streams",
    "3000",
    "--tasks",
    "300",
];

fn suite(args: &[&str]) -> Command {
    program(place::built("contract"), args)
}

/// The contract that is no language's own.
pub(super) fn shared() -> Vec<Step> {
    vec![step("contract coverage", suite(&["coverage"]), 2, Reader::Own)]
}

/// Every fixture server recorded and played by the clients of all languages that are there.
pub(super) fn cassettes(langs: &[Lang]) -> Step {
    let among: Vec<&str> = langs.iter().map(|lang| lang.name()).collect();
    step("all cassettes", suite(&["cassettes", "--among", &among.join(",")]), 10, Reader::Own)
}

/// The contract against a language's fixture server and clients.
pub(super) fn contract(lang: Lang) -> Vec<Step> {
    let name = lang.name();
    [
        "transcripts",
        "bad-input",
        "launchers",
        "cases",
        "cuts",
        "attacks",
        "logins",
        "guides",
        "stateless",
        "together",
        "leaks",
    ]
    .into_iter()
    .map(|what| {
        let mut command = suite(&[what, "--lang", name]);
        // Logins with the programs of others are the engine's, too: one scene with each of them.
        let less: &[&str] = match what {
            "leaks" => &LESS,
            "logins" => &["--others", "1"],
            _ => &[],
        };
        if lang != Lang::Rust {
            command.args(less);
        }
        step(&format!("{name} contract {what}"), command, 10, Reader::Own)
    })
    .collect()
}
