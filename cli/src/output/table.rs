//! Lists for people.

use unicode_width::UnicodeWidthStr;

use super::screen::Screen;
use super::text::{Style, shown};

/// Blanks between two columns, and before the first.
const GAP: usize = 2;

/// Columns that a description should have.
const READABLE: usize = 40;

/// Rows of a name, notes and a description that is wrapped. Where a name is too long for its column, the rest of the row
/// begins on the next line.
pub(crate) struct Table {
    rows: Vec<[String; 3]>,
    columns: usize,
    style: Style,
}

impl Table {
    pub(crate) fn new(screen: &Screen) -> Self {
        Self { rows: Vec::new(), columns: screen.columns(), style: screen.style() }
    }

    /// Adds a row of what a server says.
    pub(crate) fn row(&mut self, cells: [&str; 3]) {
        self.rows.push(cells.map(|cell| shown(cell).split_whitespace().collect::<Vec<_>>().join(" ")));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, indented.
    pub(crate) fn text(&self) -> String {
        let (names, notes) = (self.width(0, self.columns * 2 / 5), self.width(1, self.columns * 3 / 10));
        let mut text = String::new();
        for row in &self.rows {
            self.write(&mut text, row, names, notes);
        }
        text
    }

    /// The width of a column: as wide as its widest cell that is not wider than this.
    fn width(&self, at: usize, most: usize) -> usize {
        let widths = self.rows.iter().map(|row| row[at].width());
        widths.filter(|width| *width <= most).max().unwrap_or_default()
    }

    fn write(&self, text: &mut String, [name, notes, description]: &[String; 3], names: usize, noted: usize) {
        let gap = |width: usize| if width == 0 { 0 } else { width + GAP };
        let (first, second) = (GAP, GAP + gap(names));
        // Where little room is left for descriptions they stand below the notes.
        let is_stacked = self.columns < second + gap(noted) + READABLE;
        let fits = second + notes.width() + GAP + description.width() <= self.columns;
        let third = match (is_stacked, fits) {
            (false, _) => second + gap(noted),
            (true, true) => second + gap(notes.width()),
            (true, false) => second,
        };
        let mut at = first;
        text.push_str(&" ".repeat(first));
        text.push_str(&self.style.name(name));
        at += name.width();
        for (cell, column, is_last) in [(notes, second, false), (description, third, true)] {
            if cell.is_empty() {
                continue;
            }
            if at + GAP > column {
                text.push('\n');
                at = 0;
            }
            text.push_str(&" ".repeat(column - at));
            let room = self.columns.saturating_sub(column).max(20);
            let lines = textwrap::wrap(cell, wrapping(room));
            for (line, wrapped) in lines.iter().enumerate() {
                if line > 0 {
                    text.push_str(&format!("\n{}", " ".repeat(column)));
                }
                let shown = if is_last { wrapped.to_string() } else { self.style.dim(wrapped) };
                text.push_str(&shown);
                at = column + wrapped.width();
            }
        }
        text.push('\n');
    }
}

/// Wraps a text of a server to the width of the terminal, indented.
pub(crate) fn wrapped(screen: &Screen, text: &str, indent: &str) -> String {
    let options = wrapping(screen.columns()).initial_indent(indent).subsequent_indent(indent);
    let safe = shown(text);
    let lines = safe.trim().lines().map(|line| match line.trim_end() {
        "" => String::new(),
        line => textwrap::fill(line, &options),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines that are as full as they can be, whatever else a build has.
fn wrapping<'a>(columns: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(columns).wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_wrapped_and_long_names_stand_alone() {
        let rows = [
            ["add", "a b", "Add two numbers, however long they are"],
            ["日本語", "", "wide"],
            ["a_name_that_is_too_long", "x", "more"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned)).to_vec();
        let table = Table { rows, columns: 40, style: Style { colours: false } };
        let expected = "  add     a b\n          Add two numbers, however long\n          they are\n  日本語  wide\n  a_name_that_is_too_long\n          x  more\n";
        assert_eq!(table.text(), expected);
    }
}
