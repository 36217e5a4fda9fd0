//! Archives of bundles. The same files make the same bytes: sorted, without the times and owners of this machine.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::files::{Content, Files, cannot};
use crate::failure::{FAILED, Failure, Outcome};

/// A finished archive.
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) sha256: String,
    file: NamedTempFile,
}

impl Written {
    /// Writes an archive beside the place that it is going to have.
    pub(super) fn new(files: &Files, output: &Path) -> Outcome<Self> {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let file = tempfile::Builder::new().prefix(".tricorn-").suffix(".mcpb").tempfile_in(folder);
        let mut file = file.map_err(|error| cannot("write into", folder, &error))?;
        write(files, file.as_file_mut())?;
        let failed = |error: io::Error| cannot("write", output, &error);
        file.as_file_mut().rewind().map_err(failed)?;
        let (mut digest, mut bytes, mut part) = (Sha256::new(), 0, vec![0; 64 * 1024]);
        loop {
            let read = file.as_file_mut().read(&mut part).map_err(failed)?;
            if read == 0 {
                break;
            }
            digest.update(&part[..read]);
            bytes += read as u64;
        }
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, sha256, file })
    }

    /// Unpacks it.
    pub(super) fn unpack(&self, folder: &Path) -> Outcome<()> {
        let failed =
            |error: zip::result::ZipError| Failure::new(FAILED, format!("the bundle cannot be unpacked: {error}"));
        let file = self.file.reopen().map_err(|error| cannot("read", self.file.path(), &error))?;
        ZipArchive::new(file).and_then(|mut archive| archive.extract(folder)).map_err(failed)
    }

    /// Gives it its name, in place of what has it.
    pub(super) fn keep(self, output: &Path) -> Outcome<()> {
        keep(self.file, output)
    }
}

/// Gives a file its name, in place of what has it.
pub(super) fn keep(file: NamedTempFile, output: &Path) -> Outcome<()> {
    // As any other file that is written, and not only for its owner.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(mode).map_err(|error| cannot("write", output, &error))?;
    }
    file.persist(output).map(drop).map_err(|error| cannot("write", output, &error.error))
}

fn write(files: &Files, file: &mut File) -> Outcome<()> {
    let mut archive = ZipWriter::new(io::BufWriter::new(file));
    let plain = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    for (place, content) in &files.all {
        let failed = |error: &dyn std::fmt::Display| Failure::new(FAILED, format!("{place} cannot be packed: {error}"));
        let (bytes, is_program) = match content {
            Content::Text(text) => (text.clone(), false),
            Content::File(path) => {
                let mut bytes = Vec::new();
                File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|error| failed(&error))?;
                (bytes, is_program(path))
            }
        };
        let options = if is_program { plain.unix_permissions(0o755) } else { plain };
        archive.start_file(place, options).map_err(|error| failed(&error))?;
        archive.write_all(&bytes).map_err(|error| failed(&error))?;
    }
    let finished =
        archive.finish().map_err(|error| Failure::new(FAILED, format!("the bundle cannot be written: {error}")))?;
    finished
        .into_inner()
        .map(drop)
        .map_err(|error| Failure::new(FAILED, format!("the bundle cannot be written: {error}")))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("exe"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_same_files_are_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let made = |order: [&str; 2]| {
            let mut files = Files::default();
            for name in order {
                let path = dir.path().join(name);
                fs::write(&path, name.repeat(100)).unwrap();
                files.add(format!("server/{name}"), path).unwrap();
            }
            files.text("manifest.json", "{}");
            Written::new(&files, &dir.path().join("x.mcpb")).unwrap()
        };
        let (one, other) = (made(["a.py", "b.py"]), made(["b.py", "a.py"]));
        assert_eq!(one.sha256, other.sha256);
        one.unpack(&dir.path().join("out")).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("out/server/a.py")).unwrap(), "a.py".repeat(100));
        one.keep(&dir.path().join("x.mcpb")).unwrap();
        assert_eq!(fs::metadata(dir.path().join("x.mcpb")).unwrap().len(), other.bytes);
    }
}
