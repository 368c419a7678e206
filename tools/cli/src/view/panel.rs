//! The side panel: players, and this member's connection.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::field::letter;
use super::hud::{Figures, HudModel};
use crate::game::{Bird, Scene};
use parlor_terminal::net_graph::{GRAPH, draw_graph, draw_rows, newest};
use parlor_terminal::palette::{self, ACCENT, BAD, FAINT, GOOD, GRID, TEXT, rgb};
use parlor_terminal::text::fit;

/// Columns of a row that are not the name: gap, letter, star, score, ping, transport, and the gaps between.
const FIXED: u16 = 22;
/// Rows that the link has however many play: its title, two graphs and the first of its rows.
const LINK_MIN: u16 = 4;

/// Draws the players from the top and the connection at the bottom.
pub(super) fn draw_panel(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    let players = u16::try_from(scene.players.len().max(hud.members.len())).unwrap_or(u16::MAX);
    let impairment = u16::from(hud.impairment.is_some());
    let free = area.height.saturating_sub(players.saturating_add(1)).saturating_sub(impairment);
    let rows = u16::try_from(hud.figures.rows.len()).unwrap_or(u16::MAX);
    let with = |graph: u16| rows.saturating_add(1 + 2 * graph);
    let graph = if free >= with(GRAPH) { GRAPH } else { 1 };
    let link = with(graph).min(free.max(LINK_MIN)) + impairment;
    let [players, link] = Layout::vertical([Constraint::Fill(1), Constraint::Length(link)]).areas(area);
    draw_players(players, buffer, hud, scene);
    let [link, impairment] = match &hud.impairment {
        Some(_) => Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(link),
        None => [link, Rect::ZERO],
    };
    draw_link(link, buffer, &hud.figures, graph);
    if let Some(spec) = &hud.impairment {
        let text = format!(" impaired {spec}");
        Line::styled(fit(&text, usize::from(impairment.width)), BAD).render(impairment, buffer);
    }
}

fn draw_players(area: Rect, buffer: &mut Buffer, hud: &HudModel, scene: &Scene) {
    let name = usize::from(area.width.saturating_sub(FIXED));
    let heading = format!(" {} gems ping link", fit(&format!("players {}", scene.players.len()), name + 4));
    Line::styled(heading, FAINT).render(Rect { height: area.height.min(1), ..area }, buffer);
    let space = usize::from(area.height.saturating_sub(1));
    let mut ranking: Vec<(u32, Option<&Bird>)> =
        scene.ranking().into_iter().map(|(id, bird)| (id, Some(bird))).collect();
    let coming = hud.members.keys().filter(|id| !scene.players.contains_key(id));
    ranking.extend(coming.map(|id| (*id, None)));
    // One's own row is shown even when not all fit.
    if let Some(mine) = ranking.iter().position(|(id, _)| hud.me == Some(*id))
        && mine >= space
        && space > 0
    {
        ranking.swap(space - 1, mine);
    }
    for ((id, bird), y) in ranking.into_iter().take(space).zip(area.y + 1..) {
        let row = Rect { y, height: 1, ..area };
        player_row(id, bird, hud, name).render(row, buffer);
        if hud.me == Some(id) {
            let lit = Rect { x: row.x + 1, width: row.width.saturating_sub(1), ..row };
            buffer.set_style(lit, Style::new().add_modifier(Modifier::BOLD));
            let rest = Rect { x: row.x + 3, width: row.width.saturating_sub(3), ..row };
            buffer.set_style(rest, Style::new().bg(rgb(GRID)));
        }
    }
}

fn player_row(id: u32, bird: Option<&Bird>, hud: &HudModel, columns: usize) -> Line<'static> {
    let member = hud.members.get(&id);
    let name = bird.map(|bird| &bird.badge.name).or(member.map(|member| &member.name));
    let name = fit(name.map_or("", String::as_str), columns);
    let colour = bird.map_or(FAINT, |bird| rgb(palette::player(bird.badge.slot)));
    let chip = Style::new().fg(Color::Rgb(12, 12, 18)).bg(colour).add_modifier(Modifier::BOLD);
    let star = if hud.host == Some(id) { "★" } else { " " };
    let score = bird.map_or_else(String::new, |bird| bird.state.score.min(9_999).to_string());
    let ping = member.and_then(|member| member.ping_ms);
    let ping_text = ping.map_or_else(|| "–".to_owned(), |ping| ping.min(9_999).to_string());
    let transport = member.map_or("bot", |member| &member.transport);
    Line::from(vec![
        Span::raw(" "),
        Span::styled(bird.map_or('…', letter).to_string(), chip),
        Span::styled(format!(" {name}"), colour),
        Span::styled(star, ACCENT),
        Span::styled(format!(" {score:>4}"), TEXT),
        Span::styled(format!(" {ping_text:>4} "), ping.map_or(FAINT, ping_colour)),
        Span::styled(fit(transport, 7), FAINT),
    ])
}

fn ping_colour(ping_ms: u32) -> Color {
    match ping_ms {
        0..=79 => GOOD,
        80..=179 => ACCENT,
        _ => BAD,
    }
}

/// Graphs of round trip and updates, and below them what else is known of the link.
fn draw_link(area: Rect, buffer: &mut Buffer, figures: &Figures, graph: u16) {
    let parts =
        [Constraint::Length(1), Constraint::Length(graph), Constraint::Length(graph), Constraint::Fill(1)];
    let [title, rtt, updates, rows] = Layout::vertical(parts).areas(area);
    let rule = "─".repeat(usize::from(area.width).saturating_sub(12));
    Line::styled(format!(" your link {rule}"), FAINT).render(title, buffer);
    let (rtt_ms, per_second) = (figures.rtt_ms(), figures.updates());
    let colour = rtt_ms.back().map_or(FAINT, |rtt| ping_colour(u32::try_from(*rtt).unwrap_or(u32::MAX)));
    draw_graph(rtt, buffer, rtt_ms, &format!("rtt {} ms", newest(rtt_ms)), colour);
    draw_graph(updates, buffer, per_second, &format!("in {}/s", newest(per_second)), rgb(palette::GEM));
    draw_rows(rows, buffer, &figures.rows);
}
