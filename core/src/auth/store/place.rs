//! The directory that logins are kept in: one file and one lock for each. Everything here waits for the disk.
//!
//! **Invariant**: a file is only ever replaced as a whole, and only by whoever has its lock. The lock is the operating
//! system's, on a file beside it that stays where it is, so it ends with the process that has it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ring::digest::{SHA256, digest};

use super::envelope::{self, Seal, Unread};
use super::{MAX_BYTES, TokenKey};
use crate::auth::secret::Secret;
use crate::error::{Error, ErrorKind, Result, shown_url};

/// A login twice over, and what a file says besides.
const MAX_FILE_BYTES: u64 = 4 * MAX_BYTES as u64;
/// Files of one server that are looked at.
const MAX_ISSUERS: usize = 100;
/// Additional length that a login may get without being in want of room.
const SPARE: usize = 16 * 1024;
/// Damaged files of one login that are put aside.
const MAX_BAD: usize = 9;

/// Asks for what seals, when it is needed: a keychain may ask the user. `None` where there is none.
pub(super) type Key<'a> = &'a dyn Fn() -> Option<&'a Seal>;

#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
}

/// Names of a login's files, without their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stem(String);

/// The right to change one login's file. Whoever writes keeps it, also when nobody waits for the end of that any more.
#[derive(Debug)]
pub(super) struct Lock {
    stem: Stem,
    one: Mutex<()>,
    /// Size of the room that was made for another text.
    room: Mutex<Option<u64>>,
    /// Its path.
    new: PathBuf,
    /// Closed, it is somebody else's.
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody else has the lock yet.
        if self.room.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            let _ = fs::remove_file(&self.new);
        }
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Auth, format!("the token store cannot {what} {}: {error}", path.display()))
}

