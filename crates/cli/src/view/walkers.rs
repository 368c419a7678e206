//! The picture of `parlor walkers`: the ground around one's own walker as far as it sees, and what that costs.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Widget};

use super::palette::{ACCENT, Depth, FAINT, GRID, GROUND, TEXT, mix, player, rgb};
use super::text::{clean, fit};
use crate::costs::Rows;

/// Columns of the figures beside the ground.
const FIGURES: u16 = 34;
/// Metres between two lines of the grid.
const GRID_M: f32 = 16.0;

/// A walker that is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mark {
    /// Where, in metres.
    pub at: [f32; 2],
    /// Where it looks: a turn is 1, 0 is east, a quarter is south.
    pub heading: f32,
    /// Whether a member steers it.
    pub is_steered: bool,
}

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ground {
    /// One's own walker, once it is there.
    pub me: Option<Mark>,
    /// All others that are seen.
    pub others: Vec<Mark>,
    /// How far a member sees, in metres.
    pub radius_m: f32,
    /// Side of the world, in metres.
    pub side_m: f32,
    /// What stands beside it: names and values, from the top.
    pub figures: Rows,
    /// What is said at the bottom.
    pub notice: String,
}

/// Draws everything into the frame, in the colours that the terminal has.
pub(crate) fn draw_walkers(frame: &mut Frame<'_>, ground: &Ground, depth: Depth) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let parts = [Constraint::Fill(1), Constraint::Length(FIGURES.min(area.width / 2))];
    let [left, right] = Layout::horizontal(parts).areas(area);
    draw_ground(left, buffer, ground);
    draw_figures(right, buffer, ground);
    depth.apply(buffer);
}

fn draw_ground(area: Rect, buffer: &mut Buffer, ground: &Ground) {
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(rgb(mix(GRID, [255; 3], 0.25))))
        .title_top(Line::styled(" walkers ", ACCENT))
        .title_bottom(Line::styled(format!(" {} ", clean(&ground.notice)), FAINT));
    let inner = block.inner(area);
    block.render(area, buffer);
    buffer.set_style(inner, Style::new().bg(rgb(GROUND)));
    let Some(me) = ground.me else { return };
    let lens = Lens::new(inner, me.at, ground.radius_m);
    lens.floor(buffer, ground);
    for walker in &ground.others {
        let colour = if walker.is_steered { rgb(player(0)) } else { TEXT };
        lens.put(buffer, walker.at, arrow(walker.heading), Style::new().fg(colour));
    }
    lens.put(buffer, me.at, arrow(me.heading), Style::new().fg(ACCENT).bold().reversed());
}

/// From metres to cells: one's own walker is in the middle, and what it sees fills the area.
struct Lens {
    area: Rect,
    centre: [f32; 2],
    /// Metres that a row is high; a column is half as wide.
    row_m: f32,
}

impl Lens {
    fn new(area: Rect, centre: [f32; 2], radius_m: f32) -> Self {
        let fits = f32::from(area.height).min(f32::from(area.width) / 2.0).max(1.0);
        Lens { area, centre, row_m: (2.0 * radius_m / fits).max(0.01) }
    }

    /// The middle of a cell, in metres.
    fn place(&self, x: u16, y: u16) -> [f32; 2] {
        let columns = f32::from(x - self.area.x) + 0.5 - f32::from(self.area.width) / 2.0;
        let rows = f32::from(y - self.area.y) + 0.5 - f32::from(self.area.height) / 2.0;
        [self.centre[0] + columns * self.row_m / 2.0, self.centre[1] + rows * self.row_m]
    }

    /// The cell of a place, if it is on the screen.
    fn cell(&self, at: [f32; 2]) -> Option<(u16, u16)> {
        let columns = (at[0] - self.centre[0]) * 2.0 / self.row_m + f32::from(self.area.width) / 2.0;
        let rows = (at[1] - self.centre[1]) / self.row_m + f32::from(self.area.height) / 2.0;
        let is_within = |value: f32, size: u16| (0.0..f32::from(size)).contains(&value);
        if !is_within(columns, self.area.width) || !is_within(rows, self.area.height) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the area")]
        Some((self.area.x + columns as u16, self.area.y + rows as u16))
    }

