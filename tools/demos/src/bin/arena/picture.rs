//! The picture: the field from above, and the net graph beside it.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Widget};
use std::collections::VecDeque;

use parlor_demos::arena::{PILLARS, RANGE_M, SIDES_M, Shot, TANK_RADIUS_M};
use parlor_terminal::costs::Rows;
use parlor_terminal::net_graph::{GRAPH, draw_graph, draw_rows, newest, push};
use parlor_terminal::palette::{ACCENT, BAD, Depth, FAINT, GRID, GROUND, TEXT, mix, player, rgb};
use parlor_terminal::text::clean;

/// Columns of what stands beside the field.
const FIGURES: u16 = 34;
/// What the graphs show, from the top.
const GRAPHS: [&str; 5] = ["round trip ms", "jitter ms", "drawn behind ms", "lead ms", "steps again"];
/// Metres between two dots of a shot.
const DOTS_M: f32 = 1.5;

/// A tank that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Where, in metres.
    pub at: [f32; 2],
    /// Where its gun points, in radians: 0 is east, a quarter of a turn is south.
    pub aim: f32,
    /// Hits that it can take.
    pub health: u8,
    /// Its owner; without one it is a drone.
    pub player: Option<u32>,
    /// Whether it is one's own.
    pub is_me: bool,
}

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Field {
    /// All tanks.
    pub pieces: Vec<Piece>,
    /// Shots, and whether each met something.
    pub shots: Vec<(Shot, bool)>,
    /// Names and values, from the top.
    pub rows: Rows,
    /// The room's code, once it is known.
    pub code: Option<String>,
}

/// How the link was in the last half minute.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NetGraph {
    /// As [`GRAPHS`] has them; the oldest first.
    series: [VecDeque<u64>; GRAPHS.len()],
    replayed: u64,
}

impl NetGraph {
    /// Adds round trip, jitter, render delay and lead, in ms, and the count of steps that were run again so far.
    pub(crate) fn push(&mut self, figures_ms: [f64; 4], replayed: u64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "for the eye; a float saturates"
        )]
        let [rtt, jitter, delay, lead] = figures_ms.map(|ms| ms.round() as u64);
        let again = replayed.saturating_sub(std::mem::replace(&mut self.replayed, replayed));
        for (series, value) in self.series.iter_mut().zip([rtt, jitter, delay, lead, again]) {
            push(series, value);
        }
    }
}

/// Draws everything into the frame, in the colours that the terminal has.
pub(crate) fn draw(frame: &mut Frame<'_>, field: &Field, graph: &NetGraph, depth: Depth) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let parts = [Constraint::Fill(1), Constraint::Length(FIGURES.min(area.width / 2))];
    let [left, right] = Layout::horizontal(parts).areas(area);
    draw_field(left, buffer, field);
    let rows = u16::try_from(field.rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [top, bottom] = Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(right);
    let below = Rect { y: top.y + 1, height: top.height.saturating_sub(1), ..top };
    draw_rows(below, buffer, &field.rows);
    draw_graphs(bottom, buffer, graph);
    depth.apply(buffer);
}

fn draw_field(area: Rect, buffer: &mut Buffer, field: &Field) {
    let notice = match &field.code {
        Some(code) => {
            format!("arena {code} · WASD drive, X stop, ←→ aim, SPACE fire, P I N switch, Q leave")
        }
        None => "connecting".into(),
    };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(rgb(mix(GRID, [255; 3], 0.25))))
        .title_top(Line::styled(" arena ", ACCENT))
        .title_bottom(Line::styled(format!(" {} ", clean(&notice)), FAINT));
    let inner = block.inner(area);
    block.render(area, buffer);
    buffer.set_style(inner, Style::new().bg(rgb(GROUND)));
    let lens = Lens { area: inner };
    lens.pillars(buffer);
    for (shot, is_hit) in &field.shots {
        lens.shot(buffer, shot, if *is_hit { ACCENT } else { FAINT });
    }
    for piece in &field.pieces {
        lens.piece(buffer, piece);
    }
}

/// From metres to cells: the whole arena fills the area.
struct Lens {
    area: Rect,
}

impl Lens {
    /// The cell of a place, if it is on the screen.
    fn cell(&self, at: [f32; 2]) -> Option<(u16, u16)> {
        let (columns, rows) = (f32::from(self.area.width), f32::from(self.area.height));
        let (x, y) = (at[0] / SIDES_M[0] * columns, at[1] / SIDES_M[1] * rows);
        if !(0.0..columns).contains(&x) || !(0.0..rows).contains(&y) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the area")]
        Some((self.area.x + x as u16, self.area.y + y as u16))
    }

