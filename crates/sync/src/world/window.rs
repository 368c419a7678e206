//! The window of received packet numbers.

use crate::limits::NUMBER_WINDOW;
use parlor_proto::wire::header::expand;

/// The received packet numbers among the last [`NUMBER_WINDOW`].
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    newest: u64,
    /// For each number, modulo the window, whether it was received.
    came: [u64; 4],
}

const _: () = assert!(NUMBER_WINDOW == 4 * 64, "one bit for each number of the window");

/// The assumed first number of an unknown sender: large enough that older ones are valid numbers too.
const ORIGIN: u64 = 1 << 32;

impl Window {
    /// Returns the number nearest to the newest with the lower half `low`.
    pub(super) fn number(&self, low: u16) -> u64 {
        expand(low, if self.newest == 0 { ORIGIN } else { self.newest })
    }

    /// The highest number received.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Resets the window; `number` will be the first.
    pub(super) fn restart(&mut self, number: u64) {
        *self = Window { newest: number - 1, ..Window::default() };
    }

    /// Whether a packet is neither a duplicate nor too old.
    pub(super) fn is_new(&self, number: u64) -> bool {
        number > self.newest || (self.newest - number < NUMBER_WINDOW && !self.has(number))
    }

    pub(super) fn insert(&mut self, number: u64) {
        if number > self.newest {
            if number - self.newest >= NUMBER_WINDOW {
                self.came.fill(0);
            } else {
                for between in self.newest + 1..number {
                    let (word, bit) = place(between);
                    self.came[word] &= !bit;
                }
            }
            self.newest = number;
        }
        let (word, bit) = place(number);
        self.came[word] |= bit;
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.came[word] & bit != 0
    }

    /// Whether all numbers from `from` to `to` within the window were received.
    pub(super) fn has_all(&self, from: u64, to: u64) -> bool {
        self.newest.saturating_sub(from) < NUMBER_WINDOW
            && to <= self.newest
            && (from..=to).all(|number| self.has(number))
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % NUMBER_WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_knows_what_came(first: u16, steps in proptest::collection::vec(-300i64..300, 1..100)) {
            let mut window = Window::default();
            let first = window.number(first);
            window.restart(first);
            let (mut came, mut newest) = (BTreeSet::new(), first - 1);
            for step in steps {
                let number = newest.saturating_add_signed(step);
                prop_assert_eq!(window.number((number & 0xffff) as u16), number);
                let is_old = number + NUMBER_WINDOW <= newest;
                prop_assert_eq!(window.is_new(number), !is_old && !came.contains(&number));
                if !is_old && number >= first {
                    window.insert(number);
                    came.insert(number);
                    newest = newest.max(number);
                }
                let from = newest.saturating_sub(20).max(first);
                prop_assert_eq!(window.has_all(from, newest), (from..=newest).all(|it| came.contains(&it)));
            }
        }
    }
}
