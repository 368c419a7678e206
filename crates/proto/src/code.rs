//! Room codes, which people type or read out.

use crate::text::Quoted;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// The alphabet of drawn codes: A–Z without I, L and O, and 2–9. No two are confused when read out or written
/// by hand.
pub const ALPHABET: &[u8; 31] = b"ABCDEFGHJKMNPQRSTUVWXYZ23456789";

/// Minimum length of a code, drawn or chosen.
pub const CODE_LEN_MIN: usize = 4;
/// Maximum length of a code, drawn or chosen.
pub const CODE_LEN_MAX: usize = 12;
/// Length of a match's id, which is its code: always drawn. With 79 bits an id is never drawn twice, so an
/// old id never leads to another match.
pub const MATCH_ID_LEN: usize = 16;

/// The code of a room: 4 to 12 upper-case letters and digits; or the id of a match, which has 16. A drawn
/// code uses only [`ALPHABET`]; a chosen one may have any letter or digit ("AURA2P", "MYROOM"). Codes are
/// case-insensitive when typed.
///
/// ```
/// use parlor_proto::RoomCode;
/// assert_eq!("k7qm".parse::<RoomCode>().unwrap().as_str(), "K7QM");
/// assert!("K7-M".parse::<RoomCode>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomCode {
    letters: [u8; MATCH_ID_LEN],
    len: u8,
}

/// Why a text is not a room code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// Too short or too long.
    #[error(
        "a room code has {CODE_LEN_MIN} to {CODE_LEN_MAX} letters and digits, and the id of a match {MATCH_ID_LEN}; this has {0}"
    )]
    Length(usize),
    /// A character other than a letter or a digit.
    #[error("a room code has only letters and digits; this has {}", Quoted(.0.encode_utf8(&mut [0; 4])))]
    Letter(char),
}

impl RoomCode {
    /// Draws a code of `len` characters of [`ALPHABET`]. `draw` must return uniform 32-bit numbers.
    ///
    /// # Panics
    /// If `len` is invalid.
    pub fn draw(len: usize, mut draw: impl FnMut() -> u32) -> Self {
        assert!(is_len(len), "{len} is no length of a code");
        let mut letters = [0; MATCH_ID_LEN];
        for letter in &mut letters[..len] {
            // Rejection keeps the characters uniform: 31 does not divide 2³².
            *letter = loop {
                let number = draw();
                if number < u32::MAX - u32::MAX % 31 {
                    break ALPHABET[(number % 31) as usize];
                }
            };
        }
        #[allow(clippy::cast_possible_truncation)] // at most 16
        RoomCode { letters, len: len as u8 }
    }

    /// Whether it is the id of a match: other rooms have shorter codes.
    pub const fn is_match_id(&self) -> bool {
        self.len as usize == MATCH_ID_LEN
    }

    /// The code, in upper case.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.letters[..usize::from(self.len)]).expect("a code holds ASCII only")
    }
}

const fn is_len(len: usize) -> bool {
    len >= CODE_LEN_MIN && len <= CODE_LEN_MAX || len == MATCH_ID_LEN
}

/// The length of a drawn code with which a random guess finds one of `live` rooms with a probability of at
/// most 1 in 10,000 (threat 10). Four characters suffice for 92 rooms, five for 2,862.
pub fn len_for(live: usize) -> usize {
    (CODE_LEN_MIN..CODE_LEN_MAX)
        .find(|len| live as u128 * 10_000 <= 31u128.pow(u32::try_from(*len).expect("a code is short")))
        .unwrap_or(CODE_LEN_MAX)
}

impl FromStr for RoomCode {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_alphanumeric()) {
            return Err(CodeError::Letter(odd));
        }
        if !is_len(text.len()) {
            return Err(CodeError::Length(text.len()));
        }
        let mut letters = [0; MATCH_ID_LEN];
        letters[..text.len()].copy_from_slice(text.to_ascii_uppercase().as_bytes());
        #[allow(clippy::cast_possible_truncation)] // at most 16
        Ok(RoomCode { letters, len: text.len() as u8 })
    }
}

impl fmt::Display for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomCode({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_grow_with_the_rooms_that_live() {
        assert_eq!([0, 92, 93, 2_862, 2_863].map(len_for), [4, 4, 5, 5, 6]);
        assert_eq!(len_for(usize::MAX), CODE_LEN_MAX);
    }

    #[test]
    fn no_letter_is_mistaken_for_another() {
        assert!(!ALPHABET.iter().any(|letter| b"ILO01".contains(letter)));
    }

    proptest! {
        #[test]
        fn a4_a_drawn_code_is_typed_in_any_case(seed: u64, len in prop_oneof![CODE_LEN_MIN..=CODE_LEN_MAX, Just(MATCH_ID_LEN)]) {
            let mut state = seed;
            let code = RoomCode::draw(len, || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 32) as u32
            });
            prop_assert_eq!(code.as_str().len(), len);
            prop_assert_eq!(code.is_match_id(), len == MATCH_ID_LEN);
            prop_assert!(code.as_str().bytes().all(|letter| ALPHABET.contains(&letter)));
            prop_assert_eq!(code.as_str().to_lowercase().parse(), Ok(code));
        }

        #[test]
        fn a4_any_text_is_a_code_or_an_error(text in ".{0,20}") {
            let good = matches!(text.len(), 4..=12 | 16) && text.bytes().all(|b| b.is_ascii_alphanumeric());
            prop_assert_eq!(text.parse::<RoomCode>().is_ok(), good);
        }
    }
}