/// 128 bits of a digest: no two texts have the same.
fn name_of(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Stem {
    fn of(key: &TokenKey) -> Self {
        Self(format!("{}-{}", name_of(&key.server), name_of(&key.issuer)))
    }
}

impl Place {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, stem: &Stem, end: &str) -> PathBuf {
        self.dir.join(format!("{}{end}", stem.0))
    }

    /// The directory is there, and nobody but its owner writes in it.
    fn prepare(&self) -> Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.dir).map_err(|error| failed("make the directory", &self.dir, &error))?;
        self.is_own()
    }

    /// Nobody but its owner writes in the directory, if there is one: what others have put there is not to be believed.
    fn is_own(&self) -> Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;

            let about = match fs::metadata(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                about => about.map_err(|error| failed("look at", &self.dir, &error))?,
            };
            let (owner, own) = (std::os::unix::fs::MetadataExt::uid(&about), rustix::process::geteuid().as_raw());
            if owner != own {
                let message = format!(
                    "the token store's directory {} belongs to the user {owner}, and not to {own} who runs this program: \
                     name another, or give it to {own}",
                    self.dir.display()
                );
                return Err(Error::new(ErrorKind::Auth, message));
            }
            if about.permissions().mode() & 0o022 != 0 {
                let message = format!(
                    "the token store's directory {} can be written in by others: `chmod go-w` it, or name another",
                    self.dir.display()
                );
                return Err(Error::new(ErrorKind::Auth, message));
            }
        }
        Ok(())
    }

    /// The right to change this login; `None` while somebody else has it.
    pub(super) fn try_lock(&self, key: &TokenKey) -> Result<Option<Lock>> {
        self.try_lock_stem(&Stem::of(key))
    }

    fn try_lock_stem(&self, stem: &Stem) -> Result<Option<Lock>> {
        self.prepare()?;
        let path = self.path(stem, ".lock");
        let file = private().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed("open", &path, &error))?;
        // Named with its trait: newer standard libraries have a method of that name.
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(Lock {
                stem: stem.clone(),
                one: Mutex::default(),
                room: Mutex::default(),
                new: self.path(stem, ".new"),
                _file: file,
            })),
            Err(fs4::TryLockError::WouldBlock) => Ok(None),
            Err(fs4::TryLockError::Error(error)) => Err(failed("lock", &path, &error)),
        }
    }

    /// Returns the content of a file, if it can be read.
    fn read(&self, stem: &Stem, seal: Key<'_>) -> Result<Option<Result<(TokenKey, Secret), Unread>>> {
        self.is_own()?;
        let path = self.path(stem, ".json");
        if path.is_symlink() {
            // It leads to somebody else's file, whose mode is not ours to change.
            return Ok(Some(Err(Unread::Damaged("it is a link"))));
        }
        // To open a pipe would wait for whoever writes into it.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            return Ok(Some(Err(Unread::Damaged("it is no regular file"))));
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open", &path, &error)),
        };
        #[cfg(unix)]
        close_to_others(&file, &path).map_err(|error| failed("look at", &path, &error))?;
        let mut text = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text);
        read.map_err(|error| failed("read", &path, &error))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Ok(Some(Err(Unread::Damaged("it is longer than any login's"))));
        }
        let read = match envelope::read(&text, None) {
            Err(Unread::Locked) => envelope::read(&text, seal()),
            read => read,
        };
        Ok(Some(match read {
            Ok((key, _)) if Stem::of(&key) != *stem => Err(Unread::Damaged("it is another login's")),
            read => read,
        }))
    }

    /// Returns the stored login. A damaged file is put aside by whoever has its lock, or gets it.
    fn take(&self, stem: &Stem, lock: Option<&Lock>, seal: Key<'_>) -> Result<Option<(TokenKey, Secret)>> {
        let path = self.path(stem, ".json");
        let own = match self.read(stem, seal)? {
            None => return Ok(None),
            Some(Ok(found)) => return Ok(Some(found)),
            Some(Err(Unread::Damaged(_))) if lock.is_some() => None,
            Some(Err(Unread::Damaged(why))) => match self.try_lock_stem(stem)? {
                Some(own) => Some(own),
                None => return Err(damaged(&path, why, None)),
            },
            Some(Err(unread)) => return Err(unreadable(&path, &unread)),
        };
        // Read again: whoever had the lock meanwhile may have put another in its place.
        let outcome = match self.read(stem, seal)? {
            None => Ok(None),
            Some(Ok(found)) => Ok(Some(found)),
            Some(Err(Unread::Damaged(why))) => Err(damaged(&path, why, self.put_aside(stem)?.as_deref())),
            Some(Err(unread)) => Err(unreadable(&path, &unread)),
        };
        drop(own);
        outcome
    }

    /// Loads a stored login.
    pub(super) fn load(&self, key: &TokenKey, lock: Option<&Lock>, seal: Key<'_>) -> Result<Option<Secret>> {
        Ok(self.take(&Stem::of(key), lock, seal)?.map(|(_, login)| login))
    }

    /// Gives a damaged file another name; `None` when there are too many such already.
    fn put_aside(&self, stem: &Stem) -> Result<Option<PathBuf>> {
        let path = self.path(stem, ".json");
        let ends = (1..=MAX_BAD).map(|n| if n == 1 { ".bad".to_owned() } else { format!(".bad-{n}") });
        let Some(bad) = ends.map(|end| self.path(stem, &end)).find(|bad| !bad.exists()) else { return Ok(None) };
        rename(&path, &bad).map_err(|error| failed("put aside", &path, &error))?;
        Ok(Some(bad))
    }

    /// Puts a login in place of the one that is there. When it returns, it is on the disk.
    pub(super) fn save(&self, key: &TokenKey, lock: &Lock, login: &Secret, seal: Key<'_>) -> Result<()> {
        if login.expose().len() > MAX_BYTES {
            return Err(super::too_long(key));
        }
        let _one = lock.one.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(&lock.stem, ".json");
        match self.read(&lock.stem, seal)? {
            // It may be the login of another program, too, in a session that has the key.
            Some(Err(unread @ (Unread::Newer | Unread::Locked))) => return Err(unreadable(&path, &unread)),
            Some(Err(Unread::Damaged(why))) => match self.put_aside(&lock.stem)? {
                Some(bad) => crate::report::say(damaged(&path, why, Some(&bad)).message()),
                None => return Err(damaged(&path, why, None)),
            },
            Some(Ok(_)) | None => {}
        }
        let text = envelope::write(key, login, seal())?.ok_or_else(|| {
            let server = shown_url(&key.server);
            Error::new(ErrorKind::Auth, format!("the login at {server} cannot be sealed"))
        })?;
        // Nobody else writes it, as nobody else has the lock: what is there was left by a process that was killed.
        let new = self.path(&lock.stem, ".new");
        let room = lock.room.lock().unwrap_or_else(PoisonError::into_inner).take();
        write_in_room(&new, room, text.as_bytes()).map_err(|error| failed("write", &new, &error))?;
        rename(&new, &path).map_err(|error| failed("replace", &path, &error))?;
        self.settle()
    }

    /// Makes the file that [`save`](Self::save) writes, as long as the one that is there and some more, and fills it.
    pub(super) fn make_room(&self, lock: &Lock) -> Result<()> {
        let _one = lock.one.lock().unwrap_or_else(PoisonError::into_inner);
        let length = fs::metadata(self.path(&lock.stem, ".json")).map_or(0, |about| about.len());
        let length = usize::try_from(length.min(MAX_FILE_BYTES)).unwrap_or_default() + SPARE;
        let new = self.path(&lock.stem, ".new");
        write_whole(&new, &vec![b' '; length]).map_err(|error| {
            // A part of it is no room.
            let _ = fs::remove_file(&new);
            failed("make room for another token in", &new, &error)
        })?;
        *lock.room.lock().unwrap_or_else(PoisonError::into_inner) = Some(length as u64);
        Ok(())
    }

    /// Keeps a login no longer.
    pub(super) fn remove(&self, lock: &Lock) -> Result<()> {
        let _one = lock.one.lock().unwrap_or_else(PoisonError::into_inner);
        for end in [".json", ".new"] {
            let path = self.path(&lock.stem, end);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &path, &error)),
                _ => {}
            }
        }
        self.settle()
    }

    /// A new name is on the disk when the directory is.
    fn settle(&self) -> Result<()> {
        #[cfg(unix)]
        File::open(&self.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| failed("write the directory", &self.dir, &error))?;
        Ok(())
    }

    /// All logins at a server, by issuer.
    pub(super) fn find(&self, server: &str, seal: Key<'_>) -> Result<Vec<(TokenKey, Secret)>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read the directory", &self.dir, &error)),
        };
        let start = format!("{}-", name_of(server));
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let stem = |name: String| name.strip_suffix(".json").filter(|stem| stem.starts_with(&start)).map(Into::into);
        let mut found = Vec::new();
        for stem in names.filter_map(stem).take(MAX_ISSUERS) {
            found.extend(self.take(&Stem(stem), None, seal)?);
        }
        found.sort_by(|(one, _), (other, _)| one.issuer.cmp(&other.issuer));
        Ok(found)
    }
}

