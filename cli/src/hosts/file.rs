//! Files of others: read whole, written at once, with the old one beside them.

use std::fs::{File, Metadata, Permissions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The largest file that is read.
const LARGEST: u64 = 10 * 1024 * 1024;
/// The backups that are kept of a file.
const BACKUPS: usize = 5;
const BOM: &str = "\u{feff}";
/// Longest wait for another command that edits in the same folder, and the pause between attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Turn of one command in the folder of a file: another one that installs there waits. The system ends it with its process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the turn, and makes the folder if it is missing. `None`: the file system has no locks.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, String> {
        Self::within(path, PATIENCE)
    }

    fn within(path: &Path, patience: Duration) -> Result<Option<Self>, String> {
        let real = resolve(path)?;
        let folder = parent(&real);
        std::fs::create_dir_all(folder).map_err(|error| said(path, "write", &error))?;
        let end = Instant::now() + patience;
        loop {
            match locked(folder) {
                Ok(file) => return Ok(Some(Self { _file: file })),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Ok(None),
                Err(_) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(_) => {
                    let what = "another program has locked its folder; nothing was changed: try again";
                    return Err(format!("{}: {what}", path.display()));
                }
            }
        }
    }
}

/// The folder itself is locked, so that no other file stays.
#[cfg(unix)]
fn locked(folder: &Path) -> std::io::Result<File> {
    let file = File::open(folder)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// A file that nobody else can open meanwhile, and that goes when it is closed.
#[cfg(windows)]
fn locked(folder: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    // A sharing violation, and the refusal of a file that is about to go.
    const TAKEN: [i32; 2] = [32, 5];
    let mut options = File::options();
    options.write(true).create(true).share_mode(0).custom_flags(DELETE_ON_CLOSE);
    options.open(folder.join(".tricorn-lock")).map_err(|error| match error.raw_os_error() {
        Some(code) if TAKEN.contains(&code) => ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

#[cfg(not(any(unix, windows)))]
fn locked(_folder: &Path) -> std::io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

/// A file as it was read.
pub(super) struct Contents {
    /// Its name as the host has it.
    path: PathBuf,
    /// The file itself, at the end of all links.
    real: PathBuf,
    /// None for a file that is not there.
    old: Option<(Vec<u8>, Metadata)>,
    has_bom: bool,
    text: String,
}

impl Contents {
    /// Reads a file, which need not be there.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let real = resolve(path)?;
        let absent = |real| Self { path: path.to_owned(), real, old: None, has_bom: false, text: String::new() };
        let metadata = match std::fs::metadata(&real) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(absent(real)),
            Err(error) => return Err(said(path, "read", &error)),
        };
        if !metadata.is_file() {
            return Err(format!("{}: not a file", path.display()));
        }
        if metadata.len() > LARGEST {
            return Err(format!(
                "{}: {} bytes, more than the 10 MB that are read of a configuration",
                path.display(),
                metadata.len()
            ));
        }
        let bytes = std::fs::read(&real).map_err(|error| said(path, "read", &error))?;
        let whole = std::str::from_utf8(&bytes).map_err(|error| {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            format!("{}:{line}: not UTF-8; it is left as it is", path.display())
        })?;
        let text = whole.strip_prefix(BOM);
        let (has_bom, text) = (text.is_some(), text.unwrap_or(whole).to_owned());
        Ok(Self { path: path.to_owned(), real, old: Some((bytes, metadata)), has_bom, text })
    }

    /// The text, without a byte order mark.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text with the byte order mark, as a strict reader gets it.
    pub(super) fn whole(&self) -> String {
        if self.has_bom { format!("{BOM}{}", self.text) } else { self.text.clone() }
    }

    pub(super) fn exists(&self) -> bool {
        self.old.is_some()
    }

    /// The older texts of this file, the newest first.
    pub(super) fn backups(&self) -> Vec<String> {
        let texts = backups(&self.path).into_iter().rev().filter_map(|path| Self::read(&path).ok());
        texts.filter(|backup| backup.has_bom == self.has_bom).map(|backup| backup.text).collect()
    }

    /// Puts a new text in the place of the old one, all at once, and gives the path of the backup.
    pub(super) fn write(&self, text: &str, now: SystemTime, is_private: bool) -> Result<Option<PathBuf>, String> {
        let path = &self.path;
        let failed = |error: &std::io::Error| said(path, "write", error);
        if self.old.as_ref().is_some_and(|(_, metadata)| metadata.permissions().readonly()) {
            return Err(format!("{}: it is read-only; nothing was changed", path.display()));
        }
        let folder = parent(&self.real);
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let mut new =
            tempfile::Builder::new().prefix(".tricorn-").tempfile_in(folder).map_err(|error| failed(&error))?;
        if self.has_bom {
            new.write_all(BOM.as_bytes()).map_err(|error| failed(&error))?;
        }
        new.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
        match &self.old {
            Some((_, metadata)) => {
                own(new.as_file(), metadata).map_err(|error| failed(&error))?;
                new.as_file().set_permissions(metadata.permissions()).map_err(|error| failed(&error))?;
            }
            None => {
                if let Some(permissions) = permissions(is_private) {
                    new.as_file().set_permissions(permissions).map_err(|error| failed(&error))?;
                }
            }
        }
        new.as_file().sync_all().map_err(|error| failed(&error))?;
        let meanwhile =
            || format!("{}: another program changed it meanwhile; nothing was changed: try again", path.display());
        let Some((bytes, metadata)) = &self.old else {
            return match new.persist_noclobber(&self.real) {
                Ok(_) => Ok(None),
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(meanwhile()),
                Err(error) => Err(failed(&error.error)),
            };
        };
        let backup = back_up(path, bytes, metadata, now)
            .map_err(|error| format!("{}: no backup: {error}; nothing was changed", path.display()))?;
        if !std::fs::read(&self.real).is_ok_and(|current| current == *bytes) {
            // The backup is of a file that is there no more.
            let _gone = std::fs::remove_file(&backup);
            return Err(meanwhile());
        }
        new.persist(&self.real).map_err(|error| failed(&error.error))?;
        let all = backups(path);
        for old in all.iter().take(all.len().saturating_sub(BACKUPS)) {
            // One that stays does no harm.
            let _gone = std::fs::remove_file(old);
        }
        Ok(Some(backup))
    }
}

/// The end of a chain of links, of which the last may lead to nothing yet.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match std::fs::read_link(&path) {
            Ok(target) => path = parent(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(format!("{}: a link to itself", path.display()))
}

/// The folder of a file.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn said(path: &Path, what: &str, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            let hint = "nothing was changed: change its permissions, or run this as its owner";
            format!("{}: no permission to {what} it; {hint}", path.display())
        }
        _ => format!("{}: {error}; nothing was changed", path.display()),
    }
}

