//! A directory's files in a stable order, with an end to everything.

use std::io;

use cap_std::fs::Dir;

/// The deepest directory, which is also the most that are open at once.
const MAX_DEPTH: usize = 32;
/// The most entries that are looked at, for each file that may be listed.
const ENTRIES_PER_FILE: usize = 10;

struct Walk<'a> {
    root: &'a Dir,
    hidden: bool,
    max_files: usize,
    /// Number of entries that may still be looked at.
    left: usize,
    names: Vec<String>,
    truncated: bool,
    stop: &'a dyn Fn() -> bool,
}

/// The paths of at most `max_files` files, ordered by their parts, and whether there are more.
///
/// # Errors
/// That of reading `root` itself; `Interrupted` when `stop` said so.
pub(super) fn names(
    root: &Dir,
    hidden: bool,
    max_files: usize,
    stop: &dyn Fn() -> bool,
) -> io::Result<(Vec<String>, bool)> {
    let left = max_files.saturating_mul(ENTRIES_PER_FILE).saturating_add(1_000);
    let mut walk = Walk { root, hidden, max_files, left, names: Vec::new(), truncated: false, stop };
    walk.directory(root, "", 0)?;
    if stop() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok((walk.names, walk.truncated))
}

impl Walk<'_> {
    fn directory(&mut self, dir: &Dir, path: &str, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            if self.left == 0 || (self.left.is_multiple_of(64) && (self.stop)()) {
                self.truncated = true;
                break;
            }
            self.left -= 1;
            let Ok(entry) = entry else { continue };
            let Ok(name) = entry.file_name().into_string() else { continue };
            let shown = (self.hidden || !name.starts_with('.')) && !name.contains('\\');
            if let Ok(kind) = entry.file_type()
                && shown
            {
                entries.push((name, kind));
            }
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if kind.is_dir() {
                // Below `dir` whatever the name is a moment later: it is opened from there.
                if depth < MAX_DEPTH
                    && let Ok(inner) = dir.open_dir(&name)
                {
                    let _ = self.directory(&inner, &path, depth + 1);
                }
            } else if kind.is_file()
                || (kind.is_symlink() && self.root.metadata(&path).is_ok_and(|metadata| metadata.is_file()))
            {
                if self.names.len() == self.max_files {
                    self.truncated = true;
                    return Ok(());
                }
                self.names.push(path);
            }
            if self.truncated && self.names.len() == self.max_files {
                return Ok(());
            }
        }
        Ok(())
    }
}
