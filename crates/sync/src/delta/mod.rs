//! The body of a packet: the changed components of entities, coded against rows that the receiver has.
//!
//! A [`Writer`] takes entries in ascending order of their slots, each a [head](EntryHead) and the components
//! that changed, each with its [`Past`]; a [`Reader`] returns exactly the same. Both have the [`Tables`] of
//! the schema. Every body is self-contained: the adaptive state is reset at its end.
//!
//! All arithmetic is on integers; `>>` of a negative number rounds down, `part(x) = (x + 32,768) >> 16`.
//! Decisions, choices of sixteen, plain bits and `number` are those of [`coder`](crate::coder). Models begin
//! with the priors of `priors.rs`, at the indices that `layout.rs` names; the head's models at the beginning
//! of the body, a component's models when it is first coded in the body. Each component has models of its
//! own: one set for each *family* that it uses, and one for each of its groups.
//!
//! # Head
//!
//! Models are indices of `layout::head`. `last` is the slot after that of the entry before (0 at first).
//!
//! 1. Decision `NEXT + (1 if the slot of the entry before was next, as at first)`: whether the slot is
//!    `last`. If not, `number(GAP)`: 0 ends the body, `n` means slot `last + n`.
//! 2. Decision `SAME + (1 if that of the entry before was 1, as at first)`: whether row age, history, ages
//!    and changed components are those of the *pattern*, and it is an update without mask and meta. Then the
//!    head ends. The pattern is the last head for which this was 0; at first all is 0.
//! 3. Decision `KIND`: update; else decision `KIND + 1`: spawn; else despawn.
//! 4. Decision `AGES_SAME`: the row age is the pattern's; else `number(ROW_AGE)`. A despawn ends here.
//! 5. Spawn: generation, 16 plain bits. Update: decision `AGES_SAME + 1`: the history is the pattern's. Else
//!    its count: decision `HISTORY` its high bit `h`, decision `HISTORY + 1 + h` its low bit; then the first
//!    age less 1, `number(AGE)`, and for each further one its distance to the one before, less 1,
//!    `number(AGE_STEP)`.
//! 6. Update: decision `MASK`: a mask follows (a spawn always has one): decision `IN_MASK + c` for each
//!    component `c` of the schema. Update: decision `META`: a meta follows (a spawn always has one): decision
//!    `META_PARTS` and 32 plain bits of the owner; for receivers of everything also decision `META_PARTS + 1`
//!    (the zone is not 0) and 32 plain bits, decision `META_PARTS + 2` (not all), the count of members (16
//!    plain bits) and each (32 plain bits), ascending.
//! 7. Update: decision `CHANGED_SAME`: the changed components are the pattern's; else decision `CHANGED + c`
//!    for each. Of a spawn they are its mask.
//!
//! # Components
//!
//! A component is its *groups* in the order of its fields; of a transform position and rotation, of a body
//! velocity, position, spin and rotation. The *base* is the first past; without a past the same component of
//! the entry that last had it in this body, else zeros and no bytes.
//!
//! - `Bool`: decision `FLAG + base`.
//! - `Enum`: decision `CHOICE` whether it changed; if so its index, of as many bits as the last index has,
//!   highest first: `node = 1`, decision `CHOICE + node`, `node = 2 node + bit`. An index equal to the base's
//!   is rejected.
//! - `Text`, `Bytes`, `Any`: decision `SAME`: it is the base. Else `number(PREFIX)`, `number(SUFFIX)`,
//!   `number(MIDDLE)`: bytes that are as at the beginning of the base, as at its end, and between. If the
//!   base has as many between, a decision `SAME_BYTE + min(ilog2(run + 1), 7)` for each byte whether it is
//!   the base's, where `run` counts those since the last one that was not. A changed byte is 8 decisions
//!   `BYTE + node` as above. Rejected are: a blob equal to its base, a `PREFIX` that could be longer, given
//!   that a `SUFFIX` that could be longer, and a changed byte equal to the base's.
//! - *Numbers*: `Float`, `Angle`, `Vector` and positions (family `MOTION`); `Int`, `UnitVector`, velocity and
//!   spin (family `RATE`): see below.
//! - `Rotation`: `half` is half of the parts' span. Of the base, with parts `p` less `half`:
//!   `rest = 2 half² - sum of p²`, `top` the largest size of a part (of equals the first). The context is the
//!   first `i` for which `rest < (top + half / d[i])²`, `d = 32, 8, 2`, else 3. Decision `TURN + 4 + i`: the
//!   same part is left out. Else decision `TURN + 8`: it is the one with `top`; else decision `TURN + 9`: it
//!   is the higher one of the two others. All rows are then expressed with that part left out: the one that
//!   was is `root = (floor(sqrt(4 max(rest, 0))) + 1) / 2`, and if the one that is left out then is negative,
//!   all change their sign. Those of the base are clamped to 0 and the span. Then the three parts are numbers
//!   of the family `ROTATION`.
//!
//! # Numbers
//!
//! Rows `b0`, `b1`, `b2` with ages `a < b < c`; rows older than 128 ticks, and those after them, give no
//! weights. Of angles `b1` and `b2` are unwound to be within half a turn of `b0`. The moving predictions add
//! to `b0`, with `ratio(x, y) = floor((131,072 x + y) / 2y)`:
//!
//! - 0, linear, from two rows: `part((b1 - b0) l)`, `l = -ratio(a, b - a)`
//! - 1, quadratic, from three rows: `part((b1 - b0) n + (b2 - b0) f)`, `n = -ratio(ac, (b - a)(c - b))`,
//!   `f = ratio(ab, (c - a)(c - b))`
//! - 2, in between, from three rows: `part((b1 - b0) ((l + n) >> 1) + (b2 - b0) (f >> 1))`
//! - 3, by velocity, of bodies whose baseline is at most 128 ticks old:
//!   `part((offset + (scale (v0 + v) >> 1)) a)`, with the velocities' lanes of the baseline and of the row
//!   that is coded, and [`PerTick`](crate::schema::PerTick)
//!
//! each clamped to 0 and the span, of angles to ±2^28. The one with the least error so far in this body is
//! the *ahead* (of equals the first); errors begin as 4,096, 3,072, 3,072, 3,072. If it differs from `b0`, a
//! decision `NUMBERS + i` says whether it is taken, `i` = 0, 1, 2, 3 for a sum of distances from `b0` below
//! 2, 4, 16, and above. The chosen one is the *prediction*; its `way` is 0 held, 1 moved, 2 without a past.
//!
//! Each number in turn: `octaves = h(mean[way][j])`, where `h(x)` is, with `y = x | 1` and `e = ilog2(y)`,
//! `2e` plus the second highest bit of `y` (0 for 1). With `lean` (0 for the first number),
//! `e = max(octaves + lean, 0)`; `noise = 0` and `bucket = e` below 14, else `noise = min((e - 12) / 2, 20)`
//! and `bucket = 14 + e % 2`.
//!
//! `d` is the distance from the prediction to the number, of angles the shorter way around; its sign is
//! changed if the prediction is below `b0`, so that positive is onwards. `half = 2^noise / 2` (0 without
//! noise), `coarse = (d + half) >> noise`, and `low` are the bits shifted out. A choice of sixteen, model
//! `family * 32 + moved * 16 + bucket` (`moved` is 1 if the ahead was taken), says the size of `coarse`:
//!
//! | symbol | 0 | 1, 2 | 3, 4 | 5, 6 | 7, 8 | 9, 10 | 11, 12 | 13, 14 | 15 |
//! |---|---|---|---|---|---|---|---|---|---|
//! | size | 0 | 1 | 2 | 3 ..= 4 | 5 ..= 8 | 9 ..= 16 | 17 ..= 32 | 33 ..= 64 | 65 or more |
//! | bits | 0 | 0 | 0 | 1 | 2 | 3 | 4 | 5 | |
//!
//! Odd symbols below 15 are negative, even ones not. Then `bits + noise` plain bits at once: the size beyond
//! the least of its symbol, and below it `low`. Of symbol 15: one plain bit (1 is negative); with `x` the
//! size less 64, five plain bits of `ilog2(x)`, so many plain bits of what is below the highest bit of `x`,
//! and `noise` plain bits of `low`. A distance of 2^31 or more is refused, and of an angle one that is not
//! the shorter way around: `d` is above `-steps / 2` and at most that much.
//!
//! Then the models adapt, with `s = 16 min(size, 2^26)`: `mean += (s - mean) >> SHIFTS[seen[way]]`, and
//! `lean` is the difference `h(s + 8) - octaves`, limited to -16 ..= 15, divided by 3 (rounded to 0) and
//! limited to -2 ..= 3. Means begin as 128, 48 and 4,096 for the three ways; `seen[way]` counts the groups,
//! up to 31, and grows once its shift is taken; `SHIFTS` is 1 for `seen` below 2, then 2 below 4, 3 below 8,
//! 4 below 16, and 5. Of each group's first eight times, and then of each whose number (from 0; after 255
//! comes 8) is a multiple of 8, all predictions that there are are compared after it:
//! `error += ((256 min(sum of distances, 4,096)) - error) >> 4`.

