//! Pictures as pixels: decoded within bounds, and made smaller.

use std::io::Cursor;
use std::num::NonZeroU64;

use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The most pixels of a picture that is decoded.
const MAX_PIXELS: usize = 1 << 24;
/// Bytes of a pixel: red, green, blue and opacity.
pub(super) const DEPTH: usize = 4;
/// The most bytes that a decoder takes for itself.
const MAX_BYTES: usize = MAX_PIXELS * DEPTH;

/// The most passes over the pixels of a JPEG.
const MAX_SCANS: usize = 30;

/// Pixels, row by row.
#[derive(Debug, PartialEq)]
pub(super) struct Raster {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

/// True if these are the bytes of a PNG.
pub(super) fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

impl Raster {
    /// Decodes PNG, JPEG and the first picture of a GIF. `None`: it is another format, broken or too large.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let decode = match bytes {
            _ if is_png(bytes) => png,
            [0xff, 0xd8, ..] => jpeg,
            [b'G', b'I', b'F', b'8', ..] => gif,
            _ => return None,
        };
        // The bytes are a stranger's, and a picture that is not shown is saved all the same.
        std::panic::catch_unwind(|| decode(bytes)).ok().flatten()
    }

    /// Makes it small enough, in proportion. A pixel becomes the mean of those that it replaces.
    pub(super) fn fitted(self, width: usize, height: usize) -> Self {
        if self.width <= width && self.height <= height {
            return self;
        }
        let (width, height) = match self.width * height >= self.height * width {
            true => (width, (self.height * width / self.width).max(1)),
            false => ((self.width * height / self.height).max(1), height),
        };
        let mut pixels = Vec::with_capacity(width * height * DEPTH);
        for y in 0..height {
            let rows = y * self.height / height..(y + 1) * self.height / height;
            for x in 0..width {
                let columns = x * self.width / width..(x + 1) * self.width / width;
                let block = rows.clone().flat_map(|row| {
                    let at = row * self.width;
                    self.pixels[(at + columns.start) * DEPTH..(at + columns.end) * DEPTH].chunks_exact(DEPTH)
                });
                pixels.extend(mean(block));
            }
        }
        Self { width, height, pixels }
    }
}

/// The mean, in which a pixel counts as much as it is opaque.
fn mean<'a>(block: impl Iterator<Item = &'a [u8]>) -> [u8; DEPTH] {
    let (mut sums, mut opacity, mut count) = ([0u64; 3], 0, 0);
    for pixel in block {
        let weight = u64::from(pixel[3]);
        for (sum, value) in sums.iter_mut().zip(pixel) {
            *sum += weight * u64::from(*value);
        }
        opacity += weight;
        count += 1;
    }
    let [red, green, blue] = sums.map(|sum| (sum / opacity.max(1)) as u8);
    [red, green, blue, (opacity / count.max(1)) as u8]
}

/// The number of bytes of so many pixels, if they are few enough. Asked before anything is allocated for them.
fn room(width: usize, height: usize) -> Option<usize> {
    let pixels = width.checked_mul(height).filter(|pixels| (1..=MAX_PIXELS).contains(pixels))?;
    Some(pixels * DEPTH)
}

fn png(bytes: &[u8]) -> Option<Raster> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let info = decoder.read_header_info().ok()?;
    let (width, height) = (info.width as usize, info.height as usize);
    let mut pixels = vec![0; room(width, height)?];
    let mut reader = decoder.read_info().ok()?;
    let frame = reader.next_frame(&mut pixels).ok()?;
    // The first picture of an animation may be smaller than the canvas.
    if (frame.width as usize, frame.height as usize) != (width, height) {
        return None;
    }
    match frame.color_type {
        png::ColorType::Rgba => {}
        png::ColorType::GrayscaleAlpha => {
            let greys = pixels[..frame.buffer_size()].chunks_exact(2);
            pixels = greys.flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect();
        }
        _ => return None,
    }
    (pixels.len() == width * height * DEPTH).then_some(Raster { width, height, pixels })
}

