//! Overlays on the field: one at a time, the most important first.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph, Widget, Wrap};

use super::field::unwiden;
use super::hud::{HudModel, Stage};
use super::letters::{ROWS, big_width, draw_big};
use crate::game::{Dir, HZ, Phase, Scene, ticks_until};
use parlor_terminal::costs::Rows;
use parlor_terminal::palette::{self, ACCENT, BAD, FAINT, GOOD, TEXT, rgb};
use parlor_terminal::text::{clean, clip, fit, width};

/// Draws what is due over `area`, or nothing.
pub(super) fn draw_overlay(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    match (&hud.stage, scene.round.phase) {
        (Stage::Closed(why), _) => {
            let lines = vec![Line::styled(clean(why), TEXT), Line::default(), hint("Q leaves")];
            popup(area, buffer, " closed ", BAD, lines, None);
        }
        (Stage::Connecting(what), _) => trying(area, buffer, " connecting ", what, scene.tick),
        (Stage::Reconnecting(what), _) => trying(area, buffer, " connection lost ", what, scene.tick),
        _ if hud.help => popup(area, buffer, " help ", GOOD, help(hud), None),
        _ if let Some(costs) = &hud.costs => popup(area, buffer, " state ", GOOD, table(costs), None),
        (Stage::Open, Phase::Waiting) if !flies(hud, scene) => waiting(area, buffer, hud),
        (Stage::Open, Phase::Over) => {
            popup(area, buffer, &format!(" round {} ", scene.round.number), ACCENT, winner(scene), None);
        }
        (Stage::Open, Phase::Waiting | Phase::Playing) => {}
    }
}

/// Whether one's own magpie flies: who warms up or watches wants to see the field.
fn flies(hud: &HudModel, scene: &Scene) -> bool {
    hud.watches
        || hud.me.and_then(|me| scene.players.get(&me)).is_some_and(|me| me.state.heading != Dir::Stay)
}

/// Says what is being tried; dots move, so that it is seen to go on.
fn trying(area: Rect, buffer: &mut Buffer, title: &str, what: &str, tick: u32) {
    let dots = ".".repeat(usize::try_from(tick / 10 % 4).unwrap_or_default());
    let lines =
        vec![Line::styled(format!("{}{dots:<3}", clean(what)), TEXT), Line::default(), hint("Q leaves")];
    popup(area, buffer, title, ACCENT, lines, None);
}

fn waiting(area: Rect, buffer: &mut Buffer, hud: &HudModel) {
    let command = Line::styled(clean(&hud.join_command), Style::new().fg(TEXT).bold());
    let mut lines = vec![hint("a friend types"), command];
    if let Some(page) = &hud.page {
        lines.extend([
            hint("or opens, in a browser here"),
            Line::styled(clean(page), Style::new().fg(TEXT).bold()),
        ]);
    }
    lines.extend([Line::default(), hint("press an arrow key to warm up")]);
    popup(area, buffer, " waiting for players ", ACCENT, lines, hud.code.as_deref());
}

fn winner(scene: &Scene) -> Vec<Line<'static>> {
    let round = &scene.round;
    let winners = round.winners.iter().take(3).map(|id| scene.players.get(id));
    let mut spans = Vec::new();
    for bird in winners {
        if !spans.is_empty() {
            spans.push(Span::styled(" and ", TEXT));
        }
        spans.push(match bird {
            Some(bird) => {
                let style = Style::new().fg(rgb(palette::player(bird.badge.slot))).bold();
                Span::styled(clip(&bird.badge.name, 20), style)
            }
            None => Span::styled("someone who left", TEXT),
        });
    }
    let verb = if round.winners.len() > 1 { "share round" } else { "wins round" };
    let gems = if round.best == 1 { "gem" } else { "gems" };
    let tail = match round.winners.len() {
        0 => format!("nobody found a gem in round {}", round.number),
        1..=3 => format!(" {verb} {} with {} {gems}", round.number, round.best),
        more => format!(" and {} more {verb} {} with {} {gems}", more - 3, round.number, round.best),
    };
    spans.push(Span::styled(tail, TEXT));
    let mut lines = vec![Line::from(spans), Line::default()];
    let best: Vec<_> =
        scene.ranking().into_iter().take(3).map(|(_, bird)| (bird, clip(&bird.badge.name, 20))).collect();
    let longest = best.iter().map(|(_, name)| width(name)).max().unwrap_or(0);
    for (place, (bird, name)) in best.into_iter().enumerate() {
        // All of one length, so that they stand below each other when centred.
        let text = format!("{}. {:>4}  {}", place + 1, bird.state.score, fit(&name, longest));
        lines.push(Line::styled(text, rgb(palette::player(bird.badge.slot))));
    }
    let left = ticks_until(round.ends_at, scene.tick).div_ceil(HZ);
    lines.extend([Line::default(), hint(&format!("the next round begins in {left}"))]);
    lines
}

