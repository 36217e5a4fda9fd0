//! The binary.

use std::process::ExitCode;

use tricorn_cli::Launcher;

fn main() -> ExitCode {
    let mut launcher = Launcher::new();
    launcher.package = Some("binary".to_owned());
    ExitCode::from(tricorn_cli::main(std::env::args_os().skip(1).collect(), launcher))
}
