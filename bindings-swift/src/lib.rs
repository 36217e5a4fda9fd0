//! The native half of the Swift package: the core's bridge as UniFFI objects, and nothing else.
//!
//! Three rules keep the generated Swift usable in Swift 6 mode and cheap:
//! - Swift is called through one synchronous method, [`host::CoreHost::wake`]; it fetches what is queued
//!   and starts its own tasks (asynchronous foreign traits leak late answers and do not compile in Swift 6 mode).
//! - JSON crosses as text: to Swift as a [`host::CorePayload`] read in place, from Swift as `&[u8]`.
//! - Every function that can fail returns a `Result`: a panic in one that does not would abort the process.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "UniFFI's generated items carry no documentation")]

mod client;
mod error;
mod group;
mod host;
mod http;
mod server;

pub use client::CoreClient;
pub use error::CoreError;
pub use group::CoreGroup;
pub use host::{CoreBridge, CoreDelivery, CoreHost, CorePayload};
pub use http::CoreEndpoint;
pub use server::CoreServer;

uniffi::setup_scaffolding!("TricornCore");

/// The version of the core this library was built from.
#[uniffi::export]
pub fn core_version() -> Result<String, CoreError> {
    Ok(tricorn::bridge::version().to_owned())
}

/// Throws what is wrong with the schema of a form.
#[uniffi::export]
pub fn core_check_form(schema: &[u8]) -> Result<(), CoreError> {
    Ok(tricorn::bridge::check_form(&host::written(schema))?)
}

/// Throws what is wrong with the pages that a user is to visit.
#[uniffi::export]
pub fn core_check_pages(pages: &[u8]) -> Result<(), CoreError> {
    Ok(tricorn::bridge::check_pages(&host::written(pages))?)
}

/// Puts the standard streams back to where they were before a server spoke on them.
#[uniffi::export]
pub fn core_give_back_streams() -> Result<(), CoreError> {
    tricorn::bridge::give_back_streams();
    Ok(())
}

/// Writes to standard error without waiting for who reads it.
#[uniffi::export]
pub fn core_write_stderr(text: &str) -> Result<(), CoreError> {
    tricorn::bridge::write_stderr(text);
    Ok(())
}

/// Whether a client may load an icon's `src`.
#[uniffi::export]
pub fn core_is_safe_icon(src: &str) -> Result<bool, CoreError> {
    Ok(tricorn::bridge::is_safe_icon(src))
}

/// Panics with `message`: the tests look at what becomes of a panic in Swift.
#[uniffi::export]
pub fn core_panic(message: String) -> Result<(), CoreError> {
    std::panic::panic_any(message)
}