fn jpeg(bytes: &[u8]) -> Option<Raster> {
    // Without opacity: with it, version 0.5.15 gives wrong pixels for four inks.
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB).jpeg_set_max_scans(MAX_SCANS);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    let room = room(width, height)?;
    let decoded = decoder.decode().ok()?;
    let mut pixels = Vec::with_capacity(room);
    pixels.extend(decoded.chunks_exact(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]));
    (pixels.len() == room).then_some(Raster { width, height, pixels })
}

fn gif(bytes: &[u8]) -> Option<Raster> {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    options.set_memory_limit(gif::MemoryLimit::Bytes(NonZeroU64::new(MAX_BYTES as u64)?));
    let mut decoder = options.read_info(bytes).ok()?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let mut pixels = vec![0; room(width, height)?];
    let frame = decoder.read_next_frame().ok()??;
    let (left, top, columns) = (usize::from(frame.left), usize::from(frame.top), usize::from(frame.width));
    // A picture may be smaller than the whole, or reach beyond it.
    let shown = columns.min(width.saturating_sub(left)) * DEPTH;
    let rows = pixels.chunks_exact_mut(width * DEPTH).skip(top);
    for (row, from) in rows.zip(frame.buffer.chunks_exact(columns.max(1) * DEPTH)).filter(|_| shown > 0) {
        row[left * DEPTH..][..shown].copy_from_slice(&from[..shown]);
    }
    Some(Raster { width, height, pixels })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    // Sixteen pixels by eight: the left half is red, the right one blue.
    const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19\
        iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAA\
        RCAAIABADAREAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAABf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/xAAWAQEBAQAAAAAAAAAAAAAAAAAHBQb/xAA\
        UEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwAVLbwOUBy//9k=";
    const GIF: &str =
        "R0lGODdhEAAIAIEAAP8AAAAA/wAAAAAAACwAAAAAEAAIAAAIJAABCBwoMIDBgwYJEkSIUOFAhgcdFoQYQCIAihUlYrS4USPFgAA7";
    const PALETTE: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAIAQMAAADKuO3UAAAABlBMVEX/AAAAAP9sof2OAAAAD0lEQVR4nGNg+M/EwICJABaqAQ5oyh6fA\
        AAAAElFTkSuQmCC";
    // The same of four inks.
    const INKS: &str = "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAQCwwODAoQDg0OEhEQExgoGhgWFhgxIyUdKDozPTw5Mzg3QEhcTkBEV0U3OFBtUVdfYmdoZz5NcX\
        lwZHhcZWdj/8AAFAgACAAQBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAcACP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAOBEMATQBZA\
        EsAAD8AQB+PyAz+mgE//9k=";
    // The halves in grey.
    const GREY_JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV\
        19iZ2hnPk1xeXBkeFxlZ2P/wAALCAAIABABAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AFDv/2\
        Q==";
    const GREY_DEEP: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAIEAAAAACFjfwIAAAAF0lEQVR4nGNk8GFABRdRuUwMBMDwUAAAH/UBLZWkIJYAAAAAS\
        UVORK5CYII=";
    // 80 bytes that say that they are 30,000 pixels by 30,000.
    const BOMB: &str = "iVBORw0KGgoAAAANSUhEUgAAdTAAAHUwCAYAAABmJ/i6AAAAF0lEQVR4nGNgGAWjYBSMglEwCkbBUAcAB9AAAZt5yW8AAAAASUVORK5CY\
        II=";

    fn bytes(sample: &str) -> Vec<u8> {
        STANDARD.decode(sample).unwrap()
    }

    #[test]
    fn formats_are_decoded() {
        let near = |left: u8, right: u8| left.abs_diff(right) < 12;
        for sample in [JPEG, INKS, GIF, PALETTE] {
            let raster = Raster::decode(&bytes(sample)).unwrap();
            assert_eq!((raster.width, raster.height, raster.pixels.len()), (16, 8, 512), "{sample}");
            let all = raster.pixels.chunks(DEPTH).enumerate();
            for (at, pixel) in all {
                let colour = if at % 16 < 8 { [255, 0, 0, 255] } else { [0, 0, 255, 255] };
                assert!(
                    pixel.iter().zip(colour).all(|(value, wanted)| near(*value, wanted)),
                    "{sample}: {at}: {pixel:?}"
                );
            }
        }
        for sample in [GREY_JPEG, GREY_DEEP] {
            let raster = Raster::decode(&bytes(sample)).unwrap();
            assert_eq!((raster.width, raster.height, raster.pixels.len()), (16, 8, 512), "{sample}");
            assert!(
                raster
                    .pixels
                    .chunks(DEPTH)
                    .all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2] && pixel[3] == 255)
            );
        }
        assert_eq!(Raster::decode(b"<svg/>"), None);
    }

    #[test]
    fn pictures_that_are_too_large_are_not_decoded() {
        assert_eq!(Raster::decode(&bytes(BOMB)), None);
        let large = |sample: &str, at: usize, size: [u8; 4]| {
            let mut bytes = bytes(sample);
            bytes[at..at + 4].copy_from_slice(&size);
            Raster::decode(&bytes)
        };
        assert_eq!(large(GIF, 6, [0xff; 4]), None);
        let frame = bytes(JPEG).windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        assert_eq!(large(JPEG, frame + 5, [0x3f, 0xff, 0x3f, 0xff]), None);
        assert_eq!(room(30_000, 30_000), None);
        assert_eq!(room(usize::MAX, 2), None);
        assert_eq!(room(0, 5), None);
        assert_eq!(room(4096, 4096), Some(MAX_BYTES));
    }

    #[test]
    fn broken_pictures_do_no_harm() {
        for sample in [JPEG, GIF, PALETTE, INKS, GREY_JPEG, GREY_DEEP] {
            let whole = bytes(sample);
            for at in 0..whole.len() {
                let _ = Raster::decode(&whole[..at]);
                for value in [0, 1, 0x7f, 0xff] {
                    let mut changed = whole.clone();
                    changed[at] = value;
                    let raster = Raster::decode(&changed);
                    assert!(raster.is_none_or(|raster| raster.pixels.len() == raster.width * raster.height * DEPTH));
                }
            }
        }
    }

    #[test]
    fn a_picture_of_a_gif_that_reaches_beyond_it_is_cut() {
        // The place of the picture: from the left, from the top.
        let begin = bytes(GIF).iter().position(|byte| *byte == 0x2c).unwrap();
        let moved = |left: u8, top: u8| {
            let mut bytes = bytes(GIF);
            (bytes[begin + 1], bytes[begin + 3]) = (left, top);
            Raster::decode(&bytes).unwrap().pixels
        };
        let pixels = moved(10, 7);
        assert!(pixels[..(7 * 16 + 10) * DEPTH].iter().all(|value| *value == 0));
        assert_eq!(pixels[(7 * 16 + 10) * DEPTH..], [255, 0, 0, 255].repeat(6));
        assert!(moved(200, 0).iter().chain(&moved(0, 200)).all(|value| *value == 0));
    }

    #[test]
    fn pictures_are_made_smaller_in_proportion() {
        let of =
            |width: usize, height: usize| Raster { width, height, pixels: [8, 16, 32, 255].repeat(width * height) };
        let size = |raster: Raster, width, height| {
            let raster = raster.fitted(width, height);
            assert!(raster.pixels.chunks(DEPTH).all(|pixel| pixel == [8, 16, 32, 255]));
            assert_eq!(raster.pixels.len(), raster.width * raster.height * DEPTH);
            (raster.width, raster.height)
        };
        assert_eq!(size(of(100, 50), 640, 800), (100, 50));
        assert_eq!(size(of(100, 50), 33, 800), (33, 16));
        assert_eq!(size(of(100, 50), 640, 7), (14, 7));
        assert_eq!(size(of(500, 1), 10, 800), (10, 1));
        assert_eq!(size(of(1, 500), 640, 10), (1, 10));
        let two = Raster { width: 2, height: 1, pixels: vec![200, 0, 0, 255, 0, 0, 0, 0] };
        assert_eq!(two.fitted(1, 1).pixels, [200, 0, 0, 127]);
    }
}
