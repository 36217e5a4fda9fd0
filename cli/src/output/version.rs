//! Version of the command, the engine and the platform.

use tricorn::protocol::revision::Revision;

use crate::launcher::Launcher;

/// The version, the engine, the revisions it speaks and the platform.
pub(crate) fn text(launcher: &Launcher) -> String {
    let revisions: Vec<_> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    let package = launcher.package.as_deref().unwrap_or("library");
    format!(
        "{}\nengine     tricorn {}\nrevisions  {}\nplatform   {} {}, {package}",
        env!("CARGO_PKG_VERSION"),
        tricorn::VERSION,
        revisions.join(", "),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
