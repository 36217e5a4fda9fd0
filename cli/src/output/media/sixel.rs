//! Pictures for terminals with sixel: bands of six rows, each drawn once for each of its colours.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use color_quant::NeuQuant;

use super::raster::{DEPTH, Raster};

/// The most colours of a picture.
const COLOURS: usize = 256;
/// Opacity from which on a pixel is drawn.
const OPAQUE: u8 = 128;
/// Pixels that the colours are learnt from, more or less: all of a small picture.
const SAMPLES: usize = 30_000;
/// Rows of a band.
const ROWS: usize = 6;

type Colour = [u8; 3];

/// The sequence that draws it. Pixels that are rather transparent stay as the terminal has them.
pub(super) fn encoded(raster: &Raster) -> String {
    let (colours, pixels) = reduced(raster);
    // Square pixels; those that are not drawn keep their colour.
    let mut text = format!("\u{1b}P0;1;0q\"1;1;{};{}", raster.width, raster.height);
    for (number, [red, green, blue]) in colours.iter().enumerate() {
        let _ = write!(text, "#{number};2;{red};{green};{blue}");
    }
    for (number, rows) in pixels.chunks(raster.width * ROWS).enumerate() {
        if number > 0 {
            text.push('-');
        }
        band(&mut text, rows, raster.width);
    }
    text.push_str("\u{1b}\\");
    text
}

/// Writes a line for each colour of the band, one over the other.
fn band(text: &mut String, rows: &[Option<u8>], width: usize) {
    let mut lines = BTreeMap::new();
    for (y, row) in rows.chunks(width).enumerate() {
        for (x, colour) in row.iter().enumerate() {
            if let Some(colour) = colour {
                lines.entry(*colour).or_insert_with(|| vec![0; width])[x] |= 1u8 << y;
            }
        }
    }
    for (at, (colour, line)) in lines.iter().enumerate() {
        let _ = write!(text, "{}#{colour}", if at > 0 { "$" } else { "" });
        let mut runs = line.chunk_by(|left, right| left == right).peekable();
        while let Some(run) = runs.next() {
            // Nothing is drawn at the end of the line.
            if runs.peek().is_some() || run[0] != 0 {
                repeat(text, char::from(b'?' + run[0]), run.len());
            }
        }
    }
}

fn repeat(text: &mut String, character: char, count: usize) {
    if count > 3 {
        let _ = write!(text, "!{count}{character}");
    } else {
        text.extend(std::iter::repeat_n(character, count));
    }
}

/// The colours in per cent, and the number of each pixel's.
fn reduced(raster: &Raster) -> (Vec<Colour>, Vec<Option<u8>>) {
    let drawn = |pixel: &[u8]| (pixel[3] >= OPAQUE).then(|| [pixel[0], pixel[1], pixel[2]]);
    let pixels: Vec<Option<Colour>> = raster.pixels.chunks_exact(DEPTH).map(drawn).collect();
    if let Some(colours) = few(pixels.iter().flatten()) {
        let number = |colour: Colour| colours.binary_search(&per_cent(colour)).unwrap_or_default() as u8;
        let numbers = pixels.iter().map(|pixel| pixel.map(number)).collect();
        return (colours, numbers);
    }
    let opaque: Vec<u8> = pixels.iter().flatten().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect();
    let one_of = (opaque.len() / DEPTH / SAMPLES).clamp(1, 30) as i32;
    let net = NeuQuant::new(one_of, COLOURS, &opaque);
    let mut known = HashMap::new();
    let mut number = |colour: Colour| {
        // Without the last two bits, which 256 colours do not tell apart, few have to be looked up.
        let [red, green, blue] = colour.map(|value| (value & !3) | 2);
        *known.entry([red, green, blue]).or_insert_with(|| net.index_of(&[red, green, blue, 255]) as u8)
    };
    let numbers = pixels.iter().map(|pixel| pixel.map(&mut number)).collect();
    let colours =
        net.color_map_rgb().chunks_exact(3).map(|colour| per_cent([colour[0], colour[1], colour[2]])).collect();
    (colours, numbers)
}

/// All colours in per cent, in order, if there are few.
fn few<'a>(pixels: impl Iterator<Item = &'a Colour>) -> Option<Vec<Colour>> {
    let mut found = BTreeSet::new();
    for pixel in pixels {
        found.insert(per_cent(*pixel));
        if found.len() > COLOURS {
            return None;
        }
    }
    Some(found.into_iter().collect())
}

