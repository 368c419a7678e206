//! The field: magpies as discs of half-block pixels whose edges are blended, so that they move by less than a cell.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Widget};

use super::hud::HudModel;
use crate::game::{Bird, FIELD_HEIGHT, FIELD_WIDTH, HZ, Motion, Phase, Scene, ticks_until};
use parlor_terminal::palette::{
    self, ACCENT, BAD, FAINT, GEM, GOOD, GRID, GROUND, RICH_GEM, RING, Rgb, TEXT, mix, rgb,
};
use parlor_terminal::text::{clip, width};

/// How much longer a unit may be drawn one way than the other, so that the field fills the terminal.
const STRETCH: f32 = 1.25;
/// Half the breadth of a magpie, in units and at least in pixels.
const BIRD_UNITS: f32 = 1.5;
const BIRD_PIXELS: f32 = 1.5;

/// Draws the field with its frame into the middle of `area`.
pub(super) fn draw_field(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    let frame = framed(area);
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(rgb(mix(GRID, [255; 3], 0.25))))
        .title_top(round_title(scene))
        .title_top(clock_title(scene).alignment(Alignment::Right))
        .title_bottom(dash_title(hud, scene));
    let block = match &hud.notice {
        Some(notice) => {
            let notice = clip(notice, usize::from(frame.width).saturating_sub(20));
            block.title_bottom(Line::styled(format!(" {notice} "), ACCENT).alignment(Alignment::Right))
        }
        None => block,
    };
    let inner = block.inner(frame);
    block.render(frame, buffer);
    buffer.set_style(inner, Style::new().bg(rgb(GROUND)));
    let mut canvas = Canvas::new(inner);
    canvas.grid(buffer);
    let mut birds: Vec<(u32, &Bird)> = scene.ranking();
    birds.sort_by_key(|(id, _)| hud.me == Some(*id));
    // What matters more lies over what matters less: names, gems, magpies, one's own magpie.
    let leader = leader(scene);
    for (id, bird) in &birds {
        canvas.label(buffer, bird, leader == Some(*id));
    }
    canvas.gems(buffer, scene);
    for (id, bird) in &birds {
        canvas.bird(bird, hud.me == Some(*id), scene.tick);
    }
    canvas.blit(buffer);
    for (_, bird) in &birds {
        canvas.glyph(buffer, bird);
    }
}

/// The greatest rectangle within `area` in which units are about as high as wide, frame included.
fn framed(area: Rect) -> Rect {
    let columns = f32::from(area.width.saturating_sub(2));
    let pixels = 2.0 * f32::from(area.height.saturating_sub(2));
    let (across, down) = (columns / FIELD_WIDTH, pixels / FIELD_HEIGHT);
    let (across, down) = (across.min(down * STRETCH), down.min(across * STRETCH));
    let size = (whole(across * FIELD_WIDTH + 2.5), whole(down * FIELD_HEIGHT / 2.0 + 2.5));
    let (width, height) = (size.0.min(area.width), size.1.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

fn round_title(scene: &Scene) -> Line<'static> {
    match scene.round.phase {
        Phase::Waiting => Line::styled(" warm-up, waiting for players ", FAINT),
        Phase::Playing | Phase::Over => Line::styled(format!(" round {} ", scene.round.number), TEXT),
    }
}

fn clock_title(scene: &Scene) -> Line<'static> {
    let left = ticks_until(scene.round.ends_at, scene.tick).div_ceil(HZ);
    match scene.round.phase {
        Phase::Playing if left <= 10 => Line::styled(
            format!(" 0:{left:02} "),
            Style::new().fg(BAD).add_modifier(Modifier::BOLD | Modifier::REVERSED),
        ),
        Phase::Playing => {
            Line::styled(format!(" {}:{:02} ", left / 60, left % 60), Style::new().fg(TEXT).bold())
        }
        Phase::Waiting | Phase::Over => Line::default(),
    }
}

/// Whether one's own dash is ready, and how far it is.
fn dash_title(hud: &HudModel, scene: &Scene) -> Line<'static> {
    let Some(me) = hud.me.and_then(|me| scene.players.get(&me)) else { return Line::default() };
    let left =
        usize::try_from(ticks_until(me.state.dash_ready_at, scene.tick).div_ceil(8)).unwrap_or(6).min(6);
    let meter = format!("{}{}", "▰".repeat(6 - left), "▱".repeat(left));
    let colour = if left == 0 { GOOD } else { FAINT };
    Line::from_iter([Span::styled(" dash ", TEXT), Span::styled(meter, colour), Span::raw(" ")])
}

