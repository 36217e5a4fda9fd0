//! The Secret Service, which a Linux desktop's keyring offers on the session bus: GNOME Keyring, KWallet, KeePassXC.

use std::collections::HashMap;
use std::time::Duration;

use secret_service::{EncryptionType, Error, SecretService};
use zbus::connection::{Builder, Connection};

use super::{NAMES, NoKey, key_of, new_key};

pub(in super::super) const KNOWN: bool = true;

const LABEL: &str = "Tricorn: key of the logins";

pub(super) fn key(patience: Duration) -> Result<[u8; 32], NoKey> {
    key_on(None, patience)
}

/// The key, made if there is none. On a runtime of its own, in this thread: when it is dropped the connection is closed,
/// a prompt that nobody answered goes away, and nothing of it is left at work.
fn key_on(bus: Option<&str>, patience: Duration) -> Result<[u8; 32], NoKey> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let asked = async { tokio::time::timeout(patience, ask(bus)).await };
    runtime.map_err(NoKey::refused)?.block_on(asked).unwrap_or_else(|_| Err(NoKey::late(patience)))
}

async fn ask(bus: Option<&str>) -> Result<[u8; 32], NoKey> {
    let connection = connect(bus).await.map_err(|error| match error {
        zbus::Error::Address(_) | zbus::Error::Connection(..) | zbus::Error::InputOutput(_) => {
            NoKey::absent(format_args!("there is no session bus: {error}"))
        }
        _ => NoKey::refused(format_args!("the session bus: {error}")),
    })?;
    let service = SecretService::connect_with_existing(EncryptionType::Dh, connection).await.map_err(said)?;
    if let Some(secret) = find(&service).await.map_err(said)? {
        return key_of(secret);
    }
    // Not in the collection "session", which ends with the user's session.
    let collection = service.get_default_collection().await.map_err(said)?;
    if collection.is_locked().await.map_err(said)? {
        collection.unlock().await.map_err(said)?;
        // Some tell what they have when they are open, and not before.
        if let Some(secret) = find(&service).await.map_err(said)? {
            return key_of(secret);
        }
    }
    let key = new_key()?;
    collection.create_item(LABEL, attributes(), &key, true, "application/octet-stream").await.map_err(said)?;
    // The stored key counts: a process with another directory may have been faster.
    let secret = find(&service).await.map_err(said)?;
    secret.map_or_else(|| Err(NoKey::refused("it does not keep what it is given")), key_of)
}

async fn connect(bus: Option<&str>) -> zbus::Result<Connection> {
    let builder = match bus {
        None => Builder::session()?,
        Some(address) => Builder::address(address)?,
    };
    builder.build().await
}

fn attributes() -> HashMap<&'static str, &'static str> {
    HashMap::from([("service", NAMES.0), ("username", NAMES.1)])
}

async fn find(service: &SecretService<'_>) -> Result<Option<Vec<u8>>, Error> {
    let items = service.search_items(attributes()).await?;
    if let Some(item) = items.unlocked.first() {
        return item.get_secret().await.map(Some);
    }
    let Some(item) = items.locked.first() else { return Ok(None) };
    item.unlock().await?;
    item.get_secret().await.map(Some)
}

fn said(error: Error) -> NoKey {
    match error {
        Error::Prompt => NoKey::refused("it was not unlocked"),
        Error::NoResult => NoKey::refused("it has no default collection"),
        Error::Zbus(zbus::Error::MethodError(name, ..)) if name == "org.freedesktop.DBus.Error.ServiceUnknown" => {
            NoKey::refused("nobody on the session bus is a Secret Service")
        }
        error => NoKey::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(60);

    fn socket() -> PathBuf {
        std::env::temp_dir().join(format!("tricorn-bus-{}", crate::random::new_id().expect("randomness")))
    }

    #[test]
    fn where_there_is_no_bus_there_is_no_keychain_and_no_waiting() {
        let path = socket();
        drop(UnixListener::bind(&path).expect("a socket"));
        let nobody = format!("unix:path={}", path.display());
        for bus in ["", "nonsense", "unix:path=/nowhere/bus", &nobody] {
            let asked = Instant::now();
            let none = key_on(Some(bus), LONG).expect_err("no key");
            assert!(none.is_absent && asked.elapsed() < LONG / 2, "{bus}: {none:?}");
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for_for_ever() {
        let path = socket();
        let _bus = UnixListener::bind(&path).expect("a socket");
        let none = key_on(Some(&format!("unix:path={}", path.display())), MOMENT).expect_err("no key");
        assert!(!none.is_absent && none.why == "it has not answered for 50ms", "{none:?}");
        let _ = std::fs::remove_file(path);
    }
}
