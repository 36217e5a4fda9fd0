//! The addon under the npm package `tricorn`: thin wrappers over [`tricorn::bridge`].
//!
//! It is private to the package: `lib/bridge/addon.d.ts` is its only caller's view of it. Nothing here
//! keeps a JavaScript object. Calls, operations and handlers are integers whose meaning lives in
//! `lib/bridge/host.ts`; payloads cross as JSON text. Every export catches panics, which then surface as
//! ordinary JavaScript errors.

#![allow(unsafe_code, reason = "`#[napi]` expands to the glue of Node-API; the code written here has none of its own")]
#![cfg_attr(test, allow(dead_code, reason = "`#[napi]` registers nothing in tests"))]
#![allow(missing_docs, reason = "napi-derive adds registration items of its own")]

mod client;
mod error;
mod group;
mod host;
mod http;
mod server;

use napi_derive::napi;

/// The version of the engine compiled into this addon.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    tricorn::bridge::version()
}

/// Runs the command `tricorn`, and returns the status to end the process with. Ctrl-C is its own from then on.
#[napi(catch_unwind)]
pub fn command(arguments: Vec<String>, node: String, script: String) -> u8 {
    let mut launcher = tricorn_cli::Launcher::new();
    launcher.package = Some("node".to_owned());
    launcher.command = vec![node.clone(), script];
    launcher.node = Some(node.into());
    tricorn_cli::main(arguments.into_iter().map(Into::into).collect(), launcher)
}

/// Throws what is wrong with the schema of a form.
#[napi(catch_unwind)]
pub fn check_form(schema: String) -> error::Result<()> {
    tricorn::bridge::check_form(&host::raw(schema)).map_err(error::raise)
}

/// Throws what is wrong with the pages that a user is to visit.
#[napi(catch_unwind)]
pub fn check_pages(pages: String) -> error::Result<()> {
    tricorn::bridge::check_pages(&host::raw(pages)).map_err(error::raise)
}

/// Throws the refusal of an option of this package's own, in the engine's words. `known` has snake_case names.
#[napi(catch_unwind)]
pub fn unknown_option(what: String, name: String, known: Vec<String>) -> error::Result<()> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(error::raise(tricorn::bridge::unknown_option(&what, &name, &known)))
}

/// Puts the standard streams back to where they were before a server spoke on them.
#[napi(catch_unwind)]
pub fn give_back_streams() {
    tricorn::bridge::give_back_streams();
}

/// The process is killed when the event loop has not called `heardSignal` within these milliseconds of a signal, `polite` for
/// SIGTERM, and with `streams` of the end of the standard streams.
#[napi(catch_unwind)]
pub fn watch_signals(patience: u32, polite: u32, streams: bool) -> error::Result<()> {
    let [patience, polite] = [patience, polite].map(|time| std::time::Duration::from_millis(time.into()));
    #[cfg(unix)]
    tricorn::bridge::watch_signals(patience, polite, streams).map_err(error::raise)?;
    #[cfg(not(unix))]
    let _ = (patience, polite, streams);
    Ok(())
}

/// The process is killed when the event loop does not call `heardSignal` within these milliseconds.
#[napi(catch_unwind)]
pub fn expect_end(patience: u32) {
    #[cfg(unix)]
    tricorn::bridge::expect_end(std::time::Duration::from_millis(patience.into()));
    #[cfg(not(unix))]
    let _ = patience;
}

/// The event loop has heard of a signal, or listens no more.
#[napi(catch_unwind)]
pub fn heard_signal() {
    #[cfg(unix)]
    tricorn::bridge::heard();
}

/// Writes to standard error without waiting for who reads it.
#[napi(catch_unwind)]
pub fn write_stderr(text: String) {
    tricorn::bridge::write_stderr(&text);
}

/// Returns true when a client may load an icon's `src`.
#[napi(catch_unwind)]
pub fn is_safe_icon(src: String) -> bool {
    tricorn::bridge::is_safe_icon(&src)
}