fn back_up(path: &Path, bytes: &[u8], metadata: &Metadata, now: SystemTime) -> std::io::Result<PathBuf> {
    let time = humantime::format_rfc3339_seconds(now).to_string().replace(['-', ':', 'Z'], "").replace('T', "-");
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".bak-tricorn-{time}"));
    // Several in one second have numbers.
    let last = numbered(path).into_iter().rev().find(|((other, _), _)| *other == time);
    if let Some(((_, number), _)) = last {
        name.push(format!("-{}", number + 1));
    }
    let backup = PathBuf::from(name);
    let folder = parent(path);
    let mut new = tempfile::Builder::new().prefix(".tricorn-").tempfile_in(folder)?;
    new.write_all(bytes)?;
    own(new.as_file(), metadata)?;
    new.as_file().set_permissions(metadata.permissions())?;
    new.persist_noclobber(&backup).map_err(|error| error.error)?;
    Ok(backup)
}

/// The backups of a file, the oldest first.
fn backups(path: &Path) -> Vec<PathBuf> {
    numbered(path).into_iter().map(|(_, path)| path).collect()
}

/// The backups with their times and numbers.
fn numbered(path: &Path) -> Vec<((String, u32), PathBuf)> {
    let Some(prefix) = path.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}.bak-tricorn-"))
    else {
        return Vec::new();
    };
    // The number of one second, which is compared as such.
    let order = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(&prefix)?;
        let (time, number) = name.split_at_checked(15)?;
        let is_time =
            time.bytes().enumerate().all(|(at, byte)| if at == 8 { byte == b'-' } else { byte.is_ascii_digit() });
        let number = if number.is_empty() { 1 } else { number.strip_prefix('-')?.parse::<u32>().ok()? };
        is_time.then(|| (time.to_owned(), number))
    };
    let folder = parent(path);
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<_> = all.filter_map(|path| Some((order(&path)?, path))).collect();
    all.sort();
    all
}