    fn put(&self, buffer: &mut Buffer, at: [f32; 2], symbol: &str, style: Style) {
        if let Some(place) = self.cell(at) {
            buffer[place].set_symbol(symbol).set_style(style);
        }
    }

    fn pillars(&self, buffer: &mut Buffer) {
        for y in 0..self.area.height {
            for x in 0..self.area.width {
                let part = |cell: u16, cells: u16| (f32::from(cell) + 0.5) / f32::from(cells);
                let at = [part(x, self.area.width) * SIDES_M[0], part(y, self.area.height) * SIDES_M[1]];
                let is_in = |(centre, radius): &([f32; 2], f32)| {
                    (at[0] - centre[0]).powi(2) + (at[1] - centre[1]).powi(2) <= radius * radius
                };
                if PILLARS.iter().any(is_in) {
                    let cell = &mut buffer[(self.area.x + x, self.area.y + y)];
                    cell.set_symbol("▒").set_fg(rgb(mix(GRID, [255; 3], 0.3)));
                }
            }
        }
    }

    fn shot(&self, buffer: &mut Buffer, shot: &Shot, colour: ratatui::style::Color) {
        let until = PILLARS.iter().filter_map(|(at, radius)| shot.reaches(*at, *radius));
        let until = until.fold(RANGE_M, f32::min);
        let (south, east) = shot.aim.sin_cos();
        let mut away = TANK_RADIUS_M;
        while away < until {
            let at = [shot.from[0] + east * away, shot.from[1] + south * away];
            self.put(buffer, at, "·", Style::new().fg(colour));
            away += DOTS_M;
        }
    }

    fn piece(&self, buffer: &mut Buffer, piece: &Piece) {
        let colour = match piece.player {
            Some(player_id) => rgb(player(u8::try_from(player_id % 16).unwrap_or(0))),
            None => TEXT,
        };
        let style = Style::new().fg(colour);
        let Some(number) = piece.player else { return self.put(buffer, piece.at, "◆", style) };
        let (south, east) = piece.aim.sin_cos();
        let muzzle = [piece.at[0] + east * 2.0 * TANK_RADIUS_M, piece.at[1] + south * 2.0 * TANK_RADIUS_M];
        self.put(buffer, muzzle, "∙", style.bold());
        let symbol = if piece.is_me { "█".to_owned() } else { (number % 10).to_string() };
        let style = if piece.health == 1 { style.bg(BAD) } else { style };
        self.put(buffer, piece.at, &symbol, if piece.is_me { style } else { style.reversed() });
    }
}

fn draw_graphs(area: Rect, buffer: &mut Buffer, graph: &NetGraph) {
    for (index, (name, series)) in (0u16..).zip(GRAPHS.iter().zip(&graph.series)) {
        let top = area.y.saturating_add(index * GRAPH);
        if top.saturating_add(GRAPH) > area.bottom() {
            return;
        }
        let place = Rect { y: top, height: GRAPH, ..area };
        draw_graph(place, buffer, series, &format!("{name} {}", newest(series)), ACCENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn field() -> Field {
        let piece = |x, player, is_me| Piece { at: [x, 10.0], aim: 0.0, health: 1, player, is_me };
        Field {
            pieces: vec![piece(10.0, Some(1), true), piece(60.0, Some(2), false), piece(80.0, None, false)],
            shots: vec![(Shot { from: [10.0, 10.0], aim: 0.0, number: 1 }, true)],
            rows: vec![("lead", "37 ms".into())],
            code: Some("K7QM".into()),
        }
    }

    fn picture(width: u16, height: u16, field: &Field, graph: &NetGraph) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, field, graph, Depth::Indexed)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn tanks_shots_and_figures_are_seen() {
        let mut graph = NetGraph::default();
        graph.push([81.0, 4.0, 40.0, 77.0], 3);
        graph.push([82.0, 4.0, 40.0, 77.0], 12);
        let picture = picture(120, 40, &field(), &graph);
        let row = picture.lines().find(|row| row.contains('◆')).unwrap_or_else(|| panic!("{picture}"));
        let place = |symbol| row.chars().position(|it| it == symbol);
        assert!(place('█') < place('·') && place('·') < place('2') && place('2') < place('◆'), "{picture}");
        for text in ["37 ms", "arena K7QM", "round trip ms 82", "steps again 9"] {
            assert!(picture.contains(text), "{text} in\n{picture}");
        }
    }

    #[test]
    fn nothing_breaks_at_any_size() {
        for (width, height) in [(1, 1), (2, 2), (3, 40), (200, 3), (40, 12)] {
            picture(width, height, &field(), &NetGraph::default());
        }
    }
}
