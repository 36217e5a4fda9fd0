//! Images, sounds and other bytes: shown where the terminal can, saved where not.

use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use self::raster::Raster;
use self::terminal::{Hint, Protocol};
use super::screen::Screen;

mod kitty;
mod raster;
mod sixel;
mod terminal;

/// The longest image that is shown in the terminal, in bytes.
const MAX_SHOWN: usize = 8 << 20;
/// The most rows of pixels that are shown.
const MAX_ROWS: usize = 800;

/// Folder for files.
#[derive(Debug, Clone, Default)]
pub(crate) enum Place {
    /// To the system's folder for temporary files.
    #[default]
    Temporary,
    /// To this folder, which is made if need be.
    Folder(PathBuf),
}

/// Bytes of a server and what they are.
pub(crate) struct Media {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mime: String,
    /// The end of the file's name in its URI.
    ending: Option<String>,
}

/// The longest of them.
const MAX_ENDING: usize = 8;

impl Media {
    /// Reads base64, padded or not.
    pub(crate) fn decoded(data: &str, mime: Option<&str>) -> Option<Self> {
        let data: String = data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(&data).or_else(|_| STANDARD_NO_PAD.decode(data.trim_end_matches('='))).ok()?;
        Some(Self { bytes, mime: mime.unwrap_or("application/octet-stream").to_owned(), ending: None })
    }

    /// The same of a resource, whose file is named as its URI ends where its type says nothing of that.
    pub(crate) fn named_by(mut self, uri: &str) -> Self {
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        let is_plain = |ending: &&str| {
            (1..=MAX_ENDING).contains(&ending.len()) && ending.chars().all(|letter| letter.is_ascii_alphanumeric())
        };
        self.ending = ending.filter(is_plain).map(str::to_ascii_lowercase);
        self
    }

    /// The line that says what it is and where: it is shown, if it is an image and the terminal can, and saved.
    pub(crate) fn place(&self, screen: &Screen, place: &Place) -> String {
        let shown = self.picture(screen).map(|picture| format!("{picture}\n")).unwrap_or_default();
        format!("{shown}{}", screen.for_output(&self.saved(place)))
    }

    /// The same without showing it.
    pub(super) fn saved(&self, place: &Place) -> String {
        let what = format!("{} ({})", self.mime, size(self.bytes.len()));
        match self.save(place) {
            Ok(path) => format!("{what}: {}", path.display()),
            Err(error) => format!("{what}: not saved: {error}"),
        }
    }

    /// The sequence that shows it.
    fn picture(&self, screen: &Screen) -> Option<String> {
        if !screen.is_terminal() || !self.mime.starts_with("image/") || self.bytes.len() > MAX_SHOWN {
            return None;
        }
        let width = terminal::width(screen.columns());
        match terminal::hint(|name| std::env::var(name).unwrap_or_default()) {
            Hint::Shows(protocol) => self.sequence(protocol, width),
            // The terminal is asked only if there is something to show.
            Hint::Ask => self.sequence(Protocol::Sixel, width).filter(|_| terminal::answers_sixel()),
            Hint::Nothing => None,
        }
    }

    /// The sequence of this protocol, in a terminal of so many pixels across.
    fn sequence(&self, protocol: Protocol, width: usize) -> Option<String> {
        let raster = || Some(Raster::decode(&self.bytes)?.fitted(width, MAX_ROWS));
        match protocol {
            Protocol::Iterm => {
                let (length, data) = (self.bytes.len(), STANDARD.encode(&self.bytes));
                Some(format!("\u{1b}]1337;File=inline=1;size={length};preserveAspectRatio=1:{data}\u{7}"))
            }
            Protocol::Kitty if raster::is_png(&self.bytes) => Some(kitty::png(&self.bytes)),
            Protocol::Kitty => Some(kitty::pixels(&raster()?)),
            Protocol::Sixel => Some(sixel::encoded(&raster()?)),
        }
    }

