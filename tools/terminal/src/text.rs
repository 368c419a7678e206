//! Other people's texts, sanitized for a terminal.

use ratatui::text::Span;

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text without anything that would move the cursor, turn the direction of writing or pile up on one cell.
pub fn clean(text: &str) -> String {
    let mut clean = String::new();
    let mut marks = 0;
    for letter in text.chars().filter(|letter| !is_unseen(*letter)) {
        // One mark per letter writes every living language; a heap of them runs over the lines above and below.
        marks = if width(letter.encode_utf8(&mut [0; 4])) == 0 { marks + 1 } else { 0 };
        if marks <= 1 && !(clean.is_empty() && marks > 0) {
            clean.push(letter);
        }
    }
    clean.trim().to_owned()
}

/// A clean text of at most `columns` columns; what does not fit gives way to an ellipsis.
pub fn clip(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text;
    }
    let mut clipped = String::new();
    for letter in text.chars() {
        clipped.push(letter);
        if width(&clipped) + 1 > columns {
            clipped.pop();
            break;
        }
    }
    if columns > 0 {
        clipped.push('…');
    }
    clipped
}

/// A clean text of exactly `columns` columns.
pub fn fit(text: &str, columns: usize) -> String {
    let mut text = clip(text, columns);
    let gap = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', gap));
    text
}

/// Control characters; joiners and variation selectors, whose effect on the width terminals do not agree on; and what
/// turns the direction of writing.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_fit_exactly() {
        let heap = format!("z{}algo", "\u{301}".repeat(300));
        let names = [
            "Ada",
            "",
            "李小龙的朋友们",
            "👩‍👩‍👧‍👦 family",
            "a\u{1b}[2Jb\r\nc\t",
            "\u{202e}evil",
            &heap,
            "👍🏽👍🏽👍🏽👍🏽",
            "🇩🇪🇫🇷🇯🇵🇧🇷",
            "  pad  ",
            "a very long name that goes on and on and on",
            "\u{301}\u{301}",
            "שלום עולם",
            "नमस्ते दुनिया",
        ];
        for name in names {
            for columns in 0..20 {
                let fitted = fit(name, columns);
                assert_eq!(width(&fitted), columns, "{name:?} in {columns}: {fitted:?}");
                assert!(!fitted.chars().any(is_unseen));
            }
        }
        assert_eq!(clip("a\u{1b}[2Jb\r\n", 20), "a[2Jb");
        assert_eq!(clip("李小龙的朋友们", 6), "李小…");
        assert_eq!(clip("longish", 5), "long…");
        assert!(clean(&heap).chars().count() < 8);
    }
}
