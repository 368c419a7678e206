//! Sets of slots.

/// A set of slots, one bit each. Its capacity is that of the largest slot ever added.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn contains(&self, slot: u16) -> bool {
        let (word, bit) = place(slot);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn set(&mut self, slot: u16, is_in: bool) {
        let (word, bit) = place(slot);
        if word >= self.words.len() {
            if !is_in {
                return;
            }
            self.words.resize(word + 1, 0);
        }
        let word = &mut self.words[word];
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds the intersection of `a` and `b`.
    pub(super) fn add_common(&mut self, a: &Bits, b: &Bits) {
        let common = a.words.len().min(b.words.len());
        if self.words.len() < common {
            self.words.resize(common, 0);
        }
        for ((word, a), b) in self.words.iter_mut().zip(&a.words).zip(&b.words) {
            *word |= a & b;
        }
    }

    /// Removes the slots that are in `which` and for which `keep` returns false.
    pub(super) fn retain_in(&mut self, which: &Bits, mut keep: impl FnMut(u16) -> bool) {
        for (index, (word, which)) in self.words.iter_mut().zip(&which.words).enumerate() {
            each(*word & which, |bit| {
                if !keep(slot(index, bit)) {
                    *word &= !bit;
                }
            });
        }
    }

    /// Changes the set to the slots of `wanted` that pass `filter`, if there is one. Reports each added
    /// (`true`) and removed slot, in ascending order.
    pub(super) fn become_wanted(
        &mut self,
        wanted: &Bits,
        mut filter: Option<impl FnMut(u16) -> bool>,
        mut report: impl FnMut(u16, bool),
    ) {
        if self.words.len() < wanted.words.len() {
            self.words.resize(wanted.words.len(), 0);
        }
        for (index, word) in self.words.iter_mut().enumerate() {
            let mut want = wanted.words.get(index).copied().unwrap_or(0);
            if let Some(filter) = &mut filter {
                each(want, |bit| {
                    if !filter(slot(index, bit)) {
                        want &= !bit;
                    }
                });
            }
            each(*word ^ want, |bit| report(slot(index, bit), want & bit != 0));
            *word = want;
        }
    }
}

/// Calls `then` with each set bit of `word`, the lowest first.
fn each(mut word: u64, mut then: impl FnMut(u64)) {
    while word != 0 {
        let bit = word & word.wrapping_neg();
        word ^= bit;
        then(bit);
    }
}

fn place(slot: u16) -> (usize, u64) {
    (usize::from(slot) / 64, 1 << (slot % 64))
}

/// Returns the slot of `bit` in the word `index`.
#[allow(clippy::cast_possible_truncation)] // there are 1,024 words at most
fn slot(index: usize, bit: u64) -> u16 {
    (index * 64) as u16 + bit.trailing_zeros() as u16
}