/// Gives a file to the owner of the old one: a superuser's command must not take it away.
#[cfg(unix)]
fn own(file: &File, old: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(file, Some(old.uid()), Some(old.gid()))
}

#[cfg(not(unix))]
fn own(_file: &File, _old: &Metadata) -> std::io::Result<()> {
    Ok(())
}

/// The mode of a new file: the user's own may get secrets, a project's is there for all.
#[cfg(unix)]
fn permissions(is_private: bool) -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(if is_private { 0o600 } else { 0o644 }))
}

#[cfg(not(unix))]
fn permissions(_is_private: bool) -> Option<Permissions> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn a_file_that_changed_meanwhile_stays() {
        let folder = folder();
        let path = folder.path().join("mcp.json");
        std::fs::write(&path, "old").expect("written");
        let contents = Contents::read(&path).expect("read");
        std::fs::write(&path, "newer").expect("written");
        let error = contents.write("ours", SystemTime::UNIX_EPOCH, true).expect_err("changed");
        assert!(error.contains("meanwhile"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "newer");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1);
    }

    #[test]
    fn a_file_that_came_meanwhile_stays() {
        let folder = folder();
        let path = folder.path().join("mcp.json");
        let contents = Contents::read(&path).expect("read");
        std::fs::write(&path, "theirs").expect("written");
        assert!(contents.write("ours", SystemTime::UNIX_EPOCH, true).expect_err("there").contains("meanwhile"));
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "theirs");
    }

    #[test]
    fn backups_are_few() {
        let folder = folder();
        let path = folder.path().join("mcp.json");
        std::fs::write(&path, "0").expect("written");
        for number in 1..12 {
            let contents = Contents::read(&path).expect("read");
            contents.write(&number.to_string(), SystemTime::UNIX_EPOCH, true).expect("written");
        }
        let contents = Contents::read(&path).expect("read");
        assert_eq!(contents.backups(), ["10", "9", "8", "7", "6"]);
    }

    #[cfg(any(unix, windows))]
    #[test]
    fn a_lock_is_waited_for_in_vain_and_then_taken() {
        let folder = folder();
        let path = folder.path().join("new").join("mcp.json");
        let first = Lock::within(&path, Duration::ZERO).expect("a lock").expect("a file system with locks");
        let refused = Lock::within(&path, 2 * PAUSE).expect_err("taken");
        assert!(refused.contains("has locked its folder"), "{refused}");
        let after = path.clone();
        let waiting = std::thread::spawn(move || Lock::within(&after, PATIENCE).map(|lock| lock.is_some()));
        std::thread::sleep(2 * PAUSE);
        drop(first);
        assert_eq!(waiting.join().expect("joined"), Ok(true));
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("listed").count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_a_circle_is_said() {
        let folder = folder();
        let path = folder.path().join("mcp.json");
        std::os::unix::fs::symlink(&path, &path).expect("linked");
        assert!(Contents::read(&path).is_err());
    }
}