fn per_cent(colour: Colour) -> Colour {
    colour.map(|value| ((u32::from(value) * 100 + 127) / 255) as u8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn raster(width: usize, pixels: &[[u8; DEPTH]]) -> Raster {
        Raster { width, height: pixels.len() / width, pixels: pixels.concat() }
    }

    /// Draws what a sequence says.
    fn drawn(text: &str) -> Vec<Vec<Option<Colour>>> {
        let text = text.strip_prefix("\u{1b}P0;1;0q\"1;1;").unwrap().strip_suffix("\u{1b}\\").unwrap();
        let part = regex::Regex::new("#[0-9;]+|![0-9]+[?-~]|[?-~$-]").unwrap();
        let (size, _) = text.split_at(text.find('#').unwrap_or(text.len()));
        let (width, height) = size.split_once(';').unwrap();
        let mut picture = vec![vec![None; width.parse().unwrap()]; height.parse().unwrap()];
        let (mut colours, mut colour, mut x, mut y) = (HashMap::new(), 0, 0, 0);
        for part in part.find_iter(&text[size.len()..]).map(|found| found.as_str()) {
            let numbers = || part[1..].split(';').map(|number| number.parse::<usize>().unwrap());
            match part.as_bytes()[0] {
                b'#' => {
                    colour = numbers().next().unwrap();
                    if let [_, 2, red, green, blue] = numbers().collect::<Vec<_>>()[..] {
                        colours.insert(colour, [red, green, blue].map(|value| value as u8));
                    }
                }
                b'$' => x = 0,
                b'-' => (x, y) = (0, y + ROWS),
                _ => {
                    let count = part.get(1..part.len() - 1).and_then(|count| count.parse().ok()).unwrap_or(1);
                    let mask = part.as_bytes()[part.len() - 1] - b'?';
                    for _ in 0..count {
                        (0..ROWS)
                            .filter(|row| (mask >> row) & 1 == 1)
                            .for_each(|row| picture[y + row][x] = Some(colours[&colour]));
                        x += 1;
                    }
                }
            }
        }
        picture
    }

    #[test]
    fn one_pixel_is_one_sixel() {
        let text = encoded(&raster(1, &[[255, 0, 127, 255]]));
        assert_eq!(text, "\u{1b}P0;1;0q\"1;1;1;1#0;2;100;0;50#0@\u{1b}\\");
        assert_eq!(encoded(&raster(1, &[[255, 0, 127, 0]])), "\u{1b}P0;1;0q\"1;1;1;1\u{1b}\\");
    }

    #[test]
    fn runs_are_counted() {
        let (red, blue) = ([255, 0, 0, 255], [0, 0, 255, 255]);
        let text = encoded(&raster(9, &[red, blue, blue, blue, blue, blue, red, red, red]));
        assert_eq!(text, "\u{1b}P0;1;0q\"1;1;9;1#0;2;0;0;100#1;2;100;0;0#0?!5@$#1@!5?@@@\u{1b}\\");
    }

    #[test]
    fn few_colours_are_drawn_as_they_are() {
        let pixels: Vec<[u8; DEPTH]> = (0..20 * 13)
            .map(|at| [(at * 7 % 5 * 60) as u8, (at % 3 * 100) as u8, 255, if at % 11 == 0 { 0 } else { 255 }])
            .collect();
        let picture = drawn(&encoded(&raster(20, &pixels)));
        assert_eq!(picture.len(), 13);
        for (shown, pixel) in picture.iter().flatten().zip(&pixels) {
            assert_eq!(*shown, (pixel[3] > 0).then(|| per_cent([pixel[0], pixel[1], pixel[2]])));
        }
    }

    #[test]
    fn many_colours_become_256_near_ones() {
        let pixels: Vec<[u8; DEPTH]> =
            (0..64 * 64).map(|at| [(at % 64 * 4) as u8, (at / 64 * 4) as u8, 128, 255]).collect();
        let text = encoded(&raster(64, &pixels));
        let picture = drawn(&text);
        let used: BTreeSet<_> = picture.iter().flatten().flatten().collect();
        assert!((65..=COLOURS).contains(&used.len()), "{}", used.len());
        for (shown, pixel) in picture.iter().flatten().zip(&pixels) {
            let wanted = per_cent([pixel[0], pixel[1], pixel[2]]);
            let far = shown.unwrap().iter().zip(wanted).map(|(value, wanted)| value.abs_diff(wanted)).max();
            assert!(far < Some(16), "{shown:?} {wanted:?}");
        }
    }
}
