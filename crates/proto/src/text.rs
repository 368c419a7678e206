//! Names and times in texts for people.
//!
//! The core of pages is compiled without the code of `Debug`, which is large, so a text that a page can see
//! has no `{:?}`: it would come out empty.

use core::fmt::{self, Write as _};
use core::time::Duration;

/// Shows a text that somebody chose, in quotes. What could forge a line, a quote or a direction of writing is
/// escaped, in the style of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => {
                    f.write_char('\\')?;
                    f.write_char(letter)?;
                }
                '\n' => f.write_str("\\n")?,
                odd if odd.is_control() || is_invisible(odd) => write!(f, "\\u{:04x}", u32::from(odd))?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}

/// Whether a character has no width, separates lines, or turns the direction of those around it.
fn is_invisible(letter: char) -> bool {
    let lines_and_directions = '\u{2028}'..='\u{202e}';
    let joiners = '\u{2060}'..='\u{206f}';
    lines_and_directions.contains(&letter)
        || joiners.contains(&letter)
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
}

/// Shows a time in milliseconds, with its microseconds if there are some: `250 ms`, `16.667 ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Millis(pub Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        match us % 1_000 {
            0 => write!(f, "{} ms", us / 1_000),
            part => write!(f, "{}.{part:03} ms", us / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_has_the_digits_that_say_something() {
        let shown = |us| Millis(Duration::from_micros(us)).to_string();
        assert_eq!([0, 250_000, 16_667, 1_040].map(shown), ["0 ms", "250 ms", "16.667 ms", "1.040 ms"]);
    }

    #[test]
    fn what_could_forge_a_text_is_escaped() {
        assert_eq!(Quoted("tank/ä").to_string(), "\"tank/ä\"");
        assert_eq!(Quoted("a\"\\\n\r\u{202e}\u{85}").to_string(), r#""a\"\\\n\u000d\u202e\u0085""#);
    }

    proptest! {
        /// JSON reads it back: nothing of a name is lost, and no name ends the quotes.
        #[test]
        fn a_quoted_name_can_be_read_back(name in "\\PC*|[\\x00-\\x7f\u{200b}-\u{2060}]*") {
            let quoted = Quoted(&name).to_string();
            prop_assert!(!quoted.chars().any(|letter| letter.is_control() || is_invisible(letter)));
            prop_assert_eq!(unquoted(&quoted), Some(name));
        }
    }

    fn unquoted(quoted: &str) -> Option<String> {
        let mut letters = quoted.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut text = String::new();
        while let Some(letter) = letters.next() {
            text.push(match letter {
                '"' => return None,
                '\\' => match letters.next()? {
                    'n' => '\n',
                    'u' => {
                        let digits: String = letters.by_ref().take(4).collect();
                        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                    }
                    same => same,
                },
                letter => letter,
            });
        }
        Some(text)
    }
}
