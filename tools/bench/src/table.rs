//! Tables of figures for people: aligned columns with the unit in the head.

use super::spread::Spread;
use std::fmt::Write;

/// A column: its head, with the unit, and the cell that a row has in it.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// A table whose columns are as wide as their widest cell. Numbers stand to the right, the last column to the left.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The table of these rows.
    pub(crate) fn of<R>(rows: &[R], columns: &[Column<R>]) -> Self {
        let cells = |row| columns.iter().map(|(_, cell)| cell(row)).collect();
        Table {
            head: columns.iter().map(|(head, _)| *head).collect(),
            rows: rows.iter().map(cells).collect(),
        }
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
pub(crate) fn figure(value: impl Into<Option<f64>>, decimals: usize) -> String {
    value.into().map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// A time in ms.
pub(crate) fn ms(us: Option<u32>) -> String {
    figure(us.map(|us| f64::from(us) / 1e3), 1)
}

impl Spread {
    /// Nanoseconds, shown as microseconds.
    pub(crate) fn shown(self) -> String {
        let us = |ns: u64| figure(Some(ns as f64 / 1_000.0), 2);
        format!("{} / {} / {}", us(self.p50), us(self.p99), us(self.longest))
    }

    /// As they are.
    pub(crate) fn plain(self) -> String {
        format!("{} / {} / {}", self.p50, self.p99, self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [("10", Some(5.25), ""), ("160", None, "too much")];
        let table = Table::of(
            &rows,
            &[
                ("rooms", |row| row.0.to_owned()),
                ("µs", |row| figure(row.1, 1)),
                ("void", |row| row.2.to_owned()),
            ],
        );
        assert_eq!(table.render(), "rooms   µs  void\n   10  5.2\n  160    –  too much");
    }
}
