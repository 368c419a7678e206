//! The index of each model among the priors.

use crate::coder::NUMBER_MODELS;

/// Families of numbers that share size models: positions, rates, and parts of rotations.
pub(super) const MOTION: usize = 0;
pub(super) const RATE: usize = 1;
pub(super) const ROTATION: usize = 2;

/// Buckets of expected sizes.
pub(super) const BUCKETS: usize = 16;
/// Choice-of-sixteen models of a family: for held and for moved predictions, by bucket.
pub(super) const FAMILY_SYMBOLS: usize = 2 * BUCKETS;
/// Choice-of-sixteen models in all.
pub(super) const SYMBOL_COUNT: usize = 3 * FAMILY_SYMBOLS;

/// Models of an entry's head, by decision.
pub(super) mod head {
    use crate::coder::NUMBER_MODELS;

    /// Whether the slot is the next one; by whether the entry before was.
    pub(in super::super) const NEXT: usize = 0;
    /// Whether the rest of the head equals the entry before; by whether that one's did.
    pub(in super::super) const SAME: usize = 2;
    /// Whether it is an update; if not, whether it is a spawn.
    pub(in super::super) const KIND: usize = 4;
    /// Whether the row's age, and whether the ages of the history, equal those of the entry before.
    pub(in super::super) const AGES_SAME: usize = 6;
    /// The number of rows of history, in two bits.
    pub(in super::super) const HISTORY: usize = 8;
    /// Whether a mask follows, and whether a meta follows.
    pub(in super::super) const MASK: usize = 11;
    pub(in super::super) const META: usize = 12;
    /// The parts of a meta: an owner, a zone, an audience.
    pub(in super::super) const META_PARTS: usize = 13;
    /// Whether the changed components equal those of the entry before.
    pub(in super::super) const CHANGED_SAME: usize = 16;
    /// For each component, whether it is in the mask; whether it changed.
    pub(in super::super) const IN_MASK: usize = 17;
    pub(in super::super) const CHANGED: usize = IN_MASK + 64;
    pub(in super::super) const GAP: usize = CHANGED + 64;
    pub(in super::super) const ROW_AGE: usize = GAP + NUMBER_MODELS;
    pub(in super::super) const AGE: usize = ROW_AGE + NUMBER_MODELS;
    pub(in super::super) const AGE_STEP: usize = AGE + NUMBER_MODELS;
    pub(in super::super) const END: usize = AGE_STEP + NUMBER_MODELS;
    /// Maximum decisions of a head, besides numbers and one for each component.
    pub(in super::super) const DECISIONS: usize = 14;
}

/// Models of the head of an entry.
pub(super) const HEAD: usize = head::END;
/// Models of a flag, by its base.
pub(super) const FLAG: usize = HEAD;
pub(super) const FLAG_LEN: usize = 2;
/// Models of a choice: whether it changed, then its number bit by bit.
pub(super) const CHOICE: usize = FLAG + FLAG_LEN;
pub(super) const CHOICE_LEN: usize = 1 + 256;
/// Models of a group of numbers: whether the moved prediction is used.
pub(super) const NUMBERS: usize = CHOICE + CHOICE_LEN;
pub(super) const NUMBERS_LEN: usize = 4;
/// Models of a rotation: those of numbers; whether the same part is omitted, by the size of the largest other
/// part; whether the part omitted now is that one; which of the two others it is.
pub(super) const TURN: usize = NUMBERS + NUMBERS_LEN;
pub(super) const TURN_LEN: usize = NUMBERS_LEN + 4 + 2;
/// Models of a blob.
pub(super) mod blob {
    use crate::coder::NUMBER_MODELS;

    /// Whether it equals its base.
    pub(in super::super) const SAME: usize = 0;
    /// Whether a byte equals the base; by the number of equal bytes before it.
    pub(in super::super) const SAME_BYTE: usize = 1;
    pub(in super::super) const PREFIX: usize = SAME_BYTE + 8;
    pub(in super::super) const SUFFIX: usize = PREFIX + NUMBER_MODELS;
    pub(in super::super) const MIDDLE: usize = SUFFIX + NUMBER_MODELS;
    /// A byte, bit by bit.
    pub(in super::super) const BYTE: usize = MIDDLE + NUMBER_MODELS;
    pub(in super::super) const END: usize = BYTE + 256;
}
pub(super) const BLOB: usize = TURN + TURN_LEN;
pub(super) const BLOB_LEN: usize = blob::END;
/// The number of all priors.
pub(super) const COUNT: usize = BLOB + BLOB_LEN;

const _: () = assert!(COUNT < 65_536 && NUMBER_MODELS == 64);