    fn put(&self, buffer: &mut Buffer, at: [f32; 2], symbol: &str, style: Style) {
        if let Some(place) = self.cell(at) {
            buffer[place].set_symbol(symbol).set_style(style);
        }
    }

    /// The grid, brighter as far as one sees, and nothing beyond the world's edge.
    fn floor(&self, buffer: &mut Buffer, ground: &Ground) {
        for y in self.area.y..self.area.bottom() {
            for x in self.area.x..self.area.right() {
                let at = self.place(x, y);
                let is_in_world = at.iter().all(|metres| (0.0..=ground.side_m).contains(metres));
                let away = (at[0] - self.centre[0]).hypot(at[1] - self.centre[1]);
                let is_seen = away <= ground.radius_m;
                let colour = if is_seen { mix(GRID, [255; 3], 0.08) } else { mix(GRID, GROUND, 0.6) };
                let cell = &mut buffer[(x, y)];
                if !is_in_world {
                    cell.set_symbol("╱").set_fg(rgb(GRID));
                } else if is_seen {
                    cell.set_bg(rgb(mix(GROUND, [255; 3], 0.03)));
                }
                let on_line = |metres: f32, size: f32| metres.rem_euclid(GRID_M) < size;
                if is_in_world && on_line(at[0], self.row_m / 2.0) && on_line(at[1], self.row_m) {
                    cell.set_symbol("·").set_fg(rgb(colour));
                }
            }
        }
    }
}

fn arrow(heading: f32) -> &'static str {
    const ARROWS: [&str; 8] = ["→", "↘", "↓", "↙", "←", "↖", "↑", "↗"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 8")]
    let eighth = (heading.rem_euclid(1.0) * 8.0).round() as usize;
    ARROWS[eighth % ARROWS.len()]
}

fn draw_figures(area: Rect, buffer: &mut Buffer, ground: &Ground) {
    let names = ground.figures.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for ((name, value), y) in ground.figures.iter().zip(area.y + 1..area.bottom()) {
        let row = Rect { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 };
        let columns = usize::from(row.width).saturating_sub(names + 1);
        let line = Line::from_iter([
            ratatui::text::Span::styled(fit(name, names + 1), FAINT),
            ratatui::text::Span::styled(fit(value, columns), TEXT),
        ]);
        line.render(row, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn mark(x: f32, y: f32) -> Mark {
        Mark { at: [x, y], heading: 0.25, is_steered: false }
    }

    fn picture(ground: &Ground) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(100, 32)).unwrap();
        terminal.draw(|frame| draw_walkers(frame, ground, Depth::True)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        (0..buffer.area.height).map(row).collect()
    }

    #[test]
    fn what_is_seen_stands_where_it_is() {
        let ground = Ground {
            me: Some(mark(100.0, 100.0)),
            others: vec![mark(130.0, 100.0), mark(100.0, 70.0), mark(500.0, 500.0)],
            radius_m: 64.0,
            side_m: 512.0,
            figures: vec![("seen", "2 of 1000".into())],
            notice: String::new(),
        };
        let rows = picture(&ground);
        let arrows: Vec<(usize, usize)> = rows
            .iter()
            .enumerate()
            .flat_map(|(y, row)| {
                let found = row.chars().enumerate().filter(|(_, symbol)| *symbol == '↓');
                found.map(move |(x, _)| (x, y)).collect::<Vec<_>>()
            })
            .collect();
        let [north, me, east] = arrows[..] else { panic!("{arrows:?}\n{}", rows.join("\n")) };
        assert_eq!(north.0, me.0, "one is straight above");
        assert_eq!(east.1, me.1, "one is straight to the right");
        assert!(rows.iter().any(|row| row.contains("2 of 1000")));
    }

    #[test]
    fn nothing_breaks_at_any_size() {
        let ground = Ground {
            me: Some(mark(0.0, 512.0)),
            others: vec![mark(-5.0, 600.0)],
            radius_m: 0.0,
            side_m: 512.0,
            figures: vec![("seen", "x".repeat(100)); 50],
            notice: "\u{1b}[2J".into(),
        };
        for (width, height) in [(1, 1), (2, 2), (3, 40), (200, 3), (40, 12)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw_walkers(frame, &ground, Depth::Indexed)).unwrap();
        }
    }
}