/// Names and values below each other.
fn table(rows: &Rows) -> Vec<Line<'static>> {
    let names = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0) + 2;
    let values = rows.iter().map(|(_, value)| width(value)).max().unwrap_or(0);
    let row = |(name, value): &(&'static str, String)| {
        Line::from_iter([Span::styled(fit(name, names), FAINT), Span::styled(fit(value, values), TEXT)])
    };
    rows.iter().map(|each| row(each).left_aligned()).collect()
}

fn help(hud: &HudModel) -> Vec<Line<'static>> {
    // Short enough for the field of a terminal of 80 columns.
    let lines = [
        "After a minute the richest magpie wins.",
        "◆ is one gem, ❖ is worth five.",
        "Dash into others: they drop a third.",
        "",
        "arrows, WASD  turn; you never stop",
        "SPACE         dash, if the meter is full",
        "C             copy the invite link",
        "N             what the state costs",
        "?             this help",
        "Q, Esc        leave",
        "",
        "★ hosts. If that player goes, another one",
        "hosts on, unless ★ runs the server, too.",
    ];
    let mut lines: Vec<_> = lines.into_iter().map(|line| Line::styled(line, TEXT).left_aligned()).collect();
    if let Some(page) = &hud.page {
        lines.push(Line::styled("In a browser on this machine, join at", TEXT).left_aligned());
        lines.push(Line::styled(clean(page), FAINT).left_aligned());
    }
    if let Some(invite) = &hud.invite {
        lines.push(Line::styled("From another machine, join by", TEXT).left_aligned());
        lines.push(Line::styled(clean(invite), FAINT).left_aligned());
    }
    lines
}

fn hint(text: &str) -> Line<'static> {
    Line::styled(text.to_owned(), FAINT)
}

/// A framed text in the middle of `area`, under a code in big letters if there is one and it fits.
fn popup(
    area: Rect,
    buffer: &mut Buffer,
    title: &str,
    colour: Color,
    lines: Vec<Line<'_>>,
    code: Option<&str>,
) {
    let fits = |code: &&str| big_width(code) + 6 <= area.width && area.height > 12;
    let big = code.filter(fits);
    let lines = match code.filter(|_| big.is_none()) {
        Some(code) => [vec![Line::styled(clean(code), Style::new().fg(ACCENT).bold())], lines].concat(),
        None => lines,
    };
    let longest = lines.iter().map(Line::width).max().unwrap_or(0).max(width(title)).max(24);
    let wide = u16::try_from(longest + 6).unwrap_or(u16::MAX).min(area.width);
    let inner = usize::from(wide.saturating_sub(4)).max(1);
    let rows: usize = lines.iter().map(|line| line.width().div_ceil(inner).max(1)).sum();
    // One more for what breaking lines between words may cost.
    let rows = rows + usize::from(longest > inner);
    let above = if big.is_some() { ROWS + 1 } else { 0 };
    let high = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2 + above).min(area.height);
    let place = Rect {
        x: area.x + (area.width - wide) / 2,
        y: area.y + (area.height - high) / 2,
        width: wide,
        height: high,
    };
    clear(place, buffer);
    let block =
        Block::bordered().border_type(BorderType::Thick).border_style(Style::new().fg(colour)).title_top(
            Line::styled(title.to_owned(), Style::new().fg(colour).bold()).alignment(Alignment::Center),
        );
    let mut text = block.inner(place);
    block.render(place, buffer);
    if let Some(code) = big {
        let left = text.x + (text.width.saturating_sub(big_width(code))) / 2;
        let letters = Rect { x: left, width: text.right().saturating_sub(left), ..text };
        draw_big(code, letters, buffer, Style::new().fg(ACCENT));
    }
    text = Rect { y: text.y + above.min(text.height), height: text.height.saturating_sub(above), ..text };
    let text = Rect { x: text.x + 1, width: text.width.saturating_sub(2), ..text };
    Paragraph::new(lines).alignment(Alignment::Center).wrap(Wrap { trim: false }).render(text, buffer);
}

/// Empties a place.
fn clear(place: Rect, buffer: &mut Buffer) {
    (place.y..place.bottom()).for_each(|y| unwiden(buffer, (place.x, y)));
    Clear.render(place, buffer);
}