/// Runs `work` while no other process that shares the directory runs such, too.
///
/// # Errors
/// The reason why it was not run, for people.
pub(super) fn only_one<T>(dir: &Path, work: impl FnOnce() -> T) -> Result<T, String> {
    use std::time::{Duration, Instant};

    let place = Place::new(dir.to_owned());
    let begun = Instant::now();
    loop {
        match place.try_lock_stem(&Stem("keychain".into())) {
            Ok(Some(_lock)) => return Ok(work()),
            Ok(None) if begun.elapsed() < Duration::from_secs(60) => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => return Err("another process has been asking it for a minute".into()),
            Err(error) => return Err(error.message().to_owned()),
        }
    }
}

/// Renames, over what has that name already. On Windows that fails while another program has either file open: one that
/// looks for viruses does, for a moment.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut pauses = if cfg!(windows) { [5, 20, 80, 200, 400].iter() } else { [].iter() };
    loop {
        match fs::rename(from, to) {
            Err(error) if is_busy(&error) => match pauses.next() {
                Some(pause) => std::thread::sleep(std::time::Duration::from_millis(*pause)),
                None => return Err(error),
            },
            outcome => return outcome,
        }
    }
}

/// True for what Windows says of a file that is open elsewhere.
fn is_busy(error: &io::Error) -> bool {
    /// `ERROR_SHARING_VIOLATION`, `ERROR_LOCK_VIOLATION`.
    const NUMBERS: [i32; 2] = [32, 33];
    cfg!(windows)
        && (error.kind() == io::ErrorKind::PermissionDenied
            || error.raw_os_error().is_some_and(|number| NUMBERS.contains(&number)))
}

/// For reading and writing, by the owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file that was copied here may be readable for others.
#[cfg(unix)]
fn close_to_others(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        crate::report::say(format_args!("others could read {}: now only you can", path.display()));
    }
    Ok(())
}

fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    // Made anew, so that its mode is ours.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private().create_new(true).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Writes over the room that was made, which is on the disk; else as [`write_whole`].
fn write_in_room(path: &Path, room: Option<u64>, text: &[u8]) -> io::Result<()> {
    let about = fs::symlink_metadata(path).ok().filter(|about| about.is_file() && room == Some(about.len()));
    if about.is_none() {
        return write_whole(path, text);
    }
    let mut file = private().open(path)?;
    file.write_all(text)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

fn damaged(path: &Path, why: &str, bad: Option<&Path>) -> Error {
    let what = match bad {
        Some(bad) => format!("it was moved to {}; log in again", bad.display()),
        None => "it is left as it is; remove it, and log in again".into(),
    };
    Error::new(ErrorKind::Auth, format!("the token store's file {} is damaged ({why}): {what}", path.display()))
}

fn unreadable(path: &Path, unread: &Unread) -> Error {
    let why = match unread {
        Unread::Newer => {
            "was written by a newer version of this library: update this program, or give it a directory of its own"
        }
        _ => {
            "is sealed with a key of the keychain, which gives none: unlock the keychain, or remove the file and log in again"
        }
    };
    Error::new(ErrorKind::Auth, format!("the token store's file {} {why}", path.display()))
}
