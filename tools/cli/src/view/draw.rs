//! The layout of the screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

use super::field::draw_field;
use super::hud::HudModel;
use super::letters::{ROWS, big_width, draw_big};
use super::overlay::draw_overlay;
use super::panel::draw_panel;
use crate::game::Scene;
use parlor_terminal::palette::{ACCENT, Depth, FAINT, TEXT};
use parlor_terminal::text::{clean, clip};

/// The smallest terminal that shows a game.
const SMALLEST: (u16, u16) = (40, 12);
/// From how many columns on the side panel is shown.
const PANEL_FROM: u16 = 72;
/// From how many rows on the header has big letters.
const BIG_FROM: u16 = 32;

/// Draws everything into the frame, in the colours that the terminal has.
pub(crate) fn draw(frame: &mut Frame<'_>, hud: &HudModel, scene: &Scene, depth: Depth) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(area, buffer);
    } else {
        draw_all(area, buffer, hud, scene);
    }
    depth.apply(buffer);
}

fn draw_all(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    let big =
        area.height >= BIG_FROM && hud.code.as_ref().is_some_and(|code| big_width(code) + 40 < area.width);
    let header = match area.height {
        _ if big => ROWS,
        18.. => 2,
        _ => 1,
    };
    let parts = [Constraint::Length(header), Constraint::Fill(1), Constraint::Length(1)];
    let [header, body, footer] = Layout::vertical(parts).areas(area);
    draw_header(header, buffer, hud, big);
    let panel = match area.width {
        110.. => 38,
        PANEL_FROM.. => 31,
        _ => 0,
    };
    let [field, panel] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(panel)]).areas(body);
    draw_field(field, buffer, hud, scene);
    if panel.width > 0 {
        draw_panel(panel, buffer, hud, scene);
    }
    draw_footer(footer, buffer, hud, scene);
    draw_overlay(field, buffer, hud, scene);
}

fn too_small(area: Rect, buffer: &mut Buffer) {
    let (width, height) = SMALLEST;
    let lines = vec![
        Line::styled("terminal too small", ACCENT),
        Line::from(format!("{}×{}, needs {width}×{height}", area.width, area.height)),
    ];
    Paragraph::new(lines).alignment(Alignment::Center).render(area, buffer);
}

/// The room's code, so that it can be read out, and how to join.
fn draw_header(area: Rect, buffer: &mut Buffer, hud: &HudModel, big: bool) {
    let title =
        Span::styled(" MAGPIES ", Style::new().fg(ACCENT).add_modifier(Modifier::BOLD | Modifier::REVERSED));
    let code = hud.code.as_deref().map(|code| clip(code, 16));
    let code = code.unwrap_or_default();
    let join = Line::from_iter([Span::styled("join: ", FAINT), Span::styled(clean(&hud.join_command), TEXT)]);
    if big {
        let wide = big_width(&code) + 4;
        let [letters, text] = Layout::horizontal([Constraint::Length(wide), Constraint::Fill(1)]).areas(area);
        draw_big(&code, Rect { x: letters.x + 1, ..letters }, buffer, Style::new().fg(ACCENT));
        let room =
            Line::from_iter([Span::styled("room ", FAINT), Span::styled(code, Style::new().fg(TEXT).bold())]);
        Paragraph::new(vec![Line::from(title), room, join]).render(text, buffer);
        return;
    }
    let spaced: String = code.chars().flat_map(|letter| [letter, ' ']).collect();
    let mut first = Line::from(vec![title, Span::raw("  ")]);
    if !code.is_empty() {
        first.push_span(Span::styled("room  ", FAINT));
        first.push_span(Span::styled(format!(" {spaced}"), Style::new().fg(ACCENT).bold().reversed()));
    }
    let mut lines = vec![first];
    if area.height > 1 {
        let mut second = join;
        second.spans.insert(0, Span::raw(" "));
        lines.push(second);
    }
    Paragraph::new(lines).render(area, buffer);
}

/// The keys, and one's own gems.
fn draw_footer(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    let mut line = Line::from(" ");
    let playing = [("←↑↓→ WASD", "turn"), ("SPACE", "dash")];
    let keys = if hud.watches { &[("watching", "")][..] } else { &playing };
    for (key, what) in keys.iter().chain(&[("?", "help"), ("Q", "leave")]) {
        line.push_span(Span::styled(*key, Style::new().fg(ACCENT)));
        line.push_span(Span::styled(format!(" {what}  "), FAINT));
    }
    line.render(area, buffer);
    let Some(me) = hud.me.and_then(|me| scene.players.get(&me)) else { return };
    let place = scene.ranking().iter().position(|(id, _)| hud.me == Some(*id)).unwrap_or(0) + 1;
    let mine = format!("◆ {}  #{place} ", me.state.score);
    let wide = u16::try_from(parlor_terminal::text::width(&mine)).unwrap_or(0);
    if area.width > wide + 48 || area.width < 48 && area.width > wide {
        let right = Rect { x: area.right() - wide, width: wide, ..area };
        Line::styled(mine, Style::new().fg(TEXT).bold()).render(right, buffer);
    }
}
