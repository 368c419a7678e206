//! Letters three rows high, for a code that can be read across a room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Rows that big letters take.
pub(super) const ROWS: u16 = 3;
/// Columns from one big letter to the next.
const PITCH: u16 = 4;

/// Columns that a text takes in big letters.
pub(super) fn big_width(text: &str) -> u16 {
    u16::try_from(text.chars().count()).unwrap_or(u16::MAX).saturating_mul(PITCH).saturating_sub(1)
}

/// Draws a text in big letters from the left upper corner of `area`, as much as fits. Only A–Z and 0–9 are known; in
/// place of all else stays a gap.
pub(super) fn draw_big(text: &str, area: Rect, buffer: &mut Buffer, style: Style) {
    for (letter, left) in text.chars().zip((area.x..).step_by(usize::from(PITCH))) {
        if left + PITCH - 1 > area.right() || area.height < ROWS {
            return;
        }
        let rows = pixels(letter.to_ascii_uppercase());
        for (column, x) in (left..left + 3).enumerate() {
            for (row, y) in (area.y..area.y + ROWS).enumerate() {
                let lit = |row: usize| rows.get(row).is_some_and(|bits| bits & (4 >> column) != 0);
                let block = match (lit(2 * row), lit(2 * row + 1)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => continue,
                };
                if let Some(cell) = buffer.cell_mut((x, y)) {
                    cell.set_char(block).set_style(style);
                }
            }
        }
    }
}

/// Five rows of three pixels: a digit of the octal number is a row, its bits are the pixels.
fn pixels(letter: char) -> [u16; 5] {
    let rows: u16 = match letter {
        'A' => 0o25755,
        'B' => 0o65656,
        'C' => 0o34443,
        'D' => 0o65556,
        'E' => 0o74647,
        'F' => 0o74644,
        'G' => 0o34553,
        'H' => 0o55755,
        'I' => 0o72227,
        'J' => 0o11152,
        'K' => 0o55655,
        'L' => 0o44447,
        'M' => 0o57755,
        'N' => 0o65555,
        'O' => 0o25552,
        'P' => 0o65644,
        'Q' => 0o25563,
        'R' => 0o65655,
        'S' => 0o34216,
        'T' => 0o72222,
        'U' => 0o55557,
        'V' => 0o55552,
        'W' => 0o55775,
        'X' => 0o55255,
        'Y' => 0o55222,
        'Z' => 0o71247,
        '0' => 0o75557,
        '1' => 0o26227,
        '2' => 0o61247,
        '3' => 0o61216,
        '4' => 0o55711,
        '5' => 0o74616,
        '6' => 0o34752,
        '7' => 0o71222,
        '8' => 0o75757,
        '9' => 0o25716,
        _ => 0,
    };
    std::array::from_fn(|row| (rows >> (12 - 3 * row)) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_code_looks_different() {
        let letters: Vec<char> = ('A'..='Z').chain('0'..='9').collect();
        for (index, a) in letters.iter().enumerate() {
            assert_ne!(pixels(*a), [0; 5], "{a}");
            assert!(letters[..index].iter().all(|b| pixels(*a) != pixels(*b)), "{a}");
        }
        assert_eq!(big_width("K7QM"), 15);
        assert_eq!(big_width(""), 0);
    }
}
