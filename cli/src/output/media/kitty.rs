//! Pictures for kitty, in pieces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::raster::Raster;

/// Characters of one piece.
const PIECE: usize = 4096;

/// The sequences that show a PNG as it is.
pub(super) fn png(bytes: &[u8]) -> String {
    pieces("f=100", bytes)
}

/// The sequences that show pixels.
pub(super) fn pixels(raster: &Raster) -> String {
    pieces(&format!("f=32,s={},v={}", raster.width, raster.height), &raster.pixels)
}

fn pieces(format: &str, bytes: &[u8]) -> String {
    let data = STANDARD.encode(bytes);
    let pieces: Vec<_> = data.as_bytes().chunks(PIECE).map(String::from_utf8_lossy).collect();
    let last = pieces.len().saturating_sub(1);
    let piece = |(at, piece): (usize, &std::borrow::Cow<'_, str>)| {
        let head = if at == 0 { format!("a=T,{format},") } else { String::new() };
        format!("\u{1b}_G{head}m={};{piece}\u{1b}\\", u8::from(at != last))
    };
    pieces.iter().enumerate().map(piece).collect()
}