/// The one player that is ahead of all others.
fn leader(scene: &Scene) -> Option<u32> {
    let ranking = scene.ranking();
    let (id, first) = ranking.first()?;
    let second = ranking.get(1).map_or(0, |(_, bird)| bird.state.score);
    (scene.round.phase != Phase::Waiting && first.state.score > second).then_some(*id)
}

/// Pixels, two to a cell, over the inside of the frame.
struct Canvas {
    area: Rect,
    /// Pixels per unit.
    across: f32,
    down: f32,
    pixels: Vec<Rgb>,
}

impl Canvas {
    fn new(area: Rect) -> Canvas {
        let count = usize::from(area.width) * usize::from(area.height) * 2;
        Canvas {
            area,
            across: f32::from(area.width) / FIELD_WIDTH,
            down: 2.0 * f32::from(area.height) / FIELD_HEIGHT,
            pixels: vec![GROUND; count],
        }
    }

    /// The cell of a place on the field, always one of the area's. `None` if the area is empty.
    fn cell(&self, x: f32, y: f32) -> Option<(u16, u16)> {
        let last = (self.area.width.checked_sub(1)?, self.area.height.checked_sub(1)?);
        let (column, row) = (whole(x * self.across).min(last.0), whole(y * self.down / 2.0).min(last.1));
        Some((self.area.x + column, self.area.y + row))
    }

    fn pixel(&self, column: u16, row: u16) -> Rgb {
        let index = usize::from(row) * usize::from(self.area.width) + usize::from(column);
        self.pixels.get(index).copied().unwrap_or(GROUND)
    }

    fn grid(&self, buffer: &mut Buffer) {
        for (column, row) in (1..6).flat_map(|column| (1..4).map(move |row| (column, row))) {
            let place = self.cell(f32::from(column * 10u8), f32::from(row * 10u8));
            if let Some(cell) = place.and_then(|place| buffer.cell_mut(place)) {
                cell.set_char('·').set_fg(rgb(mix(GRID, [255; 3], 0.15)));
            }
        }
    }

    fn gems(&self, buffer: &mut Buffer, scene: &Scene) {
        for (number, gem) in &scene.gems {
            let (shape, colour) = if gem.worth > 1 { ('❖', RICH_GEM) } else { ('◆', GEM) };
            // Each glints at its own time.
            let glint = (scene.tick / 5 + u32::from(*number) * 7).is_multiple_of(9);
            let colour = if glint { RING } else { colour };
            if let Some(place) = self.cell(gem.x, gem.y) {
                put(buffer, place, shape, Style::new().fg(rgb(colour)).add_modifier(Modifier::BOLD));
            }
        }
    }

    /// A magpie: its trail if it dashes, a ring if it is one's own, its body.
    fn bird(&mut self, bird: &Bird, mine: bool, tick: u32) {
        let state = &bird.state;
        let colour = palette::player(bird.badge.slot);
        if state.motion == Motion::Dashing {
            let (x, y) = state.heading.vector();
            for (behind, strength) in [(5.0, 0.12), (4.0, 0.2), (3.0, 0.3), (2.0, 0.42), (1.0, 0.55)] {
                self.disc(state.x - x * behind, state.y - y * behind, -0.3, colour, strength);
            }
        }
        let blink = state.safe && (tick / 4).is_multiple_of(2);
        let strength = if blink { 0.45 } else { 1.0 };
        if mine {
            self.disc(state.x, state.y, 0.8, RING, 0.75 * strength);
        }
        self.disc(state.x, state.y, 0.0, colour, strength);
    }

    /// Blends a disc over the pixels; `grow` is in pixels.
    fn disc(&mut self, x: f32, y: f32, grow: f32, colour: Rgb, strength: f32) {
        let (middle_x, middle_y) = (x * self.across, y * self.down);
        let breadth = (BIRD_UNITS * self.across).max(BIRD_PIXELS) + grow;
        let height = (BIRD_UNITS * self.down).max(BIRD_PIXELS) + grow;
        let (columns, rows) = (self.area.width, self.area.height * 2);
        let span = |middle: f32, half: f32, end: u16| {
            whole(middle - half - 1.0).min(end)..whole(middle + half + 2.0).min(end)
        };
        for row in span(middle_y, height, rows) {
            for column in span(middle_x, breadth, columns) {
                let dx = (f32::from(column) + 0.5 - middle_x) / breadth;
                let dy = (f32::from(row) + 0.5 - middle_y) / height;
                let cover = (1.0 - (dx * dx + dy * dy).sqrt()) * breadth.min(height) + 0.5;
                let index = usize::from(row) * usize::from(columns) + usize::from(column);
                if let Some(pixel) = self.pixels.get_mut(index) {
                    *pixel = mix(*pixel, colour, cover.clamp(0.0, 1.0) * strength);
                }
            }
        }
    }