mod fields;
mod head;
mod layout;
mod motion;
mod numbers;
mod pick;
mod plain;
mod priors;
#[cfg(test)]
mod published;
mod reader;
mod sizes;
mod tables;
mod train;
mod worst;
mod writer;

#[cfg(test)]
mod tests;

pub use pick::pick_history;
pub use reader::Reader;
pub use tables::Tables;
pub use train::{Trainer, Training};
pub use worst::worst_bytes;
pub use writer::{Mark, Writer};

use crate::audience::Audience;
use crate::coder::BodyError;
use crate::schema::ComponentId;
use bytes::Bytes;
use parlor_proto::MemberId;
use thiserror::Error;

/// Maximum rows of its history that an entry may refer to.
pub const HISTORY_MAX: usize = 3;

/// An older row of a component, which both ends have.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// Ticks before the coded row: 1 or more, and more than the past before it.
    pub age: u32,
    /// Its lanes: all of the component's.
    pub lanes: &'a [i32],
    /// Its blobs: all of the component's.
    pub blobs: &'a [Bytes],
}

/// What an entry does with its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The entity changed.
    Update,
    /// The entity is new to the receiver.
    Spawn,
    /// The entity is gone, or hidden from the receiver.
    Despawn,
}

/// An entity's data besides its components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its owner.
    pub owner: Option<MemberId>,
    /// Its interest zone, 0 for everywhere. Coded for receivers of everything only; 0 for others.
    pub zone: u32,
    /// Its audience. Coded for receivers of everything only; all for others.
    pub audience: Audience,
}

