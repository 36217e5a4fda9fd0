//! The programs of the guides: `guides TOPIC`. Each module is a program of its own.
#![allow(clippy::print_stdout, reason = "what the guides show")]

mod completion;
mod prompts;
mod resources;
mod tools;

fn main() -> tricorn::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("completion") => completion::main(),
        Some("prompts") => prompts::main(),
        Some("resources") => resources::main(),
        Some("tools") => tools::main(),
        other => Err(tricorn::Error::misuse(format!("no topic {other:?}"))),
    }
}
