//! Tables for people: columns as wide as their widest cell, two spaces between.
//!
//! Control characters of a cell are shown, not obeyed: what an agent printed must not steer the
//! terminal of who looks at it.

use super::style::Style;

/// One cell: its text, and whether it is a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// As it is.
    Text(String),
    /// Coloured as a state.
    State(String),
}

impl Cell {
    /// A cell of text.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a cell is made of what is at hand, own or lent"
    )]
    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    /// A cell of text that may be absent.
    pub fn maybe<T: ToString>(text: Option<T>) -> Self {
        Self::Text(text.map_or_else(|| "-".to_owned(), |text| text.to_string()))
    }

    /// A cell that holds a state.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a cell is made of what is at hand, own or lent"
    )]
    pub fn state(word: impl ToString) -> Self {
        Self::State(word.to_string())
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::State(text) => plain(text),
        }
    }
}

/// One line of text without control characters.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// The table; without rows, only its head.
pub fn table(head: &[&str], rows: &[Vec<Cell>], style: Style) -> String {
    let mut widths: Vec<usize> = head.iter().map(|name| name.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.shown().chars().count());
        }
    }
    let mut text = line(head.iter().map(|name| (name.to_uppercase(), name.len())), &widths);
    for row in rows {
        text.push_str(&line(row.iter().map(|cell| painted(cell, style)), &widths));
    }
    text
}

fn painted(cell: &Cell, style: Style) -> (String, usize) {
    let shown = cell.shown();
    let width = shown.chars().count();
    match cell {
        Cell::Text(_) => (shown, width),
        Cell::State(_) => (style.state(&shown), width),
    }
}

fn line(cells: impl Iterator<Item = (String, usize)>, widths: &[usize]) -> String {
    let mut text = String::new();
    for ((cell, own), width) in cells.zip(widths) {
        text.push_str(&cell);
        text.push_str(&" ".repeat(width - own + 2));
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![
            vec![Cell::text("build"), Cell::state("accepted"), Cell::text(1)],
            vec![Cell::text("a"), Cell::state("failed"), Cell::maybe::<u32>(None)],
        ];
        let expected = "UNIT   STATE     N\nbuild  accepted  1\na      failed    -\n";
        assert_eq!(table(&["unit", "state", "n"], &rows, Style::new(false)), expected);
        let coloured = table(&["unit", "state", "n"], &rows, Style::new(true));
        assert!(coloured.contains("a      \u{1b}[31mfailed\u{1b}[0m    -"), "{coloured:?}");
    }

    #[test]
    fn what_an_agent_printed_does_not_steer_the_terminal() {
        let rows = vec![vec![Cell::text("a\u{1b}[2Jb\nc")]];
        assert_eq!(table(&["x"], &rows, Style::new(true)), "X\na\\u{1b}[2Jb\\nc\n");
    }
}
