//! Images, sounds and other bytes: shown where the terminal can, saved where not.

use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::screen::Screen;

/// The longest image that is shown in the terminal, in bytes.
const MAX_SHOWN: usize = 8 << 20;
/// Characters of one piece of an image for kitty.
const PIECE: usize = 4096;

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
}

/// The terminals that show images.
#[derive(Clone, Copy, PartialEq)]
enum Terminal {
    Kitty,
    Iterm,
}

fn terminal() -> Option<Terminal> {
    let named = |name: &str| std::env::var(name).unwrap_or_default();
    // Within these the sequences go astray.
    if !named("TMUX").is_empty() || named("TERM").starts_with("screen") {
        return None;
    }
    let program = named("TERM_PROGRAM");
    if !named("KITTY_WINDOW_ID").is_empty() || named("TERM") == "xterm-kitty" || program == "ghostty" {
        return Some(Terminal::Kitty);
    }
    matches!(program.as_str(), "iTerm.app" | "WezTerm").then_some(Terminal::Iterm)
}

impl Media {
    /// Reads base64, padded or not.
    pub(crate) fn decoded(data: &str, mime: Option<&str>) -> Option<Self> {
        let data: String = data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(&data).or_else(|_| STANDARD_NO_PAD.decode(data.trim_end_matches('='))).ok()?;
        Some(Self { bytes, mime: mime.unwrap_or("application/octet-stream").to_owned() })
    }

    /// The line that says what it is and where: it is shown, if it is an image and the terminal can, and saved.
    pub(crate) fn place(&self, screen: &Screen, place: &Place) -> String {
        let what = format!("{} ({})", screen.for_output(&self.mime), size(self.bytes.len()));
        let shown = self.picture(screen).map(|picture| format!("{picture}\n")).unwrap_or_default();
        match self.save(place) {
            Ok(path) => format!("{shown}{what}: {}", path.display()),
            Err(error) => format!("{shown}{what}: not saved: {error}"),
        }
    }

    /// The sequence that shows it.
    fn picture(&self, screen: &Screen) -> Option<String> {
        if !screen.is_terminal() || !self.mime.starts_with("image/") || self.bytes.len() > MAX_SHOWN {
            return None;
        }
        let data = STANDARD.encode(&self.bytes);
        match terminal()? {
            Terminal::Iterm => {
                Some(format!("\u{1b}]1337;File=inline=1;size={};preserveAspectRatio=1:{data}\u{7}", self.bytes.len()))
            }
            Terminal::Kitty if self.mime == "image/png" => {
                let pieces: Vec<_> = data.as_bytes().chunks(PIECE).map(String::from_utf8_lossy).collect();
                let last = pieces.len().saturating_sub(1);
                let piece = |(at, piece): (usize, &std::borrow::Cow<'_, str>)| {
                    let head = if at == 0 { "a=T,f=100," } else { "" };
                    format!("\u{1b}_G{head}m={};{piece}\u{1b}\\", u8::from(at != last))
                };
                Some(pieces.iter().enumerate().map(piece).collect())
            }
            Terminal::Kitty => None,
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
        if !known.is_empty() {
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
mod tests {
    use super::*;

    #[test]
    fn names_end_as_their_types_do() {
        let of = |mime: &str| Media { bytes: Vec::new(), mime: mime.to_owned() }.extension();
        assert_eq!(of("image/png"), "png");
        assert_eq!(of("image/svg+xml; charset=utf-8"), "svg");
        assert_eq!(of("x/../../etc"), "etc");
        assert_eq!(of(""), "bin");
        assert_eq!(size(1536), "1.5 KiB");
        assert!(Media::decoded("aGk", None).is_some_and(|media| media.bytes == b"hi"));
    }
}