    fn save(&self, place: &Place) -> std::io::Result<PathBuf> {
        let suffix = format!(".{}", self.extension());
        let mut builder = tempfile::Builder::new();
        builder.prefix("tricorn-").suffix(&suffix);
        let mut file = match place {
            Place::Temporary => builder.tempfile()?,
            Place::Folder(folder) => {
                std::fs::create_dir_all(folder)?;
                builder.tempfile_in(folder)?
            }
        };
        file.write_all(&self.bytes)?;
        file.keep().map(|(_, path)| path).map_err(|error| error.error)
    }

    fn extension(&self) -> String {
        let essence = self.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known = match essence.as_str() {
            "image/jpeg" => "jpg",
            "image/svg+xml" => "svg",
            "image/x-icon" | "image/vnd.microsoft.icon" => "ico",
            "audio/mpeg" => "mp3",
            "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
            "text/plain" => "txt",
            "application/octet-stream" => "bin",
            _ => "",
        };
        let is_generic = matches!(known, "txt" | "bin");
        if !known.is_empty() && !is_generic {
            return known.to_owned();
        }
        let is_certain = ["image/", "audio/", "video/"].iter().any(|kind| essence.starts_with(kind));
        if let Some(ending) = self.ending.as_ref().filter(|_| !is_certain) {
            return ending.clone();
        }
        if is_generic {
            return known.to_owned();
        }
        let sub = essence.rsplit('/').next().unwrap_or_default();
        let sub: String = sub.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        if sub.is_empty() { "bin".to_owned() } else { sub }
    }
}

/// Bytes in a unit for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_end_as_their_types_do() {
        let of = |mime: &str| Media::decoded("", Some(mime)).unwrap().extension();
        assert_eq!(of("image/png"), "png");
        assert_eq!(of("image/svg+xml; charset=utf-8"), "svg");
        assert_eq!(of("x/../../etc"), "etc");
        assert_eq!(of(""), "bin");
        let named = |mime: &str, uri: &str| Media::decoded("", Some(mime)).unwrap().named_by(uri).extension();
        let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        assert_eq!(named(sheet, "excel-mcp://workbook/a.XLSX?sheet=1"), "xlsx");
        assert_eq!(named("application/gzip", "demo://resource/x.tar.gz"), "gz");
        assert_eq!(named("application/octet-stream", "file:///a.wasm"), "wasm");
        assert_eq!(named("application/octet-stream", "file:///a.b/c"), "bin");
        assert_eq!(named("image/png", "file:///a.exe"), "png");
        assert_eq!(size(1536), "1.5 KiB");
        assert!(Media::decoded("aGk", None).is_some_and(|media| media.bytes == b"hi"));
    }

    #[test]
    fn kitty_gets_a_png_as_it_is_and_the_pixels_of_others() {
        let of = |data: &str| Media::decoded(data, Some("image/gif")).unwrap();
        let gif =
            "R0lGODdhEAAIAIEAAP8AAAAA/wAAAAAAACwAAAAAEAAIAAAIJAABCBwoMIDBgwYJEkSIUOFAhgcdFoQYQCIAihUlYrS4USPFgAA7";
        let pixels = of(gif).sequence(Protocol::Kitty, 640).unwrap();
        assert!(pixels.starts_with("\u{1b}_Ga=T,f=32,s=16,v=8,m=0;/wAA//8AAP"), "{pixels}");
        let small = of(gif).sequence(Protocol::Kitty, 8).unwrap();
        assert!(small.starts_with("\u{1b}_Ga=T,f=32,s=8,v=4,m=0;"), "{small}");
        assert_eq!(
            of("iVBORw0KGgo=").sequence(Protocol::Kitty, 640).unwrap(),
            "\u{1b}_Ga=T,f=100,m=0;iVBORw0KGgo=\u{1b}\\"
        );
        assert_eq!(of("PHN2Zy8+").sequence(Protocol::Kitty, 640), None);
        assert_eq!(of("PHN2Zy8+").sequence(Protocol::Sixel, 640), None);
    }
}
