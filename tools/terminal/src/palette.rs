//! Colours.

use ratatui::buffer::Buffer;
use ratatui::style::Color;

/// A colour as red, green and blue.
pub type Rgb = [u8; 3];

/// The ground of the field.
pub const GROUND: Rgb = [14, 17, 27];
/// The faint grid on it.
pub const GRID: Rgb = [30, 35, 52];
/// Text.
pub const TEXT: Color = rgb([214, 219, 233]);
/// Text that matters less.
pub const FAINT: Color = rgb([120, 128, 152]);
/// What is to be noticed.
pub const ACCENT: Color = rgb([255, 209, 102]);
/// What is good.
pub const GOOD: Color = rgb([105, 219, 124]);
/// What is bad.
pub const BAD: Color = rgb([255, 107, 107]);
/// A common gem.
pub const GEM: Rgb = [116, 235, 255];
/// A gem that is worth more.
pub const RICH_GEM: Rgb = [255, 214, 70];
/// The ring around one's own magpie.
pub const RING: Rgb = [255, 255, 255];

const PLAYERS: [Rgb; 16] = [
    [255, 92, 87],
    [79, 163, 255],
    [255, 213, 79],
    [88, 224, 140],
    [178, 102, 255],
    [255, 152, 51],
    [244, 143, 190],
    [60, 214, 214],
    [200, 230, 60],
    [255, 64, 170],
    [150, 165, 190],
    [196, 138, 90],
    [0, 150, 136],
    [104, 104, 255],
    [235, 235, 220],
    [140, 150, 50],
];

/// The colour of a player.
pub fn player(slot: u8) -> Rgb {
    PLAYERS[usize::from(slot) % PLAYERS.len()]
}

/// A colour for the terminal.
pub const fn rgb(colour: Rgb) -> Color {
    Color::Rgb(colour[0], colour[1], colour[2])
}

/// A mixture: all of `under` at 0, all of `over` at 1.
pub fn mix(under: Rgb, over: Rgb, part: f32) -> Rgb {
    let part = part.clamp(0.0, 1.0);
    std::array::from_fn(|i| {
        let (low, high) = (f32::from(under[i]), f32::from(over[i]));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
        let mixed = (low + (high - low) * part).round() as u8;
        mixed
    })
}

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// All.
    #[default]
    True,
    /// The 256 that almost every terminal has.
    Indexed,
}

impl Depth {
    /// What the environment variable `COLORTERM` promises.
    pub fn from_colorterm(colorterm: Option<&str>) -> Depth {
        match colorterm {
            Some("truecolor" | "24bit") => Depth::True,
            _ => Depth::Indexed,
        }
    }

    /// Replaces the colours of everything drawn by ones that the terminal has.
    pub fn apply(self, buffer: &mut Buffer) {
        if self == Depth::True {
            return;
        }
        for cell in &mut buffer.content {
            cell.fg = nearest(cell.fg);
            cell.bg = nearest(cell.bg);
        }
    }
}

/// The nearest of the 6×6×6 colours and the 24 greys among the 256.
fn nearest(colour: Color) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    let wanted = [r, g, b];
    let level = |value: u8| match value {
        0..=47 => 0u8,
        48..=114 => 1,
        _ => (value - 35) / 40,
    };
    let shade = |level: u8| if level == 0 { 0 } else { 55 + level * 40 };
    let levels = wanted.map(level);
    let cube = (16 + 36 * levels[0] + 6 * levels[1] + levels[2], levels.map(shade));
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let step = u8::try_from(mean.saturating_sub(3) / 10).unwrap_or(23).min(23);
    let grey = (232 + step, [8 + 10 * step; 3]);
    let closest = if difference(wanted, grey.1) < difference(wanted, cube.1) { grey } else { cube };
    Color::Indexed(closest.0)
}

/// How far two colours are apart.
pub fn difference(a: Rgb, b: Rgb) -> u32 {
    (0..3).map(|i| u32::from(a[i].abs_diff(b[i])).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_players_differ_at_every_depth() {
        for a in 0..16u8 {
            assert!(difference(player(a), GROUND) > 15_000, "{a} stands out from the ground");
            for b in 0..a {
                assert!(difference(player(a), player(b)) > 2_500, "{a} and {b} look alike");
                assert_ne!(nearest(rgb(player(a))), nearest(rgb(player(b))), "{a} and {b} of 256");
            }
        }
        assert_eq!(player(16), player(0));
    }

    #[test]
    fn the_nearest_of_256_is_near() {
        assert_eq!(nearest(rgb([255, 0, 0])), Color::Indexed(196));
        assert_eq!(nearest(rgb([255, 255, 255])), Color::Indexed(231));
        assert_eq!(nearest(rgb([128, 128, 128])), Color::Indexed(244));
        assert_eq!(nearest(Color::Reset), Color::Reset);
    }
}
