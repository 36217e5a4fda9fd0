//! Lists for people.

use comfy_table::{ColumnConstraint, ContentArrangement, Width};
use unicode_width::UnicodeWidthStr;

use super::screen::Screen;
use super::text::shown;

/// A table without lines: the first columns as wide as they need, the last one wrapped.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    columns: usize,
}

impl Table {
    pub(crate) fn new(screen: &Screen) -> Self {
        Self { rows: Vec::new(), columns: screen.columns() }
    }

    /// Adds a row of what a server says.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.map(|cell| shown(cell).into_owned()).into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table, indented by two.
    pub(crate) fn text(&self) -> String {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::TableStyle::new());
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let width = self.columns.saturating_sub(2).max(20);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        for row in &self.rows {
            table.add_row(row);
        }
        // A column before the last may take so much of the width.
        let most = width / count.max(1);
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if at + 1 < count { 2 } else { 0 }));
            let needed = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0);
            if at + 1 < count && needed <= most {
                let needed = u16::try_from(needed + 2).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(needed)));
            }
        }
        table.lines().map(|line| format!("  {}\n", line.trim_end()).replace("  \n", "\n")).collect()
    }
}

/// Wraps a text of a server to the width of the terminal, indented.
pub(crate) fn wrapped(screen: &Screen, text: &str, indent: &str) -> String {
    let options = textwrap::Options::new(screen.columns()).initial_indent(indent).subsequent_indent(indent);
    let safe = shown(text);
    let lines = safe.trim().lines().map(|line| textwrap::fill(line.trim_end(), &options));
    lines.collect::<Vec<_>>().join("\n")
}