    /// Writes the pixels that were painted; what lies in the other cells stays.
    fn blit(&self, buffer: &mut Buffer) {
        for row in 0..self.area.height {
            for column in 0..self.area.width {
                let (upper, lower) = (self.pixel(column, 2 * row), self.pixel(column, 2 * row + 1));
                if upper == GROUND && lower == GROUND {
                    continue;
                }
                let far = |colour| palette::difference(colour, GROUND);
                // The brighter half is drawn, so that the shape shows even where colours do not.
                let (block, fore, back) = match (far(upper) > 3_000, far(lower) > 3_000) {
                    (true, true) if upper == lower => ('█', upper, lower),
                    (false, false) => (' ', lower, mix(upper, lower, 0.5)),
                    _ if far(upper) >= far(lower) => ('▀', upper, lower),
                    _ => ('▄', lower, upper),
                };
                let place = (self.area.x + column, self.area.y + row);
                put(buffer, place, block, Style::new().fg(rgb(fore)).bg(rgb(back)));
            }
        }
    }

    /// The letter in the middle of the body.
    fn glyph(&self, buffer: &mut Buffer, bird: &Bird) {
        let Some(place) = self.cell(bird.state.x, bird.state.y) else { return };
        let (column, row) = (place.0 - self.area.x, place.1 - self.area.y);
        let back = mix(self.pixel(column, 2 * row), self.pixel(column, 2 * row + 1), 0.5);
        let back = mix(back, palette::player(bird.badge.slot), 0.5);
        let fore = if palette::difference(back, [0; 3]) > 30_000 { [12, 12, 18] } else { [255; 3] };
        let letter = if bird.state.motion == Motion::Dizzy { '×' } else { letter(bird) };
        put(buffer, place, letter, Style::new().fg(rgb(fore)).bg(rgb(back)).add_modifier(Modifier::BOLD));
    }

    /// The name above the body, or below at the upper edge.
    fn label(&self, buffer: &mut Buffer, bird: &Bird, leads: bool) {
        let longest = if self.across < 1.2 { 8 } else { 14 };
        let name = clip(&bird.badge.name, longest.min(usize::from(self.area.width)));
        let name = if leads { format!("♛{name}") } else { name };
        // Clear of the body, of its blended edge and of the ring.
        let reach = (BIRD_UNITS * self.down).max(BIRD_PIXELS) + 1.3;
        let (top, bottom) =
            ((bird.state.y * self.down - reach) / 2.0, (bird.state.y * self.down + reach) / 2.0);
        let row = if top >= 1.0 { whole(top) - 1 } else { whole(bottom) + 1 };
        let breadth = u16::try_from(width(&name)).unwrap_or(u16::MAX).min(self.area.width);
        let left =
            whole(bird.state.x * self.across + 0.5 - f32::from(breadth) / 2.0).min(self.area.width - breadth);
        if row >= self.area.height {
            return;
        }
        let colour = rgb(mix(palette::player(bird.badge.slot), [255; 3], 0.25));
        let (x, y) = (self.area.x + left, self.area.y + row);
        buffer.set_stringn(x, y, name, usize::from(breadth), Style::new().fg(colour));
        // Also the second halves of wide letters, which would show if a magpie cut the first.
        buffer.set_style(Rect { x, y, width: breadth, height: 1 }, Style::new().bg(rgb(GROUND)));
    }
}

/// Sets one cell. The left half of a wide letter that it cuts goes, or the terminal would not draw this cell.
fn put(buffer: &mut Buffer, place: (u16, u16), letter: char, style: Style) {
    unwiden(buffer, place);
    if let Some(cell) = buffer.cell_mut(place) {
        cell.set_char(letter).set_style(style);
    }
}

/// Blanks the wide letter that reaches into this cell from the left, if there is one.
pub(super) fn unwiden(buffer: &mut Buffer, (x, y): (u16, u16)) {
    let left = x.checked_sub(1).and_then(|x| buffer.cell_mut((x, y)));
    if let Some(cell) = left.filter(|cell| width(cell.symbol()) > 1) {
        cell.set_char(' ');
    }
}

/// The letter of a player, as something that takes exactly one cell.
pub(super) fn letter(bird: &Bird) -> char {
    if bird.badge.glyph.is_ascii_graphic() { bird.badge.glyph } else { '?' }
}

/// The whole part of a number of cells, 0 for what is negative or no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from a float saturates")]
fn whole(cells: f32) -> u16 {
    cells as u16
}
