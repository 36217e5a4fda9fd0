//! The tasks of the repository. `cargo xtask demo` and `cargo xtask test` need nothing done before them.
#![allow(clippy::print_stdout, reason = "a command-line tool: its results are its standard output")]

mod bench;
mod conformance;
mod crowd;
mod demo;
mod dist;
mod guides;
mod hostile;
mod interop;
mod place;
mod process;
mod proxies;
mod release;
mod report;
mod sanitize;
mod setup;
mod soak;
mod stamp;
mod surface;
mod test;
mod tidy;
mod tool;
mod wild;
mod workflows;

use clap::{Parser, Subcommand};
use place::Lang;
use std::process::ExitCode;

/// The tasks of the Tricorn repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Line {
    /// Use what is built already, whatever has changed since
    #[arg(long, global = true)]
    as_built: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make everything the other tasks need, under the target folder.
    Setup {
        /// rust, python, node, swift; all of them by default
        langs: Vec<String>,
    },
    /// Servers in four languages, called by clients in four languages and by what others wrote.
    Demo,
    /// Run every test of every language.
    Test(test::Options),
    /// Run the official conformance suite against one of our programs.
    Conformance {
        /// rust, python, node or swift
        lang: String,
        /// Side of our programs
        role: conformance::Role,
        /// 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28 (all of these by default), or ext
        revision: Option<String>,
        /// Only scenarios whose name contains this
        #[arg(long)]
        scenario: Option<String>,
    },
    /// Run our clients and servers against those of others.
    Interop {
        /// Only these languages of ours
        langs: Vec<String>,
        /// Run the peers against each other instead, which tells their defects from ours
        #[arg(long)]
        control: bool,
    },
    /// Run our clients and servers against programs that others wrote.
    Wild(wild::Options),
    /// Run our clients through proxies that others wrote.
    Proxies(proxies::Options),
    /// Send hostile input to our programs, and measure what it costs them.
    Hostile(hostile::Options),
    /// Load our programs with mixed calls, and look at what is left of them afterwards.
    Soak(soak::Options),
    /// Have a thousand clients call our servers while another one floods them, and measure what the others see of it.
    Crowd(crowd::Options),
    /// Run tests of the native code with the address sanitizer in it.
    Sanitize(sanitize::Options),
    /// Make the packages as they are published.
    Dist(dist::Options),
    /// Write the wire types of Python, Node and Swift and the corpus index from the pinned schemas.
    GenTypes {
        /// Write nothing; fail when a file is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Write the examples into the guides that show them.
    Guides,
    /// Compare the public surface of each language with its snapshot in tests/surface.
    Surface {
        /// Write the snapshots anew
        #[arg(long)]
        write: bool,
    },
    /// Check the rules of the tree that no compiler checks.
    Tidy(tidy::Options),
    /// Measure our servers and clients beside a bare floor.
    Bench(bench::Options),
    /// Give all packages a version and the changelog a date, commit, and tag. Publishes nothing.
    Release(release::Options),
    /// Check the workflows, and run those of their steps that a machine like this one can.
    Workflows(workflows::Options),
    #[command(hide = true)]
    Guard,
}

fn main() -> ExitCode {
    let line = Line::parse();
    setup::use_as_built(line.as_built);
    let outcome = run(line.task);
    report::clear();
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::note(format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a task; true if everything that it looked at was as it should be.
fn run(task: Task) -> anyhow::Result<bool> {
    match task {
        Task::Setup { langs } => setup::run(&Lang::list(&langs)?).map(|()| true),
        Task::Demo => demo::main(),
        Task::Conformance { lang, role, revision, scenario } => {
            let legs = match revision {
                Some(leg) => vec![leg],
                None => conformance::REVISIONS.map(str::to_owned).to_vec(),
            };
            conformance::main(&conformance::Plan {
                lang: lang.parse()?,
                role,
                legs,
                filter: scenario,
                skip_expected: false,
            })
        }
        Task::Interop { langs, control } => interop::main(&Lang::list(&langs)?, control),
        Task::Wild(options) => wild::main(&options),
        Task::Proxies(options) => proxies::main(&options),
        Task::Hostile(options) => hostile::main(&options),
        Task::Soak(options) => soak::main(&options),
        Task::Crowd(options) => crowd::main(&options),
        Task::Sanitize(options) => sanitize::main(&options),
        Task::Dist(options) => dist::main(&options),
        Task::GenTypes { check } => xtask_gen_types::run(place::root(), check).map(|()| true),
        Task::Test(options) => test::main(&options),
        Task::Guides => guides::write().map(|_| true),
        Task::Surface { write } => surface::main(write),
        Task::Tidy(options) => tidy::main(&options),
        Task::Bench(options) => bench::main(&options),
        Task::Release(options) => release::main(&options),
        Task::Workflows(options) => workflows::main(&options),
        Task::Guard => {
            process::guard();
            Ok(true)
        }
    }
}
