//! Tables of figures for people: aligned columns with the unit in the head.

use std::fmt::Write;

/// A table whose columns are as wide as their widest cell. Numbers stand to the right, the last column to the left.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// The whole table as text, without a line break at its end.
    pub(crate) fn render(&self) -> String {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| width(&row[column]));
                cells.chain([width(self.head[column])]).max().unwrap_or(0)
            })
            .collect();
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let is_last = column + 1 == row.len();
                // Writing to a String cannot fail.
                let _ = if is_last { write!(line, "{cell}") } else { write!(line, "{cell:>width$}  ") };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.pop();
        text
    }
}

/// A figure with so many decimals, or a dash where there is none.
pub(crate) fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["rooms", "µs", "void"]);
        table.row(vec!["10".into(), figure(Some(5.25), 1), String::new()]);
        table.row(vec!["160".into(), figure(None, 1), "too much".into()]);
        assert_eq!(table.render(), "rooms   µs  void\n   10  5.2\n  160    –  too much");
    }
}