/// The head of an entry: its entity, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The entity's slot, above that of the entry before.
    pub slot: u16,
    /// What the entry does.
    pub kind: EntryKind,
    /// Ticks from the row to the packet.
    pub row_age: u32,
    /// Ages of the rows that it is coded against, in ticks before the row: the baseline first, ascending.
    /// Those beyond `history` are 0. Updates only.
    pub ages: [u32; HISTORY_MAX],
    /// The number of rows that it is coded against, 0 ..= [`HISTORY_MAX`]. Updates only.
    pub history: u8,
    /// The entity's generation. Spawns only, else 0.
    pub generation: u16,
    /// The components of the entity. For spawns, and if `mask_changed`; else 0.
    pub mask: u64,
    /// Whether the set of its components changed. True for spawns.
    pub mask_changed: bool,
    /// Always present for spawns; for updates if it changed.
    pub meta: Option<Meta>,
    /// The components that follow, in the order of their numbers. All of the mask for spawns, none for
    /// despawns.
    pub changed: u64,
}

impl EntryHead {
    /// Returns an update of the entity in this slot, without any changes.
    pub const fn update(slot: u16) -> Self {
        EntryHead {
            slot,
            kind: EntryKind::Update,
            row_age: 0,
            ages: [0; HISTORY_MAX],
            history: 0,
            generation: 0,
            mask: 0,
            mask_changed: false,
            meta: None,
            changed: 0,
        }
    }

    /// Whether it equals another head in all but the slot.
    fn is_like(&self, other: &EntryHead) -> bool {
        self.kind == other.kind
            && self.row_age == other.row_age
            && self.ages == other.ages
            && self.history == other.history
            && self.changed == other.changed
            && !self.mask_changed
            && self.meta.is_none()
    }
}

/// Why a body is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeltaError {
    /// The bytes are not a valid body.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The slot is out of range.
    #[error("an entry names a slot that no world has: the sender's world is larger, or the body was changed")]
    Slot,
    /// A slot has two entries.
    #[error("slot {slot} has two entries in one packet: the sender is faulty, or the body was changed")]
    Twice {
        /// The slot.
        slot: u16,
    },
    /// The audience is invalid.
    #[error("an audience has too many members, or not in order")]
    Audience,
    /// A number is outside its field's range.
    #[error(
        "{component}, lane {lane}: {value} is beyond 0 to {span}; do both ends have the same schema and history?"
    )]
    Lane {
        /// The component.
        component: ComponentId,
        /// The lane in it.
        lane: usize,
        /// The received value.
        value: i32,
        /// The largest valid value.
        span: i32,
    },
    /// A blob is invalid for its field.
    #[error("{component}: a blob is longer than {bytes_max} bytes, or built on more than was there")]
    Blob {
        /// The component.
        component: ComponentId,
        /// Its maximum length.
        bytes_max: usize,
    },
    /// A field is not in its unique encoding: a choice marked as changed equals its base, or a blob does not
    /// keep as much as possible.
    #[error(
        "{component}: a field is told in another form than the one that it has; do both ends have the same history?"
    )]
    Form {
        /// The component.
        component: ComponentId,
    },
    /// More entries, or more output, than a packet may have.
    #[error("one packet holds more than {what} may: the sender breaks the bounds")]
    TooMuch {
        /// The quantity that is exceeded.
        what: &'static str,
    },
}
