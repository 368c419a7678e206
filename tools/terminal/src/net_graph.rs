//! Parts of pictures of a link: graphs of measurements, and names with their values.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline, Widget};
use std::collections::VecDeque;

use crate::costs::Rows;
use crate::palette::{FAINT, TEXT};
use crate::text::fit;

/// How many past values a graph keeps.
pub const HISTORY: usize = 120;
/// Rows of a graph, its name included.
pub const GRAPH: u16 = 3;

/// Adds a value to a graph.
pub fn push(history: &mut VecDeque<u64>, value: u64) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(value);
}

/// The newest value of a graph as a text.
pub fn newest(history: &VecDeque<u64>) -> String {
    history.back().map_or_else(|| "–".to_owned(), u64::to_string)
}

/// A graph whose newest value is at the right: below its label, or behind it in one row.
pub fn draw_graph(area: Rect, buffer: &mut Buffer, history: &VecDeque<u64>, label: &str, colour: Color) {
    let wide = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let [top, plot] = if area.height > 1 {
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(wide)
    } else {
        Layout::horizontal([Constraint::Length(12), Constraint::Fill(1)]).areas(wide)
    };
    Line::styled(fit(label, usize::from(top.width)), TEXT).render(top, buffer);
    let highest = history.iter().max().copied().unwrap_or(0);
    // A line that is quiet lies in the middle, not at the top.
    let scale = (highest + highest / 3).max(10);
    let data: Vec<u64> = history.iter().rev().take(usize::from(plot.width)).copied().collect();
    Sparkline::default()
        .data(data)
        .max(scale)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().fg(colour))
        .render(plot, buffer);
}

/// Names and values below each other, as many as there is room for.
pub fn draw_rows(area: Rect, buffer: &mut Buffer, rows: &Rows) {
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for ((name, value), y) in rows.iter().zip(area.y..area.bottom()) {
        let row = Rect { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 };
        let columns = usize::from(row.width).saturating_sub(names + 1);
        let spans = [Span::styled(fit(name, names + 1), FAINT), Span::styled(fit(value, columns), TEXT)];
        Line::from_iter(spans).render(row, buffer);
    }
}
